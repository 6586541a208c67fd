//! Projectron and Projectron++ (Orabona, Keshet and Caputo, Bounded kernel-based online learning, JMLR 10, 2009).
//!
//! At a mistake with kernel values k against the pool, d = K^-1 k are the coefficients of the projection onto the span of
//! the pool and delta^2 = k(x, x) - k'd is its squared distance. If delta <= eta, the coefficients grow by the projection
//! (16); otherwise the row joins the pool.
//! Projectron++ (figure 4) also learns from a correct answer with a margin below 1 if loss >= delta / eta: by the step
//! tau = min(1, loss / ||P||^2, 2 (loss - delta / eta) / ||P||^2) along the projection, ||P||^2 = k'd.
//! With more than two classes the projection is added to the class and subtracted from the rival, and ||P||^2 counts
//! twice.
//!
//! The paper keeps K^-1, which grows by [d; -1][d; -1]' / delta^2 (19). Its entries are as large as the inverse of the
//! smallest delta^2, and their errors accumulate. This file keeps the Cholesky factor L of K instead: l = L^-1 k gives
//! delta^2 = k(x, x) - l'l and d = L'^-1 l, no entry of L exceeds the square root of the largest k(x, x), and (l, delta) is
//! the next row of L if the row joins the pool.
//!
//! Invariant: L L' = K to the accuracy of double precision: a row closer to the span than 1e-6 of its length is
//! projected for every eta. A state's factor is compared with k(z, z) and computed again from the vectors if it disagrees,
//! as it does if an earlier version stored K^-1. Cost: O(m^2) for a mistake, m^2 / 2 numbers.

use super::learner::{Learner, PerceptronState};
use super::params::Policy;
use super::update::Update;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::linalg::copy_triangle;
use crate::linalg::growing::GrowingCholesky;
use crate::simd::Real;
use crate::simd::blas::{axpy, dot};

/// Squared distance from the span, as a share of k(x, x), below which the distance is rounding error.
const MIN_RELATIVE_PIVOT: f64 = 1e-12;
/// Relative error of the squared length of a stored row of L above which the stored matrix is not a Cholesky factor.
const MAX_FACTOR_ERROR: f64 = 1e-6;

/// Projections onto the span of the pool.
pub(super) struct Projection {
    factor: GrowingCholesky,
    /// l = L^-1 k of the current row.
    coordinates: Vec<f64>,
}

impl Projection {
    /// Returns the factor of the state's pool; empty for policies that do not project.
    pub(super) fn new<T: Real>(
        learner: &mut Learner<'_, T>,
        state: &PerceptronState,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let mut new = Self { factor: GrowingCholesky::default(), coordinates: Vec::new() };
        if !matches!(learner.params.policy, Policy::Projectron { .. }) {
            return Ok(new);
        }
        let matrix = &state.matrix;
        let agrees = |i: usize, self_value: f64| {
            let line = matrix.row(i);
            let square: f64 = line.iter().take(i + 1).map(|v| v * v).sum();
            line[i] > 0.0
                && line.iter().skip(i + 1).all(|v| *v == 0.0)
                && (square - self_value).abs() <= MAX_FACTOR_ERROR * self_value
        };
        if learner.self_values.iter().enumerate().all(|(i, &self_value)| agrees(i, self_value)) {
            let rows = copy_triangle(learner.self_values.len(), |i| matrix.row(i).into_iter().copied())?;
            new.factor = GrowingCholesky::from_rows(rows);
            return Ok(new);
        }
        let mut counter = ctx.counter("factor", learner.self_values.len());
        let mut values = Vec::new();
        for i in 0..learner.self_values.len() {
            counter.charge((i * (i + learner.row.features().max(8))) as u64)?;
            learner.kernel_row(i, &mut values);
            let self_value = learner.self_values[i];
            let projected = new.project(&values[..i]);
            let rule = "pools of vectors with a finite k(x, x) above 0 and of a positive semidefinite kernel";
            let is_valid = self_value > 0.0 && (self_value + projected).is_finite();
            Error::check_param(is_valid, "vectors", format!("k(x, x)={self_value}"), rule)?;
            // Another kernel may have distinguished the vector from the span of those before it.
            let pivot = (self_value - projected).max(MIN_RELATIVE_PIVOT * self_value);
            new.factor.append_substituted(&new.coordinates, pivot);
        }
        Ok(new)
    }

    /// Returns the rows of L; empty for policies that do not project.
    pub(super) fn into_factor(self) -> Vec<Vec<f64>> {
        self.factor.into_rows()
    }

    /// Computes l of a row with the given kernel values against the pool; returns its squared length l'l.
    fn project(&mut self, values: &[f64]) -> f64 {
        self.coordinates.clear();
        self.coordinates.extend(values.iter().copied());
        self.factor.substitute_forward(&mut self.coordinates);
        dot(&self.coordinates, &self.coordinates)
    }

    /// Learns from the current row.
    pub(super) fn learn<T: Real>(
        &mut self,
        learner: &mut Learner<'_, T>,
        update: Update,
        margin: f64,
        eta: f64,
    ) -> Result<()> {
        let self_value = learner.self_value();
        let projected = self.project(&learner.values);
        let squared_distance = (self_value - projected).max(0.0);
        let mut step = 1.0;
        if margin > 0.0 {
            let directions = if update.rival.is_some() { 2.0 } else { 1.0 };
            let (loss, length) = (1.0 - margin, directions * projected);
            let min_loss = if squared_distance > 0.0 { squared_distance.sqrt() / eta } else { 0.0 };
            if !(loss >= min_loss && length > 0.0) {
                return Ok(());
            }
            step = (loss / length).min(2.0 * (loss - min_loss) / length).min(1.0);
        } else if squared_distance > (eta * eta).max(MIN_RELATIVE_PIVOT * self_value) {
            self.factor.append_substituted(&self.coordinates, squared_distance);
            return learner.push(update);
        }
        self.factor.substitute_backward(&mut self.coordinates);
        for (output, sign) in update.coefficients() {
            axpy(sign * step, &self.coordinates, &mut learner.coefficients[output]);
        }
        let mut changed = update.coefficients().flat_map(|(output, _)| &learner.coefficients[output]);
        let rule = "large enough for the coefficients of a projection to stay finite; scale the rows";
        Error::check_param(changed.all(|value| value.is_finite()), "X", "(rows)", rule)
    }
}
