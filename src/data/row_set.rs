//! A set of rows that several threads add to.
//!
//! Cost: no memory while the set is empty, then a bit for each row.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows out of a given number.
pub(crate) struct RowSet {
    rows: usize,
    words: OnceLock<Vec<AtomicU64>>,
}

impl RowSet {
    /// Creates an empty set for rows below `rows`.
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows, words: OnceLock::new() }
    }

    pub(crate) fn insert(&self, row: usize) {
        let empty = || (0..self.rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let words = self.words.get_or_init(empty);
        words[row / 64].fetch_or(1 << (row % 64), Ordering::Relaxed);
    }

    /// Returns the rows in ascending order; `None` if there are none.
    pub(crate) fn into_rows(self) -> Option<Vec<usize>> {
        let words = self.words.into_inner()?;
        let mut rows = Vec::new();
        for (place, word) in words.into_iter().enumerate() {
            let mut bits = word.into_inner();
            while bits != 0 {
                rows.push(64 * place + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
        Some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_threads_are_in_order() {
        assert_eq!(RowSet::new(100).into_rows(), None);
        let set = RowSet::new(1000);
        std::thread::scope(|scope| {
            for first in [3, 10] {
                let set = &set;
                scope.spawn(move || {
                    (first..1000).step_by(14).rev().for_each(|row| set.insert(row));
                });
            }
        });
        assert_eq!(set.into_rows(), Some((0..1000).filter(|row| row % 7 == 3).collect()));
    }
}
