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
//! A fit, in the order of its steps:
//!
//! | file | holds |
//! |---|---|
//! | `params`, `training` | parameters; the data of a fit, and its checks |
//! | `classifier`, `quantile` | the machines of a code; the machines of several quantiles |
//! | `single`, `one_class` | one machine of one output, a regression; the one-class machine and its offset |
//! | `problem` | the dual problems |
//! | `engine` | single precision first, double precision where rounding hides the optimum |
//! | `fit` | the machines of a task |
//! | `columns` | packed rows in class blocks, caches of kernel rows |
//! | `start`, `subsample_start` | warm starts; a start from a subsample |
//! | `decomposition` | the outer tier: rounds of five steps |
//! | `machine` | one machine: its states, its block, the update of its gradients, its end |
//! | `working_set` | selection of the variables of the next block |
//! | `subproblem`, `smo` | a block, and the inner tier: SMO steps |
//! | `active_set` | Newton steps and an active-set method on the free variables |
//! | `nested` | a large block solved by blocks of its own |
//! | `shrinking`, `sharing` | variables set aside; kernel rows shared by machines |
//! | `stall` | detection of machines and blocks without progress |
//! | `precision`, `rounding` | the precision of kernel values; the effect of rounding |
//! | `intercept`, `certificate`, `leave_one_out` | intercept; objectives and gap; bounds for leave-one-out errors |
//! | `memory` | an estimate of the memory of a fit |
//! | `search` | a grid of C and kernels over folds |
//! | `features` | features of a kernel projected on a few points |
//!
//! [`Svc`](crate::Svc), [`Svr`](crate::Svr) and [`OneClassSvm`](crate::OneClassSvm) are simpler. With options that they do not have:
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::svm::{Classification, ClassifierLoss, SvmParams, fit_classifier};
//!
//! let x = Array2::from_shape_fn((60, 1), |(i, _)| (0.7 * i as f64).sin());
//! let labels: Vec<usize> = x.iter().map(|x| usize::from(*x > 0.0)).collect();
//! let sample_c: Vec<f64> = labels.iter().map(|&label| if label == 1 { 10.0 } else { 1.0 }).collect();
//! let mut task = Classification::new(&labels, 2, &sample_c);
//! task.loss = ClassifierLoss::SquaredHinge;
//! let kernel = Kernel::Rbf { gamma: 1.0 };
//! let fit = fit_classifier(kernel, Rows::try_from(&x)?, &task, &SvmParams::default(), Context::default())?;
//! let certificate = &fit.certificates[0];
//! assert!(certificate.dual <= certificate.primal && certificate.gap < 0.01 * certificate.primal);
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod active_set;
mod certificate;
mod classifier;
mod columns;
mod decomposition;
mod engine;
mod features;
mod few_columns;
mod fit;
mod intercept;
mod interior_point;
mod kernel_matrix;
mod leave_one_out;
mod machine;
mod memory;
mod monomials;
mod nested;
mod one_class;
mod params;
mod precision;
mod problem;
mod quantile;
mod rounding;
mod search;
mod sharing;
mod shrinking;
mod single;
mod smo;
mod stall;
mod start;
mod subproblem;
mod subsample_start;
mod training;
mod working_set;

pub use certificate::Certificate;
pub use classifier::{Classification, ClassifierLoss, Coding, SvcModel, fit_classifier};
pub use columns::Effort;
pub use features::Features;
pub use leave_one_out::LeaveOneOut;
pub use memory::{MemoryEstimate, estimate_memory};
pub use one_class::{OneClass, fit_one_class};
pub use params::SvmParams;
#[cfg(feature = "papers")]
pub use params::Tuning;
pub use quantile::{QuantileModel, QuantileRegression, fit_quantiles};
pub use search::{Fold, Grid, Point, ResultCallback, SearchTask, search};
pub use single::{MachineModel, Regression, RegressionLoss, fit_regression};
pub use start::Start;
