//! What is fixed along a stream.

use super::strategy::Strategy;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::perceptron::rules::check_stream;

/// What is fixed along a stream.
#[derive(Debug, Clone, Copy)]
pub struct TreeParams {
    /// The kernel; not precomputed.
    pub kernel: Kernel,
    /// Number of classes, at least 2.
    pub classes: usize,
    /// B: most vectors of a leaf.
    pub budget: usize,
    /// C: most vectors that a child takes over from its parent, at most B.
    pub child_budget: usize,
    /// Rows that a leaf remembers for its split, at least 2.
    pub sample: usize,
    /// Draws when a fractional selection is rounded, at least 1.
    pub draws: usize,
    /// Most leaves: where there are so many, a leaf whose budget is spent stops learning new vectors.
    pub max_leaves: usize,
    /// How a leaf is split.
    pub strategy: Strategy,
}

impl TreeParams {
    /// Checks every parameter against its rule.
    pub fn check(&self) -> Result<()> {
        self.kernel.check()?;
        check_stream(&self.kernel, self.classes)?;
        if self.budget == 0 {
            return Err(Error::param("budget", 0, "at least 1"));
        }
        if self.child_budget == 0 || self.child_budget > self.budget {
            let rule = format!("between 1 and {}, the budget", self.budget);
            return Err(Error::param("child_budget", self.child_budget, rule));
        }
        if self.sample < 2 {
            return Err(Error::param("sample_size", self.sample, "at least 2"));
        }
        if self.max_leaves == 0 {
            return Err(Error::param("max_leaves", 0, "at least 1"));
        }
        if self.draws == 0 {
            return Err(Error::param("draws", 0, "at least 1"));
        }
        Ok(())
    }
}
