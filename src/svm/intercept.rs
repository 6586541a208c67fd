//! The intercept (Rifkin 2002, (2.53), erratum: averaged over all unbounded support vectors), and the margin of the nu
//! problems.
//!
//! At an optimum the derivative of the objective has one *level* in each group: that of its unbounded variables. Without
//! unbounded variables the level may be anywhere between the derivatives of the maximal pair, and their midpoint is taken.
//! With one group the intercept is minus the level. The two groups of a nu problem lie at rho - b and -rho - b.

use super::problem::DualProblem;
use crate::context::Context;

/// Returns b and rho of a solved machine; rho is 0 except for the nu problems.
pub(super) fn intercept(problem: &DualProblem) -> (f64, f64) {
    if !problem.has_equality {
        return (0.0, 0.0);
    }
    let first = level(problem, 0);
    if !problem.group.contains(&1) {
        return (-first, 0.0);
    }
    let second = level(problem, 1);
    (-f64::midpoint(first, second), 0.5 * (first - second))
}

/// Returns the length of the interval in which an intercept keeps the optimality conditions: 0 with an unbounded variable, without an
/// intercept, and for the nu problems.
pub(super) fn intercept_range(problem: &DualProblem) -> f64 {
    let is_fixed = !problem.has_equality || problem.group.contains(&1);
    if is_fixed || (0..problem.len()).any(|i| problem.is_unbounded(i)) {
        return 0.0;
    }
    let (up, low) = problem.kkt_violation(Context::SEQUENTIAL).maximal_pairs[0];
    if up.is_finite() && low.is_finite() { (up - low).max(0.0) } else { 0.0 }
}

fn level(problem: &DualProblem, group: u8) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for i in (0..problem.len()).filter(|&i| problem.group[i] == group && problem.is_unbounded(i)) {
        sum += problem.up_derivative(i);
        count += 1;
    }
    if count > 0 {
        return sum / count as f64;
    }
    let (up, low) = problem.kkt_violation(Context::SEQUENTIAL).maximal_pairs[usize::from(group)];
    match (up.is_finite(), low.is_finite()) {
        (true, true) => f64::midpoint(up, low),
        (true, false) => up,
        (false, true) => low,
        (false, false) => 0.0,
    }
}
