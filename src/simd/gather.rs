//! Entries of a row at given indices, by which blocks are copied from longer kernel rows.

use super::vectorized;

/// Indices of the entries.
pub(crate) struct Indices {
    indices: Vec<u32>,
    /// The largest index plus 1.
    end: usize,
}

impl Indices {
    /// Takes indices into rows of at most 2^32 entries.
    pub(crate) fn new(indices: &[usize]) -> Self {
        let end = indices.iter().map(|index| index + 1).max().unwrap_or(0);
        assert!(u32::try_from(end).is_ok());
        Self { indices: indices.iter().map(|&index| index as u32).collect(), end }
    }

    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    /// Writes the entries of `row` at the indices, in their order.
    pub(crate) fn gather<T: Copy>(&self, row: &[T], out: &mut [T]) {
        assert!(row.len() >= self.end && out.len() == self.indices.len());
        let indices = &*self.indices;
        // A plain loop, which compilers turn into gather instructions where these exist.
        vectorized!([T: Copy] (indices: &[u32], row: &[T], out: &mut [T]) {
            for (out, &index) in out.iter_mut().zip(indices) {
                // SAFETY: the row is longer than the largest index.
                *out = unsafe { *row.get_unchecked(index as usize) };
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_in_the_order_of_the_indices() {
        let row: Vec<f32> = (0..100).map(|i| i as f32).collect();
        let indices: Vec<usize> = (0..67).map(|i| (i * 37) % 100).collect();
        let mut out = vec![0.0; indices.len()];
        Indices::new(&indices).gather(&row, &mut out);
        assert!(out.iter().zip(&indices).all(|(value, &index)| *value == index as f32));
        Indices::new(&[]).gather::<f32>(&[], &mut []);
    }

    #[test]
    #[should_panic(expected = "end")]
    fn a_row_that_is_too_short_is_refused() {
        Indices::new(&[3]).gather(&[0.0; 3], &mut [0.0]);
    }
}
