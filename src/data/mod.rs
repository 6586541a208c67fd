//! Rows of numbers in the caller's memory: ndarray's matrices and compressed sparse rows, and an owned form.
//!
//! Nothing here copies. Algorithms ask for blocks of rows through [`Rows`], and the kernels pack those blocks in
//! the layout and precision they compute in, so that bytes, single and double precision all cost one read.

mod csr;
mod dense;
mod element;
mod rows;

pub use csr::{CsrView, IndexSlice};
pub(crate) use dense::{flat, matrix, row};
pub use element::Element;
pub use rows::{DenseElement, IntoRows, OwnedRows, Rows};
