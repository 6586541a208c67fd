//! Whether the gap of a machine is a small share of its objective, and the tolerance of one whose gap is not.
//!
//! A violation within the tolerance may leave a large gap. The machine then continues with a smaller tolerance, unless the gap is
//! rounding, or is not worth more steps.

use super::super::certificate::{Rounding, relative_gap};
use super::super::interior_point::InteriorPoint;
use super::super::precision::Accuracy;
use super::super::stall::UNCERTAIN_ROUNDINGS;
use super::state::State;
use super::{MAX_STEPS_PER_VARIABLE, Machine};
use crate::context::StopReason;

/// Minimum and maximum of the next tolerance of a machine with a large gap, relative to its violation.
const MIN_TOLERANCE_RATIO: f64 = 0.1;
const MAX_TOLERANCE_RATIO: f64 = 0.5;
/// Maximum violation of a machine that ends with a large gap, relative to the spread of the targets.
const MAX_SPREAD_SHARE: f64 = 1e-3;
/// Multiple of `MAX_STEPS_PER_VARIABLE` that ends a machine whose violation is only within the tolerance of the fit.
const MAX_STEP_RATIO: u64 = 5;
/// Maximum number of multiply-adds for which a machine continues at its present rate to close its gap: those of a day.
const MAX_REMAINING_WORK: f64 = 1e14;

impl Machine<'_> {
    /// Returns the maximum error of an output by rounding, which falls with the tolerance.
    pub(in crate::svm) fn max_rounding(&self, accuracy: Accuracy) -> f64 {
        accuracy.max_rounding * (self.tolerance / self.max_tolerance)
    }

    /// Returns whether the gap is a small share of the objective, with the rounding that is known, if the fit is certified.
    /// Without a violation nothing can be gained.
    pub(in crate::svm) fn has_small_gap(&self, accuracy: Accuracy) -> bool {
        !accuracy.is_certified || self.kkt.largest() <= 0.0 || self.relative_gap() <= 1.0
    }

    /// Returns the gap relative to the largest one of a solved machine.
    pub(in crate::svm) fn relative_gap(&self) -> f64 {
        let certificate = match &self.state {
            State::Finished(outcome) => outcome.certificate,
            _ => self.certified(self.problem(), &Rounding::default(), StopReason::Stalled).certificate,
        };
        relative_gap(self.problem(), &certificate)
    }

    /// Returns whether the violation is within the tolerance and so small that gains may be rounding.
    pub(in crate::svm) fn has_irreducible_gap(&self, violation: f64) -> bool {
        violation <= self.tolerance && violation <= UNCERTAIN_ROUNDINGS * self.kkt.rounding()
    }

    /// Returns whether the gap is not worth more steps, after many. An objective that is next to nothing, as that of tiny targets
    /// is, leaves a gap that is a large share of it at every violation that can be reached: one within the tolerance of the fit
    /// suffices if it is small against the spread of the targets, and after more steps in any case. Where the interior-point method
    /// has not found the solution, kernel values have too few digits for steps to find it.
    pub(in crate::svm) fn has_costly_gap(&self, violation: f64) -> bool {
        let linear = &self.problem().linear;
        let per_variable = self.iterations / linear.len().max(1) as u64;
        if per_variable < MAX_STEPS_PER_VARIABLE {
            return false;
        }
        if self.interior_point == InteriorPoint::Done || self.gains_too_slowly() {
            return true;
        }
        if per_variable >= MAX_STEP_RATIO * MAX_STEPS_PER_VARIABLE {
            return violation <= self.max_tolerance;
        }
        let smallest = linear.iter().fold(f64::INFINITY, |smallest, s| smallest.min(*s));
        let spread = linear.iter().fold(f64::NEG_INFINITY, |largest, s| largest.max(*s)) - smallest;
        violation <= self.max_tolerance.min(MAX_SPREAD_SHARE * spread)
    }

    /// Returns whether the gap would remain after a day of steps that gain as much as the last ones. Kernel values of many orders of
    /// magnitude lead to such steps; LIBSVM's end after a fixed number.
    fn gains_too_slowly(&self) -> bool {
        let gap = self.certified(self.problem(), &Rounding::default(), StopReason::Stalled).certificate.gap;
        gap.is_finite() && self.gain_rate * MAX_REMAINING_WORK < gap
    }

    /// Lowers a tolerance that left too large a gap, if the violation is within it. All bounds that count as infinite give the same
    /// tolerance, so that they have the same solution.
    pub(in crate::svm) fn tighten_tolerance(&mut self, violation: f64) {
        if violation <= self.tolerance {
            let min_tolerance = UNCERTAIN_ROUNDINGS * self.kkt.rounding();
            let problem = self.problem();
            self.tolerance = if !problem.keeps_margin_inside && problem.has_infinite_bounds() {
                min_tolerance
            } else {
                let share = (0.5 / self.relative_gap()).clamp(MIN_TOLERANCE_RATIO, MAX_TOLERANCE_RATIO);
                min_tolerance.max(share * violation)
            };
        }
    }
}
