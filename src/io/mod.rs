//! Files: data and models in and out, and the way every file is saved.
//!
//! | file | holds |
//! |---|---|
//! | `atomic` | saving that never leaves half a file behind |
//! | `safetensors` | svmarrow's own model file |
//! | `container` | the safetensors container below it: header and named tensors |
//! | `grid` | coefficients of one byte, exactly back |
//! | `libsvm_model` | LIBSVM's model text, both ways |
//! | `lines` | numbered lines and the `index:value` grammar shared by the two texts |
//! | `svmlight` | rows and targets as svmlight text, both ways |

pub mod atomic;
mod container;
mod grid;
pub mod libsvm_model;
pub(crate) mod lines;
pub mod safetensors;
pub mod svmlight;
