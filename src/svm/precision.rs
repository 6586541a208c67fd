//! The precision that kernel values are kept in.
//!
//! Machines are solved with kernel values in single precision first, and go on in double precision where these hide the
//! optimum (see `rounding`). A machine whose coefficients become so large that roundings, even if they were independent of
//! each other, are a few times the tolerance ends in single precision at once: coefficients without bounds may grow for ever
//! there, since rounded kernel matrices are not positive definite.

use super::problem::DualProblem;
use crate::error::Result;
use crate::kernels::{Magnitudes, Precision, Value};
use crate::memory::{TryToVec, try_vec};
use crate::simd::blas::Stored;

/// Times the tolerance that the roundings of single precision may be before a machine ends there.
const HOPELESS: f64 = 4.0;

/// A kernel value as blocks and caches keep it.
pub(super) trait KernelValue: Value + Stored {
    /// Its precision.
    const PRECISION: Precision;
    /// Ridge of the systems of the unbounded variables, relative to the largest diagonal entry and to sqrt(m): the size of
    /// what rounding adds to the eigenvalues of a kernel matrix, in its values or in its factor.
    const RIDGE: f64;
}

impl KernelValue for f32 {
    const PRECISION: Precision = Precision::Single;
    const RIDGE: f64 = 1e-7;
}

impl KernelValue for f64 {
    const PRECISION: Precision = Precision::Double;
    const RIDGE: f64 = 1e-13;
}

/// Returns whether kernel values in single precision are of no use to coefficients that are to be found to a tolerance.
pub(super) fn is_hopeless<K: KernelValue>(beta: &[f64], diagonal: &[f64], tolerance: f64) -> bool {
    K::PRECISION == Precision::Single && {
        let squares: f64 = beta.iter().zip(diagonal).map(|(b, d)| (b * d) * (b * d)).sum();
        // Coefficients may have overflowed.
        squares.is_nan() || 0.5 * f64::from(f32::EPSILON) * squares.sqrt() > HOPELESS * tolerance
    }
}

/// Returns the coefficients from which a machine that single precision has stalled continues in double precision: those
/// that it has, or zeros where it has unbounded ones, which may have grown to any size.
pub(super) fn restart(problem: &DualProblem) -> Result<Vec<f64>> {
    if problem.upper.iter().any(|upper| upper.is_infinite()) {
        return try_vec![0.0; problem.len()];
    }
    problem.beta.try_to_vec()
}

/// Kernel values of a fit: the precision to compute them in, the largest, and the error of one in double precision.
#[derive(Clone, Copy)]
pub(super) struct Values {
    pub(super) precision: Precision,
    pub(super) largest: f64,
    pub(super) error: f64,
    pub(super) relative: Option<(f64, f64)>,
}

impl Values {
    pub(super) fn new(precision: Precision, magnitudes: &Magnitudes) -> Self {
        let (largest, error) = magnitudes.in_double();
        Self { precision, largest, error, relative: magnitudes.relative_error_in_double() }
    }

    /// The same in double precision.
    pub(super) fn in_double(self) -> Self {
        Self { precision: Precision::Double, ..self }
    }
}
