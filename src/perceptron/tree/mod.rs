//! Perceptron trees (Ukkonen and Arias, Example-dependent basis vector selection for kernel-based classifiers, 2010).
//!
//! Inner nodes send a row left or right, leaves are perceptrons over at most B vectors. A leaf that a mistake brings
//! above B is split: a branching rule is found, and each child begins with at most C of the leaf's vectors. So an
//! answer costs a path and at most B kernel values, however many vectors the tree has. All rows that a tree remembers
//! (vectors, branching rows, samples of leaves) lie in one store, equal ones once.
//!
//! | file | holds |
//! |---|---|
//! | `rows` | the store |
//! | `route` | branching rules, leaves, the way of a row, decisions |
//! | `grow` | algorithm 2: a row is learnt, a leaf overflows |
//! | `split` | algorithms 3 and 4: partitions and selections |
//! | `strategy` | their names |
//! | `program` | the quadratic program of a selection |
//! | `interior` | its relaxed form, exactly |
//! | `selection` | its rounding, and steps towards it for many vectors |
//! | `convert` | any expansion as a tree of local ones |
//! | `state` | a tree as plain arrays |

mod convert;
mod grow;
mod interior;
mod program;
mod route;
mod rows;
mod selection;
mod split;
mod state;
mod strategy;

pub use convert::{ConvertParams, from_expansion};
pub use grow::partial_fit;
pub use interior::box_budget_program;
pub use program::Program;
pub use route::{Route, TreePredictor};
pub use state::TreeState;
pub use strategy::{Partition, Selection, Strategy};

use super::kernel::check_stream;
use crate::error::{Error, Result};
use crate::kernels::Kernel;

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
