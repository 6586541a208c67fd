//! Constructed vectors, optimized together with their coefficients (compressed SVM, eq. 10).
//!
//! | file | contents |
//! |---|---|
//! | `gradient` | the optimization |
//! | `descent` | its steps and samples |
//! | `params` | its parameters and rows |
//! | `objective` | the losses |
//! | `teacher` | outputs of the large machine on rows and perturbed rows |
//! | `scales` | scales of the columns, the best state of a run |
//! | `centres` | initial vectors |

mod centres;
mod descent;
mod gradient;
mod objective;
mod params;
mod scales;
mod teacher;

pub use centres::centres;
pub use gradient::{Construction, gradient_vectors};
pub use objective::{Loss, Objective};
pub use params::{Answers, Examples, GradientParams};
