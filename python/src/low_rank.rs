//! `svmarrow::least_squares::low_rank` and `selection`: few points, sums over rows.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::least_squares::low_rank::{Sums, System};
use svmarrow::least_squares::selection::select_points;
use svmarrow::random::Random;

use crate::array::{RowsArg, index_array, matrix, matrix_array, same_length, vector};
use crate::params::KernelArg;
use crate::run::{Cost, run};

/// What rows add up to, as Python keeps it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SumsArg<'py> {
    gram: PyReadonlyArray2<'py, f64>,
    products: PyReadonlyArray2<'py, f64>,
    columns: PyReadonlyArray1<'py, f64>,
    targets: PyReadonlyArray1<'py, f64>,
    rows: u64,
}

impl SumsArg<'_> {
    fn sums(&self) -> PyResult<Sums> {
        Ok(Sums {
            gram: matrix(&self.gram)?.0.to_vec(),
            products: matrix(&self.products)?.0.to_vec(),
            columns: vector(&self.columns)?.to_vec(),
            targets: vector(&self.targets)?.to_vec(),
            rows: self.rows,
        })
    }
}

/// The sums with those of further rows; `sums` is None before the first.
#[pyfunction]
#[pyo3(signature = (x, targets, vectors, kernel, sums, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn low_rank_sums<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    vectors: RowsArg<'py>,
    kernel: KernelArg,
    sums: Option<SumsArg<'py>>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (values, n, q) = matrix(&targets)?;
    let (rows, points) = (x.view()?, vectors.view()?);
    same_length("rows of the targets (one for each row of X)", rows.rows(), n)?;
    let mut sums = match sums {
        Some(sums) => sums.sums()?,
        None => Sums::new(points.rows(), q),
    };
    let sums = run(py, n_jobs, Cost::Unknown, progress.as_ref(), |monitor, par| {
        sums.add(kernel.0, points, rows, values, monitor, par)?;
        Ok(sums)
    })?;
    let m = points.rows();
    let dict = PyDict::new(py);
    dict.set_item("gram", matrix_array(py, sums.gram, m, m)?)?;
    dict.set_item("products", matrix_array(py, sums.products, m, q)?)?;
    dict.set_item("columns", PyArray1::from_vec(py, sums.columns))?;
    dict.set_item("targets", PyArray1::from_vec(py, sums.targets))?;
    dict.set_item("rows", sums.rows)?;
    Ok(dict)
}

/// Solves the system of some sums: a dict of `coefficients` (m, q), `intercepts` (q,), `jitter` and, where rows are
/// given, their `hat` (n,), the diagonal of the matrix that turns targets into fitted values.
#[pyfunction]
#[pyo3(signature = (vectors, kernel, sums, alpha, fit_intercept, x, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn low_rank_solve<'py>(
    py: Python<'py>,
    vectors: RowsArg<'py>,
    kernel: KernelArg,
    sums: SumsArg<'py>,
    alpha: f64,
    fit_intercept: bool,
    x: Option<RowsArg<'py>>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let points = vectors.view()?;
    let sums = sums.sums()?;
    let rows = x.as_ref().map(RowsArg::view).transpose()?;
    let (m, q) = (points.rows(), sums.targets.len());
    let (coefficients, intercepts, jitter, hat) =
        run(py, n_jobs, Cost::Unknown, progress.as_ref(), |monitor, par| {
            let system = System::new(kernel.0, points, &sums, alpha, fit_intercept, monitor, par)?;
            let (coefficients, intercepts) = system.solve(&sums, par);
            let hat =
                rows.map(|rows| system.hat_diagonal(kernel.0, points, rows, monitor, par)).transpose()?;
            Ok((coefficients, intercepts, system.jitter, hat))
        })?;
    let dict = PyDict::new(py);
    dict.set_item("coefficients", matrix_array(py, coefficients, m, q)?)?;
    dict.set_item("intercepts", PyArray1::from_vec(py, intercepts))?;
    dict.set_item("jitter", jitter)?;
    dict.set_item("hat", hat.map(|hat| PyArray1::from_vec(py, hat)))?;
    Ok(dict)
}

/// Rows chosen by incomplete Cholesky factorisation: (indices (m,), what is left of the trace (m + 1,)).
///
/// Greedy where `candidates` is None, else the best of so many rows drawn at each step.
#[pyfunction]
#[pyo3(signature = (x, kernel, count, candidates, seed, progress, n_jobs))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
pub(crate) fn select_points_by_kernel<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    kernel: KernelArg,
    count: usize,
    candidates: Option<usize>,
    seed: u64,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>)> {
    let rows = x.view()?;
    let points = run(py, n_jobs, Cost::Unknown, progress.as_ref(), |monitor, par| {
        select_points(kernel.0, rows, count, candidates, &mut Random::new(seed), monitor, par)
    })?;
    Ok((index_array(py, points.rows), PyArray1::from_vec(py, points.remaining)))
}
