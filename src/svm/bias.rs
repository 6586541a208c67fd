//! The intercept (thesis (2.53), erratum: averaged over all unbounded support vectors).
//!
//! At an optimum f_i = -b for every unbounded support vector. Without one, b is only known to lie between -f of the
//! variables that can rise and those that can fall: the middle of that interval.

use super::problem::DualProblem;

/// b of a solved machine.
pub(super) fn intercept(problem: &DualProblem) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for i in 0..problem.len() {
        if problem.is_unbounded(i) {
            sum += problem.gradient[i];
            count += 1;
        }
    }
    if count > 0 {
        return -sum / count as f64;
    }
    let (up, low) = problem.extremes();
    match (up.is_finite(), low.is_finite()) {
        (true, true) => -f64::midpoint(up, low),
        (true, false) => -up,
        (false, true) => -low,
        (false, false) => 0.0,
    }
}
