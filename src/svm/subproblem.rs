//! The inner tier: solve the block's own quadratic program by pair steps, its kernel values in one small matrix.
//!
//! A pair (i, j): i has the smallest derivative among variables that can rise, j promises the largest decrease to
//! second order (Fan, Chen, Lin 2005; thesis 2.4.1 with the sign of (2.99) mended). b_i rises and b_j falls by
//!
//! ```text
//! step = min((f_j - f_i) / (K_ii + K_jj - 2 K_ij), room above b_i, room below b_j)
//! ```
//!
//! where room ends at a bound or at the kink. Both belong to one group, the one with the larger violation; the groups
//! are consecutive ranges of the block. The anchor of a machine without intercept is one more variable of zero kernel.
//!
//! Tried and dropped: making most steps among the unbounded variables alone (the reduced working set of thesis 2.4.1).
//! It shortens the scans, but since the blocks are small and their scans vectorised, no workload became faster.
//!
//! A block of uncached kernel values is computed by [`write_block`]; larger ones are solved by blocks of their own (`nested`).
//!
//! Invariant: gradients are exact for the block's present coefficients, and no group's sum changes. Cost: two scans of
//! the block a step; the update of the gradients rides on the next search.

mod state;
mod walk;

pub(super) use self::state::{Goal, Subproblem};
use super::newton::Face;
use super::precision::{KernelValue, is_hopeless};
use super::stall::{Change, IN_DOUBT, Stall, rise, rounding};
use crate::context::{Context, StopReason};
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::TryCollect;
use crate::simd::blas::add_rows;
use crate::simd::scan::{second_order_partner, step_and_scan};

/// Curvature below which a pair counts as flat (duplicate rows, indefinite kernels). LIBSVM's value.
const SMALLEST_CURVATURE: f64 = 1e-12;
/// SMO steps between two counts of the unbounded variables.
const STEPS_PER_COUNT: u64 = 64;

/// Entries scanned between two progress checks of a block: about ten milliseconds.
const STRETCH: usize = 4_000_000;
/// What a step costs besides, in entries.
const STEP: usize = 256;
/// Looks without progress after which a block has stalled: from 20,000 steps in the largest to 300,000 in small ones.
const PATIENCE: u32 = 20;

/// What is due when the SMO steps end.
enum Due {
    /// Nothing: the block is solved, or the maximum number of steps is reached.
    Nothing,
    /// A run of the active-set method.
    Walk,
    /// A Newton step on the unbounded variables.
    Direct,
}

impl<K: KernelValue> Subproblem<K> {
    /// As [`Subproblem::solve`], in stretches with a check of the monitor and at the progress after each; a block that
    /// stalls ends at the best state that a look has seen. The number of steps, and why it ended short of the goal if it
    /// did. Stretches change no step.
    ///
    /// # Errors
    /// Those of a direct step.
    pub(super) fn solve_watched(
        &mut self,
        goal: Goal,
        ctx: Context<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<(u64, Option<StopReason>)> {
        let stretch = (STRETCH / (self.stride + STEP)) as u64;
        let (mut steps, mut stall, mut promised) = (0, Stall::new(), 0.0);
        let state = |block: &Self| (block.beta.clone(), block.gradient.clone());
        let mut last = state(self);
        // How much the objective has risen since, or rather fallen.
        let (mut best, mut height) = (last.clone(), 0.0);
        loop {
            let max_steps = stretch.min(goal.max_steps - steps);
            let made = self.solve(Goal { max_steps, ..goal }, ctx)?;
            steps += made;
            if made < max_steps || steps >= goal.max_steps {
                return Ok((steps, None));
            }
            let changes = (0..self.beta.len()).filter(|&i| self.beta[i] != last.0[i]).map(|i| Change {
                from: last.0[i],
                to: self.beta[i],
                gradient: f64::midpoint(last.1[i], self.gradient[i]),
                group: u8::from(i >= self.groups[1].start),
            });
            let risen = rise(changes, self.kink, self.anchored);
            let floor = IN_DOUBT * rounding(&self.gradient, &self.beta, &self.diagonal);
            let idle = stall.idle_after(risen, self.promised - promised, self.violation, floor);
            promised = self.promised;
            last = state(self);
            height += risen;
            // Within rounding the height is noise.
            if height >= 0.0 || (idle == 0 && self.violation <= floor) {
                (best, height) = (last.clone(), 0.0);
            }
            if is_hopeless::<K>(&self.beta, &self.diagonal, goal.tolerance) {
                return Ok((steps, Some(StopReason::Stalled)));
            }
            if idle >= PATIENCE {
                (self.beta, self.gradient) = best;
                return Ok((steps, Some(StopReason::Stalled)));
            }
            if let Some(reason) = StopReason::from_result(check())? {
                return Ok((steps, Some(reason)));
            }
        }
    }

    /// Makes pair steps until the goal is reached, and direct steps and walks where they crawl; returns their number.
    ///
    /// # Errors
    /// Those of a direct step.
    pub(super) fn solve(&mut self, goal: Goal, ctx: Context<'_>) -> Result<u64> {
        let mut steps = 0;
        loop {
            let left = |steps| Goal { max_steps: goal.max_steps - steps, ..goal };
            let (made, due) = self.step_by_pairs(left(steps));
            steps += made;
            let made = match due {
                Due::Walk => self.walk(left(steps))?,
                Due::Direct => {
                    let share = self.step_directly(ctx)?;
                    self.patience.paid(share);
                    1
                }
                Due::Nothing => return Ok(steps),
            };
            self.steps += made;
            steps += made;
        }
    }

    /// Makes SMO steps; returns their number and what is due then.
    fn step_by_pairs(&mut self, goal: Goal) -> (u64, Due) {
        let (mut last, mut step, mut steps) = ((0, 0), 0.0, 0);
        let due = loop {
            let mut worst = (f64::NEG_INFINITY, 0, 0.0, 0);
            for (g, range) in self.groups.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
                let kernel = self.kernel.values();
                let line = |i: usize| &kernel[i * self.stride + range.start..i * self.stride + range.end];
                let found = step_and_scan(
                    &mut self.gradient[range.clone()],
                    &self.up[range.clone()],
                    &self.low[range.clone()],
                    line(last.0),
                    line(last.1),
                    step,
                );
                if found.low - found.up > worst.0 {
                    worst = (found.low - found.up, g, found.up, range.start + found.up_index);
                }
            }
            let (violation, g, derivative, i) = worst;
            self.violation = violation;
            if steps >= goal.max_steps {
                break Due::Nothing;
            }
            if violation <= goal.tolerance {
                break Due::Nothing;
            }
            if self.wait.is_over() {
                break Due::Walk;
            }
            if self.steps.is_multiple_of(STEPS_PER_COUNT) && self.patience.is_over(self.unbounded().count()) {
                break Due::Direct;
            }
            let range = self.groups[g].clone();
            let partner = second_order_partner(
                &self.gradient[range.clone()],
                &self.low[range.clone()],
                &self.row(i)[range.clone()],
                &self.diagonal[range.clone()],
                self.diagonal[i],
                derivative,
                SMALLEST_CURVATURE,
            );
            let Some(j) = partner.map(|j| range.start + j) else { break Due::Nothing };
            let curvature =
                (self.diagonal[i] + self.diagonal[j] - 2.0 * self.row(i)[j].wide()).max(SMALLEST_CURVATURE);
            let between = self.gradient[j] + self.low[j] - derivative;
            let (above, below) = (self.end_above(i), self.end_below(j));
            let (room_i, room_j) = (above - self.beta[i], self.beta[j] - below);
            step = (between / curvature).min(room_i).min(room_j);
            self.promised += 0.5 * step * between;
            // Ends are assigned, not added up to, so that "at its bound" stays an exact comparison.
            self.beta[i] = if step == room_i { above } else { self.beta[i] + step };
            self.beta[j] = if step == room_j { below } else { self.beta[j] - step };
            for moved in [i, j] {
                self.note_bounds(moved);
            }
            last = (i, j);
            steps += 1;
            self.steps += 1;
            self.patience.spend(self.stride as u64);
            self.wait.spend(self.stride as u64);
        };
        (steps, due)
    }
}

impl<K: KernelValue> Subproblem<K> {
    /// Moves the unbounded variables to the best values that a system of equations finds; the share of the way.
    fn step_directly(&mut self, ctx: Context<'_>) -> Result<f64> {
        let slots: Vec<usize> = self.unbounded().try_collect_vec()?;
        let group = |slot: usize| u8::from(slot >= self.groups[1].start);
        let face = Face {
            kernel: self.kernel.values(),
            stride: self.stride,
            values: slots.iter().map(|&i| self.beta[i]).try_collect_vec()?,
            derivatives: slots.iter().map(|&i| self.gradient[i] + self.up[i]).try_collect_vec()?,
            ends: slots.iter().map(|&i| (self.end_below(i), self.end_above(i))).try_collect_vec()?,
            groups: slots
                .iter()
                .map(|&i| Some(group(i)).filter(|group| *group > 0 || !self.anchored))
                .try_collect_vec()?,
            slots,
        };
        let Some((values, share)) = face.solve(ctx)? else { return Ok(0.0) };
        let slots = face.slots;
        let changes: Vec<f64> =
            slots.iter().zip(&values).map(|(&i, value)| value - self.beta[i]).try_collect_vec()?;
        let mut gradient = std::mem::take(&mut self.gradient);
        add_rows(&changes, &slots.iter().map(|&i| self.row(i)).try_collect_vec()?, 0, &mut gradient);
        self.gradient = gradient;
        for (&i, value) in slots.iter().zip(values) {
            self.beta[i] = value;
            self.note_bounds(i);
        }
        Ok(share)
    }
}

/// Writes a block's matrix afresh: `rows` are the rows of its members, as [`Subproblem::new`] has them.
pub(super) fn write_block<K: KernelValue>(
    source: &KernelRows<'_>,
    rows: &[usize],
    kernel: &mut [K],
    stride: usize,
    slots: &[usize],
    ctx: Context<'_>,
) -> Result<()> {
    // Slots are consecutive within each group: the columns of one group after those of the other.
    let first = slots.iter().enumerate().take_while(|&(k, &slot)| k == slot).count();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut next = slots.iter().peekable();
    for (slot, line) in kernel.chunks_exact_mut(stride).enumerate() {
        if next.next_if(|&&s| s == slot).is_some() {
            let (a, b) = line.split_at_mut(slots.get(first).copied().unwrap_or(stride));
            left.push(&mut a[..first]);
            right.push(&mut b[..rows.len() - first]);
        }
    }
    for (columns, lines) in [(&rows[..first], &mut left), (&rows[first..], &mut right)] {
        if !columns.is_empty() {
            source.with_columns(columns, ctx)?.compute(rows, lines, ctx)?;
        }
    }
    Ok(())
}
