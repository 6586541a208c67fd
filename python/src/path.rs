//! `svmarrow::path`: a greedy path for Python, and what is read from it.

use numpy::ndarray::Array3;
use numpy::{PyArray1, PyArray2, PyArray3, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use svmarrow::path::{self, Form, Path, Steps};

use crate::array::{RowsArg, index_array, indices, matrix, matrix_array, same_length, vector};
use crate::params::KernelArg;
use crate::run::{Cost, run};

/// A path for Python.
pub(crate) fn path_dict(py: Python<'_>, path: Path, q: usize) -> PyResult<Bound<'_, PyDict>> {
    let m = path.order.len();
    let basic = path.factor.is_empty();
    let rows = path.turns.len();
    let result = PyDict::new(py);
    result.set_item("order", index_array(py, path.order))?;
    result.set_item("factor", if basic { None } else { Some(matrix_array(py, path.factor, m, m)?) })?;
    result.set_item("projections", matrix_array(py, path.projections, rows, q)?)?;
    let steps = basic.then(|| (index_array(py, path.turns), index_array(py, path.ends)));
    result.set_item("steps", steps)?;
    result.set_item("residual_norms", PyArray1::from_vec(py, path.residual_norms))?;
    let penalties = (!path.penalties.is_empty()).then(|| PyArray1::from_vec(py, path.penalties));
    result.set_item("penalties", penalties)?;
    result.set_item("exact", path.exact)?;
    result.set_item("orthogonal", path.orthogonal)?;
    result.set_item("stop", path.stop.reason.name())?;
    Ok(result)
}

/// The coefficients (size, q) of the first `size` vectors of a path.
#[pyfunction]
#[pyo3(signature = (path, size))]
pub(crate) fn path_coefficients<'py>(
    py: Python<'py>,
    path: PathArg<'py>,
    size: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (factor, projections, steps) = path;
    let owned = OwnedSteps::new(steps.as_ref())?;
    let steps = path_steps(factor.as_ref(), &projections, owned.as_ref())?;
    let q = steps.outputs;
    let values = run(py, 1, Cost::of(size, size, q), None, |_, _| path::path_coefficients(&steps, size))?;
    matrix_array(py, values, size, q)
}

/// The vectors of a path: `(vectors, intercepts, kernel)`.
type KeptArg<'py> = (RowsArg<'py>, PyReadonlyArray1<'py, f64>, KernelArg);

/// The numbers of a path: `(factor, projections, steps)`, of which the first or the last is None.
type PathArg<'py> = (Option<PyReadonlyArray2<'py, f64>>, PyReadonlyArray2<'py, f64>, Option<StepsArg<'py>>);

/// The decisions (sizes, n, q) of a path at increasing sizes, every kernel value computed once.
#[pyfunction]
#[pyo3(signature = (path, kept, x, sizes, n_jobs))]
pub(crate) fn path_decisions<'py>(
    py: Python<'py>,
    path: PathArg<'py>,
    kept: KeptArg<'py>,
    x: RowsArg<'py>,
    sizes: PyReadonlyArray1<'py, i64>,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let ((factor, projections, steps), (kept, intercepts, kernel)) = (path, kept);
    let (kept, x) = (kept.view()?, x.view()?);
    let owned = OwnedSteps::new(steps.as_ref())?;
    let steps = path_steps(factor.as_ref(), &projections, owned.as_ref())?;
    let (m, q) = (steps.vectors, steps.outputs);
    let (intercepts, sizes) = (vector(&intercepts)?, indices("sizes", &sizes)?);
    same_length("kept vectors of a path", m, kept.rows())?;
    same_length("intercepts of a path", q, intercepts.len())?;
    let cost = Cost::of(x.rows(), m, x.cols().saturating_add(m));
    let values = run(py, n_jobs, cost, None, |_, par| {
        path::path_decisions(&kernel.0, kept, &steps, intercepts, x, &sizes, par)
    })?;
    let values = Array3::from_shape_vec((sizes.len(), x.rows(), q), values)
        .map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(PyArray3::from_owned_array(py, values))
}

pub(crate) type PathParts<'a> = (&'a [f64], &'a [f64], usize, usize);

pub(crate) fn path_parts<'a>(
    factor: &'a PyReadonlyArray2<'_, f64>,
    projections: &'a PyReadonlyArray2<'_, f64>,
) -> PyResult<PathParts<'a>> {
    let ((factor, m, columns), (projections, rows, q)) = (matrix(factor)?, matrix(projections)?);
    same_length("columns of the factor of a path", m, columns)?;
    same_length("rows of the projections of a path", m, rows)?;
    Ok((factor, projections, m, q))
}

/// `turns` and `ends` of a path of basic steps.
type StepsArg<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>);

struct OwnedSteps {
    turns: Vec<usize>,
    ends: Vec<usize>,
}

impl OwnedSteps {
    fn new(steps: Option<&StepsArg<'_>>) -> PyResult<Option<Self>> {
        steps
            .map(|(turns, ends)| Ok(Self { turns: indices("turns", turns)?, ends: indices("ends", ends)? }))
            .transpose()
    }
}

fn path_steps<'a>(
    factor: Option<&'a PyReadonlyArray2<'_, f64>>,
    projections: &'a PyReadonlyArray2<'_, f64>,
    steps: Option<&'a OwnedSteps>,
) -> PyResult<Steps<'a>> {
    match (factor, steps) {
        (Some(factor), None) => {
            let (factor, projections, vectors, outputs) = path_parts(factor, projections)?;
            Ok(Steps { vectors, outputs, projections, form: Form::Factored(factor) })
        }
        (None, Some(OwnedSteps { turns, ends })) => {
            let (projections, rows, outputs) = matrix(projections)?;
            same_length("rows of the changes of a path", turns.len(), rows)?;
            Ok(Steps { vectors: ends.len(), outputs, projections, form: Form::Basic { turns, ends } })
        }
        _ => Err(PyValueError::new_err("a path has either a factor or steps")),
    }
}
