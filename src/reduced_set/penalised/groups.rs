//! The penalised path of several outputs that share their vectors (Weston and Bakir, TR-132, eq. 5): minimise over B (m, q)
//!
//! ```text
//! tr(B' H B) - 2 tr(B' T) + 2 h sum_i c_i max_j |B_ij|        R = T - H B,   h = lambda / 2
//! ```
//!
//! B is the solution where |R_i|_1 <= h c_i for every vector, and R_i B_i' = h c_i max_j |B_ij| for those inside, with B_i
//! not 0. Both are looked at, with R computed afresh, before a solution counts as found.
//!
//! The vectors inside are a problem of their own, solved in rounds: a sweep of block coordinate descent, where row i becomes
//! the prox of h c_i / H_ii max|.| at Z_i / H_ii, Z_i = T_i - sum over k != i of H_ik B_k, and Newton's step on the faces
//! that the rows are then on (`face`). Neighbouring vectors of a kernel are nearly parallel: sweeps alone creep along the
//! directions in which H is weak, and there an undamped step goes far beyond the face. So H is damped, the more the fewer
//! steps are taken whole: a round is one of the proximal point algorithm, and momentum between rounds makes up for the
//! damping (Nesterov; Gueler, SIAM Journal on Optimization 1992), which begins anew where the objective has risen. Vectors
//! outside that break their condition come in, until none does. The next h begins from there.
//!
//! Cost: of a round some six |A|^2 q for the vectors A inside, of a look at those outside m |A| q.

use super::face::{Face, Room, largest, product};
use crate::context::WorkCounter;
use crate::error::Result;
use crate::memory::{TryCollect, TryToVec, try_vec, try_zeros};
use crate::simd::blas::{add_rows, dot};

/// How far the conditions may be off, as a share of h c_i: little beside the steps between two h.
pub(super) const EXACT: f64 = 1e-3;
/// Rounds at one h, at most; a solution that is not exact by then is said not to be.
const ROUNDS: usize = 2000;
/// Sweeps after which a vector that has come in and is zero is out again.
const TRIAL: usize = 2;
/// Damping of the first step, what it is multiplied by after a step that was shortened and after a whole one, and its
/// bounds.
const DAMPING: f64 = 1e-3;
const MORE: f64 = 2.0;
const LESS: f64 = 0.7;
const DAMPINGS: (f64, f64) = (1e-10, 1.0);

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
    /// Of the last step.
    damping: f64,
    room: Room,
}

impl<'a> Groups<'a> {
    /// B = 0. A vector with c = 0 stays out.
    pub(super) fn new(
        quadratic: &'a [f64],
        linear: &'a [f64],
        weights: &'a [f64],
        outputs: usize,
    ) -> Result<Self> {
        let (b, residual) = (try_vec![0.0; linear.len()]?, linear.try_to_vec()?);
        Ok(Self {
            quadratic,
            linear,
            weights,
            outputs,
            b,
            residual,
            inside: Vec::new(),
            damping: DAMPING,
            room: Room::default(),
        })
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

    /// Goes to the solution at h; false where the conditions are not met in the rounds allowed.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn solve(&mut self, half: f64, counter: &mut WorkCounter<'_>) -> Result<bool> {
        let (m, mut rounds, mut exact) = (self.weights.len(), ROUNDS, 0.5 * EXACT);
        let mut is_inside = try_vec![false; m]?;
        loop {
            is_inside.fill(false);
            for &i in &self.inside {
                is_inside[i] = true;
            }
            let wanted: Vec<usize> =
                (0..m).filter(|&i| !is_inside[i] && self.pull(i) > half).try_collect_vec()?;
            self.inside.extend(wanted);
            let mut alone = Alone::new(self, half)?;
            let mut stopped = (0..TRIAL).try_for_each(|_| alone.sweep(counter));
            self.take(&alone);
            if stopped.is_ok() {
                alone = Alone::new(self, half)?;
                stopped = alone.descend(exact, &mut rounds, &mut self.damping, &mut self.room, counter);
                self.take(&alone);
            }
            if stopped.is_ok() {
                stopped = self.look_afresh(counter);
            }
            stopped?;
            if self.off(half) <= EXACT {
                return Ok(true);
            }
            if rounds == 0 {
                return Ok(false);
            }
            rounds -= 1;
            exact = (0.3 * exact).max(1e-6 * EXACT);
        }
    }

    /// B of the vectors inside; those at zero are outside.
    fn take(&mut self, alone: &Alone) {
        let q = self.outputs;
        for (&i, row) in self.inside.iter().zip(alone.b.chunks_exact(q)) {
            self.b[i * q..(i + 1) * q].copy_from_slice(row);
        }
        let b = &self.b;
        self.inside.retain(|&i| b[i * q..(i + 1) * q].iter().any(|&v| v != 0.0));
    }

    /// R from B.
    fn look_afresh(&mut self, counter: &mut WorkCounter<'_>) -> Result<()> {
        let (m, q) = (self.weights.len(), self.outputs);
        let rows: Vec<&[f64]> = self.inside.iter().map(|&k| &self.b[k * q..(k + 1) * q]).try_collect_vec()?;
        self.residual.copy_from_slice(self.linear);
        for (i, residual) in self.residual.chunks_exact_mut(q).enumerate() {
            counter.charge((rows.len() * q) as u64)?;
            let line = &self.quadratic[i * m..(i + 1) * m];
            let weights: Vec<f64> = self.inside.iter().map(|&k| -line[k]).try_collect_vec()?;
            add_rows(&weights, &rows, 0, residual);
        }
        Ok(())
    }
}

/// The problem of the n vectors inside.
struct Alone {
    /// (n, n).
    quadratic: Vec<f64>,
    /// (n, q), as B.
    linear: Vec<f64>,
    /// h c_i.
    bounds: Vec<f64>,
    outputs: usize,
    b: Vec<f64>,
}

impl Alone {
    fn new(of: &Groups<'_>, half: f64) -> Result<Self> {
        let (m, q, n) = (of.weights.len(), of.outputs, of.inside.len());
        let mut quadratic = try_zeros("the vectors inside", n * n)?;
        for (&i, line) in of.inside.iter().zip(quadratic.chunks_exact_mut(n.max(1))) {
            for (&j, h) in of.inside.iter().zip(line) {
                *h = of.quadratic[i * m + j];
            }
        }
        let gathered = |a: &[f64]| {
            of.inside.iter().flat_map(|&i| a[i * q..(i + 1) * q].iter().copied()).try_collect_vec()
        };
        let bounds = of.inside.iter().map(|&i| half * of.weights[i]).try_collect_vec()?;
        let (linear, b) = (gathered(of.linear)?, gathered(&of.b)?);
        Ok(Self { quadratic, linear, bounds, outputs: q, b })
    }

    /// Rounds until the conditions are off by at most this, or none is left.
    fn descend(
        &mut self,
        exact: f64,
        rounds: &mut usize,
        damping: &mut f64,
        room: &mut Room,
        counter: &mut WorkCounter<'_>,
    ) -> Result<()> {
        let q = self.outputs;
        let (mut best, mut value, mut momentum) = (self.b.try_to_vec()?, f64::INFINITY, 1.0_f64);
        let mut residual = Vec::new();
        while *rounds > 0 && !self.bounds.is_empty() {
            *rounds -= 1;
            self.sweep(counter)?;
            self.residual(&mut residual, counter)?;
            let peaks: Vec<f64> = self.b.chunks_exact(q).map(largest).try_collect_vec()?;
            if self.off(&residual, &peaks) <= exact {
                break;
            }
            let (quadratic, bounds, b) = (&self.quadratic, &self.bounds, &self.b);
            let face = Face { quadratic, bounds, b, residual: &residual, peaks: &peaks, outputs: q };
            let step = face.step(*damping, room, counter)?;
            let change = step.as_ref().map_or(0.0, |step| step.change);
            // tr(B' H B) = tr(B' (T - R))
            let penalty: f64 = self.bounds.iter().zip(&peaks).map(|(bound, peak)| bound * peak).sum();
            let reached = 2.0 * penalty - dot(&self.b, &self.linear) - dot(&self.b, &residual) + change;
            let whole = step.as_ref().is_some_and(|step| step.length == 1.0);
            *damping = (*damping * if whole { LESS } else { MORE }).clamp(DAMPINGS.0, DAMPINGS.1);
            if let Some(step) = step {
                self.b = step.b;
            }
            if reached > value {
                if momentum == 1.0 {
                    break;
                }
                (self.b, momentum) = (best.try_to_vec()?, 1.0);
                continue;
            }
            let next = 0.5 + (0.25 + momentum * momentum).sqrt();
            let ahead = (momentum - 1.0) / next;
            (value, momentum) = (reached, next);
            let before = std::mem::replace(&mut best, self.b.try_to_vec()?);
            for ((b, best), before) in self.b.iter_mut().zip(&best).zip(&before) {
                *b = best + ahead * (best - before);
            }
        }
        Ok(())
    }

    /// Minimises over every row in turn.
    fn sweep(&mut self, counter: &mut WorkCounter<'_>) -> Result<()> {
        let (n, q) = (self.bounds.len(), self.outputs);
        let mut new = try_vec![0.0; q]?;
        for i in 0..n {
            counter.charge((n * q) as u64)?;
            let (line, bound) = (&self.quadratic[i * n..(i + 1) * n], self.bounds[i]);
            let rows: Vec<&[f64]> = self.b.chunks_exact(q).try_collect_vec()?;
            new.fill(0.0);
            add_rows(line, &rows, 0, &mut new);
            for ((new, t), b) in new.iter_mut().zip(&self.linear[i * q..]).zip(rows[i]) {
                *new = b + (t - *new) / line[i];
            }
            clip_to_prox(&mut new, bound / line[i]);
            self.b[i * q..(i + 1) * q].copy_from_slice(&new);
        }
        Ok(())
    }

    /// T - H B.
    fn residual(&self, out: &mut Vec<f64>, counter: &mut WorkCounter<'_>) -> Result<()> {
        product(&self.quadratic, &self.b, self.outputs, out, counter)?;
        out.iter_mut().zip(&self.linear).for_each(|(r, t)| *r = t - *r);
        Ok(())
    }

    /// As [`Groups::off`], of the rows that are not zero.
    fn off(&self, residual: &[f64], peaks: &[f64]) -> f64 {
        let q = self.outputs;
        let rows = residual.chunks_exact(q).zip(self.b.chunks_exact(q)).zip(self.bounds.iter().zip(peaks));
        let off = rows.map(|((r, b), (bound, &peak))| {
            let beyond = r.iter().map(|v| v.abs()).sum::<f64>() / bound - 1.0;
            if peak > 0.0 { beyond.max((1.0 - dot(r, b) / (bound * peak)).abs()) } else { beyond }
        });
        off.fold(0.0, f64::max)
    }
}

/// The prox of reach max|.|: values are clipped at the level t where what is cut off sums to `reach`; all zero where the
/// values sum to less (the rest after projection on the l1 ball of radius `reach`).
fn clip_to_prox(values: &mut [f64], reach: f64) {
    let sum: f64 = values.iter().map(|v| v.abs()).sum();
    if sum <= reach {
        values.fill(0.0);
        return;
    }
    // Of the values above a level their sum and number; the level that follows is above it and not above t (Michelot, 1986).
    // Where `reach` is the whole sum, rounding can put it below zero.
    let mut count = values.len();
    let mut level = ((sum - reach) / count as f64).max(0.0);
    loop {
        let (mut sum, mut above) = (0.0, 0);
        for v in values.iter().map(|v| v.abs()).filter(|&v| v > level) {
            (sum, above) = (sum + v, above + 1);
        }
        if above == count || above == 0 {
            break;
        }
        count = above;
        level = level.max((sum - reach) / count as f64);
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
        for reach in [0.1, 0.7, 2.0, 10.0] {
            let v = [1.5, -0.4, 0.9, 0.0];
            let mut best = v;
            clip_to_prox(&mut best, reach);
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
            clip_to_prox(&mut values, sum.next_down());
            assert!(values.iter().all(|v| v.abs() < 1e-15));
        }
    }

    /// Every vector is there twice, and twice again a hair away.
    #[test]
    fn copies_and_near_copies_do_not_keep_a_solution_away() {
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
        let first = groups.first();
        for level in 1..=60 {
            let half = first * 1e-3_f64.powf(f64::from(level) / 60.0);
            assert!(groups.solve(half, &mut Context::default().counter("", 0)).unwrap(), "level {level}");
            assert!(groups.off(half) <= EXACT);
        }
    }

    /// The conditions are met at every h of a path, for the matrix of a kernel whose columns are far from orthogonal.
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
            let first = groups.first();
            let mut counter = Context::default().counter("", 0);
            for level in 1..=40 {
                let half = first * 1e-2_f64.powf(f64::from(level) / 40.0);
                assert!(groups.solve(half, &mut counter).unwrap(), "m {m} level {level}");
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
