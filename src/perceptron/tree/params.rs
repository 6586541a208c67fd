//! The parameters of a perceptron tree and their rules.

use super::strategy::{Partition, Strategy};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::perceptron::params::check_stream;

/// Minimum number of multiplications of a piece that several threads learn from: a few milliseconds.
const MIN_CONCURRENT_WORK: u64 = 10_000_000;

/// Parameters of a tree.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TreeParams {
    /// The kernel; not precomputed.
    pub kernel: Kernel,
    /// Number of classes, at least 2.
    pub classes: usize,
    /// B: maximum number of vectors of a leaf.
    pub budget: usize,
    /// C: maximum number of vectors that a child inherits from its parent, at most B.
    pub child_budget: usize,
    /// Number of rows that a leaf keeps for its split, at least 2.
    pub sample: usize,
    /// Number of draws when a fractional selection is rounded, at least 1.
    pub draws: usize,
    /// Maximum number of leaves. Once it is reached, full leaves do not learn new vectors.
    pub max_leaves: usize,
    /// Strategy of splitting a leaf.
    pub strategy: Strategy,
}

impl TreeParams {
    /// Returns the parameters of the paper: at most 100 vectors for each leaf, 50 for a new leaf, 512 rows and 100 draws for
    /// a split, any number of leaves.
    pub fn new(kernel: Kernel, classes: usize, strategy: Strategy) -> Self {
        Self {
            kernel,
            classes,
            budget: 100,
            child_budget: 50,
            sample: 512,
            draws: 100,
            max_leaves: usize::MAX,
            strategy,
        }
    }

    /// Returns whether learning from rows takes so long that several threads are faster than one.
    pub fn uses_threads(&self, rows: &Rows<'_>) -> bool {
        let work = (rows.rows() as u64).saturating_mul(self.work_per_row(rows));
        work >= MIN_CONCURRENT_WORK || matches!(self.strategy, Strategy::Heuristic(Partition::Balanced, _))
    }

    /// Returns the approximate number of multiplications for a row.
    pub(super) fn work_per_row(&self, rows: &Rows<'_>) -> u64 {
        (self.budget as u64).saturating_mul(rows.cols().max(8) as u64)
    }

    /// Checks every parameter against its rule.
    pub fn check(&self) -> Result<()> {
        self.kernel.check()?;
        check_stream(&self.kernel, self.classes)?;
        Error::check_param(self.budget > 0, "budget", 0, "at least 1")?;
        let rule = format!("between 1 and {}, the budget", self.budget);
        let fits = (1..=self.budget).contains(&self.child_budget);
        Error::check_param(fits, "child_budget", self.child_budget, rule)?;
        Error::check_param(self.sample > 1, "sample_size", self.sample, "at least 2")?;
        Error::check_param(self.max_leaves > 0, "max_leaves", 0, "at least 1")?;
        Error::check_param(self.draws > 0, "draws", 0, "at least 1")
    }
}
