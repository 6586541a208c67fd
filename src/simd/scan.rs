//! The two scans of an SMO step: the first updates the gradients and finds the most violating variable that can rise; the second
//! finds the partner with the largest predicted decrease of the objective. Gradients are in double precision, kernel values as
//! stored.
//!
//! Membership of the index sets is an addend, not a branch: `up` is 0 if a variable can rise and +infinity otherwise, `low` is
//! 0 if it can fall and -infinity otherwise. Arrays are padded to a multiple of [`STRIDE`] with variables that can do
//! neither. Among equal values the smallest index is selected, at every vector width.

use super::blas::Stored;
use super::{Vector, vectorized};

/// Lengths are multiples of this: two of the widest vectors.
pub(crate) const STRIDE: usize = 32;

/// The result of the first scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GradientExtremes {
    /// The smallest gradient among variables that can rise, and its index.
    pub(crate) up: f64,
    pub(crate) up_index: usize,
    /// The largest gradient among variables that can fall.
    pub(crate) low: f64,
}

/// Adds step (row_i - row_j) to the gradient of at most 2^24 variables, and returns the extremes of the result.
pub(crate) fn step_and_scan<K: Stored>(
    gradient: &mut [f64],
    up: &[f64],
    low: &[f64],
    row_i: &[K],
    row_j: &[K],
    step: f64,
) -> GradientExtremes {
    let n = gradient.len();
    assert!(n.is_multiple_of(STRIDE) && up.len() == n && low.len() == n && n <= MAX_VARIABLES);
    assert!(row_i.len() == n && row_j.len() == n);
    vectorized!([K: Stored] (
        gradient: &mut [f64], up: &[f64], low: &[f64], row_i: &[K], row_j: &[K], step: f64
    ) -> GradientExtremes {
        let lanes = I::F64::LANES;
        // SAFETY: all arrays have the same length, a multiple of two vectors.
        unsafe {
            let step = I::F64::splat(step);
            let (mut smallest, mut up_index) = ([I::F64::splat(f64::INFINITY); 2], [I::F64::zero(); 2]);
            let mut largest = [I::F64::splat(f64::NEG_INFINITY); 2];
            let mut index = [counting::<I::F64>(), I::F64::zero()];
            index[1] = index[0].add(I::F64::splat(lanes as f64));
            let advance = I::F64::splat(2.0 * lanes as f64);
            let mut at = 0;
            while at < gradient.len() {
                for half in 0..2 {
                    let p = at + half * lanes;
                    let difference = K::load::<I::F64>(row_i.as_ptr().add(p))
                        .sub(K::load::<I::F64>(row_j.as_ptr().add(p)));
                    let new = step.mul_add(difference, I::F64::load(gradient.as_ptr().add(p)));
                    new.store(gradient.as_mut_ptr().add(p));
                    let rising = new.add(I::F64::load(up.as_ptr().add(p)));
                    up_index[half] = I::F64::select_lt(rising, smallest[half], index[half], up_index[half]);
                    smallest[half] = rising.min(smallest[half]);
                    largest[half] = new.add(I::F64::load(low.as_ptr().add(p))).max(largest[half]);
                    index[half] = index[half].add(advance);
                }
                at += 2 * lanes;
            }
            let (up, up_index) = best_lane(smallest, up_index);
            let minus_low = I::F64::zero().sub(largest[0].max(largest[1])).least();
            GradientExtremes { up, up_index, low: -minus_low }
        }
    })
}

/// Maximum number of variables; lanes hold indices as numbers.
const MAX_VARIABLES: usize = 1 << 24;

/// Returns a vector of 0, 1, 2, ...
#[inline(always)]
unsafe fn counting<V: Vector<Elem = f64>>() -> V {
    let mut numbers = [0.0; STRIDE / 2];
    for (i, number) in numbers.iter_mut().enumerate() {
        *number = i as f64;
    }
    // SAFETY: the array is as long as the widest vector; the caller guarantees the rest.
    unsafe { V::load(numbers.as_ptr()) }
}

/// Returns the smallest of the keys in two vectors, and the smallest index among equal keys.
#[inline(always)]
unsafe fn best_lane<V: Vector<Elem = f64>>(keys: [V; 2], indices: [V; 2]) -> (f64, usize) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let best = V::splat(keys[0].min(keys[1]).least());
        let none = V::splat(MAX_VARIABLES as f64);
        let first = V::select_lt(best, keys[0], none, indices[0]);
        let second = V::select_lt(best, keys[1], none, indices[1]);
        let mut key = [0.0; STRIDE / 2];
        best.store(key.as_mut_ptr());
        (key[0], first.min(second).least() as usize)
    }
}

/// Returns the variable j that can fall and maximizes (f_j - f_i)^2 / (K_ii + K_jj - 2 K_ij) among those with f_j > f_i
/// (Fan, Chen, Lin 2005, "WSS 2"), if there is one.
pub(crate) fn second_order_partner<K: Stored>(
    gradient: &[f64],
    low: &[f64],
    row_i: &[K],
    diagonal: &[f64],
    diagonal_i: f64,
    gradient_i: f64,
    smallest_curvature: f64,
) -> Option<usize> {
    let n = gradient.len();
    assert!(n.is_multiple_of(STRIDE) && low.len() == n && row_i.len() == n && diagonal.len() == n);
    assert!(n <= MAX_VARIABLES);
    vectorized!([K: Stored] (
        gradient: &[f64], low: &[f64], row_i: &[K], diagonal: &[f64],
        diagonal_i: f64, gradient_i: f64, smallest_curvature: f64
    ) -> Option<usize> {
        let lanes = I::F64::LANES;
        // SAFETY: all arrays have the same length, a multiple of two vectors.
        unsafe {
            let gradient_i = I::F64::splat(gradient_i);
            let diagonal_i = I::F64::splat(diagonal_i);
            let floor = I::F64::splat(smallest_curvature);
            let minus_two = I::F64::splat(-2.0);
            // The best quotient so far as numerator and denominator: comparing products avoids divisions.
            let mut numerator = [I::F64::zero(); 2];
            let mut denominator = [I::F64::splat(1.0); 2];
            let mut best = [I::F64::zero(); 2];
            let mut index = [counting::<I::F64>(), I::F64::zero()];
            index[1] = index[0].add(I::F64::splat(lanes as f64));
            let advance = I::F64::splat(2.0 * lanes as f64);
            let mut at = 0;
            while at < gradient.len() {
                for half in 0..2 {
                    let p = at + half * lanes;
                    let falling = I::F64::load(gradient.as_ptr().add(p)).add(I::F64::load(low.as_ptr().add(p)));
                    let violation = falling.sub(gradient_i).max(I::F64::zero());
                    let square = violation.mul(violation);
                    let sum = I::F64::load(diagonal.as_ptr().add(p)).add(diagonal_i);
                    let curvature = minus_two.mul_add(K::load::<I::F64>(row_i.as_ptr().add(p)), sum).max(floor);
                    let (old, new) = (numerator[half].mul(curvature), square.mul(denominator[half]));
                    best[half] = I::F64::select_lt(old, new, index[half], best[half]);
                    denominator[half] = I::F64::select_lt(old, new, curvature, denominator[half]);
                    numerator[half] = I::F64::select_lt(old, new, square, numerator[half]);
                    index[half] = index[half].add(advance);
                }
                at += 2 * lanes;
            }
            let keys = [0, 1].map(|half| I::F64::zero().sub(numerator[half].div(denominator[half])));
            let (key, index) = best_lane(keys, best);
            (key < 0.0).then_some(index)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_equal_plain_loops() {
        let n = 96;
        let wave = |i: usize, s: f64| ((i as f64 + s) * 1.37).sin();
        let mut gradient: Vec<f64> = (0..n).map(|i| wave(i, 0.0)).collect();
        let row_i: Vec<f32> = (0..n).map(|i| wave(i, 3.0) as f32).collect();
        let row_j: Vec<f32> = (0..n).map(|i| wave(i, 7.0) as f32).collect();
        let up: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { f64::INFINITY } else { 0.0 }).collect();
        let low: Vec<f64> = (0..n).map(|i| if i % 4 == 1 { f64::NEG_INFINITY } else { 0.0 }).collect();
        let diagonal = vec![1.5; n];
        let expected: Vec<f64> =
            (0..n).map(|i| gradient[i] + 0.7 * (f64::from(row_i[i]) - f64::from(row_j[i]))).collect();
        let extremes = step_and_scan(&mut gradient, &up, &low, &row_i, &row_j, 0.7);
        assert!(gradient.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-15));
        let smallest =
            (0..n).filter(|&i| up[i] == 0.0).min_by(|&a, &b| gradient[a].total_cmp(&gradient[b])).unwrap();
        assert_eq!(extremes.up_index, smallest);
        assert_eq!(extremes.up, gradient[smallest]);
        let largest =
            (0..n).filter(|&i| low[i] == 0.0).map(|i| gradient[i]).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(extremes.low, largest);
        let gain = |j: usize| {
            let violation = gradient[j] - extremes.up;
            if low[j] == 0.0 && violation > 0.0 {
                violation * violation / (1.5 + 1.5 - 2.0 * f64::from(row_i[j])).max(1e-12)
            } else {
                0.0
            }
        };
        let expected = (0..n).max_by(|&a, &b| gain(a).total_cmp(&gain(b))).unwrap();
        let partner = second_order_partner(&gradient, &low, &row_i, &diagonal, 1.5, extremes.up, 1e-12);
        assert_eq!(partner, Some(expected));
        let none_falls = vec![f64::NEG_INFINITY; n];
        assert_eq!(
            second_order_partner(&gradient, &none_falls, &row_i, &diagonal, 1.5, extremes.up, 1e-12),
            None
        );
    }

    #[test]
    fn the_first_of_equals_wins() {
        let n = 64;
        let (mut gradient, zeros, rows) = (vec![1.0; n], vec![0.0; n], vec![0.0_f32; n]);
        gradient[40] = -1.0;
        gradient[17] = -1.0;
        assert_eq!(step_and_scan(&mut gradient, &zeros, &zeros, &rows, &rows, 0.0).up_index, 17);
    }
}
