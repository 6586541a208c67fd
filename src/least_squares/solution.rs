//! What the direct solvers find.

use super::intercept::coefficients_and_intercepts;
use super::leave_one_out::LeaveOneOut;
use super::problem::Problem;
use ndarray::Array2;

/// Coefficients, and what is known about them.
#[derive(Debug, Clone)]
pub struct Solution {
    /// c, (n, q).
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// Where asked for.
    pub leave_one_out: Option<LeaveOneOut>,
    /// k(x_i, x_i), (n,).
    pub diagonal: Vec<f64>,
}

impl Solution {
    /// From G (Y, 1), with leave-one-out values where the diagonal of G is given.
    pub(super) fn new(
        problem: &Problem<'_>,
        solved: Array2<f64>,
        diagonal: Vec<f64>,
        inverse: Option<Vec<f64>>,
    ) -> Self {
        let (coefficients, intercepts, ones) = coefficients_and_intercepts(problem, solved);
        let leave_one_out = inverse.map(|mut inverse| {
            if let Some(ones) = ones {
                let total: f64 = ones.iter().sum();
                inverse.iter_mut().zip(&ones).for_each(|(g, one)| *g -= one * one / total);
            }
            LeaveOneOut::new(problem, &coefficients, inverse)
        });
        Self { coefficients, intercepts, leave_one_out, diagonal }
    }
}
