//! `svmarrow::least_squares::low_rank`, `low_rank_iterative` and `selection`: few points, sums over rows. `svmarrow::svm::Features`: few points,
//! features of rows.

use numpy::ndarray::Array2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::data::Rows;
use svmarrow::least_squares::low_rank::{Piece, Sums, System};
use svmarrow::least_squares::low_rank_iterative::{self, Points};
use svmarrow::least_squares::selection::{Candidates, select_points};
use svmarrow::svm;

use crate::array::{RowsArg, matrix_view, vector};
use crate::dict::{Object, fields, states};
use crate::error::to_python;
use crate::least_squares::{StoppingArg, set_stop};
use crate::params::KernelArg;
use crate::run::{Cost, run};

states! {
    Sums: gram, products, columns, targets, rows, weight;
}

/// The points with their kernel, from the tuple `(vectors, kernel)`.
type PointsArg<'py> = (RowsArg<'py>, KernelArg);

/// Targets (n, q), and weights (n,) or None.
type TargetsArg<'py> = (PyReadonlyArray2<'py, f64>, Option<PyReadonlyArray1<'py, f64>>);

/// The sums with those of further rows; `sums` is None before the first.
#[pyfunction]
pub(crate) fn low_rank_sums(
    py: Python<'_>,
    x: RowsArg<'_>,
    targets: TargetsArg<'_>,
    points: PointsArg<'_>,
    sums: Option<Object<Sums>>,
    progress: Option<Bound<'_, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<Sums>> {
    let (points, kernel) = (points.0.view()?, points.1.0);
    let weights = targets.1.as_ref().map(vector).transpose()?;
    let piece = Piece { rows: x.view()?, targets: matrix_view(&targets.0)?, weights };
    let mut sums = match sums {
        Some(Object(sums)) => sums,
        None => Sums::new(points.rows(), piece.targets.ncols()).map_err(to_python)?,
    };
    let length = piece.rows.vector_lengths() + points.vector_lengths();
    run(py, n_jobs, Cost::unknown(length), progress.as_ref(), |ctx| {
        sums.add(kernel, points, piece, ctx)?;
        Ok(sums)
    })
    .map(Object)
}

/// A system to be solved.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SystemArg<'py> {
    points: PointsArg<'py>,
    sums: Object<Sums>,
    alpha: f64,
    fit_intercept: bool,
}

/// Solves the system of some sums: a dict of `coefficients` (m, q), `intercepts` (q,), `jitter` and, where rows are
/// given, their `hat` (n,), the diagonal of the matrix that turns targets into fitted values.
#[pyfunction]
pub(crate) fn low_rank_solve<'py>(
    py: Python<'py>,
    system: SystemArg<'py>,
    x: Option<RowsArg<'py>>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (points, kernel, sums) = (system.points.0.view()?, system.points.1.0, &system.sums.0);
    let (alpha, fit_intercept) = (system.alpha, system.fit_intercept);
    let rows = x.as_ref().map(RowsArg::view).transpose()?;
    let length = points.vector_lengths() + rows.as_ref().map_or(0, Rows::vector_lengths);
    let (coefficients, intercepts, jitter, hat) =
        run(py, n_jobs, Cost::unknown(length), progress.as_ref(), |ctx| {
            let system = System::new(kernel, points, sums, alpha, fit_intercept, ctx)?;
            let (coefficients, intercepts) = system.solve(sums, ctx)?;
            let hat = rows.map(|rows| system.hat_diagonal(kernel, points, rows, ctx)).transpose()?;
            Ok((coefficients, intercepts, system.jitter, hat))
        })?;
    Ok(fields!(py; coefficients, intercepts, jitter, hat))
}

/// Solves the system of rows by conjugate gradients: a dict of `coefficients` (m, q), `intercepts` (q,), `jitter`, `products`,
/// `residual` and `stop`.
#[pyfunction]
pub(crate) fn low_rank_cg<'py>(
    py: Python<'py>,
    system: IterationArg<'py>,
    x: RowsArg<'py>,
    targets: TargetsArg<'py>,
    stopping: StoppingArg,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let points = Points { kernel: system.points.1.0, vectors: system.points.0.view()? };
    let weights = targets.1.as_ref().map(vector).transpose()?;
    let piece = Piece { rows: x.view()?, targets: matrix_view(&targets.0)?, weights };
    let (alpha, fit_intercept, stopping) = (system.alpha, system.fit_intercept, stopping.stopping()?);
    let length = piece.rows.vector_lengths() + points.vectors.vector_lengths();
    let solution = run(py, n_jobs, Cost::unknown(length), progress.as_ref(), |ctx| {
        low_rank_iterative::solve(points, piece, alpha, fit_intercept, stopping, ctx)
    })?;
    let stop = solution.stop;
    let dict = fields!(py, solution, coefficients, intercepts, jitter);
    set_stop(&dict, stop)?;
    Ok(dict)
}

/// A system to be solved without its sums.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct IterationArg<'py> {
    points: PointsArg<'py>,
    alpha: f64,
    fit_intercept: bool,
}

/// Rows chosen by incomplete Cholesky factorization: their indices (m,), and what is left of the trace (m + 1,).
///
/// `candidates` is None for the greedy choice, or `(number, seed)`: each step chooses the best of `number` random rows.
#[pyfunction]
pub(crate) fn select_points_by_kernel(
    py: Python<'_>,
    x: RowsArg<'_>,
    kernel: KernelArg,
    count: usize,
    candidates: Option<(usize, u64)>,
    progress: Option<Bound<'_, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<(Vec<usize>, Vec<f64>)>> {
    let rows = x.view()?;
    let candidates = candidates.map(|(count, seed)| Candidates { count, seed });
    let points = run(py, n_jobs, Cost::unknown(rows.vector_lengths()), progress.as_ref(), |ctx| {
        select_points(kernel.0, rows, count, candidates, ctx)
    })?;
    Ok(Object((points.rows, points.remaining)))
}

/// A kernel projected on some points: features of rows, and the way back from linear machines to coefficients.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct Features {
    features: svm::Features,
}

#[pymethods]
impl Features {
    #[new]
    fn new(
        py: Python<'_>,
        points: PointsArg<'_>,
        progress: Option<Bound<'_, PyAny>>,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let (points, kernel) = (points.0.view()?, points.1.0);
        let features = run(py, n_jobs, Cost::unknown(points.vector_lengths()), progress.as_ref(), |ctx| {
            svm::Features::new(kernel, points, ctx)
        })?;
        Ok(Self { features })
    }

    /// Features (n, m) of rows.
    fn of(
        &self,
        py: Python<'_>,
        x: RowsArg<'_>,
        progress: Option<Bound<'_, PyAny>>,
        n_jobs: usize,
    ) -> PyResult<Object<Array2<f64>>> {
        let rows = x.view()?;
        run(py, n_jobs, Cost::unknown(rows.vector_lengths()), progress.as_ref(), |ctx| {
            self.features.of(rows, ctx)
        })
        .map(Object)
    }

    /// Coefficients (m, q) at the points of linear machines (m, q).
    fn coefficients(
        &self,
        py: Python<'_>,
        weights: PyReadonlyArray2<'_, f64>,
        n_jobs: usize,
    ) -> PyResult<Object<Array2<f64>>> {
        let weights = matrix_view(&weights)?;
        run(py, n_jobs, Cost::unknown(weights.nrows()), None, |ctx| self.features.coefficients(weights, ctx))
            .map(Object)
    }
}
