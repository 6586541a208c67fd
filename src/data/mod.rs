//! Matrices of samples: borrowed views of ndarray's matrices and of compressed sparse rows, and an owned form.
//!
//! Views do not copy. Algorithms read blocks of rows through [`Rows`], and the kernels pack these in the layout and precision
//! of the computation, so that bytes, single and double precision are each read once.
//!
//! All layouts are the same type:
//!
//! ```
//! use ndarray::arr2;
//! use svmarrow::data::{CsrView, IndexSlice, Rows};
//!
//! let dense = arr2(&[[0.0, 2.0], [1.0, 0.0]]);
//! let sparse = CsrView::new(IndexSlice::I32(&[0, 1, 2]), IndexSlice::I32(&[1, 0]), &[2.0_f32, 1.0], 2)?;
//! for rows in [Rows::try_from(&dense)?, Rows::from(sparse)] {
//!     let mut sums = [0.0; 2];
//!     rows.for_each_in_row(0, |column, value| sums[column] += value);
//!     assert_eq!((rows.rows(), sums), (2, [0.0, 2.0]));
//! }
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod csr;
mod dense;
mod element;
mod rows;

pub use csr::{CsrView, IndexSlice};
pub(crate) use dense::{flat, matrix, row};
pub use element::Element;
pub use rows::{DenseElement, IntoRows, OwnedRows, Rows};
