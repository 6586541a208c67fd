//! Projectron and Projectron++ (Orabona, Keshet and Caputo, Bounded kernel-based online learning, JMLR 10, 2009).
//!
//! At a mistake with kernel values k against the pool: d = K^-1 k are the coefficients of the projection onto the span,
//! delta^2 = k(x, x) - k'd its squared distance. delta <= eta: the coefficients grow by the projection (16); else the
//! row joins the pool and K^-1 grows by [d; -1][d; -1]' / delta^2 (19).
//! Projectron++ (figure 4) also learns at a right answer with margin below 1, if loss >= delta / eta: by the step
//! tau = min(1, loss / ||P||^2, 2 (loss - delta / eta) / ||P||^2) along the projection, ||P||^2 = k'd.
//! With more than two classes the projection is added to the class and taken from the rival, and ||P||^2 counts twice.
//!
//! Invariant: `inverse` is symmetric and K inverse = 1 to the accuracy of double precision: a row closer to the span than
//! 1e-6 of its length is projected whatever eta is. Cost: O(m^2) at a mistake, m^2 numbers.

use super::learner::{Learner, PerceptronState};
use super::params::Policy;
use super::update::Update;
use crate::simd::Real;
use crate::simd::blas::{axpy, dot};

/// Squared distances below this part of k(x, x) are rounding.
const SPAN: f64 = 1e-12;

/// K^-1 of the pool, row by row.
pub(super) struct Projection {
    inverse: Vec<Vec<f64>>,
    coefficients: Vec<f64>,
}

impl Projection {
    pub(super) fn new(state: &PerceptronState, policy: Policy) -> Self {
        let keeps = matches!(policy, Policy::Projectron { .. });
        let by_row = || state.matrix.rows().into_iter().map(|row| row.to_vec()).collect();
        Self { inverse: if keeps { by_row() } else { Vec::new() }, coefficients: Vec::new() }
    }

    /// K^-1, row by row; empty where it is not kept.
    pub(super) fn into_inverse(self) -> Vec<Vec<f64>> {
        self.inverse
    }

    /// Learns from the current row.
    pub(super) fn learn<T: Real>(&mut self, learner: &mut Learner<T>, update: Update, margin: f64, eta: f64) {
        let own = learner.self_value();
        self.coefficients.clear();
        self.coefficients.extend(self.inverse.iter().map(|row| dot(row, &learner.values)));
        let projected = dot(&self.coefficients, &learner.values);
        let squared = (own - projected).max(0.0);
        let mut step = 1.0;
        if margin > 0.0 {
            let directions = if update.rival.is_some() { 2.0 } else { 1.0 };
            let (loss, length) = (1.0 - margin, directions * projected);
            let reach = if squared > 0.0 { squared.sqrt() / eta } else { 0.0 };
            if !(loss >= reach && length > 0.0) {
                return;
            }
            step = (loss / length).min(2.0 * (loss - reach) / length).min(1.0);
        } else if squared > (eta * eta).max(SPAN * own) {
            self.grow(squared);
            learner.push(update);
            return;
        }
        for (output, sign) in update.coefficients() {
            axpy(sign * step, &self.coefficients, &mut learner.coefficients[output]);
        }
    }

    fn grow(&mut self, squared: f64) {
        self.coefficients.push(-1.0);
        self.inverse.push(vec![0.0; self.inverse.len()]);
        for (row, &c) in self.inverse.iter_mut().zip(&self.coefficients) {
            row.push(0.0);
            axpy(c / squared, &self.coefficients, row);
        }
    }
}
