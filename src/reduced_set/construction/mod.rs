//! Constructed vectors, optimised together with their coefficients (compressed SVM, eq. 10).
//!
//! | file | contents |
//! |---|---|
//! | `gradient` | the optimisation |
//! | `params` | its parameters and rows |
//! | `objective` | the losses |
//! | `teacher` | outputs of the large machine on rows and perturbed rows |
//! | `centres` | initial vectors |

mod centres;
mod gradient;
mod objective;
mod params;
mod teacher;

pub use centres::centres;
pub use gradient::{Construction, gradient_vectors};
pub use objective::{Loss, Objective};
pub use params::{Answers, Examples, GradientParams};
