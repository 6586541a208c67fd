//! Support vector machines by two-tier decomposition.
//!
//! Every machine is the same dual problem in *signed* coefficients b = y alpha, so that labels appear only in the
//! bounds and in the linear term:
//!
//! ```text
//! minimise  1/2 b'Kb + s'b   subject to   lower <= b <= upper,  sum b = 0
//! gradient  f = Kb + s       optimal when  f_i >= f_j - tolerance for every i that can rise, j that can fall
//! ```
//!
//! (Rifkin 2002, (2.74)-(2.76); for C-SVC s = -y and [lower, upper] is [0, C] or [-C, 0].)
//!
//! | file | holds |
//! |---|---|
//! | `params` | parameters and the certificate of a fit |
//! | `problem` | builders of the dual problem |
//! | `decomposition` | the outer tier: blocks, kernel rows in batches, gradients; all machines in step |
//! | `working_set` | which variables make the next block |
//! | `subproblem` | the inner tier: pair steps within a block |
//! | `bias` | the intercept |
//! | `certificate` | objectives, duality gap, violation |
//! | `classifier` | one-vs-one and one-vs-rest on shared kernel rows |

mod bias;
mod certificate;
mod classifier;
mod decomposition;
mod params;
mod problem;
mod subproblem;
mod working_set;

pub use classifier::{Coding, SvcModel, fit_classifier};
pub use params::{Certificate, Effort, SvcParams, Tuning};
