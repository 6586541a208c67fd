//! `svmarrow::perceptron::tree`: trees as dicts of arrays, and made ready for prediction.

use numpy::ndarray::Array2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::data::Rows;
use svmarrow::memory::try_matrix;
use svmarrow::perceptron::tree::{
    self, ConvertParams, Program, Strategy, TreeParams, TreePredictor, TreeState,
};

use crate::array::{RowsArg, indices, matrix_view, same_length, vector};
use crate::dict::{Object, states};
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::params::KernelArg;
use crate::run::{Cost, reserve_vectors, run};

fn strategy(name: &str) -> PyResult<Strategy> {
    Strategy::from_name(name).ok_or_else(|| {
        let rule = "'wpq', 'zpq', or rndw, bal or ent with rnds, inds or opts, as in 'bal-opts'";
        to_python(Error::param("split", format!("{name:?}"), rule))
    })
}

states! {
    TreeState: rows, kinds, children, thresholds, starts, members, weights, accumulator, age, directions, intercepts,
        sample_starts, sample, sample_labels, leaf_seen, random, (seen, mistakes);
}

/// A tree before its first row, for rows like those of `rows`.
#[pyfunction]
pub(crate) fn perceptron_tree(rows: RowsArg<'_>, outputs: usize, seed: u64) -> PyResult<Object<TreeState>> {
    Ok(Object(TreeState::new(rows.view()?, outputs, seed)))
}

/// Parameters that are fixed along a stream.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TreeSettings {
    n_classes: usize,
    kernel: KernelArg,
    split: String,
    budget: usize,
    child_budget: usize,
    sample_size: usize,
    n_draws: usize,
    max_leaves: usize,
}

/// Learns from a piece of a stream: the new tree, and which rows were mistakes.
#[pyfunction]
pub(crate) fn perceptron_tree_stream(
    py: Python<'_>,
    x: RowsArg<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    settings: TreeSettings,
    tree: Object<TreeState>,
    n_jobs: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Object<(TreeState, Vec<u64>)>> {
    let (rows, labels) = (x.view()?, indices("labels", &labels)?);
    let mut params = TreeParams::new(settings.kernel.0, settings.n_classes, strategy(&settings.split)?);
    params.budget = settings.budget;
    params.child_budget = settings.child_budget;
    params.sample = settings.sample_size;
    params.draws = settings.n_draws;
    params.max_leaves = settings.max_leaves;
    let n_jobs = if params.uses_threads(&rows) { n_jobs } else { 1 };
    let vectors = params.budget + rows.rows();
    let cost = Cost::of_rows(&rows, vectors.saturating_mul(settings.n_classes));
    run(py, n_jobs, cost, progress.as_ref(), |ctx| tree::partial_fit(&params, &tree.0, rows, &labels, ctx))
        .map(Object)
}

/// Parameters of the conversion of an expansion.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ConvertSettings {
    n_classes: usize,
    split: String,
    budget: usize,
    sample_size: usize,
    keeps_samples: bool,
    n_draws: usize,
    alpha: Option<f64>,
    seed: u64,
}

/// The tree of an expansion.
#[pyfunction]
pub(crate) fn perceptron_tree_of(
    py: Python<'_>,
    expansion: ExpansionArg<'_>,
    x: RowsArg<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    settings: ConvertSettings,
    n_jobs: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Object<TreeState>> {
    let (parts, rows, labels) = (expansion.view()?, x.view()?, indices("labels", &labels)?);
    let n_classes = settings.n_classes;
    let mut params = ConvertParams::new(settings.budget, strategy(&settings.split)?);
    params.sample = settings.sample_size;
    params.keeps_samples = settings.keeps_samples;
    params.draws = settings.n_draws;
    params.refit = settings.alpha;
    params.seed = settings.seed;
    let length = parts.len() + rows.vector_lengths();
    run(py, n_jobs, Cost::unknown(length), progress.as_ref(), |ctx| {
        tree::from_expansion(&parts, rows, &labels, n_classes, &params, ctx)
    })
    .map(Object)
}

/// A tree made ready for prediction.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct PerceptronTree {
    predictor: TreePredictor,
    budget: usize,
    outputs: usize,
}

#[pymethods]
impl PerceptronTree {
    #[new]
    fn new(kernel: KernelArg, tree: Object<TreeState>, averaged: bool) -> PyResult<Self> {
        let Object(state) = tree;
        let largest = state.starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
        let _reserved = reserve_vectors(state.members.len())?;
        let predictor = TreePredictor::new(kernel.0, &state, averaged).map_err(to_python)?;
        Ok(Self { predictor, budget: largest.unwrap_or(0) as usize, outputs: state.outputs() })
    }

    /// F, (n, q).
    fn decision(&self, py: Python<'_>, x: RowsArg<'_>, n_jobs: usize) -> PyResult<Object<Array2<f64>>> {
        self.evaluate(py, x.view()?, n_jobs).map(Object)
    }

    /// Leaf, depth, kernel values and distances of each row, (n, 4).
    fn routes(&self, py: Python<'_>, x: RowsArg<'_>, n_jobs: usize) -> PyResult<Object<Array2<u64>>> {
        let rows = x.view()?;
        let cost = Cost::of_rows(&rows, self.budget);
        run(py, n_jobs, cost, None, |ctx| {
            let routes = self.predictor.routes(rows, ctx)?;
            try_matrix((routes.len(), 4), |(i, k)| {
                let way = &routes[i];
                [way.leaf, way.depth, way.kernel_values, way.distances][k] as u64
            })
        })
        .map(Object)
    }
}

impl PerceptronTree {
    /// Returns F, (n, q).
    pub(crate) fn evaluate(&self, py: Python<'_>, rows: Rows<'_>, n_jobs: usize) -> PyResult<Array2<f64>> {
        let cost = Cost::of_outputs(&rows, self.budget, self.outputs);
        run(py, n_jobs, cost, None, |ctx| self.predictor.decide(rows, ctx))
    }
}

/// p (m,) of min 1/2 p'Qp - w'p, 0 <= p <= 1, sum p <= most, from p = 0.
#[pyfunction]
pub(crate) fn box_budget_program(
    py: Python<'_>,
    q: PyReadonlyArray2<'_, f64>,
    w: PyReadonlyArray1<'_, f64>,
    max_vectors: f64,
    tolerance: f64,
) -> PyResult<Object<Vec<f64>>> {
    let (q, w) = (matrix_view(&q)?, vector(&w)?);
    let m = q.nrows();
    same_length("columns of Q", m, q.ncols())?;
    same_length("w (one number for each row of Q)", m, w.len())?;
    run(py, 1, Cost::of(m, m, m), None, |_| {
        let mut p = vec![0.0; m];
        tree::box_budget_program(&Program { q, w, max_vectors }, tolerance, &mut p)?;
        Ok(p)
    })
    .map(Object)
}
