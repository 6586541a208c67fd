//! Objectives, gap and counts of a machine, all from its gradients: O(n), no kernel value.

use super::params::Certificate;
use super::problem::DualProblem;
use crate::control::StopReason;

/// The certificate of a C-SVC machine with intercept `b`.
pub(super) fn classification(
    problem: &DualProblem,
    b: f64,
    iterations: u64,
    rounds: u64,
    stop: StopReason,
) -> Certificate {
    let (mut norm, mut linear, mut loss) = (0.0, 0.0, 0.0);
    let (mut support, mut bounded) = (0, 0);
    for i in 0..problem.len() {
        let (beta, s) = (problem.beta[i], problem.linear[i]);
        let product = problem.gradient[i] - s;
        norm += beta * product;
        linear += beta * s;
        // s = -y, and C is the bound on y's side.
        let c = problem.upper[i] - problem.lower[i];
        loss += c * (1.0 + s * (product + b)).max(0.0);
        if beta != 0.0 {
            support += 1;
            bounded += usize::from(!problem.is_unbounded(i));
        }
    }
    let (up, low) = problem.extremes();
    let dual = -0.5 * norm - linear;
    let primal = 0.5 * norm + loss;
    Certificate {
        dual,
        primal,
        gap: primal - dual,
        violation: (low - up).max(0.0),
        iterations,
        rounds,
        support,
        bounded,
        stop,
    }
}
