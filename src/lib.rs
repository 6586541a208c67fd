//! Kernel machines: trained exact and fast on all cores, shrunk to the few vectors that matter, served at the
//! speed of what is left.
//!
//! ```text
//! rows --> svm --> KernelExpansion --> reduced_set --> KernelExpansion --> Evaluator / io
//! ```
//!
//! Everything is a [`KernelExpansion`](expansion::KernelExpansion). See `docs/design.md` in the repository for
//! the layers and the decisions.

#![deny(unsafe_code)]

mod cache;
pub mod control;
pub mod data;
pub mod error;
pub mod expansion;
pub mod io;
mod kernel;
pub mod kernels;
mod largest;
pub mod least_squares;
mod linalg;
pub mod matching_pursuit;
mod memory;
pub mod multiclass;
pub mod path;
pub mod perceptron;
pub mod random;
pub mod reduced_set;
pub mod simd;
pub mod svm;

pub use error::{Error, Result};
