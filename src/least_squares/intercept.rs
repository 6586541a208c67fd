//! How an intercept enters the system.
//!
//! A constant b that is not penalised borders the system with a row and a column of ones:
//!
//! ```text
//! | A   1 | |c|   |y|
//! | 1'  0 | |b| = |0|     A = K + alpha W^-1,  G = A^-1:     b = 1'G y / 1'G 1,  c = G (y - b 1)
//! ```
//!
//! so that the coefficients sum to zero, and the bordered system is solved by one with A that has the ones as one more
//! right-hand side.

use super::problem::Problem;
use ndarray::Array2;

/// The right-hand sides (Y, 1), or Y alone where no intercept is wanted; row-major.
pub(super) fn right_hand_sides(problem: &Problem<'_>) -> Array2<f64> {
    let (n, q) = problem.targets.dim();
    let columns = q + usize::from(problem.fit_intercept);
    Array2::from_shape_fn((n, columns), |(i, j)| if j < q { problem.targets[[i, j]] } else { 1.0 })
}

/// From their solutions G (Y, 1): coefficients (n, q), intercepts (q,), and G 1 where there is an intercept.
pub(super) fn coefficients_and_intercepts(
    problem: &Problem<'_>,
    solved: Array2<f64>,
) -> (Array2<f64>, Vec<f64>, Option<Vec<f64>>) {
    let (n, q) = problem.targets.dim();
    if !problem.fit_intercept {
        return (solved, vec![0.0; q], None);
    }
    let ones = solved.column(q).to_vec();
    let total: f64 = ones.iter().sum();
    let intercepts: Vec<f64> = (0..q).map(|j| solved.column(j).iter().sum::<f64>() / total).collect();
    let coefficients = Array2::from_shape_fn((n, q), |(i, j)| solved[[i, j]] - intercepts[j] * ones[i]);
    (coefficients, intercepts, Some(ones))
}
