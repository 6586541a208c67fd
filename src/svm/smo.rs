//! The inner tier: a block is solved by SMO steps, with steps of `active_set` where these make slow progress.
//!
//! An SMO step moves a pair (i, j): i has the smallest derivative among the variables that can increase, j gives the
//! largest decrease of the objective to second order (Fan, Chen, Lin 2005; Rifkin 2002, 2.4.1, with the sign of (2.99)
//! corrected). b_i increases and b_j decreases by
//!
//! ```text
//! step = min((f_j - f_i) / (K_ii + K_jj - 2 K_ij), distance of b_i to its end, distance of b_j to its end)
//! ```
//!
//! where the ends are a bound, or zero with an epsilon. Both variables belong to the group with the larger violation.
//!
//! Invariant: gradients are exact for the block's present coefficients, and no group's sum changes. Cost: two scans of
//! the block per step; the gradients are updated in the first scan of the next step.

use super::active_set::is_newton_due;
use super::precision::{KernelValue, exceeds_single_precision, squared_norm};
use super::stall::{Change, StallDetector, UNCERTAIN_ROUNDINGS, dual_gain, largest_magnitude, rounding};
use super::subproblem::{BlockEnd, Goal, Subproblem};
use crate::context::{Context, StopReason};
use crate::error::Result;
use crate::simd::scan::{second_order_partner, step_and_scan};

/// Minimum curvature of a pair; duplicate rows and indefinite kernels have less. LIBSVM's value.
const MIN_CURVATURE: f64 = 1e-12;
/// SMO steps between two counts of the unbounded variables.
const STEPS_PER_COUNT: u64 = 64;
/// Entries scanned between two checks of the monitor and of the progress: about ten milliseconds.
const ENTRIES_PER_CHECK: usize = 4_000_000;
/// Entries of a block for each stretch between two computations of its gradients: a hundredth of those that its steps scan.
const ENTRIES_PER_REFRESH: usize = ENTRIES_PER_CHECK / 100;
/// Constant cost of an SMO step, in scanned entries.
const STEP_COST: usize = 256;
/// Number of checks without progress after which a block has stalled: 20,000 steps in the largest blocks, 300,000 in
/// small ones.
const MAX_IDLE_CHECKS: u32 = 20;

/// The method that follows a run of SMO steps.
enum NextMethod {
    /// None: the block is solved, or the maximum number of steps is reached.
    None,
    ActiveSet,
    Newton,
}

impl<K: KernelValue> Subproblem<K> {
    /// Solves the block as [`Subproblem::solve`] does, with a check of the monitor and of the progress after each stretch of
    /// steps. A block that stalls ends in the best state seen. Steps are rounded to the last digit of the coefficients, so gradients
    /// follow these less and less: after some stretches they are computed again.
    ///
    /// # Errors
    /// Returns the errors of a Newton step.
    pub(super) fn solve_monitored(
        &mut self,
        goal: Goal,
        ctx: Context<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<BlockEnd> {
        let stretch = (ENTRIES_PER_CHECK / (self.stride + STEP_COST)) as u64;
        let (mut steps, mut stall, mut expected_gain) = (0, StallDetector::new(), 0.0);
        let state = |block: &Self| (block.beta.clone(), block.gradient.clone());
        let start = state(self);
        let (mut last, mut stretches) = (start.clone(), 0);
        let stretches_per_refresh = self.stride * self.stride / ENTRIES_PER_REFRESH + 1;
        // The best state, and the gain in the dual objective since, negative after a loss.
        let (mut best, mut gain_since_best) = (last.clone(), 0.0);
        loop {
            let max_iterations = stretch.min(goal.max_iterations - steps);
            let made = self.solve(Goal { max_iterations, ..goal }, ctx)?;
            steps += made;
            if made < max_iterations || steps >= goal.max_iterations {
                return Ok(BlockEnd::at_goal(steps));
            }
            stretches += 1;
            if stretches % stretches_per_refresh == 0 {
                self.refresh_gradients(&start);
            }
            let changes = (0..self.beta.len()).filter(|&i| self.beta[i] != last.0[i]).map(|i| Change {
                from: last.0[i],
                to: self.beta[i],
                gradient: f64::midpoint(last.1[i], self.gradient[i]),
                group: u8::from(i >= self.groups[1].start),
            });
            let gain = dual_gain(changes, self.epsilon, self.has_equality);
            let floor = UNCERTAIN_ROUNDINGS
                * rounding(
                    [&self.gradient, &self.beta, &self.diagonal].map(|values| largest_magnitude(values)),
                );
            let idle = stall.record_stretch(gain, self.expected_gain - expected_gain, self.violation, floor);
            expected_gain = self.expected_gain;
            last = state(self);
            gain_since_best += gain;
            // Within rounding the gain is noise.
            if gain_since_best >= 0.0 || (idle == 0 && self.violation <= floor) {
                (best, gain_since_best) = (last.clone(), 0.0);
            }
            if exceeds_single_precision::<K>(squared_norm(&self.beta, &self.diagonal), goal.max_rounding) {
                return Ok(BlockEnd { steps, stop: Some(StopReason::Stalled) });
            }
            if idle >= MAX_IDLE_CHECKS {
                (self.beta, self.gradient) = best;
                return Ok(BlockEnd { steps, stop: Some(StopReason::Stalled) });
            }
            let stop = StopReason::from_result(check())?;
            if stop.is_some() {
                return Ok(BlockEnd { steps, stop });
            }
        }
    }

    /// Computes the gradients from the state at the start. Cost: the square of the size of the block.
    fn refresh_gradients(&mut self, (beta, gradient): &(Vec<f64>, Vec<f64>)) {
        self.gradient.copy_from_slice(gradient);
        for j in (0..beta.len()).filter(|&j| self.beta[j] != beta[j]) {
            let row = &self.kernel.values()[j * self.stride..(j + 1) * self.stride];
            let change = self.beta[j] - beta[j];
            for (gradient, value) in self.gradient.iter_mut().zip(row) {
                *gradient += change * value.wide();
            }
        }
    }

    /// Makes SMO steps until the goal is reached, and other steps when they are due; returns the number of steps.
    ///
    /// # Errors
    /// Returns the errors of a Newton step.
    pub(super) fn solve(&mut self, goal: Goal, ctx: Context<'_>) -> Result<u64> {
        let mut steps = 0;
        loop {
            let remaining = |steps| Goal { max_iterations: goal.max_iterations - steps, ..goal };
            let (made, next) = self.smo_steps(remaining(steps));
            steps += made;
            let made = match next {
                NextMethod::ActiveSet => self.run_active_set(remaining(steps))?,
                NextMethod::Newton => {
                    let length = self.newton_step(ctx)?;
                    self.newton_budget.record_gain(length);
                    1
                }
                NextMethod::None => {
                    // Only once: the gradients do not follow, and their errors would add up.
                    if self.violation <= goal.tolerance {
                        self.snap_to_ends();
                    }
                    return Ok(steps);
                }
            };
            self.steps += made;
            steps += made;
        }
    }

    /// Puts coefficients within rounding of an end on it. Where bounds cancel, steps leave such coefficients, and an unbounded
    /// variable would fix the intercept.
    fn snap_to_ends(&mut self) {
        let rounding = 4.0 * f64::EPSILON * largest_magnitude(&self.beta);
        for k in 0..self.slots.len() {
            let i = self.slots[k];
            let (value, (lower, upper)) = (self.beta[i], self.interval(i));
            let end = if upper - value < value - lower { upper } else { lower };
            if value != end && (value - end).abs() <= rounding {
                self.beta[i] = end;
                self.update_directions(i);
            }
        }
    }

    /// Makes SMO steps; returns their number and the method that is due then.
    fn smo_steps(&mut self, goal: Goal) -> (u64, NextMethod) {
        let (mut last, mut step, mut steps) = ((0, 0), 0.0, 0);
        loop {
            let mut worst = (f64::NEG_INFINITY, 0, 0.0, 0);
            for (g, range) in self.groups.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
                let kernel = self.kernel.values();
                let line = |i: usize| &kernel[i * self.stride + range.start..i * self.stride + range.end];
                let pair = step_and_scan(
                    &mut self.gradient[range.clone()],
                    &self.up[range.clone()],
                    &self.low[range.clone()],
                    line(last.0),
                    line(last.1),
                    step,
                );
                if pair.low - pair.up > worst.0 {
                    worst = (pair.low - pair.up, g, pair.up, range.start + pair.up_index);
                }
            }
            let (violation, g, derivative, i) = worst;
            self.violation = violation;
            if steps >= goal.max_iterations || violation <= goal.tolerance {
                return (steps, NextMethod::None);
            }
            if self.active_set_budget.covers(1) {
                return (steps, NextMethod::ActiveSet);
            }
            if self.steps.is_multiple_of(STEPS_PER_COUNT)
                && is_newton_due(&self.newton_budget, self.unbounded().count())
            {
                return (steps, NextMethod::Newton);
            }
            let range = self.groups[g].clone();
            let partner = second_order_partner(
                &self.gradient[range.clone()],
                &self.low[range.clone()],
                &self.row(i)[range.clone()],
                &self.diagonal[range.clone()],
                self.diagonal[i],
                derivative,
                MIN_CURVATURE,
            );
            let Some(j) = partner.map(|j| range.start + j) else { return (steps, NextMethod::None) };
            let curvature =
                (self.diagonal[i] + self.diagonal[j] - 2.0 * self.row(i)[j].wide()).max(MIN_CURVATURE);
            let difference = self.gradient[j] + self.low[j] - derivative;
            let ((_, upper), (lower, _)) = (self.interval(i), self.interval(j));
            let (distance_i, distance_j) = (upper - self.beta[i], self.beta[j] - lower);
            step = (difference / curvature).min(distance_i).min(distance_j);
            self.expected_gain += 0.5 * step * difference;
            // Ends are assigned, not added up to, so that "at its bound" remains an exact comparison.
            self.beta[i] = if step == distance_i { upper } else { self.beta[i] + step };
            self.beta[j] = if step == distance_j { lower } else { self.beta[j] - step };
            self.update_directions(i);
            self.update_directions(j);
            last = (i, j);
            steps += 1;
            self.steps += 1;
            self.newton_budget.charge(self.stride as u64);
            self.active_set_budget.charge(self.stride as u64);
        }
    }
}
