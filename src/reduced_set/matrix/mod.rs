//! Selections that need the kernel matrix of all vectors.
//!
//! | file | contents |
//! |---|---|
//! | `rank` | a basis of the span of all vectors: lossless (TR-132, eq. 3, after Downs, Gates and Masters, 2001) |
//! | `selection` | the path along the order of a method (TR-132, eq. 7) |
//! | `problem` | a method, its input and its result |

mod problem;
mod rank;
mod selection;

pub(crate) use problem::Coefficients;
pub use problem::{Method, Order, Problem};
pub use rank::Rank;
pub(crate) use rank::basis;
pub(super) use selection::{OrderedPaths, select};
