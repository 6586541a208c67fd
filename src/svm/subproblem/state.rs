//! The state of a block: its variables, gradients and bounds, its kernel values in one small matrix.
//!
//! Invariant: gradients are exact for the present coefficients; `up` and `low` say which ways a variable can move.

use std::ops::Range;

use super::super::newton::Patience;
use super::super::params::Tuning;
use super::super::precision::KernelValue;
use super::super::problem::{DualProblem, GROUPS};
use crate::error::Result;
use crate::memory::{Arena, Arenas, TryCollect, try_vec};
use crate::simd::scan::STRIDE;

/// When the solution of a block is good enough.
#[derive(Clone, Copy)]
pub(in crate::svm) struct Goal {
    /// Largest violation.
    pub(in crate::svm) tolerance: f64,
    /// Most pair steps.
    pub(in crate::svm) max_steps: u64,
}

/// When a walk is worth a try.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// Entries that pair steps have scanned since the last walk.
    pub(super) spent: u64,
    /// How many they must be.
    pub(super) due: u64,
}

impl Wait {
    /// Entries before the first walk: half a hundred pair steps in a block of a thousand.
    const FIRST: u64 = 40_000;
    /// Most.
    const LAST: u64 = 1 << 26;

    pub(super) fn new() -> Self {
        Self { spent: 0, due: Self::FIRST }
    }

    /// Without end.
    pub(super) fn endless() -> Self {
        Self { spent: 0, due: u64::MAX }
    }

    /// Pair steps have scanned so many entries.
    pub(super) fn spend(&mut self, entries: u64) {
        self.spent += entries;
    }

    pub(super) fn is_over(&self) -> bool {
        self.spent >= self.due
    }

    /// A walk came to its end, or did not: then the next one waits longer.
    pub(super) fn paid(&mut self, arrived: bool) {
        self.spent = 0;
        self.due = if arrived { (self.due / 2).max(Self::FIRST) } else { (2 * self.due).min(Self::LAST) };
    }
}

/// A block of variables with their kernel values, each group padded to whole vectors with variables that cannot move.
pub(in crate::svm) struct Subproblem<K> {
    /// Kernel values by slot, lines `stride` apart.
    pub(super) kernel: Arena<K>,
    pub(super) stride: usize,
    pub(super) groups: [Range<usize>; GROUPS],
    /// Slot of each member.
    pub(super) slots: Vec<usize>,
    pub(super) kink: f64,
    pub(super) anchored: bool,
    pub(super) diagonal: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) beta: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    pub(super) up: Vec<f64>,
    pub(super) low: Vec<f64>,
    /// Steps of all kinds so far, and whether a direct one or a walk is due.
    pub(super) steps: u64,
    pub(super) patience: Patience,
    pub(super) wait: Wait,
    /// As the last search found it.
    pub(super) violation: f64,
    /// What the steps so far raise the objective by at least, in exact arithmetic.
    pub(in crate::svm) promised: f64,
}

impl<K: KernelValue> Subproblem<K> {
    /// The block of the given members, which are in the order of their groups. `fill` writes the matrix: a line for
    /// each member at its slot, its columns at theirs; whatever else it holds does not matter, as long as it is finite.
    pub(in crate::svm) fn new(
        problem: &DualProblem,
        members: &[usize],
        tuning: &Tuning,
        memory: &Arenas<K>,
        fill: impl FnOnce(&mut [K], usize, &[usize]) -> Result<()>,
    ) -> Result<Self> {
        let first = members.partition_point(|&v| problem.group[v] == 0);
        let anchor = usize::from(problem.anchored);
        let middle = (first + anchor).next_multiple_of(STRIDE);
        let stride = middle + (members.len() - first).next_multiple_of(STRIDE);
        let slots: Vec<usize> =
            (0..members.len()).map(|k| if k < first { k } else { middle + k - first }).try_collect_vec()?;
        let mut block = Self {
            kernel: memory.take("the kernel matrix of a block", stride * stride)?,
            stride,
            groups: [0..middle, middle..stride],
            kink: problem.kink,
            anchored: problem.anchored,
            diagonal: try_vec![0.0; stride]?,
            lower: try_vec![0.0; stride]?,
            upper: try_vec![0.0; stride]?,
            beta: try_vec![0.0; stride]?,
            gradient: try_vec![0.0; stride]?,
            up: try_vec![f64::INFINITY; stride]?,
            low: try_vec![f64::NEG_INFINITY; stride]?,
            steps: 0,
            patience: Patience::new(),
            wait: Wait::new(),
            violation: f64::INFINITY,
            promised: 0.0,
            slots,
        };
        if !tuning.direct {
            block.patience = Patience::endless();
        }
        if !tuning.walks {
            block.wait = Wait::endless();
        }
        let kernel = &mut block.kernel.values_mut()[..stride * stride];
        fill(kernel, stride, &block.slots)?;
        if problem.anchored {
            kernel[first * stride..(first + 1) * stride].fill(K::ZERO);
            kernel.iter_mut().skip(first).step_by(stride).for_each(|value| *value = K::ZERO);
            (block.lower[first], block.upper[first]) = (f64::NEG_INFINITY, f64::INFINITY);
            (block.up[first], block.low[first]) = (0.0, 0.0);
        }
        block.renew(problem, members);
        Ok(block)
    }

    /// Goes on with another problem of the same members, whose coefficients have their gradients.
    pub(in crate::svm) fn renew(&mut self, problem: &DualProblem, members: &[usize]) {
        let kernel = self.kernel.values_mut();
        for (&v, &slot) in members.iter().zip(&self.slots) {
            // The exact diagonal, with the ridge, so that a step changes a variable's own gradient rightly.
            kernel[slot * self.stride + slot] = K::from_f64(problem.diagonal[v]);
            self.diagonal[slot] = problem.diagonal[v];
            self.lower[slot] = problem.lower[v];
            self.upper[slot] = problem.upper[v];
            self.beta[slot] = problem.beta[v];
            self.gradient[slot] = problem.gradient[v];
        }
        for k in 0..members.len() {
            self.note_bounds(self.slots[k]);
        }
    }

    /// The members' coefficients and gradients.
    pub(in crate::svm) fn state(&self) -> (Vec<f64>, Vec<f64>) {
        // small: the variables of a block
        self.slots.iter().map(|&slot| (self.beta[slot], self.gradient[slot])).unzip()
    }

    /// As [`Subproblem::state`]; the matrix's memory goes back.
    pub(in crate::svm) fn finish(self, memory: &Arenas<K>) -> (Vec<f64>, Vec<f64>) {
        let state = self.state();
        memory.put(self.kernel);
        state
    }

    /// Renews which ways a variable can move, at which rates of the kink.
    pub(super) fn note_bounds(&mut self, i: usize) {
        let b = self.beta[i];
        self.up[i] = match b < self.upper[i] {
            true if b >= 0.0 => self.kink,
            true => -self.kink,
            false => f64::INFINITY,
        };
        self.low[i] = match b > self.lower[i] {
            true if b > 0.0 => self.kink,
            true => -self.kink,
            false => f64::NEG_INFINITY,
        };
    }

    /// Kernel values of a slot.
    pub(super) fn row(&self, i: usize) -> &[K] {
        &self.kernel.values()[i * self.stride..(i + 1) * self.stride]
    }

    /// Where the present piece of variable i's cost ends above it.
    pub(super) fn end_above(&self, i: usize) -> f64 {
        if self.kink > 0.0 && self.beta[i] < 0.0 { self.upper[i].min(0.0) } else { self.upper[i] }
    }

    /// Where it ends below.
    pub(super) fn end_below(&self, i: usize) -> f64 {
        if self.kink > 0.0 && self.beta[i] > 0.0 { self.lower[i].max(0.0) } else { self.lower[i] }
    }

    /// Slots free to move both ways at one rate.
    pub(super) fn unbounded(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().copied().filter(|&i| self.up[i] == self.low[i])
    }
}
