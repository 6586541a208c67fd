//! New vectors, moved together with their coefficients (compressed SVM, eq. 10).
//!
//! | file | holds |
//! |---|---|
//! | `gradient` | the moving |
//! | `params` | how they are moved, and on what |
//! | `objective` | the losses that they are moved for |
//! | `teacher` | where they are compared with the large machine, and what it says there |
//! | `centres` | where they start |

mod centres;
mod gradient;
mod objective;
mod params;
mod teacher;

pub use centres::centres;
pub use gradient::{Construction, gradient_vectors};
pub use objective::{Loss, Objective};
pub use params::{Answers, Examples, GradientParams};
