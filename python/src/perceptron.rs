//! `svmarrow::perceptron`: a piece of a stream in, the arrays of the new state out.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::Error;
use svmarrow::data::OwnedRows;
use svmarrow::memory::TryCollect;
use svmarrow::perceptron::{self, PerceptronParams, PerceptronState, Policy};

use crate::array::{RowsArg, count_array, indices, owned_matrix, rows_object};
use crate::dict::fields;
use crate::error::to_python;
use crate::expansion::ExpansionArg;
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
    let all = (0..view.rows()).try_collect_vec().map_err(to_python)?;
    view.gather(&all).map_err(to_python)
}

/// Numbers that count rows.
pub(crate) fn counts(name: &'static str, array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u64>> {
    indices(name, array)?.into_iter().map(|i| i as u64).try_collect_vec().map_err(to_python)
}

/// Parameters that are fixed along a stream; `eta` is that of the projections.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct StreamArg {
    n_classes: usize,
    kernel: KernelArg,
    policy: String,
    budget: usize,
    eta: f64,
}

/// The state of a stream; `counters` are rows seen and mistakes made.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct StateArg<'py> {
    rows: RowsArg<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
    born: PyReadonlyArray1<'py, i64>,
    matrix: PyReadonlyArray2<'py, f64>,
    scores: PyReadonlyArray2<'py, f64>,
    deviation: f64,
    random: u64,
    counters: (u64, u64),
}

impl StateArg<'_> {
    fn state(&self) -> PyResult<PerceptronState> {
        Ok(PerceptronState {
            vectors: owned(&self.rows)?,
            coefficients: owned_matrix(&self.coefficients)?,
            born: counts("born", &self.born)?,
            matrix: owned_matrix(&self.matrix)?,
            scores: owned_matrix(&self.scores)?,
            deviation: self.deviation,
            random: self.random,
            seen: self.counters.0,
            mistakes: self.counters.1,
        })
    }
}

/// Learns from a piece of a stream: the new state, and which rows of the piece were mistakes.
#[pyfunction]
#[pyo3(signature = (x, labels, settings, state, progress))]
pub(crate) fn perceptron_stream<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    settings: StreamArg,
    state: StateArg<'py>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyArray1<i64>>)> {
    let (rows, labels, state) = (x.view()?, indices("labels", &labels)?, state.state()?);
    let policy = policy(&settings.policy, settings.eta)?;
    let mut params = PerceptronParams::new(settings.kernel.0, settings.n_classes, policy);
    params.budget = settings.budget;
    let cost = Cost::of(rows.rows(), state.born.len() + rows.rows(), rows.cols());
    let (state, wrong) = run(py, 1, cost, progress.as_ref(), |ctx| {
        perceptron::partial_fit(&params, state, rows, &labels, ctx)
    })?;
    let counters = (state.seen, state.mistakes);
    let result = fields!(py, state, coefficients, born, matrix, scores, deviation, random);
    result.set_item("rows", rows_object(py, state.vectors)?)?;
    result.set_item("counters", counters)?;
    Ok((result, count_array(py, wrong)?))
}

/// The share of votes (n, classes) of all hypotheses of a pass.
#[pyfunction]
#[pyo3(signature = (expansion, born, seen, n_classes, x, n_jobs))]
pub(crate) fn voted<'py>(
    py: Python<'py>,
    expansion: ExpansionArg<'py>,
    born: PyReadonlyArray1<'py, i64>,
    seen: u64,
    n_classes: usize,
    x: RowsArg<'py>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (parts, rows, born) = (expansion.view()?, x.view()?, counts("born", &born)?);
    let cost = Cost::of(rows.rows(), parts.len(), rows.cols());
    let votes =
        run(py, n_jobs, cost, None, |ctx| perceptron::voted(&parts, &born, seen, n_classes, rows, ctx))?;
    Ok(PyArray2::from_owned_array(py, votes))
}
