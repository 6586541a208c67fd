//! Rows that own their memory, for models read from files and for vectors taken out of a training set.

use ndarray::Array2;

use super::{CsrView, IndexSlice, Rows};

/// The owned counterpart of [`Rows`]; a dense one is made from an [`Array2`] by `into`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are those of the views
pub enum OwnedRows {
    DenseU8(Array2<u8>),
    DenseF32(Array2<f32>),
    DenseF64(Array2<f64>),
    CsrF32 { indptr: Vec<i64>, indices: Vec<i64>, values: Vec<f32>, cols: usize },
    CsrF64 { indptr: Vec<i64>, indices: Vec<i64>, values: Vec<f64>, cols: usize },
}

impl OwnedRows {
    /// Borrows the rows.
    ///
    /// # Panics
    /// If a dense array is not row-major or the fields of sparse rows contradict each other; every constructor in this
    /// crate checks them.
    pub fn view(&self) -> Rows<'_> {
        const CHECKED: &str = "owned rows are consistent";
        match self {
            Self::DenseU8(array) => array.try_into().expect(CHECKED),
            Self::DenseF32(array) => array.try_into().expect(CHECKED),
            Self::DenseF64(array) => array.try_into().expect(CHECKED),
            Self::CsrF32 { indptr, indices, values, cols } => {
                CsrView::new(IndexSlice::I64(indptr), IndexSlice::I64(indices), values, *cols)
                    .expect(CHECKED)
                    .into()
            }
            Self::CsrF64 { indptr, indices, values, cols } => {
                CsrView::new(IndexSlice::I64(indptr), IndexSlice::I64(indices), values, *cols)
                    .expect(CHECKED)
                    .into()
            }
        }
    }
}
