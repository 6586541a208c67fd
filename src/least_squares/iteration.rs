//! Conjugate gradients on the system with its intercept, shared by the iterative solvers, and their stopping criteria.
//!
//! Rows may have weights: with S the square roots of the weights and c = S u,
//!
//! ```text
//! (K + alpha S^-2) c = y     is     (S K S + alpha I) u = S y
//! ```
//!
//! whose matrix is symmetric and has no large numbers where weights are small.

use super::intercept::{coefficients_and_intercepts, right_hand_sides};
use super::problem::Problem;
use crate::context::{Context, Stop};
use crate::error::Result;
use crate::linalg::conjugate::{self, Limits};
use crate::memory::{self, TryToVec};
use ndarray::Array2;
use std::borrow::Cow;
use std::time::Duration;

/// Stopping criteria of an iteration.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Stopping {
    /// ||y - (K + alpha I) c|| / ||y|| of every output, rows counted by their weights.
    pub tolerance: f64,
    /// Maximum number of products with the system's matrix.
    pub max_iterations: u64,
    /// Time limit, which may end the work within a product.
    pub max_time: Option<Duration>,
}

impl Stopping {
    /// Returns the criterion of a relative residual, without a limit of products or time.
    pub fn new(tolerance: f64) -> Self {
        Self { tolerance, max_iterations: u64::MAX, max_time: None }
    }
}

/// Returns coefficients (n, q) and intercepts (q,). `apply(p, out, columns)` writes the product of the system's matrix, with
/// weights that of S K S + alpha I, and p, `precondition(r, out, columns)` an approximation of what its inverse makes of r.
/// The iterations of the stop are products with the matrix; its gap is the largest relative residual of the systems, computed
/// from the solution, or the estimate of the iteration if the monitor stopped it.
pub(super) fn conjugate_gradients(
    problem: &Problem<'_>,
    alpha: f64,
    roots: &WeightRoots,
    stopping: Stopping,
    mut apply: impl FnMut(&[f64], &mut [f64], usize) -> Result<()>,
    precondition: impl Fn(&[f64], &mut [f64], usize) -> Result<()>,
    ctx: Context<'_>,
) -> Result<(Array2<f64>, Vec<f64>, Stop)> {
    const ROW_MAJOR: &str = "made row-major";
    let mut right = right_hand_sides(problem)?;
    let mut solved = memory::try_zero_matrix("the solution", right.dim())?;
    let columns = right.ncols();
    roots.scale(0, right.as_slice_mut().expect(ROW_MAJOR), columns);
    let outcome = conjugate::solve(
        right.as_slice().expect(ROW_MAJOR),
        solved.as_slice_mut().expect(ROW_MAJOR),
        columns,
        Limits {
            relative: stopping.tolerance,
            absolute: 0.0,
            backward: 0.0,
            max_iterations: stopping.max_iterations,
        },
        |p, out| apply(p, out, columns),
        |r, out| precondition(r, out, columns),
        ctx,
    )?;
    roots.scale(0, solved.as_slice_mut().expect(ROW_MAJOR), columns);
    let (coefficients, intercepts, _) = coefficients_and_intercepts(problem, solved)?;
    problem.check_solution(alpha, coefficients.iter().chain(&intercepts).chain(&outcome.residuals))?;
    Ok((coefficients, intercepts, outcome.stop))
}

/// The square roots of the weights; nothing is multiplied where there are none.
pub(super) struct WeightRoots(Option<Vec<f64>>);

impl WeightRoots {
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let roots = |weights: &[f64]| weights.iter().map(|w| w.sqrt()).collect::<Vec<_>>();
        Self(problem.weights.map(roots))
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
    pub(super) fn scaled<'a>(&self, values: &'a [f64], width: usize) -> Result<Cow<'a, [f64]>> {
        if self.0.is_none() {
            return Ok(Cow::Borrowed(values));
        }
        let mut scaled = values.try_to_vec()?;
        self.scale(0, &mut scaled, width);
        Ok(Cow::Owned(scaled))
    }
}
