//! Choices that need the kernel matrix of all vectors.
//!
//! | file | holds |
//! |---|---|
//! | `selection` | the methods, and the path along the order that one gives |
//! | `l0` | the zero norm |
//! | `l1` | l1, joint l1, LARS-SVM |

mod l0;
mod l1;
mod selection;

pub use l1::Norm;
pub(super) use selection::along;
pub use selection::{LEVELS, Method, select};
