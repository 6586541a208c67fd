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
//! smallest delta^2, and so are its errors, which every later step adds to. Here K = L L' is kept: with l = L^-1 k the
//! distance is delta^2 = k(x, x) - l'l, l and delta are the new row of L, and d = L'^-1 l. No entry of L exceeds the
//! square root of the largest k(x, x), and a row, once written, never changes.
//!
//! Invariant: L L' = K to the accuracy of double precision: a row closer to the span than 1e-6 of its length is
//! projected whatever eta is. What a state brings is compared with k(z, z), and made anew from the vectors where it does
//! not agree, as it does not where an earlier version has kept K^-1. Cost: O(m^2) at a mistake, m^2 / 2 numbers.

use super::learner::{Learner, PerceptronState};
use super::params::Policy;
use super::update::Update;
use crate::control::Monitor;
use crate::error::{Error, Result};
use crate::memory::room;
use crate::simd::Real;
use crate::simd::blas::{axpy, dot};
use crate::watch::Watch;

/// Squared distances below this part of k(x, x) are rounding.
const SPAN: f64 = 1e-12;
/// Relative error of a squared row of L that says that it is none.
const AGREES: f64 = 1e-6;

/// L of the pool, row by row.
pub(super) struct Projection {
    factor: Vec<Vec<f64>>,
    /// l of the current row, and its d.
    line: Vec<f64>,
    coefficients: Vec<f64>,
}

impl Projection {
    pub(super) fn new<T: Real>(
        learner: &mut Learner<'_, T>,
        state: &PerceptronState,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let mut new = Self { factor: Vec::new(), line: Vec::new(), coefficients: Vec::new() };
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
        let mut watch = Watch::new(monitor, "factor", learner.own.len());
        let mut values = Vec::new();
        for i in 0..learner.own.len() {
            if whole {
                new.factor.push(matrix.row(i).iter().take(i + 1).copied().collect());
                continue;
            }
            watch.spend((i * (i + learner.row.features().max(8))) as u64)?;
            learner.values_of(i, &mut values);
            let (own, projected) = (learner.own[i], new.forward(&values[..i]));
            let rule = "pools of vectors with a finite k(x, x) above 0 and of a positive semidefinite kernel";
            Error::check_param(
                own > 0.0 && (own + projected).is_finite(),
                "vectors",
                format!("k(x, x)={own}"),
                rule,
            )?;
            // Vectors that another kernel has told apart may lie in the span of those before them.
            new.grow((own - projected).max(SPAN * own))?;
        }
        Ok(new)
    }

    /// L, row by row; empty where it is not kept.
    pub(super) fn into_factor(self) -> Vec<Vec<f64>> {
        self.factor
    }

    /// l = L^-1 k; returns l'l.
    fn forward(&mut self, values: &[f64]) -> f64 {
        self.line.clear();
        for (row, value) in self.factor.iter().zip(values) {
            let i = self.line.len();
            self.line.push((value - dot(&row[..i], &self.line)) / row[i]);
        }
        dot(&self.line, &self.line)
    }

    /// d = L'^-1 l.
    fn backward(&mut self) {
        self.coefficients.clone_from(&self.line);
        for (i, row) in self.factor.iter().enumerate().rev() {
            let (before, rest) = self.coefficients.split_at_mut(i);
            rest[0] /= row[i];
            axpy(-rest[0], &row[..i], before);
        }
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
        let projected = self.forward(&learner.values);
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
            self.grow(squared)?;
            learner.push(update);
            return Ok(());
        }
        self.backward();
        for (output, sign) in update.coefficients() {
            axpy(sign * step, &self.coefficients, &mut learner.coefficients[output]);
        }
        let changed = update.coefficients().flat_map(|(output, _)| &learner.coefficients[output]);
        let rule = "large enough for the coefficients of a projection to stay finite; scale the rows";
        Error::check_param(changed.copied().all(f64::is_finite), "X", "(rows)", rule)
    }

    /// The row of `line` joins.
    fn grow(&mut self, squared: f64) -> Result<()> {
        let mut row = room("the factor of a projection", self.line.len() + 1)?;
        row.extend_from_slice(&self.line);
        row.push(squared.sqrt());
        self.factor.push(row);
        Ok(())
    }
}
