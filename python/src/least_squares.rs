//! `svmarrow::least_squares`: regularized least squares.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::control::{Monitor, Par, StopReason};
use svmarrow::kernels::{Kernel, KernelFunction};
use svmarrow::least_squares::{
    LeaveOneOut, Options, Problem, Solution, Spectrum, exact, iterative, linear, solve, solve_path,
};

use crate::array::{RowsArg, matrix, matrix_array, same_length, vector};
use crate::function::{FunctionArg, WithKernel};
use crate::run::run_and_keep;
use crate::svm::duration;

/// Solves (K + alpha I) c = y for all columns of `targets`.
///
/// Returns a dict: `coefficients` (n, q), `intercepts` (q,), `diagonal` (n,) of K, and `leave_one_out`, None or a dict.
#[pyfunction]
#[pyo3(signature = (x, targets, kernel, alpha, weights, fit_intercept, leave_one_out, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn least_squares<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    kernel: FunctionArg,
    alpha: f64,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    fit_intercept: bool,
    leave_one_out: bool,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (values, n, q) = matrix(&targets)?;
    let rows = x.view()?;
    same_length("rows of the targets (one for each row of X)", rows.rows(), n)?;
    let weights = weights.as_ref().map(vector).transpose()?;
    let options = Options { leave_one_out };
    let (solution, raised) = run_and_keep(py, n_jobs, progress.as_ref(), |monitor, par| {
        let function: KernelFunction<'_> = kernel.function();
        let problem = Problem { kernel: function, rows, targets: values, outputs: q, fit_intercept, weights };
        solve(&problem, alpha, options, &WithKernel { monitor, kernel: &kernel }, par)
    })
    .map_err(|error| kernel.raised().unwrap_or(error))?;
    if let Some(raised) = kernel.raised().or(raised) {
        return Err(raised);
    }
    solution_dict(py, solution, n, q)
}

/// Solves for each of `alphas` and keeps the one with the least leave-one-out error.
///
/// `spectrum` is None, or (s, V) with S K S = V diag(s) V', S the square roots of the weights.
///
/// Returns a dict as [`least_squares`] does, the `best` index, and `path`, one row of mean squared error, error rate and
/// generalised cross-validation for each alpha.
#[pyfunction]
#[pyo3(signature = (x, targets, kernel, alphas, spectrum, weights, by_rate, fit_intercept, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn least_squares_path<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    kernel: FunctionArg,
    alphas: Vec<f64>,
    spectrum: Option<(PyReadonlyArray1<'py, f64>, PyReadonlyArray2<'py, f64>)>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    by_rate: bool,
    fit_intercept: bool,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (values, n, q) = matrix(&targets)?;
    let rows = x.view()?;
    same_length("rows of the targets (one for each row of X)", rows.rows(), n)?;
    let weights = weights.as_ref().map(vector).transpose()?;
    let spectrum = match &spectrum {
        Some((values, vectors)) => Some(Spectrum { values: vector(values)?, vectors: matrix(vectors)?.0 }),
        None => None,
    };
    let outcome = run_and_keep(py, n_jobs, progress.as_ref(), |monitor, par| {
        let function: KernelFunction<'_> = kernel.function();
        let problem = Problem { kernel: function, rows, targets: values, outputs: q, fit_intercept, weights };
        solve_path(&problem, &alphas, by_rate, spectrum, &WithKernel { monitor, kernel: &kernel }, par)
    });
    if let Some(raised) = kernel.raised() {
        return Err(raised);
    }
    let ((points, best, solution), raised) = outcome?;
    if let Some(raised) = raised {
        return Err(raised);
    }
    let path: Vec<f64> = points.iter().flat_map(|p| [p.squared_error, p.error_rate, p.gcv]).collect();
    let dict = solution_dict(py, solution, n, q)?;
    dict.set_item("best", best)?;
    dict.set_item("path", matrix_array(py, path, points.len(), 3)?)?;
    Ok(dict)
}

/// Solves the same by conjugate gradients, the kernel matrix never stored.
///
/// Returns a dict as [`least_squares`] does, without leave-one-out values, and `products`, `residual` and `stop`.
#[pyfunction]
#[pyo3(signature = (x, targets, kernel, alpha, fit_intercept, tol, max_iter, max_time, points, seed, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn least_squares_cg<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    kernel: FunctionArg,
    alpha: f64,
    fit_intercept: bool,
    tol: f64,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    points: usize,
    seed: u64,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let options = iterative_options(tol, max_iter, max_time, (points, seed))?;
    let problem = (&x, &targets, fit_intercept);
    let solution = conjugate_gradients(py, problem, progress.as_ref(), n_jobs, |problem, monitor, par| {
        let problem = Problem { kernel: kernel.function(), rows: problem.rows.reborrow(), ..problem };
        iterative::solve(&problem, alpha, options, monitor, par)
    })?;
    let ending = (solution.intercepts, solution.products, solution.residual, solution.reason);
    let dict = ending_dict(py, ending)?;
    let [n, q] = [targets.shape()[0], targets.shape()[1]];
    dict.set_item("coefficients", matrix_array(py, solution.coefficients, n, q)?)?;
    dict.set_item("diagonal", PyArray1::from_vec(py, solution.diagonal))?;
    Ok(dict)
}

/// Solves for the linear kernel by conjugate gradients on X (X' p).
///
/// Returns a dict: `weights` (d, q), `intercepts` (q,), `products`, `residual` and `stop`.
#[pyfunction]
#[pyo3(signature = (x, targets, alpha, fit_intercept, tol, max_iter, max_time, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn linear_least_squares_cg<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    alpha: f64,
    fit_intercept: bool,
    tol: f64,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let options = iterative_options(tol, max_iter, max_time, (0, 0))?;
    let problem = (&x, &targets, fit_intercept);
    let solution = conjugate_gradients(py, problem, progress.as_ref(), n_jobs, |problem, monitor, par| {
        linear::solve(&problem, alpha, options, monitor, par)
    })?;
    let ending = (solution.intercepts, solution.products, solution.residual, solution.reason);
    let dict = ending_dict(py, ending)?;
    dict.set_item("weights", matrix_array(py, solution.weights, x.view()?.cols(), targets.shape()[1])?)?;
    Ok(dict)
}

/// Options of the iterations; `preconditioner` is points and seed.
fn iterative_options(
    tolerance: f64,
    max_iter: Option<u64>,
    max_time: Option<f64>,
    preconditioner: (usize, u64),
) -> PyResult<iterative::Options> {
    let (points, seed) = preconditioner;
    let max_products = max_iter.unwrap_or(u64::MAX);
    Ok(iterative::Options { tolerance, max_products, max_time: duration(max_time)?, points, seed })
}

/// What both iterations have in common: rows, targets and intercept in, with the linear kernel until `work` sets another.
fn conjugate_gradients<'py, R: Send>(
    py: Python<'py>,
    (x, targets, fit_intercept): (&RowsArg<'py>, &PyReadonlyArray2<'py, f64>, bool),
    progress: Option<&Bound<'py, PyAny>>,
    n_jobs: usize,
    work: impl FnOnce(Problem<'_>, &dyn Monitor, Par) -> svmarrow::Result<R> + Send,
) -> PyResult<R> {
    let (values, n, q) = matrix(targets)?;
    let rows = x.view()?;
    same_length("rows of the targets (one for each row of X)", rows.rows(), n)?;
    let kernel = Kernel::Linear.into();
    let problem = Problem { kernel, rows, targets: values, outputs: q, fit_intercept, weights: None };
    let (solution, raised) = run_and_keep(py, n_jobs, progress, |monitor, par| work(problem, monitor, par))?;
    raised.map_or(Ok(solution), Err)
}

/// Intercepts, products, residual and why it ended, as a dict.
fn ending_dict(
    py: Python<'_>,
    (intercepts, products, residual, reason): (Vec<f64>, u64, f64, StopReason),
) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("intercepts", PyArray1::from_vec(py, intercepts))?;
    dict.set_item("products", products)?;
    dict.set_item("residual", residual)?;
    dict.set_item("stop", reason.name())?;
    Ok(dict)
}

/// Bytes that [`least_squares`] takes beside the rows.
#[pyfunction]
#[pyo3(signature = (n, single, leave_one_out))]
pub(crate) fn least_squares_bytes(n: usize, single: bool, leave_one_out: bool) -> usize {
    exact::bytes(n, single, Options { leave_one_out })
}

fn solution_dict(py: Python<'_>, solution: Solution, n: usize, q: usize) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("coefficients", matrix_array(py, solution.coefficients, n, q)?)?;
    dict.set_item("intercepts", PyArray1::from_vec(py, solution.intercepts))?;
    dict.set_item("diagonal", PyArray1::from_vec(py, solution.diagonal))?;
    let estimate = solution.leave_one_out.map(|l| leave_one_out_dict(py, l, n, q)).transpose()?;
    dict.set_item("leave_one_out", estimate)?;
    Ok(dict)
}

fn leave_one_out_dict(
    py: Python<'_>,
    estimate: LeaveOneOut,
    n: usize,
    q: usize,
) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("values", matrix_array(py, estimate.values, n, q)?)?;
    dict.set_item("inverse_diagonal", PyArray1::from_vec(py, estimate.inverse_diagonal))?;
    dict.set_item("gcv", PyArray1::from_vec(py, estimate.gcv))?;
    Ok(dict)
}
