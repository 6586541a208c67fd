//! The last steps of the interior-point method, from inside the bounds to a solution with variables on them.
//!
//! Variables whose distance from a bound is small against its multiplier are put on the bound, and proximal steps minimize the
//! objective over the others. One that a step moves over its bound stays there, and the system of the others is rebuilt:
//! otherwise the sums of the coefficients would not be kept.
//!
//! Cost: a system for each set of variables inside their bounds, n d^2 / 2 multiply-adds each.

use super::point::Point;
use crate::context::Context;
use crate::error::Result;
use crate::simd::blas::{axpy, dot};
use crate::svm::stall::largest_magnitude;

/// Maximum distance of a variable from a bound that it is put on, relative to its interval or the largest variable.
const MAX_BOUND_DISTANCE: f64 = 1e-5;
/// Weight of the distance from the present point in a final step, relative to the squared length of a row.
const PROXIMITY: f64 = 1e-11;
/// Number of final steps of the variables inside their bounds, once none of them crosses its bound.
const FINAL_STEPS: usize = 5;
/// Maximum number of sets of these variables: one that crosses its bound stays there.
const MAX_FREE_SETS: usize = 20;

impl Point<'_> {
    /// Puts variables on the bounds that hold them, and minimizes the objective over the others by proximal steps.
    pub(super) fn move_to_bounds(&mut self, ctx: Context<'_>) -> Result<()> {
        let largest = |values: &[f64]| largest_magnitude(values).max(f64::MIN_POSITIVE);
        let of_multipliers = largest(&self.at_lower).max(largest(&self.at_upper));
        let of_t = largest(&self.t);
        let mut theta = vec![0.0; self.t.len()];
        for (k, theta) in theta.iter_mut().enumerate() {
            let (below, above) = self.distances(k);
            let part = &self.parts[k];
            // A variable with a narrow interval is small at either bound.
            let size = of_t.min(part.upper - part.lower);
            let holds = |distance: f64, multiplier: f64| {
                distance < MAX_BOUND_DISTANCE * size && distance * of_multipliers < multiplier * size
            };
            if holds(below, self.at_lower[k]) {
                self.t[k] = part.lower;
            } else if holds(above, self.at_upper[k]) {
                self.t[k] = part.upper;
            } else {
                let row = self.columns.row(part.variable);
                *theta = 1.0 / (part.ridge + PROXIMITY * dot(row, row)).max(f64::MIN_POSITIVE);
            }
        }
        self.at_lower.fill(0.0);
        self.at_upper.fill(0.0);
        let mut left = FINAL_STEPS;
        for _ in 0..MAX_FREE_SETS {
            let Some(system) = self.system(&theta, ctx)? else { return Ok(()) };
            let mut has_crossed = false;
            while left > 0 && !has_crossed {
                let residuals = self.residuals(ctx);
                let direction = self.direction(&system, &theta, &residuals, |_| (0.0, 0.0), ctx);
                axpy(1.0, &direction.w, &mut self.w);
                axpy(1.0, &direction.y, &mut self.y);
                for (k, change) in direction.t.iter().enumerate() {
                    let (to, part) = (self.t[k] + change, &self.parts[k]);
                    self.t[k] = to.clamp(part.lower, part.upper);
                    if theta[k] > 0.0 && self.t[k] != to {
                        (theta[k], has_crossed) = (0.0, true);
                    }
                }
                left -= usize::from(!has_crossed);
            }
            if !has_crossed {
                break;
            }
        }
        Ok(())
    }
}
