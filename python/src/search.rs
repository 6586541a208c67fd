//! `svmarrow::svm::search`: a grid of kernels and C over folds.

use numpy::ndarray::Array2;
use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::context::{Budget, StopReason};
use svmarrow::svm::{Fold, Grid, Point, ResultCallback, SearchTask, SvmParams, search};

use crate::array::{RowsArg, indices, matrix_view, vector};
use crate::error::to_python;
use crate::function::{FunctionArg, PythonCall, UnlessRaised};
use crate::run::{Cost, duration};
use crate::svm::{ClassificationArg, RegressionArg};

/// The task that is fitted at every point.
#[derive(FromPyObject)]
pub(crate) enum TaskArg<'py> {
    /// A classifier.
    Classes(ClassificationArg<'py>),
    /// A regression.
    Numbers(RegressionArg<'py>),
}

type FoldArg<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, i64>);

/// The grid; a kernel that is a function stands alone.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GridArg<'py> {
    kernels: Vec<FunctionArg>,
    costs: PyReadonlyArray1<'py, f64>,
    /// (kernels, costs)
    points: PyReadonlyArray2<'py, bool>,
    /// Rows of the fit, their weights, and rows that are held out, for each fold.
    folds: Vec<FoldArg<'py>>,
}

/// Parameters of the solver and the run of a search.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SearchSolverArg<'py> {
    tol: f64,
    cache_bytes: usize,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
}

impl PythonCall {
    fn report(&self, py: Python<'_>, point: Point, outputs: Array2<f64>) -> PyResult<()> {
        let Point { kernel, cost, fold, seconds, iterations, support, stop } = point;
        let outputs = PyArray2::from_owned_array(py, outputs);
        self.function
            .call1(py, (kernel, cost, fold, outputs, seconds, iterations, support, stop.name()))
            .map(drop)
    }
}

impl ResultCallback for PythonCall {
    fn call(&self, point: Point, outputs: Array2<f64>) {
        self.attempt(|py| self.report(py, point, outputs));
    }
}

/// Fits machines at every point of a grid on every fold, and calls
/// `judge(kernel, cost, fold, outputs, seconds, iterations, support, stop)` with the outputs of each for its held-out rows.
///
/// Returns why it ended early, or None: "max_time", "callback" where the progress answers true, "interrupted" for Ctrl-C,
/// which is not raised.
#[pyfunction]
pub(crate) fn search_svm(
    py: Python<'_>,
    x: RowsArg<'_>,
    task: TaskArg<'_>,
    grid: GridArg<'_>,
    solver: SearchSolverArg<'_>,
    judge: Py<PyAny>,
) -> PyResult<Option<&'static str>> {
    let rows = x.view()?;
    let (classes, numbers) = match &task {
        TaskArg::Classes(task) => (Some(task.read()?), None),
        TaskArg::Numbers(task) => (None, Some(task.read()?)),
    };
    let searched = match (&classes, numbers) {
        (Some(classification), _) => SearchTask::Classes(classification.task()),
        (None, Some(task)) => SearchTask::Numbers(task),
        (None, None) => unreachable!("a task is one of the two"),
    };
    let (costs, points) = (vector(&grid.costs)?, matrix_view(&grid.points)?);
    let mut folds = Vec::with_capacity(grid.folds.len());
    for (train, weights, test) in &grid.folds {
        folds.push((indices("train", train)?, vector(weights)?, indices("test", test)?));
    }
    let folds: Vec<Fold<'_>> =
        folds.iter().map(|(train, weights, test)| Fold { train, weights, test }).collect();
    let Some(first) = grid.kernels.first() else {
        return Err(to_python(Error::param("kernels", "none", "at least one")));
    };
    let mut params = SvmParams::default();
    params.tolerance = solver.tol;
    params.cache_bytes = solver.cache_bytes;
    params.max_iterations = solver.max_iter;
    let max_time = duration(solver.max_time)?;
    let caller = PythonCall::new(judge);
    let outcome = first.run(
        py,
        solver.n_jobs,
        Cost::unknown(rows.vector_lengths()),
        solver.progress.as_ref(),
        |_, ctx| {
            let monitor = UnlessRaised { monitor: ctx.monitor(), has_raised: || caller.raised().is_some() };
            let budget = Budget::new(&monitor, None, max_time);
            let kernels: Vec<_> = grid.kernels.iter().map(FunctionArg::function).collect(); // small: one item per kernel
            let grid = Grid { kernels: &kernels, costs, points: points.reborrow(), folds: &folds };
            search(rows, &searched, &grid, &params, &caller, ctx.with_monitor(&budget))
        },
    );
    if let Some(raised) = caller.raised().take() {
        return Err(raised);
    }
    let (stopped, raised) = outcome?;
    match raised {
        Some(raised) if !raised.is_instance_of::<PyKeyboardInterrupt>(py) => Err(raised),
        Some(_) => Ok(Some(StopReason::Interrupted.name())),
        // Nothing was raised: a callback has asked for the end.
        None if stopped == Some(StopReason::Interrupted) => Ok(Some("callback")),
        None => Ok(stopped.map(StopReason::name)),
    }
}
