//! Accuracy and errors of predictions, in the words of LIBSVM's programs.

use crate::arguments::general;

/// Number of correct predictions, mean squared error, squared correlation coefficient.
pub(crate) fn evaluate(y: &[f64], predictions: &[f64]) -> (usize, f64, f64) {
    let n = y.len() as f64;
    let sum = |f: fn(f64, f64) -> f64| y.iter().zip(predictions).map(|(y, v)| f(*y, *v)).sum::<f64>();
    let correct = y.iter().zip(predictions).filter(|(y, v)| y == v).count();
    let (total_y, total_v) = (sum(|y, _| y), sum(|_, v| v));
    let upper = n * sum(|y, v| v * y) - total_v * total_y;
    let lower = (n * sum(|_, v| v * v) - total_v * total_v) * (n * sum(|y, _| y * y) - total_y * total_y);
    (correct, sum(|y, v| (v - y) * (v - y)) / n, upper * upper / lower)
}

/// The lines of `svm-train -v`.
pub(crate) fn cross_validation_lines(is_regression: bool, y: &[f64], predictions: &[f64]) -> String {
    let (correct, error, correlation) = evaluate(y, predictions);
    if is_regression {
        return format!(
            "Cross Validation Mean squared error = {}\nCross Validation Squared correlation coefficient = {}",
            general(error, 6),
            general(correlation, 6)
        );
    }
    format!("Cross Validation Accuracy = {}%", general(100.0 * correct as f64 / y.len() as f64, 6))
}

/// The lines of `svm-predict`.
pub(crate) fn prediction_lines(is_regression: bool, y: &[f64], predictions: &[f64]) -> String {
    let (correct, error, correlation) = evaluate(y, predictions);
    if is_regression {
        return format!(
            "Mean squared error = {} (regression)\nSquared correlation coefficient = {} (regression)",
            general(error, 6),
            general(correlation, 6)
        );
    }
    let accuracy = general(100.0 * correct as f64 / y.len() as f64, 6);
    format!("Accuracy = {accuracy}% ({correct}/{}) (classification)", y.len())
}
