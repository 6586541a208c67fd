//! The second half of a fused product: a tile of kernel values times the coefficients of its panel, while the tile is in the first
//! cache.

use super::micro::panel_width;
use super::{Isa, Operation, Real, Vector, lanes, run, vectorized};

/// Adds sum_c tile[i, c] coefficients[c, j] to out[i, j].
///
/// `coefficients` is packed for the panel in groups of one vector of outputs, `width` rows each, and `out` has one
/// padded row per row of the tile.
pub(crate) struct ApplyCoefficients<'a, T> {
    pub(crate) tile: &'a [T],
    pub(crate) rows: usize,
    pub(crate) coefficients: &'a [T],
    pub(crate) groups: usize,
    pub(crate) out: &'a mut [T],
}

impl<T: Real> ApplyCoefficients<'_, T> {
    pub(crate) fn compute(self) {
        let (width, lanes) = (panel_width::<T>(), lanes::<T>());
        assert!(self.tile.len() >= self.rows * width);
        assert!(self.coefficients.len() >= self.groups * width * lanes);
        assert!(self.out.len() >= self.rows * self.groups * lanes);
        // SAFETY: the assertions above are what the loop relies on.
        unsafe { run(self) };
    }

    #[inline(always)]
    unsafe fn rows<V: Vector<Elem = T>, const R: usize>(&mut self, first: usize) {
        let width = 2 * V::LANES;
        for group in 0..self.groups {
            // SAFETY: `compute` has checked the three sizes; first + R <= rows.
            unsafe {
                let mut sums = [V::zero(); R];
                let coefficients = self.coefficients.as_ptr().add(group * width * V::LANES);
                let tile = self.tile.as_ptr().add(first * width);
                let mut done = 0;
                if V::MULTIPLIES_BY_LANE {
                    while done < width {
                        let mut values = [V::zero(); R];
                        for (i, values) in values.iter_mut().enumerate() {
                            *values = V::load(tile.add(i * width + done));
                        }
                        for lane in 0..V::LANES {
                            let b = V::load(coefficients.add((done + lane) * V::LANES));
                            for i in 0..R {
                                sums[i] = values[i].broadcast(lane).mul_add(b, sums[i]);
                            }
                        }
                        done += V::LANES;
                    }
                }
                for c in done..width {
                    let b = V::load(coefficients.add(c * V::LANES));
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = V::splat(*tile.add(i * width + c)).mul_add(b, *sum);
                    }
                }
                for (i, sum) in sums.iter().enumerate() {
                    let out = self.out.as_mut_ptr().add(((first + i) * self.groups + group) * V::LANES);
                    V::load(out).add(*sum).store(out);
                }
            }
        }
    }
}

impl<T: Real> Operation for ApplyCoefficients<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(mut self) {
        let mut first = 0;
        while first < self.rows {
            // SAFETY: `compute` has checked the sizes.
            unsafe {
                if self.rows - first >= 8 {
                    self.rows::<T::Of<I>, 8>(first);
                    first += 8;
                } else {
                    self.rows::<T::Of<I>, 1>(first);
                    first += 1;
                }
            }
        }
    }
}

/// Adds sum_c tile[i, c] coefficients[j, c] to out[i, j] for few outputs: one dot product of a panel's width each.
///
/// There are `width` coefficients for each output in turn. Sums stay in vectors: `out` holds one vector per (row, output),
/// which the caller sums at the end.
pub(crate) fn apply_few_coefficients<T: Real>(
    tile: &[T],
    rows: usize,
    coefficients: &[T],
    outputs: usize,
    out: &mut [T],
) {
    let (width, lanes) = (panel_width::<T>(), lanes::<T>());
    assert!(tile.len() >= rows * width && coefficients.len() >= outputs * width);
    assert!(out.len() >= rows * outputs * lanes);
    vectorized!([T: Real] (tile: &[T], rows: usize, coefficients: &[T], outputs: usize, out: &mut [T]) {
        let lanes = <T::Of<I> as Vector>::LANES;
        let width = 2 * lanes;
        // SAFETY: the assertions cover all sizes.
        unsafe {
            for output in 0..outputs {
                let b = coefficients.as_ptr().add(output * width);
                let (b0, b1) = (T::Of::<I>::load(b), T::Of::<I>::load(b.add(lanes)));
                for i in 0..rows {
                    let tile = tile.as_ptr().add(i * width);
                    let out = out.as_mut_ptr().add((i * outputs + output) * lanes);
                    let sum = T::Of::<I>::load(tile).mul_add(b0, T::Of::<I>::load(out));
                    T::Of::<I>::load(tile.add(lanes)).mul_add(b1, sum).store(out);
                }
            }
        }
    });
}
