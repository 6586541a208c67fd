//! Matching pursuit towards an expansion (TR-132, Alg. 3.2).
//!
//! | file | holds |
//! |---|---|
//! | `matching` | basic, back-fitting, pre-fitting; outputs together or apart |
//! | `stepper` | its steps, with all candidates in view or a random few |
//! | `space` | the inner products it needs: in feature space, or of predictions on rows |

mod matching;
mod space;
mod stepper;

pub use matching::{PursuitParams, Sample, Selection, pursuit};
pub use space::Criterion;
pub(super) use space::{check_kernel, indefinite};
