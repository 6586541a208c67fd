//! The precision that kernel values are kept in.
//!
//! Machines are solved with kernel values in single precision first, and continue in double precision if rounding errors of
//! the outputs (see `rounding`) exceed what the fit is for ([`Accuracy`]). A machine ends at once in single precision if its
//! coefficients become so large that rounding errors, even independent ones, are many times the limit: unbounded coefficients
//! may grow without end there, since rounded kernel matrices are not positive definite.

use super::problem::DualProblem;
use crate::kernels::{Magnitudes, Precision, Value};
use crate::simd::blas::Stored;

/// Maximum rounding error of outputs with which the conditions of the optimum can be checked, relative to the tolerance.
const MAX_TOLERANCE_SHARE: f64 = 0.25;
/// Rounding errors at which a machine ends at once, relative to the maximum.
const ENDING_ROUNDING: f64 = 16.0;

/// The accuracy that outputs need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Accuracy {
    /// Maximum error of an output by rounding; if it is larger in single precision, double precision is used.
    pub(super) max_rounding: f64,
    /// True if the effect of rounding on the objectives is measured for a certificate.
    pub(super) is_certified: bool,
}

impl Accuracy {
    /// Returns the accuracy at which the conditions of the optimum can be checked.
    pub(super) fn certified(tolerance: f64) -> Self {
        Self { max_rounding: MAX_TOLERANCE_SHARE * tolerance, is_certified: true }
    }

    /// Returns the accuracy of outputs for scores, which need not be more accurate than the solution.
    pub(super) fn of_scores(tolerance: f64) -> Self {
        Self { max_rounding: tolerance, is_certified: false }
    }
}

/// A kernel value as blocks and caches store it.
pub(super) trait KernelValue: Value + Stored {
    /// The precision of the type.
    const PRECISION: Precision;
    /// Ridge of the systems of m free variables, relative to the largest diagonal entry and to sqrt(m): the size of the
    /// rounding errors of the eigenvalues of a kernel matrix or of its factor.
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

/// Returns the sum of (b_i k(x_i, x_i))^2.
pub(super) fn squared_norm(beta: &[f64], diagonal: &[f64]) -> f64 {
    beta.iter().zip(diagonal).map(|(b, d)| (b * d).powi(2)).sum()
}

/// Returns whether rounding errors in single precision are many times `max_rounding`, for coefficients whose products with
/// k(x, x) have this sum of squares.
pub(super) fn exceeds_single_precision<K: KernelValue>(squares: f64, max_rounding: f64) -> bool {
    // Coefficients may have overflowed.
    K::PRECISION == Precision::Single
        && (squares.is_nan()
            || 0.5 * f64::from(f32::EPSILON) * squares.sqrt() > ENDING_ROUNDING * max_rounding)
}

/// Returns the coefficients from which a machine that has stalled in single precision continues in double precision: the
/// present ones, or zeros if they have no upper bounds and may have grown to any size.
pub(super) fn restart_coefficients(problem: &DualProblem) -> Vec<f64> {
    if problem.upper.iter().any(|upper| upper.is_infinite()) {
        return vec![0.0; problem.len()];
    }
    problem.beta.clone()
}

/// Properties of the kernel values of a fit.
#[derive(Clone, Copy)]
pub(super) struct Values {
    /// The precision in which they are computed.
    pub(super) precision: Precision,
    /// The largest value; 0 if it is unknown.
    pub(super) largest: f64,
    /// Maximum error of a value in double precision.
    pub(super) error: f64,
    /// Maximum relative error of a value in double precision, by the scales of its rows.
    pub(super) relative: Option<(f64, f64)>,
}

impl Values {
    pub(super) fn new(precision: Precision, magnitudes: &Magnitudes) -> Self {
        let (largest, error) = magnitudes.in_double();
        Self { precision, largest, error, relative: magnitudes.relative_error_in_double() }
    }

    /// Returns the same values computed in double precision.
    pub(super) fn in_double(self) -> Self {
        Self { precision: Precision::Double, ..self }
    }
}
