//! `svmarrow::reduced_set`: matching pursuit.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::Error;
use svmarrow::control::Budget;
use svmarrow::reduced_set::{self, Criterion, PursuitParams, Reducer, Sample, Selection};

use super::selection::SelectionArg;
use crate::array::RowsArg;
use crate::error::to_python;
use crate::expansion;
use crate::params::KernelArg;
use crate::path::path_dict;
use crate::run::{Cost, run};
use crate::svm::duration;

/// A matching pursuit towards an expansion, over its own vectors or over `candidates`.
///
/// Returns a dict: `order` (M,), `factor` (M, M) or None, `projections` (steps, q), `steps` (turns, ends) or None,
/// `residual_norms` (M + 1,), `penalties` (M,) or None, `exact`, `orthogonal` and `stop`.
#[pyfunction]
#[pyo3(signature = (vectors, coefficients, intercepts, kernel, candidates, method, settings, rows, seed, max_vectors, tolerance, max_time, progress, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn pursuit<'py>(
    py: Python<'py>,
    vectors: RowsArg<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray1<'py, f64>,
    kernel: KernelArg,
    candidates: Option<RowsArg<'py>>,
    method: &str,
    settings: SelectionArg,
    rows: Option<RowsArg<'py>>,
    seed: u64,
    max_vectors: usize,
    tolerance: f64,
    max_time: Option<f64>,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let target = expansion::view(&vectors, &coefficients, &intercepts, &kernel)?;
    let candidates = candidates.as_ref().map(RowsArg::view).transpose()?;
    let max_time = duration(max_time)?;
    let rows = rows.as_ref().map(RowsArg::view).transpose()?;
    let params = PursuitParams {
        max_vectors,
        tolerance,
        selection: match method {
            "pursuit" => Selection::BackFitting,
            "prefit" => Selection::PreFitting,
            "basic" => Selection::Basic,
            other => {
                return Err(to_python(Error::param("method", other, "one of pursuit, prefit, basic")));
            }
        },
        criterion: rows.map_or(Criterion::Norm, Criterion::Predictions),
        joint: settings.joint,
        sample: settings.sample.map(|size| Sample { size, seed }),
        room: settings.room(),
        norm_bound: None,
    };
    let (reducer, limits) = (Reducer::Pursuit(params), settings.limits());
    let path = run(py, n_jobs, Cost::Unknown, progress.as_ref(), |monitor, par| {
        let budget = Budget::new(monitor, None, max_time);
        reduced_set::reduce(&target, candidates, &reducer, limits, &budget, par)
    })?;
    path_dict(py, path, target.outputs())
}
