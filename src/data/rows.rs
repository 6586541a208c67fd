//! A matrix of rows in any layout and precision, borrowed and owned.
//!
//! Dense matrices are ndarray's: any view whose rows are contiguous and do not overlap. Kernels and packing read rows as
//! slices, so the elements of a row must be contiguous; the rows may have any stride, as those of `x.slice(s![.., ..4])`. The
//! layout is checked once, when a [`Rows`] is created.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};

use super::csr::{CsrView, IndexSlice};
use super::dense::{gather, matrix, rounded, row as row_of};
use super::element::Element;
use crate::error::{Error, Result};
use crate::memory::try_vec;

/// Number of elements of a dense row that are compared with zero together.
const ZERO_CHECK_LENGTH: usize = 8;

/// A matrix of rows in any supported layout and precision: an [`ArrayView2`] by `try_into`, or a [`CsrView`] by `into`.
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

/// Evaluates one expression for a view of any dense element type, and one for a view of sparse rows.
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
    /// Views row-major `data` as rows of `shape` (rows, columns).
    ///
    /// # Errors
    /// [`Error::Shape`] if `data` has another number of elements.
    pub fn from_shape<T: DenseElement>(shape: (usize, usize), data: &'a [T]) -> Result<Self> {
        matrix(shape, data)?.try_into()
    }

    /// Returns the same rows for a shorter time. ndarray's views are invariant in their lifetime, so structs that hold rows and
    /// shorter borrows need it.
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

    /// Returns the number of rows n.
    pub fn rows(&self) -> usize {
        with_rows!(self, dense(d) => d.nrows(), csr(s) => s.rows())
    }

    /// Returns the number of columns d, sparse columns without an entry included.
    pub fn cols(&self) -> usize {
        with_rows!(self, dense(d) => d.ncols(), csr(s) => s.cols())
    }

    /// Returns the sum of the number of rows and of the number of columns, at most of those that have a stored entry: how
    /// many numbers a vector over rows and one over columns have together.
    pub fn vector_lengths(&self) -> usize {
        let columns = with_rows!(self, dense(d) => d.ncols(), csr(s) => s.cols().min(s.stored()));
        self.rows().saturating_add(columns)
    }

    /// Returns whether the rows are stored sparse.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::CsrF32(_) | Self::CsrF64(_))
    }

    /// Returns whether the elements are double precision.
    pub fn is_f64(&self) -> bool {
        matches!(self, Self::DenseF64(_) | Self::CsrF64(_))
    }

    /// Calls `visit(column, value)` for the stored entries of one row, in column order.
    pub fn for_each_in_row(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        with_rows!(self,
            dense(d) => for (j, v) in row_of(d, row).iter().enumerate() { visit(j, v.to_f64()); },
            csr(s) => s.for_each_in_row(row, |j, v| visit(j, v.to_f64())));
    }

    /// Calls `visit(column, value)` for the stored entries of a sparse row, or for those of a dense one that are not zero, in
    /// column order.
    pub(crate) fn for_each_entry(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        with_rows!(self,
            dense(d) => {
                // Several zeros are skipped at a time.
                for (place, chunk) in row_of(d, row).chunks(ZERO_CHECK_LENGTH).enumerate() {
                    if chunk.iter().fold(false, |any, v| any | (v.to_f64() != 0.0)) {
                        for (j, v) in (place * ZERO_CHECK_LENGTH..).zip(chunk) {
                            let v = v.to_f64();
                            if v != 0.0 {
                                visit(j, v);
                            }
                        }
                    }
                }
            },
            csr(s) => s.for_each_in_row(row, |j, v| visit(j, v.to_f64())));
    }

    /// Returns the number of visits of [`Rows::for_each_entry`].
    pub(crate) fn entries(&self, row: usize) -> usize {
        with_rows!(self,
            dense(d) => row_of(d, row).iter().map(|v| usize::from(v.to_f64() != 0.0)).sum(),
            csr(s) => s.row_len(row))
    }

    /// Checks that all values are finite.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with `what` and the first row that has another value.
    pub fn check_finite(&self, what: &'static str) -> Result<()> {
        self.check_finite_within(what, 0..self.rows())
    }

    /// Checks that all values of a range of rows are finite, as [`Rows::check_finite`].
    pub(crate) fn check_finite_within(&self, what: &'static str, rows: Range<usize>) -> Result<()> {
        for row in rows {
            let mut finite = true;
            self.for_each_in_row(row, |_, v| finite &= v.is_finite());
            if !finite {
                return Err(Error::NotFinite { what, row });
            }
        }
        Ok(())
    }

    /// Returns the number of stored entries of a row.
    pub(crate) fn stored(&self, row: usize) -> usize {
        with_rows!(self, dense(d) => d.ncols(), csr(s) => s.row_len(row))
    }

    /// Returns a range of the rows, without a copy.
    ///
    /// # Panics
    /// If the range is not within the rows.
    #[must_use]
    pub fn slice(self, rows: Range<usize>) -> Self {
        match self {
            Self::DenseU8(d) => Self::DenseU8(d.slice_move(s![rows, ..])),
            Self::DenseF32(d) => Self::DenseF32(d.slice_move(s![rows, ..])),
            Self::DenseF64(d) => Self::DenseF64(d.slice_move(s![rows, ..])),
            Self::CsrF32(s) => Self::CsrF32(s.slice(rows)),
            Self::CsrF64(s) => Self::CsrF64(s.slice(rows)),
        }
    }

    /// Copies the listed rows, keeping layout and precision.
    pub fn gather(&self, rows: &[usize]) -> Result<OwnedRows> {
        match self {
            Self::DenseU8(d) => Ok(OwnedRows::DenseU8(gather(d, rows)?)),
            Self::DenseF32(d) => Ok(OwnedRows::DenseF32(gather(d, rows)?)),
            Self::DenseF64(d) => Ok(OwnedRows::DenseF64(gather(d, rows)?)),
            Self::CsrF32(s) => {
                let (indptr, indices, values) = s.gather(rows)?;
                Ok(OwnedRows::CsrF32 { indptr, indices, values, cols: s.cols() })
            }
            Self::CsrF64(s) => {
                let (indptr, indices, values) = s.gather(rows)?;
                Ok(OwnedRows::CsrF64 { indptr, indices, values, cols: s.cols() })
            }
        }
    }
}

impl Rows<'_> {
    /// Calls `visit` with the place in `list` and the values of each listed row, of all columns.
    ///
    /// # Errors
    /// [`Error::Memory`]: sparse rows can have many columns.
    pub(crate) fn for_each_dense(
        &self,
        list: impl IntoIterator<Item = usize>,
        mut visit: impl FnMut(usize, &[f64]),
    ) -> Result<()> {
        let mut values = try_vec![0.0; self.cols()]?;
        for (place, row) in list.into_iter().enumerate() {
            values.fill(0.0);
            self.for_each_in_row(row, |k, v| values[k] = v);
            visit(place, &values);
        }
        Ok(())
    }

    /// Copies rows in double precision to single precision; `None` if a number is outside its normal range.
    pub(crate) fn to_single(self) -> Result<Option<OwnedRows>> {
        let is_outside = |(v, single): (&f64, &f32)| *v != 0.0 && !single.is_normal();
        match self {
            Self::DenseF64(d) => {
                let values = rounded(d)?;
                let is_inside = !d.iter().zip(&values).any(is_outside);
                let array = Array2::from_shape_vec(d.dim(), values).expect("a number for each entry");
                Ok(is_inside.then(|| array.into()))
            }
            Self::CsrF64(s) => {
                let all: Vec<usize> = (0..self.rows()).collect();
                let (indptr, indices, stored) = s.gather(&all)?;
                let values = rounded(&stored)?;
                let is_inside = !stored.iter().zip(&values).any(is_outside);
                Ok(is_inside.then_some(OwnedRows::CsrF32 { indptr, indices, values, cols: s.cols() }))
            }
            _ => Ok(Some(self.gather(&(0..self.rows()).collect::<Vec<_>>())?)),
        }
    }
}

/// Samples that estimators accept: anything that converts to [`Rows`].
pub trait IntoRows<'a> {
    /// Converts the samples to rows, without a copy.
    ///
    /// # Errors
    /// [`Error::Layout`] for a dense matrix whose rows are not contiguous.
    fn into_rows(self) -> Result<Rows<'a>>;
}

impl<'a, T> IntoRows<'a> for T
where
    T: TryInto<Rows<'a>>,
    Error: From<T::Error>,
{
    fn into_rows(self) -> Result<Rows<'a>> {
        Ok(self.try_into()?)
    }
}

/// An element type of dense rows, with its variants of [`Rows`] and [`OwnedRows`].
pub trait DenseElement: Element {
    /// Wraps a view whose layout was checked.
    #[doc(hidden)]
    fn rows(view: ArrayView2<'_, Self>) -> Rows<'_>;

    /// Wraps a row-major array.
    #[doc(hidden)]
    fn owned(array: Array2<Self>) -> OwnedRows;
}

/// An element type of sparse rows, with its variant of [`OwnedRows`].
pub trait SparseElement: Element {
    /// Wraps sparse rows whose structure was checked.
    #[doc(hidden)]
    fn owned_csr(indptr: Vec<i64>, indices: Vec<i64>, values: Vec<Self>, cols: usize) -> OwnedRows;
}

impl SparseElement for f32 {
    fn owned_csr(indptr: Vec<i64>, indices: Vec<i64>, values: Vec<Self>, cols: usize) -> OwnedRows {
        OwnedRows::CsrF32 { indptr, indices, values, cols }
    }
}

impl SparseElement for f64 {
    fn owned_csr(indptr: Vec<i64>, indices: Vec<i64>, values: Vec<Self>, cols: usize) -> OwnedRows {
        OwnedRows::CsrF64 { indptr, indices, values, cols }
    }
}

macro_rules! dense_element {
    ($($type:ty, $variant:ident;)*) => {$(
        impl DenseElement for $type {
            fn rows(view: ArrayView2<'_, Self>) -> Rows<'_> {
                Rows::$variant(view)
            }

            fn owned(array: Array2<Self>) -> OwnedRows {
                OwnedRows::$variant(array)
            }
        }
    )*};
}

dense_element! {
    u8, DenseU8;
    f32, DenseF32;
    f64, DenseF64;
}

impl<'a, T: DenseElement> TryFrom<ArrayView2<'a, T>> for Rows<'a> {
    type Error = Error;

    /// Takes the view as it is.
    ///
    /// # Errors
    /// [`Error::Layout`] if the elements of a row are not contiguous, or rows overlap or run backwards.
    fn try_from(view: ArrayView2<'a, T>) -> Result<Self> {
        let (rows, cols) = view.dim();
        let &[between, within] = view.strides() else { unreachable!("a matrix has two strides") };
        if (cols <= 1 || within == 1) && (rows <= 1 || between >= cols as isize) || view.is_empty() {
            Ok(T::rows(view))
        } else {
            Err(Error::Layout { strides: [between, within] })
        }
    }
}

impl<'a, T: DenseElement> TryFrom<&'a Array2<T>> for Rows<'a> {
    type Error = Error;

    fn try_from(array: &'a Array2<T>) -> Result<Self> {
        array.view().try_into()
    }
}

impl<'a> From<CsrView<'a, f32>> for Rows<'a> {
    fn from(view: CsrView<'a, f32>) -> Self {
        Self::CsrF32(view)
    }
}

impl<'a> From<CsrView<'a, f64>> for Rows<'a> {
    fn from(view: CsrView<'a, f64>) -> Self {
        Self::CsrF64(view)
    }
}

/// Rows that own their memory: models read from files, vectors of a training set. Dense rows are made from an [`Array2`] by
/// `into`, which makes them row-major:
///
/// ```
/// use ndarray::arr2;
/// use svmarrow::data::OwnedRows;
///
/// let rows = OwnedRows::from(arr2(&[[1.0, 2.0], [3.0, 4.0]]).reversed_axes());
/// assert_eq!(rows, arr2(&[[1.0, 3.0], [2.0, 4.0]]).into());
/// ```
///
/// The variants do not make them, since their arrays may be of any layout:
///
/// ```compile_fail
/// use ndarray::arr2;
/// use svmarrow::data::OwnedRows;
///
/// let rows = OwnedRows::DenseF64(arr2(&[[1.0, 2.0], [3.0, 4.0]]).reversed_axes());
/// ```
///
/// Sparse rows are made by [`OwnedRows::from_csr`], which checks their structure. Their variants do not make them either:
///
/// ```compile_fail
/// use svmarrow::data::OwnedRows;
///
/// let rows = OwnedRows::CsrF64 { indptr: vec![0, 9], indices: vec![7], values: vec![1.0], cols: 2 };
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are those of the views
pub enum OwnedRows {
    #[non_exhaustive]
    DenseU8(Array2<u8>),
    #[non_exhaustive]
    DenseF32(Array2<f32>),
    #[non_exhaustive]
    DenseF64(Array2<f64>),
    #[non_exhaustive]
    CsrF32 { indptr: Vec<i64>, indices: Vec<i64>, values: Vec<f32>, cols: usize },
    #[non_exhaustive]
    CsrF64 { indptr: Vec<i64>, indices: Vec<i64>, values: Vec<f64>, cols: usize },
}

impl OwnedRows {
    /// Creates sparse rows from row pointers, column indices, values and the number of columns.
    ///
    /// ```
    /// use svmarrow::data::OwnedRows;
    ///
    /// let rows = OwnedRows::from_csr(vec![0, 1, 1], vec![2], vec![0.5], 3)?;
    /// assert_eq!((rows.view().rows(), rows.view().cols()), (2, 3));
    /// assert!(OwnedRows::from_csr(vec![0, 1, 1], vec![3], vec![0.5], 3).is_err());
    /// # Ok::<(), svmarrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`CsrView::new`].
    pub fn from_csr<T: SparseElement>(
        indptr: Vec<i64>,
        indices: Vec<i64>,
        values: Vec<T>,
        cols: usize,
    ) -> Result<Self> {
        CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I64(&indices), &values, cols)?;
        Ok(T::owned_csr(indptr, indices, values, cols))
    }

    /// Borrows the rows.
    ///
    /// # Panics
    /// If a dense array is not row-major, or if the fields of sparse rows contradict each other, which all constructors
    /// check.
    pub fn view(&self) -> Rows<'_> {
        const CHECKED: &str = "owned rows are consistent";
        match self {
            Self::DenseU8(array) => array.try_into().expect(CHECKED),
            Self::DenseF32(array) => array.try_into().expect(CHECKED),
            Self::DenseF64(array) => array.try_into().expect(CHECKED),
            Self::CsrF32 { indptr, indices, values, cols } => {
                CsrView::from_checked(IndexSlice::I64(indptr), IndexSlice::I64(indices), values, *cols).into()
            }
            Self::CsrF64 { indptr, indices, values, cols } => {
                CsrView::from_checked(IndexSlice::I64(indptr), IndexSlice::I64(indices), values, *cols).into()
            }
        }
    }
}

impl<'a> From<&'a OwnedRows> for Rows<'a> {
    fn from(rows: &'a OwnedRows) -> Self {
        rows.view()
    }
}

impl<T: DenseElement> From<Array2<T>> for OwnedRows {
    /// Takes the array, which is copied only if it is not row-major.
    fn from(array: Array2<T>) -> Self {
        let row_major = array.is_standard_layout();
        T::owned(if row_major { array } else { array.as_standard_layout().into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{arr2, s};

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let data = [0.0_f32; 4];
        assert!(Rows::from_shape((usize::MAX, 2), &data).is_err());
        assert!(Rows::from_shape((2, 3), &data).is_err());
        assert!(Rows::from_shape((1, 2), &data).is_err());
        assert!(Rows::from_shape((2, 2), &data).is_ok());
    }

    #[test]
    fn layouts_whose_rows_are_slices_are_taken() {
        let x = arr2(&[[1.0_f64, 2.0, 9.0], [3.0, 4.0, 9.0], [5.0, 6.0, 9.0]]);
        for view in
            [x.slice(s![.., ..2]), x.slice(s![..;2, ..2]), x.slice(s![1.., 2..]), x.slice(s![..0, ..])]
        {
            let rows = Rows::try_from(view).unwrap();
            assert_eq!((rows.rows(), rows.cols()), view.dim());
            let all: Vec<usize> = (0..view.nrows()).collect();
            assert_eq!(rows.gather(&all).unwrap(), view.to_owned().into());
        }
        let column = x.t();
        for view in
            [column, x.slice(s![..;-1, ..]), x.slice(s![.., ..;2]), x.row(0).broadcast((3, 3)).unwrap()]
        {
            assert!(matches!(Rows::try_from(view), Err(Error::Layout { .. })), "{:?}", view.strides());
        }
        assert_eq!(
            OwnedRows::from(x.t().to_owned()).view().gather(&[2]).unwrap(),
            arr2(&[[9.0, 9.0, 9.0]]).into()
        );
    }
}
