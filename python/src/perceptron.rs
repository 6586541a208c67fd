//! `svmarrow::perceptron`: a piece of a stream in, the arrays of the new state out.

use numpy::PyReadonlyArray1;
use numpy::ndarray::Array2;
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::perceptron::{self, PerceptronParams, PerceptronState, Policy};

use crate::array::{RowsArg, counts, indices};
use crate::dict::{Object, states};
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

states! {
    PerceptronState: rows, coefficients, born, matrix, scores, deviation, random, (seen, mistakes);
}

/// Learns from a piece of a stream: the new state, and which rows of the piece were mistakes.
#[pyfunction]
pub(crate) fn perceptron_stream(
    py: Python<'_>,
    x: RowsArg<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    settings: StreamArg,
    state: Object<PerceptronState>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Object<(PerceptronState, Vec<u64>)>> {
    let (rows, labels, Object(state)) = (x.view()?, indices("labels", &labels)?, state);
    let policy = policy(&settings.policy, settings.eta)?;
    let mut params = PerceptronParams::new(settings.kernel.0, settings.n_classes, policy);
    params.budget = settings.budget;
    let vectors = state.born.len() + rows.rows();
    let cost = Cost::of_rows(&rows, vectors.saturating_mul(settings.n_classes));
    run(py, 1, cost, progress.as_ref(), |ctx| perceptron::partial_fit(&params, state, rows, &labels, ctx))
        .map(Object)
}

/// The share of votes (n, classes) of all hypotheses of a pass.
#[pyfunction]
pub(crate) fn voted(
    py: Python<'_>,
    expansion: ExpansionArg<'_>,
    born: PyReadonlyArray1<'_, i64>,
    seen: u64,
    n_classes: usize,
    x: RowsArg<'_>,
    n_jobs: usize,
) -> PyResult<Object<Array2<f64>>> {
    let (parts, rows, born) = (expansion.view()?, x.view()?, counts("born", &born)?);
    let cost = Cost::of_outputs(&rows, parts.len(), n_classes);
    run(py, n_jobs, cost, None, |ctx| perceptron::voted(&parts, &born, seen, n_classes, rows, ctx))
        .map(Object)
}
