//! Upper bounds for the leave-one-out errors of a classifier, without training again.
//!
//! With a = |b| the dual coefficients, y the signs, K~ = K + diag r the kernel matrix the machine was trained with
//! (r is 0 for the hinge loss) and f~ = K~ b + intercept:
//!
//! ```text
//! without intercept   row i can fail only if  y_i f~(x_i) - a_i K~_ii <= 0              Jaakkola and Haussler 1999
//! with one            row i can fail only if  2 a_i R^2 + max(0, 1 - y_i f~(x_i)) >= 1     Joachims 2000 (xi-alpha)
//! ```
//!
//! where R^2 bounds K~(x, x) - K(x, x') over all rows: the largest diagonal entry for kernels that are never
//! negative, and at most twice that for any positive semidefinite one. (Rifkin 2002, (3.33) for the first.) The second
//! holds without an intercept too, but says less.
//!
//! Guaranteed for positive semidefinite kernels at the optimum, the second for *stable* machines: those with at least
//! one unbounded support vector. A solution within the tolerance is taken to be off by its largest violation, which is
//! added on the safe side. Estimates count rows and ignore their weights.
//!
//! Cost: O(n), from the gradients.

use super::problem::DualProblem;
use crate::kernels::{Kernel, KernelFunction};

/// Upper bounds for the leave-one-out errors of one binary machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveOneOut {
    /// Rows of the positive class.
    pub positive: usize,
    /// Rows of the negative class.
    pub negative: usize,
    /// Rows that the Jaakkola-Haussler bound does not clear; for machines without intercept.
    pub bound: Option<usize>,
    /// Positive rows that xi-alpha does not clear.
    pub missed: usize,
    /// Negative rows that xi-alpha does not clear.
    pub false_alarms: usize,
    /// True if the machine has an unbounded support vector, which xi-alpha requires.
    pub stable: bool,
}

/// Returns the bounds for a machine of hinge or squared hinge loss with intercept `b`, solved to `violation`.
pub(super) fn leave_one_out(
    problem: &DualProblem,
    kernel: KernelFunction<'_>,
    b: f64,
    violation: f64,
) -> LeaveOneOut {
    let n = problem.len();
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let below_zero = if is_non_negative(kernel) {
        0.0
    } else {
        largest(&mut (0..n).map(|i| problem.diagonal[i] - problem.ridge[i]))
    };
    let spread = largest(&mut problem.diagonal.iter().copied()) + below_zero;
    let mut found = LeaveOneOut {
        positive: 0,
        negative: 0,
        bound: (!problem.has_equality).then_some(0),
        missed: 0,
        false_alarms: 0,
        stable: (0..n).any(|i| problem.is_unbounded(i)),
    };
    for i in 0..n {
        let is_positive = problem.linear[i] < 0.0;
        let sign = if is_positive { 1.0 } else { -1.0 };
        let alpha = problem.beta[i].abs();
        let margin = sign * (problem.gradient[i] - problem.linear[i] + b) - violation;
        let suspect = 2.0 * alpha * spread + (1.0 - margin).max(0.0) >= 1.0;
        if let Some(bound) = &mut found.bound {
            *bound += usize::from(margin - alpha * problem.diagonal[i] <= 0.0);
        }
        if is_positive {
            found.positive += 1;
            found.missed += usize::from(suspect);
        } else {
            found.negative += 1;
            found.false_alarms += usize::from(suspect);
        }
    }
    found
}

fn is_non_negative(kernel: KernelFunction<'_>) -> bool {
    match kernel {
        KernelFunction::BuiltIn(Kernel::Polynomial { degree, .. }) => degree % 2 == 0,
        KernelFunction::BuiltIn(kernel) => kernel.constant_diagonal().is_some(),
        KernelFunction::Blocks(_) => false,
    }
}
