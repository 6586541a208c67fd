//! When a costly method replaces SMO steps: a back-off by cost.

use std::ops::RangeInclusive;

/// Minimum gain of a useful run, as a share of the possible progress.
const MIN_USEFUL_GAIN: f64 = 0.1;

/// Entries that SMO steps scan before a run of the active-set method, at least: about forty steps in a block of a thousand
/// variables.
const MIN_ACTIVE_SET_SCAN: u64 = 40_000;
/// Maximum number of entries scanned before a run of the active-set method.
const MAX_ACTIVE_SET_SCAN: u64 = 1 << 26;
/// Required ratio of scanned entries to the cost of the first Newton step, which rarely helps among bounded variables.
const FIRST_NEWTON_RATIO: u64 = 8;
/// Maximum of this ratio.
const MAX_NEWTON_RATIO: u64 = 1 << 10;

/// Decides when the SMO steps since the last run of a method have cost enough for the next run.
#[derive(Clone)]
pub(in crate::svm) struct StepBudget {
    /// Kernel matrix entries that SMO steps have scanned since the last run.
    scanned: u64,
    /// Required ratio of scanned entries to the cost of a run.
    ratio: u64,
    /// Range of `ratio`.
    range: RangeInclusive<u64>,
}

impl StepBudget {
    /// Returns a budget with an initial ratio within its range.
    fn new(ratio: u64, range: RangeInclusive<u64>) -> Self {
        Self { scanned: 0, ratio, range }
    }

    /// Returns the budget of Newton steps.
    pub(in crate::svm) fn newton(is_used: bool) -> Self {
        if is_used { Self::new(FIRST_NEWTON_RATIO, 1..=MAX_NEWTON_RATIO) } else { Self::never() }
    }

    /// Returns the budget of the active-set method, whose runs have cost 1.
    pub(in crate::svm) fn active_set(is_used: bool) -> Self {
        let range = MIN_ACTIVE_SET_SCAN..=MAX_ACTIVE_SET_SCAN;
        if is_used { Self::new(MIN_ACTIVE_SET_SCAN, range) } else { Self::never() }
    }

    /// Returns the budget of a method that never runs.
    fn never() -> Self {
        Self::new(u64::MAX, u64::MAX..=u64::MAX)
    }

    /// Adds the cost of an SMO step, in scanned entries.
    #[inline]
    pub(in crate::svm) fn charge(&mut self, entries: u64) {
        self.scanned += entries;
    }

    /// Returns the entries that SMO steps have scanned since the last run.
    pub(super) fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Returns whether a run of the given cost is due.
    #[inline]
    pub(in crate::svm) fn covers(&self, cost: u64) -> bool {
        self.scanned >= self.ratio.saturating_mul(cost)
    }

    /// Records a run that has made the given share of the possible progress: the required ratio is halved after a useful
    /// run and doubled after a useless one.
    pub(in crate::svm) fn record_gain(&mut self, gain: f64) {
        let ratio = if gain > MIN_USEFUL_GAIN { self.ratio / 2 } else { self.ratio.saturating_mul(2) };
        self.ratio = ratio.clamp(*self.range.start(), *self.range.end());
        self.scanned = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn useless_runs_become_rarer_and_useful_ones_more_frequent() {
        let mut budget = StepBudget::new(8, 1..=64);
        let required = |budget: &StepBudget| (0..1000).find(|&cost| !budget.covers(cost)).unwrap();
        budget.charge(800);
        assert_eq!(required(&budget), 101);
        budget.record_gain(0.05);
        budget.charge(800);
        assert_eq!(required(&budget), 51);
        (0..10).for_each(|_| budget.record_gain(0.05));
        budget.charge(6400);
        assert_eq!(required(&budget), 101);
        (0..10).for_each(|_| budget.record_gain(1.0));
        budget.charge(100);
        assert_eq!(required(&budget), 101);
        let mut never = StepBudget::never();
        never.charge(u64::MAX / 2);
        assert!(!never.covers(1));
    }
}
