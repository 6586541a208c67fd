//! Structs of the core as dicts: arrays move into NumPy, numbers stay what they are, reasons are told by name.

use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use svmarrow::context::StopReason;
use svmarrow::data::OwnedRows;
use svmarrow::kernels::Kernel;

use crate::array::{index_array, rows_object};
use crate::params::kernel_tuple;

/// What Python is given for a value of the core.
pub(crate) trait ForPython {
    fn for_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

macro_rules! for_python {
    ($($type:ty: |$py:ident, $value:ident| $object:expr;)+) => {$(
        impl ForPython for $type {
            fn for_python(self, $py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                let $value = self;
                $object.into_bound_py_any($py)
            }
        }
    )+};
}

for_python! {
    bool: |py, value| value;
    f64: |py, value| value;
    u64: |py, value| value;
    usize: |py, value| value;
    StopReason: |py, value| value.name();
    Kernel: |py, value| kernel_tuple(&value);
    OwnedRows: |py, value| rows_object(py, value)?;
    Vec<f64>: |py, value| PyArray1::from_vec(py, value);
    Vec<usize>: |py, value| index_array(py, value)?;
    Array2<f64>: |py, value| PyArray2::from_owned_array(py, value);
}

impl<T: ForPython> ForPython for Option<T> {
    fn for_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.map_or_else(|| Ok(py.None().into_bound(py)), |value| value.for_python(py))
    }
}

/// A dict of fields of a struct, or of variables, under their own names.
macro_rules! fields {
    ($py:expr, $of:expr, $($field:ident),+) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($field), crate::dict::ForPython::for_python($of.$field, $py)?)?;)+
        dict
    }};
    ($py:expr; $($variable:ident),+) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($variable), crate::dict::ForPython::for_python($variable, $py)?)?;)+
        dict
    }};
}

/// Structs that become dicts of some fields, and lists of them.
macro_rules! records {
    ($($type:ty: $($field:ident),+;)+) => {$(
        impl crate::dict::ForPython for $type {
            fn for_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                Ok(crate::dict::fields!(py, self, $($field),+).into_any())
            }
        }

        impl crate::dict::ForPython for Vec<$type> {
            fn for_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                let list = self.into_iter().map(|one| one.for_python(py)).collect::<PyResult<Vec<_>>>()?; // small: one dict for each stop or size
                pyo3::IntoPyObjectExt::into_bound_py_any(list, py)
            }
        }
    )+};
}

pub(crate) use {fields, records};
