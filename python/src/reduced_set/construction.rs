//! `svmarrow::reduced_set`, construction: start at cluster centers, move vectors and coefficients.

use numpy::ndarray::Array2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::reduced_set::{self, Answers, Construction, Examples, GradientParams, Loss, Objective};
use svmarrow::{Error, Result};

use crate::array::{RowsArg, indices, matrix_view};
use crate::dict::{Object, records};
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::params::coding_of;
use crate::run::run_within;

/// Cluster centers (count, d) of the rows, each group (n,) by itself; where the time is over, as they are.
#[pyfunction]
pub(crate) fn centres(
    py: Python<'_>,
    x: RowsArg<'_>,
    groups: Option<PyReadonlyArray1<'_, i64>>,
    count: usize,
    seed: u64,
    max_time: Option<f64>,
    n_jobs: usize,
) -> PyResult<Object<Array2<f32>>> {
    let rows = x.view()?;
    let groups = groups.as_ref().map(|groups| indices("groups", groups)).transpose()?;
    run_within(py, n_jobs, rows.vector_lengths(), None, max_time, |ctx| {
        reduced_set::centres(rows, groups.as_deref(), count, seed, ctx)
    })
    .map(Object)
}

/// The settings of a gradient run as Python passes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GradientArg<'py> {
    starts: Vec<PyReadonlyArray2<'py, f32>>,
    loss: String,
    coding: String,
    sharpness: f64,
    label_weight: f64,
    steps: usize,
    batch: usize,
    vector_rate: f64,
    coefficient_rate: f64,
    noise: f64,
    mixing: f64,
    places: usize,
    seed: u64,
    scale_rate: f64,
    start_ridge: f64,
    held_out: usize,
    known_outputs: bool,
    max_time: Option<f64>,
}

impl GradientArg<'_> {
    fn params(&self) -> Result<GradientParams> {
        let loss = match self.loss.as_str() {
            "matching" => Loss::Matching,
            "agreement" => Loss::Agreement,
            "hinge" => Loss::Hinge,
            "squared_hinge" => Loss::SquaredHinge,
            other => {
                return Err(Error::param("loss", other, "one of matching, agreement, hinge, squared_hinge"));
            }
        };
        let coding = coding_of(&self.coding)?;
        let (sharpness, label_weight) = (self.sharpness, self.label_weight);
        let objective = Objective { loss, coding, sharpness, label_weight };
        let mut params = GradientParams::new(objective, self.steps);
        params.batch = self.batch;
        params.vector_rate = self.vector_rate;
        params.coefficient_rate = self.coefficient_rate;
        params.noise = self.noise;
        params.mixing = self.mixing;
        params.places = self.places;
        params.seed = self.seed;
        params.scale_rate = self.scale_rate;
        params.start_ridge = self.start_ridge;
        params.held_out = self.held_out;
        Ok(params)
    }
}

/// Labels or targets of the rows.
#[derive(FromPyObject)]
pub(crate) enum AnswersArg<'py> {
    /// Classes (n,).
    Classes(PyReadonlyArray1<'py, i64>),
    /// Numbers (n, q).
    Values(PyReadonlyArray2<'py, f64>),
}

/// Vectors and coefficients moved together from each of the starts of `settings` to imitate an expansion on the rows `x`.
///
/// `answers` are classes (n,) or numbers (n, q). Returns a list, one dict for each start: `vectors`
/// (m, d) float32, `coefficients` (m, q), `intercepts` (q,), `scales` (d,), `losses` and `stop`.
///
/// If `known_outputs` is true, the numbers are the outputs of a machine that is known by them alone.
#[pyfunction]
pub(crate) fn gradient_vectors(
    py: Python<'_>,
    expansion: ExpansionArg<'_>,
    x: RowsArg<'_>,
    answers: Option<AnswersArg<'_>>,
    settings: GradientArg<'_>,
    progress: Option<Bound<'_, PyAny>>,
    n_jobs: usize,
) -> PyResult<Object<Vec<Construction>>> {
    let target = expansion.view()?;
    let rows = x.view()?;
    let starts = settings.starts.iter().map(matrix_view).collect::<PyResult<Vec<_>>>()?;
    let classes = match &answers {
        Some(AnswersArg::Classes(classes)) => indices("labels", classes)?,
        _ => Vec::new(),
    };
    let answers = match &answers {
        Some(AnswersArg::Values(values)) if settings.known_outputs => {
            Some(Answers::Outputs(matrix_view(values)?))
        }
        Some(AnswersArg::Values(values)) => Some(Answers::Values(matrix_view(values)?)),
        Some(AnswersArg::Classes(_)) => Some(Answers::Classes(&classes)),
        None => None,
    };
    let params = settings.params().map_err(to_python)?;
    let examples = Examples { rows, answers };
    let length = target.len().saturating_add(rows.vector_lengths());
    run_within(py, n_jobs, length, progress.as_ref(), settings.max_time, |ctx| {
        reduced_set::gradient_vectors(&target, &starts, &examples, &params, ctx)
    })
    .map(Object)
}

records! {
    Construction: vectors, coefficients, intercepts, scales, losses, stop;
}
