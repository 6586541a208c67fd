//! `svmarrow::libsvm`: LIBSVM's programs, and their parts for the functions of LIBSVM's Python module.
//!
//! Options are lists of words as `svm-train` takes them; every function reads them by the one grammar of the core.

use std::ffi::OsString;
use std::io::{self, Write};

use numpy::ndarray::Array2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use svmarrow::Error;
use svmarrow::context::Context;
use svmarrow::io::libsvm_model::{ProbabilityParams, SvmType};
use svmarrow::libsvm::{
    Decoder, Failure, Folds, Outcome, PROGRAMS, PredictOptions, Problem, Streams, TrainOptions,
    cross_validate, evaluate, kernel_outputs, train,
};

use crate::array::{RowsArg, matrix_view, same_length, vector};
use crate::dict::{Object, ToPython, fields};
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::run::{Cost, run};

/// Number of bytes of output that are written together.
const OUTPUT_BYTES: usize = 1 << 16;

/// A text stream of Python that a program writes to; None takes everything.
struct PythonStream {
    stream: Py<PyAny>,
    buffer: Vec<u8>,
    /// The first exception of the stream.
    raised: Option<PyErr>,
}

impl PythonStream {
    fn new(stream: Bound<'_, PyAny>) -> Self {
        Self { stream: stream.unbind(), buffer: Vec::new(), raised: None }
    }

    /// Passes the buffered text to the stream, and flushes it if `flushes` is true.
    fn send(&mut self, flushes: bool) -> io::Result<()> {
        let sent = Python::attach(|py| {
            let stream = self.stream.bind(py);
            if stream.is_none() {
                return Ok(());
            }
            // Parts of a text arrive as a whole, so no character is divided.
            stream.call_method1(intern!(py, "write"), (String::from_utf8_lossy(&self.buffer),))?;
            if flushes {
                stream.call_method0(intern!(py, "flush"))?;
            }
            Ok(())
        });
        self.buffer.clear();
        sent.map_err(|error: PyErr| {
            let system_error = Python::attach(|py| as_system_error(py, &error));
            self.raised.get_or_insert(error);
            system_error
        })
    }
}

/// Returns the exception of a stream as the error that a program reports: that of the system has its kind and its reason, as for
/// the crate's program.
fn as_system_error(py: Python<'_>, error: &PyErr) -> io::Error {
    let converted = io::Error::from(error.clone_ref(py));
    match error.value(py).getattr(intern!(py, "strerror")).and_then(|reason| reason.extract::<String>()) {
        Ok(reason) => io::Error::new(converted.kind(), reason),
        Err(_) => converted,
    }
}

impl Write for PythonStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= OUTPUT_BYTES {
            self.send(false)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send(true)
    }
}

/// Runs the program of a name with the output to two text streams; returns its exit code. An exception of the first stream is
/// raised after the program.
#[pyfunction]
pub(crate) fn libsvm_program(
    py: Python<'_>,
    name: &str,
    arguments: Vec<OsString>,
    output: Bound<'_, PyAny>,
    messages: Bound<'_, PyAny>,
    n_jobs: usize,
) -> PyResult<u8> {
    let program = PROGRAMS.iter().find(|program| program.name == name).ok_or_else(|| {
        let names = PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>().join(", ");
        to_python(Error::param("name", format!("{name:?}"), format!("one of {names}")))
    })?;
    let (mut output, mut messages) = (PythonStream::new(output), PythonStream::new(messages));
    let code = run(py, n_jobs, Cost::unknown(0), None, |ctx| {
        let mut streams = Streams { output: &mut output, messages: &mut messages };
        Ok(program.execute(&arguments, &mut streams, ctx))
    })?;
    output.raised.map_or(Ok(code), Err)
}

/// Runs a part of a program and maps its errors.
fn run_part<R: Send>(
    py: Python<'_>,
    n_jobs: usize,
    cost: Cost,
    work: impl FnOnce(Context<'_>) -> Outcome<R> + Send,
) -> PyResult<R> {
    let outcome = run(py, n_jobs, cost, None, |ctx| match work(ctx) {
        Err(Failure::Library(error)) => Err(error),
        outcome => Ok(outcome),
    });
    outcome?.map_err(exception)
}

fn exception(failure: Failure) -> PyErr {
    match failure {
        Failure::Library(error) => to_python(error),
        Failure::Output(error) => error.into(),
        Failure::Usage(_) | Failure::Input(_) => PyValueError::new_err(failure.to_string()),
    }
}

fn svm_type_of(number: usize) -> PyResult<SvmType> {
    let rule = "an integer from 0 to 4";
    SvmType::ALL.get(number).copied().ok_or_else(|| to_python(Error::param("svm_type", number, rule)))
}

/// Reads the options of `svm-train`: a dict of the fields of LIBSVM's `svm_parameter`.
#[pyfunction]
pub(crate) fn libsvm_options(py: Python<'_>, words: Vec<OsString>) -> PyResult<Bound<'_, PyDict>> {
    let options = TrainOptions::parse(&words).map_err(exception)?;
    let result = PyDict::new(py);
    let svm_type = SvmType::ALL.iter().position(|svm_type| *svm_type == options.svm_type);
    result.set_item("svm_type", svm_type)?;
    result.set_item("kernel_type", options.kernel)?;
    result.set_item("degree", options.degree)?;
    result.set_item("gamma", options.gamma)?;
    result.set_item("coef0", options.coef0)?;
    result.set_item("nu", options.nu)?;
    result.set_item("cache_size", options.megabytes)?;
    result.set_item("C", options.c)?;
    result.set_item("eps", options.tolerance)?;
    result.set_item("p", options.epsilon)?;
    result.set_item("shrinking", u8::from(options.shrinking))?;
    result.set_item("probability", u8::from(options.probability))?;
    result.set_item("cross_validation", options.n_folds.is_some())?;
    result.set_item("nr_fold", options.n_folds.unwrap_or(0))?;
    result.set_item("quiet", options.is_quiet)?;
    let (labels, weights): (Vec<i32>, Vec<f64>) = options.weights.into_iter().unzip();
    result.set_item("weight_label", labels)?;
    result.set_item("weight", weights)?;
    Ok(result)
}

/// Reads the options of `svm-predict`: whether probabilities are requested, and whether there is no output.
#[pyfunction]
pub(crate) fn libsvm_predict_options(words: Vec<OsString>) -> PyResult<(bool, bool)> {
    let options = PredictOptions::parse(&words).map_err(exception)?;
    Ok((options.probability, options.is_quiet))
}

/// Trains a model: a dict of the parts of its expansion, `labels`, `class_counts`, `prob_a`, `prob_b`, `support`, `report`,
/// `warnings` about options and `early` about machines that ended before the tolerance was reached.
#[pyfunction]
pub(crate) fn libsvm_train<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray1<'py, f64>,
    words: Vec<OsString>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let options = TrainOptions::parse(&words).map_err(exception)?;
    let (rows, targets) = (x.view()?, vector(&targets)?);
    let (trained, warnings) = run_part(py, n_jobs, Cost::unknown(rows.vector_lengths()), |ctx| {
        let problem = Problem::new(rows, targets, &options, ctx)?;
        Ok((train(&problem, ctx)?, problem.warnings()?))
    })?;
    let model = trained.model;
    let result = fields!(py, model.expansion, vectors, coefficients, intercepts, kernel);
    result.set_item("labels", model.labels)?;
    result.set_item("class_counts", model.class_counts)?;
    result.set_item("prob_a", model.probability.prob_a)?;
    result.set_item("prob_b", model.probability.prob_b)?;
    result.set_item("support", trained.support.to_object(py)?)?;
    result.set_item("report", trained.report)?;
    result.set_item("warnings", warnings)?;
    result.set_item("early", trained.warnings)?;
    Ok(result)
}

/// Cross-validates by the folds of `-v`: predictions (n,), warnings about options and folds, and about machines that ended before
/// the tolerance was reached.
#[pyfunction]
pub(crate) fn libsvm_cross_validate<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray1<'py, f64>,
    words: Vec<OsString>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let options = TrainOptions::parse(&words).map_err(exception)?;
    let n_folds = options.n_folds.ok_or_else(|| {
        to_python(Error::param("words", "options without -v", "options of a cross-validation"))
    })?;
    let (rows, targets) = (x.view()?, vector(&targets)?);
    let (predictions, warnings, early) = run_part(py, n_jobs, Cost::unknown(rows.vector_lengths()), |ctx| {
        let problem = Problem::new(rows, targets, &options, ctx)?;
        let (predictions, early) = cross_validate(&problem, n_folds, ctx)?;
        Ok((predictions, problem.warnings()?, early))
    })?;
    (Object(predictions), warnings, early).into_pyobject(py)
}

/// The folds of `-v` for a classifier: labels, the class of each sample (n,), the samples of each fold, and the values (n, n) of a
/// precomputed kernel.
#[pyfunction]
pub(crate) fn libsvm_folds<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray1<'py, f64>,
    words: Vec<OsString>,
) -> PyResult<Bound<'py, PyTuple>> {
    let options = TrainOptions::parse(&words).map_err(exception)?;
    let (rows, targets) = (x.view()?, vector(&targets)?);
    let Folds { labels, classes, folds, kernel_values } =
        run_part(py, 1, Cost::unknown(rows.vector_lengths()), |ctx| {
            Problem::new(rows, targets, &options, ctx)?.classifier_folds(ctx)
        })?;
    let folds: Vec<_> = folds.into_iter().map(Object).collect();
    (labels, Object(classes), folds, kernel_values.map(Object)).into_pyobject(py)
}

/// The outputs (n, q) of a precomputed kernel for rows of kernel values with the index 0.
#[pyfunction]
pub(crate) fn libsvm_kernel_outputs<'py>(
    py: Python<'py>,
    expansion: ExpansionArg<'py>,
    x: RowsArg<'py>,
    n_jobs: usize,
) -> PyResult<Object<Array2<f64>>> {
    let (expansion, rows) = (expansion.view()?, x.view()?);
    let cost = Cost::of_outputs(&rows, expansion.len(), expansion.outputs());
    let all: Vec<usize> = (0..rows.rows()).collect();
    run_part(py, n_jobs, cost, |ctx| kernel_outputs(&expansion, rows, &all, ctx)).map(Object)
}

/// The predictions of a model for outputs (n, q): predictions (n,), the probabilities (n, k) of a classifier if they are requested,
/// and the lines that are printed about them. `head` is the number of the type, the labels, and the numbers of probA and probB.
#[pyfunction]
pub(crate) fn libsvm_answers<'py>(
    py: Python<'py>,
    outputs: PyReadonlyArray2<'py, f64>,
    head: (usize, Vec<i32>, Vec<f64>, Vec<f64>),
    probability: bool,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let (svm_type, labels, prob_a, prob_b) = head;
    let parameters = ProbabilityParams::new(prob_a, prob_b);
    let decoder = Decoder { svm_type: svm_type_of(svm_type)?, labels: &labels, probability: &parameters };
    let outputs = matrix_view(&outputs)?;
    let cost = Cost::of(outputs.nrows(), labels.len(), labels.len().saturating_mul(16));
    let answers = run_part(py, n_jobs, cost, |ctx| decoder.answers(outputs, probability, ctx))?;
    (Object(answers.predictions), answers.probabilities.map(Object), answers.remark).into_pyobject(py)
}

/// Compares targets and predictions (n,): accuracy in percent, mean squared error, squared correlation coefficient, and the lines
/// of `svm-train -v` and of `svm-predict` for a type.
#[pyfunction]
pub(crate) fn libsvm_evaluate<'py>(
    py: Python<'py>,
    targets: PyReadonlyArray1<'py, f64>,
    predictions: PyReadonlyArray1<'py, f64>,
    svm_type: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let (targets, predictions) = (vector(&targets)?, vector(&predictions)?);
    same_length("predictions", targets.len(), predictions.len())?;
    let is_regression = matches!(svm_type_of(svm_type)?, SvmType::EpsilonSvr | SvmType::NuSvr);
    let cost = Cost::of(targets.len(), 1, 16);
    let evaluation = run(py, 1, cost, None, |_| Ok(evaluate(targets, predictions)))?;
    (
        evaluation.accuracy(),
        evaluation.squared_error,
        evaluation.squared_correlation,
        evaluation.cross_validation_lines(is_regression),
        evaluation.prediction_lines(is_regression),
    )
        .into_pyobject(py)
}
