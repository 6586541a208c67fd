//! Probabilities of k classes from those of all pairs: the second method of Wu, Lin and Weng (2004), "Probability estimates for
//! multi-class classification by pairwise coupling", with LIBSVM's iteration, tolerance and limit, so that the digits agree.
//!
//! Problem: with r_ij the probability of class i among i and j, the minimum of p' Q p over p with sum p = 1, where
//! Q_ii = sum_s r_si^2 and Q_ij = -r_ji r_ij. Method: coordinate steps p_t += (p'Qp - (Qp)_t) / Q_tt, each followed by a
//! normalization. Invariant: p sums to 1. Cost: O(k^2) for each of at most max(100, k) rounds of a sample.

use super::Sigmoid;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::{try_zero_matrix, try_zeros};
use ndarray::{Array2, ArrayView2};

/// Minimum and, subtracted from 1, maximum of the probability of a class of a pair: LIBSVM's.
pub const MIN_PAIR_PROBABILITY: f64 = 1e-7;
/// Minimum of the largest number of rounds.
const MIN_ROUNDS: usize = 100;
/// Largest deviation from the optimality conditions, times the number of classes.
const TOLERANCE: f64 = 0.005;
/// Number of rows of a task.
const ROWS_PER_TASK: usize = 256;

/// Returns the probabilities (n, k) of the classes for outputs (n, k (k - 1) / 2), positive for the first class of each pair,
/// pairs in the order (0,1), (0,2), ..., (1,2), ...
///
/// # Errors
/// [`Error::Param`] for numbers of outputs or sigmoids that do not fit k, [`Error::Memory`], [`Error::Stopped`].
pub fn couple_pairs(
    outputs: ArrayView2<'_, f64>,
    sigmoids: &[Sigmoid],
    k: usize,
    ctx: Context<'_>,
) -> Result<Array2<f64>> {
    Error::check_param(k >= 2, "n_classes", k, "at least 2")?;
    let q = k.saturating_mul(k - 1) / 2;
    Error::check_len("outputs, one for each pair of classes", q, outputs.ncols())?;
    Error::check_len("sigmoids, one for each pair of classes", q, sigmoids.len())?;
    let n = outputs.nrows();
    let mut shares: Array2<f64> = try_zero_matrix("the probabilities of classes", (n, k))?;
    let values = shares.as_slice_mut().unwrap_or_default();
    ctx.try_for_each_chunk(values, ROWS_PER_TASK * k, |task, chunk| {
        ctx.check("probabilities", task * ROWS_PER_TASK, n)?;
        let mut workspace = Workspace::new(k)?;
        for (i, p) in chunk.chunks_exact_mut(k).enumerate() {
            let row = outputs.row(task * ROWS_PER_TASK + i);
            let clipped = |(sigmoid, output): (&Sigmoid, &f64)| {
                sigmoid.probability(*output).clamp(MIN_PAIR_PROBABILITY, 1.0 - MIN_PAIR_PROBABILITY)
            };
            workspace.couple(sigmoids.iter().zip(row).map(clipped), p);
        }
        Ok(())
    })?;
    Ok(shares)
}

/// Q and Q p of one sample.
struct Workspace {
    q: Vec<f64>,
    product: Vec<f64>,
    k: usize,
}

impl Workspace {
    fn new(k: usize) -> Result<Self> {
        let what = "the coupling of probabilities";
        let entries = if k == 2 { 0 } else { k.saturating_mul(k) };
        Ok(Self { q: try_zeros(what, entries)?, product: vec![0.0; k], k })
    }

    fn couple(&mut self, mut pairwise: impl Iterator<Item = f64>, p: &mut [f64]) {
        let k = self.k;
        if k == 2 {
            p[0] = pairwise.next().unwrap_or(0.5);
            p[1] = 1.0 - p[0];
            return;
        }
        self.q.fill(0.0);
        for a in 0..k {
            for b in a + 1..k {
                let first = pairwise.next().unwrap_or(0.5);
                let second = 1.0 - first;
                self.q[a * k + b] = -(second * first);
                self.q[b * k + a] = -(second * first);
                self.q[a * k + a] += second * second;
                self.q[b * k + b] += first * first;
            }
        }
        p.fill(1.0 / k as f64);
        for _ in 0..MIN_ROUNDS.max(k) {
            let mut value = 0.0;
            for t in 0..k {
                self.product[t] = self.q[t * k..(t + 1) * k].iter().zip(p.iter()).map(|(q, p)| q * p).sum();
                value += p[t] * self.product[t];
            }
            let error = self.product.iter().map(|v| (v - value).abs()).fold(0.0, f64::max);
            if error < TOLERANCE / k as f64 {
                break;
            }
            for t in 0..k {
                let row = &self.q[t * k..(t + 1) * k];
                let step = (value - self.product[t]) / row[t];
                p[t] += step;
                value =
                    (value + step * (step * row[t] + 2.0 * self.product[t])) / (1.0 + step) / (1.0 + step);
                for ((product, p), q) in self.product.iter_mut().zip(p.iter_mut()).zip(row) {
                    *product = (*product + step * q) / (1.0 + step);
                    *p /= 1.0 + step;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sigmoid, couple_pairs};
    use crate::context::Context;
    use ndarray::{Array2, arr2};

    /// The outputs whose sigmoids are the probabilities p_i / (p_i + p_j).
    fn outputs(p: &[f64]) -> Vec<f64> {
        (0..p.len())
            .flat_map(|a| (a + 1..p.len()).map(move |b| (a, b)))
            .map(|(a, b)| (p[a] / p[b]).ln())
            .collect()
    }

    #[test]
    fn pairs_that_agree_give_their_distribution() {
        let sigmoid = Sigmoid { a: -1.0, b: 0.0 };
        for p in [vec![0.3, 0.7], vec![0.2, 0.3, 0.5], vec![0.1, 0.2, 0.3, 0.15, 0.25]] {
            let row = outputs(&p);
            let sigmoids = vec![sigmoid; row.len()];
            let values = Array2::from_shape_vec((1, row.len()), row).unwrap();
            let actual = couple_pairs(values.view(), &sigmoids, p.len(), Context::SEQUENTIAL).unwrap();
            for (actual, expected) in actual.iter().zip(&p) {
                assert!((actual - expected).abs() < 0.01, "{actual} {expected}");
            }
            assert!((actual.sum() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn extreme_outputs_stay_within_the_limits() {
        let sigmoids = [Sigmoid { a: -1.0, b: 0.0 }];
        let outputs = arr2(&[[1e9], [-1e9]]);
        let actual = couple_pairs(outputs.view(), &sigmoids, 2, Context::SEQUENTIAL).unwrap();
        assert_eq!(actual, arr2(&[[1.0 - 1e-7, 1.0 - (1.0 - 1e-7)], [1e-7, 1.0 - 1e-7]]));
        assert!(couple_pairs(outputs.view(), &[], 2, Context::SEQUENTIAL).is_err());
        assert!(couple_pairs(outputs.view(), &sigmoids, 3, Context::SEQUENTIAL).is_err());
        assert!(couple_pairs(outputs.view(), &sigmoids, 1, Context::SEQUENTIAL).is_err());
    }
}
