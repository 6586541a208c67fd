//! Conversion between structs of the core and dicts: arrays move into NumPy and are copied out of it, numbers are copied, stop
//! reasons become their names.

use std::sync::Arc;

use numpy::ndarray::{Array2, Array3};
use numpy::{PyArray1, PyArray2, PyArray3, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use svmarrow::context::{Stop, StopReason};
use svmarrow::data::OwnedRows;
use svmarrow::kernels::Kernel;

use crate::array::{
    RowsArg, count_array, count_matrix, counts, index_array, integer_array, owned_matrix, owned_rows,
    owned_vector, rows_object,
};
use crate::params::kernel_tuple;

/// A value of the core as an argument or as the result of a Python function.
pub(crate) struct Object<T>(pub(crate) T);

impl<'py, T: ToPython> IntoPyObject<'py> for Object<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        self.0.to_object(py)
    }
}

impl<'a, 'py, T: FromPython> FromPyObject<'a, 'py> for Object<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        T::from_object("argument", &object).map(Self)
    }
}

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
    Arc<OwnedRows>: |py, value| rows_object(py, Arc::unwrap_or_clone(value))?;
    Vec<u8>: |py, value| PyArray1::from_vec(py, value);
    Vec<bool>: |py, value| PyArray1::from_vec(py, value);
    Vec<i64>: |py, value| PyArray1::from_vec(py, value);
    Vec<f64>: |py, value| PyArray1::from_vec(py, value);
    Vec<u64>: |py, value| count_array(py, value)?;
    Vec<usize>: |py, value| index_array(py, value)?;
    Array2<i8>: |py, value| PyArray2::from_owned_array(py, value);
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

impl<A: ToPython, B: ToPython> ToPython for (A, B) {
    fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        (self.0.to_object(py)?, self.1.to_object(py)?).into_bound_py_any(py)
    }
}

/// A value of the core that is copied from a Python object; `name` is the name of the value in errors.
pub(crate) trait FromPython: Sized {
    fn from_object(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Self>;
}

macro_rules! from_object {
    ($($type:ty: $extracted:ty, |$name:ident, $value:ident| $result:expr;)+) => {$(
        impl FromPython for $type {
            fn from_object($name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
                let $value: $extracted = object.extract()?;
                $result
            }
        }
    )+};
}

from_object! {
    f64: f64, |_name, value| Ok(value);
    u64: u64, |_name, value| Ok(value);
    OwnedRows: RowsArg<'_>, |_name, value| owned_rows(&value);
    Vec<u8>: PyReadonlyArray1<'_, u8>, |_name, value| owned_vector(&value);
    Vec<f64>: PyReadonlyArray1<'_, f64>, |_name, value| owned_vector(&value);
    Vec<u64>: PyReadonlyArray1<'_, i64>, |name, value| counts(name, &value);
    Array2<f64>: PyReadonlyArray2<'_, f64>, |_name, value| owned_matrix(&value);
    Array2<u64>: PyReadonlyArray2<'_, i64>, |name, value| count_matrix(name, &value);
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
                let list = self.into_iter().map(|item| item.to_object(py)).collect::<PyResult<Vec<_>>>()?;
                pyo3::IntoPyObjectExt::into_bound_py_any(list, py)
            }
        }
    )+};
}

/// Structs that become dicts of all their fields and are read from such dicts. Two fields in parentheses are the pair `counters`.
macro_rules! states {
    ($($type:ty: $($field:ident),+ $(, ($seen:ident, $mistakes:ident))?;)+) => {$(
        impl crate::dict::ToPython for $type {
            fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                let dict = crate::dict::fields!(py, self, $($field),+);
                $(dict.set_item("counters", (self.$seen, self.$mistakes))?;)?
                Ok(dict.into_any())
            }
        }

        impl crate::dict::FromPython for $type {
            fn from_object(_: &'static str, dict: &Bound<'_, PyAny>) -> PyResult<Self> {
                $(let ($seen, $mistakes) = dict.get_item("counters")?.extract()?;)?
                Ok(Self {
                    $($field: crate::dict::FromPython::from_object(
                        stringify!($field),
                        &dict.get_item(stringify!($field))?,
                    )?,)+
                    $($seen, $mistakes)?
                })
            }
        }
    )+};
}

pub(crate) use {fields, records, states};
