// Reads a list of calls from the standard input, runs them and writes their results as JSON. Numbers of doubles are hexadecimal,
// so that no bit is lost. A call is {fit: [estimator, X, y, options]} or {load: base64}, and then {on: X, compress, save, ...}.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , script, module] = process.argv;
const { open } = await import(pathToFileURL(script));
const svmarrow = await open(readFileSync(module));

const exact = (values) => Array.from(values, (value) => (typeof value === "number" ? bits(value) : value));

function bits(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
}

function described(model, { on, y, leave_one_out, compress, save }) {
  const { kind, classes, n_vectors, n_features, certificates } = model;
  const found = { kind, classes, n_vectors, n_features, certificates };
  if (on) {
    found.outputs = exact(model.decision_function(on));
    found.predictions = Array.from(model.predict(on));
  }
  if (leave_one_out) found.left_out = Array.from(model.leave_one_out(on, y));
  if (compress) {
    const small = model.compress(on, compress);
    found.small = described(small, { on, save });
    if (compress.method !== "backfit") {
      const moved = model.compress(on, { ...compress, start: small });
      found.moved = described(moved, { on });
    }
  }
  if (save) found.file = Buffer.from(model.save()).toString("base64");
  return found;
}

function run(call) {
  try {
    if (call.panic) svmarrow.panic_for_tests(call.panic);
    const model = call.load !== undefined ? svmarrow.load(Buffer.from(call.load, "base64")) : svmarrow.fit(...call.fit);
    const found = described(model, call);
    model.free();
    return found;
  } catch (error) {
    return { error: `${error.name}: ${error.message}` };
  }
}

const calls = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(calls.map(run)));
