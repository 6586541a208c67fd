// svmarrow in web browsers and Node.js: kernel machines on typed arrays.
//
//     import { open } from "./svmarrow.js";
//     const svmarrow = await open();                          // fetches svmarrow.wasm from the folder of this file
//     const model = svmarrow.fit("SVC", X, y, { C: 10, gamma: 2, n_features: 2 });
//     const labels = model.predict(X);
//
// Options have the names of the parameters in Python. X is a Float64Array (or Float32Array) with the samples row after row, or
// an array of arrays. Errors of the engine are JavaScript errors with its message. Everything runs on the calling thread.

const [SAMPLES, TARGETS, BYTES] = [0, 1, 2];

/** An error that the engine reports. */
export class SvmarrowError extends Error {
  name = "SvmarrowError";
}

/**
 * Starts the engine.
 *
 * @param {string | URL | Response | BufferSource | WebAssembly.Module} [source] The module or where it is; the default is
 *   svmarrow.wasm in the folder of this file.
 * @returns {Promise<Engine>}
 */
export async function open(source = new URL("svmarrow.wasm", import.meta.url)) {
  let module = source;
  if (typeof module === "string" || module instanceof URL) {
    module = await fetch(module);
  }
  if (typeof Response !== "undefined" && module instanceof Response) {
    if (!module.ok) {
      throw new SvmarrowError(`${module.url}: ${module.status} ${module.statusText}`);
    }
    module = await module.arrayBuffer();
  }
  if (!(module instanceof WebAssembly.Module)) {
    module = await WebAssembly.compile(module);
  }
  return new Engine(await WebAssembly.instantiate(module, {}), module);
}

/** The engine. Create it with `open`. */
export class Engine {
  #module;
  #instance;
  #freed = new FinalizationRegistry(({ instance, number }) => instance.exports.free(number));

  constructor(instance, module) {
    this.#module = module;
    this.#use(instance);
  }

  #use(instance) {
    this.#instance = instance;
    instance.exports.start();
  }

  /**
   * Fits an estimator: "SVC", "SVR", "OneClassSVM", "RLSClassifier", "RLSRegressor", "KMPClassifier" or "KMPRegressor".
   *
   * @param {string} estimator
   * @param {Float64Array | Float32Array | number[][]} X Samples.
   * @param {ArrayLike<number> | null} y Integer labels or values; null for a one-class machine.
   * @param {object} [options] Parameters of the estimator; `n_features` for samples in one array.
   * @returns {Model}
   */
  fit(estimator, X, y, { n_features, ...options } = {}) {
    const columns = this.#write_samples(X, n_features);
    this.#write_targets(y);
    this.#write_json({ estimator, ...options });
    return this.#model(this.#call("fit", columns));
  }

  /**
   * Reads a model file that `svmarrow.save` wrote in Python, or `Model.save` here.
   *
   * @param {ArrayBuffer | Uint8Array} file
   * @returns {Model}
   */
  load(file) {
    const bytes = file instanceof Uint8Array ? file : new Uint8Array(file);
    this.#write_bytes(bytes);
    return this.#model(this.#call("load"));
  }

  /** Panics, for tests of what a page does then. */
  panic_for_tests(message) {
    this.#write_bytes(new TextEncoder().encode(message));
    this.#call("panic_for_tests");
  }

  // What follows is for Model. An instance that has panicked is not used again.

  /** Calls a function of a model of `instance`, and returns its result as `Float64Array`, or as `Uint8Array` if `as_bytes`. */
  _ask(instance, name, as_bytes, ...values) {
    this._check(instance);
    this.#call(name, ...values);
    const { result_pointer, result_length } = this.#instance.exports;
    const Type = as_bytes ? Uint8Array : Float64Array;
    return new Type(this.#memory(), result_pointer(), result_length()).slice();
  }

  _check(instance) {
    if (instance !== this.#instance) {
      throw new SvmarrowError("the engine restarted after a panic, or the model was freed: fit or load it again");
    }
  }

  _write_samples(X, n_features) {
    return this.#write_samples(X, n_features);
  }

  _write_targets(y) {
    this.#write_targets(y);
  }

  _compress(instance, number, columns, start, options) {
    this._check(instance);
    this.#write_json(options);
    return this.#model(this.#call("compress", number, columns, start));
  }

  #model(number) {
    const instance = this.#instance;
    const description = JSON.parse(decode(this._ask(instance, "describe", true, number)));
    const model = new Model(this, instance, number, description);
    this.#freed.register(model, { instance, number }, model);
    return model;
  }

  _free(model, instance, number) {
    if (this.#freed.unregister(model)) {
      instance.exports.free(number);
    }
  }

  #memory() {
    return this.#instance.exports.memory.buffer;
  }

  #reserve(buffer, length) {
    const address = this.#guard(() => this.#instance.exports.reserve(buffer, length)) >>> 0;
    if (address === 0) {
      throw new SvmarrowError(`not enough memory for ${length} numbers`);
    }
    return address;
  }

  #write_samples(X, n_features) {
    let columns = n_features;
    let values = X;
    if (Array.isArray(X)) {
      columns = X.length > 0 ? X[0].length : (n_features ?? 0);
      if (columns === undefined || X.some((row) => row.length !== columns)) {
        throw new SvmarrowError("X must be an array of rows of equal length, or a typed array with n_features");
      }
      values = new Float64Array(X.length * columns);
      X.forEach((row, i) => values.set(row, i * columns));
    }
    if (!(Number.isInteger(columns) && columns > 0) || values.length % columns !== 0) {
      throw new SvmarrowError(
        `n_features=${columns} is not allowed: it must be a positive divisor of the length of X, ${values.length}`,
      );
    }
    new Float64Array(this.#memory_after(SAMPLES, values.length), this.#address, values.length).set(values);
    return columns;
  }

  #write_targets(y) {
    const values = y ?? [];
    new Float64Array(this.#memory_after(TARGETS, values.length), this.#address, values.length).set(values);
  }

  #write_json(options) {
    this.#write_bytes(new TextEncoder().encode(JSON.stringify(options)));
  }

  #write_bytes(bytes) {
    new Uint8Array(this.#memory_after(BYTES, bytes.length), this.#address, bytes.length).set(bytes);
  }

  #address = 0;

  /** Reserves a buffer, which may move the memory, and returns the memory; the address of the buffer is in `#address`. */
  #memory_after(buffer, length) {
    this.#address = this.#reserve(buffer, length);
    return this.#memory();
  }

  #call(name, ...values) {
    const status = this.#guard(() => this.#instance.exports[name](...values));
    if (status < 0) {
      const { result_pointer, result_length } = this.#instance.exports;
      throw new SvmarrowError(decode(new Uint8Array(this.#memory(), result_pointer() >>> 0, result_length())));
    }
    return status;
  }

  /** Turns a trap into an error with the message of the panic, and starts again with a new instance. */
  #guard(work) {
    try {
      return work();
    } catch (trap) {
      const { panic_pointer, panic_length, memory } = this.#instance.exports;
      const message = decode(new Uint8Array(memory.buffer, panic_pointer() >>> 0, panic_length()));
      this.#use(new WebAssembly.Instance(this.#module, {}));
      throw new SvmarrowError(`the engine stopped and was started again: ${message || trap.message}`, {
        cause: trap,
      });
    }
  }
}

/** A fitted model, with `kind` ("classifier", "regressor" or "detector"), `classes`, `kernel`, `n_vectors`, `n_features`,
 * `n_outputs`, `decoding` and `certificates` (dual, primal, gap, ... of each machine that was fitted). */
export class Model {
  #engine;
  #instance;
  #number;

  constructor(engine, instance, number, description) {
    this.#engine = engine;
    this.#instance = instance;
    this.#number = number;
    Object.assign(this, description);
  }

  /** Returns the outputs of samples, (n_samples, n_outputs) row after row. */
  decision_function(X) {
    return this.#on_samples("decision_function", X);
  }

  /** Returns the predictions: values, 1 for inliers and -1 for outliers, or the labels of a classifier. */
  predict(X) {
    return this.#decoded(this.#on_samples("predict", X));
  }

  /**
   * Returns the predictions for samples of machines trained without them. X and y are those of the fit.
   *
   * @param {{from?: number, to?: number}} [range] Samples from..to; the default is all.
   */
  leave_one_out(X, y, { from = 0, to } = {}) {
    this.#engine._check(this.#instance);
    const columns = this.#engine._write_samples(X, this.n_features);
    this.#engine._write_targets(y);
    const end = to ?? (Array.isArray(X) ? X.length : X.length / columns);
    return this.#decoded(this.#ask("leave_one_out", false, columns, from, end));
  }

  /**
   * Returns a model with fewer vectors.
   *
   * @param {Float64Array | Float32Array | number[][]} X Samples on which both models should agree.
   * @param {{n_vectors: number, method?: "gradient" | "backfit", steps?: number, seed?: number,
   *   loss?: "agreement" | "matching", start?: Model}} options `start` is a model with `n_vectors` vectors to be moved.
   * @returns {Model}
   */
  compress(X, { start, ...options }) {
    this.#engine._check(this.#instance);
    if (start) {
      this.#engine._check(start.#instance);
    }
    const columns = this.#engine._write_samples(X, this.n_features);
    return this.#engine._compress(this.#instance, this.#number, columns, start ? start.#number : -1, options);
  }

  /** Returns the vectors, (n_vectors, n_features) row after row. */
  get vectors() {
    return this.#ask("vectors", false);
  }

  /** Returns the coefficients, (n_vectors, n_outputs) row after row. */
  get coefficients() {
    return this.#ask("coefficients", false).slice(0, this.n_vectors * this.n_outputs);
  }

  /** Returns the intercepts, one for each output. */
  get intercepts() {
    return this.#ask("coefficients", false).slice(this.n_vectors * this.n_outputs);
  }

  /** Returns the bytes of a model file, which `svmarrow.load` reads in Python. */
  save() {
    return this.#ask("save", true);
  }

  /** Frees the memory of the model now; otherwise it is freed when the model is collected. */
  free() {
    this.#engine._free(this, this.#instance, this.#number);
    this.#instance = null;
  }

  #ask(name, as_bytes, ...values) {
    return this.#engine._ask(this.#instance, name, as_bytes, this.#number, ...values);
  }

  #on_samples(name, X) {
    this.#engine._check(this.#instance);
    return this.#ask(name, false, this.#engine._write_samples(X, this.n_features));
  }

  #decoded(predictions) {
    if (this.kind !== "classifier") {
      return predictions;
    }
    const labels = Array.from(predictions, (index) => this.classes[index]);
    return this.classes.every((label) => typeof label === "number") ? Float64Array.from(labels) : labels;
  }
}

function decode(bytes) {
  return new TextDecoder().decode(bytes);
}
