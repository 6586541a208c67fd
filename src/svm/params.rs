//! Parameters of a fit.

use crate::error::{Error, Result};

/// Parameters of every support vector machine.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SvmParams {
    /// Maximum violation of the optimality conditions of a solved machine, in units of f. LIBSVM's `eps`.
    pub tolerance: f64,
    /// Memory for packed rows and kernel rows, in bytes.
    pub cache_bytes: usize,
    /// Sets variables aside that seem to stay at a bound. Machines whose kernel rows are cached do not shrink.
    pub shrinking: bool,
    /// Maximum number of SMO steps of one machine; `None` for no limit.
    pub max_iterations: Option<u64>,
    pub(crate) tuning: Tuning,
}

/// Sizes that change how long a fit takes, not its solution, for ablation experiments and for tests of all parts of the solver
/// on small problems. The defaults were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Number of variables of the first block; 0 for about one in 24 of the machine's, within [128, 2048].
    pub block: usize,
    /// Maximum number of variables to which a block grows with the number of unbounded support vectors.
    pub max_block: usize,
    /// Number of variables of the blocks by which a larger block is solved, if kernel values are cheap.
    pub nested_block: usize,
    /// Maximum number of variables of a machine that is solved as one block.
    pub max_whole: usize,
    /// Maximum number of multiply-adds of a kernel value that is cheaper to compute again than to store and read back.
    pub cheap_kernel: usize,
    /// Minimum number of variables of a machine that starts from a subsample, if kernel values are cheap.
    pub min_subsampled: usize,
    /// Makes Newton steps on the free variables.
    pub newton_steps: bool,
    /// Runs the active-set method on blocks with few free variables.
    pub active_set: bool,
    /// Uses the fast Gauss transform in one to three dimensions, if it is faster.
    pub fast_sums: bool,
    /// Multiply-adds of kernel values between two checks of the monitor.
    pub work_per_check: usize,
    /// Minimum number of rows between two checks of the monitor.
    pub min_rows_per_check: usize,
}

impl Tuning {
    /// Returns the size of the first block of a machine.
    pub(super) fn first_block(&self, variables: usize) -> usize {
        match self.block {
            _ if variables <= self.max_whole => variables,
            0 => (variables / 24).clamp(128, 2048).min(self.max_block),
            block => block,
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            block: 0,
            max_block: 2048,
            nested_block: 512,
            max_whole: 256,
            cheap_kernel: 64,
            min_subsampled: 80_000,
            newton_steps: true,
            active_set: true,
            fast_sums: true,
            work_per_check: 500_000_000,
            min_rows_per_check: 192,
        }
    }
}

impl Default for SvmParams {
    fn default() -> Self {
        Self {
            tolerance: 1e-3,
            cache_bytes: 1 << 30,
            shrinking: true,
            max_iterations: None,
            tuning: Tuning::default(),
        }
    }
}

impl SvmParams {
    /// Sets the sizes that change how long a fit takes.
    #[cfg(feature = "papers")]
    pub fn set_tuning(&mut self, tuning: Tuning) {
        self.tuning = tuning;
    }

    /// Checks every parameter against its rule.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn check(&self) -> Result<()> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(Error::param("tol", self.tolerance, "positive and finite"));
        }
        if self.tuning.block == 1 || self.tuning.max_block < self.tuning.block.max(2) {
            let rule = "0, or at least 2 and at most max_block";
            return Err(Error::param("block", self.tuning.block, rule));
        }
        Ok(())
    }
}
