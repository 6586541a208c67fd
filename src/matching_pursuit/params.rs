//! How a pursuit goes: variants, sizes, stopping, storage.

use super::task::Task;
use crate::error::{Error, Result};

/// How functions are chosen and coefficients kept up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Only the newest coefficient changes.
    Basic,
    /// All coefficients are the best after every step; the function is chosen before (orthogonal matching pursuit).
    BackFitting,
    /// All coefficients are the best, and the function is the one that then leaves the least loss.
    PreFitting,
}

/// Parameters of a pursuit.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchingParams {
    /// The variant.
    pub variant: Variant,
    /// Most functions.
    pub functions: usize,
    /// Most steps; a step may choose a function again unless all coefficients are the best ones.
    pub steps: Option<usize>,
    /// Steps between two full back-fittings of a loss that is not squared error, at least 1.
    pub every: usize,
    /// End when the norm of the residual is at most this share of the targets' norm.
    pub tolerance: f64,
    /// End after so many steps without a better validation measure.
    pub patience: Option<usize>,
    /// The measure that patience is about.
    pub measure: Measure,
    /// How the dictionary is kept.
    pub storage: Storage,
    /// Draw so many candidates at each step instead of looking at all.
    pub sample: Option<usize>,
    /// Seed of the draws.
    pub seed: u64,
}

/// How values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Single instead of double precision: half the memory. Chosen columns are computed again in double.
    pub single: bool,
    /// Bytes that the values may take.
    pub budget: usize,
}

/// What early stopping looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The mean loss of the validation rows.
    Loss,
    /// The share of wrong classes among them.
    Error,
}

impl MatchingParams {
    pub(super) fn check(&self, task: &Task<'_>) -> Result<()> {
        Error::check_param(self.functions > 0, "functions", 0, "at least 1")?;
        Error::check_param(self.every > 0, "every", 0, "at least 1")?;
        let known = task.squared || self.variant != Variant::PreFitting;
        Error::check_param(known, "variant", "prefit", "backfit or basic for a loss that is not squared")?;
        Error::check_param(self.sample != Some(0), "sample", 0, "at least 1")?;
        let share = (0.0..1.0).contains(&self.tolerance);
        Error::check_param(share, "tolerance", self.tolerance, "in [0, 1)")
    }
}
