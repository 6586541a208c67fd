//! Detection of machines and blocks without progress.
//!
//! Kernel values that have lost their differences in single precision, or a tolerance below rounding, lead to SMO steps that
//! undo each other, without end. In exact arithmetic an SMO step of length t against a violation v increases the dual
//! objective by at least t v / 2, its *expected gain*. The gain of a stretch of steps from b to b' with gradients g and g' is
//!
//! ```text
//! -1/2 sum (b'_i - b_i) (g_i + g'_i) - e sum (|b'_i| - |b_i|)
//! ```
//!
//! for any steps in between, since the objective is quadratic. Changes sum to zero, so a level may be subtracted from the
//! gradients: terms are then of the size of the violation, and no digit is lost if the objective is large. Gain and expected
//! gain scale alike, so fits with C = 1e12, whose steps are tiny compared with the objective, are not affected. If the
//! violation is within the rounding of the gradients, gains are rounding too, and only a smaller violation counts.
//!
//! A machine or a block has stalled if, in many stretches in a row, neither a thousandth of the expected gain was reached
//! nor the violation fell clearly below its smallest value.
//!
//! Cost: O(changed variables) per round, O(block) per stretch of about ten milliseconds.

/// Minimum gain of a stretch with progress, relative to the expected gain.
const MIN_GAIN_RATIO: f64 = 1e-3;
/// Maximum violation of a stretch with progress, relative to the smallest one before.
const MAX_VIOLATION_RATIO: f64 = 0.99;

/// Number of roundings of a gradient up to which a violation is rounding alone.
pub(super) const NEGLIGIBLE_ROUNDINGS: f64 = 4.0;
/// Number of roundings of a gradient up to which gains may be rounding, and only a smaller violation is progress.
pub(super) const UNCERTAIN_ROUNDINGS: f64 = 64.0;

/// Returns the error that one rounding adds to a gradient, from the largest gradient, coefficient and k(x, x).
pub(super) fn rounding([gradient, coefficient, diagonal]: [f64; 3]) -> f64 {
    f64::EPSILON * (gradient + coefficient * diagonal)
}

pub(super) fn largest_magnitude(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, v| largest.max(v.abs()))
}

/// A variable in two states: its coefficients, and the mean of its gradients.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) gradient: f64,
    pub(super) group: u8,
}

/// Returns the gain in the dual objective between two states. Without an equality constraint the level is zero.
pub(super) fn dual_gain(
    changes: impl Iterator<Item = Change> + Clone,
    epsilon: f64,
    has_equality: bool,
) -> f64 {
    let mut weighted = [(0.0, 0.0); 2];
    for c in changes.clone().take_while(|_| has_equality) {
        let (sum, weight) = &mut weighted[usize::from(c.group)];
        *sum += (c.to - c.from).abs() * c.gradient;
        *weight += (c.to - c.from).abs();
    }
    let levels = weighted.map(|(sum, weight)| if weight > 0.0 { sum / weight } else { 0.0 });
    changes
        .map(|c| {
            let slope = c.gradient - levels[usize::from(c.group)];
            -(c.to - c.from) * slope - epsilon * (c.to.abs() - c.from.abs())
        })
        .sum()
}

/// Counts the stretches of a machine or a block without progress.
pub(super) struct StallDetector {
    smallest_violation: f64,
    idle: u32,
}

impl StallDetector {
    pub(super) fn new() -> Self {
        Self { smallest_violation: f64::INFINITY, idle: 0 }
    }

    /// Records a stretch, and returns the number of stretches since the last progress. Violations up to `floor` may be
    /// rounding.
    pub(super) fn record_stretch(
        &mut self,
        gain: f64,
        expected_gain: f64,
        violation: f64,
        floor: f64,
    ) -> u32 {
        let has_progress = (violation > floor && gain > MIN_GAIN_RATIO * expected_gain)
            || violation < MAX_VIOLATION_RATIO * self.smallest_violation;
        self.smallest_violation = self.smallest_violation.min(violation);
        self.idle = if has_progress { 0 } else { self.idle + 1 };
        self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gains_of_a_large_objective_count_and_cycles_do_not() {
        // Two variables with gradients of 1e9 that differ by a thousandth.
        let step = |from: f64, to: f64| {
            [(from, to, 1e9), (-from, -to, 1e9 + 1e-3)].map(|(from, to, gradient)| Change {
                from,
                to,
                gradient,
                group: 0,
            })
        };
        let forth = dual_gain(step(1e6, 1e6 + 1.0).into_iter(), 0.0, true);
        let back = dual_gain(step(1e6 + 1.0, 1e6).into_iter(), 0.0, true);
        assert!((forth - 1e-3).abs() < 1e-6 && (back + 1e-3).abs() < 1e-6, "{forth} {back}");
        let mut stall = StallDetector::new();
        for _ in 0..100 {
            assert_eq!(stall.record_stretch(forth, 1e-3, 1.0, 0.0), 0);
        }
        for idle in 1..50 {
            assert_eq!(stall.record_stretch(forth + back, 2e-3, 1.0, 0.0), idle);
        }
        assert_eq!(stall.record_stretch(back, 1e-3, 0.5, 0.0), 0);
        // Within the rounding of the gradients only a smaller violation counts.
        let floor = rounding([3.0, 10.0, 2.0]);
        assert_eq!(floor, 23.0 * f64::EPSILON);
        assert_eq!(stall.record_stretch(forth, 1e-3, 0.1 * floor, floor), 0);
        assert_eq!(stall.record_stretch(forth, 1e-3, 0.1 * floor, floor), 1);
    }
}
