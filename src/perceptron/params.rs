//! Parameters of a stream, and the checks that all online learners share.
//!
//! Cost: a check reads each value once.

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::Kernel;

/// The rule for a mistake when the pool is full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// The pool has no budget.
    Unlimited,
    /// Stoptron: the learner stops learning.
    Stop,
    /// The oldest vector is removed.
    Oldest,
    /// The Forgetron: coefficients shrink, then the oldest vector is removed.
    Forgetron,
    /// The vector with the largest margin without itself is removed (Crammer, Kandola and Singer 2004).
    Margin,
    /// A random vector is removed (Cavallanti, Cesa-Bianchi and Gentile 2007).
    Random,
    /// The vector without which the fewest vectors of the pool are misclassified is removed (Weston, Bordes and Bottou 2005).
    Tightest,
    /// The pool has no budget, and rows within `eta` of its span are projected onto the span (Orabona et al. 2009).
    Projectron {
        /// Largest distance of a row from the span, in kernel space, at which it is projected.
        eta: f64,
        /// Learns from correct answers with a margin below 1, too (Projectron++).
        margin: bool,
    },
}

impl Policy {
    /// Returns whether the policy keeps a number for each pair of vectors.
    pub(super) fn keeps_pairs(self) -> bool {
        matches!(self, Self::Tightest | Self::Projectron { .. })
    }

    /// Returns whether the policy keeps the outputs at the vectors.
    pub(super) fn keeps_scores(self) -> bool {
        matches!(self, Self::Margin | Self::Tightest)
    }
}

/// Parameters of a stream.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PerceptronParams {
    /// The kernel; not precomputed.
    pub kernel: Kernel,
    /// Number of classes, at least 2.
    pub classes: usize,
    /// Maximum number of vectors, for the policies that have a budget.
    pub budget: usize,
    /// The rule for a mistake when the pool is full.
    pub policy: Policy,
}

impl PerceptronParams {
    /// Returns the parameters of a policy with a budget of 100 vectors, which the policies without a budget do not use.
    pub fn new(kernel: Kernel, classes: usize, policy: Policy) -> Self {
        Self { kernel, classes, budget: 100, policy }
    }

    /// Checks every parameter against its rule.
    pub fn check(&self) -> Result<()> {
        self.kernel.check()?;
        check_stream(&self.kernel, self.classes)?;
        Error::check_param(self.budget > 0, "budget", 0, "at least 1")?;
        if let Policy::Projectron { eta, .. } = self.policy {
            Error::check_not_negative("eta", eta)?;
        }
        Ok(())
    }

    /// Returns whether the pool may have m vectors.
    pub(super) fn allows(&self, m: usize) -> bool {
        matches!(self.policy, Policy::Unlimited | Policy::Projectron { .. }) || m <= self.budget
    }
}

/// Maximum number of rows of a stream, so that sums of two counts do not overflow.
const MAX_STREAM_ROWS: u64 = 1 << 62;

/// Checks the counts of a stored stream.
pub(super) fn check_counts(seen: u64, mistakes: u64) -> Result<()> {
    Error::check_param(seen <= MAX_STREAM_ROWS, "seen", seen, format!("at most {MAX_STREAM_ROWS} rows"))?;
    Error::check_param(mistakes <= seen, "mistakes", mistakes, format!("at most {seen}, the rows seen"))
}

/// Checks the kernel and the number of classes of a stream.
pub(super) fn check_stream(kernel: &Kernel, classes: usize) -> Result<()> {
    let rule = "computed from rows: a stream has no fixed rows to which kernel values could refer";
    Error::check_param(*kernel != Kernel::Precomputed, "kernel", "precomputed", rule)?;
    Error::check_param(classes > 1, "classes", classes, "at least 2")
}

/// Checks the kernel values of a row, or its outputs, which are sums of them.
pub(super) fn check_values(
    kernel: &Kernel,
    row: usize,
    values: impl IntoIterator<Item = f64>,
    is_double: bool,
) -> Result<()> {
    // Predictions for rows in single precision are computed in single precision, whatever precision the values have here.
    let (largest, precision) = if is_double { (f64::MAX, "double") } else { (f64::from(f32::MAX), "single") };
    if values.into_iter().all(|value| value.abs() <= largest) {
        return Ok(());
    }
    let wider = if is_double { "" } else { ", or give the rows in double precision" };
    Err(Error::param(
        "X",
        format!("(row {row})"),
        format!(
            "small enough for the {} kernel: values and outputs stay below {largest:.1e} in {precision} \
             precision; scale the rows or lower gamma{wider}",
            kernel.name()
        ),
    ))
}

/// Checks the rows and the labels of a piece of a stream.
pub(super) fn check_piece(
    kernel: &Kernel,
    classes: usize,
    features: usize,
    rows: Rows<'_>,
    labels: &[usize],
) -> Result<()> {
    Error::check_len("labels (one for each row)", rows.rows(), labels.len())?;
    Error::check_len("columns of X", features, rows.cols())?;
    Error::check_below("labels", labels, classes, "the number of classes")?;
    rows.check_finite("X")?;
    kernel.check_rows("X", rows)
}
