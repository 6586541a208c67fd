//! What a fit is told.

use crate::error::{Error, Result};

/// Parameters of every support vector machine.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SvmParams {
    /// Largest violation of the optimality conditions at which a machine is done, in units of f. LIBSVM's `eps`.
    pub tolerance: f64,
    /// Memory for packed rows and kernel rows, in bytes.
    pub cache_bytes: usize,
    /// Whether variables that seem settled at a bound are set aside until the end. Machines whose kernel rows
    /// are cached do not shrink.
    pub shrinking: bool,
    /// Most pair steps of one machine; `None` for no limit.
    pub max_iterations: Option<u64>,
    /// What only speed depends on.
    pub tuning: Tuning,
}

/// Sizes that change how long a fit takes, not what it finds. The defaults were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Variables of a block to begin with; 0 for about one in 24 of the machine's, within [128, 2048].
    pub block: usize,
    /// Variables to which a block may grow as unbounded support vectors are found.
    pub largest_block: usize,
    /// Variables of a block above which it is solved by blocks of so many, where kernel values are cheap.
    pub nested: usize,
    /// A machine of at most so many variables is one block.
    pub whole: usize,
    /// Multiply-adds of a kernel value up to which computing it again is cheaper than storing it and reading it back.
    pub cheap: usize,
    /// Variables from which on a machine starts from a sample of them, where kernel values are cheap.
    pub sampled: usize,
    /// Whether direct steps are taken where they are earned.
    pub direct: bool,
    /// Whether blocks walk from face to face where that is earned.
    pub walks: bool,
    /// Whether Gaussians in one to three columns are summed without a look at every pair where that is faster.
    pub fast_sums: bool,
    /// Multiply-adds of kernel values between two checks of the monitor.
    pub look: usize,
    /// Rows between two looks at least.
    pub look_rows: usize,
}

impl Tuning {
    /// Size of the first block of a machine.
    pub(super) fn first_block(&self, variables: usize) -> usize {
        match self.block {
            _ if variables <= self.whole => variables,
            0 => (variables / 24).clamp(128, 2048).min(self.largest_block),
            block => block,
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            block: 0,
            largest_block: 2048,
            nested: 512,
            whole: 256,
            cheap: 64,
            sampled: 80_000,
            direct: true,
            walks: true,
            fast_sums: true,
            look: 500_000_000,
            look_rows: 192,
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
    /// Checks every parameter against its rule.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn check(&self) -> Result<()> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(Error::param("tol", self.tolerance, "positive and finite"));
        }
        if self.tuning.block == 1 || self.tuning.largest_block < self.tuning.block.max(2) {
            return Err(Error::param(
                "block",
                self.tuning.block,
                "0, or at least 2 and at most largest_block",
            ));
        }
        Ok(())
    }
}
