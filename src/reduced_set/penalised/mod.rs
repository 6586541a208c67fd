//! Selections that need the kernel matrix of all vectors.
//!
//! | file | selects | source |
//! |---|---|---|
//! | `rank` | a basis of the span of all vectors: lossless | TR-132, eq. 3, after Downs, Gates and Masters, 2001 |
//! | `l0` | the fewest vectors that preserve w, up to a change set by gamma | TR-132, alg. 3.4 and 3.5 |
//! | `l1` | the penalized path, also of an SVM trained again on its own vectors | TR-132, eq. 4 and 5; compressed SVM, eq. 6 to 9 |
//! | `lasso` | | the exact l1 path of one output; Efron, Hastie, Johnstone and Tibshirani, 2004 |
//! | `groups` | | the solutions of outputs that share their vectors |
//! | `newton` | | the Newton step of `groups` |
//! | `selection` | by one of these methods, and returns the path along its order | TR-132, eq. 7 |
//! | `problem` | | input and result of the methods |

mod groups;
mod l0;
mod l1;
mod lasso;
mod newton;
mod problem;
mod rank;
mod selection;

pub use l0::LEVELS;
pub use problem::Norm;
pub(super) use selection::OrderedPaths;
pub use selection::{Method, select};
