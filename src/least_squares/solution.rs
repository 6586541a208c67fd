//! The solution of the direct solvers: coefficients, and exact leave-one-out values without refitting (Rifkin 2002, section 3.3).
//!
//! With G = (K + alpha W^-1)^-1, W the weights of the rows, alpha held fixed when a row leaves,
//!
//! ```text
//! y_i - f^(-i)(x_i) = c_i / G_ii
//! ```
//!
//! An intercept that is not penalized borders the system; the inverse of the bordered matrix has
//! G - G 1 1' G / (1' G 1) in the place of G, and the formula holds with its diagonal.

use super::intercept::coefficients_and_intercepts;
use super::problem::Problem;
use crate::argmax::argmax;
use crate::context::Context;
use crate::error::Result;
use crate::linalg::dense::Square;
use crate::memory::try_matrix;
use ndarray::{Array2, ArrayView1};

/// Coefficients and leave-one-out values.
#[derive(Debug, Clone)]
pub struct Solution {
    /// c, (n, q).
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// Leave-one-out values, if they were requested.
    pub leave_one_out: Option<LeaveOneOut>,
    /// k(x_i, x_i), (n,), of the rows less their center for the linear kernel with an intercept.
    pub diagonal: Vec<f64>,
}

/// The diagonal of the inverse of the system's matrix, (n,), and the factor that [`inverse_diagonal`] inverted, which
/// values of groups need.
///
/// [`inverse_diagonal`]: crate::linalg::inverse::inverse_diagonal
pub(super) struct InverseDiagonal<'a> {
    pub diagonal: Vec<f64>,
    pub factor: Option<&'a Square<f64>>,
}

impl Solution {
    /// Converts G (Y, 1) to a solution, with leave-one-out values if the diagonal of G is given.
    ///
    /// # Errors
    /// [`Error::Param`](crate::Error::Param) if they are not finite, the errors of [`Groups::left_out`].
    pub(super) fn new(
        problem: &Problem<'_>,
        alpha: f64,
        solved: Array2<f64>,
        diagonal: Vec<f64>,
        inverse: Option<InverseDiagonal<'_>>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (coefficients, intercepts, ones) = coefficients_and_intercepts(problem, solved)?;
        let leave_one_out = match inverse {
            Some(inverse) => Some(LeaveOneOut::new(problem, &coefficients, inverse, ones.as_deref(), ctx)?),
            None => None,
        };
        problem.check_solution(alpha, coefficients.iter().chain(&intercepts))?;
        if let Some(errors) = &leave_one_out {
            problem.check_solution(alpha, errors.values.iter().chain(&errors.gcv))?;
        }
        Ok(Self { coefficients, intercepts, leave_one_out, diagonal })
    }
}

/// Leave-one-out values for one alpha.
#[derive(Debug, Clone)]
pub struct LeaveOneOut {
    /// f^(-i)(x_i), (n, q); of a problem with groups, the outputs of the model without the row's group.
    pub values: Array2<f64>,
    /// The diagonal of the inverse, (n,).
    pub inverse_diagonal: Vec<f64>,
    /// Generalized cross-validation: the mean squared residual, weighted, divided by (1 - tr(H) / n)^2, (q,), H the
    /// matrix that turns targets into fitted values.
    pub gcv: Vec<f64>,
}

impl LeaveOneOut {
    /// Computes the values from coefficients (n, q), and from G 1 where there is an intercept.
    fn new(
        problem: &Problem<'_>,
        coefficients: &Array2<f64>,
        inverse: InverseDiagonal<'_>,
        ones: Option<&[f64]>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let InverseDiagonal { diagonal: mut inverse_diagonal, factor } = inverse;
        if let Some(ones) = ones {
            let total: f64 = ones.iter().sum();
            inverse_diagonal.iter_mut().zip(ones).for_each(|(g, entry)| *g -= entry * entry / total);
        }
        let n = inverse_diagonal.len();
        let mut gcv = vec![0.0; problem.outputs()];
        let mut values = try_matrix(coefficients.dim(), |(i, j)| {
            let (c, g) = (coefficients[[i, j]], inverse_diagonal[i]);
            gcv[j] += c * c / problem.weight(i);
            // A row that alone determines its own value (n = 1 with an intercept) has no leave-one-out value.
            if g > 0.0 { problem.targets[[i, j]] - c / g } else { f64::NAN }
        })?;
        if let (Some(groups), Some(factor)) = (problem.groups, factor) {
            values = groups.left_out(problem.targets.view(), coefficients, factor, ones, ctx)?;
        }
        // Residuals are alpha c / w, and 1 - tr(H) / n is alpha tr(G / w) / n: alpha cancels.
        let trace: f64 = inverse_diagonal.iter().enumerate().map(|(i, g)| g / problem.weight(i)).sum();
        for gcv in &mut gcv {
            *gcv *= n as f64 / (trace * trace);
        }
        Ok(Self { values, inverse_diagonal, gcv })
    }

    /// Returns the mean squared error over all outputs, and the share of rows that are decoded to another class than their targets.
    pub(super) fn errors(&self, problem: &Problem<'_>) -> (f64, f64) {
        let q = problem.outputs();
        let decode = |line: ArrayView1<'_, f64>| {
            if q == 1 { usize::from(line[0] >= 0.0) } else { argmax(line.iter().copied()) }
        };
        let (mut sum, mut wrong, mut total) = (0.0, 0.0, 0.0);
        for (i, (value, target)) in self.values.rows().into_iter().zip(problem.targets.rows()).enumerate() {
            let weight = problem.weight(i);
            sum += weight * value.iter().zip(&target).map(|(v, t)| (v - t) * (v - t)).sum::<f64>();
            wrong += if decode(value) == decode(target) { 0.0 } else { weight };
            total += weight;
        }
        (sum / (total * q as f64), wrong / total)
    }
}
