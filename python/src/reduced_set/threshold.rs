//! `svmarrow::reduced_set::threshold`: intercepts chosen anew.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::reduced_set::threshold;
use svmarrow::{Error, Result};

use crate::array::{indices, matrix_view, same_length, vector};
use crate::error::to_python;
use crate::run::{Cost, run};

/// The shift of binary scores (n,) with the fewest errors; 0 where none is better.
#[pyfunction]
#[pyo3(signature = (scores, positive))]
pub(crate) fn threshold_binary(
    py: Python<'_>,
    scores: PyReadonlyArray1<'_, f64>,
    positive: PyReadonlyArray1<'_, bool>,
) -> PyResult<f64> {
    let (scores, positive) = (vector(&scores)?, vector(&positive)?);
    same_length("positive (one for each score)", scores.len(), positive.len())?;
    finite_scores(scores, 1).map_err(to_python)?;
    let cost = Cost::of(scores.len(), 1, 32);
    run(py, 1, cost, None, |_, _| threshold::binary(scores, positive, None))
}

/// The shifts (q,) of scores (n, q), decoded by their largest, with the fewest errors found.
#[pyfunction]
#[pyo3(signature = (scores, labels))]
pub(crate) fn threshold_joint<'py>(
    py: Python<'py>,
    scores: PyReadonlyArray2<'py, f64>,
    labels: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let scores = matrix_view(&scores)?;
    let (n, q) = scores.dim();
    let labels = indices("labels", &labels)?;
    same_length("labels (one for each row of scores)", n, labels.len())?;
    Error::check_below("labels", &labels, q, "the number of outputs").map_err(to_python)?;
    finite_scores(scores.as_slice().unwrap_or_default(), q).map_err(to_python)?;
    let shifts =
        run(py, 1, Cost::of(n, q, 32), None, |monitor, _| threshold::joint(scores, &labels, monitor))?;
    Ok(PyArray1::from_vec(py, shifts))
}

fn finite_scores(scores: &[f64], q: usize) -> Result<()> {
    match scores.iter().position(|s| !s.is_finite()) {
        Some(at) => Err(Error::NotFinite { what: "scores", row: at / q.max(1) }),
        None => Ok(()),
    }
}
