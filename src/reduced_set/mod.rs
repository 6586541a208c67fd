//! Turning an expansion into a shorter one (Weston and Bakir, TR-132, 2004).
//!
//! | file | holds |
//! |---|---|
//! | `pursuit` | hyperplane matching pursuit, joint over all outputs, with back-fitting |
//! | `path` | every size of one run: coefficients and decisions |
//! | `selection` | the methods that need the whole kernel matrix, and the path along their order |
//! | `zero_norm` | l0 |
//! | `penalised` | l1, joint l1, LARS-SVM |
//! | `gradient` | vectors and coefficients moved together (compressed SVM, eq. 10) |
//! | `objective` | the losses that they are moved for |
//! | `teacher` | where they are compared with the large machine, and what it says there |
//! | `centres` | where they start |
//! | `threshold` | the intercept re-optimised on training error |

mod centres;
mod gradient;
mod objective;
mod path;
mod penalised;
mod pursuit;
mod selection;
mod teacher;
pub mod threshold;
mod zero_norm;

pub use centres::centres;
pub use gradient::{Answers, Construction, GradientParams, gradient_vectors};
pub use objective::{Coding, Loss, Objective};
pub use path::{Path, path_coefficients, path_decisions, path_outputs};
pub use penalised::Norm;
pub use pursuit::{PursuitParams, Selection, pursuit};
pub use selection::{Method, select};
