//! What a fit is told, and what it vouches for.

use crate::control::StopReason;
use crate::error::{Error, Result};

/// Parameters of a support vector classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct SvcParams {
    /// Largest violation of the optimality conditions at which a machine is done, in units of f. LIBSVM's `eps`.
    pub tolerance: f64,
    /// Memory for packed rows and kernel rows, in bytes.
    pub cache_bytes: usize,
    /// Whether variables that seem settled at a bound are set aside until the end.
    pub shrinking: bool,
    /// Most pair steps of one machine; `None` for no limit.
    pub max_iterations: Option<u64>,
}

impl Default for SvcParams {
    fn default() -> Self {
        Self { tolerance: 1e-3, cache_bytes: 1 << 30, shrinking: true, max_iterations: None }
    }
}

impl SvcParams {
    /// Checks every parameter against its rule.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn check(&self) -> Result<()> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(Error::param("tol", self.tolerance, "positive and finite"));
        }
        Ok(())
    }
}

/// What a fitted machine vouches for.
///
/// Objectives are those of the maximisation form: dual <= optimum <= primal, so `gap` bounds the distance to the
/// optimum of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// sum alpha - 1/2 alpha'Q alpha.
    pub dual: f64,
    /// 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)).
    pub primal: f64,
    /// primal - dual.
    pub gap: f64,
    /// Largest violation of the optimality conditions, in units of f.
    pub violation: f64,
    /// Pair steps.
    pub iterations: u64,
    /// Blocks solved.
    pub rounds: u64,
    /// Support vectors.
    pub support: usize,
    /// Support vectors at their upper bound C.
    pub bounded: usize,
    /// Why the machine stopped.
    pub stop: StopReason,
}

/// What the fit of all machines together cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Kernel values computed.
    pub kernel_values: u64,
    /// Kernel rows that were asked for and cached.
    pub cache_hits: u64,
    /// Kernel rows that were asked for and computed.
    pub cache_misses: u64,
    /// Wall-clock time.
    pub seconds: f64,
}
