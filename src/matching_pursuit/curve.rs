//! Losses along a path, and when to stop: the capacity of a pursuit is its number of functions, and validation rows say
//! how many are enough (Vincent and Bengio, 2.1).

use super::Fit;
use crate::largest::largest;

/// What early stopping looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The mean loss of the validation rows.
    Loss,
    /// The share of wrong classes among them.
    Error,
}

/// Rows that are watched.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// (n, q) row-major.
    pub targets: &'a [f64],
    /// Whether targets are classes: the sign of one output, the largest of several.
    pub classes: bool,
}

/// The curves so far.
pub(super) struct Curve<'a> {
    validation: Option<Validation<'a>>,
    outputs: usize,
    patience: Option<usize>,
    measure: Measure,
    pub(super) sizes: Vec<usize>,
    pub(super) training: Vec<f64>,
    losses: Vec<f64>,
    errors: Vec<f64>,
}

impl<'a> Curve<'a> {
    pub(super) fn new(
        validation: Option<Validation<'a>>,
        outputs: usize,
        patience: Option<usize>,
        measure: Measure,
    ) -> Self {
        Self {
            validation,
            outputs,
            patience,
            measure,
            sizes: Vec::new(),
            training: Vec::new(),
            losses: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Notes a step; `outputs` (q, n) are those of the validation rows, output after output, `loss` gives the mean loss
    /// of targets (n, q) and outputs. Whether to go on.
    pub(super) fn note(
        &mut self,
        size: usize,
        training: f64,
        outputs: &[f64],
        loss: impl FnOnce(&[f64], &[f64]) -> f64,
    ) -> bool {
        self.sizes.push(size);
        self.training.push(training);
        let Some(Validation { targets, classes }) = self.validation else { return true };
        let value = loss(targets, outputs);
        self.losses.push(value);
        if classes {
            self.errors.push(wrong(targets, outputs, self.outputs));
        }
        self.goes_on()
    }

    /// Forgets all but the first steps. Whether to go on.
    pub(super) fn truncate(&mut self, steps: usize) -> bool {
        self.sizes.truncate(steps);
        self.training.truncate(steps);
        self.losses.truncate(steps);
        self.errors.truncate(steps);
        self.goes_on()
    }

    fn goes_on(&self) -> bool {
        let watched = match self.measure {
            Measure::Error if !self.errors.is_empty() => &self.errors,
            _ => &self.losses,
        };
        let best = (0..watched.len()).reduce(|best, i| if watched[i] < watched[best] { i } else { best });
        match (self.patience, best) {
            (Some(patience), Some(best)) => watched.len() - 1 - best < patience,
            _ => true,
        }
    }

    /// Moves the curves into a fit.
    pub(super) fn finish(self, fit: &mut Fit) {
        fit.sizes = self.sizes;
        fit.training_loss = self.training;
        fit.validation_loss = self.losses;
        fit.validation_error = self.errors;
    }
}

/// Share of rows whose outputs (q, n) are decoded to another class than their targets (n, q).
fn wrong(targets: &[f64], outputs: &[f64], q: usize) -> f64 {
    let n = targets.len() / q;
    let count = (0..n).filter(|&i| {
        if q == 1 {
            (targets[i] >= 0.0) != (outputs[i] >= 0.0)
        } else {
            largest((0..q).map(|j| targets[i * q + j])) != largest((0..q).map(|j| outputs[j * n + i]))
        }
    });
    count.count() as f64 / n.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_decoded_and_patience_ends() {
        assert_eq!(wrong(&[1.0, -1.0, 1.0], &[0.0, 0.5, -2.0], 1), 2.0 / 3.0);
        // Two rows, three outputs: the second row is wrong.
        let targets = [1.0, -1.0, -1.0, -1.0, -1.0, 1.0];
        let outputs = [0.3, 0.1, 0.2, 0.4, 0.1, 0.2];
        assert_eq!(wrong(&targets, &outputs, 3), 0.5);
        let validation = Validation { targets: &[1.0, -1.0], classes: true };
        let mut curve = Curve::new(Some(validation), 1, Some(2), Measure::Loss);
        let mut note = |value: f64| curve.note(0, 1.0, &[1.0, 1.0], |_, _| value);
        assert!(note(3.0) && note(2.0) && note(2.5) && note(1.0) && note(1.0) && !note(1.5));
        assert_eq!(curve.errors, [0.5; 6]);
    }
}
