//! `svmarrow::probability`: sigmoids, coupling, errors of a regression.

use numpy::ndarray::Array2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::probability::{self, Sigmoid};

use crate::array::{matrix_view, same_length, vector};
use crate::dict::Object;
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
    let found = run(py, 1, cost, None, |ctx| {
        probability::fit_sigmoid(outputs, is_first, weights, offset_penalty, ctx)
    })?;
    Ok((found.a, found.b))
}

/// Probabilities (n, k) of classes for the outputs (n, k (k - 1) / 2) of pairs, positive for the first, and the parameters
/// of their sigmoids, by LIBSVM's coupling.
#[pyfunction]
pub(crate) fn couple_pairs(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    prob_a: Vec<f64>,
    prob_b: Vec<f64>,
    n_classes: usize,
    n_jobs: usize,
) -> PyResult<Object<Array2<f64>>> {
    let outputs = matrix_view(&outputs)?;
    same_length("probB", prob_a.len(), prob_b.len())?;
    let sigmoids: Vec<Sigmoid> = prob_a.into_iter().zip(prob_b).map(|(a, b)| Sigmoid { a, b }).collect();
    let cost = Cost::of(outputs.nrows(), n_classes, n_classes.saturating_mul(16));
    run(py, n_jobs, cost, None, |ctx| probability::couple_pairs(outputs, &sigmoids, n_classes, ctx))
        .map(Object)
}

/// The scale of a Laplace distribution of errors (n,).
#[pyfunction]
pub(crate) fn laplace_scale(py: Python<'_>, errors: PyReadonlyArray1<'_, f64>) -> PyResult<f64> {
    let errors = vector(&errors)?;
    run(py, 1, Cost::of(errors.len(), 1, 2), None, |_| Ok(probability::laplace_scale(errors)))
}
