//! Entries of a row at given indices, by which blocks are copied from longer kernel rows.

use super::{Isa, Operation, run};
use crate::error::Result;
use crate::memory::TryCollect;

/// Indices of the entries.
pub(crate) struct Indices {
    places: Vec<u32>,
    /// The largest index plus 1.
    reach: usize,
}

impl Indices {
    /// Takes indices into rows of at most 2^32 entries.
    pub(crate) fn new(places: &[usize]) -> Result<Self> {
        let reach = places.iter().map(|place| place + 1).max().unwrap_or(0);
        assert!(u32::try_from(reach).is_ok());
        Ok(Self { places: places.iter().map(|&place| place as u32).try_collect_vec()?, reach })
    }

    /// Returns the number of indices.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Writes the entries of `row` at the indices, in their order.
    pub(crate) fn gather<T: Copy>(&self, row: &[T], out: &mut [T]) {
        assert!(row.len() >= self.reach && out.len() == self.places.len());
        // SAFETY: the row reaches as far as the places, of which there are as many as entries of `out`.
        unsafe { run(Gather { places: &self.places, row, out }) };
    }
}

struct Gather<'a, T> {
    places: &'a [u32],
    row: &'a [T],
    out: &'a mut [T],
}

impl<T: Copy> Operation for Gather<'_, T> {
    type Output = ();

    // A plain loop: compilers make gather instructions of it where there are any.
    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        for (out, &place) in self.out.iter_mut().zip(self.places) {
            // SAFETY: `Indices::gather` has checked that all places lie in the row.
            *out = unsafe { *self.row.get_unchecked(place as usize) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_in_the_order_of_the_places() {
        let row: Vec<f32> = (0..100).map(|i| i as f32).collect();
        let places: Vec<usize> = (0..67).map(|i| (i * 37) % 100).collect();
        let mut out = vec![0.0; places.len()];
        Indices::new(&places).unwrap().gather(&row, &mut out);
        assert!(out.iter().zip(&places).all(|(value, &place)| *value == place as f32));
        Indices::new(&[]).unwrap().gather::<f32>(&[], &mut []);
    }

    #[test]
    #[should_panic(expected = "reach")]
    fn a_row_that_is_too_short_is_refused() {
        Indices::new(&[3]).unwrap().gather(&[0.0; 3], &mut [0.0]);
    }
}
