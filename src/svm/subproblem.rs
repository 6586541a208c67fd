//! A working set's own quadratic program: its variables, gradients and bounds, its kernel values in one small matrix.
//!
//! `smo` solves it by SMO steps, `active_set` by steps on its free variables. The variables of a group occupy consecutive
//! slots, padded to whole vectors with variables that cannot move. For a machine without equality constraint there is one
//! more variable without bounds and with zero kernel values, the *anchor*, so that every SMO step moves a pair.
//!
//! Invariant: gradients are exact for the present coefficients; `up` and `low` give the directions in which a variable can
//! move.

use std::ops::Range;

use super::active_set::StepBudget;
use super::params::Tuning;
use super::precision::KernelValue;
use super::problem::{DualProblem, MAX_GROUPS};
use crate::context::{Context, Interruption, StopReason};
use crate::error::{Error, Result};
use crate::kernels::{KernelRows, MIN_TILE_ROWS};
use crate::memory::{Arena, Arenas};
use crate::simd::blas::add_rows;
use crate::simd::scan::STRIDE;

/// Numbers of packed columns that are read between two checks of the monitor, a few tenths of a second.
const WORK_PER_CHECK: usize = 2_000_000_000;

/// When the solution of a block is good enough.
#[derive(Clone, Copy)]
pub(super) struct Goal {
    /// Maximum violation of the optimality conditions.
    pub(super) tolerance: f64,
    /// Maximum number of steps.
    pub(super) max_iterations: u64,
    /// Maximum error of an output by rounding of kernel values in single precision.
    pub(super) max_rounding: f64,
}

/// The end of the steps in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEnd {
    pub(super) steps: u64,
    /// Reason for which the steps ended before the goal, if they did: the monitor's, or stalled if they made no progress or
    /// coefficients became too large for single precision.
    pub(super) stop: Option<StopReason>,
}

impl BlockEnd {
    /// Returns the end of steps that reached the goal, or its number of steps.
    pub(super) fn at_goal(steps: u64) -> Self {
        Self { steps, stop: None }
    }

    /// Returns an error if the monitor ended the steps.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub(super) fn check(&self) -> Result<()> {
        match self.stop {
            // A maximum of the goal is no stop of the block.
            Some(StopReason::MaxIterations) => Err(Error::Stopped(Interruption::MaxIterations)),
            Some(reason) => {
                reason.interruption().map_or(Ok(()), |interruption| Err(Error::Stopped(interruption)))
            }
            None => Ok(()),
        }
    }
}

pub(super) struct BlockSolution {
    /// Coefficients of the members.
    pub(super) beta: Vec<f64>,
    /// Gradients of the members, for the changes of the members alone; `None` if the solver does not return them.
    pub(super) gradient: Option<Vec<f64>>,
    /// Lower bound of the gain in the dual objective in exact arithmetic; see `stall`.
    pub(super) expected_gain: f64,
    pub(super) end: BlockEnd,
}

/// A block of variables with their kernel values.
pub(super) struct Subproblem<K> {
    /// Kernel values by slot, rows `stride` apart.
    pub(super) kernel: Arena<K>,
    pub(super) stride: usize,
    /// Slots of each group.
    pub(super) groups: [Range<usize>; MAX_GROUPS],
    /// Slot of each member.
    pub(super) slots: Vec<usize>,
    pub(super) epsilon: f64,
    pub(super) has_equality: bool,
    pub(super) diagonal: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) beta: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    /// Derivative of epsilon |b| for an increase, infinite if the variable cannot increase.
    pub(super) up: Vec<f64>,
    /// Derivative of epsilon |b| for a decrease, minus infinity if the variable cannot decrease.
    pub(super) low: Vec<f64>,
    /// Number of steps of all kinds.
    pub(super) steps: u64,
    pub(super) newton_budget: StepBudget,
    pub(super) active_set_budget: StepBudget,
    /// Violation found by the last scan.
    pub(super) violation: f64,
    /// Lower bound of the gain of all steps in the dual objective, in exact arithmetic.
    pub(super) expected_gain: f64,
}

impl<K: KernelValue> Subproblem<K> {
    /// Creates the block of the given members, sorted by group.
    ///
    /// `fill(kernel, stride, slots)` writes the kernel values of each member to the row of its slot, in the columns of the
    /// members' slots. Other entries may have any finite value.
    pub(super) fn new(
        problem: &DualProblem,
        members: &[usize],
        tuning: &Tuning,
        memory: &Arenas<K>,
        fill: impl FnOnce(&mut [K], usize, &[usize]) -> Result<()>,
    ) -> Result<Self> {
        let first = members.partition_point(|&v| problem.group[v] == 0);
        let middle = (first + usize::from(!problem.has_equality)).next_multiple_of(STRIDE);
        let stride = middle + (members.len() - first).next_multiple_of(STRIDE);
        let slots: Vec<usize> =
            (0..members.len()).map(|k| if k < first { k } else { middle + k - first }).collect();
        let mut block = Self {
            kernel: memory.take("the kernel matrix of a block", stride * stride)?,
            stride,
            groups: [0..middle, middle..stride],
            epsilon: problem.epsilon,
            has_equality: problem.has_equality,
            diagonal: vec![0.0; stride],
            lower: vec![0.0; stride],
            upper: vec![0.0; stride],
            beta: vec![0.0; stride],
            gradient: vec![0.0; stride],
            up: vec![f64::INFINITY; stride],
            low: vec![f64::NEG_INFINITY; stride],
            steps: 0,
            newton_budget: StepBudget::newton(tuning.newton_steps),
            active_set_budget: StepBudget::active_set(tuning.active_set),
            violation: f64::INFINITY,
            expected_gain: 0.0,
            slots,
        };
        let kernel = &mut block.kernel.values_mut()[..stride * stride];
        fill(kernel, stride, &block.slots)?;
        if !problem.has_equality {
            kernel[first * stride..(first + 1) * stride].fill(K::ZERO);
            kernel.iter_mut().skip(first).step_by(stride).for_each(|value| *value = K::ZERO);
            (block.lower[first], block.upper[first]) = (f64::NEG_INFINITY, f64::INFINITY);
            (block.up[first], block.low[first]) = (0.0, 0.0);
        }
        block.set_problem(problem, members);
        Ok(block)
    }

    /// Replaces the problem by another one of the same members, whose gradients belong to its coefficients.
    pub(super) fn set_problem(&mut self, problem: &DualProblem, members: &[usize]) {
        let kernel = self.kernel.values_mut();
        for (&v, &slot) in members.iter().zip(&self.slots) {
            // The exact diagonal with the ridge, so that a step changes a variable's own gradient correctly.
            kernel[slot * self.stride + slot] = K::from_f64(problem.diagonal[v]);
            self.diagonal[slot] = problem.diagonal[v];
            self.lower[slot] = problem.lower[v];
            self.upper[slot] = problem.upper[v];
            self.beta[slot] = problem.beta[v];
            self.gradient[slot] = problem.gradient[v];
        }
        for k in 0..members.len() {
            self.update_directions(self.slots[k]);
        }
    }

    /// Returns the members' coefficients and gradients.
    pub(super) fn state(&self) -> (Vec<f64>, Vec<f64>) {
        // small: the variables of a block
        self.slots.iter().map(|&slot| (self.beta[slot], self.gradient[slot])).unzip()
    }

    /// Returns the solution at the end of the steps; the matrix's memory is released.
    pub(super) fn into_solution(self, end: BlockEnd, memory: &Arenas<K>) -> BlockSolution {
        let (beta, gradient) = self.state();
        memory.put(self.kernel);
        BlockSolution { beta, gradient: Some(gradient), expected_gain: self.expected_gain, end }
    }

    /// Assigns new values to some variables, and updates the gradients.
    pub(super) fn set_values(&mut self, slots: &[usize], values: &[f64]) {
        let changes: Vec<f64> = slots.iter().zip(values).map(|(&i, value)| value - self.beta[i]).collect();
        let mut gradient = std::mem::take(&mut self.gradient);
        add_rows(&changes, &slots.iter().map(|&i| self.row(i)).collect::<Vec<_>>(), 0, &mut gradient);
        self.gradient = gradient;
        for (&i, &value) in slots.iter().zip(values) {
            self.beta[i] = value;
            self.update_directions(i);
        }
    }

    /// Updates the directions in which a variable can move after a change of its coefficient.
    #[inline]
    pub(super) fn update_directions(&mut self, i: usize) {
        let b = self.beta[i];
        self.up[i] = match b < self.upper[i] {
            true if b >= 0.0 => self.epsilon,
            true => -self.epsilon,
            false => f64::INFINITY,
        };
        self.low[i] = match b > self.lower[i] {
            true if b > 0.0 => self.epsilon,
            true => -self.epsilon,
            false => f64::NEG_INFINITY,
        };
    }

    /// Returns the kernel values of a slot.
    #[inline]
    pub(super) fn row(&self, i: usize) -> &[K] {
        &self.kernel.values()[i * self.stride..(i + 1) * self.stride]
    }

    /// Returns the interval around the coefficient of variable i in which the objective is quadratic.
    #[inline]
    pub(super) fn interval(&self, i: usize) -> (f64, f64) {
        let (b, has_kink) = (self.beta[i], self.epsilon > 0.0);
        let lower = if has_kink && b > 0.0 { self.lower[i].max(0.0) } else { self.lower[i] };
        let upper = if has_kink && b < 0.0 { self.upper[i].min(0.0) } else { self.upper[i] };
        (lower, upper)
    }

    /// Returns the slots of the variables that can move in both directions, neither at a bound nor at zero with epsilon.
    pub(super) fn unbounded(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().copied().filter(|&i| self.up[i] == self.low[i])
    }
}

/// Computes the kernel values of a block, for [`Subproblem::new`], in parts with a check before each but the first; `rows`
/// are the training rows of its members.
///
/// # Errors
/// The errors of `check`.
pub(super) fn write_block<K: KernelValue>(
    source: &KernelRows<'_>,
    rows: &[usize],
    kernel: &mut [K],
    stride: usize,
    slots: &[usize],
    ctx: Context<'_>,
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    // Slots are consecutive within each group: the columns of one group follow those of the other.
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
            let columns = source.with_columns(columns, ctx)?;
            // A row of kernel values is a pass over the columns.
            let batch = (WORK_PER_CHECK / (columns.bytes() / size_of::<f32>()).max(1)).max(MIN_TILE_ROWS);
            for (part, (rows, lines)) in rows.chunks(batch).zip(lines.chunks_mut(batch)).enumerate() {
                if part > 0 {
                    check()?;
                }
                columns.compute(rows, lines, ctx)?;
            }
        }
    }
    Ok(())
}
