//! svmarrow for web browsers and Node.js: the functions that `svmarrow.js` calls. There is no algorithm here.
//!
//! | file | holds |
//! |---|---|
//! | `options` | the options of a call: JSON, with the names that parameters have in Python |
//! | `model` | fitting, prediction, compression, leave-one-out predictions |
//! | `file` | model files |
//!
//! JavaScript writes the arguments of a call into a buffer of the module's memory (`reserve`), makes the call, and reads the
//! result from there (`result_pointer`, `result_length`). A call returns a number that is not negative, or -1: then the
//! result is the text of the error. After a panic the module has trapped, and `panic_pointer` and `panic_length` have the
//! message. Models are known by numbers. Everything runs on one thread.

mod file;
mod model;
mod options;

use model::{Model, Training};
use options::Options;
use std::cell::RefCell;
use svmarrow::data::Rows;
use svmarrow::{Error, Result};

/// The buffers that JavaScript writes to.
const SAMPLES: u32 = 0;
const TARGETS: u32 = 1;
/// JSON or the bytes of a file.
const BYTES: u32 = 2;

/// Returned by a call that failed.
const FAILURE: i32 = -1;

/// The result of the last call.
enum Output {
    Numbers(Vec<f64>),
    Bytes(Vec<u8>),
}

/// Arguments, results and models.
struct Engine {
    samples: Vec<f64>,
    targets: Vec<f64>,
    bytes: Vec<u8>,
    output: Output,
    models: Vec<Option<Model>>,
}

impl Engine {
    const fn new() -> Self {
        Self {
            samples: Vec::new(),
            targets: Vec::new(),
            bytes: Vec::new(),
            output: Output::Bytes(Vec::new()),
            models: Vec::new(),
        }
    }

    /// Returns the samples that JavaScript has written.
    fn rows(&self, columns: usize) -> Result<Rows<'_>> {
        Error::check_param(columns > 0, "n_features", columns, "at least 1")?;
        Rows::from_shape((self.samples.len() / columns, columns), &self.samples)
    }

    fn options(&self) -> Result<Options> {
        Options::parse(&self.bytes)
    }

    fn model(&self, number: u32) -> Result<&Model> {
        let model = self.models.get(number as usize).and_then(Option::as_ref);
        model.ok_or_else(|| Error::param("model", number, "a model that has not been freed"))
    }

    /// Keeps a model and returns its number.
    fn add(&mut self, model: Model) -> i32 {
        let number = self.models.iter().position(Option::is_none).unwrap_or(self.models.len());
        if number == self.models.len() {
            self.models.push(None);
        }
        self.models[number] = Some(model);
        number as i32
    }
}

thread_local! {
    static ENGINE: RefCell<Engine> = const { RefCell::new(Engine::new()) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a call. The text of an error becomes the result.
fn call(work: impl FnOnce(&mut Engine) -> Result<i32>) -> i32 {
    ENGINE.with_borrow_mut(|engine| {
        work(engine).unwrap_or_else(|error| {
            engine.output = Output::Bytes(error.to_string().into_bytes());
            FAILURE
        })
    })
}

/// Prepares a new instance: the messages of panics are kept for JavaScript.
#[unsafe(no_mangle)]
pub extern "C" fn start() {
    std::panic::set_hook(Box::new(|panic| PANIC.set(panic.to_string())));
}

/// Makes room for `length` numbers (or bytes) in a buffer, and returns its address; 0 if memory is short.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(buffer: u32, length: usize) -> usize {
    fn resized<T: Copy + Default>(values: &mut Vec<T>, length: usize) -> usize {
        values.clear();
        if values.try_reserve_exact(length).is_err() {
            return 0;
        }
        values.resize(length, T::default());
        values.as_mut_ptr().addr()
    }
    ENGINE.with_borrow_mut(|engine| match buffer {
        SAMPLES => resized(&mut engine.samples, length),
        TARGETS => resized(&mut engine.targets, length),
        BYTES => resized(&mut engine.bytes, length),
        _ => 0,
    })
}

/// Returns the address of the result of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn result_pointer() -> usize {
    ENGINE.with_borrow(|engine| match &engine.output {
        Output::Numbers(numbers) => numbers.as_ptr().addr(),
        Output::Bytes(bytes) => bytes.as_ptr().addr(),
    })
}

/// Returns the length of the result of the last call, in numbers or bytes.
#[unsafe(no_mangle)]
pub extern "C" fn result_length() -> usize {
    ENGINE.with_borrow(|engine| match &engine.output {
        Output::Numbers(numbers) => numbers.len(),
        Output::Bytes(bytes) => bytes.len(),
    })
}

/// Returns the address of the message of the panic that ended the instance.
#[unsafe(no_mangle)]
pub extern "C" fn panic_pointer() -> usize {
    PANIC.with_borrow(|message| message.as_ptr().addr())
}

/// Returns the length of that message, 0 without a panic.
#[unsafe(no_mangle)]
pub extern "C" fn panic_length() -> usize {
    PANIC.with_borrow(String::len)
}

/// Panics with the text in the buffer. The tests of `svmarrow.js` call it, because no input is known to make the engine panic.
#[unsafe(no_mangle)]
pub extern "C" fn panic_for_tests() {
    let message = ENGINE.with_borrow(|engine| String::from_utf8_lossy(&engine.bytes).into_owned());
    panic!("{message}");
}

/// Fits the estimator that the options name to samples of `columns` features and, unless it has none, to targets. Returns a model.
#[unsafe(no_mangle)]
pub extern "C" fn fit(columns: usize) -> i32 {
    call(|engine| {
        let training = Training::new(engine.options()?)?;
        let model = training.fit(engine.rows(columns)?, &engine.targets)?;
        Ok(engine.add(model))
    })
}

/// Writes the predictions for samples `from..to` of machines trained without them, for the training samples and targets in
/// the buffers, which must be those of the model.
#[unsafe(no_mangle)]
pub extern "C" fn leave_one_out(number: u32, columns: usize, from: usize, to: usize) -> i32 {
    call(|engine| {
        let rows = engine.rows(columns)?;
        let predictions = engine.model(number)?.leave_one_out(rows, &engine.targets, from..to)?;
        engine.output = Output::Numbers(predictions);
        Ok(0)
    })
}

/// Reads a model file. Returns a model.
#[unsafe(no_mangle)]
pub extern "C" fn load() -> i32 {
    call(|engine| {
        let model = file::load(&engine.bytes)?;
        Ok(engine.add(model))
    })
}

/// Writes a model file.
#[unsafe(no_mangle)]
pub extern "C" fn save(number: u32) -> i32 {
    call(|engine| {
        engine.output = Output::Bytes(file::save(engine.model(number)?)?);
        Ok(0)
    })
}

/// Reduces a model to fewer vectors by the method that the options name, with samples where the method needs them. A start is
/// a model whose vectors are moved, or negative. Returns a model.
#[unsafe(no_mangle)]
pub extern "C" fn compress(number: u32, columns: usize, start: i32) -> i32 {
    call(|engine| {
        let options = engine.options()?;
        let start = u32::try_from(start).ok().map(|start| engine.model(start)).transpose()?;
        let model = engine.model(number)?.compress(options, engine.rows(columns)?, start)?;
        Ok(engine.add(model))
    })
}

/// Writes the outputs of a model, (n_samples, n_outputs).
#[unsafe(no_mangle)]
pub extern "C" fn decision_function(number: u32, columns: usize) -> i32 {
    call(|engine| {
        let outputs = engine.model(number)?.outputs(engine.rows(columns)?)?;
        engine.output = Output::Numbers(outputs.into_raw_vec_and_offset().0);
        Ok(0)
    })
}

/// Writes the predictions of a model: indices of classes, values, or 1 for inliers and -1 for outliers.
#[unsafe(no_mangle)]
pub extern "C" fn predict(number: u32, columns: usize) -> i32 {
    call(|engine| {
        engine.output = Output::Numbers(engine.model(number)?.predict(engine.rows(columns)?)?);
        Ok(0)
    })
}

/// Writes the description of a model as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn describe(number: u32) -> i32 {
    call(|engine| {
        engine.output = Output::Bytes(engine.model(number)?.description().to_string().into_bytes());
        Ok(0)
    })
}

/// Writes the vectors of a model, (n_vectors, n_features).
#[unsafe(no_mangle)]
pub extern "C" fn vectors(number: u32) -> i32 {
    call(|engine| {
        engine.output = Output::Numbers(engine.model(number)?.vectors());
        Ok(0)
    })
}

/// Writes the coefficients of a model, (n_vectors, n_outputs), followed by its intercepts, (n_outputs).
#[unsafe(no_mangle)]
pub extern "C" fn coefficients(number: u32) -> i32 {
    call(|engine| {
        let expansion = engine.model(number)?.expansion();
        let numbers = expansion.coefficients.iter().chain(&expansion.intercepts);
        engine.output = Output::Numbers(numbers.copied().collect());
        Ok(0)
    })
}

/// Frees a model.
#[unsafe(no_mangle)]
pub extern "C" fn free(number: u32) {
    ENGINE.with_borrow_mut(|engine| {
        if let Some(model) = engine.models.get_mut(number as usize) {
            *model = None;
        }
    });
}
