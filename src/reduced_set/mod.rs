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
//! | `certified` | how far a projection's outputs can be from the machine's |
//! | `cascade` | the projection answers where that decides |
//! | `decision` | the class that outputs with bounds are certain of |
//! | `threshold` | the intercept re-optimised on training error |

mod cascade;
mod centres;
mod certified;
mod decision;
mod gradient;
mod objective;
mod path;
mod penalised;
mod pursuit;
mod selection;
mod teacher;
pub mod threshold;
mod zero_norm;

pub use cascade::{Cascade, CertainAnswers, UNDECIDED};
pub use centres::centres;
pub use certified::{Moments, StageSize, moments};
pub use decision::Decision;
pub use gradient::{Answers, Construction, GradientParams, gradient_vectors};
pub use objective::{Coding, Loss, Objective};
pub use path::{Path, path_coefficients, path_decisions, path_outputs};
pub use penalised::Norm;
pub use pursuit::{PursuitParams, Selection, pursuit};
pub use selection::{Method, select};
