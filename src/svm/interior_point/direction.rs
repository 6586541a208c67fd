//! The direction of a step of the interior-point method: the solution of its linear system for given products of distances and
//! multipliers.
//!
//! Cost: 2 n d multiply-adds with a factored system.

use super::super::few_columns::ROWS_PER_TASK;
use super::point::{Direction, Point, Residuals};
use super::system::System;
use crate::context::Context;
use crate::error::Result;
use crate::simd::blas::{axpy, dot};

impl Point<'_> {
    /// Returns the factor of the system for given Theta; `None` if it is singular.
    pub(super) fn system(&self, theta: &[f64], ctx: Context<'_>) -> Result<Option<System>> {
        let term = |k: usize| (self.parts[k].variable, theta[k], self.parts[k].group);
        System::new(self.columns, self.sums.len(), theta.len(), ctx, term)
    }

    /// Returns the step to the given products of distances and multipliers.
    pub(super) fn direction(
        &self,
        system: &System,
        theta: &[f64],
        residuals: &Residuals,
        target: impl Fn(usize) -> (f64, f64) + Sync,
        ctx: Context<'_>,
    ) -> Direction {
        let (n, d) = (self.t.len(), self.columns.count());
        let right_side: Vec<f64> = (0..n)
            .map(|k| {
                let ((below, above), (lower, upper)) = (self.distances(k), target(k));
                let of_lower =
                    if self.parts[k].lower.is_finite() { lower / below - self.at_lower[k] } else { 0.0 };
                let of_upper =
                    if self.parts[k].upper.is_finite() { upper / above - self.at_upper[k] } else { 0.0 };
                of_lower - of_upper - residuals.dual[k]
            })
            .collect();
        let term = |k: usize| (self.parts[k].variable, theta[k] * right_side[k]);
        let mut solution = self.columns.combination(n, ctx, term);
        axpy(1.0, &residuals.weights, &mut solution);
        let mut sums = residuals.sums.clone();
        for k in 0..n {
            if let Some(group) = self.parts[k].group {
                sums[group] -= theta[k] * right_side[k];
            }
        }
        solution.extend_from_slice(&sums);
        system.solve(&mut solution);
        let y = solution.split_off(d);
        let w = solution;
        let mut t = vec![0.0; n];
        ctx.for_operations(n * d).for_each_chunk(&mut t, ROWS_PER_TASK, |task, t| {
            for (k, out) in (task * ROWS_PER_TASK..).zip(t) {
                let product = dot(self.columns.row(self.parts[k].variable), &w);
                *out = theta[k] * (right_side[k] - product + self.level(&y, k));
            }
        });
        let (at_lower, at_upper) = (0..n)
            .map(|k| {
                let ((below, above), (lower, upper)) = (self.distances(k), target(k));
                let of_lower = (lower - self.at_lower[k] * t[k]) / below - self.at_lower[k];
                let of_upper = (upper + self.at_upper[k] * t[k]) / above - self.at_upper[k];
                let part = &self.parts[k];
                (
                    if part.lower.is_finite() { of_lower } else { 0.0 },
                    if part.upper.is_finite() { of_upper } else { 0.0 },
                )
            })
            .unzip();
        Direction { t, w, y, at_lower, at_upper }
    }
}
