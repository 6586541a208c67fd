//! The inner tier: solve the block's own quadratic program by pair steps, its kernel values in one small matrix.
//!
//! A pair (i, j): i has the smallest gradient among variables that can rise, j promises the largest decrease to
//! second order (Fan, Chen, Lin 2005; thesis 2.4.1 with the sign of (2.99) mended). b_i rises and b_j falls by
//!
//! ```text
//! step = min((f_j - f_i) / (K_ii + K_jj - 2 K_ij), upper_i - b_i, b_j - lower_j)
//! ```
//!
//! Invariant: gradients are exact for the block's present coefficients, and sum b does not change. Cost: two scans of
//! the block a step; the update of the gradients rides on the next search.

use crate::cache::{Arena, Arenas};
use crate::simd::scan::{STRIDE, second_order_partner, step_and_scan};

/// Curvature below which a pair counts as flat (duplicate rows, indefinite kernels). LIBSVM's value.
const SMALLEST_CURVATURE: f64 = 1e-12;

/// A block of variables with their kernel values, padded to whole vectors with variables that cannot move.
pub(super) struct Subproblem {
    /// Kernel values, lines `stride` apart.
    kernel: Arena,
    stride: usize,
    diagonal: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    pub(super) beta: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    up: Vec<f64>,
    low: Vec<f64>,
}

/// One variable of a block.
pub(super) struct Variable {
    pub(super) beta: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) gradient: f64,
    pub(super) diagonal: f64,
}

impl Subproblem {
    /// A block of the given variables; `fill` writes the matrix, one line for each, `stride` apart. What stands behind
    /// the variables in a line does not matter, as long as it is finite.
    pub(super) fn new(
        variables: impl ExactSizeIterator<Item = Variable>,
        memory: &Arenas,
        fill: impl FnOnce(&mut [f32], usize),
    ) -> Self {
        let count = variables.len();
        let stride = count.next_multiple_of(STRIDE);
        let mut block = Self {
            kernel: memory.take(count * stride),
            stride,
            diagonal: vec![0.0; stride],
            lower: vec![0.0; stride],
            upper: vec![0.0; stride],
            beta: vec![0.0; stride],
            gradient: vec![0.0; stride],
            up: vec![f64::INFINITY; stride],
            low: vec![f64::NEG_INFINITY; stride],
        };
        for (i, variable) in variables.enumerate() {
            block.diagonal[i] = variable.diagonal;
            block.lower[i] = variable.lower;
            block.upper[i] = variable.upper;
            block.beta[i] = variable.beta;
            block.gradient[i] = variable.gradient;
            block.note_bounds(i);
        }
        fill(&mut block.kernel.values_mut()[..count * stride], stride);
        block
    }

    /// Gives the matrix's memory back.
    pub(super) fn release(self, memory: &Arenas) {
        memory.put(self.kernel);
    }

    fn note_bounds(&mut self, i: usize) {
        self.up[i] = if self.beta[i] < self.upper[i] { 0.0 } else { f64::INFINITY };
        self.low[i] = if self.beta[i] > self.lower[i] { 0.0 } else { f64::NEG_INFINITY };
    }

    fn row(&self, i: usize) -> &[f32] {
        &self.kernel.values()[i * self.stride..(i + 1) * self.stride]
    }

    /// Makes pair steps until the block's violation is at most `tolerance` or `max_steps` are made; returns their number.
    pub(super) fn solve(&mut self, tolerance: f64, max_steps: u64) -> u64 {
        let (mut last, mut step, mut steps) = ((0, 0), 0.0, 0);
        loop {
            let kernel = self.kernel.values();
            let line = |i: usize| &kernel[i * self.stride..(i + 1) * self.stride];
            let found =
                step_and_scan(&mut self.gradient, &self.up, &self.low, line(last.0), line(last.1), step);
            if found.low - found.up <= tolerance || !found.up.is_finite() {
                return steps;
            }
            if steps >= max_steps {
                return steps;
            }
            let i = found.up_index;
            let partner = second_order_partner(
                &self.gradient,
                &self.low,
                self.row(i),
                &self.diagonal,
                self.diagonal[i],
                found.up,
                SMALLEST_CURVATURE,
            );
            let Some(j) = partner else { return steps };
            let curvature = (self.diagonal[i] + self.diagonal[j] - 2.0 * f64::from(self.row(i)[j]))
                .max(SMALLEST_CURVATURE);
            let wanted = (self.gradient[j] - found.up) / curvature;
            let (room_i, room_j) = (self.upper[i] - self.beta[i], self.beta[j] - self.lower[j]);
            step = wanted.min(room_i).min(room_j);
            // Bounds are assigned, not added up to, so that "at its bound" stays an exact comparison.
            self.beta[i] = if step == room_i { self.upper[i] } else { self.beta[i] + step };
            self.beta[j] = if step == room_j { self.lower[j] } else { self.beta[j] - step };
            self.note_bounds(i);
            self.note_bounds(j);
            last = (i, j);
            steps += 1;
        }
    }
}
