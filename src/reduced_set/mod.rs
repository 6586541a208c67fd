//! Turning an expansion into a shorter one (Weston and Bakir, TR-132, 2004).
//!
//! | file | holds |
//! |---|---|
//! | `pursuit` | hyperplane matching pursuit, joint over all outputs, with back-fitting |
//! | `path` | every size of one run: coefficients and decisions |
//! | `threshold` | the intercept re-optimised on training error |

mod path;
mod pursuit;
pub mod threshold;

pub use path::{Path, path_coefficients, path_decisions};
pub use pursuit::{PursuitParams, Selection, pursuit};
