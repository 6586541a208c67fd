//! `svmarrow::probability`: sigmoids.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use svmarrow::probability;

use crate::array::vector;
use crate::run::{Cost, run};

/// Multiplications that one sample of a fit of a sigmoid takes.
const SIGMOID_COST: usize = 400;

/// a and b of p(first class) = 1 / (1 + exp(a f + b)) for outputs f (n,).
#[pyfunction]
pub(crate) fn fit_sigmoid(
    py: Python<'_>,
    outputs: PyReadonlyArray1<'_, f64>,
    is_first: PyReadonlyArray1<'_, bool>,
    weights: PyReadonlyArray1<'_, f64>,
    offset_penalty: f64,
) -> PyResult<(f64, f64)> {
    let (outputs, is_first, weights) = (vector(&outputs)?, vector(&is_first)?, vector(&weights)?);
    let cost = Cost::of(outputs.len(), 1, SIGMOID_COST);
    let sigmoid = run(py, 1, cost, None, |ctx| {
        probability::fit_sigmoid(outputs, is_first, weights, offset_penalty, ctx)
    })?;
    Ok((sigmoid.a, sigmoid.b))
}
