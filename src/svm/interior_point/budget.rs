//! When the interior-point method runs.

/// Number of iterations that a solution usually takes.
const USUAL_ITERATIONS: u64 = 25;
/// Required ratio of the work of rounds to that of the method.
const COST_RATIO: u64 = 2;

/// Maximum number of variables whose kernel values are factored.
pub(in crate::svm) const MAX_FACTORED: usize = 1024;
/// Minimum work of rounds before that: some tenths of a second.
const MIN_WORK_BEFORE_FACTOR: u64 = 200_000_000;
/// Number of columns that a factor is expected to have at most.
const EXPECTED_COLUMNS: usize = 256;

/// The state of the interior-point method in a machine, in which it runs at most once.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::svm) enum InteriorPoint {
    /// It has not been needed.
    Possible,
    /// It runs as soon as kernel values are in double precision.
    Due,
    /// It has run.
    Done,
    /// The kernel values have no factor of few columns.
    Impossible,
}

/// Returns the work of rounds, in entries scanned and multiply-adds of kernel values, after which the method is due: twice as
/// much as it costs, so that a fit which was about to end takes at most about half as long again.
pub(in crate::svm) fn work_before(variables: usize, columns: usize) -> u64 {
    let (n, d) = (variables as u64, columns as u64);
    COST_RATIO.saturating_mul(USUAL_ITERATIONS).saturating_mul(n.saturating_mul(d * d / 2 + 16 * d + 64))
}

/// Returns the work of rounds after which the kernel values of a few rows are factored for the method. A factor helps where rounds
/// nearly stand still, as for rows whose kernel values are nearly equal, and most machines end long before.
pub(in crate::svm) fn work_before_factor(variables: usize) -> u64 {
    work_before(variables, variables.min(EXPECTED_COLUMNS)).max(MIN_WORK_BEFORE_FACTOR)
}
