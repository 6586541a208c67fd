//! The problem that every solver of this folder is given.

use super::groups::Groups;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, KernelFunction, Magnitudes, Precision, check_conditioning, gram_lower};
use crate::linalg::dense::Square;
use crate::simd::Real;
use ndarray::ArrayView2;

/// Maximum rounding error of the squared distances between rows, relative to them.
pub(super) const MAX_RELATIVE_ROUNDING: f64 = 1e-4;

/// A regularized least squares problem.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The kernel; K + alpha I must be positive definite on the rows.
    pub kernel: KernelFunction<'a>,
    /// The n training rows.
    pub rows: Rows<'a>,
    /// Targets, (n, q).
    pub targets: ArrayView2<'a, f64>,
    /// If true, a constant that is not penalized is fitted too.
    pub fit_intercept: bool,
    /// Positive weights of the squares, (n,); `None` is 1 for each.
    pub weights: Option<&'a [f64]>,
    /// Rows that leave-one-out values of the direct solvers leave out together; `None` is each row alone.
    pub groups: Option<&'a Groups>,
}

impl Problem<'_> {
    /// Checks sizes and numbers.
    pub fn check(&self) -> Result<()> {
        let (n, q) = (self.rows.rows(), self.outputs());
        if n == 0 || q == 0 {
            return Err(Error::param("targets", format!("{n} x {q}"), "of a row and an output at least"));
        }
        Error::check_len("rows of the targets (one for each row of X)", n, self.targets.nrows())?;
        if let Some(row) = self.targets.rows().into_iter().position(|y| y.iter().any(|y| !y.is_finite())) {
            return Err(Error::NotFinite { what: "targets", row });
        }
        if let Some(weights) = self.weights {
            Error::check_len("weights (one for each row)", n, weights.len())?;
            if let Some(weight) = weights.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
                return Err(Error::param("weights", *weight, "finite and above 0"));
            }
        }
        if let Some(groups) = self.groups {
            Error::check_len("groups (one for each row)", n, groups.len())?;
        }
        let kernel = self.kernel.built_in();
        kernel.check()?;
        kernel.check_rows("X", self.rows)
    }

    /// Checks sizes and numbers, and returns the magnitudes of the kernel's values.
    pub(super) fn checked(&self) -> Result<Magnitudes> {
        self.check()?;
        let sum = if self.fit_intercept { CoefficientSum::Zero } else { CoefficientSum::Any };
        check_conditioning("X", self.kernel, self.rows, sum, MAX_RELATIVE_ROUNDING)?;
        let reach = Magnitudes::new("X", self.kernel, self.rows)?;
        reach.check_overflow("X", Precision::Double)?;
        Ok(reach)
    }

    /// Checks that the numbers of a solution are finite.
    pub(super) fn check_solution<'v>(
        &self,
        alpha: f64,
        numbers: impl IntoIterator<Item = &'v f64>,
    ) -> Result<()> {
        if numbers.into_iter().all(|v| v.is_finite()) {
            return Ok(());
        }
        let largest = self.targets.iter().fold(0.0_f64, |largest, y| largest.max(y.abs()));
        let rule =
            "such that the solution stays within double precision: scale X or the targets, or raise alpha";
        Err(Error::param("alpha", format!("{alpha:e} for targets up to {largest:e}"), rule))
    }

    /// Checks the problem for conjugate gradients, which need an alpha above 0.
    pub(super) fn check_iterative(&self, alpha: f64) -> Result<Magnitudes> {
        let reach = self.checked()?;
        check_alpha(alpha)?;
        Error::check_param(alpha > 0.0, "alpha", alpha, "above 0 for conjugate gradients")?;
        Ok(reach)
    }

    /// Returns the number of outputs q, the columns of the targets.
    pub fn outputs(&self) -> usize {
        self.targets.ncols()
    }

    /// Returns the number that is added to the i-th diagonal entry of K.
    pub(super) fn shift(&self, alpha: f64, i: usize) -> f64 {
        self.weights.map_or(alpha, |weights| alpha / weights[i])
    }

    /// Returns the weight of the i-th square.
    pub(super) fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[i])
    }
}

/// Computes the lower triangle of K.
pub(super) fn kernel_matrix<T: Real>(
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    ctx: Context<'_>,
) -> Result<Square<T>> {
    let mut k = Square::<T>::new(rows.rows()).map_err(|error| error.with_remedy(REMEDY))?;
    let stride = k.stride();
    gram_lower(kernel, rows, k.values_mut(), stride, ctx)?;
    Ok(k)
}

/// Returns the number of rows of `m` numbers whose products with each other are summed between two checks of the monitor, a
/// few tenths of a second; at most `max_rows`.
pub(super) fn rows_at_once(m: usize, max_rows: usize) -> usize {
    (4_000_000_000 / (m * m).max(1) / 96 * 96).clamp(96, max_rows)
}

/// The remedy if a kernel matrix does not fit in memory.
const REMEDY: &str =
    "use solver='cg' with leave_one_out=False, or LowRankRLSClassifier or LowRankRLSRegressor";

pub(super) fn check_alpha(alpha: f64) -> Result<()> {
    if alpha.is_finite() && alpha >= 0.0 {
        Ok(())
    } else {
        Err(Error::param("alpha", alpha, "finite and not negative"))
    }
}
