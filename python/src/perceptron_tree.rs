//! `svmarrow::perceptron::tree`: trees as dicts of arrays, and made ready for prediction.

use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::Error;
use svmarrow::memory::{try_matrix, try_with_capacity, try_zeros};
use svmarrow::perceptron::tree::{
    self, ConvertParams, Program, Strategy, TreeParams, TreePredictor, TreeState,
};

use crate::array::{
    RowsArg, count_array, indices, matrix_array, matrix_view, owned_matrix, owned_vector, same_length, vector,
};
use crate::dict::fields;
use crate::error::to_python;
use crate::expansion::ExpansionArg;
use crate::params::KernelArg;
use crate::perceptron::{counts, owned};
use crate::run::{Cost, run};

fn strategy(name: &str) -> PyResult<Strategy> {
    Strategy::from_name(name).ok_or_else(|| {
        let rule = "'wpq', 'zpq', or rndw, bal or ent with rnds, inds or opts, as in 'bal-opts'";
        to_python(Error::param("split", format!("{name:?}"), rule))
    })
}

/// The arrays of a tree, as [`dict`] makes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TreeArg<'py> {
    rows: RowsArg<'py>,
    kinds: PyReadonlyArray1<'py, u8>,
    children: PyReadonlyArray2<'py, i64>,
    thresholds: PyReadonlyArray1<'py, f64>,
    starts: PyReadonlyArray1<'py, i64>,
    members: PyReadonlyArray1<'py, i64>,
    weights: PyReadonlyArray2<'py, f64>,
    accumulator: PyReadonlyArray2<'py, f64>,
    age: PyReadonlyArray1<'py, i64>,
    directions: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray2<'py, f64>,
    sample_starts: PyReadonlyArray1<'py, i64>,
    sample: PyReadonlyArray1<'py, i64>,
    sample_labels: PyReadonlyArray1<'py, i64>,
    leaf_seen: PyReadonlyArray1<'py, i64>,
    random: u64,
    counters: (u64, u64),
}

impl TreeArg<'_> {
    fn children(&self) -> PyResult<Array2<u64>> {
        let children = matrix_view(&self.children)?;
        try_matrix(children.dim(), |at| u64::try_from(children[at]).unwrap_or(u64::MAX)).map_err(to_python)
    }

    fn state(&self) -> PyResult<TreeState> {
        Ok(TreeState {
            rows: owned(&self.rows)?,
            kinds: owned_vector(&self.kinds)?,
            // A negative index is none of a node, which the core refuses.
            children: self.children()?,
            thresholds: owned_vector(&self.thresholds)?,
            starts: counts("starts", &self.starts)?,
            members: counts("members", &self.members)?,
            weights: owned_matrix(&self.weights)?,
            accumulator: owned_matrix(&self.accumulator)?,
            age: counts("age", &self.age)?,
            directions: owned_matrix(&self.directions)?,
            intercepts: owned_matrix(&self.intercepts)?,
            sample_starts: counts("sample_starts", &self.sample_starts)?,
            sample: counts("sample", &self.sample)?,
            sample_labels: counts("sample_labels", &self.sample_labels)?,
            leaf_seen: counts("leaf_seen", &self.leaf_seen)?,
            random: self.random,
            seen: self.counters.0,
            mistakes: self.counters.1,
        })
    }
}

/// The arrays of a tree.
fn dict(py: Python<'_>, tree: TreeState) -> PyResult<Bound<'_, PyDict>> {
    let counters = (tree.seen, tree.mistakes);
    let result = fields!(
        py,
        tree,
        rows,
        kinds,
        children,
        thresholds,
        starts,
        members,
        weights,
        accumulator,
        age,
        directions,
        intercepts,
        sample_starts,
        sample,
        sample_labels,
        leaf_seen,
        random
    );
    result.set_item("counters", counters)?;
    Ok(result)
}

/// A tree before its first row, for rows like those of `rows`.
#[pyfunction]
#[pyo3(signature = (rows, outputs, seed))]
pub(crate) fn perceptron_tree<'py>(
    py: Python<'py>,
    rows: RowsArg<'py>,
    outputs: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    dict(py, TreeState::new(rows.view()?, outputs, seed).map_err(to_python)?)
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
    draws: usize,
    max_leaves: usize,
}

/// Learns from a piece of a stream: the new tree, and which rows were mistakes.
#[pyfunction]
#[pyo3(signature = (x, labels, settings, tree, n_jobs, progress))]
pub(crate) fn perceptron_tree_stream<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    settings: TreeSettings,
    tree: TreeArg<'py>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyArray1<i64>>)> {
    let (rows, labels, before) = (x.view()?, indices("labels", &labels)?, tree.state()?);
    let mut params = TreeParams::new(settings.kernel.0, settings.n_classes, strategy(&settings.split)?);
    params.budget = settings.budget;
    params.child_budget = settings.child_budget;
    params.sample = settings.sample_size;
    params.draws = settings.draws;
    params.max_leaves = settings.max_leaves;
    let cost = Cost::of(rows.rows(), params.budget + rows.rows(), rows.cols());
    let (after, wrong) = run(py, n_jobs, cost, progress.as_ref(), |ctx| {
        tree::partial_fit(&params, &before, rows, &labels, ctx)
    })?;
    Ok((dict(py, after)?, count_array(py, wrong)?))
}

/// Parameters of the conversion of an expansion.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ConvertSettings {
    n_classes: usize,
    split: String,
    budget: usize,
    sample_size: usize,
    draws: usize,
    alpha: Option<f64>,
    seed: u64,
}

/// The tree of an expansion.
#[pyfunction]
#[pyo3(signature = (expansion, x, labels, settings, n_jobs, progress))]
pub(crate) fn perceptron_tree_of<'py>(
    py: Python<'py>,
    expansion: ExpansionArg<'py>,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    settings: ConvertSettings,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (parts, rows, labels) = (expansion.view()?, x.view()?, indices("labels", &labels)?);
    let n_classes = settings.n_classes;
    let mut params = ConvertParams::new(settings.budget, strategy(&settings.split)?);
    params.sample = settings.sample_size;
    params.draws = settings.draws;
    params.refit = settings.alpha;
    params.seed = settings.seed;
    let tree = run(py, n_jobs, Cost::Unknown, progress.as_ref(), |ctx| {
        tree::from_expansion(&parts, rows, &labels, n_classes, &params, ctx)
    })?;
    dict(py, tree)
}

/// A tree made ready for prediction.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct PerceptronTree {
    predictor: TreePredictor,
    budget: usize,
}

#[pymethods]
impl PerceptronTree {
    #[new]
    #[pyo3(signature = (kernel, tree, averaged))]
    fn new(kernel: KernelArg, tree: TreeArg<'_>, averaged: bool) -> PyResult<Self> {
        let state = tree.state()?;
        let largest = state.starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
        let predictor = TreePredictor::new(kernel.0, &state, averaged).map_err(to_python)?;
        Ok(Self { predictor, budget: largest.unwrap_or(0) as usize })
    }

    /// F, (n, q).
    fn decision<'py>(
        &self,
        py: Python<'py>,
        x: RowsArg<'py>,
        n_jobs: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = x.view()?;
        let cost = Cost::of(rows.rows(), self.budget, rows.cols());
        let values = run(py, n_jobs, cost, None, |ctx| self.predictor.decide(rows, ctx))?;
        Ok(PyArray2::from_owned_array(py, values))
    }

    /// Leaf, depth, kernel values and distances of each row, (n, 4).
    fn routes<'py>(
        &self,
        py: Python<'py>,
        x: RowsArg<'py>,
        n_jobs: usize,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let rows = x.view()?;
        let cost = Cost::of(rows.rows(), self.budget, rows.cols());
        let routes = run(py, n_jobs, cost, None, |ctx| self.predictor.routes(rows, ctx))?;
        let mut values = try_with_capacity("the ways of rows", 4 * routes.len()).map_err(to_python)?;
        for way in routes {
            values.extend([way.leaf, way.depth, way.kernel_values, way.distances].map(|value| value as i64));
        }
        matrix_array(py, values, rows.rows(), 4)
    }
}

/// p (m,) of min 1/2 p'Qp - w'p, 0 <= p <= 1, sum p <= most, from p = 0.
#[pyfunction]
#[pyo3(signature = (q, w, most, tolerance))]
pub(crate) fn box_budget_program<'py>(
    py: Python<'py>,
    q: PyReadonlyArray2<'py, f64>,
    w: PyReadonlyArray1<'py, f64>,
    most: f64,
    tolerance: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (q, w) = (matrix_view(&q)?, vector(&w)?);
    let m = q.nrows();
    same_length("columns of Q", m, q.ncols())?;
    same_length("w (one number for each row of Q)", m, w.len())?;
    let p = run(py, 1, Cost::of(m, m, m), None, |_| {
        let mut p = try_zeros("the solution", m)?;
        tree::box_budget_program(&Program { q, w, most }, tolerance, &mut p)?;
        Ok(p)
    })?;
    Ok(PyArray1::from_vec(py, p))
}
