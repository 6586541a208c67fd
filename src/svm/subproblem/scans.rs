//! What pair steps scan, in single or double precision.
//!
//! Most pair steps of large blocks are made by numbers of single precision: twice as many fit a vector, and kernel values need not be
//! widened. Coefficients are double, and so are the gradients that follow from them at the end. Rounding *wears* the scans: with
//! every step of length t their gradients lose up to 2^-24 of 2 t max K_ii and of themselves. When that may be a part of
//! the tolerance, the rest is done in double precision; and so is the end, where a few steps more may be needed.
//!
//! Cost: of the scans a copy; of the end in single precision (changed variables) x (variables) multiply-adds.
//!
//! All allocations are small: at most 2,048 variables of a block.

use super::super::precision::KernelValue;
use super::state::{Goal, Subproblem};
use crate::simd::Real;
use crate::simd::blas::add_rows;

/// Share of the tolerance that rounding may be.
const WEAR: f64 = 0.125;

/// Slots of a block from which on scans in single precision gain.
const LARGE: usize = 256;

/// What is due when pair steps end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing: the block is solved, or steps are over.
    Nothing,
    /// The same in double precision.
    Precision,
    /// A walk.
    Walk,
    /// A direct step.
    Direct,
}

/// Gradients, ways and diagonal of a block in the precision of the scans, by slot.
pub(super) struct Scans<T> {
    pub(super) gradient: Vec<T>,
    pub(super) up: Vec<T>,
    pub(super) low: Vec<T>,
    pub(super) diagonal: Vec<T>,
    /// Coefficients at the start.
    start: Vec<f64>,
    /// What rounding may have added to the gradients, what a step and a unit of its length add, and what is too much.
    wear: f64,
    of_step: (f64, f64),
    most: f64,
}

impl<T: Real> Scans<T> {
    const IS_SINGLE: bool = size_of::<T>() < size_of::<f64>();
    /// What is due when nothing is left to do by these scans.
    pub(super) const END: Due = if Self::IS_SINGLE { Due::Precision } else { Due::Nothing };

    /// Copies of a block's numbers; `None` where their precision is too low for the goal, or the block small.
    pub(super) fn of<K: KernelValue>(block: &Subproblem<K>, goal: Goal) -> Option<Self> {
        // Of members: what stands between them is whatever was in memory.
        let largest =
            |values: &[f64]| block.slots.iter().fold(0.0, |most: f64, &slot| most.max(values[slot].abs()));
        let unit = 0.5 * f64::from(f32::EPSILON);
        let of_step = (unit * (largest(&block.gradient) + block.kink), 2.0 * unit * largest(&block.diagonal));
        let most = WEAR * goal.tolerance;
        // Not worth a copy for fewer steps than this, even if they do not move far.
        let is_single = size_of::<K>() < size_of::<f64>();
        if Self::IS_SINGLE && !(is_single && block.stride >= LARGE && 64.0 * of_step.0 < most) {
            return None;
        }
        let of = |values: &[f64]| values.iter().map(|&v| T::from_f64(v)).collect();
        Some(Self {
            gradient: of(&block.gradient),
            up: of(&block.up),
            low: of(&block.low),
            diagonal: of(&block.diagonal),
            start: if Self::IS_SINGLE { block.beta.clone() } else { Vec::new() },
            wear: 0.0,
            of_step,
            most,
        })
    }

    /// Which ways variable `i` can move now.
    pub(super) fn note<K>(&mut self, block: &Subproblem<K>, i: usize) {
        self.up[i] = T::from_f64(block.up[i]);
        self.low[i] = T::from_f64(block.low[i]);
    }

    /// A step of this length was made.
    pub(super) fn wear(&mut self, step: f64) {
        self.wear += self.of_step.0 + step * self.of_step.1;
    }

    /// Whether rounding may have added too much.
    pub(super) fn is_worn(&self) -> bool {
        Self::IS_SINGLE && self.wear > self.most
    }

    /// Gives the block the gradients of its coefficients.
    pub(super) fn finish<K: KernelValue>(self, block: &mut Subproblem<K>) {
        if !Self::IS_SINGLE {
            block.gradient = self.gradient.iter().map(|v| v.to_f64()).collect();
            return;
        }
        let moved: Vec<usize> = (0..self.start.len()).filter(|&i| block.beta[i] != self.start[i]).collect();
        let changes: Vec<f64> = moved.iter().map(|&i| block.beta[i] - self.start[i]).collect();
        let mut gradient = std::mem::take(&mut block.gradient);
        let rows: Vec<&[K]> = moved.iter().map(|&i| block.row(i)).collect();
        add_rows(&changes, &rows, 0, &mut gradient);
        block.gradient = gradient;
    }
}
