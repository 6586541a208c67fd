//! Regularized least squares (Rifkin 2002, chapter 3): f minimises
//!
//! ```text
//! sum_i (y_i - f(x_i))^2 + alpha ||f||^2,     f(x) = sum_i c_i k(x, x_i) + b,     (K + alpha I) c = y - b
//! ```
//!
//! for all outputs at once, alpha = lambda n. Where rows have weights W, squares are weighted and alpha W^-1 is in the
//! place of alpha I. The system's matrix is that of no output, so one factorisation serves all.
//!
//! | file | holds |
//! |---|---|
//! | `problem` | what is to be fitted |
//! | `intercept` | how an intercept enters the system |
//! | `exact` | the system by Cholesky factorisation |
//! | `spectral` | many alphas from one eigendecomposition |
//! | `path` | many alphas, and the best of them |
//! | `solution` | what the direct solvers find; exact leave-one-out values and scores |
//! | `iterative` | the system by conjugate gradients, the kernel matrix never stored |
//! | `linear` | the linear kernel on many sparse columns, by conjugate gradients |
//! | `iteration` | what these two share |
//! | `low_rank` | coefficients at a few points, from sums over rows |
//! | `selection` | points chosen by the kernel matrix |

pub mod exact;
mod intercept;
mod iteration;
pub mod iterative;
pub mod linear;
pub mod low_rank;
mod path;
mod problem;
pub mod selection;
mod solution;
mod spectral;

pub use exact::solve;
pub use iteration::{Ending, Stopping};
pub use path::{PathPoint, solve_path};
pub use problem::Problem;
pub use solution::{LeaveOneOut, Solution};
pub use spectral::Spectrum;
