//! The two scans of a pair step: update the gradients and find the most violating variable that can rise; then find
//! the partner that promises the largest decrease of the objective.
//!
//! Membership of the index sets is an addend, not a branch: `up` is 0 where a variable can rise and +infinity where
//! it cannot, `low` is 0 where it can fall and -infinity where it cannot. Arrays are padded to a whole number of
//! [`STRIDE`] with variables that can do neither. Among equal values the smallest index wins, at every vector width.

use super::{Isa, Operation, Vector, run};

/// Lengths are multiples of this: two of the widest double-precision vectors.
pub(crate) const STRIDE: usize = 16;

/// What the first scan finds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extremes {
    /// Smallest gradient among variables that can rise, and its index.
    pub(crate) up: f64,
    pub(crate) up_index: usize,
    /// Largest gradient among variables that can fall.
    pub(crate) low: f64,
}

struct StepAndScan<'a> {
    gradient: &'a mut [f64],
    up: &'a [f64],
    low: &'a [f64],
    row_i: &'a [f32],
    row_j: &'a [f32],
    step: f64,
}

/// gradient += step (row_i - row_j), and the extremes of the result.
pub(crate) fn step_and_scan(
    gradient: &mut [f64],
    up: &[f64],
    low: &[f64],
    row_i: &[f32],
    row_j: &[f32],
    step: f64,
) -> Extremes {
    let n = gradient.len();
    assert!(
        n.is_multiple_of(STRIDE) && up.len() == n && low.len() == n && row_i.len() == n && row_j.len() == n
    );
    // SAFETY: all slices have n numbers, whole steps of the loop.
    unsafe { run(StepAndScan { gradient, up, low, row_i, row_j, step }) }
}

const COUNTING: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

/// Index of the best lane: the smallest value by `key`, the smallest index among equals.
#[inline(always)]
fn best_lane(keys: &[f64], indices: &[f64]) -> (f64, usize) {
    let (mut key, mut index) = (keys[0], indices[0]);
    for (&k, &i) in keys.iter().zip(indices).skip(1) {
        if k < key || (k == key && i < index) {
            (key, index) = (k, i);
        }
    }
    (key, index as usize)
}

impl Operation for StepAndScan<'_> {
    type Output = Extremes;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> Extremes {
        type V<I> = <I as Isa>::F64;
        let lanes = <V<I> as Vector>::LANES;
        // SAFETY: `step_and_scan` has checked that all arrays have the same length, a multiple of two vectors.
        unsafe {
            let step = V::<I>::splat(self.step);
            let mut up = [V::<I>::splat(f64::INFINITY); 2];
            let mut low = [V::<I>::splat(f64::NEG_INFINITY); 2];
            let mut up_index = [V::<I>::zero(); 2];
            let mut index = [V::<I>::load(COUNTING.as_ptr()), V::<I>::zero()];
            index[1] = index[0].add(V::<I>::splat(lanes as f64));
            let advance = V::<I>::splat(2.0 * lanes as f64);
            let mut at = 0;
            while at < self.gradient.len() {
                for half in 0..2 {
                    let p = at + half * lanes;
                    let difference = V::<I>::load_f32(self.row_i.as_ptr().add(p))
                        .sub(V::<I>::load_f32(self.row_j.as_ptr().add(p)));
                    let gradient = step.mul_add(difference, V::<I>::load(self.gradient.as_ptr().add(p)));
                    gradient.store(self.gradient.as_mut_ptr().add(p));
                    let rising = gradient.add(V::<I>::load(self.up.as_ptr().add(p)));
                    up_index[half] = V::<I>::select_lt(rising, up[half], index[half], up_index[half]);
                    up[half] = rising.min(up[half]);
                    low[half] = gradient.add(V::<I>::load(self.low.as_ptr().add(p))).max(low[half]);
                    index[half] = index[half].add(advance);
                }
                at += 2 * lanes;
            }
            let (mut keys, mut indices, mut lows) = ([0.0; STRIDE], [0.0; STRIDE], [0.0; STRIDE]);
            for half in 0..2 {
                up[half].store(keys.as_mut_ptr().add(half * lanes));
                up_index[half].store(indices.as_mut_ptr().add(half * lanes));
                low[half].store(lows.as_mut_ptr().add(half * lanes));
            }
            let (up, up_index) = best_lane(&keys[..2 * lanes], &indices[..2 * lanes]);
            Extremes {
                up,
                up_index,
                low: lows[..2 * lanes].iter().copied().fold(f64::NEG_INFINITY, f64::max),
            }
        }
    }
}

struct Partner<'a> {
    gradient: &'a [f64],
    low: &'a [f64],
    row_i: &'a [f32],
    diagonal: &'a [f64],
    diagonal_i: f64,
    gradient_i: f64,
    smallest_curvature: f64,
}

/// The variable j that can fall and maximises (f_j - f_i)^2 / (K_ii + K_jj - 2 K_ij) among those with f_j > f_i
/// (Fan, Chen, Lin 2005, "WSS 2"); `None` where there is none.
pub(crate) fn second_order_partner(
    gradient: &[f64],
    low: &[f64],
    row_i: &[f32],
    diagonal: &[f64],
    diagonal_i: f64,
    gradient_i: f64,
    smallest_curvature: f64,
) -> Option<usize> {
    let n = gradient.len();
    assert!(n.is_multiple_of(STRIDE) && low.len() == n && row_i.len() == n && diagonal.len() == n);
    // SAFETY: all slices have n numbers, whole steps of the loop.
    unsafe { run(Partner { gradient, low, row_i, diagonal, diagonal_i, gradient_i, smallest_curvature }) }
}

impl Operation for Partner<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> Option<usize> {
        type V<I> = <I as Isa>::F64;
        let lanes = <V<I> as Vector>::LANES;
        // SAFETY: `second_order_partner` has checked that all arrays have the same length, a multiple of two vectors.
        unsafe {
            let gradient_i = V::<I>::splat(self.gradient_i);
            let diagonal_i = V::<I>::splat(self.diagonal_i);
            let floor = V::<I>::splat(self.smallest_curvature);
            let minus_two = V::<I>::splat(-2.0);
            // The best quotient so far as numerator and denominator: comparing by products spares the division.
            let mut numerator = [V::<I>::zero(); 2];
            let mut denominator = [V::<I>::splat(1.0); 2];
            let mut best = [V::<I>::zero(); 2];
            let mut index = [V::<I>::load(COUNTING.as_ptr()), V::<I>::zero()];
            index[1] = index[0].add(V::<I>::splat(lanes as f64));
            let advance = V::<I>::splat(2.0 * lanes as f64);
            let mut at = 0;
            while at < self.gradient.len() {
                for half in 0..2 {
                    let p = at + half * lanes;
                    let falling = V::<I>::load(self.gradient.as_ptr().add(p))
                        .add(V::<I>::load(self.low.as_ptr().add(p)));
                    let violation = falling.sub(gradient_i).max(V::<I>::zero());
                    let square = violation.mul(violation);
                    let sum = V::<I>::load(self.diagonal.as_ptr().add(p)).add(diagonal_i);
                    let curvature =
                        minus_two.mul_add(V::<I>::load_f32(self.row_i.as_ptr().add(p)), sum).max(floor);
                    let (old, new) = (numerator[half].mul(curvature), square.mul(denominator[half]));
                    best[half] = V::<I>::select_lt(old, new, index[half], best[half]);
                    denominator[half] = V::<I>::select_lt(old, new, curvature, denominator[half]);
                    numerator[half] = V::<I>::select_lt(old, new, square, numerator[half]);
                    index[half] = index[half].add(advance);
                }
                at += 2 * lanes;
            }
            let (mut keys, mut indices, mut lower) = ([0.0; STRIDE], [0.0; STRIDE], [0.0; STRIDE]);
            for half in 0..2 {
                numerator[half].div(denominator[half]).store(keys.as_mut_ptr().add(half * lanes));
                best[half].store(indices.as_mut_ptr().add(half * lanes));
            }
            for (lower, key) in lower.iter_mut().zip(&keys) {
                *lower = -key;
            }
            let (key, index) = best_lane(&lower[..2 * lanes], &indices[..2 * lanes]);
            (key < 0.0).then_some(index)
        }
    }
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
        let found = step_and_scan(&mut gradient, &up, &low, &row_i, &row_j, 0.7);
        assert!(gradient.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-15));
        let smallest =
            (0..n).filter(|&i| up[i] == 0.0).min_by(|&a, &b| gradient[a].total_cmp(&gradient[b])).unwrap();
        assert_eq!(found.up_index, smallest);
        assert_eq!(found.up, gradient[smallest]);
        let largest =
            (0..n).filter(|&i| low[i] == 0.0).map(|i| gradient[i]).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(found.low, largest);
        let gain = |j: usize| {
            let violation = gradient[j] - found.up;
            if low[j] == 0.0 && violation > 0.0 {
                violation * violation / (1.5 + 1.5 - 2.0 * f64::from(row_i[j])).max(1e-12)
            } else {
                0.0
            }
        };
        let expected = (0..n).max_by(|&a, &b| gain(a).total_cmp(&gain(b))).unwrap();
        let partner = second_order_partner(&gradient, &low, &row_i, &diagonal, 1.5, found.up, 1e-12);
        assert_eq!(partner, Some(expected));
        let nobody = vec![f64::NEG_INFINITY; n];
        assert_eq!(second_order_partner(&gradient, &nobody, &row_i, &diagonal, 1.5, found.up, 1e-12), None);
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
