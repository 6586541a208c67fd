// The engine's thread: fits, compresses and leaves samples out for the playground. A newer request ends an older one.

import { open } from "../svmarrow.js";

/** Steps of the construction between two pictures, and the number of pictures of new vectors and of moved ones. */
const STEPS = 800;
const STAGES = 12;
const MOVED_STAGES = 5;
/** Time for leave-one-out predictions between two looks at the messages, in milliseconds. */
const SLICE_MS = 30;

let engine;
let latest = 0;
let full = null;
let small = null;
let compressed_for = "";
const compiled = new Set();

/** Lets messages arrive. Throws if a newer request has come. */
async function pause(id) {
  await new Promise((resolve) => setTimeout(resolve));
  if (id !== latest) throw new Outdated();
}

class Outdated extends Error {}

function timed(work) {
  const start = performance.now();
  const result = work();
  return [result, performance.now() - start];
}

/** Returns what a page draws of a model: its vectors, its outputs and, for several classes, its classes on the points. */
function picture(model, points) {
  const outputs = model.decision_function(points);
  const classes = model.n_outputs > 1 ? indices(model, points) : null;
  const vectors = model.vectors;
  return { outputs, classes, vectors, coefficients: model.coefficients, ...description(model) };
}

function description(model) {
  const { kind, kernel, n_vectors, n_features, n_outputs, certificates } = model;
  return { kind, kernel, n_vectors, n_features, n_outputs, certificates, labels: model.classes };
}

/** Returns the index of the class of each point. */
function indices(model, X) {
  const index = new Map(model.classes.map((label, i) => [label, i]));
  return Uint8Array.from(model.predict(X), (label) => index.get(label));
}

/** Returns the error of predictions: the share of wrong classes or of outliers, or the mean absolute error. */
function error(kind, predictions, y) {
  let sum = 0;
  predictions.forEach((f, i) => {
    if (kind === "classifier") sum += f !== y[i];
    else if (kind === "detector") sum += f < 0;
    else sum += Math.abs(f - y[i]);
  });
  return sum / predictions.length;
}

async function fit({ id, estimator, X, y, options, points, n_vectors, seed, stages, exact_leave_one_out }) {
  if (!compiled.has(estimator)) {
    // The browser compiles a function at its first calls, which would be counted.
    compiled.add(estimator);
    for (let i = 0; i < 3; i += 1) engine.fit(estimator, X, y, options).free();
  }
  const [model, ms] = timed(() => engine.fit(estimator, X, y, options));
  full?.free();
  full = model;
  const training = model.predict(X);
  postMessage({
    type: "full",
    id,
    ms,
    error: error(model.kind, training, y),
    training: model.kind === "regressor" ? training : null,
    model: picture(model, points),
  });
  await pause(id);
  await compress({ id, X, y, points, n_vectors, seed, stages, training, key: `${estimator} ${options.kernel} ${model.n_outputs}` });
  const n = X.length / model.n_features;
  const predictions = [];
  while (predictions.length < n) {
    await pause(id);
    const start = performance.now();
    while (predictions.length < n && performance.now() - start < SLICE_MS) {
      const from = predictions.length;
      const to = exact_leave_one_out ? n : from + 1;
      predictions.push(...model.leave_one_out(X, y, { from, to }));
    }
  }
  postMessage({ type: "leave_one_out", id, error: error(model.kind, predictions, y) });
}

async function compress({ id, X, y, points, n_vectors, seed, stages, training, key }) {
  const n = X.length / full.n_features;
  const count = Math.min(n_vectors, n, full.n_vectors);
  if (count === 0) {
    postMessage({ type: "small", id, done: true, model: null });
    return;
  }
  // Vectors that are there already are moved; new ones start at the centers of clusters.
  const start_key = `${key} ${count}`;
  let current = compressed_for === start_key ? small : null;
  const moved = current !== null;
  const last = moved ? MOVED_STAGES : STAGES;
  let total = 0;
  for (let stage = 1; stage <= last; stage += 1) {
    const [next, ms] = timed(() =>
      full.compress(X, { n_vectors: count, steps: STEPS, seed: seed + stage, ...(current ? { start: current } : {}) }),
    );
    total += ms;
    if (current !== small) current?.free();
    current = next;
    const done = stage === last;
    if (stages || done) {
      const predictions = current.predict(X);
      let agreement = null;
      if (y === null || full.kind !== "regressor") {
        agreement = predictions.filter((f, i) => f === training[i]).length / n;
      }
      postMessage({
        type: "small",
        id,
        done,
        ms: total,
        error: error(current.kind, predictions, y),
        agreement,
        difference: agreement === null ? predictions.reduce((sum, f, i) => sum + Math.abs(f - training[i]), 0) / n : null,
        model: picture(current, points),
      });
    }
    small?.free();
    small = current;
    compressed_for = start_key;
    await pause(id);
  }
}

/** Reads a model file, and reduces it with its own vectors as samples. */
async function load({ id, file, resolutions, n_vectors, seed, stages }) {
  const model = engine.load(file);
  if (model.n_features > 2) {
    const count = model.n_features;
    model.free();
    throw new Error(`The model takes ${count} features; this page draws models of one or two.`);
  }
  full?.free();
  full = model;
  const X = model.vectors;
  const range = bounds(X, model.n_features);
  const points = grid(range, model.n_features, resolutions[model.n_features - 1]);
  postMessage({ type: "full", id, ms: null, error: null, training: null, range, model: picture(model, points) });
  await pause(id);
  const training = model.predict(X);
  await compress({ id, X, y: model.kind === "detector" ? null : training, points, n_vectors, seed, stages, training, key: `file ${id}` });
}

/** Returns the square around the vectors of a model, or the interval. */
function bounds(vectors, columns) {
  const range = [];
  for (let column = 0; column < columns; column += 1) {
    let [low, high] = [Infinity, -Infinity];
    for (let i = column; i < vectors.length; i += columns) {
      low = Math.min(low, vectors[i]);
      high = Math.max(high, vectors[i]);
    }
    if (!(low < high)) [low, high] = Number.isFinite(low) ? [low - 1, low + 1] : [-1, 1];
    const margin = 0.12 * (high - low);
    range.push([low - margin, high + margin]);
  }
  return range;
}

function grid(range, columns, resolution) {
  const place = ([low, high], i) => low + ((high - low) * i) / (resolution - 1);
  if (columns === 1) return Float64Array.from({ length: resolution }, (_, i) => place(range[0], i));
  const points = new Float64Array(2 * resolution * resolution);
  for (let row = 0; row < resolution; row += 1) {
    for (let column = 0; column < resolution; column += 1) {
      const i = 2 * (row * resolution + column);
      points[i] = place(range[0], column);
      points[i + 1] = place(range[1], row);
    }
  }
  return points;
}

function save({ which }) {
  const model = which === "small" ? small : full;
  postMessage({ type: "saved", which, file: model?.save() ?? null });
}

addEventListener("message", async ({ data }) => {
  if (data.type === "save") {
    save(data);
    return;
  }
  latest = data.id;
  try {
    engine ??= await (opening ??= open());
    if (data.id !== latest) return;
    await (data.type === "fit" ? fit(data) : load(data));
    postMessage({ type: "done", id: data.id });
  } catch (problem) {
    if (problem instanceof Outdated) return;
    // After a panic, models are gone.
    if (problem.cause) full = small = null;
    postMessage({ type: "error", id: data.id, message: problem.message });
  }
});

let opening = null;
