//! The penalised path of several outputs that share their vectors (Weston and Bakir, TR-132, eq. 5): minimise over B (m, q)
//!
//! ```text
//! tr(B' H B) - 2 tr(B' T) + 2 h sum_i c_i max_j |B_ij|        R = T - H B,   h = lambda / 2
//! ```
//!
//! B is the solution where |R_i|_1 <= h c_i for every vector, and R_i B_i' = h c_i max_j |B_ij| for those inside, with B_i
//! not 0. Both are looked at, with R computed afresh, before a solution counts as found.
//!
//! The vectors inside are a problem of their own, solved by block coordinate descent: with Z_i = T_i - sum over k != i of
//! H_ik B_k, row i is the prox of h c_i / H_ii max|.| at Z_i / H_ii. The last sweeps are extrapolated now and then, which
//! is kept where it lowers the objective (Anderson acceleration, as in Bertrand and Massias, AISTATS 2021): neighbouring
//! vectors of a kernel are nearly parallel, and descent alone then creeps. Vectors outside that break their condition come
//! in, until none does. The next h begins from there.
//!
//! Cost: of a sweep |A|^2 q for the vectors A inside, of a look at those outside m |A| q.

use crate::control::StopReason;
use crate::error::Result;
use crate::linalg::cholesky;
use crate::memory::zeros;
use crate::simd::blas::{axpy, dot};
use crate::watch::Watch;
use std::ops::ControlFlow;

/// How far the conditions may be off, as a share of h c_i: little beside the steps between two h.
pub(super) const EXACT: f64 = 1e-3;
/// Sweeps that an extrapolation looks back on.
const MEMORY: usize = 5;
/// Sweeps at one h, at least and at most, and multiplications between; a solution that is not exact by then is said not
/// to be.
const SWEEPS: (usize, usize) = (400, 2000);
const WORK: usize = 100_000_000;

/// The solution at some h, from which the next one is found.
pub(super) struct Groups<'a> {
    /// H, (m, m), symmetric.
    quadratic: &'a [f64],
    /// T, (m, q).
    linear: &'a [f64],
    /// c, (m,).
    weights: &'a [f64],
    /// q.
    outputs: usize,
    /// B, (m, q).
    b: Vec<f64>,
    /// R, (m, q).
    residual: Vec<f64>,
    /// The vectors with B_i not 0, in the order in which they came.
    inside: Vec<usize>,
}

impl<'a> Groups<'a> {
    /// B = 0. A vector with c = 0 stays out.
    pub(super) fn new(quadratic: &'a [f64], linear: &'a [f64], weights: &'a [f64], outputs: usize) -> Self {
        let (b, residual) = (vec![0.0; linear.len()], linear.to_vec());
        Self { quadratic, linear, weights, outputs, b, residual, inside: Vec::new() }
    }

    /// The vectors with B_i not 0.
    pub(super) fn inside(&self) -> &[usize] {
        &self.inside
    }

    /// B_i.
    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.b[i * self.outputs..(i + 1) * self.outputs]
    }

    /// The squared length of what vector i adds, by H.
    pub(super) fn size(&self, i: usize) -> f64 {
        dot(self.row(i), self.row(i)) * self.quadratic[i * self.weights.len() + i]
    }

    /// h from which on B = 0.
    pub(super) fn first(&self) -> f64 {
        (0..self.weights.len()).map(|i| self.pull(i)).fold(0.0, f64::max)
    }

    /// |R_i|_1 / c_i: h above which row i is to be zero.
    fn pull(&self, i: usize) -> f64 {
        let (m, q) = (self.weights.len(), self.outputs);
        let may = self.quadratic[i * m + i] > 0.0 && self.weights[i] > 0.0;
        let size = self.residual[i * q..(i + 1) * q].iter().map(|v| v.abs()).sum::<f64>();
        if may { size / self.weights[i] } else { 0.0 }
    }

    /// The largest share of h c_i by which a condition is off.
    pub(super) fn off(&self, half: f64) -> f64 {
        let q = self.outputs;
        let outside = (0..self.weights.len()).map(|i| self.pull(i) / half - 1.0);
        let along = self.inside.iter().map(|&i| {
            let largest = largest(self.row(i));
            let along = dot(&self.residual[i * q..(i + 1) * q], self.row(i));
            (1.0 - along / (half * self.weights[i] * largest)).abs()
        });
        outside.chain(along).fold(0.0, f64::max)
    }

    /// Goes to the solution at h; false where the conditions are not met in the sweeps allowed.
    pub(super) fn solve(
        &mut self,
        half: f64,
        watch: &mut Watch<'_>,
    ) -> Result<std::result::Result<bool, StopReason>> {
        let (m, q) = (self.weights.len(), self.outputs);
        let (mut spent, mut still) = (0, 0.1 * EXACT);
        let mut is_inside = vec![false; m];
        loop {
            is_inside.fill(false);
            for &i in &self.inside {
                is_inside[i] = true;
            }
            let wanted: Vec<usize> = (0..m).filter(|&i| !is_inside[i] && self.pull(i) > half).collect();
            self.inside.extend(wanted);
            let mut alone = Alone::new(self, half)?;
            let n = self.inside.len();
            let most = (WORK / (n * n * q).max(1)).clamp(SWEEPS.0, SWEEPS.1);
            let stopped = alone.descend(still, most, &mut spent, watch);
            for (place, &i) in self.inside.iter().enumerate() {
                for j in 0..q {
                    self.b[i * q + j] = alone.b[j * n + place];
                }
            }
            self.inside.retain(|&i| self.b[i * q..(i + 1) * q].iter().any(|&v| v != 0.0));
            for j in 0..q {
                let mut column: Vec<f64> = self.linear.iter().skip(j).step_by(q).copied().collect();
                for &k in &self.inside {
                    axpy(-self.b[k * q + j], &self.quadratic[k * m..(k + 1) * m], &mut column);
                }
                self.residual.iter_mut().skip(j).step_by(q).zip(&column).for_each(|(r, v)| *r = *v);
            }
            let work = (m * q * (self.inside.len() + 1)) as u64;
            let stopped = if stopped.is_break() { stopped } else { watch.look(work) };
            if let ControlFlow::Break(reason) = stopped {
                return Ok(Err(reason));
            }
            if self.off(half) <= EXACT {
                return Ok(Ok(true));
            }
            if spent >= most {
                return Ok(Ok(false));
            }
            still = (0.3 * still).max(1e-6 * EXACT);
        }
    }
}

/// The problem of the n vectors inside, an output after the other.
struct Alone {
    /// (n, n).
    quadratic: Vec<f64>,
    /// (q, n), as B and R.
    linear: Vec<f64>,
    /// h c_i.
    bounds: Vec<f64>,
    outputs: usize,
    b: Vec<f64>,
    residual: Vec<f64>,
}

impl Alone {
    fn new(of: &Groups<'_>, half: f64) -> Result<Self> {
        let (m, q, n) = (of.weights.len(), of.outputs, of.inside.len());
        let mut quadratic = zeros("the vectors inside", n * n)?;
        for (&i, line) in of.inside.iter().zip(quadratic.chunks_exact_mut(n.max(1))) {
            for (&j, h) in of.inside.iter().zip(line) {
                *h = of.quadratic[i * m + j];
            }
        }
        let gathered = |a: &[f64]| -> Vec<f64> {
            (0..q).flat_map(|j| of.inside.iter().map(move |&i| i * q + j)).map(|e| a[e]).collect()
        };
        let bounds = of.inside.iter().map(|&i| half * of.weights[i]).collect();
        let (linear, b) = (gathered(of.linear), gathered(&of.b));
        let mut alone = Self { quadratic, linear, bounds, outputs: q, b, residual: Vec::new() };
        alone.residual = alone.residual_of(&alone.b);
        Ok(alone)
    }

    fn residual_of(&self, b: &[f64]) -> Vec<f64> {
        let n = self.bounds.len().max(1);
        let mut residual = self.linear.clone();
        for (b, residual) in b.chunks_exact(n).zip(residual.chunks_exact_mut(n)) {
            for (v, line) in b.iter().zip(self.quadratic.chunks_exact(n)) {
                axpy(-v, line, residual);
            }
        }
        residual
    }

    /// The objective for a B with its residual: tr(B' H B) = tr(B' (T - R)).
    fn value(&self, b: &[f64], residual: &[f64]) -> f64 {
        let n = self.bounds.len();
        let peak = |i: usize| b.iter().skip(i).step_by(n).fold(0.0, |a: f64, v| a.max(v.abs()));
        let penalty: f64 = self.bounds.iter().enumerate().map(|(i, bound)| bound * peak(i)).sum();
        2.0 * penalty - dot(b, &self.linear) - dot(b, residual)
    }

    /// Sweeps until no row moves by more than this share of what its bound would move it by, or until `most` are spent.
    fn descend(
        &mut self,
        still: f64,
        most: usize,
        spent: &mut usize,
        watch: &mut Watch<'_>,
    ) -> ControlFlow<StopReason> {
        let (n, q) = (self.bounds.len(), self.outputs);
        let mut past: Vec<Vec<f64>> = Vec::new();
        let (mut new, mut sizes) = (vec![0.0; q], Vec::with_capacity(q));
        while *spent < most {
            *spent += 1;
            let mut moved = 0.0_f64;
            for i in 0..n {
                watch.look((n * q) as u64)?;
                moved = moved.max(self.solve_row(i, &mut new, &mut sizes));
            }
            if moved <= still {
                break;
            }
            past.push(self.b.clone());
            if past.len() > MEMORY {
                self.extrapolate(&past);
                past.clear();
            }
        }
        ControlFlow::Continue(())
    }

    /// Minimises over row i; how far it moved, over h c_i / H_ii.
    fn solve_row(&mut self, i: usize, new: &mut [f64], sizes: &mut Vec<f64>) -> f64 {
        let n = self.bounds.len();
        let line = &self.quadratic[i * n..(i + 1) * n];
        let (own, bound) = (line[i], self.bounds[i]);
        for (j, new) in new.iter_mut().enumerate() {
            *new = self.b[j * n + i] + self.residual[j * n + i] / own;
        }
        clip_to_prox(new, bound / own, sizes);
        let mut moved = 0.0_f64;
        for (j, &new) in new.iter().enumerate() {
            let change = new - self.b[j * n + i];
            if change != 0.0 {
                self.b[j * n + i] = new;
                axpy(-change, line, &mut self.residual[j * n..(j + 1) * n]);
                moved = moved.max(change.abs());
            }
        }
        moved * own / bound
    }

    /// The affine combination of the last sweeps whose steps add up to the least, where that is better.
    fn extrapolate(&mut self, past: &[Vec<f64>]) {
        let steps: Vec<Vec<f64>> = past
            .windows(2)
            .map(|two| two[1].iter().zip(&two[0]).map(|(new, old)| new - old).collect())
            .collect();
        let k = steps.len();
        let mut gram: Vec<f64> = (0..k * k).map(|e| dot(&steps[e / k], &steps[e % k])).collect();
        let trace: f64 = (0..k).map(|a| gram[a * k + a]).sum();
        (0..k).for_each(|a| gram[a * k + a] += 1e-12 * trace);
        let mut shares = vec![1.0; k];
        if cholesky::factor(&mut gram, k).is_err() {
            return;
        }
        cholesky::solve(&gram, k, &mut shares, 1);
        let sum: f64 = shares.iter().sum();
        let mut b = vec![0.0; self.b.len()];
        for (share, past) in shares.iter().zip(&past[1..]) {
            axpy(share / sum, past, &mut b);
        }
        let residual = self.residual_of(&b);
        if self.value(&b, &residual) < self.value(&self.b, &self.residual) {
            (self.b, self.residual) = (b, residual);
        }
    }
}

fn largest(row: &[f64]) -> f64 {
    row.iter().fold(0.0, |a, v| a.max(v.abs()))
}

/// The prox of reach max|.|: values are clipped at the level t where what is cut off sums to `reach`; all zero where the
/// values sum to less (the rest after projection on the l1 ball of radius `reach`).
fn clip_to_prox(values: &mut [f64], reach: f64, sizes: &mut Vec<f64>) {
    if values.iter().map(|v| v.abs()).sum::<f64>() <= reach {
        values.fill(0.0);
        return;
    }
    sizes.clear();
    sizes.extend(values.iter().map(|v| v.abs()));
    sizes.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut level) = (0.0, 0.0);
    for (k, &size) in sizes.iter().enumerate() {
        sum += size;
        level = (sum - reach) / (k + 1) as f64;
        if sizes.get(k + 1).is_none_or(|&next| next <= level) {
            break;
        }
    }
    // Where `reach` is the whole sum, rounding can put the level below zero.
    let level = level.max(0.0);
    for v in values {
        *v = v.clamp(-level, level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_prox_minimises_its_objective() {
        for reach in [0.1, 0.7, 2.0, 10.0] {
            let v = [1.5, -0.4, 0.9, 0.0];
            let mut best = v;
            clip_to_prox(&mut best, reach, &mut Vec::new());
            let value = |b: &[f64]| {
                let distance: f64 = b.iter().zip(&v).map(|(b, v)| 0.5 * (b - v) * (b - v)).sum();
                distance + reach * b.iter().fold(0.0_f64, |a, v| a.max(v.abs()))
            };
            let at_best = value(&best);
            for trial in 0..2000 {
                let other: Vec<f64> =
                    (0..4).map(|k| best[k] + 0.3 * (f64::from(trial * 4 + k as i32) * 0.77).sin()).collect();
                assert!(value(&other) >= at_best - 1e-12);
            }
        }
    }

    #[test]
    fn a_reach_of_nearly_the_whole_sum_leaves_next_to_nothing() {
        let mut random = Random::new(5);
        for _ in 0..1000 {
            let mut values: Vec<f64> = (0..10).map(|_| random.uniform() - 0.5).collect();
            let sum: f64 = values.iter().map(|v| v.abs()).sum();
            clip_to_prox(&mut values, sum.next_down(), &mut Vec::new());
            assert!(values.iter().all(|v| v.abs() < 1e-15));
        }
    }

    /// The conditions are met at every h of a path, for the matrix of a kernel whose columns are far from orthogonal.
    #[test]
    fn every_solution_meets_its_conditions() {
        for (m, q) in [(40, 4), (30, 2), (20, 1)] {
            let mut random = Random::new(m as u64);
            let x: Vec<f64> = (0..m * 3).map(|_| 4.0 * random.uniform()).collect();
            let apart =
                |a: usize, b: usize| (0..3).map(|k| (x[a * 3 + k] - x[b * 3 + k]).powi(2)).sum::<f64>();
            let h: Vec<f64> = (0..m * m).map(|e| (-0.5 * apart(e / m, e % m)).exp()).collect();
            let alpha: Vec<f64> = (0..m * q).map(|_| random.uniform() - 0.5).collect();
            let mut linear = vec![0.0; m * q];
            for e in 0..m * m {
                axpy(h[e], &alpha[(e % m) * q..(e % m + 1) * q], &mut linear[(e / m) * q..(e / m + 1) * q]);
            }
            let weights: Vec<f64> = (0..m).map(|i| 1.0 + 0.1 * (i % 3) as f64).collect();
            let mut groups = Groups::new(&h, &linear, &weights, q);
            let first = groups.first();
            let mut watch = Watch::silent();
            for level in 1..=40 {
                let half = first * 1e-2_f64.powf(f64::from(level) / 40.0);
                assert_eq!(groups.solve(half, &mut watch).unwrap(), Ok(true), "m {m} level {level}");
                // Straight from the definition, with a residual of its own.
                for i in 0..m {
                    let mut residual = linear[i * q..(i + 1) * q].to_vec();
                    for k in 0..m {
                        axpy(-h[i * m + k], groups.row(k), &mut residual);
                    }
                    let (sum, bound): (f64, f64) =
                        (residual.iter().map(|v| v.abs()).sum(), half * weights[i]);
                    assert!(sum <= bound * (1.0 + 2.0 * EXACT));
                    let peak = largest(groups.row(i));
                    if peak > 0.0 {
                        let along = dot(&residual, groups.row(i)) / peak;
                        assert!((along - bound).abs() <= 2.0 * EXACT * bound);
                    }
                }
            }
            assert!(groups.inside().len() > 3);
        }
    }
}
