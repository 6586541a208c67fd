//! When a machine gets nowhere: kernel values that have lost their differences in single precision, or a tolerance below
//! rounding, make pair steps that undo each other, and without a limit they would go on for ever.
//!
//! In exact arithmetic a pair step of length t against a violation v raises the dual objective by at least t v / 2: that is
//! what it *promises*. What a stretch of steps from b to b' with gradients g and g' has brought is
//!
//! ```text
//! -1/2 sum (b'_i - b_i) (g_i + g'_i) - e sum (|b'_i| - |b_i|)
//! ```
//!
//! whatever happened in between, since the objective is quadratic. Changes sum to zero, so a level may be taken off the
//! gradients: terms are of the size of the violation, and no digit is lost where the objective is large. Both numbers
//! scale alike, so fits with C = 1e12 whose steps are tiny beside the objective keep what they promise, and only steps
//! that undo each other do not. Where the violation is within the rounding of the gradients, rises are rounding too, and only
//! a violation that falls counts. A machine, or a block, has stalled when in many stretches in a row neither a thousandth of
//! the promise came true nor the violation fell clearly below the smallest that it had.
//!
//! Cost: O(changed variables) a round, O(block) a stretch of some ten milliseconds.

/// Share of the promised rise that counts as progress.
const KEPT: f64 = 1e-3;
/// The same for the violation: by how much the smallest must fall.
const CLOSER: f64 = 0.99;

/// Roundings of a gradient below which a violation is rounding alone: there is nothing left to do.
pub(super) const BELOW_DOUBT: f64 = 4.0;
/// Roundings of a gradient below which rises may be rounding, and only a violation that falls is progress.
pub(super) const IN_DOUBT: f64 = 64.0;

/// What one rounding adds to a gradient, from the largest gradient, the largest coefficient and the largest k(x, x).
pub(super) fn rounding(gradients: &[f64], coefficients: &[f64], diagonal: &[f64]) -> f64 {
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    f64::EPSILON * (largest(gradients) + largest(coefficients) * largest(diagonal))
}

/// One variable between two states: its coefficients, and the mean of its gradients.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) gradient: f64,
    pub(super) group: u8,
}

/// How the dual objective rises between two states; anchored machines keep no sum, and their level is zero.
pub(super) fn rise(changes: impl Iterator<Item = Change> + Clone, kink: f64, anchored: bool) -> f64 {
    let mut weighted = [(0.0, 0.0); 2];
    for c in changes.clone().take_while(|_| !anchored) {
        let (sum, weight) = &mut weighted[usize::from(c.group)];
        *sum += (c.to - c.from).abs() * c.gradient;
        *weight += (c.to - c.from).abs();
    }
    let levels = weighted.map(|(sum, weight)| if weight > 0.0 { sum / weight } else { 0.0 });
    changes
        .map(|c| {
            let slope = c.gradient - levels[usize::from(c.group)];
            -(c.to - c.from) * slope - kink * (c.to.abs() - c.from.abs())
        })
        .sum()
}

/// The watch over a machine or a block.
pub(super) struct Stall {
    smallest: f64,
    idle: u32,
}

impl Stall {
    pub(super) fn new() -> Self {
        Self { smallest: f64::INFINITY, idle: 0 }
    }

    /// Takes in what a stretch has brought and what it promised, and the violation now; for how many stretches there has
    /// been no progress. `rounding` is that of the gradients.
    pub(super) fn idle_after(&mut self, rise: f64, promise: f64, violation: f64, rounding: f64) -> u32 {
        let progress = (violation > rounding && rise > KEPT * promise) || violation < CLOSER * self.smallest;
        self.smallest = self.smallest.min(violation);
        self.idle = if progress { 0 } else { self.idle + 1 };
        self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rises_of_a_large_objective_count_and_cycles_do_not() {
        // Two variables at gradients of 1e9 that differ by a thousandth.
        let step = |from: f64, to: f64| {
            [(from, to, 1e9), (-from, -to, 1e9 + 1e-3)].map(|(from, to, gradient)| Change {
                from,
                to,
                gradient,
                group: 0,
            })
        };
        let forth = rise(step(1e6, 1e6 + 1.0).into_iter(), 0.0, false);
        let back = rise(step(1e6 + 1.0, 1e6).into_iter(), 0.0, false);
        assert!((forth - 1e-3).abs() < 1e-6 && (back + 1e-3).abs() < 1e-6, "{forth} {back}");
        let mut stall = Stall::new();
        for _ in 0..100 {
            assert_eq!(stall.idle_after(forth, 1e-3, 1.0, 0.0), 0);
        }
        for look in 1..50 {
            assert_eq!(stall.idle_after(forth + back, 2e-3, 1.0, 0.0), look);
        }
        assert_eq!(stall.idle_after(back, 1e-3, 0.5, 0.0), 0);
        // Within the rounding of the gradients only a smaller violation counts.
        let floor = rounding(&[1.0, -3.0], &[0.5, -10.0], &[2.0, 1.0]);
        assert_eq!(floor, 23.0 * f64::EPSILON);
        assert_eq!(stall.idle_after(forth, 1e-3, 0.1 * floor, floor), 0);
        assert_eq!(stall.idle_after(forth, 1e-3, 0.1 * floor, floor), 1);
    }
}
