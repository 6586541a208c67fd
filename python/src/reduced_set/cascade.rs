//! `svmarrow::reduced_set`, the cascade with certain answers.

use numpy::PyReadonlyArray2;
use numpy::ndarray::Array2;
use pyo3::prelude::*;
use svmarrow::data::Rows;
use svmarrow::reduced_set::{self, Decision, Moments, Projection, StageSize, UNDECIDED};

use crate::array::{RowsArg, filled_matrix, matrix_view, owned_matrix, same_length};
use crate::dict::Object;
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::params::coding_of;
use crate::run::{Cost, run};

type Matrix = Object<Array2<f64>>;

/// <w_a, w_b> (q, q), <w_j, phi(s)> (M, q) and the sums and masses (2, q) of an expansion and the kept vectors s.
#[pyfunction]
pub(crate) fn expansion_moments(
    py: Python<'_>,
    expansion: ExpansionArg<'_>,
    selected: RowsArg<'_>,
    n_jobs: usize,
) -> PyResult<(Matrix, Matrix, Matrix)> {
    let (target, selected) = (expansion.view()?, selected.view()?);
    let cost = Cost::unknown(target.len().saturating_add(selected.vector_lengths()));
    let moments = run(py, n_jobs, cost, None, |ctx| reduced_set::moments(&target, selected, ctx))?;
    let masses = filled_matrix((2, target.outputs()), |(i, j)| [&moments.sums, &moments.masses][i][j])?;
    Ok((Object(moments.products), Object(moments.at_selected), Object(masses)))
}

/// A path whose sizes are orthogonal projections, with what [`expansion_moments`] gives for its vectors.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ProjectionArg<'py> {
    #[pyo3(item("kept"))]
    selected: RowsArg<'py>,
    factor: PyReadonlyArray2<'py, f64>,
    projections: PyReadonlyArray2<'py, f64>,
    products: PyReadonlyArray2<'py, f64>,
    #[pyo3(item("at_kept"))]
    at_selected: PyReadonlyArray2<'py, f64>,
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
    fn new(
        py: Python<'_>,
        expansion: ExpansionArg<'_>,
        path: ProjectionArg<'_>,
        stages: Vec<(usize, usize)>,
        coding: &str,
        break_ties: bool,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let (target, selected) = (expansion.view()?, path.selected.view()?);
        let (factor, projections) = (matrix_view(&path.factor)?, matrix_view(&path.projections)?);
        let masses = matrix_view(&path.masses)?;
        same_length("rows of the masses", 2, masses.nrows())?;
        let moments = Moments {
            products: owned_matrix(&path.products)?,
            at_selected: owned_matrix(&path.at_selected)?,
            sums: masses.row(0).to_vec(),
            masses: masses.row(1).to_vec(),
        };
        let projection = Projection { target, selected, factor, projections, moments: &moments };
        let sizes: Vec<StageSize> =
            stages.into_iter().map(|(vectors, directions)| StageSize { vectors, directions }).collect();
        let decision = Decision { coding: coding_of(coding).map_err(to_python)?, break_ties };
        let cost = Cost::unknown(target.len().saturating_add(selected.vector_lengths()));
        let cascade =
            run(py, n_jobs, cost, None, |ctx| reduced_set::Cascade::new(&projection, &sizes, decision, ctx))?;
        Ok(Self { cascade })
    }

    /// The certain classes (n,), -1 where there is none, and the stages (n,) that decided.
    fn answer(
        &self,
        py: Python<'_>,
        x: RowsArg<'_>,
        n_jobs: usize,
    ) -> PyResult<Object<(Vec<i64>, Vec<usize>)>> {
        let rows = x.view()?;
        let cost = self.cost(&rows);
        let answers = run(py, n_jobs, cost, None, |ctx| self.cascade.answer(rows, ctx))?;
        let class = |c: usize| if c == UNDECIDED { -1 } else { c as i64 };
        let classes = answers.classes.into_iter().map(class).collect();
        Ok(Object((classes, answers.stages)))
    }

    /// The outputs (n, q) of a stage and how far each can be from the machine's (n, q).
    fn outputs_with_bounds(
        &self,
        py: Python<'_>,
        x: RowsArg<'_>,
        stage: usize,
        n_jobs: usize,
    ) -> PyResult<Object<(Array2<f64>, Array2<f64>)>> {
        let rows = x.view()?;
        let cost = self.cost(&rows);
        run(py, n_jobs, cost, None, |ctx| self.cascade.outputs_with_bounds(rows, stage, ctx)).map(Object)
    }

    /// Returns the number of rows that the outputs of stage i decide with the distances of stage j, (stages, stages).
    fn survey(&self, py: Python<'_>, x: RowsArg<'_>, n_jobs: usize) -> PyResult<Object<Array2<u64>>> {
        let rows = x.view()?;
        let cost = self.cost(&rows);
        let counts = run(py, n_jobs, cost, None, |ctx| self.cascade.count_decided(rows, ctx))?;
        filled_matrix(counts.dim(), |at| counts[at] as u64).map(Object)
    }
}

impl Cascade {
    /// Returns the cost of all stages at `rows`.
    fn cost(&self, rows: &Rows<'_>) -> Cost {
        Cost::of_values(rows, self.cascade.cost(rows.cols()), 1)
    }
}
