//! Weights of rows in iterations: with S the square roots of the weights and c = S u,
//!
//! ```text
//! (K + alpha S^-2) c = y     is     (S K S + alpha I) u = S y
//! ```
//!
//! whose matrix is symmetric and has no large numbers where weights are small.

use std::borrow::Cow;

use super::problem::Problem;

/// The square roots of the weights; nothing is multiplied where there are none.
pub(super) struct Roots(Option<Vec<f64>>);

impl Roots {
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        Self(problem.weights.map(|weights| weights.iter().map(|w| w.sqrt()).collect()))
    }

    /// The root of the i-th weight.
    pub(super) fn root(&self, i: usize) -> f64 {
        self.0.as_ref().map_or(1.0, |roots| roots[i])
    }

    /// S V for some rows of V from `start` on, of `width` numbers each.
    pub(super) fn scale(&self, start: usize, values: &mut [f64], width: usize) {
        for (line, root) in values.chunks_exact_mut(width).zip(self.0.iter().flat_map(|r| &r[start..])) {
            for v in line {
                *v *= root;
            }
        }
    }

    /// S V, of all rows.
    pub(super) fn scaled<'a>(&self, values: &'a [f64], width: usize) -> Cow<'a, [f64]> {
        let mut values = Cow::Borrowed(values);
        if self.0.is_some() {
            self.scale(0, values.to_mut(), width);
        }
        values
    }
}
