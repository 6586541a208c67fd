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
mod row_set;
mod rows;

pub use csr::{CsrView, IndexSlice};
pub(crate) use dense::{copy_columns, copy_flat, flat, gather, matrix, rounded, row};
pub use element::Element;
pub(crate) use row_set::RowSet;
pub use rows::{DenseElement, IntoRows, OwnedRows, Rows, SparseElement};

/// Returns the numbers of rows that are not zero as sparse rows of `cols` columns, moved to other columns.
#[cfg(test)]
pub(crate) fn to_csr(rows: Rows<'_>, cols: usize, column: impl Fn(usize) -> usize) -> OwnedRows {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..rows.rows() {
        rows.for_each_entry(i, |k, v| {
            indices.push(column(k) as i64);
            values.push(v);
        });
        indptr.push(values.len() as i64);
    }
    OwnedRows::CsrF64 { indptr, indices, values, cols }
}
