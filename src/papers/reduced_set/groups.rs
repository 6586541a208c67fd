//! The penalized path of several outputs that share their vectors (Weston and Bakir, TR-132, eq. 5): minimize over B (m, q)
//!
//! ```text
//! tr(B' H B) - 2 tr(B' T) + 2 h sum_i c_i max_j |B_ij|        R = T - H B,   h = lambda / 2
//! ```
//!
//! B is the solution if |R_i|_1 <= h c_i for every vector and R_i B_i' = h c_i max_j |B_ij| for the active ones, those with
//! B_i not 0. Both are checked, with R computed from B, before a solution is accepted.
//!
//! The problem of the active vectors is solved in rounds: a sweep of block coordinate descent, where row i becomes the prox
//! of h c_i / H_ii max|.| at Z_i / H_ii, Z_i = T_i - sum over k != i of H_ik B_k, and the Newton step for the entries that
//! are then clipped and free (`newton`). Neighboring vectors of a kernel are nearly parallel: sweeps alone are slow along
//! the directions in which H is small, and there an undamped step changes many entries from clipped to free. Therefore H is
//! damped, the more the fewer steps have full length: a round is one of the proximal point algorithm, and momentum between
//! rounds compensates for the damping (Nesterov; Gueler, SIAM Journal on Optimization 1992), which restarts if the objective
//! has risen. Inactive vectors that violate their condition become active, until none does. The next h starts from the
//! solution.
//!
//! Cost: about six |A|^2 q for a round with the active vectors A, m |A| q for checking the others.

use super::newton::{Point, Workspace, max_norm, product, refill};
use crate::context::WorkCounter;
use crate::data::{flat, gather, matrix};
use crate::error::Result;
use crate::memory::try_matrix;
use crate::simd::blas::{add_rows, dot};
use std::iter::repeat_n;

/// Maximum violation of the conditions as a share of h c_i: small compared with the steps between two h.
pub(super) const MAX_VIOLATION: f64 = 1e-3;
/// Maximum number of rounds for one h; a solution that then violates its conditions is reported as not converged.
const MAX_ROUNDS: usize = 2000;
/// Number of sweeps after which a new vector with a zero row becomes inactive again.
const TRIAL_SWEEPS: usize = 2;
/// Damping of the first step.
const INITIAL_DAMPING: f64 = 1e-3;
/// Factor of the damping after a shortened step, and after one of full length.
const DAMPING_INCREASE: f64 = 2.0;
const DAMPING_DECREASE: f64 = 0.7;
/// Bounds of the damping.
const MIN_DAMPING: f64 = 1e-10;
const MAX_DAMPING: f64 = 1.0;

/// The solution for some h, the starting point for the next one.
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
    /// The active vectors, in the order in which they entered.
    active: Vec<usize>,
    /// Damping of the last step.
    damping: f64,
    work: Workspace,
}

impl<'a> Groups<'a> {
    /// Starts with B = 0. A vector with c = 0 never enters.
    pub(super) fn new(
        quadratic: &'a [f64],
        linear: &'a [f64],
        weights: &'a [f64],
        outputs: usize,
    ) -> Result<Self> {
        let (mut b, mut residual) = (Vec::new(), Vec::new());
        refill(&mut b, repeat_n(0.0, linear.len()))?;
        refill(&mut residual, linear.iter().copied())?;
        Ok(Self {
            quadratic,
            linear,
            weights,
            outputs,
            b,
            residual,
            active: Vec::new(),
            damping: INITIAL_DAMPING,
            work: Workspace::default(),
        })
    }

    /// Returns the active vectors.
    pub(super) fn active(&self) -> &[usize] {
        &self.active
    }

    /// Returns B_i.
    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.b[i * self.outputs..(i + 1) * self.outputs]
    }

    /// Returns the squared length of the contribution of vector i in the norm of H.
    pub(super) fn size(&self, i: usize) -> f64 {
        dot(self.row(i), self.row(i)) * self.quadratic[i * self.weights.len() + i]
    }

    /// Returns the smallest h with B = 0.
    pub(super) fn max_half(&self) -> f64 {
        (0..self.weights.len()).map(|i| self.entry_level(i)).fold(0.0, f64::max)
    }

    /// Returns |R_i|_1 / c_i, the h above which row i is zero.
    fn entry_level(&self, i: usize) -> f64 {
        let (m, q) = (self.weights.len(), self.outputs);
        let may_enter = self.quadratic[i * m + i] > 0.0 && self.weights[i] > 0.0;
        let size = self.residual[i * q..(i + 1) * q].iter().map(|v| v.abs()).sum::<f64>();
        if may_enter { size / self.weights[i] } else { 0.0 }
    }

    /// Returns the maximum violation of a condition as a share of h c_i.
    pub(super) fn violation(&self, half: f64) -> f64 {
        let q = self.outputs;
        let outside = (0..self.weights.len()).map(|i| self.entry_level(i) / half - 1.0);
        let along = self.active.iter().map(|&i| {
            let max = max_norm(self.row(i));
            let along = dot(&self.residual[i * q..(i + 1) * q], self.row(i));
            (1.0 - along / (half * self.weights[i] * max)).abs()
        });
        outside.chain(along).fold(0.0, f64::max)
    }

    /// Solves for h; returns false if the conditions are not met within the maximum number of rounds.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn solve(&mut self, half: f64, counter: &mut WorkCounter<'_>) -> Result<bool> {
        let (m, mut rounds, mut exact) = (self.weights.len(), MAX_ROUNDS, 0.5 * MAX_VIOLATION);
        let mut is_active = vec![false; m];
        loop {
            is_active.fill(false);
            for &i in &self.active {
                is_active[i] = true;
            }
            let entering: Vec<usize> =
                (0..m).filter(|&i| !is_active[i] && self.entry_level(i) > half).collect();
            self.active.extend(entering);
            let mut problem = ActiveProblem::new(self, half)?;
            let mut result = (0..TRIAL_SWEEPS).try_for_each(|_| problem.sweep(counter));
            self.store(&problem);
            if result.is_ok() {
                problem = ActiveProblem::new(self, half)?;
                result = problem.solve(exact, &mut rounds, &mut self.damping, &mut self.work, counter);
                self.store(&problem);
            }
            if result.is_ok() {
                result = self.update_residual(counter);
            }
            result?;
            if self.violation(half) <= MAX_VIOLATION {
                return Ok(true);
            }
            if rounds == 0 {
                return Ok(false);
            }
            rounds -= 1;
            exact = (0.3 * exact).max(1e-6 * MAX_VIOLATION);
        }
    }

    /// Stores B of the active vectors; those with a zero row become inactive.
    fn store(&mut self, problem: &ActiveProblem) {
        let q = self.outputs;
        for (&i, row) in self.active.iter().zip(problem.b.chunks_exact(q)) {
            self.b[i * q..(i + 1) * q].copy_from_slice(row);
        }
        let b = &self.b;
        self.active.retain(|&i| b[i * q..(i + 1) * q].iter().any(|&v| v != 0.0));
    }

    /// Computes R from B.
    fn update_residual(&mut self, counter: &mut WorkCounter<'_>) -> Result<()> {
        let (m, q) = (self.weights.len(), self.outputs);
        let rows: Vec<&[f64]> = self.active.iter().map(|&k| &self.b[k * q..(k + 1) * q]).collect();
        self.residual.copy_from_slice(self.linear);
        for (i, residual) in self.residual.chunks_exact_mut(q).enumerate() {
            counter.charge((rows.len() * q) as u64)?;
            let line = &self.quadratic[i * m..(i + 1) * m];
            let weights: Vec<f64> = self.active.iter().map(|&k| -line[k]).collect();
            add_rows(&weights, &rows, 0, residual);
        }
        Ok(())
    }
}

/// The problem of the n active vectors.
struct ActiveProblem {
    /// (n, n).
    quadratic: Vec<f64>,
    /// (n, q), as B.
    linear: Vec<f64>,
    /// h c_i.
    bounds: Vec<f64>,
    outputs: usize,
    b: Vec<f64>,
}

impl ActiveProblem {
    /// Gathers the rows of the active vectors.
    fn new(of: &Groups<'_>, half: f64) -> Result<Self> {
        let (m, q, n) = (of.weights.len(), of.outputs, of.active.len());
        let quadratic =
            try_matrix((n, n), |(a, b)| of.quadratic[of.active[a] * m + of.active[b]]).map(flat)?;
        let rows_of = |a: &[f64]| matrix((m, q), a).and_then(|rows| gather(&rows, &of.active)).map(flat);
        let bounds = of.active.iter().map(|&i| half * of.weights[i]).collect::<Vec<_>>();
        let (linear, b) = (rows_of(of.linear)?, rows_of(&of.b)?);
        Ok(Self { quadratic, linear, bounds, outputs: q, b })
    }

    /// Iterates until no condition is violated by more than `exact`, or no round is left.
    fn solve(
        &mut self,
        exact: f64,
        rounds: &mut usize,
        damping: &mut f64,
        work: &mut Workspace,
        counter: &mut WorkCounter<'_>,
    ) -> Result<()> {
        let q = self.outputs;
        let (mut value, mut momentum) = (f64::INFINITY, 1.0_f64);
        let (mut best, mut before, mut residual) = (Vec::new(), Vec::new(), Vec::new());
        refill(&mut best, self.b.iter().copied())?;
        while *rounds > 0 && !self.bounds.is_empty() {
            *rounds -= 1;
            self.sweep(counter)?;
            self.residual(&mut residual, counter)?;
            let row_max: Vec<f64> = self.b.chunks_exact(q).map(max_norm).collect();
            if self.violation(&residual, &row_max) <= exact {
                break;
            }
            let (quadratic, bounds, b) = (&self.quadratic, &self.bounds, &self.b);
            let point = Point { quadratic, bounds, b, residual: &residual, row_max: &row_max, outputs: q };
            let step = point.step(*damping, work, counter)?;
            let change = step.as_ref().map_or(0.0, |step| step.change);
            // tr(B' H B) = tr(B' (T - R))
            let penalty: f64 = self.bounds.iter().zip(&row_max).map(|(bound, max)| bound * max).sum();
            let reached = 2.0 * penalty - dot(&self.b, &self.linear) - dot(&self.b, &residual) + change;
            let is_full_step = step.as_ref().is_some_and(|step| step.length == 1.0);
            *damping = (*damping * if is_full_step { DAMPING_DECREASE } else { DAMPING_INCREASE })
                .clamp(MIN_DAMPING, MAX_DAMPING);
            if let Some(step) = step {
                self.b = step.b;
            }
            if reached > value {
                if momentum == 1.0 {
                    break;
                }
                self.b.copy_from_slice(&best);
                momentum = 1.0;
                continue;
            }
            let next = 0.5 + (0.25 + momentum * momentum).sqrt();
            let ahead = (momentum - 1.0) / next;
            (value, momentum) = (reached, next);
            std::mem::swap(&mut best, &mut before);
            refill(&mut best, self.b.iter().copied())?;
            for ((b, best), before) in self.b.iter_mut().zip(&best).zip(&before) {
                *b = best + ahead * (best - before);
            }
        }
        Ok(())
    }

    /// Minimizes over each row in turn.
    fn sweep(&mut self, counter: &mut WorkCounter<'_>) -> Result<()> {
        let (n, q) = (self.bounds.len(), self.outputs);
        let mut new = vec![0.0; q];
        for i in 0..n {
            counter.charge((n * q) as u64)?;
            let (line, bound) = (&self.quadratic[i * n..(i + 1) * n], self.bounds[i]);
            let rows: Vec<&[f64]> = self.b.chunks_exact(q).collect();
            new.fill(0.0);
            add_rows(line, &rows, 0, &mut new);
            for ((new, t), b) in new.iter_mut().zip(&self.linear[i * q..]).zip(rows[i]) {
                *new = b + (t - *new) / line[i];
            }
            prox_max_norm(&mut new, bound / line[i]);
            self.b[i * q..(i + 1) * q].copy_from_slice(&new);
        }
        Ok(())
    }

    /// Computes T - H B.
    fn residual(&self, out: &mut Vec<f64>, counter: &mut WorkCounter<'_>) -> Result<()> {
        product(&self.quadratic, &self.b, self.outputs, out, counter)?;
        out.iter_mut().zip(&self.linear).for_each(|(r, t)| *r = t - *r);
        Ok(())
    }

    /// Returns the maximum violation as [`Groups::violation`] does, for the active vectors.
    fn violation(&self, residual: &[f64], row_max: &[f64]) -> f64 {
        let q = self.outputs;
        let rows = residual.chunks_exact(q).zip(self.b.chunks_exact(q)).zip(self.bounds.iter().zip(row_max));
        let violation = rows.map(|((r, b), (bound, &max))| {
            let beyond = r.iter().map(|v| v.abs()).sum::<f64>() / bound - 1.0;
            if max > 0.0 { beyond.max((1.0 - dot(r, b) / (bound * max)).abs()) } else { beyond }
        });
        violation.fold(0.0, f64::max)
    }
}

/// Computes the prox of weight max|.|: values are clipped at the level t at which the excess sums to `weight`, or are all
/// zero if their sum is smaller (the difference from the projection on the l1 ball of radius `weight`).
fn prox_max_norm(values: &mut [f64], weight: f64) {
    let sum: f64 = values.iter().map(|v| v.abs()).sum();
    if sum <= weight {
        values.fill(0.0);
        return;
    }
    // The sum and number of the values above a level give the next level, which is not above t (Michelot, 1986). If
    // `weight` is nearly the whole sum, rounding can make it negative.
    let mut count = values.len();
    let mut level = ((sum - weight) / count as f64).max(0.0);
    loop {
        let (mut sum, mut above) = (0.0, 0);
        for v in values.iter().map(|v| v.abs()).filter(|&v| v > level) {
            (sum, above) = (sum + v, above + 1);
        }
        if above == count || above == 0 {
            break;
        }
        count = above;
        level = level.max((sum - weight) / count as f64);
    }
    for v in values {
        *v = v.clamp(-level, level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::random::Random;
    use crate::simd::blas::axpy;

    #[test]
    fn the_prox_minimises_its_objective() {
        for weight in [0.1, 0.7, 2.0, 10.0] {
            let v = [1.5, -0.4, 0.9, 0.0];
            let mut best = v;
            prox_max_norm(&mut best, weight);
            let value = |b: &[f64]| {
                let distance: f64 = b.iter().zip(&v).map(|(b, v)| 0.5 * (b - v) * (b - v)).sum();
                distance + weight * b.iter().fold(0.0_f64, |a, v| a.max(v.abs()))
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
    fn a_weight_of_nearly_the_whole_sum_leaves_almost_nothing() {
        let mut random = Random::new(5);
        for _ in 0..1000 {
            let mut values: Vec<f64> = (0..10).map(|_| random.uniform() - 0.5).collect();
            let sum: f64 = values.iter().map(|v| v.abs()).sum();
            prox_max_norm(&mut values, sum.next_down());
            assert!(values.iter().all(|v| v.abs() < 1e-15));
        }
    }

    /// Every vector has a copy and two near copies.
    #[test]
    fn copies_and_near_copies_do_not_prevent_a_solution() {
        let (m, q) = (40, 6);
        let mut random = Random::new(3);
        let x: Vec<f64> = (0..m / 4).map(|_| random.uniform()).collect();
        let at = |i: usize| x[i / 4] + if i % 4 < 2 { 0.0 } else { 1e-4 };
        let h: Vec<f64> = (0..m * m).map(|e| (-(at(e / m) - at(e % m)).powi(2)).exp()).collect();
        let alpha: Vec<f64> = (0..m * q).map(|_| random.uniform() - 0.5).collect();
        let mut linear = vec![0.0; m * q];
        for e in 0..m * m {
            axpy(h[e], &alpha[(e % m) * q..(e % m + 1) * q], &mut linear[(e / m) * q..(e / m + 1) * q]);
        }
        let weights = vec![1.0; m];
        let mut groups = Groups::new(&h, &linear, &weights, q).unwrap();
        let first = groups.max_half();
        for level in 1..=60 {
            let half = first * 1e-3_f64.powf(f64::from(level) / 60.0);
            assert!(groups.solve(half, &mut Context::default().counter("", 0)).unwrap(), "level {level}");
            assert!(groups.violation(half) <= MAX_VIOLATION);
        }
    }

    /// The conditions hold at every h of a path, for a kernel matrix whose columns are far from orthogonal.
    #[test]
    fn every_solution_meets_its_conditions() {
        for (m, q) in [(40, 4), (30, 2), (20, 1), (50, 40)] {
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
            let mut groups = Groups::new(&h, &linear, &weights, q).unwrap();
            let first = groups.max_half();
            let mut counter = Context::default().counter("", 0);
            for level in 1..=40 {
                let half = first * 1e-2_f64.powf(f64::from(level) / 40.0);
                assert!(groups.solve(half, &mut counter).unwrap(), "m {m} level {level}");
                // Straight from the definition, with a separate residual.
                for i in 0..m {
                    let mut residual = linear[i * q..(i + 1) * q].to_vec();
                    for k in 0..m {
                        axpy(-h[i * m + k], groups.row(k), &mut residual);
                    }
                    let (sum, bound): (f64, f64) =
                        (residual.iter().map(|v| v.abs()).sum(), half * weights[i]);
                    assert!(sum <= bound * (1.0 + 2.0 * MAX_VIOLATION));
                    let max = max_norm(groups.row(i));
                    if max > 0.0 {
                        let along = dot(&residual, groups.row(i)) / max;
                        assert!((along - bound).abs() <= 2.0 * MAX_VIOLATION * bound);
                    }
                }
            }
            assert!(groups.active().len() > 3);
        }
    }
}
