//! Several classes from binary machines: codes, decoders, bounds (Rifkin 2002, chapter 4).
//!
//! A code is a matrix M in {-1, 0, 1}, a row for each class, a column for each machine: machine i learns to tell the
//! classes of +1 from those of -1 and never sees those of 0. A decoder makes a class of the machines' outputs. This
//! module knows only numbers; how all columns are trained over one set of kernel rows is `svm/classifier`.
//!
//! | file | holds |
//! |---|---|
//! | `code` | the matrix, its distances, the codes that follow from the number of classes |
//! | `draw` | random codes |
//! | `bch` | codes made of Bose-Chaudhuri-Hocquenghem code words |
//! | `draws` | the best of many draws, for both |
//! | `decode` | from outputs to scores of classes |
//! | `bounds` | how far leaving a row out can turn its class |

mod bch;
mod bounds;
mod code;
mod decode;
mod draw;
mod draws;

pub use bch::bch;
pub use bounds::{LeaveOneOutRows, leave_one_out_margins};
pub use code::CodeMatrix;
pub use decode::{Decoder, MarginLoss, scores, winners};
pub use draw::{Drawn, draw};
pub use draws::Draws;
