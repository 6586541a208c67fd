//! Sparse rows packed as one panel: a line of values for each feature that any of its rows has.
//!
//! Problem: solvers pack rows again with every set of columns, so that the entries of some thirty rows have to be brought in
//! the order of their features quickly, whatever the number of columns is.
//!
//! Invariant: features rise, and the sums over a row are in the order of its columns, so that they have the same bits in every
//! panel.
//!
//! Cost: a few operations for an entry, and one for every 64 columns if these are not many more than the entries.

use super::standardization::Standardization;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::memory::{self, try_vec};
use crate::simd::Real;

/// Context reported when the allocation of packed rows fails.
pub(super) const PACKED: &str = "packed rows";
/// Maximum number of words with a bit for each column for an entry of a panel.
const MAX_WORDS_PER_ENTRY: usize = 4;

/// Returns the columns that any of the panels has, rising, and replaces the features of the panels by indices of these.
pub(super) fn number_columns<T: Real>(panels: &mut [SparsePanel<T>], ctx: Context<'_>) -> Result<Vec<u32>> {
    let mut columns: Vec<u32> =
        memory::try_with_capacity(PACKED, panels.iter().map(|panel| panel.features.len()).sum())?;
    columns.extend(panels.iter().flat_map(|panel| panel.features.iter()));
    columns.sort_unstable();
    columns.dedup();
    ctx.for_each_chunk(panels, 1, |_, panel| {
        for feature in &mut panel[0].features {
            *feature = columns.partition_point(|column| column < feature) as u32;
        }
    });
    Ok(columns)
}

/// Rows of one panel by their features.
pub(super) struct SparsePanel<T> {
    pub(super) features: Vec<u32>,
    /// A line of zeros for absent features, then a line for each feature.
    pub(super) values: Vec<T>,
    pub(super) norms: Vec<T>,
    /// The sums of |v| over the features of each row.
    pub(super) baseline: Vec<T>,
}

impl<T: Real> SparsePanel<T> {
    /// Packs the listed rows, at most `width`.
    pub(super) fn pack(
        standardization: &Standardization,
        rows: Rows<'_>,
        list: &[usize],
        width: usize,
    ) -> Result<Self> {
        // More than enough for dense rows: untouched memory costs less than counting.
        let stored = list.iter().map(|&row| rows.stored(row)).sum();
        let (mut columns, mut entries) = memory::try_entries(PACKED, stored)?;
        for (j, &row) in list.iter().enumerate() {
            standardization.for_each(rows, row, |k, v| {
                columns.push(k as u32);
                entries.push((j, T::from_f64(v)));
            });
        }
        let places = Places::new(&columns, rows.cols())?;
        // There are many panels, so even small allocations may fail.
        let mut values = memory::try_zeros(PACKED, (places.features.len() + 1).saturating_mul(width))?;
        let (mut norms, mut baseline) = (vec![0.0; width], vec![0.0; width]);
        for (&column, &(j, value)) in columns.iter().zip(&entries) {
            values[(places.of(column) + 1) * width + j] = value;
            norms[j] += value.to_f64() * value.to_f64();
            baseline[j] += value.to_f64().abs();
        }
        let features = places.features;
        let rounded = |sums: Vec<f64>| sums.into_iter().map(T::from_f64).collect();
        Ok(Self { features, values, norms: rounded(norms), baseline: rounded(baseline) })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.features.as_slice())
            + size_of_val(self.values.as_slice())
            + size_of_val(self.norms.as_slice())
            + size_of_val(self.baseline.as_slice())
    }
}

/// The columns that any entry of a panel has, rising, and their places in this list.
///
/// With a bit for each column, the place of a column is the number of bits before it. If the columns are many more than the
/// entries, these are sorted, and a column is found by a binary search.
struct Places {
    features: Vec<u32>,
    /// The bits of 64 columns, and the number of bits in the words before; none if columns are searched.
    words: Vec<(u64, u32)>,
}

impl Places {
    fn new(columns: &[u32], count: usize) -> Result<Self> {
        if count.div_ceil(64) > MAX_WORDS_PER_ENTRY * columns.len() {
            let mut sorted = memory::try_with_capacity(PACKED, columns.len())?;
            sorted.extend_from_slice(columns);
            sorted.sort_unstable();
            sorted.dedup();
            let mut features = memory::try_with_capacity(PACKED, sorted.len())?;
            features.extend_from_slice(&sorted);
            return Ok(Self { features, words: Vec::new() });
        }
        let mut words = try_vec![(0_u64, 0_u32); count.div_ceil(64)]?;
        for &column in columns {
            words[column as usize / 64].0 |= 1 << (column % 64);
        }
        let mut before = 0;
        for (bits, place) in &mut words {
            *place = before;
            before += bits.count_ones();
        }
        let mut features = memory::try_with_capacity(PACKED, before as usize)?;
        for (word, &(mut bits, _)) in words.iter().enumerate() {
            while bits != 0 {
                features.push(64 * word as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        Ok(Self { features, words })
    }

    /// Returns the place of a column that has an entry.
    fn of(&self, column: u32) -> usize {
        match self.words.get(column as usize / 64) {
            Some(&(bits, before)) => {
                let lower = bits & ((1 << (column % 64)) - 1);
                before as usize + lower.count_ones() as usize
            }
            None => self.features.partition_point(|&feature| feature < column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_sorted_columns_for_few_and_for_many_columns() {
        let columns = [70_u32, 3, 64, 3, 0, 127, 63, 70];
        let sorted = [0_u32, 3, 63, 64, 70, 127];
        for count in [128, 200, 64 * 8 * MAX_WORDS_PER_ENTRY, 64 * 8 * MAX_WORDS_PER_ENTRY + 1, 1 << 31] {
            let places = Places::new(&columns, count).unwrap();
            assert_eq!(places.features, sorted, "{count} columns");
            assert_eq!(places.words.is_empty(), count > 64 * 8 * MAX_WORDS_PER_ENTRY);
            for column in columns {
                assert_eq!(sorted[places.of(column)], column);
            }
        }
        assert!(Places::new(&[], 128).unwrap().features.is_empty());
    }
}
