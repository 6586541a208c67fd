//! Rows that own their memory, for models read from files and for vectors taken out of a training set.

use super::{CsrView, DenseView, IndexSlice, Rows};

/// The owned counterpart of [`Rows`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are those of the views
pub enum OwnedRows {
    DenseU8 { data: Vec<u8>, rows: usize, cols: usize },
    DenseF32 { data: Vec<f32>, rows: usize, cols: usize },
    DenseF64 { data: Vec<f64>, rows: usize, cols: usize },
    CsrF32 { indptr: Vec<i64>, indices: Vec<i64>, values: Vec<f32>, cols: usize },
    CsrF64 { indptr: Vec<i64>, indices: Vec<i64>, values: Vec<f64>, cols: usize },
}

impl OwnedRows {
    /// Borrows the rows.
    ///
    /// # Panics
    /// If the fields contradict each other; every constructor in this crate checks them.
    pub fn view(&self) -> Rows<'_> {
        const CHECKED: &str = "owned rows are consistent";
        match self {
            Self::DenseU8 { data, rows, cols } => DenseView::new(data, *rows, *cols).expect(CHECKED).into(),
            Self::DenseF32 { data, rows, cols } => DenseView::new(data, *rows, *cols).expect(CHECKED).into(),
            Self::DenseF64 { data, rows, cols } => DenseView::new(data, *rows, *cols).expect(CHECKED).into(),
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
