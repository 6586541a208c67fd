//! Matching pursuit towards an expansion (TR-132, Alg. 3.2).
//!
//! | file | holds |
//! |---|---|
//! | `matching` | basic, back-fitting, pre-fitting; outputs together or apart |
//! | `stepper` | its steps, with all candidates in view |
//! | `sampled` | the same with a random few |
//! | `space` | the inner products it needs: in feature space, or of predictions on rows |

mod matching;
mod sampled;
mod space;
mod stepper;

pub(super) use matching::pursue;
pub use matching::{PursuitParams, Sample, Selection, pursuit};
pub use space::Criterion;
pub(super) use space::{Known, Space, check_kernel, for_blocks, indefinite};
