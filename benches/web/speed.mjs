// Times the engine in Node.js: reads {module, script, calls} as JSON, writes seconds. See speed.py.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { module, script, calls, repeats } = JSON.parse(readFileSync(0, "utf8"));
const { open } = await import(pathToFileURL(script));
const svmarrow = await open(readFileSync(module));

/** Time for which a call is repeated before it is timed: the optimizing compiler works beside it, on the same core. */
const WARM_UP_MS = 1500;

/** Returns the median of the seconds of a call. */
function seconds(work) {
  for (const start = performance.now(); performance.now() - start < WARM_UP_MS; ) work();
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
