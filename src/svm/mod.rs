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
//! | `decomposition` | the outer tier: rounds of blocks, kernel rows in batches, all machines in step |
//! | `machine` | one machine: its columns, a round, shrinking |
//! | `working_set` | which variables make the next block |
//! | `subproblem` | the inner tier: pair steps within a block |
//! | `bias` | the intercept |
//! | `certificate` | objectives, duality gap, violation |
//! | `leave_one_out` | bounds for the errors on rows left out |
//! | `memory` | what a fit will take |
//! | `fit` | what the fits of the family share: columns, caches, warm starts, certificates |
//! | `classifier` | one-vs-one and one-vs-rest on shared kernel rows |
//! | `regression`, `one_class` | the single machines |

mod bias;
mod certificate;
mod classifier;
mod decomposition;
mod fit;
mod leave_one_out;
mod machine;
mod memory;
mod middle;
mod one_class;
mod params;
mod problem;
mod regression;
mod subproblem;
mod working_set;

pub use classifier::{Classification, ClassifierLoss, Coding, SvcModel, fit_classifier};
pub use fit::{MachineModel, Start};
pub use leave_one_out::LeaveOneOut;
pub use memory::{MemoryEstimate, estimate_memory};
pub use one_class::fit_one_class;
pub use params::{Certificate, Effort, SvmParams, Tuning};
pub use regression::{Regression, RegressionLoss, fit_regression};
