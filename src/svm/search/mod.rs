//! Choosing C and a kernel: every point of a grid on every fold, as one job.
//!
//! The fits of a search are alike, and share what they can:
//!
//! - Kernel values do not depend on fold, C or class: one matrix a kernel (see `matrix`), with a line for every row that a
//!   fold learns from, serves all of them where it fits the memory, and is never copied for large machines. There held-out
//!   rows are variables that cannot move, so that their gradients *are* their outputs; small machines have their rows side
//!   by side, solved as one block.
//! - C rises along a chain of fits. The next one goes on from the best multiple of the last coefficients, whose gradients
//!   are known; and once nothing is at its upper bound every larger C has the same solution.
//! - A fold's machines with one kernel are a chain of their own, which begins from nothing. Chains share nothing but
//!   kernel values, so they run beside each other, and what comes out does not depend on which thread does what.
//!   Within the chain of a large problem the idle threads help.
//!
//! (DeCoste and Wagstaff 2000 and Wen et al. 2017 go on from fold to fold instead; along C more is won, and both at once
//! would tie the chains to each other.)
//!
//! Without room for the matrix, and for the large machines of one fold alone, every chain has a cache of kernel rows, or
//! computes values again, as a single fit does.
//!
//! | file | holds |
//! |---|---|
//! | `job` | the search: which kernels are at work together, and their chains |
//! | `grid` | the search space, and the callback that receives the results |
//! | `work` | what all chains have in common |
//! | `task` | what is learned: the machines of a fit, their rows and problems |
//! | `held_out` | outputs for the rows that are held out |
//! | `chain` | the machines of one fold and kernel along C |
//!
//! Cost: n^2 kernel values a kernel; the steps of all fits; n^2 numbers of memory for each kernel at work, at least one.

mod chain;
mod grid;
mod held_out;
mod job;
mod task;
mod work;

pub use grid::{Fold, Grid, Point, ResultCallback};
pub use job::search;
pub use task::SearchTask;
