//! The objective of constructed vectors: the loss of one row from its outputs f (q,), the outputs f* of the machine that is
//! approximated, and optionally its label.
//!
//! | loss | formula | source |
//! |---|---|---|
//! | matching | 1/2 sum_k (f_k - f*_k)^2 | compressed SVM, eq. 10 |
//! | agreement | cross-entropy between the probabilities of s f and the targets below, over s | Hinton et al., 2015 |
//! | hinge | sum_k max(0, 1 - y_k f_k) | the SVM's own |
//! | squared hinge | 1/2 sum_k max(0, 1 - y_k f_k)^2 | compressed SVM, eq. 1 |
//!
//! Agreement uses the few vectors near the decision boundaries: far from them the probabilities of both machines are 0 or 1
//! and do not restrict f further, whereas matching restricts every value. Its targets are
//! (1 - w) p(s f*) + w [label]: w = 0 imitates the machine, w = 1 is the logistic or softmax loss on the labels.
//! Probabilities are the softmax if the largest output wins, and one sigmoid for each output if signs decide. In
//! one-vs-one coding a label determines only the targets of the pairs of its class; the others are the machine's.
//!
//! Invariant: the gradient is that of the loss returned. Cost: O(q) for a row.

use crate::error::Result;
use crate::memory::TryCollect;
use crate::reduced_set::coding::Coding;

/// The kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Squared difference of the outputs.
    Matching,
    /// Cross-entropy to the machine's probabilities, the labels, or between the two.
    Agreement,
    /// Hinge loss on the labels.
    Hinge,
    /// Squared hinge loss on the labels.
    SquaredHinge,
}

/// A loss with its constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The kind of loss: the numbers with which the outputs of the small expansion are compared.
    pub loss: Loss,
    /// The classes that an output separates, for losses of answers.
    pub coding: Coding,
    /// s, the factor of the outputs in the probabilities.
    pub sharpness: f64,
    /// w: share of the label in the targets of [`Loss::Agreement`].
    pub label_weight: f64,
}

impl Objective {
    /// Returns whether rows need labels.
    pub fn needs_labels(&self) -> bool {
        match self.loss {
            Loss::Matching => false,
            Loss::Agreement => self.label_weight > 0.0,
            Loss::Hinge | Loss::SquaredHinge => true,
        }
    }

    /// Replaces the machine's outputs (rows, q) by the targets of [`Objective::gradient`].
    pub(crate) fn prepare(&self, machine: &mut [f32], q: usize) {
        let s = self.sharpness as f32;
        if self.loss != Loss::Agreement {
            return;
        }
        if self.coding == Coding::Largest {
            for row in machine.chunks_exact_mut(q) {
                let (_, sum) = exponentials(row, s);
                for p in row {
                    *p /= sum;
                }
            }
        } else {
            for p in machine {
                *p = sigmoid(s * *p).0;
            }
        }
    }

    /// Returns the loss of a row, and replaces `outputs` by its gradient. `targets` are the targets of [`Objective::prepare`],
    /// `signs` those of [`Objective::signs`] for the label of the row.
    pub(crate) fn gradient(&self, outputs: &mut [f32], targets: &[f32], signs: Option<&[f32]>) -> f32 {
        let (s, w) = (self.sharpness as f32, self.label_weight as f32);
        match self.loss {
            Loss::Matching => {
                let mut total = 0.0;
                for (f, &target) in outputs.iter_mut().zip(targets) {
                    *f -= target;
                    total += 0.5 * *f * *f;
                }
                total
            }
            Loss::Agreement if self.coding == Coding::Largest => {
                // -sum t log p = log sum e^(s f) - sum t s f, as the targets sum to one.
                let target = |k: usize| match signs {
                    Some(signs) => targets[k] + w * (f32::from(u8::from(signs[k] > 0.0)) - targets[k]),
                    None => targets[k],
                };
                let linear: f32 = outputs.iter().enumerate().map(|(k, f)| target(k) * s * f).sum();
                let (top, sum) = exponentials(outputs, s);
                for (k, f) in outputs.iter_mut().enumerate() {
                    *f = *f / sum - target(k);
                }
                (top + sum.ln() - linear) / s
            }
            Loss::Agreement => {
                let mut total = 0.0;
                for (k, (f, &target)) in outputs.iter_mut().zip(targets).enumerate() {
                    let mut target = target;
                    if let Some(sign) = signs.map(|signs| signs[k]).filter(|&sign| sign != 0.0) {
                        target += w * (0.5 * (1.0 + sign) - target);
                    }
                    // -t log p - (1 - t) log (1 - p) = log (1 + e^x) - t x
                    let x = s * *f;
                    let (p, small) = sigmoid(x);
                    total += x.max(0.0) + small.ln_1p() - target * x;
                    *f = p - target;
                }
                total / s
            }
            Loss::Hinge | Loss::SquaredHinge => {
                let mut total = 0.0;
                for (k, f) in outputs.iter_mut().enumerate() {
                    let y = signs.map_or(0.0, |signs| signs[k]);
                    let lacking = (1.0 - y * *f).max(0.0) * y.abs();
                    if self.loss == Loss::Hinge {
                        total += lacking;
                        *f = if lacking > 0.0 { -y } else { 0.0 };
                    } else {
                        total += 0.5 * lacking * lacking;
                        *f = -y * lacking;
                    }
                }
                total
            }
        }
    }

    /// Returns the sign of every output for each class, 0 if it does not matter: (classes, q).
    pub(crate) fn signs(&self, q: usize) -> Result<Vec<Vec<f32>>> {
        let classes = self.coding.classes(q).unwrap_or(0);
        let sign = |is_positive: bool| if is_positive { 1.0 } else { -1.0 };
        (0..classes)
            .map(|class| match self.coding {
                Coding::Values => Ok(Vec::new()),
                Coding::Sign => Ok(vec![sign(class == 1)]),
                Coding::Largest => Ok((0..q).map(|k| sign(k == class)).collect()),
                Coding::Pairs => (0..classes)
                    .flat_map(|a| (a + 1..classes).map(move |b| (a, b)))
                    .map(|(a, b)| {
                        if class == a {
                            1.0
                        } else if class == b {
                            -1.0
                        } else {
                            0.0
                        }
                    })
                    .try_collect_vec(),
            })
            .collect()
    }
}

/// Replaces f by e^(s f - max); returns the maximum max(s f) and the sum.
fn exponentials(outputs: &mut [f32], s: f32) -> (f32, f32) {
    let top = outputs.iter().fold(f32::NEG_INFINITY, |top, &f| top.max(s * f));
    let mut sum = 0.0;
    for f in outputs {
        *f = (s * *f - top).exp();
        sum += *f;
    }
    (top, sum)
}

/// Returns 1 / (1 + e^-x) and e^-|x|.
fn sigmoid(x: f32) -> (f32, f32) {
    let small = (-x.abs()).exp();
    (if x >= 0.0 { 1.0 } else { small } / (1.0 + small), small)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_equal_differences() {
        let machine = [0.3_f32, -1.2, 0.9];
        // The softmax, from its definition.
        let softmax =
            Objective { loss: Loss::Agreement, coding: Coding::Largest, sharpness: 2.0, label_weight: 0.0 };
        let mut targets = machine;
        softmax.prepare(&mut targets, 3);
        let powers = machine.map(|f| (2.0 * f).exp());
        for (p, power) in targets.iter().zip(powers) {
            assert!((p - power / powers.iter().sum::<f32>()).abs() < 1e-6);
        }
        for coding in [Coding::Values, Coding::Largest, Coding::Pairs] {
            for loss in [Loss::Matching, Loss::Agreement, Loss::Hinge, Loss::SquaredHinge] {
                let objective = Objective { loss, coding, sharpness: 1.7, label_weight: 0.3 };
                let signs = objective.signs(3).unwrap();
                let mut targets = machine;
                objective.prepare(&mut targets, 3);
                for label in 0..signs.len().max(1) {
                    let signs = signs.get(label).map(Vec::as_slice);
                    let f = [0.2_f32, -0.4, 0.15];
                    let value = |f: [f32; 3]| objective.gradient(&mut { f }, &targets, signs);
                    let mut gradient = f;
                    objective.gradient(&mut gradient, &targets, signs);
                    for k in 0..3 {
                        let (mut up, mut down) = (f, f);
                        up[k] += 1e-2;
                        down[k] -= 1e-2;
                        let expected = (value(up) - value(down)) / 2e-2;
                        assert!(
                            (gradient[k] - expected).abs() < 1e-3,
                            "{objective:?} {gradient:?} {k} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn pairs_know_their_classes() {
        let objective =
            Objective { loss: Loss::Hinge, coding: Coding::Pairs, sharpness: 1.0, label_weight: 0.0 };
        assert_eq!(objective.coding.classes(45), Some(10));
        assert_eq!(objective.signs(3).unwrap()[1], [-1.0, 0.0, 1.0]);
    }
}
