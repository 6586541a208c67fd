//! `svmarrow::perceptron`: a piece of a stream in, the arrays of the new state out.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::Error;
use svmarrow::data::OwnedRows;
use svmarrow::perceptron::{self, PerceptronParams, PerceptronState, Policy};

use crate::array::{RowsArg, indices, matrix_array, rows_object};
use crate::error::to_python;
use crate::expansion;
use crate::params::KernelArg;
use crate::run::{Cost, run};

/// A policy, from its name and the parameters of the projections.
fn policy(name: &str, eta: f64) -> PyResult<Policy> {
    Ok(match name {
        "unlimited" => Policy::Unlimited,
        "stop" => Policy::Stop,
        "oldest" => Policy::Oldest,
        "forgetron" => Policy::Forgetron,
        "margin" => Policy::Margin,
        "random" => Policy::Random,
        "tightest" => Policy::Tightest,
        "projectron" => Policy::Projectron { eta, margin: false },
        "projectron++" => Policy::Projectron { eta, margin: true },
        _ => return Err(to_python(Error::param("policy", format!("{name:?}"), "a name of a policy"))),
    })
}

/// All rows of a view, owned.
pub(crate) fn owned(rows: &RowsArg<'_>) -> PyResult<OwnedRows> {
    let view = rows.view()?;
    Ok(view.gather(&(0..view.rows()).collect::<Vec<_>>()))
}

/// Numbers that count rows.
pub(crate) fn counts(name: &'static str, array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u64>> {
    Ok(indices(name, array)?.into_iter().map(|i| i as u64).collect())
}

/// Numbers that count rows, for Python.
pub(crate) fn count_array(py: Python<'_>, values: Vec<u64>) -> Bound<'_, PyArray1<i64>> {
    PyArray1::from_vec(py, values.into_iter().map(|i| i as i64).collect())
}

/// Learns from a piece of a stream; `counters` are rows seen and mistakes made.
///
/// Returns a dict of the new state, and `wrong`: the rows of the piece that were mistakes.
#[pyfunction]
#[pyo3(signature = (x, labels, n_classes, kernel, policy_name, budget, eta, vectors, coefficients, born, matrix, scores, deviation, random, counters, progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn perceptron_stream<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    n_classes: usize,
    kernel: KernelArg,
    policy_name: &str,
    budget: usize,
    eta: f64,
    vectors: RowsArg<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
    born: PyReadonlyArray1<'py, i64>,
    matrix: PyReadonlyArray2<'py, f64>,
    scores: PyReadonlyArray2<'py, f64>,
    deviation: f64,
    random: u64,
    counters: (u64, u64),
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = x.view()?;
    let labels = indices("labels", &labels)?;
    let params =
        PerceptronParams { kernel: kernel.0, classes: n_classes, budget, policy: policy(policy_name, eta)? };
    let state = PerceptronState {
        vectors: owned(&vectors)?,
        coefficients: crate::array::matrix(&coefficients)?.0.to_vec(),
        born: counts("born", &born)?,
        matrix: crate::array::matrix(&matrix)?.0.to_vec(),
        scores: crate::array::matrix(&scores)?.0.to_vec(),
        deviation,
        random,
        seen: counters.0,
        mistakes: counters.1,
    };
    let cost = Cost::of(rows.rows(), state.born.len() + rows.rows(), rows.cols());
    let (state, wrong) = run(py, 1, cost, progress.as_ref(), |monitor, _| {
        perceptron::partial_fit(&params, state, rows, &labels, monitor)
    })?;
    let m = state.born.len();
    let q = if n_classes == 2 { 1 } else { n_classes };
    let per_pair = if state.matrix.is_empty() { 0 } else { m };
    let per_vector = if state.scores.is_empty() { 0 } else { m };
    let result = PyDict::new(py);
    result.set_item("vectors", rows_object(py, state.vectors)?)?;
    result.set_item("coefficients", matrix_array(py, state.coefficients, m, q)?)?;
    result.set_item("born", count_array(py, state.born))?;
    result.set_item("matrix", matrix_array(py, state.matrix, per_pair, per_pair)?)?;
    result.set_item("scores", matrix_array(py, state.scores, per_vector, q)?)?;
    result.set_item("deviation", state.deviation)?;
    result.set_item("random", state.random)?;
    result.set_item("counters", (state.seen, state.mistakes))?;
    result.set_item("wrong", count_array(py, wrong))?;
    Ok(result)
}

/// The share of votes (n, classes) of all hypotheses of a pass.
#[pyfunction]
#[pyo3(signature = (vectors, coefficients, intercepts, kernel, born, seen, n_classes, x, n_jobs))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn voted<'py>(
    py: Python<'py>,
    vectors: RowsArg<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray1<'py, f64>,
    kernel: KernelArg,
    born: PyReadonlyArray1<'py, i64>,
    seen: u64,
    n_classes: usize,
    x: RowsArg<'py>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let parts = expansion::view(&vectors, &coefficients, &intercepts, &kernel)?;
    let (rows, born) = (x.view()?, counts("born", &born)?);
    let cost = Cost::of(rows.rows(), parts.len(), rows.cols());
    let votes =
        run(py, n_jobs, cost, None, |_, par| perceptron::voted(&parts, &born, seen, n_classes, rows, par))?;
    matrix_array(py, votes, rows.rows(), n_classes)
}
