//! The intercept (Rifkin 2002, (2.53), erratum: averaged over all unbounded support vectors), and the margin of the nu
//! problems.
//!
//! At an optimum the derivative of the objective has one *level* in each group: that of its unbounded variables. Without
//! unbounded variables the level may be anywhere between the derivatives of the maximal pair, and their midpoint is taken.
//! With one group the intercept is minus the level. The two groups of a nu problem lie at rho - b and -rho - b.
//!
//! The level of a one-class machine is at most the derivative of every variable below its upper bound, which lies inside
//! therefore, whatever the violation. Only variables at their bounds lie outside: a weight of at most nu W, the sum of all
//! coefficients.

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
    let level = mean_level(problem, group);
    if !problem.keeps_margin_inside {
        return level;
    }
    level.min(problem.kkt_violation(Context::SEQUENTIAL).maximal_pairs[usize::from(group)].0)
}

fn mean_level(problem: &DualProblem, group: u8) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_machines_have_their_margin_inside() {
        let mut problem = DualProblem::one_class(&[1.0; 4], 1.5, vec![1.0; 4]);
        problem.beta = vec![1.0, 0.25, 0.25, 0.0];
        problem.gradient = vec![0.1, 0.3, 0.5, 0.6];
        assert_eq!(intercept(&problem), (-0.3, 0.0));
        // A variable at zero below the margin.
        problem.gradient[3] = 0.2;
        assert_eq!(intercept(&problem), (-0.2, 0.0));
        // Without unbounded variables the offset lies between the two sides, also for all at their bounds.
        problem.beta = vec![1.0, 0.0, 0.0, 0.0];
        assert_eq!(intercept(&problem), (-f64::midpoint(0.1, 0.2), 0.0));
        problem.beta = vec![1.0; 4];
        assert_eq!(intercept(&problem), (-0.5, 0.0));
        // Other machines take the mean.
        problem.beta = vec![1.0, 0.25, 0.25, 0.0];
        problem.keeps_margin_inside = false;
        assert_eq!(intercept(&problem), (-0.4, 0.0));
    }
}
