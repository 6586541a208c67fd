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
//! If C is so large that losses within the tolerance exceed the norm, this gap says little about w. Then the smallest of these
//! upper bounds of the optimum is the primal objective:
//!
//! - that of the multiple of w and l which removes the violation of a classifier;
//! - that with C twice the largest coefficient, if no coefficient is at its bound and the violation is rounding: every such C has
//!   the same optimum.
//!
//! The level of a one-class machine is lowered by the rounding of an output, since its bounds may be as large.
//!
//! Both are of kernel values that were rounded. The dual objective is lowered, and the primal one raised, by what rounding
//! may have added and taken away (see `rounding`), so that dual <= optimum <= primal holds for the exact kernel values.

use super::intercept::intercept_range;
use super::problem::DualProblem;
use super::stall::{UNCERTAIN_ROUNDINGS, largest_magnitude};
use crate::context::{Context, StopReason};

/// Objectives, gap and counts of a fitted machine.
///
/// Objectives are those of the maximization form: dual <= optimum <= primal, so `gap` bounds the distance to the
/// optimum of both. If a stop left no time for the gradients of variables that were set aside, `primal` and `violation`
/// are those of the last coefficients that had them: `gap` still bounds the distance from `dual` to the optimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// sum alpha - 1/2 alpha'Q alpha, minus the error of rounding.
    pub dual: f64,
    /// 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)), plus the error of rounding; of f, or of the multiple of f without
    /// violation if that of f exceeds the dual objective by a large share.
    pub primal: f64,
    /// primal - dual.
    pub gap: f64,
    /// Largest violation of the optimality conditions, in units of f.
    pub violation: f64,
    /// Number of SMO steps.
    pub iterations: u64,
    /// Number of blocks solved.
    pub rounds: u64,
    /// Number of support vectors, bounded ones included.
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

impl Certificate {
    /// Returns the certificate of a problem without linear term whose coefficients are `unit` times as large.
    pub(super) fn scaled(self, unit: f64) -> Self {
        let square = unit * unit;
        Self {
            dual: square * self.dual,
            primal: square * self.primal,
            gap: square * self.gap,
            violation: unit * self.violation,
            intercept_range: unit * self.intercept_range,
            rounding: unit * self.rounding,
            ..self
        }
    }
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

/// Maximum gap of a solved machine, relative to the primal objective.
const MAX_GAP_SHARE: f64 = 0.1;
/// Objective of a homogeneous problem that counts as zero, relative to that of orthogonal vectors: the vectors cancel.
const MAX_CANCELLED_SHARE: f64 = 1e-3;
/// The same relative to that of equal vectors of the mean length: the vectors are zero.
const MAX_ZERO_SHARE: f64 = 1e-9;
/// Maximum violation, with rounding, of a function whose multiple is tried as a better one.
const MAX_SCALED_VIOLATION: f64 = 0.5;

/// Returns the gap relative to the largest one of a solved machine, a share of the primal objective. The objective of a
/// homogeneous problem may be zero at the optimum, where its vectors cancel.
pub(super) fn relative_gap(problem: &DualProblem, certificate: &Certificate) -> f64 {
    let negligible = || {
        if !problem.is_homogeneous() {
            return 0.0;
        }
        let (mut orthogonal, mut sum, mut diagonal) = (0.0, 0.0, 0.0);
        for (b, d) in problem.beta.iter().zip(&problem.diagonal) {
            orthogonal += 0.5 * b * b * d.abs();
            sum += b.abs();
            diagonal += d.abs();
        }
        let equal = 0.5 * sum * sum * diagonal / problem.len().max(1) as f64;
        (MAX_CANCELLED_SHARE * orthogonal).max(MAX_ZERO_SHARE * equal)
    };
    let &Certificate { primal, gap, .. } = certificate;
    if gap <= 0.0 {
        return 0.0;
    }
    let is_small = gap <= MAX_GAP_SHARE * primal.abs();
    gap / (MAX_GAP_SHARE * if is_small { primal.abs() } else { primal.abs().max(negligible()) })
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
        let ends = losses_at(derivative, rounding.output, problem, i);
        let loss = if is_linear_between(derivative, rounding.output, ends, problem, i) {
            conjugate(derivative, problem, i)
        } else {
            ends.0.max(ends.1)
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
    let kkt = problem.kkt_violation(Context::SEQUENTIAL);
    let violation = if kkt.largest() < 0.0 { 0.0 } else { kkt.largest() };
    let primal = if primal - dual > MAX_GAP_SHARE * primal.abs() {
        primal.min(smaller_primal(problem, levels, rounding, (violation, kkt.rounding())))
    } else {
        primal
    };
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

/// Returns a primal objective for levels or bounds that depend less on small violations: see the head of the file.
fn smaller_primal(
    problem: &DualProblem,
    levels: [f64; 2],
    rounding: &Rounding,
    (violation, gradient_rounding): (f64, f64),
) -> f64 {
    if problem.keeps_margin_inside {
        let lowered = levels.map(|level| level - rounding.output);
        return primal_of_multiple(problem, lowered, rounding, 1.0, f64::INFINITY);
    }
    let mut primal = f64::INFINITY;
    let distance = violation + rounding.output;
    if distance < MAX_SCALED_VIOLATION {
        let factor = (1.0 + f64::EPSILON.sqrt()) / (1.0 - distance);
        primal = primal_of_multiple(problem, levels, rounding, factor, f64::INFINITY);
    }
    if violation <= UNCERTAIN_ROUNDINGS * gradient_rounding && problem.is_solved_for_larger_c() {
        let bound = 2.0 * largest_magnitude(&problem.beta);
        primal = primal.min(primal_of_multiple(problem, levels, rounding, 1.0, bound));
    }
    primal
}

/// Returns the primal objective of `factor` times the function with these levels, plus its largest error by rounding, for
/// bounds of at most `bound`.
fn primal_of_multiple(
    problem: &DualProblem,
    levels: [f64; 2],
    rounding: &Rounding,
    factor: f64,
    bound: f64,
) -> f64 {
    let (mut quadratic, mut losses, mut size) = (0.0, 0.0, 0.0);
    for i in 0..problem.len() {
        let (beta, s) = (problem.beta[i], problem.linear[i]);
        let product = factor * (problem.gradient[i] - s - problem.ridge[i] * beta);
        let level = factor * levels[usize::from(problem.group[i])];
        let at = |by: f64| conjugate_within(level - product - s + by, problem, i, bound);
        let loss = at(factor * rounding.output).max(at(-factor * rounding.output));
        quadratic += factor * beta * product;
        losses += loss - level * beta;
        size += (factor * beta * product).abs() + loss.abs() + (level * beta).abs();
    }
    let sum_error = 0.51 * f64::EPSILON * problem.len() as f64 * size;
    0.5 * quadratic + losses + 0.5 * factor * factor * rounding.quadratic + sum_error
}

/// Returns the level of each group.
fn levels((b, rho): (f64, f64)) -> [f64; 2] {
    [rho - b, -rho - b]
}

/// Returns whether the loss of variable i is linear in its output, with slope -b_i, within an error `off` of the output.
pub(super) fn has_linear_loss(problem: &DualProblem, at: (f64, f64), off: f64, i: usize) -> bool {
    let product = problem.gradient[i] - problem.linear[i] - problem.ridge[i] * problem.beta[i];
    let level = levels(at)[usize::from(problem.group[i])];
    let derivative = level - product - problem.linear[i];
    is_linear_between(derivative, off, losses_at(derivative, off, problem, i), problem, i)
}

/// Returns the losses of variable i if its derivative is `off` less, and if it is `off` more.
fn losses_at(derivative: f64, off: f64, problem: &DualProblem, i: usize) -> (f64, f64) {
    let below = conjugate(derivative - off, problem, i);
    (below, if off == 0.0 { below } else { conjugate(derivative + off, problem, i) })
}

/// Returns whether the coefficient of variable i attains both losses, so that the loss is linear between them.
fn is_linear_between(
    derivative: f64,
    off: f64,
    (below, above): (f64, f64),
    problem: &DualProblem,
    i: usize,
) -> bool {
    let (b, r) = (problem.beta[i], problem.ridge[i]);
    let value = |v: f64| v * b - problem.epsilon * b.abs() - 0.5 * r * b * b;
    b != 0.0 && below <= value(derivative - off) && above <= value(derivative + off)
}

/// Returns max over t in [lower, upper] of v t - e |t| - r t^2 / 2.
#[inline]
fn conjugate(v: f64, problem: &DualProblem, i: usize) -> f64 {
    conjugate_within(v, problem, i, f64::INFINITY)
}

/// Returns the same for bounds of at most `bound`.
#[inline]
fn conjugate_within(v: f64, problem: &DualProblem, i: usize, bound: f64) -> f64 {
    let (lower, upper) = (problem.lower[i].max(-bound), problem.upper[i].min(bound));
    let (e, r) = (problem.epsilon, problem.ridge[i]);
    let value = |t: f64| v * t - e * t.abs() - 0.5 * r * t * t;
    let better = |best: f64, t: f64| if value(t) > best { value(t) } else { best };
    // The function is concave, with a kink at zero: the maximum is there, at a bound, or at a stationary point.
    let mut best = if lower <= 0.0 && upper >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
    if lower.is_finite() {
        best = better(best, lower);
    }
    if upper.is_finite() {
        best = better(best, upper);
    }
    if r > 0.0 {
        for t in [(v - e) / r, (v + e) / r] {
            if t.is_finite() && t >= lower && t <= upper {
                best = better(best, t);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::intercept::intercept;
    use super::*;

    fn certificate(problem: &DualProblem, rounding: &Rounding) -> Certificate {
        certify(problem, intercept(problem), rounding, 1, 1, StopReason::Converged)
    }

    #[test]
    fn a_multiple_without_violation_closes_the_gap_of_a_huge_c() {
        // K = I: the margin is 1 - 5e-4 instead of 1.
        let mut problem = DualProblem::hinge(&[true, false], &[1e9; 2], vec![1.0; 2]);
        let a = 1.0 - 5e-4;
        problem.beta = vec![a, -a];
        problem.gradient = vec![a - 1.0, 1.0 - a];
        for output in [0.0, 1e-4] {
            let rounding = Rounding { output, ..Rounding::default() };
            let certificate = certificate(&problem, &rounding);
            assert!(certificate.dual <= 1.0 && certificate.primal >= 1.0 && certificate.gap < 4e-3);
            assert!(relative_gap(&problem, &certificate) < 1.0);
        }
        // A small gap is that of the function itself.
        (problem.lower, problem.upper) = (vec![0.0, -1.0], vec![1.0, 0.0]);
        let certificate = certificate(&problem, &Rounding::default());
        assert!((certificate.primal - (a * a + 1e-3)).abs() < 1e-12);
    }

    #[test]
    fn gaps_are_relative_to_the_objective_unless_it_is_zero() {
        let mut problem = DualProblem::one_class(&[1.0; 3], 1.5, vec![1.0; 3]);
        let with = |problem: &DualProblem, primal: f64, gap: f64| {
            relative_gap(problem, &Certificate { primal, gap, ..certificate(problem, &Rounding::default()) })
        };
        for (primal, gap, is_small) in
            [(-1.0, 0.09, true), (-1.0, 0.11, false), (0.0, 0.0, true), (1e-6, 1e-4, false)]
        {
            assert_eq!(with(&problem, primal, gap) <= 1.0, is_small, "{primal} {gap}");
        }
        // The vectors cancel: orthogonal ones would have an objective of 0.625.
        assert!(with(&problem, 0.0, 6e-5) <= 1.0 && with(&problem, 0.0, 7e-5) > 1.0);
        problem.linear = vec![-2.0; 3];
        assert!(with(&problem, 0.0, 6e-5) <= 1.0);
        problem.linear[0] = -1.0;
        assert!(with(&problem, 0.0, 1e-9) > 1.0);
    }
}
