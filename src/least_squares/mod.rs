//! Regularized least squares (Rifkin 2002, chapter 3): f minimizes
//!
//! ```text
//! sum_i (y_i - f(x_i))^2 + alpha ||f||^2,     f(x) = sum_i c_i k(x, x_i) + b,     (K + alpha I) c = y - b
//! ```
//!
//! for all outputs at once, alpha = lambda n. Where rows have weights W, squares are weighted and alpha W^-1 is in the
//! place of alpha I. The system's matrix is that of no output, so one factorization serves all.
//!
//! | file | holds |
//! |---|---|
//! | `problem` | what is to be fitted |
//! | `intercept` | how an intercept enters the system |
//! | `centre` | the linear kernel with an intercept, about a center |
//! | `exact` | the system by Cholesky factorization |
//! | `spectral` | many alphas from one eigendecomposition |
//! | `path` | many alphas, and the best of them |
//! | `solution` | what the direct solvers find; exact leave-one-out values and scores |
//! | `groups` | the same values where rows of a group leave together |
//! | `iterative` | the system by conjugate gradients, the kernel matrix never stored |
//! | `linear` | the linear kernel on many sparse columns, by conjugate gradients |
//! | `iteration` | what these two share |
//! | `low_rank` | coefficients at a few points, from sums over rows |
//! | `low_rank_iterative` | the same by conjugate gradients |
//! | `normal_product` | products of kernel values of points, computed once and used twice |
//! | `selection` | points chosen by the kernel matrix |
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::least_squares::{Problem, solve};
//!
//! let x = Array2::from_shape_fn((40, 1), |(i, _)| 0.1 * i as f64);
//! let y = x.mapv(f64::sin);
//! let kernel = Kernel::Rbf { gamma: 1.0 };
//! let problem = Problem {
//!     kernel: kernel.into(),
//!     rows: Rows::try_from(&x)?,
//!     targets: y.view(),
//!     fit_intercept: false,
//!     weights: None,
//!     groups: None,
//! };
//! let solution = solve(&problem, 0.1, true, Context::default())?;
//! // (K + alpha I) c = y, so that y - f = alpha c on the training samples.
//! let found = solution.leave_one_out.expect("it was asked for");
//! assert!((found.values[[20, 0]] - y[[20, 0]]).abs() < 0.05);
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod centre;
pub mod exact;
mod groups;
mod intercept;
mod iteration;
pub mod iterative;
pub mod linear;
pub mod low_rank;
pub mod low_rank_iterative;
mod normal_product;
mod path;
mod problem;
pub mod selection;
mod solution;
mod spectral;

pub use exact::solve;
pub use groups::Groups;
pub use iteration::Stopping;
pub use path::{PathPoint, path_bytes, solve_path};
pub use problem::Problem;
pub use solution::{LeaveOneOut, Solution};
pub use spectral::Spectrum;
