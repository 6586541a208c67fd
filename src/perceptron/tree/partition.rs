//! Hyperplanes through the median of the rows of a leaf, normal to a random direction or to the one that explains the outputs
//! best, and what the other partitions are made of.
//!
//! Invariant: a partition has rows on both sides, or is none. Cost: O(n (d + q)) a power step for n rows of d features and q
//! outputs, O(n d + n log n) for a hyperplane.

use super::node::projection;
use crate::kernels::RowBuffer;
use crate::random::Random;
use crate::simd::Real;
use crate::simd::blas::{axpy, dot};

/// Number of power steps for the direction of several outputs.
const POWER_STEPS: usize = 20;

/// A branching rule in terms of the leaf.
pub(super) enum Cut<T> {
    /// Left if w'x/|x| > threshold.
    Linear { direction: Vec<T>, threshold: f64 },
    /// Left if k(x, b_j) <= threshold.
    Vector { vector: usize, threshold: f64 },
    /// Left if the nearest sampled row went left.
    Nearest,
}

/// A branching rule, and whether it sends each sampled row left.
pub(super) type Division<T> = (Cut<T>, Vec<bool>);

/// Draws the direction of a hyperplane (RNDW).
pub(super) fn random_direction<T: Real>(rows: &[RowBuffer<T>], random: &mut Random) -> Vec<f64> {
    (0..rows[0].features()).map(|_| random.normal()).collect()
}

/// Returns the direction along which the rows explain the outputs best (PLS): the left singular vector of
/// sum_i x_i/|x_i| (t_i - mean t)' with the largest singular value. `target` has the outputs t one after the other.
pub(super) fn explaining_direction<T: Real>(rows: &[RowBuffer<T>], target: &[f64]) -> Vec<f64> {
    let n = rows.len();
    let scale = target.iter().fold(f64::MIN_POSITIVE, |largest, t| largest.max(t.abs()));
    let mut outputs: Vec<f64> = target.iter().map(|t| t / scale).collect();
    for output in outputs.chunks_exact_mut(n) {
        let mean = output.iter().sum::<f64>() / n as f64;
        for value in output {
            *value -= mean;
        }
    }
    let outputs: Vec<&[f64]> = outputs.chunks_exact(n).collect();
    let lengths: Vec<f64> = rows.iter().map(|row| row.squared_norm().sqrt()).collect();
    let largest = |a: &&&[f64], b: &&&[f64]| dot(a, a).total_cmp(&dot(b, b));
    let mut scores = outputs.iter().max_by(largest).map_or_else(Vec::new, |output| output.to_vec());
    let mut direction = vec![0.0; rows[0].features()];
    for _ in 0..if outputs.len() == 1 { 1 } else { POWER_STEPS } {
        direction.fill(0.0);
        for ((row, &score), &length) in rows.iter().zip(&scores).zip(&lengths).filter(|(_, l)| **l > 0.0) {
            row.for_each(|k, v| direction[k] += score * v.to_f64() / length);
        }
        let size = dot(&direction, &direction).sqrt();
        if !(size > 0.0) {
            break;
        }
        for value in &mut direction {
            *value /= size;
        }
        let mut along = vec![0.0; n];
        for ((along, row), &length) in along.iter_mut().zip(rows).zip(&lengths).filter(|(_, l)| **l > 0.0) {
            row.for_each(|k, v| *along += direction[k] * v.to_f64() / length);
        }
        scores.fill(0.0);
        for output in &outputs {
            axpy(dot(output, &along), output, &mut scores);
        }
    }
    direction
}

/// Divides rows by a hyperplane at the median, if it divides them.
///
/// It passes halfway between two rows, so that rounding sends none of them to the other side.
pub(super) fn halved<T: Real>(rows: &[RowBuffer<T>], direction: Vec<f64>) -> Option<Division<T>> {
    let length = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
    if !(length > 0.0) {
        return None;
    }
    let direction: Vec<T> = direction.into_iter().map(|v| T::from_f64(v / length)).collect();
    let values: Vec<f64> = rows.iter().map(|row| projection(&direction, row)).collect();
    let below = median(&values)?;
    let rows = values.iter().map(|v| *v > below).collect::<Vec<_>>();
    let above = values.iter().copied().filter(|v| *v > below).fold(f64::INFINITY, f64::min);
    let halfway = below.midpoint(above);
    let threshold = if halfway < above { halfway } else { below };
    Some((Cut::Linear { direction, threshold }, rows))
}

/// Returns a threshold near the median with values above it and values not above it.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (middle, largest) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() - 1]);
    if middle < largest {
        return Some(middle);
    }
    sorted.into_iter().rev().find(|v| *v < largest)
}

/// Returns the half with the smallest gains (LP_z).
pub(super) fn smallest_half(gains: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..gains.len()).collect();
    order.sort_unstable_by(|&a, &b| gains[a].total_cmp(&gains[b]).then(a.cmp(&b)));
    let mut z = vec![false; gains.len()];
    for &i in &order[..gains.len() / 2] {
        z[i] = true;
    }
    z
}

/// Returns the entropy of the classes.
pub(super) fn entropy(labels: impl Iterator<Item = u32>) -> f64 {
    let mut counts: Vec<usize> = Vec::new();
    for label in labels {
        if counts.len() <= label as usize {
            counts.resize(label as usize + 1, 0);
        }
        counts[label as usize] += 1;
    }
    let total: usize = counts.iter().sum();
    let parts = counts.iter().filter(|c| **c > 0).map(|c| *c as f64 / total as f64);
    parts.map(|p| -p * p.ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_divide() {
        assert_eq!(median(&[3.0, 1.0, 2.0, 4.0]), Some(2.0));
        assert_eq!(median(&[1.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(median(&[5.0, 5.0]), None);
        assert_eq!(smallest_half(&[0.3, -1.0, 2.0, 0.0, 0.0]), [false, true, false, true, false]);
    }

    #[test]
    fn entropies_by_hand() {
        assert!((entropy([0, 0, 1, 1].into_iter()) - std::f64::consts::LN_2).abs() < 1e-15);
        assert_eq!(entropy([2, 2].into_iter()), 0.0);
    }
}
