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
//!
//! Three classes from the outputs of three pairs:
//!
//! ```
//! use ndarray::arr2;
//! use svmarrow::context::Context;
//! use svmarrow::multiclass::{CodeMatrix, Decoder, winners};
//!
//! let code = CodeMatrix::one_vs_one(3)?;
//! // Pairs (0, 1), (0, 2), (1, 2), positive for the first class of each.
//! let outputs = arr2(&[[1.0, 0.5, -0.2], [-1.0, 0.5, 0.7]]);
//! assert_eq!(winners(outputs.view(), &code, Decoder::Votes, Context::default())?, [0, 1]);
//! # Ok::<(), svmarrow::Error>(())
//! ```

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
