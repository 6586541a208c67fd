//! Rows of numbers in the caller's memory: ndarray's matrices and compressed sparse rows, and an owned form.
//!
//! Nothing here copies. Algorithms ask for blocks of rows through [`Rows`], and the kernels pack those blocks in
//! the layout and precision they compute in, so that bytes, single and double precision all cost one read.

mod csr;
mod dense;
mod owned;
pub mod svmlight;

pub use csr::{CsrView, IndexSlice};
pub(crate) use dense::{flat, matrix, row};
pub use owned::OwnedRows;

use ndarray::{Array2, ArrayView2};

use crate::error::{Error, Result};

/// An element that rows may hold: `u8`, `f32` or `f64`.
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The exact value in double precision.
    fn to_f64(self) -> f64;

    /// The variant of this element, for a view whose layout was checked.
    #[doc(hidden)]
    fn rows(view: ArrayView2<'_, Self>) -> Rows<'_>;

    /// The variant of this element, for a row-major array.
    #[doc(hidden)]
    fn owned(array: Array2<Self>) -> OwnedRows;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($type:ty, $variant:ident;)*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn rows(view: ArrayView2<'_, Self>) -> Rows<'_> {
                Rows::$variant(view)
            }

            fn owned(array: Array2<Self>) -> OwnedRows {
                OwnedRows::$variant(array)
            }
        }
    )*};
}

element! {
    u8, DenseU8;
    f32, DenseF32;
    f64, DenseF64;
}

/// A matrix of rows in any supported layout and precision, made by `try_into` from an [`ArrayView2`] and by `into` from
/// a [`CsrView`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Rows<'a> {
    /// Dense bytes.
    #[non_exhaustive]
    DenseU8(ArrayView2<'a, u8>),
    /// Dense single precision.
    #[non_exhaustive]
    DenseF32(ArrayView2<'a, f32>),
    /// Dense double precision.
    #[non_exhaustive]
    DenseF64(ArrayView2<'a, f64>),
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

impl<'a> Rows<'a> {
    /// The same rows for a shorter time. ndarray's views do not shorten their lifetimes by themselves (they are
    /// invariant), so this is said where rows meet other borrows in one struct.
    pub fn reborrow<'b>(self) -> Rows<'b>
    where
        'a: 'b,
    {
        match self {
            Self::DenseU8(d) => Rows::DenseU8(d.reborrow()),
            Self::DenseF32(d) => Rows::DenseF32(d.reborrow()),
            Self::DenseF64(d) => Rows::DenseF64(d.reborrow()),
            Self::CsrF32(s) => Rows::CsrF32(s),
            Self::CsrF64(s) => Rows::CsrF64(s),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        with_rows!(self, dense(d) => d.nrows(), csr(s) => s.rows())
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        with_rows!(self, dense(d) => d.ncols(), csr(s) => s.cols())
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
            dense(d) => for (j, v) in dense::row(d, row).iter().enumerate() { visit(j, v.to_f64()); },
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
            Self::DenseU8(d) => dense::gather(d, rows),
            Self::DenseF32(d) => dense::gather(d, rows),
            Self::DenseF64(d) => dense::gather(d, rows),
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
