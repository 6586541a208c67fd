//! Objectives, gap and counts of a machine, all from its gradients: O(n), no kernel value.
//!
//! With h = Kb and a level l for each group, every w = sum b_i phi(x_i) gives the primal objective
//!
//! ```text
//! 1/2 b'Kb + sum_i max over [lower, upper] of (l - h_i - s_i) t - e |t| - r_i t^2 / 2   -   sum over groups of l sum b
//! ```
//!
//! which for C-SVC is 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)) with l = -b, and so on through the family. It never
//! lies below the dual objective; the difference is the gap.
//!
//! Both are of kernel values that were rounded. The dual objective is lowered, and the primal one raised, by what rounding
//! may have added and taken away (see `rounding`), so that dual <= optimum <= primal holds for the exact kernel values.

use super::intercept::intercept_range;
use super::problem::DualProblem;
use crate::context::{Context, StopReason};

/// Objectives, gap and counts of a fitted machine.
///
/// Objectives are those of the maximisation form: dual <= optimum <= primal, so `gap` bounds the distance to the
/// optimum of both. If a stop left no time for the gradients of variables that were set aside, `primal` and `violation`
/// are those of the last coefficients that had them: `gap` still bounds the distance from `dual` to the optimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// sum alpha - 1/2 alpha'Q alpha, minus the error of rounding.
    pub dual: f64,
    /// 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)), plus the error of rounding.
    pub primal: f64,
    /// primal - dual.
    pub gap: f64,
    /// Largest violation of the optimality conditions, in units of f.
    pub violation: f64,
    /// Number of SMO steps.
    pub iterations: u64,
    /// Number of blocks solved.
    pub rounds: u64,
    /// Number of support vectors.
    pub support: usize,
    /// Number of support vectors at their upper bound C.
    pub bounded: usize,
    /// Length of the interval in which the intercept may lie at the optimum; 0 if a variable is unbounded.
    pub intercept_range: f64,
    /// Maximum error of an output by rounding.
    pub rounding: f64,
    /// Reason why the machine stopped.
    pub stop: StopReason,
}

/// Maximum errors of outputs and their sums by rounding.
#[derive(Clone, Copy, Default)]
pub(super) struct Rounding {
    /// An output.
    pub(super) output: f64,
    /// b'Kb.
    pub(super) quadratic: f64,
    /// The sum of b_i h_i over the variables with a linear loss (see [`has_linear_loss`]).
    pub(super) linear_losses: f64,
}

/// Returns the certificate of a machine with intercept `b` and margin `rho`.
pub(super) fn certify(
    problem: &DualProblem,
    (b, rho): (f64, f64),
    rounding: &Rounding,
    iterations: u64,
    rounds: u64,
    stop: StopReason,
) -> Certificate {
    let levels = levels((b, rho));
    let mut size = 0.0;
    let (mut quadratic, mut ridges, mut linear, mut epsilons, mut losses) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut support, mut bounded) = (0, 0);
    for i in 0..problem.len() {
        let (beta, s, ridge) = (problem.beta[i], problem.linear[i], problem.ridge[i]);
        let product = problem.gradient[i] - s - ridge * beta;
        let level = levels[usize::from(problem.group[i])];
        quadratic += beta * product;
        ridges += ridge * beta * beta;
        linear += beta * s;
        epsilons += problem.epsilon * beta.abs();
        let derivative = level - product - s;
        let loss = if has_linear_loss_at(problem, derivative, rounding.output, i) {
            conjugate(derivative, problem, i)
        } else {
            let at = |by: f64| conjugate(derivative + by, problem, i);
            at(rounding.output).max(at(-rounding.output))
        };
        losses += loss - level * beta;
        size += (beta * product).abs() + (beta * s).abs() + loss.abs() + (level * beta).abs();
        if beta != 0.0 {
            support += 1;
            bounded += usize::from(!problem.is_unbounded(i));
        }
    }
    // The rounding error of the sums.
    let sum_error = 0.51 * f64::EPSILON * problem.len() as f64 * size;
    let dual = -0.5 * (quadratic + ridges) - linear - epsilons - 0.5 * rounding.quadratic - sum_error;
    let primal = 0.5 * quadratic + losses + 0.5 * rounding.quadratic + rounding.linear_losses + sum_error;
    let violation = problem.kkt_violation(Context::SEQUENTIAL).largest();
    let violation = if violation < 0.0 { 0.0 } else { violation };
    Certificate {
        dual,
        primal,
        gap: primal - dual,
        violation,
        iterations,
        rounds,
        support,
        bounded,
        intercept_range: intercept_range(problem),
        rounding: rounding.output,
        stop,
    }
}

/// Returns the level of each group.
fn levels((b, rho): (f64, f64)) -> [f64; 2] {
    [rho - b, -rho - b]
}

/// Returns whether the loss of variable i is linear in its output, with slope -b_i, within an error `off` of the output.
pub(super) fn has_linear_loss(problem: &DualProblem, at: (f64, f64), off: f64, i: usize) -> bool {
    let product = problem.gradient[i] - problem.linear[i] - problem.ridge[i] * problem.beta[i];
    let level = levels(at)[usize::from(problem.group[i])];
    has_linear_loss_at(problem, level - product - problem.linear[i], off, i)
}

fn has_linear_loss_at(problem: &DualProblem, derivative: f64, off: f64, i: usize) -> bool {
    let (b, r) = (problem.beta[i], problem.ridge[i]);
    let value = |v: f64| v * b - problem.epsilon * b.abs() - 0.5 * r * b * b;
    b != 0.0 && [derivative - off, derivative + off].into_iter().all(|v| conjugate(v, problem, i) <= value(v))
}

/// Returns max over t in [lower, upper] of v t - e |t| - r t^2 / 2.
fn conjugate(v: f64, problem: &DualProblem, i: usize) -> f64 {
    let (e, r) = (problem.epsilon, problem.ridge[i]);
    let value = |t: f64| v * t - e * t.abs() - 0.5 * r * t * t;
    let mut best = f64::NEG_INFINITY;
    let mut consider = |t: f64| {
        if t.is_finite() && t >= problem.lower[i] && t <= problem.upper[i] {
            best = best.max(value(t));
        }
    };
    consider(0.0);
    consider(problem.lower[i]);
    consider(problem.upper[i]);
    if r > 0.0 {
        consider((v - e) / r);
        consider((v + e) / r);
    }
    best
}
