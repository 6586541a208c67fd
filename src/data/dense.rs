//! Dense matrices are ndarray's: any view whose rows are contiguous and do not overlap.
//!
//! Kernels and packing read rows as slices, so the elements of a row must lie side by side; the rows themselves may
//! be any distance apart, as those of `x.slice(s![.., ..4])` are. The layout is checked once, where a [`Rows`] is made.

use ndarray::{Array2, ArrayView2, Axis};

use super::{Element, OwnedRows, Rows};
use crate::error::{Error, Result};

impl<'a, T: Element> TryFrom<ArrayView2<'a, T>> for Rows<'a> {
    type Error = Error;

    /// Takes the view as it is.
    ///
    /// # Errors
    /// [`Error::Layout`] where the elements of a row are not side by side, or rows overlap or run backwards.
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

impl<'a, T: Element> TryFrom<&'a Array2<T>> for Rows<'a> {
    type Error = Error;

    fn try_from(array: &'a Array2<T>) -> Result<Self> {
        array.view().try_into()
    }
}

impl<'a> Rows<'a> {
    /// Rows of `shape` (rows, columns) that follow each other in `data`.
    ///
    /// # Errors
    /// [`Error::Shape`] where `data` has not exactly as many elements.
    pub fn from_shape<T: Element>(shape: (usize, usize), data: &'a [T]) -> Result<Self> {
        matrix(shape, data)?.try_into()
    }
}

/// Elements that lie row after row as a matrix of `shape` (rows, columns).
pub(crate) fn matrix<T>(shape: (usize, usize), data: &[T]) -> Result<ArrayView2<'_, T>> {
    match ArrayView2::from_shape(shape, data) {
        Ok(view) if view.len() == data.len() => Ok(view),
        _ => Err(Error::Shape {
            what: "elements of a dense matrix",
            expected: shape.0.saturating_mul(shape.1),
            found: data.len(),
        }),
    }
}

/// The elements of a row-major array, row after row; the memory moves.
pub(crate) fn flat<T>(array: Array2<T>) -> Vec<T> {
    debug_assert!(array.is_standard_layout());
    array.into_raw_vec_and_offset().0
}

impl<T: Element> From<Array2<T>> for OwnedRows {
    /// Takes the array; it is copied only where it is not row-major.
    fn from(array: Array2<T>) -> Self {
        let row_major = array.is_standard_layout();
        T::owned(if row_major { array } else { array.as_standard_layout().into_owned() })
    }
}

/// One row of a view inside a [`Rows`].
#[inline]
pub(crate) fn row<'a, T>(view: &ArrayView2<'a, T>, row: usize) -> &'a [T] {
    view.index_axis_move(Axis(0), row).to_slice().expect("the layout was checked when the rows were made")
}

pub(super) fn gather<T: Element>(view: &ArrayView2<'_, T>, rows: &[usize]) -> OwnedRows {
    let mut data = Vec::with_capacity(rows.len() * view.ncols());
    for &i in rows {
        data.extend_from_slice(row(view, i));
    }
    T::owned(Array2::from_shape_vec((rows.len(), view.ncols()), data).expect("whole rows were copied"))
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
            assert_eq!(rows.gather(&all), view.to_owned().into());
        }
        let column = x.t();
        for view in
            [column, x.slice(s![..;-1, ..]), x.slice(s![.., ..;2]), x.row(0).broadcast((3, 3)).unwrap()]
        {
            assert!(matches!(Rows::try_from(view), Err(Error::Layout { .. })), "{:?}", view.strides());
        }
        assert_eq!(OwnedRows::from(x.t().to_owned()).view().gather(&[2]), arr2(&[[9.0, 9.0, 9.0]]).into());
    }
}
