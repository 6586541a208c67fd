//! `svmarrow::least_squares`: regularized least squares.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::context::{Context, Stop};
use svmarrow::least_squares::exact::{self, BorderedInverse};
use svmarrow::least_squares::iterative::{self, RandomPoints};
use svmarrow::least_squares::{
    Groups, LeaveOneOut, Problem, Solution, Spectrum, Stopping, linear, path_bytes, solve, solve_path,
};

use crate::array::{RowsArg, matrix_array, matrix_view, vector};
use crate::dict::{Object, fields, records};
use crate::error::to_python;
use crate::function::FunctionArg;
use crate::run::{Cost, duration};

/// A least squares problem: targets (n, q) at rows (n, d), squares with weights (n,) or None, numbers of groups (n,) or None.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ProblemArg<'py> {
    x: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    kernel: FunctionArg,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    groups: Option<Vec<usize>>,
    fit_intercept: bool,
}

impl<'py> ProblemArg<'py> {
    /// Solves the problem outside the interpreter.
    fn solve<R: Send>(
        &self,
        py: Python<'py>,
        progress: Option<&Bound<'py, PyAny>>,
        n_jobs: usize,
        work: impl FnOnce(&Problem<'_>, Context<'_>) -> svmarrow::Result<R> + Send,
    ) -> PyResult<R> {
        let (rows, targets, kernel) = (self.x.view()?, matrix_view(&self.targets)?, &self.kernel);
        let weights = self.weights.as_ref().map(vector).transpose()?;
        let groups = self.groups.as_deref().map(Groups::new).transpose().map_err(to_python)?;
        let fit_intercept = self.fit_intercept;
        // The matrix, and its factor or as many products with it.
        let cost = Cost::of_values(&rows, rows.rows(), rows.cols().saturating_add(rows.rows()));
        let (solution, raised) = kernel.run(py, n_jobs, cost, progress, |kernel, ctx| {
            let (rows, targets) = (rows.reborrow(), targets.reborrow());
            let groups = groups.as_ref();
            work(&Problem { kernel, rows, targets, fit_intercept, weights, groups }, ctx)
        })?;
        raised.map_or(Ok(solution), Err)
    }
}

/// When conjugate gradients stop.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct StoppingArg {
    tol: f64,
    max_iter: Option<u64>,
    max_time: Option<f64>,
}

impl StoppingArg {
    pub(crate) fn stopping(&self) -> PyResult<Stopping> {
        let max_iterations = self.max_iter.unwrap_or(u64::MAX);
        let mut stopping = Stopping::new(self.tol);
        stopping.max_iterations = max_iterations;
        stopping.max_time = duration(self.max_time)?;
        Ok(stopping)
    }
}

/// Solves (K + alpha I) c = y for all columns of the targets.
///
/// Returns a dict: `coefficients` (n, q), `intercepts` (q,), `diagonal` (n,) of K, and `leave_one_out`, None or a dict.
#[pyfunction]
pub(crate) fn least_squares<'py>(
    py: Python<'py>,
    problem: ProblemArg<'py>,
    alpha: f64,
    leave_one_out: bool,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<Solution>> {
    problem
        .solve(py, progress.as_ref(), n_jobs, |problem, ctx| solve(problem, alpha, leave_one_out, ctx))
        .map(Object)
}

/// Computes the inverse of the matrix of the system, bordered by the intercept's ones; only the size of the targets counts.
///
/// Returns a dict: `inverse` (n, n) and `intercepts` (n,).
#[pyfunction]
pub(crate) fn least_squares_inverse<'py>(
    py: Python<'py>,
    problem: ProblemArg<'py>,
    alpha: f64,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<BorderedInverse>> {
    problem
        .solve(py, progress.as_ref(), n_jobs, |problem, ctx| exact::bordered_inverse(problem, alpha, ctx))
        .map(Object)
}

/// Solves for each of `alphas` and keeps the one with the least leave-one-out error.
///
/// `spectrum` is None, or (s, V) with S K S = V diag(s) V', S the square roots of the weights.
///
/// Returns a dict as [`least_squares`] does, the `best` index, and `path`, one row of mean squared error, error rate and
/// generalized cross-validation for each alpha.
#[pyfunction]
pub(crate) fn least_squares_path<'py>(
    py: Python<'py>,
    problem: ProblemArg<'py>,
    alphas: Vec<f64>,
    spectrum: Option<(PyReadonlyArray1<'py, f64>, PyReadonlyArray2<'py, f64>)>,
    by_rate: bool,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let spectrum = match &spectrum {
        Some((values, vectors)) => Some(Spectrum { values: vector(values)?, vectors: matrix_view(vectors)? }),
        None => None,
    };
    let (points, best, solution) = problem.solve(py, progress.as_ref(), n_jobs, |problem, ctx| {
        solve_path(problem, &alphas, by_rate, spectrum, ctx)
    })?;
    let path: Vec<f64> = points.iter().flat_map(|p| [p.squared_error, p.error_rate, p.gcv]).collect();
    let dict = fields!(py, solution, coefficients, intercepts, diagonal, leave_one_out);
    dict.set_item("best", best)?;
    dict.set_item("path", matrix_array(py, path, points.len(), 3)?)?;
    Ok(dict)
}

/// Solves the same by conjugate gradients, the kernel matrix never stored; `points` are the number of points of the
/// preconditioner and the seed of their draw.
///
/// Returns a dict as [`least_squares`] does, without leave-one-out values, and `products`, `residual` and `stop`.
#[pyfunction]
pub(crate) fn least_squares_cg<'py>(
    py: Python<'py>,
    problem: ProblemArg<'py>,
    alpha: f64,
    stopping: StoppingArg,
    points: (usize, u64),
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let stopping = stopping.stopping()?;
    let points = RandomPoints { count: points.0, seed: points.1 };
    let solution = problem.solve(py, progress.as_ref(), n_jobs, |problem, ctx| {
        iterative::solve(problem, alpha, stopping, points, ctx)
    })?;
    let dict = fields!(py, solution, coefficients, intercepts, diagonal);
    set_stop(&dict, solution.stop)?;
    Ok(dict)
}

/// Solves for the linear kernel by conjugate gradients on X (X' p).
///
/// Returns a dict: `weights` (d, q), `intercepts` (q,), `products`, `residual` and `stop`.
#[pyfunction]
pub(crate) fn linear_least_squares_cg<'py>(
    py: Python<'py>,
    problem: ProblemArg<'py>,
    alpha: f64,
    stopping: StoppingArg,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let stopping = stopping.stopping()?;
    let solution = problem
        .solve(py, progress.as_ref(), n_jobs, |problem, ctx| linear::solve(problem, alpha, stopping, ctx))?;
    let dict = fields!(py, solution, weights, intercepts);
    set_stop(&dict, solution.stop)?;
    Ok(dict)
}

/// Returns the number of bytes that [`least_squares`] takes in addition to the rows.
#[pyfunction]
pub(crate) fn least_squares_bytes(n: usize, single: bool, leave_one_out: bool) -> usize {
    exact::bytes(n, single, leave_one_out)
}

/// Returns the number of bytes that [`least_squares_path`] takes without a spectrum in addition to the rows.
#[pyfunction]
pub(crate) fn least_squares_path_bytes(n: usize, alphas: usize) -> usize {
    path_bytes(n, alphas)
}

/// Returns the number of bytes that [`least_squares_inverse`] takes in addition to the rows.
#[pyfunction]
pub(crate) fn least_squares_inverse_bytes(n: usize) -> usize {
    exact::inverse_bytes(n)
}

/// Sets the number of products, the largest residual and the reason of the end.
pub(crate) fn set_stop(dict: &Bound<'_, PyDict>, stop: Stop) -> PyResult<()> {
    dict.set_item("products", stop.iterations)?;
    dict.set_item("residual", stop.gap)?;
    dict.set_item("stop", stop.reason.name())
}

records! {
    Solution: coefficients, intercepts, diagonal, leave_one_out;
    BorderedInverse: inverse, intercepts;
    LeaveOneOut: values, inverse_diagonal, gcv;
}
