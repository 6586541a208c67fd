//! `svmarrow::expansion`: an expansion made ready for prediction.
//!
//! The vectors stay in NumPy's memory, which the core reads when it packs them and for rows that leave the precision of the
//! packed ones. They must not be written to.

use numpy::ndarray::Array2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use svmarrow::data::Rows;
use svmarrow::expansion::ExpansionView;
use svmarrow::kernels::{Evaluation, PackedExpansion, Partial};

use crate::array::{RowsArg, matrix_view, vector};
use crate::dict::Object;
use crate::error::to_python;
use crate::params::KernelArg;
use crate::run::{Cost, run};

/// f_j(x) = sum_i B[i, j] k(x, z_i) + b_j, its vectors packed for evaluation.
#[pyclass(frozen, module = "svmarrow._core")]
pub(crate) struct Expansion {
    model: PackedExpansion,
    /// The rows that the model was made from.
    vectors: Py<PyAny>,
}

#[pymethods]
impl Expansion {
    #[new]
    fn new(
        vectors: Bound<'_, PyAny>,
        coefficients: PyReadonlyArray2<'_, f64>,
        intercepts: PyReadonlyArray1<'_, f64>,
        kernel: KernelArg,
    ) -> PyResult<Self> {
        let rows: RowsArg<'_> = vectors.extract()?;
        let model = PackedExpansion::new(&view(&rows, &coefficients, &intercepts, &kernel)?);
        Ok(Self { model: model.map_err(to_python)?, vectors: vectors.unbind() })
    }

    /// F, (n, q).
    fn decision(&self, py: Python<'_>, x: RowsArg<'_>, n_jobs: usize) -> PyResult<Object<Array2<f64>>> {
        self.evaluate(py, x.view()?, n_jobs).map(Object)
    }

    /// Returns whether outputs of rows in single precision are computed in double precision.
    fn needs_double(&self, py: Python<'_>) -> PyResult<bool> {
        let vectors: RowsArg<'_> = self.vectors.bind(py).extract()?;
        let vectors = vectors.view()?;
        run(py, 1, Cost::unknown(self.model.len()), None, |ctx| self.model.needs_double(vectors, ctx))
    }

    fn __len__(&self) -> usize {
        self.model.len()
    }

    /// Number of outputs q.
    #[getter]
    fn outputs(&self) -> usize {
        self.model.outputs()
    }
}

impl Expansion {
    /// Returns F, (n, q).
    pub(crate) fn evaluate(&self, py: Python<'_>, rows: Rows<'_>, n_jobs: usize) -> PyResult<Array2<f64>> {
        let cost = Cost::of_outputs(&rows, self.model.len(), self.model.outputs());
        let mut partial = Partial::default();
        if self.model.is_packed_for(rows) {
            match run(py, n_jobs, cost, None, |ctx| self.model.evaluate_packed(rows, ctx))? {
                Evaluation::Complete(outputs) => return Ok(outputs),
                Evaluation::Partial(outputs) => partial = outputs,
            }
        }
        let vectors: RowsArg<'_> = self.vectors.bind(py).extract()?;
        let vectors = vectors.view()?;
        run(py, n_jobs, cost, None, |ctx| self.model.complete(partial, vectors, rows, ctx))
    }
}

/// The weights (q, d) of an expansion of the linear kernel.
#[pyfunction]
pub(crate) fn linear_weights(
    py: Python<'_>,
    vectors: RowsArg<'_>,
    coefficients: PyReadonlyArray2<'_, f64>,
    n_jobs: usize,
) -> PyResult<Object<Array2<f64>>> {
    let (rows, coefficients) = (vectors.view()?, matrix_view(&coefficients)?);
    let cost = Cost::of_rows(&rows, coefficients.ncols());
    run(py, n_jobs, cost, None, |ctx| svmarrow::kernels::linear_weights(rows, coefficients, ctx)).map(Object)
}

/// An expansion, from the tuple `(vectors, coefficients, intercepts, kernel)`.
pub(crate) struct ExpansionArg<'py> {
    vectors: RowsArg<'py>,
    coefficients: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray1<'py, f64>,
    kernel: KernelArg,
}

impl<'py> FromPyObject<'_, 'py> for ExpansionArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (vectors, coefficients, intercepts, kernel) = object.extract()?;
        Ok(Self { vectors, coefficients, intercepts, kernel })
    }
}

impl ExpansionArg<'_> {
    /// The core's view.
    pub(crate) fn view(&self) -> PyResult<ExpansionView<'_>> {
        view(&self.vectors, &self.coefficients, &self.intercepts, &self.kernel)
    }
}

/// The core's view of an expansion in NumPy's memory.
pub(crate) fn view<'a>(
    vectors: &'a RowsArg<'_>,
    coefficients: &'a PyReadonlyArray2<'_, f64>,
    intercepts: &'a PyReadonlyArray1<'_, f64>,
    kernel: &KernelArg,
) -> PyResult<ExpansionView<'a>> {
    let (rows, coefficients) = (vectors.view()?, matrix_view(coefficients)?);
    ExpansionView::new(kernel.0, rows, coefficients, vector(intercepts)?).map_err(to_python)
}
