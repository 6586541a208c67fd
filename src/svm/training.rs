//! What every fit of the family is given, and the checks that all of them rely on.

use super::params::SvmParams;
use crate::control::{Monitor, Par};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, KernelFunction};

/// The kernel, the training rows, and how the fit is run.
#[derive(Clone, Copy)]
pub(super) struct Training<'a> {
    pub(super) kernel: KernelFunction<'a>,
    pub(super) rows: Rows<'a>,
    pub(super) params: &'a SvmParams,
    pub(super) monitor: &'a dyn Monitor,
    pub(super) par: Par,
}

impl Training<'_> {
    /// Checks everything but the labels or targets; `weights` are the rows' C or weights.
    pub(super) fn check(&self, weights: &[f64]) -> Result<()> {
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
        match weights.iter().find(|c| !(c.is_finite() && **c > 0.0)) {
            Some(c) => Err(Error::param("C", c, "positive and finite for every row")),
            None => Ok(()),
        }
    }
}

/// nu of the nu machines.
pub(super) fn check_nu(nu: f64) -> Result<()> {
    if nu > 0.0 && nu <= 1.0 { Ok(()) } else { Err(Error::param("nu", nu, "in (0, 1]")) }
}
