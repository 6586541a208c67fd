//! `svmarrow::reduced_set`, the selections that need the whole kernel matrix.

use pyo3::prelude::*;
use svmarrow::papers::reduced_set::{L1, LEVELS, Lars, Norm, ZeroNorm};
use svmarrow::path::Path;
use svmarrow::reduced_set::{self, Limits, Method, PursuitParams, Rank, Reducer, Sample, Selection};
use svmarrow::{Error, Result};

use crate::dict::Object;
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::run::run_within;

/// The settings of a selection as Python passes them; a method reads its own.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SelectionArg {
    pub(crate) method: String,
    pub(crate) max_vectors: usize,
    pub(crate) tolerance: f64,
    pub(crate) seed: u64,
    pub(crate) max_time: Option<f64>,
    pub(crate) joint: bool,
    inverse_weights: bool,
    cost: Option<f64>,
    refit: bool,
    rank_tolerance: f64,
    gamma: Option<f64>,
    penalty: Option<f64>,
    pub(crate) sample: Option<usize>,
    chunk: Option<usize>,
    max_memory: f64,
}

impl SelectionArg {
    fn matrix_method(&self) -> Result<Box<dyn Method>> {
        let norm = if self.joint { Norm::Joint } else { Norm::Each };
        let Self { gamma, penalty, refit, cost, inverse_weights, .. } = *self;
        Ok(match self.method.as_str() {
            "rank" => Box::new(Rank { tolerance: self.rank_tolerance }),
            "l0" => Box::new(ZeroNorm { norm, gamma, levels: LEVELS }),
            "l1" => Box::new(L1 { norm, inverse_weights, penalty, refit }),
            "lars" => Box::new(Lars { norm, cost, penalty, refit }),
            other => return Err(Error::param("method", other, "one of rank, l0, l1, lars")),
        })
    }

    /// Half of the memory for kernel values on rows.
    pub(crate) fn max_kernel_values(&self) -> usize {
        (self.max_memory * 1e6 / 16.0) as usize
    }

    /// Megabytes are those of `cache_size`: a million bytes.
    pub(crate) fn limits(&self) -> Limits {
        Limits { chunk: self.chunk, memory: (self.max_memory * 1e6) as u64 }
    }
}

/// Estimates the bytes that a selection among `candidates` vectors takes in addition to expansion and rows.
#[pyfunction]
pub(crate) fn estimate_selection_memory(
    candidates: usize,
    outputs: usize,
    settings: SelectionArg,
) -> PyResult<u64> {
    let (max_vectors, tolerance) = (settings.max_vectors, settings.tolerance);
    let method: Box<dyn Method>;
    let reducer = if matches!(settings.method.as_str(), "pursuit" | "prefit" | "basic") {
        let mut params = PursuitParams::new(max_vectors);
        params.joint = settings.joint;
        params.sample = settings.sample.map(|size| Sample { size, seed: settings.seed });
        params.selection = if settings.method == "basic" { Selection::Basic } else { Selection::BackFitting };
        Reducer::Pursuit(params)
    } else {
        method = settings.matrix_method().map_err(to_python)?;
        Reducer::Matrix { method: &*method, max_vectors, tolerance }
    };
    Ok(settings.limits().bytes(&reducer, candidates, outputs))
}

/// The path of an expansion along the order in which a method chooses its vectors; a dict as `pursuit` gives.
#[pyfunction]
pub(crate) fn select_vectors(
    py: Python<'_>,
    expansion: ExpansionArg<'_>,
    settings: SelectionArg,
    progress: Option<Bound<'_, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<Path>> {
    let target = expansion.view()?;
    let method = settings.matrix_method().map_err(to_python)?;
    let SelectionArg { max_vectors, tolerance, max_time, .. } = settings;
    let (reducer, limits) = (Reducer::Matrix { method: &*method, max_vectors, tolerance }, settings.limits());
    run_within(py, n_jobs, target.vectors.vector_lengths(), progress.as_ref(), max_time, |ctx| {
        reduced_set::reduce(&target, None, &reducer, limits, ctx)
    })
    .map(Object)
}
