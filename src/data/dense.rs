//! Dense matrices from slices, and their rows as slices.

use ndarray::{Array2, ArrayView2, Axis};

use crate::error::{Error, Result};
use crate::memory::{TryCollect, try_with_capacity};

/// Views row-major elements as a matrix of `shape` (rows, columns).
pub(crate) fn matrix<T>(shape: (usize, usize), data: &[T]) -> Result<ArrayView2<'_, T>> {
    match ArrayView2::from_shape(shape, data) {
        Ok(view) if view.len() == data.len() => Ok(view),
        _ => Err(Error::Shape {
            what: "elements of a dense matrix",
            expected: shape.0.saturating_mul(shape.1),
            actual: data.len(),
        }),
    }
}

/// Turns a row-major array into the vector of its elements, without a copy.
pub(crate) fn flat<T>(array: Array2<T>) -> Vec<T> {
    debug_assert!(array.is_standard_layout());
    array.into_raw_vec_and_offset().0
}

/// Copies the elements of a view of any layout, row after row.
pub(crate) fn copy_flat<T: Copy>(view: ArrayView2<'_, T>) -> Result<Vec<T>> {
    view.iter().copied().try_collect_vec()
}

/// Copies the columns of a view.
pub(crate) fn copy_columns(view: ArrayView2<'_, f64>) -> Result<Vec<Vec<f64>>> {
    view.columns().into_iter().map(|column| column.iter().copied().try_collect_vec()).collect()
}

/// Rounds numbers to single precision.
pub(crate) fn rounded<'v>(values: impl IntoIterator<Item = &'v f64>) -> Result<Vec<f32>> {
    values.into_iter().map(|&v| v as f32).try_collect_vec()
}

/// Returns one row of a view inside a [`Rows`](super::Rows).
#[inline]
pub(crate) fn row<'a, T>(view: &ArrayView2<'a, T>, row: usize) -> &'a [T] {
    view.index_axis_move(Axis(0), row).to_slice().expect("the layout was checked when the rows were made")
}

/// Copies the given rows.
pub(crate) fn gather<T: Copy>(view: &ArrayView2<'_, T>, rows: &[usize]) -> Result<Array2<T>> {
    let mut data = try_with_capacity("gathered rows", rows.len() * view.ncols())?;
    for &i in rows {
        data.extend_from_slice(row(view, i));
    }
    Ok(Array2::from_shape_vec((rows.len(), view.ncols()), data).expect("whole rows were copied"))
}
