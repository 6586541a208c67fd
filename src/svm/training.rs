//! What every fit of the family is given, and the checks that all of them rely on.

use super::params::{SvmParams, Tuning};
use super::precision::Values;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{
    CoefficientSum, Kernel, KernelFunction, KernelRows, Magnitudes, Precision, check_conditioning,
};

/// Points of a fast sum between two checks of the monitor.
const POINTS: usize = 1 << 19;

/// The kernel, the training rows, and how the fit is run.
#[derive(Clone, Copy)]
pub(super) struct Training<'a> {
    pub(super) kernel: KernelFunction<'a>,
    pub(super) rows: Rows<'a>,
    pub(super) params: &'a SvmParams,
    pub(super) ctx: Context<'a>,
    /// Whether the coefficients of every machine sum to zero: then translations of the rows change no machine.
    pub(super) sums: CoefficientSum,
}

impl Training<'_> {
    /// Computes `out += K(:, rows) weights` in parts, with a check before each but the first. A kernel value touches `depth`
    /// features.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which `out` is a part of the sum.
    pub(super) fn add_product(
        &self,
        source: &KernelRows<'_>,
        depth: usize,
        (rows, weights): (&[usize], &[f64]),
        out: &mut [f64],
    ) -> Result<()> {
        if let Some(sum) = source.fast_sum(rows, weights, self.ctx)? {
            for (part, out) in out.chunks_mut(POINTS).enumerate() {
                let first = part * POINTS;
                if first > 0 {
                    self.ctx.check("gradients", first, source.columns())?;
                }
                sum.add(first, out, self.ctx);
            }
            return Ok(());
        }
        let Tuning { look, look_rows, .. } = self.params.tuning;
        let work = out.len().saturating_mul(depth.max(16)).saturating_mul(look_rows).max(1);
        let at_once = (look / work).max(1) * look_rows;
        for (part, (some, weights)) in rows.chunks(at_once).zip(weights.chunks(at_once)).enumerate() {
            if part > 0 {
                self.ctx.check("gradients", part * at_once, rows.len())?;
            }
            source.add_product(some, weights, out, self.ctx)?;
        }
        Ok(())
    }

    /// Checks everything but the labels or targets; `weights` are the rows' C or weights. What the kernel values are like.
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
        let reach = Magnitudes::with_coefficients(self.kernel, self.rows, self.sums)?;
        // Solver and cache keep kernel values in single precision, whatever they are computed in.
        reach.check("X", Precision::Single)?;
        reach.check_small("X", self.params.tolerance / total)?;
        check_conditioning("X", self.kernel, self.rows, self.sums)?;
        Ok(Values::new(precision(self.kernel, self.rows, &reach), &reach))
    }
}

/// The error for a solution that is not made of numbers.
pub(super) fn beyond(largest_c: f64) -> Error {
    let rule = "such that the solution stays within double precision: scale X, or the targets, or lower C";
    Error::param("C", format!("{largest_c:e} for these kernel values"), rule)
}

/// Kernels without a bound may be large against their differences, as LIBSVM's doubles expect.
pub(super) fn precision(kernel: KernelFunction<'_>, rows: Rows<'_>, reach: &Magnitudes) -> Precision {
    let bounded = kernel.built_in().constant_diagonal().is_some();
    if (bounded || !rows.is_f64()) && reach.is_single() { Precision::Single } else { Precision::Double }
}

/// nu of the nu machines.
pub(super) fn check_nu(nu: f64) -> Result<()> {
    if nu > 0.0 && nu <= 1.0 { Ok(()) } else { Err(Error::param("nu", nu, "in (0, 1]")) }
}
