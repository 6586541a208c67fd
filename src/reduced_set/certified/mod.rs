//! A small machine whose answers are certain to be those of the large one, or are undecided.
//!
//! | file | contents |
//! |---|---|
//! | `bounds` | bounds on the distance of a projection's outputs from the machine's |
//! | `cascade` | stages of a path, each answering the rows that its bounds decide |
//! | `decision` | the class that is certain, from outputs with bounds |

mod bounds;
mod cascade;
mod decision;

pub use bounds::{Moments, Projection, StageSize, moments};
pub use cascade::{Cascade, CertainAnswers, UNDECIDED};
pub use decision::Decision;
