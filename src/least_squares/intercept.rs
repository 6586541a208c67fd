//! The intercept as a border of the system.
//!
//! A constant b that is not penalized borders the system with a row and a column of ones:
//!
//! ```text
//! | A   1 | |c|   |y|
//! | 1'  0 | |b| = |0|     A = K + alpha W^-1,  G = A^-1:     b = 1'G y / 1'G 1,  c = G (y - b 1)
//! ```
//!
//! so that the coefficients sum to zero, and the bordered system is solved by one with A that has the ones as one more
//! right-hand side.

use super::problem::Problem;
use crate::error::Result;
use crate::memory::{self};
use ndarray::{Array2, s};

/// The right-hand sides (Y, 1), or Y alone where no intercept is fitted; row-major.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(super) fn right_hand_sides(problem: &Problem<'_>) -> Result<Array2<f64>> {
    let (n, q) = problem.targets.dim();
    let columns = q + usize::from(problem.fit_intercept);
    let mut right = memory::try_zero_matrix("the targets", (n, columns))?;
    right.fill(1.0);
    right.slice_mut(s![.., ..q]).assign(&problem.targets);
    Ok(right)
}

/// Coefficients, intercepts, and what the intercept's ones became.
type Solved = (Array2<f64>, Vec<f64>, Option<Vec<f64>>);

/// From their solutions G (Y, 1): coefficients (n, q), intercepts (q,), and G 1 where there is an intercept.
pub(super) fn coefficients_and_intercepts(problem: &Problem<'_>, solved: Array2<f64>) -> Result<Solved> {
    let (n, q) = problem.targets.dim();
    if !problem.fit_intercept {
        return Ok((solved, vec![0.0; q], None));
    }
    let ones = solved.column(q).iter().copied().collect::<Vec<_>>();
    let total: f64 = ones.iter().sum();
    // Nothing is known of an intercept where a stop came before the first step.
    let of = |j| if total == 0.0 { 0.0 } else { solved.column(j).iter().sum::<f64>() / total };
    let intercepts: Vec<f64> = (0..q).map(of).collect();
    let mut coefficients = memory::try_zero_matrix("the coefficients", (n, q))?;
    for ((i, j), out) in coefficients.indexed_iter_mut() {
        *out = solved[[i, j]] - intercepts[j] * ones[i];
    }
    Ok((coefficients, intercepts, Some(ones)))
}
