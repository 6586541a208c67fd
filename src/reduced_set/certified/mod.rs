//! A small machine whose answers are certain to be the large one's, where it gives any.
//!
//! | file | holds |
//! |---|---|
//! | `bounds` | how far a projection's outputs can be from the machine's |
//! | `cascade` | stages of a path, each answering the rows that its bounds decide |
//! | `decision` | the class that outputs with bounds are certain of |

mod bounds;
mod cascade;
mod decision;

pub use bounds::{Moments, Projection, StageSize, moments};
pub use cascade::{Cascade, CertainAnswers, UNDECIDED};
pub use decision::Decision;
