//! When the interior-point method runs.

/// Number of iterations that a solution usually takes.
const USUAL_ITERATIONS: u64 = 25;
/// Required ratio of the work of rounds to that of the method.
const COST_RATIO: u64 = 2;

/// The state of the interior-point method in a machine, in which it runs at most once.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::svm) enum InteriorPoint {
    /// It has not been needed.
    Possible,
    /// It runs as soon as kernel values are in double precision.
    Due,
    /// It has run.
    Done,
}

/// Returns the work of rounds, in entries scanned and multiply-adds of kernel values, after which the method is due: twice as
/// much as it costs, so that a fit which was about to end takes at most about half as long again.
pub(in crate::svm) fn work_before(variables: usize, columns: usize) -> u64 {
    let (n, d) = (variables as u64, columns as u64);
    COST_RATIO.saturating_mul(USUAL_ITERATIONS).saturating_mul(n.saturating_mul(d * d / 2 + 16 * d + 64))
}
