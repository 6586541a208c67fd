//! The sigmoid p(f) = 1 / (1 + exp(a f + b)) of outputs f, by the method of Lin, Lin and Weng (2007), "A note on Platt's
//! probabilistic outputs for support vector machines".
//!
//! Problem: the minimum over a and b of the weighted log loss with Platt's targets, (n1 + 1) / (n1 + 2) for the first class and
//! 1 / (n2 + 2) for the second, plus half of a penalty on b². The loss is convex. Method: Newton's with backtracking.
//! Invariant: no step raises the loss. Cost: O(n) for each of at most 100 steps.

use crate::context::Context;
use crate::error::{Error, Result};

const MAX_STEPS: usize = 100;
/// Largest component of the gradient at the optimum.
const TOLERANCE: f64 = 1e-5;
/// Smallest step length of the line search.
const MIN_STEP_LENGTH: f64 = 1e-10;
/// Added to the diagonal of the Hessian matrix, which is singular for equal outputs.
const RIDGE: f64 = 1e-12;

/// p(f) = 1 / (1 + exp(a f + b)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sigmoid {
    /// Factor of the output; negative where larger outputs are more probable.
    pub a: f64,
    /// Offset: the negative log odds at the output 0.
    pub b: f64,
}

impl Sigmoid {
    /// Returns the probability for an output.
    pub fn probability(self, output: f64) -> f64 {
        logistic(-(self.a * output + self.b))
    }
}

/// 1 / (1 + exp(-z)), without an overflow.
fn logistic(z: f64) -> f64 {
    let e = (-z.abs()).exp();
    if z >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// Returns the sigmoid for the probability of the first class.
///
/// `outputs`, `is_first` and `weights` (n,) are those of the samples; `offset_penalty` times the sum of the weights is the
/// factor of b² / 2, and 0 gives LIBSVM's fit.
///
/// # Errors
/// [`Error::Param`] for lengths that differ and numbers that are not finite, [`Error::Stopped`].
pub fn fit_sigmoid(
    outputs: &[f64],
    is_first: &[bool],
    weights: &[f64],
    offset_penalty: f64,
    ctx: Context<'_>,
) -> Result<Sigmoid> {
    Error::check_len("classes of the samples", outputs.len(), is_first.len())?;
    Error::check_len("weights of the samples", outputs.len(), weights.len())?;
    Error::check_not_negative("offset_penalty", offset_penalty)?;
    for (name, values) in [("outputs", outputs), ("weights", weights)] {
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(Error::param(name, value, "finite"));
        }
    }
    let samples = || outputs.iter().zip(is_first).zip(weights).map(|((f, first), w)| (*f, *first, *w));
    let (ones, zeros) = samples().fold(
        (0.0, 0.0),
        |(ones, zeros), (_, first, w)| if first { (ones + w, zeros) } else { (ones, zeros + w) },
    );
    let penalty = offset_penalty * (ones + zeros);
    let target = |first: bool| if first { (ones + 1.0) / (ones + 2.0) } else { 1.0 / (zeros + 2.0) };
    // -ln p of the target's share plus -ln (1 - p) of the rest.
    let loss = |s: Sigmoid| {
        let term = |(f, first, w): (f64, bool, f64)| {
            let z = s.a * f + s.b;
            w * ((-z).max(0.0) + (-z.abs()).exp().ln_1p() + target(first) * z)
        };
        samples().map(term).sum::<f64>() + 0.5 * penalty * s.b * s.b
    };
    let mut now = Sigmoid { a: 0.0, b: ((zeros + 1.0) / (ones + 1.0)).ln() };
    let mut value = loss(now);
    for step in 0..MAX_STEPS {
        ctx.check("sigmoid", step, MAX_STEPS)?;
        let (mut ga, mut gb) = (0.0, penalty * now.b);
        let (mut haa, mut hab, mut hbb) = (RIDGE, 0.0, penalty + RIDGE);
        for (f, first, w) in samples() {
            let p = now.probability(f);
            let (slope, curvature) = (w * (target(first) - p), w * p * (1.0 - p));
            ga += slope * f;
            gb += slope;
            haa += curvature * f * f;
            hab += curvature * f;
            hbb += curvature;
        }
        if ga.abs().max(gb.abs()) < TOLERANCE {
            break;
        }
        let determinant = haa * hbb - hab * hab;
        let (da, db) = ((hab * gb - hbb * ga) / determinant, (hab * ga - haa * gb) / determinant);
        let descent = ga * da + gb * db;
        let mut length = 1.0;
        let next = loop {
            let next = Sigmoid { a: now.a + length * da, b: now.b + length * db };
            let next_value = loss(next);
            if next_value < value + 1e-4 * length * descent {
                value = next_value;
                break Some(next);
            }
            length /= 2.0;
            if length < MIN_STEP_LENGTH {
                break None;
            }
        };
        let Some(next) = next else { break };
        now = next;
    }
    Ok(now)
}

#[cfg(test)]
mod tests {
    use super::{Sigmoid, fit_sigmoid, logistic};
    use crate::context::Context;

    #[test]
    fn the_loss_has_no_slope_at_the_result() {
        let outputs = [3.0, 2.0, 0.5, -0.2, -1.0, -2.5, 0.1];
        let is_first = [true, true, false, true, false, false, false];
        let weights = [1.0, 2.0, 1.0, 0.5, 1.0, 3.0, 0.0];
        for penalty in [0.0, 0.03] {
            let fitted = fit_sigmoid(&outputs, &is_first, &weights, penalty, Context::SEQUENTIAL).unwrap();
            let (ones, zeros) = (3.5, 5.0);
            let loss = |s: Sigmoid| {
                let mut sum = 0.5 * penalty * (ones + zeros) * s.b * s.b;
                for i in 0..7 {
                    let t = if is_first[i] { (ones + 1.0) / (ones + 2.0) } else { 1.0 / (zeros + 2.0) };
                    let p = s.probability(outputs[i]);
                    sum -= weights[i] * (t * p.ln() + (1.0 - t) * (1.0 - p).ln());
                }
                sum
            };
            let h = 1e-5;
            let slope_a =
                loss(Sigmoid { a: fitted.a + h, ..fitted }) - loss(Sigmoid { a: fitted.a - h, ..fitted });
            let slope_b =
                loss(Sigmoid { b: fitted.b + h, ..fitted }) - loss(Sigmoid { b: fitted.b - h, ..fitted });
            assert!(slope_a.abs().max(slope_b.abs()) / (2.0 * h) < 2e-5, "{penalty}: {slope_a} {slope_b}");
        }
    }

    #[test]
    fn extreme_outputs_stay_finite() {
        assert_eq!((logistic(1e3), logistic(-1e3), logistic(0.0)), (1.0, 0.0, 0.5));
        let fitted =
            fit_sigmoid(&[1e8, -1e8], &[true, false], &[1.0, 1.0], 0.0, Context::SEQUENTIAL).unwrap();
        assert!(fitted.a.is_finite() && fitted.b.is_finite());
        let refused = |outputs: &[f64], weights: &[f64]| {
            fit_sigmoid(outputs, &[true, false], weights, 0.0, Context::SEQUENTIAL).is_err()
        };
        assert!(refused(&[f64::NAN, 0.0], &[1.0, 1.0]));
        assert!(refused(&[1.0, 0.0], &[1.0]));
        assert!(refused(&[1.0, 0.0], &[1.0, f64::INFINITY]));
    }
}
