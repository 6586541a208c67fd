//! `svmarrow::perceptron::tree`: trees as dicts of arrays, and made ready for prediction.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::Error;
use svmarrow::perceptron::tree::{
    self, ConvertParams, Program, Strategy, TreeParams, TreePredictor, TreeState,
};

use crate::array::{RowsArg, indices, matrix, matrix_array, rows_object, same_length, vector};
use crate::error::to_python;
use crate::expansion;
use crate::params::KernelArg;
use crate::perceptron::{count_array, counts, owned};
use crate::run::{Cost, run};

fn strategy(name: &str) -> PyResult<Strategy> {
    Strategy::from_name(name).ok_or_else(|| {
        let rule = "'wpq', 'zpq', or rndw, bal, ent or went with rnds, inds or opts, as in 'bal-opts'";
        to_python(Error::param("split", format!("{name:?}"), rule))
    })
}

/// A tree, from the dict that [`dict`] makes.
fn state(dict: &Bound<'_, PyDict>) -> PyResult<TreeState> {
    let item = |name: &'static str| {
        dict.get_item(name)?.ok_or_else(|| to_python(Error::param("tree", name, "in the arrays of a tree")))
    };
    let count = |name: &'static str| -> PyResult<Vec<u64>> { counts(name, &item(name)?.extract()?) };
    let flat = |name: &'static str| -> PyResult<Vec<f64>> {
        let array: PyReadonlyArray2<'_, f64> = item(name)?.extract()?;
        Ok(matrix(&array)?.0.to_vec())
    };
    let intercepts: PyReadonlyArray2<'_, f64> = item("intercepts")?.extract()?;
    let (intercepts, _, outputs) = matrix(&intercepts)?;
    let kinds: PyReadonlyArray1<'_, u8> = item("kinds")?.extract()?;
    let thresholds: PyReadonlyArray1<'_, f64> = item("thresholds")?.extract()?;
    let children: PyReadonlyArray2<'_, i64> = item("children")?.extract()?;
    let children = matrix(&children)?.0.iter().map(|&c| u64::try_from(c).unwrap_or(u64::MAX)).collect();
    let (seen, mistakes) = item("counters")?.extract()?;
    Ok(TreeState {
        rows: owned(&item("rows")?.extract::<RowsArg<'_>>()?)?,
        outputs,
        kinds: vector(&kinds)?.to_vec(),
        children,
        thresholds: vector(&thresholds)?.to_vec(),
        starts: count("starts")?,
        members: count("members")?,
        weights: flat("weights")?,
        directions: flat("directions")?,
        intercepts: intercepts.to_vec(),
        sample_starts: count("sample_starts")?,
        sample: count("sample")?,
        sample_labels: count("sample_labels")?,
        leaf_seen: count("leaf_seen")?,
        random: item("random")?.extract()?,
        seen,
        mistakes,
    })
}

/// The arrays of a tree.
fn dict(py: Python<'_>, tree: TreeState) -> PyResult<Bound<'_, PyDict>> {
    let (nodes, q, d) = (tree.kinds.len(), tree.outputs, tree.rows.view().cols());
    let (members, linear) = (tree.members.len(), tree.directions.len() / d.max(1));
    let children = tree.children.into_iter().map(|c| c as i64).collect();
    let result = PyDict::new(py);
    result.set_item("rows", rows_object(py, tree.rows)?)?;
    result.set_item("kinds", PyArray1::from_vec(py, tree.kinds))?;
    result.set_item("children", matrix_array::<i64>(py, children, nodes, 2)?)?;
    result.set_item("thresholds", PyArray1::from_vec(py, tree.thresholds))?;
    result.set_item("starts", count_array(py, tree.starts))?;
    result.set_item("members", count_array(py, tree.members))?;
    result.set_item("weights", matrix_array(py, tree.weights, members, q)?)?;
    result.set_item("directions", matrix_array(py, tree.directions, linear, d)?)?;
    result.set_item("intercepts", matrix_array(py, tree.intercepts, nodes, q)?)?;
    result.set_item("sample_starts", count_array(py, tree.sample_starts))?;
    result.set_item("sample", count_array(py, tree.sample))?;
    result.set_item("sample_labels", count_array(py, tree.sample_labels))?;
    result.set_item("leaf_seen", count_array(py, tree.leaf_seen))?;
    result.set_item("random", tree.random)?;
    result.set_item("counters", (tree.seen, tree.mistakes))?;
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
    dict(py, TreeState::new(rows.view()?, outputs, seed))
}

/// Learns from a piece of a stream: the new tree, and which rows were mistakes.
#[pyfunction]
#[pyo3(signature = (x, labels, n_classes, kernel, split, budget, child_budget, sample, draws, max_leaves, tree, n_jobs, progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn perceptron_tree_stream<'py>(
    py: Python<'py>,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    n_classes: usize,
    kernel: KernelArg,
    split: &str,
    budget: usize,
    child_budget: usize,
    sample: usize,
    draws: usize,
    max_leaves: usize,
    tree: Bound<'py, PyDict>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyArray1<i64>>)> {
    let rows = x.view()?;
    let labels = indices("labels", &labels)?;
    let params = TreeParams {
        kernel: kernel.0,
        classes: n_classes,
        budget,
        child_budget,
        sample,
        draws,
        max_leaves,
        strategy: strategy(split)?,
    };
    let before = state(&tree)?;
    let cost = Cost::of(rows.rows(), budget + rows.rows(), rows.cols());
    let (after, wrong) = run(py, n_jobs, cost, progress.as_ref(), |monitor, par| {
        tree::partial_fit(&params, &before, rows, &labels, monitor, par)
    })?;
    Ok((dict(py, after)?, count_array(py, wrong)))
}

/// The tree of an expansion.
#[pyfunction]
#[pyo3(signature = (vectors, coefficients, intercepts, kernel, x, labels, n_classes, split, budget, sample, draws, refit, seed, n_jobs, progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn perceptron_tree_of<'py>(
    py: Python<'py>,
    vectors: RowsArg<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray1<'py, f64>,
    kernel: KernelArg,
    x: RowsArg<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    n_classes: usize,
    split: &str,
    budget: usize,
    sample: usize,
    draws: usize,
    refit: Option<f64>,
    seed: u64,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let parts = expansion::view(&vectors, &coefficients, &intercepts, &kernel)?;
    let (rows, labels) = (x.view()?, indices("labels", &labels)?);
    let params = ConvertParams { budget, sample, draws, strategy: strategy(split)?, refit, seed };
    let tree = run(py, n_jobs, Cost::Unknown, progress.as_ref(), |monitor, par| {
        tree::from_expansion(&parts, rows, &labels, n_classes, &params, monitor, par)
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
    fn new(kernel: KernelArg, tree: &Bound<'_, PyDict>) -> PyResult<Self> {
        let state = state(tree)?;
        let largest = state.starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
        let predictor = TreePredictor::new(kernel.0, &state).map_err(to_python)?;
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
        let values = run(py, n_jobs, cost, None, |_, par| self.predictor.decide(rows, par))?;
        matrix_array(py, values, rows.rows(), self.predictor.outputs())
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
        let routes = run(py, n_jobs, cost, None, |_, par| self.predictor.routes(rows, par))?;
        let values = routes
            .into_iter()
            .flat_map(|way| [way.leaf, way.depth, way.kernel_values, way.distances])
            .map(|value| value as i64)
            .collect();
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
    let ((q, m, columns), w) = (matrix(&q)?, vector(&w)?);
    same_length("columns of Q", m, columns)?;
    same_length("w (one number for each row of Q)", m, w.len())?;
    let p = run(py, 1, Cost::of(m, m, m), None, |_, _| {
        let mut p = vec![0.0; m];
        tree::box_budget_program(&Program { q, w, most }, tolerance, &mut p);
        Ok(p)
    })?;
    Ok(PyArray1::from_vec(py, p))
}
