// The playground: controls, samples and pictures. Everything that is computed comes from worker.js.

import { DATA_SETS, draw } from "./data.js";
import { Plot, smoothed } from "./plot.js";

const root = document.getElementById("pg-root");
const $ = (selector) => root.querySelector(selector);
const [bar, controls] = [$(".pg-bar"), $(".pg-controls")];
const plots = { full: new Plot($("#pg-full")), small: new Plot($("#pg-small")) };
const SQUARE = plots.full.range;
/** Points of a side of the grid on which machines are drawn, and of a curve. */
const GRID = 121;
const CURVE = 301;
const MAX_SAMPLES = 600;
/** Least distance between samples that are drawn in one movement. */
const SPRAY = 0.09;

const ESTIMATORS = {
  classification: { SVC: "Support vector machine", RLSClassifier: "Least squares", KMPClassifier: "Matching pursuit" },
  regression: { SVR: "Support vector machine", RLSRegressor: "Least squares", KMPRegressor: "Matching pursuit" },
  detection: { OneClassSVM: "One-class machine" },
};
/** Parameters of the estimators, by the names of their sliders. */
const PARAMETERS = {
  SVC: ["C"],
  SVR: ["C", "epsilon"],
  OneClassSVM: ["nu"],
  RLSClassifier: ["alpha"],
  RLSRegressor: ["alpha"],
  KMPClassifier: ["n_functions"],
  KMPRegressor: ["n_functions"],
};
const LOGARITHMIC = new Set(["C", "alpha", "gamma"]);

let task = "classification";
let seed = 1;
let samples = [];
/** A model of a file is shown without samples. */
let from_file = false;
let file_bytes = null;
let full = null;
let small = null;
let training = null;
let cursor = null;
let theme;

// Numbers -------------------------------------------------------------------------------------------------

function value(name) {
  const number = Number(controls.elements[name].value);
  return LOGARITHMIC.has(name) ? 10 ** number : number;
}

function written(number) {
  if (number === 0) return "0";
  if (Math.abs(number) >= 0.001 && Math.abs(number) < 10000) return String(Number(number.toPrecision(2)));
  return number.toExponential(0).replace("e", " × 10^");
}

function milliseconds(ms) {
  return ms === null ? "–" : ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function show(name, text) {
  $(`[data-number="${name}"]`).textContent = text;
}

function say(name, text) {
  $(`[data-text="${name}"]`).textContent = text;
}

function show_error(name, error) {
  show(name, error === null ? "–" : task === "regression" ? error.toFixed(3) : percent(error));
}

/** The duality gap relative to the objective, the largest of all machines. */
function gap_of(certificates) {
  if (certificates.length === 0) return "–";
  const gap = Math.max(...certificates.map(({ gap, primal }) => Math.max(0, gap) / Math.max(Math.abs(primal), 1e-300)));
  return gap < 1e-6 ? "< 0.0001 %" : `${Number((100 * gap).toPrecision(2))} %`;
}

// Requests ------------------------------------------------------------------------------------------------

let worker = null;
let requests = 0;
let pending = null;
/** A request has not shown a picture yet. */
let busy = false;
/** The first request of the samples on show: what comes of earlier ones is not drawn. */
let oldest = 1;

function start_worker() {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.addEventListener("message", ({ data }) => receive(data));
  worker.addEventListener("error", (event) => fail(event.message || "The engine could not be loaded."));
}

/** Sends a request once the last one has shown a picture, so that a slider shows every machine that there is time for. */
function request(message) {
  requests += 1;
  root.dataset.state = "busy";
  root.dataset.request = requests;
  pending = { ...message, id: requests, seed, n_vectors: value("n_vectors"), stages: !calm() };
  if (!busy) send();
}

function send() {
  busy = true;
  worker.postMessage(pending);
  pending = null;
}

function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function estimator() {
  return controls.elements.estimator.value;
}

function options() {
  const kernel = controls.elements.kernel.value;
  const chosen = { kernel, n_features: task === "regression" ? 1 : 2 };
  if (kernel !== "linear") chosen.gamma = value("gamma");
  if (kernel === "poly") Object.assign(chosen, { degree: 3, coef0: 1 });
  for (const name of PARAMETERS[estimator()]) chosen[name === "n_functions" ? "n_vectors" : name] = value(name);
  if (estimator().startsWith("RLS")) chosen.fit_intercept = true;
  return chosen;
}

/** Points on which machines are drawn. */
function points() {
  if (task === "regression") return curve_points();
  const grid = new Float64Array(2 * GRID * GRID);
  const place = ([low, high], i) => low + ((high - low) * i) / (GRID - 1);
  for (let row = 0; row < GRID; row += 1) {
    for (let column = 0; column < GRID; column += 1) {
      const i = 2 * (row * GRID + column);
      grid[i] = place(SQUARE[0], column);
      grid[i + 1] = place(SQUARE[1], row);
    }
  }
  return grid;
}

function curve_points([low, high] = SQUARE[0]) {
  return Float64Array.from({ length: CURVE }, (_, i) => low + ((high - low) * i) / (CURVE - 1));
}

function refit() {
  root.dataset.samples = samples.length;
  from_file = false;
  plots.full.range = plots.small.range = SQUARE;
  const missing = what_is_missing();
  note("full", missing);
  note("small", missing && "");
  $(".pg-message").hidden = true;
  if (missing !== null) {
    requests += 1;
    oldest = requests + 1;
    pending = full = small = training = null;
    for (const output of root.querySelectorAll("dd")) output.textContent = "–";
    say("full-vectors", "");
    say("small-vectors", "");
    root.dataset.state = "ready";
    redraw();
    return;
  }
  const is_curve = task === "regression";
  request({
    type: "fit",
    estimator: estimator(),
    X: Float64Array.from(is_curve ? samples.map(({ x }) => x) : samples.flatMap(({ x, y }) => [x, y])),
    y: task === "detection" ? null : Float64Array.from(samples, ({ y, c }) => (is_curve ? y : c)),
    options: options(),
    points: points(),
    exact_leave_one_out: estimator().startsWith("RLS"),
  });
}

function what_is_missing() {
  if (task === "classification" && new Set(samples.map(({ c }) => c)).size < 2) {
    return "Add samples of two classes.";
  }
  return samples.length < 2 ? "Add samples." : null;
}

function note(which, text) {
  const place = plots[which].canvas.parentElement.querySelector(".pg-empty");
  place.hidden = !text;
  place.textContent = text ?? "";
}

// Answers -------------------------------------------------------------------------------------------------

function receive(answer) {
  if (answer.type === "saved") {
    offer(answer);
    return;
  }
  if (["full", "done", "error"].includes(answer.type)) busy = false;
  if (answer.id === requests || (answer.type === "full" && answer.id >= oldest)) show_answer(answer);
  if (!busy && pending) send();
}

const SHOWN = {
  full({ ms, error, model, range, training: predictions }) {
    [full, training] = [model, predictions];
    if (range) plots.full.range = plots.small.range = range.length === 2 ? range : [range[0], curve_range(model.outputs)];
    const bounded = model.certificates.reduce((sum, machine) => sum + machine.bounded, 0);
    show("fit_ms", milliseconds(ms));
    show("vectors", bounded > 0 ? `${model.n_vectors} (${bounded} at C)` : String(model.n_vectors));
    if (task === "detection") show("vectors", String(model.n_vectors));
    show_error("error", error);
    show("gap", gap_of(model.certificates));
    say("full-vectors", `${model.n_vectors} vectors`);
    if (range) show("leave_one_out", "–");
  },
  small({ done, ms, error, agreement, difference, model }) {
    small = model;
    if (model === null) return;
    show("small_ms", milliseconds(ms));
    show("small_vectors", String(model.n_vectors));
    show_error("small_error", from_file ? null : error);
    show("agreement", agreement === null ? difference.toFixed(3) : percent(agreement));
    say("small-vectors", `${model.n_vectors} vectors`);
    plots.small.canvas.dataset.done = done;
  },
  leave_one_out({ error }) {
    show_error("leave_one_out", error);
  },
  done() {
    root.dataset.state = "ready";
    const words = [...root.querySelectorAll(".pg-numbers div")].map(
      (cell) => `${cell.querySelector("dt").textContent} ${cell.querySelector("dd").textContent}`,
    );
    $(".pg-status").textContent = words.join(", ");
  },
  error({ message }) {
    fail(message);
  },
};

function show_answer(answer) {
  SHOWN[answer.type](answer);
  requestAnimationFrame(redraw);
}

function fail(message) {
  const place = $(".pg-message");
  place.textContent = message;
  place.hidden = false;
  root.dataset.state = "error";
}

function curve_range(outputs) {
  const [low, high] = [Math.min(...outputs), Math.max(...outputs)];
  const margin = 0.1 * (high - low) || 1;
  return [low - margin, high + margin];
}

// Pictures ------------------------------------------------------------------------------------------------

function read_theme() {
  const style = getComputedStyle(root);
  const color = (name) => style.getPropertyValue(`--pg-${name}`).trim();
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const classes = [0, 1, 2].map((c) => color(`class-${c}`));
  theme = {
    surface: color("surface"),
    ink: color("ink"),
    muted: color("muted"),
    curve: color("curve"),
    classes,
    rgb: classes.map(rgb),
  };
  for (const c of [0, 1, 2]) theme[`tint${c}`] = `${classes[c]}2b`;
}

/** Whether the model on show is drawn as a curve. */
function is_curve(model) {
  return model ? model.n_features === 1 : task === "regression";
}

function redraw() {
  read_theme();
  for (const which of ["full", "small"]) {
    const [plot, model] = [plots[which], which === "full" ? full : small];
    plot.begin(theme);
    if (model) (is_curve(model) ? draw_curve : draw_field)(plot, model, which);
    if (!from_file) draw_samples(plot, which);
    if (model) draw_vectors(plot, model, which);
    if (which === "full" && cursor && document.activeElement === plot.canvas) plot.crosshair(...cursor);
  }
}

function draw_field(plot, model, which) {
  const size = GRID;
  const { outputs } = model;
  if (model.n_outputs === 1) {
    // 0.06 at the boundary, 0.34 beyond the margin.
    const scale = model.kind === "classifier" ? 1 : Math.max(...outputs.map(Math.abs)) || 1;
    plot.field(size, (i) => {
      const f = outputs[i] / scale;
      const strength = Math.min(1, Math.abs(f));
      if (model.kind === "detector") return [...theme.rgb[0], f >= 0 ? 0.12 + 0.3 * strength : 0];
      return [...theme.rgb[f >= 0 ? 1 : 0], 0.07 + 0.27 * strength];
    });
    if (model.kind === "classifier") {
      for (const level of [-1, 1]) plot.lines(outputs, size, level, { color: theme.muted, width: 1.5, dash: [6, 5] });
    }
    plot.lines(outputs, size, 0, { color: theme.ink, width: 2.5 });
  } else if (model.classes) {
    plot.field(size, (i) => [...theme.rgb[color_of(model, model.classes[i])], 0.26]);
    for (let k = 0; k < model.labels.length; k += 1) {
      // Classes change from one point of the grid to the next: the line between them is smoothed.
      const own = Float32Array.from(model.classes, (c) => Number(c === k));
      plot.lines(smoothed(own, size, 3), size, 0.5, { color: theme.ink, width: 2 });
    }
  }
}

/** The color of a class: that of its samples, or its index for a model of a file. */
function color_of(model, index) {
  const label = model.labels[index];
  return Number.isInteger(label) && label >= 0 && label < 3 && !from_file ? label : index % 3;
}

function draw_curve(plot, model, which) {
  const xs = curve_points(plot.range[0]);
  if (model.kind !== "regressor") {
    plot.curve(xs, Array.from(model.outputs).filter((_, i) => i % model.n_outputs === 0), { color: theme.ink, width: 2.5 });
    return;
  }
  const ys = Array.from(model.outputs);
  if (estimator() === "SVR" && !from_file) {
    const epsilon = value("epsilon");
    const [low, high] = [ys.map((y) => y - epsilon), ys.map((y) => y + epsilon)];
    plot.band(xs, low, high, `${theme.curve}24`);
    for (const edge of [low, high]) plot.curve(xs, edge, { color: theme.curve, width: 1.25, dash: [6, 5] });
  }
  if (which === "small" && full?.kind === "regressor") {
    plot.curve(xs, Array.from(full.outputs), { color: theme.muted, width: 1.5, dash: [2, 5] });
  }
  plot.curve(xs, ys, { color: theme.curve, width: 3 });
}

function draw_samples(plot, which) {
  const chosen = new Set();
  if (which === "full" && full) {
    const { vectors, n_features } = full;
    for (let i = 0; i < vectors.length; i += n_features) chosen.add(vectors.slice(i, i + n_features).join());
  }
  for (const { x, y, c } of samples) {
    const ring = chosen.has(task === "regression" ? `${x}` : `${x},${y}`);
    plot.point(x, y, c, { fill: theme.classes[c], ring: ring && chosen.size < samples.length, faint: which === "small" });
  }
}

function draw_vectors(plot, model, which) {
  if (which === "full" && !from_file) return;
  const { vectors, coefficients, n_features, n_outputs } = model;
  const count = model.n_vectors;
  for (let i = 0; i < count; i += 1) {
    const x = vectors[i * n_features];
    if (n_features === 2) {
      const fill = n_outputs === 1 && model.kind === "classifier" ? theme.classes[coefficients[i] >= 0 ? 1 : 0] : theme.surface;
      plot.diamond(x, vectors[2 * i + 1], fill, which === "full" ? 4.5 : 7.5);
    } else {
      const [low, high] = plot.range[0];
      const at = Math.round(((x - low) / (high - low)) * (CURVE - 1));
      plot.diamond(x, model.outputs[Math.max(0, Math.min(CURVE - 1, at)) * n_outputs], theme.surface, which === "full" ? 4.5 : 7.5);
    }
  }
}

// Samples -------------------------------------------------------------------------------------------------

function brush() {
  return controls.elements.brush.value;
}

function nearest(x, y, limit) {
  let [best, least] = [-1, limit];
  samples.forEach((sample, i) => {
    const distance = Math.hypot(plots.full.x(sample.x) - plots.full.x(x), plots.full.y(sample.y) - plots.full.y(y));
    if (distance <= least) [best, least] = [i, distance];
  });
  return best;
}

function add(x, y) {
  if (samples.length >= MAX_SAMPLES) return;
  const c = brush() === "1" || brush() === "2" ? Number(brush()) : 0;
  const inside = ([low, high], v) => Math.min(high, Math.max(low, v));
  samples.push({ x: inside(SQUARE[0], x), y: inside(SQUARE[1], y), c });
  refit();
}

function remove(x, y, limit) {
  const index = nearest(x, y, limit);
  if (index < 0) return;
  samples.splice(index, 1);
  refit();
}

function place_of(event) {
  const { left, top } = plots.full.canvas.getBoundingClientRect();
  return plots.full.at(event.clientX - left, event.clientY - top);
}

/** A movement that is going on: the index of a sample that is dragged, or the last place where one was added. */
let movement = null;

function pressed(event) {
  if (event.button > 0 && event.button !== 2) return;
  if (from_file) {
    samples = [];
    full = small = null;
    from_file = false;
    plots.full.range = plots.small.range = SQUARE;
  }
  const canvas = plots.full.canvas;
  canvas.setPointerCapture(event.pointerId);
  canvas.focus({ preventScroll: true });
  cursor = null;
  const [x, y] = place_of(event);
  const limit = event.pointerType === "mouse" ? 9 : 16;
  if (brush() === "erase" || event.button === 2) {
    movement = { erase: limit };
    remove(x, y, limit);
    return;
  }
  const index = nearest(x, y, limit);
  movement = index >= 0 ? { index } : { last: [x, y] };
  if (index < 0) add(x, y);
}

function moved(event) {
  if (movement === null) return;
  const [x, y] = place_of(event);
  if (movement.erase) remove(x, y, movement.erase);
  else if (movement.index !== undefined) {
    const inside = ([low, high], v) => Math.min(high, Math.max(low, v));
    Object.assign(samples[movement.index], { x: inside(SQUARE[0], x), y: inside(SQUARE[1], y) });
    refit();
  } else if (Math.hypot(x - movement.last[0], y - movement.last[1]) > SPRAY) {
    movement.last = [x, y];
    add(x, y);
  }
}

function typed(event) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  cursor ??= [0, 0];
  const step = (event.shiftKey ? 0.2 : 0.05) * ((SQUARE[0][1] - SQUARE[0][0]) / 2);
  if (event.key in steps) {
    const [dx, dy] = steps[event.key];
    cursor = [cursor[0] + dx * step, cursor[1] + dy * step].map((v, i) => Math.min(SQUARE[i][1], Math.max(SQUARE[i][0], v)));
    requestAnimationFrame(redraw);
  } else if (event.key === "Enter" || event.key === " ") {
    if (brush() === "erase") remove(...cursor, 30);
    else add(...cursor);
  } else if (event.key === "Delete" || event.key === "Backspace") {
    remove(...cursor, 30);
  } else if (["1", "2", "3"].includes(event.key) && task === "classification") {
    controls.elements.brush.value = String(Number(event.key) - 1);
  } else {
    return;
  }
  event.preventDefault();
}

// Files ---------------------------------------------------------------------------------------------------

function load_file() {
  request({ type: "load", file: file_bytes, resolutions: [CURVE, GRID] });
}

async function show_file(file) {
  $(".pg-message").hidden = true;
  from_file = true;
  full = small = training = null;
  oldest = requests + 1;
  note("full", null);
  note("small", null);
  file_bytes = await file.arrayBuffer();
  load_file();
}

function offer({ which, file }) {
  if (file === null) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([file], { type: "application/octet-stream" }));
  link.download = which === "small" ? "compressed.safetensors" : "model.safetensors";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Controls ------------------------------------------------------------------------------------------------

function fill(select, labels, chosen) {
  select.replaceChildren(...Object.entries(labels).map(([name, label]) => new Option(label, name, false, name === chosen)));
}

function show_controls() {
  for (const slider of controls.querySelectorAll("[data-parameter]")) {
    const name = slider.dataset.parameter;
    const needed = [...PARAMETERS[estimator()], "n_vectors"];
    if (controls.elements.kernel.value !== "linear") needed.push("gamma");
    slider.hidden = !needed.includes(name);
    slider.querySelector("output").textContent = written(value(name));
  }
  for (const label of controls.querySelectorAll("[data-task]")) label.hidden = !label.dataset.task.includes(task);
  const is_machine = ["SVC", "SVR", "OneClassSVM"].includes(estimator());
  say("vectors-title", is_machine ? "Support vectors" : "Vectors");
  say("full-title", is_machine ? "Full machine" : "Full model");
  const names = { classification: ["Training error", "Leave-one-out error"], regression: ["Mean error", "Leave-one-out error"], detection: ["Outliers", "Left-out outliers"] };
  const [error, loo] = names[task];
  say("error-title", error);
  say("small-error-title", error);
  say("loo-title", loo);
  say("agreement-title", task === "regression" ? "Mean difference" : "Same answers");
}

function choose_task(name) {
  task = name;
  fill(bar.elements.data, DATA_SETS[task].labels);
  fill(controls.elements.estimator, ESTIMATORS[task]);
  controls.elements.brush.value = task === "classification" ? "0" : "add";
  controls.elements.gamma.value = { classification: 0.7, regression: 0.8, detection: 0.5 }[task];
  controls.elements.C.value = 1;
  resample();
}

function resample() {
  samples = draw(task, bar.elements.data.value, seed);
  full = small = training = null;
  oldest = requests + 1;
  show_controls();
  refit();
}

const ACTIONS = {
  resample() {
    seed += 1;
    resample();
  },
  clear() {
    samples = [];
    refit();
  },
  open() {
    bar.elements.file.click();
  },
  save() {
    worker.postMessage({ type: "save", which: "full" });
  },
};

function listen() {
  bar.addEventListener("change", ({ target }) => {
    if (target.name === "task") choose_task(target.value);
    else if (target.name === "data") resample();
    else if (target.name === "file" && target.files.length > 0) {
      show_file(target.files[0]);
      target.value = "";
    }
  });
  bar.addEventListener("click", ({ target }) => ACTIONS[target.dataset.action]?.());
  controls.addEventListener("input", ({ target }) => {
    if (target.name === "brush") return;
    show_controls();
    if (target.name === "n_vectors" && from_file) load_file();
    else refit();
  });
  for (const form of [bar, controls]) form.addEventListener("submit", (event) => event.preventDefault());
  const { canvas } = plots.full;
  canvas.addEventListener("pointerdown", pressed);
  canvas.addEventListener("pointermove", moved);
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (movement = null));
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("keydown", typed);
  for (const event of ["focus", "blur"]) canvas.addEventListener(event, () => requestAnimationFrame(redraw));
  const dropping = (event, is_over) => {
    event.preventDefault();
    root.classList.toggle("pg-dropping", is_over);
  };
  root.addEventListener("dragover", (event) => dropping(event, true));
  root.addEventListener("dragleave", (event) => dropping(event, false));
  root.addEventListener("drop", (event) => {
    dropping(event, false);
    if (event.dataTransfer.files.length > 0) show_file(event.dataTransfer.files[0]);
  });
  new ResizeObserver(() => requestAnimationFrame(redraw)).observe($(".pg-main"));
  addEventListener("load", redraw);
  new MutationObserver(redraw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}

listen();
start_worker();
choose_task("classification");
