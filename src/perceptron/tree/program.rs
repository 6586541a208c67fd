//! The program of a selection (section 3.2): min 1/2 p'Qp - w'p over p in {0, 1}, sum p <= C, Q positive semidefinite.
//!
//! Its relaxation over 0 <= p <= 1 is solved to the tolerance by a primal-dual interior-point method with predictor and
//! corrector (Mehrotra, SIAM J. Optimization 2, 1992; Wright, Primal-dual interior-point methods, SIAM 1997, chapter 10).
//!
//! With multipliers a of p >= 0, b of p <= 1, v of the slack s = C - sum p: Qp - w - a + b + v = 0 and a p = b (1 - p) =
//! v s = mu are solved by Newton steps for a falling mu. Each factor serves two steps: the first determines how far mu may
//! fall in the second, and the second-order terms of its products. Eliminating the multipliers leaves
//! (Q + diag(a / p + b / (1 - p)) + (v / s) 11') dp = -(Qp - w - mu / p + mu / (1 - p) + mu / s).
//!
//! Invariant between two steps: 0 < p < 1, s > 0 and all multipliers are positive. Cost: m^3 / 6 for a step, about 10 steps
//! for every Q; SMO steps, as in a decomposition solver, take 50 times as long (m = 101, condition 1e9).

use crate::context::WorkCounter;
use crate::error::Result;
use crate::linalg::cholesky;
use crate::memory::{try_vec, try_zero_matrix};
use crate::simd::blas::{axpy, dot};
use ndarray::{Array2, ArrayView2};

/// Maximum number of Newton steps.
const MAX_STEPS: usize = 100;
/// Share of the tolerance of the products below which the residual is not checked.
const PRODUCTS_ONLY_SHARE: f64 = 1e-2;
/// Maximum step length as a share of the distance to the boundary.
const MAX_BOUNDARY_SHARE: f64 = 0.995;
/// Exponent of the centering: the target of mu is mu times this power of the share that a step without centering leaves.
const CENTRING_EXPONENT: i32 = 3;

/// A program of m variables.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Q, (m, m), symmetric, positive semidefinite.
    pub q: ArrayView2<'a, f64>,
    /// w, (m,).
    pub w: &'a [f64],
    /// C, positive.
    pub max_vectors: f64,
}

impl Program<'_> {
    pub(super) fn row(&self, i: usize) -> &[f64] {
        self.q.row(i).to_slice().expect("the matrix of a program is row-major")
    }

    /// Returns the largest absolute entry of w.
    pub(super) fn scale(&self) -> f64 {
        self.w.iter().fold(0.0, |largest, w| largest.max(w.abs()))
    }

    /// Returns the gradient Qp - w.
    pub(super) fn gradient(&self, p: &[f64]) -> Vec<f64> {
        let m = p.len();
        assert!(self.q.dim() == (m, m) && self.w.len() == m, "the sizes of a program agree");
        (0..p.len()).map(|i| dot(self.row(i), p) - self.w[i]).collect()
    }

    /// Returns the objective 1/2 p'Qp - w'p.
    pub(super) fn objective(&self, p: &[f64]) -> f64 {
        let chosen = (0..p.len()).filter(|&i| p[i] != 0.0);
        chosen.map(|i| p[i] * (0.5 * dot(self.row(i), p) - self.w[i])).sum()
    }
}

/// A point of the central path: p, the slack of the budget, and the multipliers.
struct Point<'a> {
    p: &'a [f64],
    gradient: &'a [f64],
    slack: f64,
    low: &'a [f64],
    high: &'a [f64],
    budget: f64,
}

/// A Newton step from a point.
struct Step {
    p: Vec<f64>,
    total: f64,
    low: Vec<f64>,
    high: Vec<f64>,
    budget: f64,
    /// Length at which the first variable becomes 0.
    max_length: f64,
}

impl Point<'_> {
    /// Returns the step that brings the products a p, b (1 - p) and v s to `mu`, with the second-order terms of the step
    /// `before`.
    fn newton(&self, system: &[f64], mu: f64, before: Option<&Step>) -> Step {
        let (m, p) = (self.p.len(), self.p);
        let second = |steps: &[f64], i: usize| before.map_or(0.0, |step| steps[i] * step.p[i]);
        let none: &[f64] = &[];
        let (low_before, high_before) = before.map_or((none, none), |step| (&*step.low, &*step.high));
        let low_goal: Vec<f64> = (0..m).map(|i| mu - second(low_before, i)).collect();
        let high_goal: Vec<f64> = (0..m).map(|i| mu + second(high_before, i)).collect();
        let budget_goal = mu + before.map_or(0.0, |step| step.budget * step.total);
        let mut step: Vec<f64> = (0..m)
            .map(|i| {
                low_goal[i] / p[i] - high_goal[i] / (1.0 - p[i]) - budget_goal / self.slack - self.gradient[i]
            })
            .collect();
        cholesky::solve(system, m, &mut step, 1);
        let total: f64 = step.iter().sum();
        let low: Vec<f64> =
            (0..m).map(|i| (low_goal[i] - self.low[i] * step[i]) / p[i] - self.low[i]).collect();
        let high: Vec<f64> =
            (0..m).map(|i| (high_goal[i] + self.high[i] * step[i]) / (1.0 - p[i]) - self.high[i]).collect();
        let budget = (budget_goal + self.budget * total) / self.slack - self.budget;
        let length = |value: f64, step: f64| if step < 0.0 { -value / step } else { f64::INFINITY };
        // One length for all: Q couples the residual of the multipliers to p.
        let mut max_length = length(self.slack, -total).min(length(self.budget, budget));
        for i in 0..m {
            max_length = max_length.min(length(p[i], step[i])).min(length(1.0 - p[i], -step[i]));
            max_length = max_length.min(length(self.low[i], low[i])).min(length(self.high[i], high[i]));
        }
        Step { p: step, total, low, high, budget, max_length }
    }

    /// Returns the sum of all products after a part of a step.
    fn products(&self, step: &Step, part: f64) -> f64 {
        let term = |i: usize| {
            let p = self.p[i] + part * step.p[i];
            (self.low[i] + part * step.low[i]) * p + (self.high[i] + part * step.high[i]) * (1.0 - p)
        };
        (0..self.p.len()).map(term).sum::<f64>()
            + (self.budget + part * step.budget) * (self.slack - part * step.total)
    }
}

/// Solves the relaxed program, writes the solution to `p` (m,) and returns its objective. `tolerance` bounds the gradient
/// and the complementarity relative to the largest entry of w.
pub fn box_budget_program(program: &Program<'_>, tolerance: f64, p: &mut [f64]) -> Result<f64> {
    let (m, max_vectors, scale) = (p.len(), program.max_vectors, program.scale());
    if scale == 0.0 {
        p.fill(0.0);
        return Ok(0.0);
    }
    p.fill((0.5 * max_vectors / m as f64).min(0.5));
    let (mut low, mut high, mut budget) = (vec![scale; m], vec![scale; m], scale);
    // A separate variable: most - sum p, computed by subtraction, would be rounding error.
    let mut slack = max_vectors - p.iter().sum::<f64>();
    let mut system = try_vec![0.0; m * m]?;
    for _ in 0..MAX_STEPS {
        let gradient = program.gradient(p);
        let residual = (0..m).map(|i| (gradient[i] - low[i] + high[i] + budget).abs()).fold(0.0, f64::max);
        let products = (0..m).map(|i| low[i] * p[i] + high[i] * (1.0 - p[i])).sum::<f64>() + budget * slack;
        let mu = products / (2 * m + 1) as f64;
        // Far below the tolerance the residual is rounding error, too.
        if products <= tolerance * scale
            && (residual <= tolerance * scale || products <= PRODUCTS_ONLY_SHARE * tolerance * scale)
        {
            break;
        }
        let weight = budget / slack;
        for (i, line) in system.chunks_exact_mut(m).enumerate() {
            for (to, from) in line[..=i].iter_mut().zip(program.row(i)) {
                *to = from + weight;
            }
            line[i] += low[i] / p[i] + high[i] / (1.0 - p[i]);
        }
        if cholesky::factor(&mut system, m).is_err() {
            break;
        }
        let point = Point { p: &*p, gradient: &gradient, slack, low: &low, high: &high, budget };
        let straight = point.newton(&system, 0.0, None);
        let left = (point.products(&straight, straight.max_length.min(1.0)) / products).max(0.0);
        let step = point.newton(&system, left.powi(CENTRING_EXPONENT) * mu, Some(&straight));
        if !step.p.iter().all(|step| step.is_finite()) {
            break;
        }
        let length = (MAX_BOUNDARY_SHARE * step.max_length).min(1.0);
        axpy(length, &step.p, p);
        axpy(length, &step.low, &mut low);
        axpy(length, &step.high, &mut high);
        budget += length * step.budget;
        slack -= length * step.total;
    }
    let total: f64 = p.iter().sum();
    if total > max_vectors {
        let scale = max_vectors / total * (1.0 - f64::EPSILON);
        for p in p.iter_mut() {
            *p *= scale;
        }
    }
    Ok(program.objective(p))
}

/// Returns the lower triangle of the products of m columns, given one after the other, each times `weight(j, k)`: (m, m).
pub(super) fn lower_products(
    columns: &[f64],
    m: usize,
    weight: impl Fn(usize, usize) -> f64 + Sync,
    counter: &mut WorkCounter<'_>,
) -> Result<Array2<f64>> {
    let n = columns.len() / m.max(1);
    let column = |j: usize| &columns[j * n..(j + 1) * n];
    let mut out = try_zero_matrix("the program of a split", (m, m))?;
    let flat = out.as_slice_mut().expect("a new array is row-major");
    let ctx = counter.context();
    counter.for_each_batch(m, (n * m) as u64, |lines, _| {
        ctx.for_each_chunk(&mut flat[lines.start * m..lines.end * m], m, |j, line| {
            let j = lines.start + j;
            for (k, value) in line.iter_mut().enumerate().take(j + 1) {
                let weight = weight(j, k);
                if weight != 0.0 {
                    *value = weight * dot(column(j), column(k));
                }
            }
        });
        Ok(())
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simd::blas::dot;
    use ndarray::{Array2, aview2};

    /// Returns an upper bound on the distance of the objective from its minimum, Frank and Wolfe's gap: g'p - min g'x over
    /// the feasible x.
    fn gap(program: &Program<'_>, p: &[f64]) -> f64 {
        let g = program.gradient(p);
        let mut sorted = g.clone();
        sorted.sort_by(f64::total_cmp);
        let (mut left, mut least) = (program.max_vectors, 0.0);
        for slope in sorted.into_iter().filter(|g| *g < 0.0) {
            least += slope * left.clamp(0.0, 1.0);
            left -= 1.0;
        }
        dot(&g, p) - least
    }

    #[test]
    fn the_gap_closes() {
        let mut random = Random::new(5);
        for (m, rank, max_vectors, size) in [
            (30, 40, 12.0, 1.0),
            (30, 7, 12.0, 1e4),
            (25, 25, 40.0, 1e-4),
            (1, 1, 1.0, 1.0),
            (60, 90, 1.0, 1.0),
        ] {
            let g: Vec<f64> = (0..m * rank).map(|_| size * random.normal()).collect();
            let q =
                Array2::from_shape_fn((m, m), |(i, j)| dot(&g[i * rank..][..rank], &g[j * rank..][..rank]));
            let w: Vec<f64> = q.rows().into_iter().map(|row| row.sum()).collect();
            let mut p = vec![0.0; m];
            let program = Program { q: q.view(), w: &w, max_vectors };
            let value = box_budget_program(&program, 1e-10, &mut p).unwrap();
            assert!(p.iter().sum::<f64>() <= max_vectors && p.iter().all(|p| (0.0..=1.0).contains(p)));
            assert!(gap(&program, &p) <= 1e-7 * value.abs(), "{m} {rank} {max_vectors}");
        }
    }

    #[test]
    fn nothing_to_explain_selects_nothing() {
        let mut p = vec![0.5; 3];
        let program = Program { q: aview2(&[[0.0; 3]; 3]), w: &[0.0; 3], max_vectors: 2.0 };
        assert_eq!(box_budget_program(&program, 1e-9, &mut p).unwrap(), 0.0);
        assert_eq!(p, [0.0; 3]);
    }
}
