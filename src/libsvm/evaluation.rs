//! Accuracy and errors of predictions, and the lines that report them.

use super::numbers::general;

/// The agreement of predictions with targets.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation {
    n_samples: usize,
    n_correct: usize,
    /// Mean squared error of the predictions.
    pub squared_error: f64,
    /// Squared correlation coefficient; NaN if the targets or the predictions are constant.
    pub squared_correlation: f64,
}

/// Compares predictions with targets of the same number.
pub fn evaluate(y: &[f64], predictions: &[f64]) -> Evaluation {
    let n = y.len() as f64;
    let sum = |term: fn(f64, f64) -> f64| y.iter().zip(predictions).map(|(y, v)| term(*y, *v)).sum::<f64>();
    let (sum_y, sum_v) = (sum(|y, _| y), sum(|_, v| v));
    let numerator = n * sum(|y, v| v * y) - sum_v * sum_y;
    let denominator = (n * sum(|_, v| v * v) - sum_v * sum_v) * (n * sum(|y, _| y * y) - sum_y * sum_y);
    Evaluation {
        n_samples: y.len(),
        n_correct: y.iter().zip(predictions).filter(|(y, v)| y == v).count(),
        squared_error: sum(|y, v| (v - y) * (v - y)) / n,
        squared_correlation: if denominator == 0.0 { f64::NAN } else { numerator * numerator / denominator },
    }
}

impl Evaluation {
    /// Returns the accuracy in percent.
    pub fn accuracy(&self) -> f64 {
        100.0 * self.n_correct as f64 / self.n_samples as f64
    }

    /// Returns the lines of `svm-train -v`.
    pub fn cross_validation_lines(&self, is_regression: bool) -> String {
        if is_regression {
            return format!(
                "Cross Validation Mean squared error = {}\nCross Validation Squared correlation coefficient = {}",
                general(self.squared_error, 6),
                general(self.squared_correlation, 6)
            );
        }
        format!("Cross Validation Accuracy = {}%", general(self.accuracy(), 6))
    }

    /// Returns the lines of `svm-predict`.
    pub fn prediction_lines(&self, is_regression: bool) -> String {
        if is_regression {
            return format!(
                "Mean squared error = {} (regression)\nSquared correlation coefficient = {} (regression)",
                general(self.squared_error, 6),
                general(self.squared_correlation, 6)
            );
        }
        let accuracy = general(self.accuracy(), 6);
        format!("Accuracy = {accuracy}% ({}/{}) (classification)", self.n_correct, self.n_samples)
    }
}
