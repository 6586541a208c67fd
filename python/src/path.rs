//! `svmarrow::path`: a greedy path for Python, and what is read from it.

use numpy::ndarray::{Array2, Array3};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use svmarrow::path::{self, Form, Path, PathView};

use crate::array::{RowsArg, indices, matrix_view, owned_matrix, vector};
use crate::dict::{Object, ToPython, fields};
use crate::params::KernelArg;
use crate::run::{Cost, run};

impl ToPython for Path {
    fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let steps = self.factor.is_none().then_some((self.vector_of_step, self.steps_of_size));
        let penalties = (!self.penalties.is_empty()).then_some(self.penalties);
        let dict = fields!(py, self, order, factor, projections, residual_norms, exact, orthogonal, stop);
        dict.update(fields!(py; steps, penalties).as_mapping())?;
        Ok(dict.into_any())
    }
}

/// The coefficients (size, q) of the first `size` vectors of a path.
#[pyfunction]
pub(crate) fn path_coefficients(
    py: Python<'_>,
    path: PathArg<'_>,
    size: usize,
) -> PyResult<Object<Array2<f64>>> {
    let view = path.view()?;
    let cost = Cost::of(size, size, view.outputs());
    run(py, 1, cost, None, |_| path::path_coefficients(&view, size)).map(Object)
}

/// The vectors of a path: `(vectors, intercepts, kernel)`.
type SelectedArg<'py> = (RowsArg<'py>, PyReadonlyArray1<'py, f64>, KernelArg);

/// The decisions (sizes, n, q) of a path at increasing sizes, every kernel value computed once.
#[pyfunction]
pub(crate) fn path_decisions(
    py: Python<'_>,
    path: PathArg<'_>,
    selected: SelectedArg<'_>,
    x: RowsArg<'_>,
    sizes: PyReadonlyArray1<'_, i64>,
    n_jobs: usize,
) -> PyResult<Object<Array3<f64>>> {
    let (view, (selected, intercepts, kernel)) = (path.view()?, selected);
    let (selected, x) = (selected.view()?, x.view()?);
    let (intercepts, sizes) = (vector(&intercepts)?, indices("sizes", &sizes)?);
    let cost = Cost::of_outputs(&x, view.vectors(), view.outputs().saturating_add(view.vectors()));
    run(py, n_jobs, cost, None, |ctx| {
        path::path_decisions(&kernel.0, selected, &view, intercepts, x, &sizes, ctx)
    })
    .map(Object)
}

/// The outputs (sizes, n, q) of a path at increasing sizes, from the values (n, M) of its functions.
#[pyfunction]
pub(crate) fn path_outputs(
    py: Python<'_>,
    path: PathArg<'_>,
    features: PyReadonlyArray2<'_, f64>,
    sizes: PyReadonlyArray1<'_, i64>,
    n_jobs: usize,
) -> PyResult<Object<Array3<f64>>> {
    let (view, features) = (path.view()?, owned_matrix(&features)?);
    let (sizes, zero) = (indices("sizes", &sizes)?, vec![0.0; view.outputs()]);
    let cost = Cost::of(features.nrows(), view.vectors(), view.vectors().saturating_add(view.outputs()));
    run(py, n_jobs, cost, None, |ctx| path::path_outputs(&view, features, &zero, &sizes, ctx)).map(Object)
}

/// The vector of each step and the number of steps of each size of a path of basic steps.
type StepsArg<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>);

/// The numbers of a path, from the tuple `(factor, projections, steps)`, of which the first or the last is None.
pub(crate) struct PathArg<'py> {
    factor: Option<PyReadonlyArray2<'py, f64>>,
    projections: PyReadonlyArray2<'py, f64>,
    vector_of_step: Vec<usize>,
    steps_of_size: Vec<usize>,
}

impl<'py> FromPyObject<'_, 'py> for PathArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (factor, projections, steps): (Option<_>, _, Option<StepsArg<'py>>) = object.extract()?;
        if factor.is_some() == steps.is_some() {
            return Err(PyValueError::new_err("a path has either a factor or steps"));
        }
        let (vector_of_step, steps_of_size) = match &steps {
            Some((vectors, sizes)) => (indices("vector_of_step", vectors)?, indices("steps_of_size", sizes)?),
            None => Default::default(),
        };
        Ok(Self { factor, projections, vector_of_step, steps_of_size })
    }
}

impl PathArg<'_> {
    /// The core's view.
    fn view(&self) -> PyResult<PathView<'_>> {
        let (vector_of_step, steps_of_size) = (&self.vector_of_step, &self.steps_of_size);
        let form = match &self.factor {
            Some(factor) => Form::Factored(matrix_view(factor)?),
            None => Form::Basic { vector_of_step, steps_of_size },
        };
        Ok(PathView { projections: matrix_view(&self.projections)?, form })
    }
}
