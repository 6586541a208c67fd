//! The core's error table as Python exceptions: one match, nothing else raises core errors.
//!
//! | core | Python |
//! |---|---|
//! | `Param`, `Shape`, `NotFinite`, `Sparse` | `ValueError` |
//! | `NotPositiveDefinite`, `Indefinite` | `numpy.linalg.LinAlgError` |
//! | `Format` | `svmarrow.exceptions.FormatError`, a `ValueError` |
//! | `Io` | `OSError`, of the subclass of its errno |
//! | `Memory` | `MemoryError` |
//! | `Stopped` by the user | `KeyboardInterrupt` |
//! | `Stopped` by `max_time` | `ValueError` |
//! | `Stopped` by a solver, which has a result then | `svmarrow.exceptions.InternalError` |
//! | a panic | `svmarrow.exceptions.InternalError`, a `RuntimeError` |

use std::any::Any;

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::context::Interruption;

mod python {
    #![allow(missing_docs)]
    pyo3::import_exception!(numpy.linalg, LinAlgError);
    pyo3::import_exception!(svmarrow.exceptions, FormatError);
    pyo3::import_exception!(svmarrow.exceptions, InternalError);
}

/// The exception of an error.
pub(crate) fn to_python(error: Error) -> PyErr {
    match error {
        Error::NotPositiveDefinite { .. } | Error::Indefinite { .. } => {
            python::LinAlgError::new_err(error.to_string())
        }
        Error::Format { .. } => python::FormatError::new_err(error.to_string()),
        Error::Io { ref path, ref source } => match source.raw_os_error() {
            Some(code) => {
                let reason = source.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((code, reason, path.clone().into_os_string()))
            }
            None => PyOSError::new_err(error.to_string()),
        },
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Stopped(Interruption::Interrupted) => PyKeyboardInterrupt::new_err(()),
        Error::Stopped(Interruption::MaxTime) => PyValueError::new_err(
            "max_time was over before there was a result: raise it, or give None for no limit",
        ),
        Error::Stopped(Interruption::MaxIterations) => internal(&error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The exception of a panic: always a fault of this library.
pub(crate) fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let message = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned());
    python::InternalError::new_err(format!("a fault in svmarrow, please report it: {message}"))
}
