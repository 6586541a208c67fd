//! Converts structs of the core to dicts: arrays move into NumPy, numbers are copied, stop reasons become their names.

use numpy::ndarray::{Array2, Array3};
use numpy::{PyArray1, PyArray2, PyArray3};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use svmarrow::context::{Stop, StopReason};
use svmarrow::data::OwnedRows;
use svmarrow::kernels::Kernel;

use crate::array::{count_array, index_array, integer_array, rows_object};
use crate::params::kernel_tuple;

/// A value of the core that converts to a Python object.
pub(crate) trait ToPython {
    fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

macro_rules! to_object {
    ($($type:ty: |$py:ident, $value:ident| $object:expr;)+) => {$(
        impl ToPython for $type {
            fn to_object(self, $py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                let $value = self;
                $object.into_bound_py_any($py)
            }
        }
    )+};
}

to_object! {
    bool: |py, value| value;
    f64: |py, value| value;
    u64: |py, value| value;
    usize: |py, value| value;
    Stop: |py, value| value.reason.name();
    StopReason: |py, value| value.name();
    Kernel: |py, value| kernel_tuple(&value);
    OwnedRows: |py, value| rows_object(py, value)?;
    Vec<u8>: |py, value| PyArray1::from_vec(py, value);
    Vec<f64>: |py, value| PyArray1::from_vec(py, value);
    Vec<u64>: |py, value| count_array(py, value)?;
    Vec<usize>: |py, value| index_array(py, value)?;
    Array2<f32>: |py, value| PyArray2::from_owned_array(py, value);
    Array2<f64>: |py, value| PyArray2::from_owned_array(py, value);
    Array2<u64>: |py, value| integer_array(py, &value)?;
    Array3<f64>: |py, value| PyArray3::from_owned_array(py, value);
}

impl<T: ToPython> ToPython for Option<T> {
    fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.map_or_else(|| Ok(py.None().into_bound(py)), |value| value.to_object(py))
    }
}

/// A dict of fields of a struct, or of variables, under their own names.
macro_rules! fields {
    ($py:expr, $of:expr, $($field:ident),+) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($field), crate::dict::ToPython::to_object($of.$field, $py)?)?;)+
        dict
    }};
    ($py:expr; $($variable:ident),+) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($variable), crate::dict::ToPython::to_object($variable, $py)?)?;)+
        dict
    }};
}

/// Structs that become dicts of some fields, and lists of them.
macro_rules! records {
    ($($type:ty: $($field:ident),+;)+) => {$(
        impl crate::dict::ToPython for $type {
            fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                Ok(crate::dict::fields!(py, self, $($field),+).into_any())
            }
        }

        impl crate::dict::ToPython for Vec<$type> {
            fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                let list = self.into_iter().map(|one| one.to_object(py)).collect::<PyResult<Vec<_>>>()?; // small: one dict for each stop or size
                pyo3::IntoPyObjectExt::into_bound_py_any(list, py)
            }
        }
    )+};
}

pub(crate) use {fields, records};
