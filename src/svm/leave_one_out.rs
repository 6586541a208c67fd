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
//! The kernel must be positive semidefinite. A solution within the tolerance is taken to be off by its largest violation,
//! which is added on the safe side. Estimates count rows and ignore their weights.
//!
//! Joachims proves the second for machines whose intercept is determined, by an unbounded support vector, with row i and
//! without it. If it is not, the intercept may be anywhere in an interval, and every row may fail. So with an intercept
//! row i counts as a failure unless
//!
//! - a_i = 0 and there is an unbounded support vector: the same solution is optimal without row i; or
//! - both classes have an unbounded support vector other than row i. This looks at the fitted machine in the place of
//!   the one without row i and is no proof; no refit of thousands of random machines contradicts it.
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
    /// True if the machine has an unbounded support vector. Otherwise xi-alpha clears no row of a machine with intercept.
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
    // Unbounded support vectors of the negative and the positive class.
    let mut unbounded = [0_usize; 2];
    for i in (0..n).filter(|&i| problem.is_unbounded(i)) {
        unbounded[usize::from(is_positive(problem, i))] += 1;
    }
    let mut estimate = LeaveOneOut {
        positive: 0,
        negative: 0,
        bound: (!problem.has_equality).then_some(0),
        missed: 0,
        false_alarms: 0,
        stable: unbounded != [0, 0],
    };
    for i in 0..n {
        let is_positive = is_positive(problem, i);
        let sign = if is_positive { 1.0 } else { -1.0 };
        let alpha = problem.beta[i].abs();
        let margin = sign * (problem.gradient[i] - problem.linear[i] + b) - violation;
        let others = |class: bool| {
            unbounded[usize::from(class)] - usize::from(class == is_positive && problem.is_unbounded(i))
        };
        let is_determined = !problem.has_equality
            || if alpha == 0.0 { estimate.stable } else { others(true) > 0 && others(false) > 0 };
        let suspect = !is_determined || 2.0 * alpha * spread + (1.0 - margin).max(0.0) >= 1.0;
        if let Some(bound) = &mut estimate.bound {
            *bound += usize::from(margin - alpha * problem.diagonal[i] <= 0.0);
        }
        if is_positive {
            estimate.positive += 1;
            estimate.missed += usize::from(suspect);
        } else {
            estimate.negative += 1;
            estimate.false_alarms += usize::from(suspect);
        }
    }
    estimate
}

fn is_positive(problem: &DualProblem, i: usize) -> bool {
    problem.linear[i] < 0.0
}

fn is_non_negative(kernel: KernelFunction<'_>) -> bool {
    match kernel {
        KernelFunction::BuiltIn(Kernel::Polynomial { degree, .. }) => degree % 2 == 0,
        KernelFunction::BuiltIn(kernel) => kernel.constant_diagonal().is_some(),
        KernelFunction::Blocks(_) => false,
    }
}
