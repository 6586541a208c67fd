//! Kernels and enumerations: from what Python passes to the core's closed types.

use pyo3::prelude::*;
use svmarrow::kernels::Kernel;
use svmarrow::reduced_set::Coding;
use svmarrow::{Error, Result};

use crate::error::to_python;

/// A kernel, from the tuple `(name, gamma, coef0, degree)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelArg(pub(crate) Kernel);

impl<'a, 'py> FromPyObject<'a, 'py> for KernelArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (name, gamma, coef0, degree): (String, f64, f64, i64) = object.extract()?;
        let degree = u32::try_from(degree)
            .map_err(|_| to_python(Error::param("degree", degree, "between 0 and 4294967295")))?;
        Kernel::from_name(&name, gamma, coef0, degree).map(Self).map_err(to_python)
    }
}

/// Returns the meaning of outputs by its name.
pub(crate) fn coding_of(name: &str) -> Result<Coding> {
    Ok(match name {
        "values" => Coding::Values,
        "binary" => Coding::Sign,
        "ovr" => Coding::Largest,
        "ovo" => Coding::Pairs,
        other => return Err(Error::param("coding", other, "one of values, binary, ovr, ovo")),
    })
}

/// Returns the tuple of a kernel; a parameter that the kernel does not have takes its default.
pub(crate) fn kernel_tuple(kernel: &Kernel) -> (&'static str, f64, f64, u32) {
    let (gamma, coef0, degree) = match *kernel {
        Kernel::Polynomial { degree, gamma, coef0 } => (gamma, coef0, degree),
        Kernel::Sigmoid { gamma, coef0 } => (gamma, coef0, 3),
        Kernel::Rbf { gamma }
        | Kernel::Laplacian { gamma }
        | Kernel::ChiSquared { gamma }
        | Kernel::Matern { gamma, .. } => (gamma, 0.0, 3),
        _ => (1.0, 0.0, 3),
    };
    (kernel.name(), gamma, coef0, degree)
}
