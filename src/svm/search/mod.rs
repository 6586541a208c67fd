//! Choosing C and a kernel: every point of a grid on every fold, as one job.
//!
//! The fits of a search share kernel values and starting points:
//!
//! - Kernel values do not depend on fold, C or class: one kernel matrix per kernel serves all of them, if it fits the memory.
//!   Machines of at most [`fits::MAX_ONE_BLOCK`] rows are solved as one block, whose values are gathered from it. Larger machines
//!   are solved in rounds as in a single fit, and read their kernel rows from it; held-out rows are variables that cannot move.
//!   Without a matrix, each chain computes its own kernel rows.
//! - The machines of a fold with one kernel are a *chain* of fits along increasing C. Each fit starts from the best multiple of
//!   the last coefficients, whose gradients are known; and once no coefficient is at its upper bound, every larger C has the
//!   same solution.
//! - Chains start from zero and share nothing but kernel values, so they run in parallel, and results do not depend on the
//!   number of threads. Within the chain of a large problem, idle threads share the work.
//!
//! (DeCoste and Wagstaff 2000 and Wen et al. 2017 continue from fold to fold instead; continuing along C saves more, and both
//! together would make the chains depend on each other.)
//!
//! | file | holds |
//! |---|---|
//! | `job` | the search: kernels and their chains |
//! | `grid` | the search space, and the callback that receives the results |
//! | `work` | the data shared by all chains |
//! | `task` | the machines of a fit, their rows and problems |
//! | `held_out` | outputs for the rows that are held out |
//! | `chain` | the machines of one fold and kernel: rows, problems, kernel values |
//! | `fits` | their fits along C |
//! | `block`, `large` | a small machine, solved as one block; large machines, solved in rounds |
//!
//! Cost: n^2 kernel values per kernel, or those of the rounds; the steps of all fits; n^2 numbers of memory per kernel in work.

mod block;
mod chain;
mod fits;
mod grid;
mod held_out;
mod job;
mod large;
mod task;
mod work;

pub use grid::{Fold, Grid, Point, ResultCallback};
pub use job::search;
pub use task::SearchTask;
