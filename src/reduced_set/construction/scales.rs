//! Scales of the columns, which are optimized by their logarithms, and the best state of a run.
//!
//! Invariant: the scales are the exponentials of their logarithms, which are at most `MAX_LOG_SCALE` in magnitude.
//! Cost: a step costs d exponentials, a comparison a copy of the expansion.

use crate::error::Result;
use crate::kernels::TrainableExpansion;
use crate::simd::adam;

/// Maximum magnitude of the logarithm of a scale.
const MAX_LOG_SCALE: f32 = 8.0;

/// The scales of the columns with the state of Adam.
pub(super) struct ColumnScales {
    /// (d,)
    pub(super) values: Vec<f32>,
    /// The scales after the last step over those before it.
    pub(super) factors: Vec<f32>,
    logarithms: Vec<f32>,
    means: Vec<f32>,
    squares: Vec<f32>,
}

impl ColumnScales {
    /// Returns scales of 1.
    pub(super) fn new(d: usize) -> Self {
        Self {
            values: vec![1.0; d],
            factors: vec![1.0; d],
            logarithms: vec![0.0; d],
            means: vec![0.0; d],
            squares: vec![0.0; d],
        }
    }

    /// Takes a step of Adam.
    pub(super) fn step(&mut self, rate: f32, gradient: &[f32]) {
        adam::step(rate, gradient, &mut self.means, &mut self.squares, &mut self.logarithms);
        let columns = self.logarithms.iter_mut().zip(&mut self.values).zip(&mut self.factors);
        for ((logarithm, value), factor) in columns {
            *logarithm = logarithm.clamp(-MAX_LOG_SCALE, MAX_LOG_SCALE);
            let before = std::mem::replace(value, libm::expf(*logarithm));
            *factor = *value / before;
        }
    }
}

/// The state with the smallest loss so far.
#[derive(Default)]
pub(super) struct Best {
    loss: Option<f64>,
    pub(super) state: Option<(TrainableExpansion, ColumnScales)>,
}

impl Best {
    /// Keeps a state if its loss is smaller than all before it.
    pub(super) fn compare(
        &mut self,
        loss: f64,
        expansion: &TrainableExpansion,
        scales: &ColumnScales,
    ) -> Result<()> {
        if self.loss.is_none_or(|best| loss < best) {
            let mut copy = ColumnScales::new(0);
            copy.values.clone_from(&scales.values);
            (self.loss, self.state) = (Some(loss), Some((expansion.copied()?, copy)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_lead_from_the_scales_before_to_those_after() {
        let mut scales = ColumnScales::new(3);
        for step in 0..400 {
            let before = scales.values.clone();
            scales.step(adam::corrected(0.1, step + 1), &[1.0, -1.0, 0.0]);
            for ((before, factor), after) in before.iter().zip(&scales.factors).zip(&scales.values) {
                assert!((before * factor - after).abs() <= 1e-6 * after);
            }
        }
        assert_eq!(scales.values[2], 1.0);
        assert!((scales.values[0].ln() + MAX_LOG_SCALE).abs() < 1e-5);
        assert!((scales.values[1].ln() - MAX_LOG_SCALE).abs() < 1e-5);
    }
}
