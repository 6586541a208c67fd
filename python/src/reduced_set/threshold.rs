//! `svmarrow::reduced_set::threshold`: new intercepts for given outputs.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::reduced_set::threshold;
use svmarrow::{Error, Result};

use crate::array::{indices, matrix_view, same_length, vector};
use crate::dict::Object;
use crate::error::to_python;
use crate::run::{Cost, run};

/// The shift of binary scores (n,) with the least weight of errors; 0 where none is better.
#[pyfunction]
#[pyo3(signature = (scores, positive, weights=None))]
pub(crate) fn threshold_binary(
    py: Python<'_>,
    scores: PyReadonlyArray1<'_, f64>,
    positive: PyReadonlyArray1<'_, bool>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<f64> {
    let (scores, positive) = (vector(&scores)?, vector(&positive)?);
    same_length("positive (one for each score)", scores.len(), positive.len())?;
    finite_scores(scores, 1).map_err(to_python)?;
    let weights = weights.as_ref().map(vector).transpose()?;
    check_weights(weights, scores.len())?;
    let cost = Cost::of(scores.len(), 1, 32);
    run(py, 1, cost, None, |_| threshold::binary(scores, positive, weights))
}

/// The shifts (q,) of scores (n, q), decoded by their largest, with the least weight of errors found.
#[pyfunction]
#[pyo3(signature = (scores, labels, weights=None))]
pub(crate) fn threshold_joint(
    py: Python<'_>,
    scores: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, i64>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<Object<Vec<f64>>> {
    let scores = matrix_view(&scores)?;
    let (n, q) = scores.dim();
    let labels = indices("labels", &labels)?;
    same_length("labels (one for each row of scores)", n, labels.len())?;
    Error::check_below("labels", &labels, q, "the number of outputs").map_err(to_python)?;
    finite_scores(scores.as_slice().unwrap_or_default(), q).map_err(to_python)?;
    let weights = weights.as_ref().map(vector).transpose()?;
    check_weights(weights, n)?;
    run(py, 1, Cost::of(n, q, 32), None, |ctx| threshold::joint(scores, &labels, weights, ctx)).map(Object)
}

fn check_weights(weights: Option<&[f64]>, n: usize) -> PyResult<()> {
    let Some(weights) = weights else { return Ok(()) };
    same_length("weights (one for each row of scores)", n, weights.len())?;
    match weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
        Some(weight) => Err(to_python(Error::param("weights", weight, "positive and finite"))),
        None => Ok(()),
    }
}

fn finite_scores(scores: &[f64], q: usize) -> Result<()> {
    match scores.iter().position(|s| !s.is_finite()) {
        Some(at) => Err(Error::NotFinite { what: "scores", row: at / q.max(1) }),
        None => Ok(()),
    }
}
