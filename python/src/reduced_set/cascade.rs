//! `svmarrow::reduced_set`, the cascade with certain answers.

use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::memory::TryCollect;
use svmarrow::reduced_set::{self, Decision, Moments, Projection, StageSize, UNDECIDED};

use crate::array::{RowsArg, index_array, matrix_array, matrix_view, owned_matrix, same_length};
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::params::coding_of;
use crate::run::{Cost, run};

type Matrix<'py> = Bound<'py, PyArray2<f64>>;
type Indices<'py> = Bound<'py, PyArray1<i64>>;

/// <w_a, w_b> (q, q), <w_j, phi(s)> (M, q) and the sums and masses (2, q) of an expansion and the kept vectors s.
#[pyfunction]
#[pyo3(signature = (expansion, kept, n_jobs))]
pub(crate) fn expansion_moments<'py>(
    py: Python<'py>,
    expansion: ExpansionArg<'py>,
    kept: RowsArg<'py>,
    n_jobs: usize,
) -> PyResult<(Matrix<'py>, Matrix<'py>, Matrix<'py>)> {
    let target = expansion.view()?;
    let kept = kept.view()?;
    let found = run(py, n_jobs, Cost::Unknown, None, |ctx| reduced_set::moments(&target, kept, ctx))?;
    let q = target.outputs();
    Ok((
        PyArray2::from_owned_array(py, found.products),
        PyArray2::from_owned_array(py, found.at_kept),
        matrix_array(py, [found.sums, found.masses].concat(), 2, q)?, // small: one number per output
    ))
}

/// A path whose sizes are orthogonal projections, with what [`expansion_moments`] gives for its vectors.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ProjectionArg<'py> {
    kept: RowsArg<'py>,
    factor: PyReadonlyArray2<'py, f64>,
    projections: PyReadonlyArray2<'py, f64>,
    products: PyReadonlyArray2<'py, f64>,
    at_kept: PyReadonlyArray2<'py, f64>,
    masses: PyReadonlyArray2<'py, f64>,
}

/// The stages of a path, made ready to answer where they are certain.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct Cascade {
    cascade: reduced_set::Cascade,
}

#[pymethods]
impl Cascade {
    #[new]
    #[pyo3(signature = (expansion, path, stages, coding, break_ties, n_jobs))]
    fn new(
        py: Python<'_>,
        expansion: ExpansionArg<'_>,
        path: ProjectionArg<'_>,
        stages: Vec<(usize, usize)>,
        coding: &str,
        break_ties: bool,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let (target, kept) = (expansion.view()?, path.kept.view()?);
        let (factor, projections) = (matrix_view(&path.factor)?, matrix_view(&path.projections)?);
        let masses = matrix_view(&path.masses)?;
        same_length("rows of the masses", 2, masses.nrows())?;
        let moments = Moments {
            products: owned_matrix(&path.products)?,
            at_kept: owned_matrix(&path.at_kept)?,
            sums: masses.row(0).to_vec(),   // small: one number per output
            masses: masses.row(1).to_vec(), // small: one number per output
        };
        let projection = Projection { target, kept, factor, projections, moments: &moments };
        let sizes: Vec<StageSize> =
            stages.into_iter().map(|(vectors, directions)| StageSize { vectors, directions }).collect(); // small: one item per stage
        let decision = Decision { coding: coding_of(coding).map_err(to_python)?, break_ties };
        let cascade = run(py, n_jobs, Cost::Unknown, None, |ctx| {
            reduced_set::Cascade::new(&projection, &sizes, decision, ctx)
        })?;
        Ok(Self { cascade })
    }

    /// The certain classes (n,), -1 where there is none, and the stages (n,) that decided.
    #[pyo3(signature = (x, n_jobs))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        x: RowsArg<'py>,
        n_jobs: usize,
    ) -> PyResult<(Indices<'py>, Indices<'py>)> {
        let rows = x.view()?;
        let cost = Cost::of(rows.rows(), self.cascade.cost(rows.cols()), 1);
        let found = run(py, n_jobs, cost, None, |ctx| self.cascade.answer(rows, ctx))?;
        let class = |c: usize| if c == UNDECIDED { -1 } else { c as i64 };
        let classes = found.classes.into_iter().map(class).try_collect_vec().map_err(to_python)?;
        let classes = PyArray1::from_vec(py, classes);
        Ok((classes, index_array(py, found.stages)?))
    }

    /// The outputs (n, q) of a stage and how far each can be from the machine's (n, q).
    #[pyo3(signature = (x, stage, n_jobs))]
    fn outputs_with_bounds<'py>(
        &self,
        py: Python<'py>,
        x: RowsArg<'py>,
        stage: usize,
        n_jobs: usize,
    ) -> PyResult<(Matrix<'py>, Matrix<'py>)> {
        let rows = x.view()?;
        let cost = Cost::of(rows.rows(), self.cascade.cost(rows.cols()), 1);
        let (outputs, bounds) =
            run(py, n_jobs, cost, None, |ctx| self.cascade.outputs_with_bounds(rows, stage, ctx))?;
        Ok((PyArray2::from_owned_array(py, outputs), PyArray2::from_owned_array(py, bounds)))
    }

    /// Returns the number of rows that the outputs of stage i decide with the distances of stage j, (stages, stages).
    #[pyo3(signature = (x, n_jobs))]
    fn survey<'py>(
        &self,
        py: Python<'py>,
        x: RowsArg<'py>,
        n_jobs: usize,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let rows = x.view()?;
        let cost = Cost::of(rows.rows(), self.cascade.cost(rows.cols()), 2);
        let counts = run(py, n_jobs, cost, None, |ctx| self.cascade.count_decided(rows, ctx))?;
        Ok(PyArray2::from_owned_array(
            py,
            counts.mapv(|count| count as i64), /* small: one number per pair of stages */
        ))
    }
}
