//! A dense row-major view: rows of contiguous elements, `row_stride` elements apart.

use super::{Element, Rows};
use crate::error::{Error, Result};

/// `rows` x `cols` elements of someone else's memory.
#[derive(Debug, Clone, Copy)]
pub struct DenseView<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    row_stride: usize,
}

impl<'a, T: Element> DenseView<'a, T> {
    /// A view of contiguous rows.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::with_stride(data, rows, cols, cols)
    }

    /// A view of rows that start `row_stride` elements apart.
    pub fn with_stride(data: &'a [T], rows: usize, cols: usize, row_stride: usize) -> Result<Self> {
        let needed = if rows == 0 {
            Some(0)
        } else {
            (rows - 1).checked_mul(row_stride).and_then(|start| start.checked_add(cols))
        };
        match needed {
            Some(needed) if needed <= data.len() && (row_stride >= cols || rows <= 1) => {
                Ok(Self { data, rows, cols, row_stride })
            }
            _ => Err(Error::Shape {
                what: "elements of a dense matrix",
                expected: needed.unwrap_or(usize::MAX),
                found: data.len(),
            }),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    #[inline]
    pub fn row(&self, row: usize) -> &'a [T] {
        let start = row * self.row_stride;
        &self.data[start..start + self.cols]
    }

    pub(super) fn gather(&self, rows: &[usize]) -> Vec<T> {
        let mut out = Vec::with_capacity(rows.len() * self.cols);
        for &row in rows {
            out.extend_from_slice(self.row(row));
        }
        out
    }
}

impl<'a> From<DenseView<'a, u8>> for Rows<'a> {
    fn from(view: DenseView<'a, u8>) -> Self {
        Self::DenseU8(view)
    }
}

impl<'a> From<DenseView<'a, f32>> for Rows<'a> {
    fn from(view: DenseView<'a, f32>) -> Self {
        Self::DenseF32(view)
    }
}

impl<'a> From<DenseView<'a, f64>> for Rows<'a> {
    fn from(view: DenseView<'a, f64>) -> Self {
        Self::DenseF64(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_are_refused() {
        let data = [0.0_f32; 4];
        assert!(DenseView::new(&data, usize::MAX, 2).is_err());
        assert!(DenseView::with_stride(&data, 3, 1, usize::MAX).is_err());
        assert!(DenseView::with_stride(&data, 2, 2, 1).is_err());
        assert!(DenseView::new(&data, 2, 3).is_err());
    }

    #[test]
    fn strided_rows() {
        let data = [1.0_f64, 2.0, 9.0, 3.0, 4.0];
        let view = DenseView::with_stride(&data, 2, 2, 3).unwrap();
        assert_eq!(view.row(1), &[3.0, 4.0]);
        assert_eq!(view.gather(&[1, 0]), &[3.0, 4.0, 1.0, 2.0]);
    }
}
