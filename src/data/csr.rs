//! A compressed sparse row view with checked structure and either index width.
//!
//! The constructor checks once what every later access relies on: row pointers start at 0, never fall and end at
//! the number of stored values; column indices are in range, below 2^32, and strictly increasing within a row. A range of
//! rows has a part of the row pointers, and all indices and values.

use super::element::Element;
use crate::error::{Error, Result};
use crate::memory::try_entries;
use std::ops::Range;

/// Indices of 32 or 64 bits, as SciPy stores them.
#[derive(Debug, Clone, Copy)]
pub enum IndexSlice<'a> {
    /// 32-bit indices.
    I32(&'a [i32]),
    /// 64-bit indices.
    I64(&'a [i64]),
}

impl IndexSlice<'_> {
    fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::I32(s) => Self::I32(&s[range]),
            Self::I64(s) => Self::I64(&s[range]),
        }
    }

    /// Returns the number of indices, of either width.
    pub fn len(&self) -> usize {
        match self {
            Self::I32(s) => s.len(),
            Self::I64(s) => s.len(),
        }
    }

    /// Returns whether there are no indices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns one index; negative values wrap to numbers that no check accepts.
    #[inline]
    pub fn get(&self, i: usize) -> usize {
        match self {
            Self::I32(s) => s[i] as usize,
            Self::I64(s) => s[i] as usize,
        }
    }
}

/// Borrowed sparse rows.
#[derive(Debug, Clone, Copy)]
pub struct CsrView<'a, T> {
    indptr: IndexSlice<'a>,
    indices: IndexSlice<'a>,
    values: &'a [T],
    cols: usize,
}

impl<'a, T: Element> CsrView<'a, T> {
    /// Checks the structure in one pass.
    pub fn new(
        indptr: IndexSlice<'a>,
        indices: IndexSlice<'a>,
        values: &'a [T],
        cols: usize,
    ) -> Result<Self> {
        let broken = |message: String| Err(Error::Sparse(message));
        if indptr.is_empty() {
            return broken("indptr is empty; it needs one entry more than there are rows".into());
        }
        if indptr.get(0) != 0 {
            return broken(format!("indptr starts at {}, not at 0", indptr.get(0)));
        }
        let stored = indptr.get(indptr.len() - 1);
        if stored != indices.len() || stored != values.len() {
            return broken(format!(
                "indptr ends at {stored}, but there are {} indices and {} values",
                indices.len(),
                values.len()
            ));
        }
        for row in 0..indptr.len() - 1 {
            let (start, end) = (indptr.get(row), indptr.get(row + 1));
            if end < start || end > stored {
                return broken(format!("indptr falls at row {row}"));
            }
            let mut previous = None;
            for i in start..end {
                let column = indices.get(i);
                if column >= cols {
                    return broken(format!("row {row} has column {column} of {cols}"));
                }
                if previous.is_some_and(|p| p >= column) {
                    return broken(format!("the columns of row {row} are not strictly increasing"));
                }
                previous = Some(column);
            }
            if let Some(last) = previous.filter(|&last| u32::try_from(last).is_err()) {
                return broken(format!(
                    "row {row} has an entry in column {last}: they are numbered below 2^32"
                ));
            }
        }
        Ok(Self { indptr, indices, values, cols })
    }

    /// Takes a structure that was checked before.
    ///
    /// # Panics
    /// If the lengths contradict each other. Wrong entries panic when they are read.
    pub(super) fn from_checked(
        indptr: IndexSlice<'a>,
        indices: IndexSlice<'a>,
        values: &'a [T],
        cols: usize,
    ) -> Self {
        let stored = indptr.get(indptr.len() - 1);
        assert!(indptr.get(0) == 0 && stored == indices.len() && stored == values.len());
        Self { indptr, indices, values, cols }
    }

    /// Returns a range of the rows, without a copy.
    pub(super) fn slice(self, rows: Range<usize>) -> Self {
        Self { indptr: self.indptr.slice(rows.start..rows.end + 1), ..self }
    }

    /// Returns the number of rows, one less than the number of row pointers.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Returns the number of columns, those without an entry included.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the number of stored values in all rows.
    pub(super) fn stored(&self) -> usize {
        self.indptr.get(self.rows()) - self.indptr.get(0)
    }

    /// Returns the number of stored values in one row.
    pub fn row_len(&self, row: usize) -> usize {
        self.indptr.get(row + 1) - self.indptr.get(row)
    }

    /// Calls `visit(column, value)` for the stored entries of a row, in column order.
    #[inline]
    pub fn for_each_in_row(&self, row: usize, mut visit: impl FnMut(usize, T)) {
        let (start, end) = (self.indptr.get(row), self.indptr.get(row + 1));
        let values = &self.values[start..end];
        match self.indices {
            IndexSlice::I32(indices) => {
                for (&j, &v) in indices[start..end].iter().zip(values) {
                    visit(j as usize, v);
                }
            }
            IndexSlice::I64(indices) => {
                for (&j, &v) in indices[start..end].iter().zip(values) {
                    visit(j as usize, v);
                }
            }
        }
    }

    /// Copies the listed rows to row pointers, indices and values.
    pub(super) fn gather(&self, rows: &[usize]) -> Result<(Vec<i64>, Vec<i64>, Vec<T>)> {
        let stored = rows.iter().map(|&r| self.row_len(r)).sum();
        let mut indptr = Vec::with_capacity(rows.len() + 1);
        let (mut indices, mut values) = try_entries("gathered rows", stored)?;
        indptr.push(0);
        for &row in rows {
            self.for_each_in_row(row, |j, v| {
                indices.push(j as i64);
                values.push(v);
            });
            indptr.push(indices.len() as i64);
        }
        Ok((indptr, indices, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(indptr: &'a [i32], indices: &'a [i64], values: &'a [f64]) -> Result<CsrView<'a, f64>> {
        CsrView::new(IndexSlice::I32(indptr), IndexSlice::I64(indices), values, 4)
    }

    #[test]
    fn structure_is_checked() {
        assert!(view(&[0, 2, 3], &[0, 3, 1], &[1.0, 2.0, 3.0]).is_ok());
        assert!(view(&[], &[], &[]).is_err());
        assert!(view(&[1, 2], &[0, 1], &[1.0, 2.0]).is_err());
        assert!(view(&[0, 3, 2], &[0, 1], &[1.0, 2.0]).is_err());
        assert!(view(&[0, -1, 2], &[0, 1], &[1.0, 2.0]).is_err());
        assert!(view(&[0, 1], &[4], &[1.0]).is_err());
        assert!(view(&[0, 1], &[-1], &[1.0]).is_err());
        assert!(view(&[0, 2], &[1, 1], &[1.0, 2.0]).is_err());
        assert!(view(&[0, 2], &[1], &[1.0]).is_err());
    }

    #[test]
    fn gather_and_slice_keep_rows() {
        let rows = view(&[0, 2, 3], &[0, 3, 1], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(rows.slice(1..2).gather(&[0]).unwrap(), rows.gather(&[1]).unwrap());
        assert_eq!((rows.slice(1..2).rows(), rows.slice(2..2).rows()), (1, 0));
        let (indptr, indices, values) = rows.gather(&[1, 0]).unwrap();
        assert_eq!((indptr, indices, values), (vec![0, 1, 3], vec![1, 0, 3], vec![3.0, 1.0, 2.0]));
    }
}
