//! What every solver of this folder is given.

use crate::control::{Monitor, Par};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{KernelFunction, gram_lower};
use crate::linalg::dense::Square;
use crate::simd::Real;
use ndarray::ArrayView2;

/// What is to be fitted.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The kernel.
    pub kernel: KernelFunction<'a>,
    /// The n training rows.
    pub rows: Rows<'a>,
    /// Targets, (n, q).
    pub targets: ArrayView2<'a, f64>,
    /// Whether a constant that is not penalised is fitted too.
    pub fit_intercept: bool,
    /// Positive weights of the squares, (n,); none is one for each.
    pub weights: Option<&'a [f64]>,
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
        let kernel = self.kernel.built_in();
        kernel.check()?;
        kernel.check_rows("X", self.rows)
    }

    /// As [`Problem::check`] for conjugate gradients, which take no weights and no alpha of 0.
    pub(super) fn check_iterative(&self, alpha: f64) -> Result<()> {
        self.check()?;
        check_alpha(alpha)?;
        if alpha == 0.0 {
            return Err(Error::param("alpha", alpha, "above 0 for conjugate gradients"));
        }
        Ok(())
    }

    /// Number of outputs q.
    pub fn outputs(&self) -> usize {
        self.targets.ncols()
    }

    /// What is added to the i-th diagonal entry of K.
    pub(super) fn shift(&self, alpha: f64, i: usize) -> f64 {
        self.weights.map_or(alpha, |weights| alpha / weights[i])
    }

    /// The weight of the i-th square.
    pub(super) fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[i])
    }
}

/// The lower triangle of K.
pub(super) fn kernel_matrix<T: Real>(
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Square<T>> {
    let mut k = Square::<T>::new(rows.rows());
    let stride = k.stride();
    gram_lower(kernel, rows, k.values_mut(), stride, monitor, par)?;
    Ok(k)
}

/// Checks alpha.
pub(super) fn check_alpha(alpha: f64) -> Result<()> {
    if alpha.is_finite() && alpha >= 0.0 {
        Ok(())
    } else {
        Err(Error::param("alpha", alpha, "finite and not negative"))
    }
}
