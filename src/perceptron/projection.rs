//! Projectron and Projectron++ (Orabona, Keshet and Caputo, Bounded kernel-based online learning, JMLR 10, 2009).
//!
//! At a mistake with kernel values k against the pool: d = K^-1 k are the coefficients of the projection onto the span,
//! delta^2 = k(x, x) - k'd its squared distance. delta <= eta: the coefficients grow by the projection (16); else the
//! row joins the pool.
//! Projectron++ (figure 4) also learns at a right answer with margin below 1, if loss >= delta / eta: by the step
//! tau = min(1, loss / ||P||^2, 2 (loss - delta / eta) / ||P||^2) along the projection, ||P||^2 = k'd.
//! With more than two classes the projection is added to the class and taken from the rival, and ||P||^2 counts twice.
//!
//! The paper keeps K^-1, which grows by [d; -1][d; -1]' / delta^2 (19). Its entries are of the size of the inverse of the
//! smallest delta^2, and so are its errors, which every later step adds to. Here the Cholesky factor of K is kept
//! (`factor`).
//!
//! Invariant: L L' = K to the accuracy of double precision: a row closer to the span than 1e-6 of its length is
//! projected whatever eta is. What a state brings is compared with k(z, z), and made anew from the vectors where it does
//! not agree, as it does not where an earlier version has kept K^-1. Cost: O(m^2) at a mistake, m^2 / 2 numbers.

use super::factor::{Factor, SPAN, check_projected};
use super::learner::{Learner, PerceptronState};
use super::params::Policy;
use super::update::Update;
use crate::context::Context;
use crate::error::Result;
use crate::memory::TryCollect;
use crate::simd::Real;
use crate::simd::blas::axpy;

/// Relative error of a squared row of L that says that it is none.
const AGREES: f64 = 1e-6;

/// L of the pool.
pub(super) struct Projection {
    factor: Factor,
}

impl Projection {
    pub(super) fn new<T: Real>(
        learner: &mut Learner<'_, T>,
        state: &PerceptronState,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let mut new = Self { factor: Factor::default() };
        if !matches!(learner.params.policy, Policy::Projectron { .. }) {
            return Ok(new);
        }
        let matrix = &state.matrix;
        let agrees = |i: usize, own: f64| {
            let line = matrix.row(i);
            let square: f64 = line.iter().take(i + 1).map(|v| v * v).sum();
            line[i] > 0.0
                && line.iter().skip(i + 1).all(|v| *v == 0.0)
                && (square - own).abs() <= AGREES * own
        };
        let whole = learner.own.iter().enumerate().all(|(i, &own)| agrees(i, own));
        let mut counter = ctx.counter("factor", learner.own.len());
        let mut values = Vec::new();
        for i in 0..learner.own.len() {
            if whole {
                new.factor.rows.push(matrix.row(i).iter().take(i + 1).copied().try_collect_vec()?);
                continue;
            }
            counter.charge((i * (i + learner.row.features().max(8))) as u64)?;
            learner.values_of(i, &mut values)?;
            new.factor.push(learner.own[i], &values[..i])?;
        }
        Ok(new)
    }

    /// L, row by row; empty where it is not kept.
    pub(super) fn into_factor(self) -> Vec<Vec<f64>> {
        self.factor.rows
    }

    /// Learns from the current row.
    pub(super) fn learn<T: Real>(
        &mut self,
        learner: &mut Learner<'_, T>,
        update: Update,
        margin: f64,
        eta: f64,
    ) -> Result<()> {
        let own = learner.self_value();
        let projected = self.factor.forward(&learner.values);
        let squared = (own - projected).max(0.0);
        let mut step = 1.0;
        if margin > 0.0 {
            let directions = if update.rival.is_some() { 2.0 } else { 1.0 };
            let (loss, length) = (1.0 - margin, directions * projected);
            let reach = if squared > 0.0 { squared.sqrt() / eta } else { 0.0 };
            if !(loss >= reach && length > 0.0) {
                return Ok(());
            }
            step = (loss / length).min(2.0 * (loss - reach) / length).min(1.0);
        } else if squared > (eta * eta).max(SPAN * own) {
            self.factor.grow(squared)?;
            learner.push(update)?;
            return Ok(());
        }
        let coefficients = self.factor.backward();
        for (output, sign) in update.coefficients() {
            axpy(sign * step, coefficients, &mut learner.coefficients[output]);
        }
        check_projected(update.coefficients().flat_map(|(output, _)| &learner.coefficients[output]))
    }
}
