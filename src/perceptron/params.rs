//! What is fixed along a stream, and the rules that all online learners share.

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::Kernel;

/// What happens when a mistake finds the budget spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// There is no budget.
    Unlimited,
    /// Nothing is learnt any more (Stoptron).
    Stop,
    /// The oldest vector leaves.
    Oldest,
    /// The Forgetron: coefficients shrink, then the oldest leaves.
    Forgetron,
    /// The vector with the largest margin without itself leaves (Crammer, Kandola and Singer 2004).
    Margin,
    /// A random vector leaves (Cavallanti, Cesa-Bianchi and Gentile 2007).
    Random,
    /// The vector without which fewest of the pool are misclassified leaves (Weston, Bordes and Bottou 2005).
    Tightest,
    /// No budget: rows within `eta` of the span of the pool are projected onto it (Orabona et al. 2009).
    Projectron {
        /// Largest distance of a row from the span, in kernel space, at which it is projected.
        eta: f64,
        /// Whether rows that are right with a margin below 1 are learnt from too (Projectron++).
        margin: bool,
    },
}

impl Policy {
    /// Whether it keeps a number for each pair of vectors.
    pub(super) fn keeps_pairs(self) -> bool {
        matches!(self, Self::Tightest | Self::Projectron { .. })
    }

    /// Whether it keeps the outputs at the vectors.
    pub(super) fn keeps_scores(self) -> bool {
        matches!(self, Self::Margin | Self::Tightest)
    }
}

/// What is fixed along a stream.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PerceptronParams {
    /// The kernel; not precomputed.
    pub kernel: Kernel,
    /// Number of classes, at least 2.
    pub classes: usize,
    /// Most vectors, for the policies that have a budget.
    pub budget: usize,
    /// What happens when the budget is spent.
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

    /// Whether the pool may have m vectors.
    pub(super) fn has_room_for(&self, m: usize) -> bool {
        matches!(self.policy, Policy::Unlimited | Policy::Projectron { .. }) || m <= self.budget
    }
}

/// Most rows of a stream, so that counts of them can be added without a thought.
const MOST_ROWS: u64 = 1 << 62;

/// Checks the counts of a stored stream.
pub(super) fn check_counts(seen: u64, mistakes: u64) -> Result<()> {
    Error::check_param(seen <= MOST_ROWS, "seen", seen, format!("at most {MOST_ROWS} rows"))?;
    Error::check_param(mistakes <= seen, "mistakes", mistakes, format!("at most {seen}, the rows seen"))
}

/// Checks what is fixed along a stream.
pub(super) fn check_stream(kernel: &Kernel, classes: usize) -> Result<()> {
    let rule = "computed from rows: a stream has no fixed rows to which kernel values could refer";
    Error::check_param(*kernel != Kernel::Precomputed, "kernel", "precomputed", rule)?;
    Error::check_param(classes > 1, "classes", classes, "at least 2")
}

/// Checks numbers that a row gave: kernel values, or outputs that are sums of them.
pub(super) fn check_values(
    kernel: &Kernel,
    row: usize,
    values: impl IntoIterator<Item = f64>,
    double: bool,
) -> Result<()> {
    // Rows in single precision are answered in single precision later, whatever the values are kept in.
    let (largest, precision) = if double { (f64::MAX, "double") } else { (f64::from(f32::MAX), "single") };
    if values.into_iter().all(|value| value.abs() <= largest) {
        return Ok(());
    }
    let wider = if double { "" } else { ", or give the rows in double precision" };
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
