//! A point of the interior-point method: variables and multipliers inside their bounds, and their differences from the conditions
//! of the optimum.
//!
//! Invariant: every sum has an order that depends on the sizes alone. Cost: n d multiply-adds for the residuals, O(n) for the others.

use super::super::few_columns::{FewColumns, ROWS_PER_TASK};
use super::super::problem::{DualProblem, MAX_GROUPS};
use super::super::stall::largest_magnitude;
use crate::context::Context;
use crate::simd::blas::{axpy, dot};

/// Complementarity of a solution, relative to the objective.
pub(super) const MAX_RELATIVE_GAP: f64 = 1e-12;
/// Share of the step to the nearest bound.
pub(super) const STEP_SHARE: f64 = 0.995;

/// A variable of the method: a variable of the machine, or with an epsilon one of its signs.
pub(super) struct Part {
    pub(super) variable: usize,
    /// Its coefficient in the objective.
    pub(super) linear: f64,
    pub(super) ridge: f64,
    /// Its bounds, at least one of them finite.
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// Its group; `None` without a sum to keep.
    pub(super) group: Option<usize>,
}

/// The changes of a step.
pub(super) struct Direction {
    pub(super) t: Vec<f64>,
    pub(super) w: Vec<f64>,
    pub(super) y: Vec<f64>,
    pub(super) at_lower: Vec<f64>,
    pub(super) at_upper: Vec<f64>,
}

/// Differences from the conditions of the optimum.
pub(super) struct Residuals {
    /// Derivatives less multipliers.
    pub(super) dual: Vec<f64>,
    /// F't - w
    pub(super) weights: Vec<f64>,
    /// a - A t
    pub(super) sums: Vec<f64>,
}

/// Variables and multipliers, all inside their bounds.
pub(super) struct Point<'a> {
    pub(super) columns: &'a FewColumns,
    pub(super) parts: Vec<Part>,
    /// The sums of the groups.
    pub(super) sums: Vec<f64>,
    pub(super) t: Vec<f64>,
    pub(super) w: Vec<f64>,
    /// Multipliers of the sums.
    pub(super) y: Vec<f64>,
    /// Multipliers of the lower and upper bounds; 0 for infinite ones.
    pub(super) at_lower: Vec<f64>,
    pub(super) at_upper: Vec<f64>,
    /// The largest |derivative| at zero.
    pub(super) scale: f64,
    /// The length of the longest row.
    pub(super) length: f64,
}

impl<'a> Point<'a> {
    /// Returns the first point; `None` if a variable without space to move is not zero.
    pub(super) fn new(problem: &DualProblem, columns: &'a FewColumns, ctx: Context<'_>) -> Option<Self> {
        let mut sums = vec![0.0; if problem.has_equality { MAX_GROUPS } else { 0 }];
        let mut parts = Vec::new();
        for v in 0..problem.len() {
            let (lower, upper, s, e) =
                (problem.lower[v], problem.upper[v], problem.linear[v], problem.epsilon);
            if lower >= upper {
                if problem.beta[v] != 0.0 {
                    return None;
                }
                continue;
            }
            let group = usize::from(problem.group[v]);
            if let Some(sum) = sums.get_mut(group) {
                *sum += problem.beta[v];
            }
            let part = |linear, lower, upper| Part {
                variable: v,
                linear,
                ridge: problem.ridge[v],
                lower,
                upper,
                group: problem.has_equality.then_some(group),
            };
            if e == 0.0 {
                parts.push(part(s, lower, upper));
            } else {
                parts.extend([part(s + e, 0.0, upper), part(s - e, lower, 0.0)]);
            }
        }
        parts.retain(|part: &Part| part.lower < part.upper);
        if problem.group.iter().all(|group| *group == 0) {
            sums.truncate(1);
        }
        let scale = parts.iter().fold(0.0_f64, |largest, part| largest.max(part.linear.abs()));
        let length = largest_magnitude(&problem.diagonal).sqrt();
        // Without linear terms the derivatives are those of feasible coefficients, the present ones.
        let scale = if scale > 0.0 {
            scale
        } else {
            let weights = columns.combination(problem.len(), ctx, |v| (v, problem.beta[v]));
            (length * dot(&weights, &weights).sqrt()).max(f64::MIN_POSITIVE.sqrt())
        };
        let first = |part: &Part| match (part.lower.is_finite(), part.upper.is_finite()) {
            (true, true) => f64::midpoint(part.lower, part.upper),
            // Without an upper bound there is a ridge, which bounds the solution.
            (true, false) => part.lower + 0.5 * scale / part.ridge,
            _ => part.upper - 0.5 * scale / part.ridge,
        };
        let of_bound = |bound: f64| if bound.is_finite() { scale } else { 0.0 };
        Some(Self {
            t: parts.iter().map(first).collect(),
            w: vec![0.0; columns.count()],
            y: vec![0.0; sums.len()],
            at_lower: parts.iter().map(|part| of_bound(part.lower)).collect(),
            at_upper: parts.iter().map(|part| of_bound(part.upper)).collect(),
            columns,
            parts,
            sums,
            scale,
            length,
        })
    }

    /// Returns the distances of a variable from its bounds.
    pub(super) fn distances(&self, k: usize) -> (f64, f64) {
        let part = &self.parts[k];
        ((self.t[k] - part.lower).max(f64::MIN_POSITIVE), (part.upper - self.t[k]).max(f64::MIN_POSITIVE))
    }

    /// Returns the multiplier of the sum of a variable's group; 0 without one.
    pub(super) fn level(&self, y: &[f64], k: usize) -> f64 {
        self.parts[k].group.map_or(0.0, |group| y[group])
    }

    pub(super) fn residuals(&self, ctx: Context<'_>) -> Residuals {
        let mut dual = vec![0.0; self.t.len()];
        ctx.for_operations(dual.len() * self.columns.count()).for_each_chunk(
            &mut dual,
            ROWS_PER_TASK,
            |task, dual| {
                for (k, out) in (task * ROWS_PER_TASK..).zip(dual) {
                    let part = &self.parts[k];
                    *out =
                        dot(self.columns.row(part.variable), &self.w) + part.ridge * self.t[k] + part.linear
                            - self.level(&self.y, k)
                            - self.at_lower[k]
                            + self.at_upper[k];
                }
            },
        );
        let term = |k: usize| (self.parts[k].variable, self.t[k]);
        let mut weights = self.columns.combination(self.t.len(), ctx, term);
        axpy(-1.0, &self.w, &mut weights);
        Residuals { dual, weights, sums: self.missing_sums() }
    }

    /// Returns a - A t.
    pub(super) fn missing_sums(&self) -> Vec<f64> {
        let mut missing = self.sums.clone();
        for (part, t) in self.parts.iter().zip(&self.t) {
            if let Some(group) = part.group {
                missing[group] -= t;
            }
        }
        missing
    }

    /// Returns the largest relative difference from the conditions of the optimum.
    pub(super) fn merit(&self, residuals: &Residuals) -> f64 {
        let count = self.count_bounds();
        let gap = self.mean_product(None) * count;
        let objective: f64 = 0.5 * dot(&self.w, &self.w)
            + self.parts.iter().zip(&self.t).map(|(p, t)| t * (p.linear + 0.5 * p.ridge * t)).sum::<f64>();
        let size: f64 = self.t.iter().map(|t| t.abs()).sum();
        let of = |difference: f64, size: f64| if difference > 0.0 { difference / size } else { 0.0 };
        // Vectors that cancel leave a weight and an objective of zero but for rounding.
        let rounding = f64::EPSILON * size;
        let terms = rounding * self.length;
        // The residuals of w and the sums cannot fall below the rounding of their terms.
        of(gap, objective.abs().max(terms * terms / MAX_RELATIVE_GAP))
            .max(1e-3 * of(largest_magnitude(&residuals.dual), self.scale))
            .max(
                1e-6 * of(
                    largest_magnitude(&residuals.weights),
                    largest_magnitude(&self.w).max(terms / MAX_RELATIVE_GAP),
                ),
            )
            .max(1e-6 * of(largest_magnitude(&residuals.sums), size))
    }

    /// Returns the number of finite bounds.
    pub(super) fn count_bounds(&self) -> f64 {
        self.parts
            .iter()
            .map(|p| f64::from(u8::from(p.lower.is_finite()) + u8::from(p.upper.is_finite())))
            .sum()
    }

    /// Returns the mean product of distances and multipliers, after a step if one is given.
    pub(super) fn mean_product(&self, step: Option<(&Direction, f64)>) -> f64 {
        let of = |k: usize| {
            let (below, above) = self.distances(k);
            let (lower, upper) = match step {
                None => (below * self.at_lower[k], above * self.at_upper[k]),
                Some((step, length)) => (
                    (below + length * step.t[k]) * (self.at_lower[k] + length * step.at_lower[k]),
                    (above - length * step.t[k]) * (self.at_upper[k] + length * step.at_upper[k]),
                ),
            };
            let part = &self.parts[k];
            (if part.lower.is_finite() { lower } else { 0.0 })
                + if part.upper.is_finite() { upper } else { 0.0 }
        };
        (0..self.t.len()).map(of).sum::<f64>() / self.count_bounds()
    }

    /// Returns the longest step, at most 1 / [`STEP_SHARE`], that keeps distances and multipliers positive.
    pub(super) fn longest_step(&self, direction: &Direction) -> f64 {
        let mut longest = 1.0 / STEP_SHARE;
        let mut limit = |value: f64, change: f64| {
            if change < 0.0 {
                longest = longest.min(-value / change);
            }
        };
        for k in 0..self.t.len() {
            let (below, above) = self.distances(k);
            limit(below, direction.t[k]);
            limit(above, -direction.t[k]);
            limit(self.at_lower[k], direction.at_lower[k]);
            limit(self.at_upper[k], direction.at_upper[k]);
        }
        longest
    }
}
