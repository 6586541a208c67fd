//! `svmarrow::svm`: the support vector machines.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::Error;
use svmarrow::context::{Budget, Context};
use svmarrow::kernels::KernelFunction;
use svmarrow::multiclass::CodeMatrix;
use svmarrow::svm::{
    Certificate, Classification, ClassifierLoss, Coding, Effort, LeaveOneOut, MachineModel, OneClass,
    QuantileRegression, Regression, RegressionLoss, Start, SvmParams, Tuning, estimate_memory,
    fit_classifier, fit_one_class, fit_quantiles, fit_regression,
};

use crate::array::{RowsArg, indices, matrix_view, vector};
use crate::dict::{ToPython, fields, records};
use crate::error::to_python;
use crate::function::FunctionArg;
use crate::multiclass::code_matrix;
use crate::run::{Cost, duration};

/// The machines of several classes: a name, or the matrix of a code.
#[derive(FromPyObject)]
enum CodingArg<'py> {
    Named(String),
    Matrix(PyReadonlyArray2<'py, i8>),
}

/// A classification task; `coding` is "ovo", "ovr" or a code (n_classes, q), `upper` the C of each row (its
/// weight for the loss "nu").
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ClassificationArg<'py> {
    labels: PyReadonlyArray1<'py, i64>,
    n_classes: usize,
    upper: PyReadonlyArray1<'py, f64>,
    coding: CodingArg<'py>,
    loss: String,
    /// For the loss "nu".
    nu: Option<f64>,
    fit_intercept: bool,
}

/// The machines of several classes, with the code that the core borrows.
enum OwnedCoding {
    OneVsOne,
    OneVsRest,
    Code(CodeMatrix),
}

/// A classification as it was given, in the core's types.
pub(crate) struct GivenClassification<'a> {
    labels: Vec<usize>,
    classes: usize,
    sample_c: &'a [f64],
    coding: OwnedCoding,
    loss: ClassifierLoss,
    fit_intercept: bool,
}

impl ClassificationArg<'_> {
    pub(crate) fn read(&self) -> PyResult<GivenClassification<'_>> {
        let coding = match &self.coding {
            CodingArg::Named(name) => match name.as_str() {
                "ovo" => OwnedCoding::OneVsOne,
                "ovr" => OwnedCoding::OneVsRest,
                _ => {
                    let rule = "\"ovo\", \"ovr\" or a matrix of a row for each class";
                    return Err(to_python(Error::param("coding", name, rule)));
                }
            },
            CodingArg::Matrix(matrix) => OwnedCoding::Code(code_matrix(matrix)?),
        };
        let loss = match self.loss.as_str() {
            "hinge" => ClassifierLoss::Hinge,
            "squared_hinge" => ClassifierLoss::SquaredHinge,
            "nu" => ClassifierLoss::Nu(self.nu.unwrap_or_default()),
            other => {
                let rule = "\"hinge\", \"squared_hinge\" or \"nu\"";
                return Err(to_python(Error::param("loss", other, rule)));
            }
        };
        Ok(GivenClassification {
            labels: indices("labels", &self.labels)?,
            classes: self.n_classes,
            sample_c: vector(&self.upper)?,
            coding,
            loss,
            fit_intercept: self.fit_intercept,
        })
    }
}

impl GivenClassification<'_> {
    /// Returns the task in the form that the core takes, without a starting point.
    pub(crate) fn task(&self) -> Classification<'_> {
        let &Self { ref labels, classes, sample_c, ref coding, loss, fit_intercept } = self;
        let coding = match coding {
            OwnedCoding::Code(code) => Coding::Code(code),
            OwnedCoding::OneVsOne => Coding::OneVsOne,
            OwnedCoding::OneVsRest => Coding::OneVsRest,
        };
        Classification { labels, classes, sample_c, coding, loss, fit_intercept, start: None }
    }
}

/// A regression task: epsilon-SVR, nu-SVR if `nu` is given, or the loss of a `quantile`. `upper` is
/// the C of each row.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RegressionArg<'py> {
    targets: PyReadonlyArray1<'py, f64>,
    upper: PyReadonlyArray1<'py, f64>,
    epsilon: f64,
    nu: Option<f64>,
    quantile: Option<f64>,
}

impl RegressionArg<'_> {
    /// Returns the task in the form that the core takes, without a starting point.
    pub(crate) fn read(&self) -> PyResult<Regression<'_>> {
        let loss = match (self.nu, self.quantile) {
            (Some(nu), _) => RegressionLoss::Nu(nu),
            (None, Some(q)) => RegressionLoss::Quantile(q),
            (None, None) => RegressionLoss::Epsilon(self.epsilon),
        };
        Ok(Regression { targets: vector(&self.targets)?, sample_c: vector(&self.upper)?, loss, start: None })
    }
}

/// Reads sizes of the solver that only the time depends on, for ablation experiments; those that are missing are the core's.
fn tuning_of(sizes: &Bound<'_, PyDict>) -> PyResult<Tuning> {
    let mut tuning = Tuning::default();
    for (name, value) in sizes {
        match name.extract::<String>()?.as_str() {
            "block" => tuning.block = value.extract()?,
            "max_block" => tuning.max_block = value.extract()?,
            "nested_block" => tuning.nested_block = value.extract()?,
            "cheap_kernel" => tuning.cheap_kernel = value.extract()?,
            "min_subsampled" => tuning.min_subsampled = value.extract()?,
            "newton_steps" => tuning.newton_steps = value.extract()?,
            "active_set" => tuning.active_set = value.extract()?,
            "fast_sums" => tuning.fast_sums = value.extract()?,
            other => return Err(to_python(Error::param("tuning", other, "the name of a size"))),
        }
    }
    Ok(tuning)
}

type StartArg<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray2<'py, f64>, Option<PyReadonlyArray2<'py, f64>>);

/// Parameters of the solver and the run of a fit.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SolverArg<'py> {
    tol: f64,
    cache_bytes: usize,
    shrinking: bool,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
    /// Coefficients to start from: support (m,), coefficients (m, q), and their outputs (n, q) where they are known.
    start: Option<StartArg<'py>>,
    #[pyo3(default)]
    tuning: Option<Bound<'py, PyDict>>,
    /// If true, Ctrl-C ends the fit and its partial model is returned, marked as interrupted.
    keep_interrupted: bool,
}

impl<'py> SolverArg<'py> {
    /// Runs the fit; the model, and whether Ctrl-C ended it.
    fn fit<R: Send>(
        &self,
        py: Python<'py>,
        kernel: &FunctionArg,
        cost: Cost,
        fit: impl FnOnce(KernelFunction<'_>, Option<Start<'_>>, &SvmParams, Context<'_>) -> svmarrow::Result<R>
        + Send,
    ) -> PyResult<(R, bool)> {
        let mut params = SvmParams::default();
        params.tolerance = self.tol;
        params.cache_bytes = self.cache_bytes;
        params.shrinking = self.shrinking;
        params.max_iterations = self.max_iter;
        if let Some(sizes) = &self.tuning {
            params.set_tuning(tuning_of(sizes)?);
        }
        let max_time = duration(self.max_time)?;
        let start = match &self.start {
            Some((support, coefficients, products)) => {
                let products = products.as_ref().map(matrix_view).transpose()?;
                Some((indices("start", support)?, matrix_view(coefficients)?, products))
            }
            None => None,
        };
        let (model, raised) = kernel.run(py, self.n_jobs, cost, self.progress.as_ref(), |kernel, ctx| {
            let start = start.as_ref().map(|(support, coefficients, products)| Start {
                support,
                coefficients: coefficients.reborrow(),
                products: products.as_ref().map(|products| products.reborrow()),
            });
            let budget = Budget::new(ctx.monitor(), None, max_time);
            fit(kernel, start, &params, ctx.with_monitor(&budget))
        })?;
        match raised {
            None => Ok((model, false)),
            Some(raised) if self.keep_interrupted && raised.is_instance_of::<PyKeyboardInterrupt>(py) => {
                Ok((model, true))
            }
            Some(raised) => Err(raised),
        }
    }
}

/// Trains a classifier.
///
/// Returns a dict: `support` (m,), `class_counts` (k,), `coefficients` (m, q), `intercepts` (q,), `certificates` and
/// `leave_one_out`, a dict for each machine, `effort`, a dict for all together, and whether it was `interrupted`.
#[pyfunction]
pub(crate) fn fit_svc<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    kernel: FunctionArg,
    task: ClassificationArg<'py>,
    solver: SolverArg<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = x.view()?;
    let (classification, cost) = (task.read()?, kernel.cost(&rows));
    let (model, interrupted) = solver.fit(py, &kernel, cost, |kernel, start, params, ctx| {
        let task = Classification { start: start.map(Start::reborrow), ..classification.task() };
        fit_classifier(kernel, rows, &task, params, ctx)
    })?;
    let result = fields!(
        py,
        model,
        support,
        class_counts,
        coefficients,
        intercepts,
        certificates,
        leave_one_out,
        effort
    );
    result.set_item("interrupted", interrupted)?;
    Ok(result)
}

/// Trains a regression.
///
/// Returns a dict as [`fit_svc`] does, with `rho` (minus the epsilon that nu-SVR found) and one certificate.
#[pyfunction]
pub(crate) fn fit_svr<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    kernel: FunctionArg,
    task: RegressionArg<'py>,
    solver: SolverArg<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = x.view()?;
    let (regression, cost) = (task.read()?, kernel.cost(&rows));
    let (model, interrupted) = solver.fit(py, &kernel, cost, |kernel, start, params, ctx| {
        let task = Regression { start: start.map(Start::reborrow), ..regression };
        fit_regression(kernel, rows, &task, params, ctx)
    })?;
    machine_model(py, model, interrupted)
}

/// Trains a quantile regression, a machine for each quantile; `upper` is the C of each row.
///
/// Returns a dict as [`fit_svc`] does, without what is about classes.
#[pyfunction]
pub(crate) fn fit_quantile_svr<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    kernel: FunctionArg,
    targets: PyReadonlyArray1<'py, f64>,
    upper: PyReadonlyArray1<'py, f64>,
    quantiles: Vec<f64>,
    solver: SolverArg<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let (rows, targets, sample_c) = (x.view()?, vector(&targets)?, vector(&upper)?);
    let cost = kernel.cost(&rows);
    let (model, interrupted) = solver.fit(py, &kernel, cost, |kernel, start, params, ctx| {
        let start = start.map(Start::reborrow);
        let task = QuantileRegression { targets, sample_c, quantiles: &quantiles, start };
        fit_quantiles(kernel, rows, &task, params, ctx)
    })?;
    let result = fields!(py, model, support, coefficients, intercepts, certificates, effort);
    result.set_item("interrupted", interrupted)?;
    Ok(result)
}

/// Trains a one-class machine; `weights` are the rows' weights.
///
/// Returns a dict as [`fit_svr`] does.
#[pyfunction]
pub(crate) fn fit_one_class_svm<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    kernel: FunctionArg,
    weights: PyReadonlyArray1<'py, f64>,
    nu: f64,
    solver: SolverArg<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let (rows, weights) = (x.view()?, vector(&weights)?);
    let cost = kernel.cost(&rows);
    let (model, interrupted) = solver.fit(py, &kernel, cost, |kernel, start, params, ctx| {
        let start = start.map(Start::reborrow);
        fit_one_class(kernel, rows, &OneClass { weights, nu, start }, params, ctx)
    })?;
    machine_model(py, model, interrupted)
}

/// Returns the bytes that a fit takes in addition to the rows, as a dict of its parts; `machines` lists numbers of variables.
#[pyfunction]
pub(crate) fn estimate_svm_memory<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    n: usize,
    kernel: FunctionArg,
    machines: Vec<usize>,
    cache_bytes: usize,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let mut params = SvmParams::default();
    params.cache_bytes = cache_bytes;
    let estimate =
        estimate_memory(kernel.function(), x.view()?, n, &machines, &params, n_jobs).map_err(to_python)?;
    Ok(fields!(py, estimate, packed, cache, blocks, variables, least))
}

fn machine_model(py: Python<'_>, model: MachineModel, interrupted: bool) -> PyResult<Bound<'_, PyDict>> {
    let result = fields!(py, model, support, coefficients, rho, effort);
    result.set_item("intercepts", vec![model.intercept].to_object(py)?)?;
    result.set_item("certificates", vec![model.certificate].to_object(py)?)?;
    result.set_item("interrupted", interrupted)?;
    Ok(result)
}

records! {
    Certificate: dual, primal, gap, violation, iterations, rounds, support, bounded, intercept_range, rounding, stop;
    LeaveOneOut: positive, negative, bound, missed, false_alarms, stable;
    Effort: kernel_values, cache_hits, cache_misses, seconds;
}
