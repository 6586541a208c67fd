//! Rows of numbers in the caller's memory: dense and compressed sparse row views, and an owned form.
//!
//! Nothing here copies. Algorithms ask for blocks of rows through [`Rows`], and the kernels pack those blocks in
//! the layout and precision they compute in, so that bytes, single and double precision all cost one read.

mod csr;
mod dense;
mod owned;
pub mod svmlight;

pub use csr::{CsrView, IndexSlice};
pub use dense::DenseView;
pub use owned::OwnedRows;

use crate::error::{Error, Result};

/// An element that a view may hold.
pub trait Element: Copy + Send + Sync + 'static {
    /// The exact value in double precision.
    fn to_f64(self) -> f64;
}

impl Element for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    fn to_f64(self) -> f64 {
        self
    }
}

impl Element for u8 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

/// A matrix of rows in any supported layout and precision.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Rows<'a> {
    /// Dense bytes.
    DenseU8(DenseView<'a, u8>),
    /// Dense single precision.
    DenseF32(DenseView<'a, f32>),
    /// Dense double precision.
    DenseF64(DenseView<'a, f64>),
    /// Sparse single precision.
    CsrF32(CsrView<'a, f32>),
    /// Sparse double precision.
    CsrF64(CsrView<'a, f64>),
}

/// Runs the same expression on whichever view is inside; dense and sparse branches differ.
#[macro_export]
#[doc(hidden)]
macro_rules! with_rows {
    ($rows:expr, dense($d:ident) => $dense:expr, csr($s:ident) => $csr:expr) => {
        match $rows {
            $crate::data::Rows::DenseU8($d) => $dense,
            $crate::data::Rows::DenseF32($d) => $dense,
            $crate::data::Rows::DenseF64($d) => $dense,
            $crate::data::Rows::CsrF32($s) => $csr,
            $crate::data::Rows::CsrF64($s) => $csr,
        }
    };
}

impl Rows<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        with_rows!(self, dense(d) => d.rows(), csr(s) => s.rows())
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        with_rows!(self, dense(d) => d.cols(), csr(s) => s.cols())
    }

    /// Whether the rows are stored sparse.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::CsrF32(_) | Self::CsrF64(_))
    }

    /// Whether the elements are double precision.
    pub fn is_f64(&self) -> bool {
        matches!(self, Self::DenseF64(_) | Self::CsrF64(_))
    }

    /// Calls `visit(column, value)` for the stored entries of one row, in column order.
    pub fn for_each_in_row(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        with_rows!(self,
            dense(d) => for (j, v) in d.row(row).iter().enumerate() { visit(j, v.to_f64()); },
            csr(s) => s.for_each_in_row(row, |j, v| visit(j, v.to_f64())));
    }

    /// The first row that holds a value which is not finite, as an error naming `what`.
    pub fn check_finite(&self, what: &'static str) -> Result<()> {
        for row in 0..self.rows() {
            let mut finite = true;
            self.for_each_in_row(row, |_, v| finite &= v.is_finite());
            if !finite {
                return Err(Error::NotFinite { what, row });
            }
        }
        Ok(())
    }

    /// Copies the given rows, keeping layout and precision.
    pub fn gather(&self, rows: &[usize]) -> OwnedRows {
        match self {
            Self::DenseU8(d) => OwnedRows::DenseU8 { data: d.gather(rows), rows: rows.len(), cols: d.cols() },
            Self::DenseF32(d) => {
                OwnedRows::DenseF32 { data: d.gather(rows), rows: rows.len(), cols: d.cols() }
            }
            Self::DenseF64(d) => {
                OwnedRows::DenseF64 { data: d.gather(rows), rows: rows.len(), cols: d.cols() }
            }
            Self::CsrF32(s) => {
                let (indptr, indices, values) = s.gather(rows);
                OwnedRows::CsrF32 { indptr, indices, values, cols: s.cols() }
            }
            Self::CsrF64(s) => {
                let (indptr, indices, values) = s.gather(rows);
                OwnedRows::CsrF64 { indptr, indices, values, cols: s.cols() }
            }
        }
    }
}
