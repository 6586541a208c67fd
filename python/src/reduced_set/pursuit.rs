//! `svmarrow::reduced_set`: matching pursuit.

use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::data::Rows;
use svmarrow::path::Path;
use svmarrow::reduced_set::{self, Criterion, PursuitParams, Reducer, Sample, Selection};

use super::selection::SelectionArg;
use crate::array::RowsArg;
use crate::dict::Object;
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::run::run_within;

/// A matching pursuit towards an expansion, over its own vectors or over `candidates`; with `rows` it compares
/// predictions on them.
///
/// Returns a dict: `order` (M,), `factor` (M, M) or None, `projections` (steps, q), `steps` (the vector of each step, the
/// number of steps of each size) or None, `residual_norms` (M + 1,), `penalties` (M,) or None, `exact`, `orthogonal` and
/// `stop`.
#[pyfunction]
pub(crate) fn pursuit(
    py: Python<'_>,
    expansion: ExpansionArg<'_>,
    candidates: Option<RowsArg<'_>>,
    rows: Option<RowsArg<'_>>,
    settings: SelectionArg,
    progress: Option<Bound<'_, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<Path>> {
    let target = expansion.view()?;
    let candidates = candidates.as_ref().map(RowsArg::view).transpose()?;
    let rows = rows.as_ref().map(RowsArg::view).transpose()?;
    let rows_length = |rows: &Option<Rows<'_>>| rows.as_ref().map_or(0, Rows::vector_lengths);
    let length = target.vectors.vector_lengths() + rows_length(&candidates) + rows_length(&rows);
    let mut params = PursuitParams::new(settings.max_vectors);
    params.tolerance = settings.tolerance;
    params.selection = match settings.method.as_str() {
        "pursuit" => Selection::BackFitting,
        "prefit" => Selection::PreFitting,
        "basic" => Selection::Basic,
        other => {
            return Err(to_python(Error::param("method", other, "one of pursuit, prefit, basic")));
        }
    };
    params.criterion = rows.map_or(Criterion::Norm, Criterion::Predictions);
    params.joint = settings.joint;
    params.sample = settings.sample.map(|size| Sample { size, seed: settings.seed });
    params.max_kept_values = settings.max_kernel_values();
    let (reducer, limits) = (Reducer::Pursuit(params), settings.limits());
    run_within(py, n_jobs, length, progress.as_ref(), settings.max_time, |ctx| {
        reduced_set::reduce(&target, candidates, &reducer, limits, ctx)
    })
    .map(Object)
}
