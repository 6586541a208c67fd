//! Files: data and models in and out, and the way every file is saved.
//!
//! | file | holds |
//! |---|---|
//! | `atomic` | saving that never leaves half a file behind |
//! | `safetensors` | svmarrow's own model file |
//! | `columns` | columns that count from 1 or from 0 |
//! | `container` | the safetensors container below it: header and named tensors |
//! | `grid` | coefficients and vectors of one byte, exactly back |
//! | `libsvm_model` | LIBSVM's model text, both ways |
//! | `lines` | numbered lines and the `index:value` grammar shared by the two texts |
//! | `svmlight` | rows and targets as svmlight text, both ways |
//! | `content_error` | errors in the contents of a file, before their line is known |
//! | `monitored` | streams that check the monitor |
//!
//! A reader holds at most 16 times the bytes of its file, asks the system for memory before it takes it, and believes no
//! number before it has compared it with the bytes that are there. (The coefficients of a LIBSVM model with many classes
//! are more than its text has; they too are asked for.)

pub mod atomic;
mod columns;
mod container;
mod content_error;
mod grid;
pub mod libsvm_model;
pub(crate) mod lines;
mod monitored;
pub mod safetensors;
pub mod svmlight;
