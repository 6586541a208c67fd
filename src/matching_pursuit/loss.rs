//! Losses L(y, f) of one output, and the best step along one function (Vincent and Bengio, 3.1 and 3.2). With the margin
//! m = y f for targets y = -1 and 1:
//!
//! | loss | formula |
//! |---|---|
//! | squared error | 1/2 (f - y)^2 |
//! | squared error after tanh | (tanh f - 0.65 y)^2 |
//! | logistic | log2 (1 + e^(-2 m)) |
//! | exponential | e^(-m) |
//! | one minus tanh | 1 - tanh m |
//! | squared hinge | max(0, 1 - m)^2 |
//! | soft margin | max(0, 1 - m), its corner a parabola over .1: a slope that jumps has no second derivative to follow |
//! | Huber | 1/2 (f - y)^2 up to a difference of delta, then delta (|f - y| - delta / 2) |

use crate::error::Result;
use crate::memory::try_vec;

/// A loss on whole vectors: y and f of all rows, for one output.
pub trait Loss: Sync {
    /// Writes L, its slope or its second derivative in f to `out`.
    ///
    /// A failure is the implementor's to remember: it writes zeros, and has the fit's
    /// [`Monitor`](crate::context::Monitor) answer `Break`.
    fn fill(&self, what: Derivative, y: &[f64], f: &[f64], out: &mut [f64]);
}

/// Which derivative in f.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derivative {
    /// L itself.
    Value,
    /// dL / df.
    First,
    /// d^2 L / df^2.
    Second,
}

/// The losses of the crate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BuiltIn {
    /// 1/2 (f - y)^2
    Squared,
    /// (tanh f - 0.65 y)^2
    SquaredTanh,
    /// log2 (1 + e^(-2 m))
    Logistic,
    /// e^(-m)
    Exponential,
    /// 1 - tanh m
    OneMinusTanh,
    /// max(0, 1 - m)^2
    SquaredHinge,
    /// max(0, 1 - m) with a rounded corner
    SoftMargin,
    /// Quadratic up to `delta`, then linear.
    Huber {
        /// The residual from which it is linear, positive.
        delta: f64,
    },
}

/// Width of the soft margin's parabola below m = 1: (1 - m)^2 / (2 CORNER_WIDTH), then 1 - m - CORNER_WIDTH / 2.
const CORNER_WIDTH: f64 = 0.1;

/// Target of tanh: where its second derivative is about largest (Vincent and Bengio, note 4).
const TANH_TARGET: f64 = 0.65;

impl BuiltIn {
    fn at(self, what: Derivative, y: f64, f: f64) -> f64 {
        let m = y * f;
        let value_first_second = match self {
            Self::Squared => [0.5 * (f - y) * (f - y), f - y, 1.0],
            Self::SquaredTanh => {
                let t = f.tanh();
                let (residual, slope) = (t - TANH_TARGET * y, 1.0 - t * t);
                [residual * residual, 2.0 * residual * slope, 2.0 * slope * (slope - 2.0 * residual * t)]
            }
            Self::Logistic => {
                // 1 / (1 + e^(2 m)) without overflow.
                let p = 0.5 * (1.0 - m.tanh());
                let unit = std::f64::consts::LOG2_E;
                return match what {
                    Derivative::Value => unit * ((-2.0 * m.abs()).exp().ln_1p() + 2.0 * (-m).max(0.0)),
                    Derivative::First => -2.0 * unit * y * p,
                    Derivative::Second => 4.0 * unit * y * y * p * (1.0 - p),
                };
            }
            Self::Exponential => {
                let e = (-m).exp();
                [e, -y * e, y * y * e]
            }
            Self::OneMinusTanh => {
                let t = m.tanh();
                [1.0 - t, -y * (1.0 - t * t), 2.0 * y * y * t * (1.0 - t * t)]
            }
            Self::SquaredHinge => {
                let violation = (1.0 - m).max(0.0);
                [
                    violation * violation,
                    -2.0 * y * violation,
                    2.0 * y * y * f64::from(u8::from(violation > 0.0)),
                ]
            }
            Self::SoftMargin => {
                let violation = (1.0 - m).max(0.0);
                if violation <= CORNER_WIDTH {
                    let inside = f64::from(u8::from(violation > 0.0));
                    [
                        0.5 * violation * violation / CORNER_WIDTH,
                        -y * violation / CORNER_WIDTH,
                        y * y * inside / CORNER_WIDTH,
                    ]
                } else {
                    [violation - 0.5 * CORNER_WIDTH, -y, 0.0]
                }
            }
            Self::Huber { delta } => {
                let r = f - y;
                if r.abs() <= delta {
                    [0.5 * r * r, r, 1.0]
                } else {
                    [delta * (r.abs() - 0.5 * delta), r.clamp(-delta, delta), 0.0]
                }
            }
        };
        value_first_second[what as usize]
    }
}

impl Loss for BuiltIn {
    fn fill(&self, what: Derivative, y: &[f64], f: &[f64], out: &mut [f64]) {
        for ((out, &y), &f) in out.iter_mut().zip(y).zip(f) {
            *out = self.at(what, y, f);
        }
    }
}

/// Share of the first derivative along a line at which the search ends.
const GRADIENT_TOLERANCE: f64 = 1e-10;
/// Maximum numbers of doublings of the first step, of steps between two slopes, and of first steps.
const MAX_DOUBLINGS: usize = 40;
const MAX_SECANT_STEPS: usize = 100;
const MAX_FIRST_STEPS: usize = 12;

/// One output's loss sum_i w_i L(y_i, f_i) with memory for its derivatives.
pub(super) struct Objective<'a> {
    pub(super) loss: &'a dyn Loss,
    pub(super) y: &'a [f64],
    pub(super) weights: Option<&'a [f64]>,
    memory: Vec<f64>,
}

impl<'a> Objective<'a> {
    pub(super) fn new(loss: &'a dyn Loss, y: &'a [f64], weights: Option<&'a [f64]>) -> Result<Self> {
        Ok(Self { loss, y, weights, memory: try_vec![0.0; y.len()]? })
    }

    /// A weighted derivative for all rows.
    pub(super) fn rows(&mut self, what: Derivative, f: &[f64]) -> &[f64] {
        self.loss.fill(what, self.y, f, &mut self.memory);
        if let Some(weights) = self.weights {
            self.memory.iter_mut().zip(weights).for_each(|(v, w)| *v *= w);
        }
        &self.memory
    }

    /// The loss.
    pub(super) fn value(&mut self, f: &[f64]) -> f64 {
        self.rows(Derivative::Value, f).iter().sum()
    }

    /// alpha with the least loss of f + alpha d near 0 in the direction of descent: the slope along d is followed to where
    /// it changes sign, and that place is found by false position (the Illinois rule). Losses whose infimum lies at
    /// infinity are followed until the slope is a small share of the first one.
    pub(super) fn line_search(&mut self, f: &[f64], d: &[f64]) -> f64 {
        let mut trial = f.to_vec();
        let mut slope = |objective: &mut Self, alpha: f64| -> f64 {
            for ((t, f), d) in trial.iter_mut().zip(f).zip(d) {
                *t = f + alpha * d;
            }
            objective.rows(Derivative::First, &trial).iter().zip(d).map(|(g, d)| g * d).sum()
        };
        let first = slope(self, 0.0);
        if first == 0.0 || !first.is_finite() {
            return 0.0;
        }
        let curvature: f64 = self.rows(Derivative::Second, f).iter().zip(d).map(|(h, d)| h * d * d).sum();
        let squares: f64 = match self.weights {
            Some(w) => d.iter().zip(w).map(|(d, w)| w * d * d).sum(),
            None => d.iter().map(|d| d * d).sum(),
        };
        let before = self.value(f);
        let mut unit =
            if curvature > 1e-6 * squares { first.abs() / curvature } else { first.abs() / squares };
        let sign = -first.signum();
        let enough = GRADIENT_TOLERANCE * first.abs();
        for _ in 0..MAX_FIRST_STEPS {
            let (mut low, mut at_low) = (0.0, first.abs());
            let (mut high, mut at_high) = (unit, -sign * slope(self, sign * unit));
            // Positive while the loss falls.
            let mut doublings = 0;
            while at_high > enough && doublings < MAX_DOUBLINGS {
                (low, at_low) = (high, at_high);
                high *= 2.0;
                at_high = -sign * slope(self, sign * high);
                doublings += 1;
            }
            let mut best = high;
            let mut side = 0;
            for _ in 0..MAX_SECANT_STEPS {
                if at_high.abs() <= enough || at_high > 0.0 || high - low <= 1e-14 * high {
                    best = high;
                    break;
                }
                let middle = if at_high.is_finite() {
                    (low * at_high - high * at_low) / (at_high - at_low)
                } else {
                    0.5 * (low + high)
                };
                let value = -sign * slope(self, sign * middle);
                best = middle;
                if value.abs() <= enough {
                    break;
                }
                if value > 0.0 {
                    (low, at_low) = (middle, value);
                    if side == 1 {
                        at_high *= 0.5;
                    }
                    side = 1;
                } else {
                    (high, at_high) = (middle, value);
                    if side == -1 {
                        at_low *= 0.5;
                    }
                    side = -1;
                }
            }
            let shifted: Vec<f64> = f.iter().zip(d).map(|(f, d)| f + sign * best * d).collect();
            if self.value(&shifted) <= before {
                return sign * best;
            }
            // The loss rose before it fell: try a shorter first step.
            unit *= 0.1;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [BuiltIn; 8] = [
        BuiltIn::Squared,
        BuiltIn::SquaredTanh,
        BuiltIn::Logistic,
        BuiltIn::Exponential,
        BuiltIn::OneMinusTanh,
        BuiltIn::SquaredHinge,
        BuiltIn::SoftMargin,
        BuiltIn::Huber { delta: 0.7 },
    ];

    #[test]
    fn derivatives_are_those_of_differences() {
        for loss in ALL {
            for y in [-1.0, 1.0] {
                for f in [-2.3, -0.4, 0.11, 0.8, 0.95, 1.9] {
                    let h = 1e-5;
                    for (what, below) in
                        [(Derivative::First, Derivative::Value), (Derivative::Second, Derivative::First)]
                    {
                        let difference = (loss.at(below, y, f + h) - loss.at(below, y, f - h)) / (2.0 * h);
                        assert!((loss.at(what, y, f) - difference).abs() < 1e-7, "{loss:?} {what:?} {y} {f}");
                    }
                }
            }
        }
        assert!(
            (BuiltIn::Logistic.at(Derivative::Value, 1.0, -800.0) - 1600.0 * std::f64::consts::LOG2_E) < 1e-6
        );
    }

    #[test]
    fn the_line_search_finds_where_the_slope_is_none() {
        let n = 50;
        let y: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let d: Vec<f64> = (0..n).map(|i| f64::from(i).sin() + 0.1 * y[i as usize]).collect();
        let f: Vec<f64> = (0..n).map(|i| 0.3 * (f64::from(i) * 0.7).cos()).collect();
        for loss in ALL {
            let mut objective = Objective::new(&loss, &y, None).unwrap();
            let alpha = objective.line_search(&f, &d);
            let at = |alpha: f64| -> Vec<f64> { f.iter().zip(&d).map(|(f, d)| f + alpha * d).collect() };
            let slope = |objective: &mut Objective<'_>, alpha: f64| -> f64 {
                let rows = objective.rows(Derivative::First, &at(alpha)).to_vec();
                rows.iter().zip(&d).map(|(g, d)| g * d).sum()
            };
            let (first, last) = (slope(&mut objective, 0.0), slope(&mut objective, alpha));
            assert!(last.abs() <= 1e-8 * first.abs(), "{loss:?} {first} {last}");
            assert!(objective.value(&at(alpha)) < objective.value(&f));
        }
    }
}
