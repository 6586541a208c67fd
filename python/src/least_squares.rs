//! `marrow::least_squares`: regularized least squares.

use marrow::kernels::KernelFunction;
use marrow::least_squares::{LeaveOneOut, Options, Problem, Solution, solve};
use numpy::{PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{RowsArg, matrix, matrix_array, same_length};
use crate::function::{FunctionArg, WithKernel};
use crate::run::run_and_keep;

/// Solves (K + alpha I) c = y for all columns of `targets`.
///
/// Returns a dict: `coefficients` (n, q), `intercepts` (q,), `diagonal` (n,) of K, and `leave_one_out`, None or a dict.
#[pyfunction]
#[pyo3(signature = (x, targets, kernel, alpha, fit_intercept, leave_one_out, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn least_squares<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    kernel: FunctionArg,
    alpha: f64,
    fit_intercept: bool,
    leave_one_out: bool,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (values, n, q) = matrix(&targets)?;
    let rows = x.view()?;
    same_length("rows of the targets (one for each row of X)", rows.rows(), n)?;
    let options = Options { leave_one_out };
    let (solution, raised) = run_and_keep(py, n_jobs, progress.as_ref(), |monitor, par| {
        let function: KernelFunction<'_> = kernel.function();
        let problem = Problem { kernel: function, rows, targets: values, outputs: q, fit_intercept };
        solve(&problem, alpha, options, &WithKernel { monitor, kernel: &kernel }, par)
    })
    .map_err(|error| kernel.raised().unwrap_or(error))?;
    if let Some(raised) = kernel.raised().or(raised) {
        return Err(raised);
    }
    solution_dict(py, solution, n, q)
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
