// Times the engine in Node.js: reads {module, script, calls} as JSON, writes seconds. See speed.py.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { module, script, calls, repeats } = JSON.parse(readFileSync(0, "utf8"));
const { open } = await import(pathToFileURL(script));
const svmarrow = await open(readFileSync(module));

/** Returns the median of the seconds of a call, after the compiler has seen it. */
function seconds(work) {
  for (let i = 0; i < 3; i += 1) work();
  const times = Array.from({ length: repeats }, () => {
    const start = performance.now();
    work();
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b)[repeats >> 1] / 1000;
}

const results = calls.map(({ estimator, X, y, options, samples }) => {
  const model = svmarrow.fit(estimator, X, y, options);
  return {
    n_vectors: model.n_vectors,
    fit: seconds(() => svmarrow.fit(estimator, X, y, options).free()),
    predict: seconds(() => model.predict(samples)),
  };
});
process.stdout.write(JSON.stringify({ node: process.version, results }));
