//! `svmarrow::reduced_set`, the selections that need the whole kernel matrix.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::control::Budget;
use svmarrow::reduced_set::{self, LEVELS, Limits, Method, Norm, Reducer};
use svmarrow::{Error, Result};

use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::path::path_dict;
use crate::run::{Cost, run};
use crate::svm::duration;

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
    cost: f64,
    rank_tolerance: f64,
    gamma: Option<f64>,
    penalty: Option<f64>,
    pub(crate) sample: Option<usize>,
    chunk: Option<usize>,
    max_memory: f64,
}

impl SelectionArg {
    fn kind(&self) -> Result<Method> {
        let norm = if self.joint { Norm::Joint } else { Norm::Each };
        Ok(match self.method.as_str() {
            "rank" => Method::Rank { tolerance: self.rank_tolerance },
            "l0" => Method::ZeroNorm { norm, gamma: self.gamma, levels: LEVELS },
            "l1" => Method::L1 { norm, inverse_weights: self.inverse_weights, penalty: self.penalty },
            "lars" => Method::Lars { norm, cost: self.cost, penalty: self.penalty },
            other => return Err(Error::param("method", other, "one of rank, l0, l1, lars")),
        })
    }

    /// Half of the memory for kernel values on rows.
    pub(crate) fn room(&self) -> usize {
        (self.max_memory * 1e6 / 16.0) as usize
    }

    /// Megabytes are those of `cache_size`: a million bytes.
    pub(crate) fn limits(&self) -> Limits {
        Limits { chunk: self.chunk, memory: (self.max_memory * 1e6) as u64 }
    }
}

/// The path of an expansion along the order in which a method chooses its vectors; a dict as `pursuit` gives.
#[pyfunction]
#[pyo3(signature = (expansion, settings, progress, n_jobs))]
pub(crate) fn select_vectors<'py>(
    py: Python<'py>,
    expansion: ExpansionArg<'py>,
    settings: SelectionArg,
    progress: Option<Bound<'py, PyAny>>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let target = expansion.view()?;
    let (method, max_time) = (settings.kind().map_err(to_python)?, duration(settings.max_time)?);
    let SelectionArg { max_vectors, tolerance, .. } = settings;
    let (reducer, limits) = (Reducer::Matrix { method, max_vectors, tolerance }, settings.limits());
    let path = run(py, n_jobs, Cost::Unknown, progress.as_ref(), |monitor, par| {
        let budget = Budget::new(monitor, None, max_time);
        reduced_set::reduce(&target, None, &reducer, limits, &budget, par)
    })?;
    path_dict(py, path)
}
