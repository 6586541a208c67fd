//! The data of a fit, and the checks that all members of the family share.

use super::params::{SvmParams, Tuning};
use super::precision::{Accuracy, Values};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{
    CoefficientSum, Kernel, KernelFunction, KernelRows, Precision, PreparedRows, check_conditioning,
    rows_per_tile,
};

/// Maximum rounding error of the squared distances between rows, relative to them.
const MAX_RELATIVE_ROUNDING: f64 = 0.1;

/// Points of a fast Gauss transform between two checks of the monitor.
const POINTS_PER_CHECK: usize = 1 << 19;

/// The prepared training rows with their kernel, and the parameters of a fit.
pub(super) struct Training<'a> {
    pub(super) rows: PreparedRows<'a>,
    pub(super) params: &'a SvmParams,
    pub(super) accuracy: Accuracy,
    pub(super) ctx: Context<'a>,
}

impl<'a> Training<'a> {
    /// Prepares the rows and checks everything but the labels or targets. `weights` are the rows' C or weights; `sum` is that of
    /// the coefficients of every machine.
    pub(super) fn new<'r: 'a>(
        kernel: KernelFunction<'a>,
        rows: Rows<'r>,
        weights: &[f64],
        sum: CoefficientSum,
        params: &'a SvmParams,
        ctx: Context<'a>,
    ) -> Result<Self> {
        params.check()?;
        let n = rows.rows();
        if n == 0 {
            return Err(Error::param("X", "no rows", "at least one row"));
        }
        Error::check_len("upper bounds", n, weights.len())?;
        if matches!(kernel, KernelFunction::BuiltIn(Kernel::Precomputed)) {
            Error::check_len("columns of precomputed X", n, rows.cols())?;
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
        let prepared = PreparedRows::new(kernel, rows, sum, ctx)?;
        // Solver and cache store kernel values in single precision, whatever they are computed in.
        prepared.magnitudes().check_overflow("X", Precision::Single)?;
        prepared.magnitudes().check_underflow("X", params.tolerance / total)?;
        check_conditioning("X", kernel, rows.reborrow(), sum, MAX_RELATIVE_ROUNDING)?;
        Ok(Self { rows: prepared, params, accuracy: Accuracy::certified(params.tolerance), ctx })
    }

    /// Returns the same training for a shorter time.
    pub(super) fn reborrow<'b>(&self) -> Training<'b>
    where
        'a: 'b,
    {
        let &Self { ref rows, params, accuracy, ctx } = self;
        Training { rows: rows.reborrow(), params, accuracy, ctx }
    }

    /// Returns the precision and the rounding errors of the kernel values.
    pub(super) fn values(&self) -> Values {
        Values::new(self.rows.precision(), self.rows.magnitudes())
    }

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
        let at_once = self.rows_between_checks(depth, out.len());
        for (part, (some, weights)) in rows.chunks(at_once).zip(weights.chunks(at_once)).enumerate() {
            if part > 0 {
                self.ctx.check("gradients", part * at_once, rows.len())?;
            }
            source.add_product(some, weights, out, self.ctx)?;
        }
        Ok(())
    }

    /// Returns whether a product of `rows` rows against `columns` columns has a check.
    pub(super) fn may_stop_product(&self, depth: usize, rows: usize, columns: usize) -> bool {
        rows > self.rows_between_checks(depth, columns) || columns > POINTS_PER_CHECK
    }

    /// Returns the number of rows of a product between two checks.
    fn rows_between_checks(&self, depth: usize, columns: usize) -> usize {
        let Tuning { work_per_check, min_rows_per_check, .. } = self.params.tuning;
        // Rows of very many features take seconds.
        let min_rows_per_check =
            min_rows_per_check.min(2 * rows_per_tile(depth.saturating_mul(size_of::<f32>())));
        let work = columns.saturating_mul(depth.max(16)).saturating_mul(min_rows_per_check).max(1);
        (work_per_check / work).max(1) * min_rows_per_check
    }
}

/// Returns the error for a solution that is not finite.
pub(super) fn overflow_error(largest_c: f64) -> Error {
    let rule = "such that the solution stays within double precision: scale X, or the targets, or lower C";
    Error::param("C", format!("{largest_c:e} for these kernel values"), rule)
}

/// Checks nu of the nu machines.
pub(super) fn check_nu(nu: f64) -> Result<()> {
    if nu > 0.0 && nu <= 1.0 { Ok(()) } else { Err(Error::param("nu", nu, "in (0, 1]")) }
}
