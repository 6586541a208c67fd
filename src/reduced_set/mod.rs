//! Turning an expansion into a shorter one (Weston and Bakir, TR-132, 2004).
//!
//! | file | holds |
//! |---|---|
//! | `pursuit` | hyperplane matching pursuit, joint over all outputs, with back-fitting |
//! | `path` | every size of one run: coefficients and decisions |
//! | `gradient` | vectors and coefficients moved together (compressed SVM, eq. 10) |
//! | `objective` | the losses that they are moved for |
//! | `centres` | where they start |
//! | `threshold` | the intercept re-optimised on training error |

mod centres;
mod gradient;
mod objective;
mod path;
mod pursuit;
pub mod threshold;

pub use centres::centres;
pub use gradient::{Construction, GradientParams, gradient_vectors};
pub use objective::{Coding, Loss, Objective};
pub use path::{Path, path_coefficients, path_decisions};
pub use pursuit::{PursuitParams, Selection, pursuit};
