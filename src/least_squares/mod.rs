//! Regularized least squares (Rifkin 2002, chapter 3): f minimises
//!
//! ```text
//! sum_i (y_i - f(x_i))^2 + alpha ||f||^2,     f(x) = sum_i c_i k(x, x_i) + b,     (K + alpha I) c = y - b
//! ```
//!
//! for all outputs at once, alpha = lambda n. Where rows have weights W, squares are weighted and alpha W^-1 is in the
//! place of alpha I. The system's matrix is that of no output, so one factorisation serves all.
//!
//! | file | holds |
//! |---|---|
//! | `exact` | the system by Cholesky factorisation |
//! | `spectral` | many alphas from one eigendecomposition |
//! | `iterative` | the system by conjugate gradients, the kernel matrix never stored |
//! | `linear` | the linear kernel on many sparse columns, by conjugate gradients |
//! | `low_rank` | coefficients at a few points, from sums over rows |
//! | `selection` | points chosen by the kernel matrix |
//! | `leave_one_out` | exact values from the diagonal of the inverse, cross-validation scores, bounds |

pub mod exact;
pub mod iterative;
pub mod leave_one_out;
pub mod linear;
pub mod low_rank;
pub mod selection;
pub mod spectral;

pub use exact::{Options, PathPoint, Solution, solve, solve_path};
pub use leave_one_out::LeaveOneOut;
pub use spectral::Spectrum;

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::KernelFunction;

/// What is to be fitted.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The kernel.
    pub kernel: KernelFunction<'a>,
    /// The n training rows.
    pub rows: Rows<'a>,
    /// Targets, (n, q) row-major.
    pub targets: &'a [f64],
    /// Number of outputs q.
    pub outputs: usize,
    /// Whether a constant that is not penalised is fitted too.
    pub fit_intercept: bool,
    /// Positive weights of the squares, (n,); none is one for each.
    pub weights: Option<&'a [f64]>,
}

impl Problem<'_> {
    /// Checks sizes and numbers.
    pub fn check(&self) -> Result<()> {
        let n = self.rows.rows();
        if n == 0 || self.outputs == 0 {
            return Err(Error::param(
                "targets",
                format!("{n} x {}", self.outputs),
                "of a row and an output at least",
            ));
        }
        Error::check_len("targets (rows times outputs)", n * self.outputs, self.targets.len())?;
        if let Some(at) = self.targets.iter().position(|y| !y.is_finite()) {
            return Err(Error::NotFinite { what: "targets", row: at / self.outputs });
        }
        if let Some(weights) = self.weights {
            Error::check_len("weights (one for each row)", n, weights.len())?;
            if let Some(weight) = weights.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
                return Err(Error::param("weights", *weight, "finite and above 0"));
            }
        }
        let kernel = self.kernel.built_in();
        kernel.check()?;
        kernel.check_rows("X", self.rows)
    }

    /// For the solvers that take none.
    pub(crate) fn refuse_weights(&self) -> Result<()> {
        let refused = |weights: &[f64]| Error::param("weights", format!("{} numbers", weights.len()), "none");
        self.weights.map_or(Ok(()), |weights| Err(refused(weights)))
    }

    /// What is added to the i-th diagonal entry of K.
    pub(crate) fn shift(&self, alpha: f64, i: usize) -> f64 {
        self.weights.map_or(alpha, |weights| alpha / weights[i])
    }

    /// The weight of the i-th square.
    pub(crate) fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[i])
    }
}

/// Checks alpha.
pub(crate) fn check_alpha(alpha: f64) -> Result<()> {
    if alpha.is_finite() && alpha >= 0.0 {
        Ok(())
    } else {
        Err(Error::param("alpha", alpha, "finite and not negative"))
    }
}
