//! A finished pursuit: coefficients and losses along the path; and the early stopping of a running one.
//!
//! The capacity of a pursuit is its number of functions. Validation rows decide how many are enough (Vincent and Bengio, 2.1): the
//! pursuit ends after `patience` steps without a better loss or error rate, and the curve keeps all sizes.

use super::task::{MatchingParams, Measure, Task, Validation};
use crate::argmax::argmax;
use crate::context::Stop;
use ndarray::Array2;

/// Sizes and losses, for every step from none on.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    /// The number of candidates in the basis.
    pub sizes: Vec<usize>,
    /// Mean loss of the training rows, all outputs together.
    pub training_loss: Vec<f64>,
    /// The same of the validation rows, as they weigh; empty without.
    pub validation_loss: Vec<f64>,
    /// Share of the validation rows whose class is wrong; empty where targets are not classes.
    pub validation_error: Vec<f64>,
}

/// Coefficients of every size.
#[derive(Debug, Clone)]
pub enum Coefficients {
    /// The coefficients of the first t functions of the basis solve L_t' A = G_t; see [`path_coefficients`](crate::path::path_coefficients).
    Factor {
        /// L, (m, m), lower triangular.
        factor: Array2<f64>,
        /// G, (m, q).
        projections: Array2<f64>,
    },
    /// The coefficients after 0, 1, ... steps, one after the other: (1 or 0 for the constant + size, q) each.
    Steps(Array2<f64>),
}

/// A finished pursuit.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Candidates in the order in which they joined the basis, after the constant where it is there from the start.
    pub order: Vec<usize>,
    /// Coefficients of all sizes, from which those of any size are read.
    pub coefficients: Coefficients,
    /// Sizes and losses.
    pub curve: Curve,
    /// Why the pursuit ended: [`StopReason::Converged`](crate::context::StopReason::Converged) at the tolerance, at the size or
    /// where no function helps any more, [`StopReason::MaxIterations`](crate::context::StopReason::MaxIterations) at the limit
    /// of steps before.
    pub stop: Stop,
}

impl Fit {
    /// A pursuit that was stopped before its first step.
    pub(super) fn nothing(outputs: usize, stop: Stop) -> Self {
        let (factor, projections) = (Array2::zeros((0, 0)), Array2::zeros((0, outputs)));
        let coefficients = Coefficients::Factor { factor, projections };
        Self { order: Vec::new(), coefficients, curve: Curve::default(), stop }
    }
}

/// The curve so far, and the rule of early stopping.
pub(super) struct Stopping<'a> {
    validation: Option<Validation<'a>>,
    patience: Option<usize>,
    measure: Measure,
    pub(super) curve: Curve,
}

impl<'a> Stopping<'a> {
    pub(super) fn new(task: &Task<'a>, params: &MatchingParams) -> Self {
        let (patience, measure) = (params.patience, params.measure);
        Self { validation: task.validation, patience, measure, curve: Curve::default() }
    }

    /// Records the losses of a step; `outputs` (q, n) are those of the validation rows, output after output. Returns true if the
    /// pursuit continues.
    #[must_use]
    pub(super) fn note(&mut self, size: usize, training: f64, validation: f64, outputs: &[f64]) -> bool {
        self.curve.sizes.push(size);
        self.curve.training_loss.push(training);
        if let Some(rows) = self.validation {
            self.curve.validation_loss.push(validation);
            if rows.classes {
                self.curve.validation_error.push(wrong(rows, outputs));
            }
        }
        self.continues()
    }

    /// Removes all but the first steps; returns true if the pursuit continues.
    #[must_use]
    pub(super) fn truncate(&mut self, steps: usize) -> bool {
        self.curve.sizes.truncate(steps);
        self.curve.training_loss.truncate(steps);
        self.curve.validation_loss.truncate(steps);
        self.curve.validation_error.truncate(steps);
        self.continues()
    }

    fn continues(&self) -> bool {
        let values = match self.measure {
            Measure::Error if !self.curve.validation_error.is_empty() => &self.curve.validation_error,
            _ => &self.curve.validation_loss,
        };
        let best = (0..values.len()).reduce(|best, i| if values[i] < values[best] { i } else { best });
        match (self.patience, best) {
            (Some(patience), Some(best)) => values.len() - 1 - best < patience,
            _ => true,
        }
    }
}

/// Share of the weight of rows whose outputs (q, n) are decoded to another class than their targets (n, q).
fn wrong(rows: Validation<'_>, outputs: &[f64]) -> f64 {
    let targets = rows.targets;
    let (n, q) = targets.dim();
    let missed = (0..n).filter(|&i| {
        if q == 1 {
            (targets[[i, 0]] >= 0.0) != (outputs[i] >= 0.0)
        } else {
            argmax(targets.row(i).iter().copied()) != argmax((0..q).map(|j| outputs[j * n + i]))
        }
    });
    let weight: f64 = missed.map(|i| rows.weight(i)).sum();
    if n == 0 { 0.0 } else { weight / rows.total_weight() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::aview2;

    #[test]
    fn classes_are_decoded_and_patience_ends() {
        let rows = |targets, weights| Validation { targets, classes: true, weights };
        let three = [[1.0], [-1.0], [1.0]];
        assert_eq!(wrong(rows(aview2(&three), None), &[0.0, 0.5, -2.0]), 2.0 / 3.0);
        assert_eq!(wrong(rows(aview2(&three), Some(&[2.0, 5.0, 3.0])), &[0.0, 0.5, -2.0]), 0.8);
        // Two rows, three outputs: the second row is wrong.
        let targets = [[1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]];
        let outputs = [0.3, 0.1, 0.2, 0.4, 0.1, 0.2];
        assert_eq!(wrong(rows(aview2(&targets), None), &outputs), 0.5);
        let two = [[1.0], [-1.0]];
        let mut stopping = Stopping {
            validation: Some(rows(aview2(&two), None)),
            patience: Some(2),
            measure: Measure::Loss,
            curve: Curve::default(),
        };
        let mut note = |value: f64| stopping.note(0, 1.0, value, &[1.0, 1.0]);
        assert!(note(3.0) && note(2.0) && note(2.5) && note(1.0) && note(1.0) && !note(1.5));
        assert_eq!(stopping.curve.validation_error, [0.5; 6]);
    }
}
