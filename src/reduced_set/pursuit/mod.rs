//! Matching pursuit towards an expansion (TR-132, Alg. 3.2).
//!
//! | file | contents |
//! |---|---|
//! | `matching` | basic, back-fitting and pre-fitting pursuits, of joint or separate outputs |
//! | `stepper` | their steps with all candidates |
//! | `sampled` | their steps with a few random candidates |
//! | `space` | the inner products: in feature space, or of predictions on rows |

mod matching;
mod sampled;
mod space;
mod stepper;

pub(super) use matching::pursue;
pub use matching::{PursuitParams, Sample, Selection, pursuit};
pub use space::Criterion;
pub(super) use space::{Space, TargetProducts, check_kernel, for_blocks, indefinite};
