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
//! | `params` | parameters |
//! | `problem` | builders of the dual problem |
//! | `start` | warm starts |
//! | `scale` | a start from a smaller problem |
//! | `training` | what every fit is given, and its checks |
//! | `columns` | packed rows in segments, caches of kernel rows |
//! | `decomposition` | the outer tier: rounds of five steps, all machines in step |
//! | `sharing` | which kernel rows machines still have in common |
//! | `machine` | one machine: its columns, its block, its gradients |
//! | `shrinking` | variables set aside and taken back |
//! | `working_set` | which variables make the next block |
//! | `nested` | a large block solved by blocks of its own |
//! | `subproblem` | the inner tier: pair steps within a block |
//! | `newton` | a direct step on the unbounded variables, where pair steps crawl |
//! | `stall` | when there is no progress |
//! | `intercept` | the intercept |
//! | `certificate` | objectives, duality gap, violation |
//! | `leave_one_out` | bounds for the errors on rows left out |
//! | `memory` | what a fit will take |
//! | `matrix` | all kernel values of the rows, once, for many fits |
//! | `search` | a grid of C and kernels over folds as one job |
//! | `features` | features of a kernel that is projected on a few points |
//! | `fit` | the machines of a task, solved in the precision that they need |
//! | `classifier` | the machines of a code on shared kernel rows |
//! | `quantile` | the machines of several quantiles on shared kernel rows |
//! | `single` | the members of the family that are one machine of one output: regression, one-class |
//!
//! [`Svc`](crate::Svc), [`Svr`](crate::Svr) and [`OneClassSvm`](crate::OneClassSvm) are the short way. With options that they do not have:
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

mod certificate;
mod classifier;
mod columns;
mod decomposition;
mod features;
mod fit;
mod intercept;
mod leave_one_out;
mod machine;
mod matrix;
mod memory;
mod nested;
mod newton;
mod params;
mod precision;
mod problem;
mod quantile;
mod rounding;
mod scale;
mod search;
mod sharing;
mod shrinking;
mod single;
mod stall;
mod start;
mod subproblem;
mod training;
mod working_set;

pub use certificate::Certificate;
pub use classifier::{Classification, ClassifierLoss, Coding, SvcModel, fit_classifier};
pub use columns::Effort;
pub use features::Features;
pub use leave_one_out::LeaveOneOut;
pub use memory::{MemoryEstimate, estimate_memory};
pub use params::{SvmParams, Tuning};
pub use quantile::{QuantileModel, QuantileRegression, fit_quantiles};
pub use search::{Fold, Grid, Point, ResultCallback, SearchTask, search};
pub use single::{MachineModel, OneClass, Regression, RegressionLoss, fit_one_class, fit_regression};
pub use start::Start;
