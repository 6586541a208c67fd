//! NumPy arrays in by view, results out by move.
//!
//! A dense matrix is viewed as it lies, as an ndarray view; which layouts of it the core takes is the core's to say.
//!
//! A sparse matrix is the tuple `(data, indices, indptr, shape)`; the core checks its structure.

use numpy::ndarray::{Array2, ArrayView2};
use numpy::{
    Element, PyArray1, PyArray2, PyArrayDescrMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use svmarrow::Error;
use svmarrow::data::{CsrView, IndexSlice, OwnedRows, Rows};
use svmarrow::memory::{TryCollect, TryToVec, try_matrix, try_to_matrix, try_with_capacity};

use crate::error::to_python;

/// A dense matrix in NumPy's memory.
pub(crate) struct Dense<'py, T: Element>(PyReadonlyArray2<'py, T>);

impl<'py, T: Element + svmarrow::data::DenseElement> Dense<'py, T> {
    fn new(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        if array.ndim() != 2 {
            return Err(PyValueError::new_err(format!(
                "a matrix needs 2 dimensions, this array has {}",
                array.ndim()
            )));
        }
        // ndarray counts strides in elements. A strided view with no array behind it was made by hand
        // (`as_strided`), and nothing says that its rows lie in memory at all.
        let counts_elements = |stride: &isize| stride % size_of::<T>() as isize == 0;
        let viewed = array.is_aligned()
            && (array.is_c_contiguous()
                || array.strides().iter().all(counts_elements)
                    && array.getattr(intern!(array.py(), "base"))?.cast::<PyUntypedArray>().is_ok());
        if viewed {
            Ok(Self(array.extract()?))
        } else {
            Err(PyValueError::new_err(
                "a dense matrix that is not aligned, or whose memory no array owns; pass it through \
                 numpy.ascontiguousarray",
            ))
        }
    }

    fn view(&self) -> PyResult<Rows<'_>> {
        self.0.as_array().try_into().map_err(to_python)
    }
}

/// Indices of a sparse matrix.
#[derive(FromPyObject)]
pub(crate) enum Indices<'py> {
    /// 32-bit.
    I32(PyReadonlyArray1<'py, i32>),
    /// 64-bit.
    I64(PyReadonlyArray1<'py, i64>),
}

impl Indices<'_> {
    fn view(&self) -> PyResult<IndexSlice<'_>> {
        Ok(match self {
            Self::I32(array) => IndexSlice::I32(vector(array)?),
            Self::I64(array) => IndexSlice::I64(vector(array)?),
        })
    }
}

/// A sparse matrix.
pub(crate) struct Csr<'py, T: Element> {
    data: PyReadonlyArray1<'py, T>,
    indices: Indices<'py>,
    indptr: Indices<'py>,
    rows: usize,
    cols: usize,
}

impl<T: Element + svmarrow::data::Element> Csr<'_, T> {
    fn view(&self) -> PyResult<CsrView<'_, T>> {
        let (indptr, indices) = (self.indptr.view()?, self.indices.view()?);
        let view = CsrView::new(indptr, indices, vector(&self.data)?, self.cols).map_err(to_python)?;
        Error::check_len("rows of a sparse matrix (from indptr)", self.rows, view.rows())
            .map_err(to_python)?;
        Ok(view)
    }
}

/// A matrix of rows in any layout and precision that the core takes.
pub(crate) enum RowsArg<'py> {
    /// Dense bytes.
    U8(Dense<'py, u8>),
    /// Dense single precision.
    F32(Dense<'py, f32>),
    /// Dense double precision.
    F64(Dense<'py, f64>),
    /// Sparse single precision.
    Csr32(Csr<'py, f32>),
    /// Sparse double precision.
    Csr64(Csr<'py, f64>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for RowsArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return Self::dense(&array);
        }
        let tuple = object.cast::<PyTuple>().map_err(|_| {
            PyTypeError::new_err("rows are a NumPy array or a tuple (data, indices, indptr, shape)")
        })?;
        let (data, indices, indptr, (rows, cols)): (
            Bound<'py, PyUntypedArray>,
            Indices<'py>,
            Indices<'py>,
            (usize, usize),
        ) = tuple.extract()?;
        if let Ok(data) = data.extract::<PyReadonlyArray1<'py, f64>>() {
            Ok(Self::Csr64(Csr { data, indices, indptr, rows, cols }))
        } else if let Ok(data) = data.extract::<PyReadonlyArray1<'py, f32>>() {
            Ok(Self::Csr32(Csr { data, indices, indptr, rows, cols }))
        } else {
            Err(PyTypeError::new_err(format!("sparse rows are float32 or float64, not {}", data.dtype())))
        }
    }
}

impl<'py> RowsArg<'py> {
    fn dense(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let dtype = array.dtype();
        let py = array.py();
        if dtype.is_equiv_to(&numpy::dtype::<f64>(py)) {
            Dense::new(array).map(Self::F64)
        } else if dtype.is_equiv_to(&numpy::dtype::<f32>(py)) {
            Dense::new(array).map(Self::F32)
        } else if dtype.is_equiv_to(&numpy::dtype::<u8>(py)) {
            Dense::new(array).map(Self::U8)
        } else {
            Err(PyTypeError::new_err(format!("dense rows are float32, float64 or uint8, not {dtype}")))
        }
    }

    /// The view, with its structure checked.
    pub(crate) fn view(&self) -> PyResult<Rows<'_>> {
        Ok(match self {
            Self::U8(dense) => dense.view()?,
            Self::F32(dense) => dense.view()?,
            Self::F64(dense) => dense.view()?,
            Self::Csr32(csr) => csr.view()?.into(),
            Self::Csr64(csr) => csr.view()?.into(),
        })
    }
}

/// The elements of a contiguous vector.
pub(crate) fn vector<'a, T: Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("a vector must be contiguous and aligned"))
}

/// A copy of a vector.
pub(crate) fn owned_vector<T: Element + Clone>(array: &PyReadonlyArray1<'_, T>) -> PyResult<Vec<T>> {
    vector(array)?.try_to_vec().map_err(to_python)
}

/// A copy of a matrix.
pub(crate) fn owned_matrix<T: Element + Copy>(array: &PyReadonlyArray2<'_, T>) -> PyResult<Array2<T>> {
    try_to_matrix(matrix_view(array)?).map_err(to_python)
}

/// Collects numbers that Python or the core takes.
pub(crate) fn collected<T>(numbers: impl Iterator<Item = T>) -> PyResult<Vec<T>> {
    numbers.try_collect_vec().map_err(to_python)
}

/// Fills a matrix for Python or for the core with the values of a function of row and column.
pub(crate) fn filled_matrix<T>(
    shape: (usize, usize),
    value: impl FnMut((usize, usize)) -> T,
) -> PyResult<Array2<T>> {
    try_matrix(shape, value).map_err(to_python)
}

/// A copy of all rows of a view.
pub(crate) fn owned_rows(rows: &RowsArg<'_>) -> PyResult<OwnedRows> {
    let view = rows.view()?;
    let all = collected(0..view.rows())?;
    view.gather(&all).map_err(to_python)
}

/// A C-ordered matrix as the core takes it.
pub(crate) fn matrix_view<'a, T: Element>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<ArrayView2<'a, T>> {
    if array.is_empty() {
        // NumPy's strides of an empty matrix are zeros, which ndarray takes for overlapping elements.
        let shape = array.as_array().dim();
        ArrayView2::from_shape(shape, &[]).map_err(|e| PyValueError::new_err(e.to_string()))
    } else if array.is_c_contiguous() && array.is_aligned() {
        Ok(array.as_array())
    } else {
        Err(PyValueError::new_err("a matrix of numbers must be C-ordered and aligned"))
    }
}

/// Labels or indices, which must not be negative.
pub(crate) fn indices(name: &'static str, array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    let mut all = try_with_capacity(name, array.len()).map_err(to_python)?;
    for &index in vector(array)? {
        all.push(not_negative(name, index)? as usize);
    }
    Ok(all)
}

/// Numbers that count rows.
pub(crate) fn counts(name: &'static str, array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u64>> {
    collected(indices(name, array)?.into_iter().map(|i| i as u64))
}

/// A matrix of numbers that count rows or nodes.
pub(crate) fn count_matrix(name: &'static str, array: &PyReadonlyArray2<'_, i64>) -> PyResult<Array2<u64>> {
    let values = matrix_view(array)?;
    values.iter().try_for_each(|&value| not_negative(name, value).map(drop))?;
    filled_matrix(values.dim(), |at| values[at] as u64)
}

fn not_negative(name: &'static str, value: i64) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| to_python(Error::param(name, value, "free of negative numbers")))
}

/// A vector of indices for Python.
pub(crate) fn index_array(py: Python<'_>, values: Vec<usize>) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let values = collected(values.into_iter().map(|i| i as i64))?;
    Ok(PyArray1::from_vec(py, values))
}

/// A vector of counts for Python.
pub(crate) fn count_array(py: Python<'_>, values: Vec<u64>) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let values = collected(values.into_iter().map(|i| i as i64))?;
    Ok(PyArray1::from_vec(py, values))
}

/// A matrix of counts for Python.
pub(crate) fn integer_array<'py>(
    py: Python<'py>,
    values: &Array2<u64>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let values = filled_matrix(values.dim(), |at| values[at] as i64)?;
    Ok(PyArray2::from_owned_array(py, values))
}

/// A row-major matrix for Python; the memory moves.
pub(crate) fn matrix_array<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    cols: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let array =
        Array2::from_shape_vec((rows, cols), values).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(PyArray2::from_owned_array(py, array))
}

/// Owned rows for Python: an array, or a tuple `(data, indices, indptr, shape)`; the memory moves.
pub(crate) fn rows_object(py: Python<'_>, rows: OwnedRows) -> PyResult<Bound<'_, PyAny>> {
    fn csr<T: Element>(
        py: Python<'_>,
        values: Vec<T>,
        indices: Vec<i64>,
        indptr: Vec<i64>,
        cols: usize,
    ) -> PyResult<Bound<'_, PyAny>> {
        let shape = (indptr.len().saturating_sub(1), cols);
        let (indices, indptr) = (PyArray1::from_vec(py, indices), PyArray1::from_vec(py, indptr));
        Ok((PyArray1::from_vec(py, values), indices, indptr, shape).into_pyobject(py)?.into_any())
    }
    Ok(match rows {
        OwnedRows::DenseU8 { 0: array, .. } => PyArray2::from_owned_array(py, array).into_any(),
        OwnedRows::DenseF32 { 0: array, .. } => PyArray2::from_owned_array(py, array).into_any(),
        OwnedRows::DenseF64 { 0: array, .. } => PyArray2::from_owned_array(py, array).into_any(),
        OwnedRows::CsrF32 { indptr, indices, values, cols, .. } => csr(py, values, indices, indptr, cols)?,
        OwnedRows::CsrF64 { indptr, indices, values, cols, .. } => csr(py, values, indices, indptr, cols)?,
        _ => {
            let message = "a layout that this version of the Python package does not know";
            return Err(to_python(Error::Sparse(message.to_owned())));
        }
    })
}

/// Checks that two counts agree.
pub(crate) fn same_length(what: &'static str, expected: usize, actual: usize) -> PyResult<()> {
    Error::check_len(what, expected, actual).map_err(to_python)
}
