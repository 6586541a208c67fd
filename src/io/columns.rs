//! Columns of svmlight text and LIBSVM models, which count from 1 or from 0: nothing in a file says which.

use std::cmp::Ordering;

/// Index of the first column in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexBase {
    /// Columns count from 1; an index 0 is an error.
    #[default]
    One,
    /// Columns count from 0.
    Zero,
    /// From 0 if the index 0 occurs in the file, else from 1.
    Auto,
}

/// The columns of a file as its lines are read.
pub(super) struct Columns {
    base: IndexBase,
    n_features: Option<usize>,
    largest: Option<i64>,
    has_zero: bool,
    /// With an open base, an index equal to `n_features` is too large only if a 0 occurs anywhere: its line, and it.
    undecided: Option<(usize, i64)>,
}

impl Columns {
    pub(super) fn new(base: IndexBase, n_features: Option<usize>) -> Self {
        Self { base, n_features, largest: None, has_zero: false, undecided: None }
    }

    /// Takes in the smallest and the largest index of a line.
    pub(super) fn add(&mut self, low: i64, high: i64, line: usize) -> Result<(), String> {
        self.has_zero |= low == 0;
        if low == 0 && self.base == IndexBase::One {
            let rule = "index 0: the columns of a one-based file count from 1, but for the serial numbers of precomputed \
                        kernels (-t 4); zero_based=True reads others";
            return Err(rule.to_owned());
        }
        self.largest = self.largest.max(Some(high));
        if let Some(count) = self.n_features {
            let first = i64::from(self.base != IndexBase::Zero);
            if compare(high - first, count).is_ge() {
                return Err(beyond(high, count));
            }
            if self.base == IndexBase::Auto && compare(high, count).is_eq() {
                self.undecided.get_or_insert((line, high));
            }
        }
        Ok(())
    }

    /// Returns true if columns count from 0 in the lines read so far.
    pub(super) fn are_zero_based(&self) -> bool {
        match self.base {
            IndexBase::One => false,
            IndexBase::Zero => true,
            IndexBase::Auto => self.has_zero,
        }
    }

    /// The number of columns; the line of an index beyond them, and what is wrong with it.
    pub(super) fn count(&self) -> Result<usize, (usize, String)> {
        let zero_based = self.are_zero_based();
        if let (true, Some((line, index)), Some(count)) = (zero_based, self.undecided, self.n_features) {
            return Err((line, beyond(index, count) + ", which counts from 0"));
        }
        let count = self.largest.map_or(0, |index| index as usize + usize::from(zero_based));
        Ok(self.n_features.unwrap_or(count))
    }
}

fn beyond(index: i64, count: usize) -> String {
    format!("index {index} is beyond the {count} features of this data")
}

/// Compares a column, perhaps -1, with a count that may exceed `i64`.
fn compare(column: i64, count: usize) -> Ordering {
    i128::from(column).cmp(&(count as i128))
}
