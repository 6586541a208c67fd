//! `svmarrow::svm`: the support vector machines.

use std::time::Duration;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use svmarrow::Error;
use svmarrow::control::{Budget, Monitor, Par};
use svmarrow::kernels::KernelFunction;
use svmarrow::svm::{
    Certificate, Classification, ClassifierLoss, Coding, Effort, LeaveOneOut, MachineModel, OneClass,
    Regression, RegressionLoss, Start, SvmParams, estimate_memory, fit_classifier, fit_one_class,
    fit_regression,
};

use crate::array::{RowsArg, index_array, indices, matrix_array, vector};
use crate::error::to_python;
use crate::function::{FunctionArg, WithKernel};
use crate::multiclass::code_matrix;
use crate::run::run_and_keep;

/// Coefficients to start from, as Python gives them: (support (m,), coefficients (m, q)).
type StartArg<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray2<'py, f64>);

/// How several classes are told apart: a name, or the matrix of a code.
#[derive(FromPyObject)]
pub(crate) enum CodingArg<'py> {
    Named(String),
    Matrix(PyReadonlyArray2<'py, i8>),
}

/// Trains a classifier; `coding` is "ovo", "ovr" or a code (n_classes, q); `upper` is the C of each row (its weight for `nu`).
///
/// Returns a dict: `support` (m,), `class_counts` (k,), `coefficients` (m, q), `intercepts` (q,), `certificates`, a
/// dict for each machine, and `effort`, a dict for all together.
#[pyfunction]
#[pyo3(signature = (x, labels, n_classes, upper, kernel, coding, tol, cache_bytes, shrinking, max_iter, max_time, progress, n_jobs, *, loss="hinge", nu=0.5, fit_intercept=true, start=None, keep_interrupted=false))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_svc<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    n_classes: usize,
    upper: PyReadonlyArray1<'py, f64>,
    kernel: FunctionArg,
    coding: CodingArg<'py>,
    tol: f64,
    cache_bytes: usize,
    shrinking: bool,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
    loss: &str,
    nu: f64,
    fit_intercept: bool,
    start: Option<StartArg<'py>>,
    keep_interrupted: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = x.view()?;
    let labels = indices("labels", &labels)?;
    let upper = vector(&upper)?;
    let code;
    let coding = match coding {
        CodingArg::Named(name) => match name.as_str() {
            "ovo" => Coding::OneVsOne,
            "ovr" => Coding::OneVsRest,
            _ => {
                let rule = "\"ovo\", \"ovr\" or a matrix of a row for each class";
                return Err(to_python(Error::param("coding", name, rule)));
            }
        },
        CodingArg::Matrix(matrix) => {
            code = code_matrix(&matrix)?;
            Coding::Code(&code)
        }
    };
    let loss = match loss {
        "hinge" => ClassifierLoss::Hinge,
        "squared_hinge" => ClassifierLoss::SquaredHinge,
        "nu" => ClassifierLoss::Nu(nu),
        _ => return Err(to_python(Error::param("loss", loss, "\"hinge\", \"squared_hinge\" or \"nu\""))),
    };
    let start = StartParts::new(start.as_ref())?;
    let limits = Limits::new(tol, cache_bytes, shrinking, max_iter, max_time)?;
    let call = Call { progress, n_jobs, keep_interrupted };
    let (model, interrupted) = call.fit(py, &kernel, &limits, |kernel, params, monitor, par| {
        let task = Classification {
            labels: &labels,
            classes: n_classes,
            upper,
            coding,
            loss,
            fit_intercept,
            start: start.as_ref().map(StartParts::view),
        };
        fit_classifier(kernel, rows, &task, params, monitor, par)
    })?;
    let (m, q) = (model.support.len(), model.intercepts.len());
    let result = PyDict::new(py);
    result.set_item("support", index_array(py, model.support))?;
    result.set_item("class_counts", index_array(py, model.class_counts))?;
    result.set_item("coefficients", matrix_array(py, model.coefficients, m, q)?)?;
    result.set_item("intercepts", PyArray1::from_vec(py, model.intercepts))?;
    let certificates = model.certificates.iter().map(|c| certificate(py, c)).collect::<PyResult<Vec<_>>>()?;
    let estimates = model.leave_one_out.iter().map(|e| leave_one_out(py, e)).collect::<PyResult<Vec<_>>>()?;
    result.set_item("leave_one_out", PyList::new(py, estimates)?)?;
    result.set_item("certificates", PyList::new(py, certificates)?)?;
    result.set_item("effort", effort(py, &model.effort)?)?;
    result.set_item("interrupted", interrupted)?;
    Ok(result)
}

/// Trains a regression: epsilon-SVR, or nu-SVR where `nu` is given. `upper` is the C of each row.
///
/// Returns a dict as [`fit_svc`] does, with `rho` (minus the epsilon that nu-SVR found) and one certificate.
#[pyfunction]
#[pyo3(signature = (x, targets, upper, kernel, epsilon, nu, tol, cache_bytes, shrinking, max_iter, max_time, progress, n_jobs, *, start=None, keep_interrupted=false))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_svr<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray1<'py, f64>,
    upper: PyReadonlyArray1<'py, f64>,
    kernel: FunctionArg,
    epsilon: f64,
    nu: Option<f64>,
    tol: f64,
    cache_bytes: usize,
    shrinking: bool,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
    start: Option<StartArg<'py>>,
    keep_interrupted: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = x.view()?;
    let (targets, upper) = (vector(&targets)?, vector(&upper)?);
    let loss = nu.map_or(RegressionLoss::Epsilon(epsilon), RegressionLoss::Nu);
    let start = StartParts::new(start.as_ref())?;
    let limits = Limits::new(tol, cache_bytes, shrinking, max_iter, max_time)?;
    let call = Call { progress, n_jobs, keep_interrupted };
    let (model, interrupted) = call.fit(py, &kernel, &limits, |kernel, params, monitor, par| {
        let task = Regression { targets, upper, loss, start: start.as_ref().map(StartParts::view) };
        fit_regression(kernel, rows, &task, params, monitor, par)
    })?;
    machine_model(py, model, interrupted)
}

/// Trains a one-class machine; `weights` are the rows' weights.
///
/// Returns a dict as [`fit_svr`] does.
#[pyfunction]
#[pyo3(signature = (x, weights, kernel, nu, tol, cache_bytes, shrinking, max_iter, max_time, progress, n_jobs, *, start=None, keep_interrupted=false))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_one_class_svm<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    weights: PyReadonlyArray1<'py, f64>,
    kernel: FunctionArg,
    nu: f64,
    tol: f64,
    cache_bytes: usize,
    shrinking: bool,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
    start: Option<StartArg<'py>>,
    keep_interrupted: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = x.view()?;
    let weights = vector(&weights)?;
    let start = StartParts::new(start.as_ref())?;
    let limits = Limits::new(tol, cache_bytes, shrinking, max_iter, max_time)?;
    let call = Call { progress, n_jobs, keep_interrupted };
    let (model, interrupted) = call.fit(py, &kernel, &limits, |kernel, params, monitor, par| {
        let task = OneClass { weights, nu, start: start.as_ref().map(StartParts::view) };
        fit_one_class(kernel, rows, &task, params, monitor, par)
    })?;
    machine_model(py, model, interrupted)
}

/// Bytes that a fit of machines of so many variables takes, beside the rows: a dict of the parts.
#[pyfunction]
#[pyo3(signature = (x, kernel, machines, cache_bytes, n_jobs))]
pub(crate) fn estimate_svm_memory<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    kernel: FunctionArg,
    machines: Vec<usize>,
    cache_bytes: usize,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let params = SvmParams { cache_bytes, ..SvmParams::default() };
    let estimate = estimate_memory(kernel.function(), x.view()?, &machines, &params, n_jobs);
    let dict = PyDict::new(py);
    dict.set_item("packed", estimate.packed)?;
    dict.set_item("cache", estimate.cache)?;
    dict.set_item("blocks", estimate.blocks)?;
    dict.set_item("variables", estimate.variables)?;
    dict.set_item("least", estimate.least)?;
    Ok(dict)
}

/// How a fit is run.
struct Call<'py> {
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
    /// Whether Ctrl-C leaves the model as far as it is, and says so, instead of being raised.
    keep_interrupted: bool,
}

impl<'py> Call<'py> {
    /// Runs the fit; the model, and whether Ctrl-C ended it.
    fn fit<R: Send>(
        &self,
        py: Python<'py>,
        kernel: &FunctionArg,
        limits: &Limits,
        fit: impl FnOnce(KernelFunction<'_>, &SvmParams, &dyn Monitor, Par) -> svmarrow::Result<R> + Send,
    ) -> PyResult<(R, bool)> {
        let outcome = run_and_keep(py, self.n_jobs, self.progress.as_ref(), |monitor, par| {
            let monitor = WithKernel { monitor, kernel };
            limits.within(&monitor, |params, monitor| fit(kernel.function(), params, monitor, par))
        });
        if let Some(error) = kernel.raised() {
            return Err(error);
        }
        match outcome? {
            (model, None) => Ok((model, false)),
            (model, Some(raised))
                if self.keep_interrupted && raised.is_instance_of::<PyKeyboardInterrupt>(py) =>
            {
                Ok((model, true))
            }
            (_, Some(raised)) => Err(raised),
        }
    }
}

/// Parameters and budgets of a fit.
struct Limits {
    params: SvmParams,
    max_time: Option<Duration>,
}

impl Limits {
    fn new(
        tolerance: f64,
        cache_bytes: usize,
        shrinking: bool,
        max_iterations: Option<u64>,
        max_time: Option<f64>,
    ) -> PyResult<Self> {
        let params = SvmParams { tolerance, cache_bytes, shrinking, max_iterations, ..SvmParams::default() };
        Ok(Self { params, max_time: duration(max_time)? })
    }

    fn within<R>(&self, monitor: &dyn Monitor, fit: impl FnOnce(&SvmParams, &dyn Monitor) -> R) -> R {
        fit(&self.params, &Budget::new(monitor, None, self.max_time))
    }
}

/// A start with its indices converted.
struct StartParts<'a> {
    support: Vec<usize>,
    coefficients: &'a [f64],
}

impl<'a> StartParts<'a> {
    fn new(start: Option<&'a StartArg<'_>>) -> PyResult<Option<Self>> {
        let Some((support, coefficients)) = start else { return Ok(None) };
        let coefficients = coefficients
            .as_slice()
            .map_err(|_| to_python(Error::param("start", "not contiguous", "row-major and contiguous")))?;
        Ok(Some(Self { support: indices("start", support)?, coefficients }))
    }

    fn view(&self) -> Start<'_> {
        Start { support: &self.support, coefficients: self.coefficients }
    }
}

fn machine_model(py: Python<'_>, model: MachineModel, interrupted: bool) -> PyResult<Bound<'_, PyDict>> {
    let m = model.support.len();
    let result = PyDict::new(py);
    result.set_item("support", index_array(py, model.support))?;
    result.set_item("coefficients", matrix_array(py, model.coefficients, m, 1)?)?;
    result.set_item("intercepts", PyArray1::from_vec(py, vec![model.intercept]))?;
    result.set_item("rho", model.rho)?;
    result.set_item("certificates", PyList::new(py, [certificate(py, &model.certificate)?])?)?;
    result.set_item("effort", effort(py, &model.effort)?)?;
    result.set_item("interrupted", interrupted)?;
    Ok(result)
}

fn certificate<'py>(py: Python<'py>, certificate: &Certificate) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("dual", certificate.dual)?;
    dict.set_item("primal", certificate.primal)?;
    dict.set_item("gap", certificate.gap)?;
    dict.set_item("violation", certificate.violation)?;
    dict.set_item("iterations", certificate.iterations)?;
    dict.set_item("rounds", certificate.rounds)?;
    dict.set_item("support", certificate.support)?;
    dict.set_item("bounded", certificate.bounded)?;
    dict.set_item("stop", certificate.stop.name())?;
    Ok(dict)
}

fn leave_one_out<'py>(py: Python<'py>, estimate: &LeaveOneOut) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("positive", estimate.positive)?;
    dict.set_item("negative", estimate.negative)?;
    dict.set_item("bound", estimate.bound)?;
    dict.set_item("missed", estimate.missed)?;
    dict.set_item("false_alarms", estimate.false_alarms)?;
    dict.set_item("stable", estimate.stable)?;
    Ok(dict)
}

fn effort<'py>(py: Python<'py>, effort: &Effort) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kernel_values", effort.kernel_values)?;
    dict.set_item("cache_hits", effort.cache_hits)?;
    dict.set_item("cache_misses", effort.cache_misses)?;
    dict.set_item("seconds", effort.seconds)?;
    Ok(dict)
}

/// A time budget in seconds.
pub(crate) fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let convert = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| to_python(Error::param("max_time", seconds, "a number of seconds, not negative")))
    };
    seconds.map(convert).transpose()
}
