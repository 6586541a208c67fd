//! The data of a fit, and the checks that all members of the family share.

use super::params::{SvmParams, Tuning};
use super::precision::Values;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{
    CoefficientSum, Kernel, KernelFunction, KernelRows, Magnitudes, Precision, check_conditioning,
};

/// Points of a fast Gauss transform between two checks of the monitor.
const POINTS_PER_CHECK: usize = 1 << 19;

/// The kernel, the training rows, and the parameters of a fit.
#[derive(Clone, Copy)]
pub(super) struct Training<'a> {
    pub(super) kernel: KernelFunction<'a>,
    pub(super) rows: Rows<'a>,
    pub(super) params: &'a SvmParams,
    pub(super) ctx: Context<'a>,
    /// The sum of the coefficients of every machine; if it is zero, translations of the rows change no machine.
    pub(super) sums: CoefficientSum,
}

impl Training<'_> {
    /// Computes `out += K(:, rows) weights` in parts, with a check before each but the first. A kernel value touches `depth`
    /// features.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which `out` is a partial sum.
    pub(super) fn add_product(
        &self,
        source: &KernelRows<'_>,
        depth: usize,
        (rows, weights): (&[usize], &[f64]),
        out: &mut [f64],
    ) -> Result<()> {
        if let Some(sum) = source.fast_sum(rows, weights, self.ctx)? {
            for (part, out) in out.chunks_mut(POINTS_PER_CHECK).enumerate() {
                let first = part * POINTS_PER_CHECK;
                if first > 0 {
                    self.ctx.check("gradients", first, source.columns())?;
                }
                sum.add(first, out, self.ctx);
            }
            return Ok(());
        }
        let Tuning { work_per_check, min_rows_per_check, .. } = self.params.tuning;
        let work = out.len().saturating_mul(depth.max(16)).saturating_mul(min_rows_per_check).max(1);
        let at_once = (work_per_check / work).max(1) * min_rows_per_check;
        for (part, (some, weights)) in rows.chunks(at_once).zip(weights.chunks(at_once)).enumerate() {
            if part > 0 {
                self.ctx.check("gradients", part * at_once, rows.len())?;
            }
            source.add_product(some, weights, out, self.ctx)?;
        }
        Ok(())
    }

    /// Checks everything except labels or targets; `weights` are the C or weights of the rows. Returns the properties of the
    /// kernel values.
    pub(super) fn check(&self, weights: &[f64]) -> Result<Values> {
        self.params.check()?;
        if let KernelFunction::BuiltIn(kernel) = self.kernel {
            kernel.check()?;
            kernel.check_rows("X", self.rows)?;
        }
        let n = self.rows.rows();
        if n == 0 {
            return Err(Error::param("X", "no rows", "at least one row"));
        }
        Error::check_len("upper bounds", n, weights.len())?;
        if matches!(self.kernel, KernelFunction::BuiltIn(Kernel::Precomputed)) {
            Error::check_len("columns of precomputed X", n, self.rows.cols())?;
        }
        if let Some(c) = weights.iter().find(|c| !(c.is_finite() && **c > 0.0)) {
            return Err(Error::param("C", c, "positive and finite for every row"));
        }
        let total: f64 = weights.iter().sum();
        Error::check_param(
            total.is_finite(),
            "C",
            total,
            "within double precision when summed over the rows",
        )?;
        let magnitudes = Magnitudes::with_coefficients(self.kernel, self.rows, self.sums)?;
        // Solver and cache keep kernel values in single precision, whatever they are computed in.
        magnitudes.check("X", Precision::Single)?;
        magnitudes.check_small("X", self.params.tolerance / total)?;
        check_conditioning("X", self.kernel, self.rows, self.sums)?;
        Ok(Values::new(precision(self.kernel, self.rows, &magnitudes), &magnitudes))
    }
}

/// Returns the error for a solution that is not finite.
pub(super) fn overflow_error(largest_c: f64) -> Error {
    let rule = "such that the solution stays within double precision: scale X, or the targets, or lower C";
    Error::param("C", format!("{largest_c:e} for these kernel values"), rule)
}

/// Returns the precision in which kernel values are computed: values of unbounded kernels may be large compared with their
/// differences.
pub(super) fn precision(kernel: KernelFunction<'_>, rows: Rows<'_>, magnitudes: &Magnitudes) -> Precision {
    let bounded = kernel.built_in().constant_diagonal().is_some();
    if (bounded || !rows.is_f64()) && magnitudes.is_single() { Precision::Single } else { Precision::Double }
}

/// Checks nu of the nu machines.
pub(super) fn check_nu(nu: f64) -> Result<()> {
    if nu > 0.0 && nu <= 1.0 { Ok(()) } else { Err(Error::param("nu", nu, "in (0, 1]")) }
}
