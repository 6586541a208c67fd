//! The fitted part of an orthogonal pursuit: the basis of the chosen functions, the residuals, the outputs of the
//! validation rows.
//!
//! Invariant: R = Y - Q G with Q orthonormal, G = Q'Y.

use super::basis::{Basis, NewDirection};
use super::curve::Stopping;
use super::dictionary::Dictionary;
use super::task::Task;
use crate::error::Result;
use crate::memory::TryGrow;
use crate::simd::blas::{axpy, dot};

/// The fitted part, without the candidates.
pub(super) struct State<'t, 'a> {
    pub(super) task: &'t Task<'a>,
    pub(super) basis: Basis,
    /// R, (q, l): output after output.
    pub(super) residuals: Vec<f64>,
    /// G, (n, q).
    pub(super) projections: Vec<f64>,
    /// Outputs of the validation rows, (q, n).
    validation_outputs: Vec<f64>,
    pub(super) order: Vec<usize>,
}

impl<'t, 'a> State<'t, 'a> {
    pub(super) fn new(task: &'t Task<'a>, dictionary: &Dictionary<'_>) -> Result<Self> {
        Ok(Self {
            task,
            basis: Basis::new(task.rows(), task.validation_rows()),
            residuals: dictionary.scaled_targets(task)?,
            projections: Vec::new(),
            validation_outputs: task.validation_zeros()?,
            order: Vec::new(),
        })
    }

    /// The basis vectors of some steps, one after the other.
    pub(super) fn directions(&self, from: usize, to: usize) -> &[f64] {
        let (l, before) = (self.task.rows(), self.basis.len() - self.order.len());
        &self.basis.vectors()[(before + from) * l..(before + to) * l]
    }

    /// The shares of the residuals that a step took.
    #[inline]
    pub(super) fn shares(&self, step: usize) -> &[f64] {
        let (q, before) = (self.task.outputs(), self.basis.len() - self.order.len());
        &self.projections[(before + step) * q..(before + step + 1) * q]
    }

    pub(super) fn squared_norm(&self) -> f64 {
        dot(&self.residuals, &self.residuals)
    }

    /// Moves shares of the last basis function from the residuals to the outputs.
    fn shift(&mut self, shares: &[f64], sign: f64) {
        let (direction, validation) = self.basis.last();
        for (r, share) in self.residuals.chunks_exact_mut(direction.len()).zip(shares) {
            axpy(-sign * share, direction, r);
        }
        for (f, share) in self.validation_outputs.chunks_exact_mut(validation.len().max(1)).zip(shares) {
            axpy(sign * share, validation, f);
        }
    }

    /// Takes a split column into the basis, with its function on the validation rows, and its share out of the
    /// residuals.
    pub(super) fn take(&mut self, outside: NewDirection, validation: Vec<f64>) -> Result<()> {
        self.basis.push(outside, validation)?;
        let (direction, _) = self.basis.last();
        let shares: Vec<f64> =
            self.residuals.chunks_exact(direction.len()).map(|r| dot(direction, r)).collect();
        self.shift(&shares, 1.0);
        self.projections.try_extend(shares)
    }

    /// Gives the last function back.
    pub(super) fn undo_step(&mut self) {
        let shares = self.projections.split_off(self.projections.len() - self.task.outputs());
        self.shift(&shares, -1.0);
        self.basis.pop();
        self.order.pop();
    }

    /// Records the losses of a step; returns true if the pursuit continues.
    pub(super) fn note(&self, stopping: &mut Stopping<'_>) -> bool {
        let training = 0.5 * self.squared_norm() / self.task.total_weight();
        let n = self.task.validation_rows();
        let validation = self.task.validation.filter(|_| n > 0).map_or(0.0, |rows| {
            let pairs = rows.targets.t().into_iter().zip(&self.validation_outputs).enumerate();
            let squares = pairs.map(|(at, (y, f))| rows.weight(at % n) * ((f - y) * (f - y)));
            0.5 * squares.sum::<f64>() / rows.total_weight()
        });
        stopping.note(self.order.len(), training, validation, &self.validation_outputs)
    }
}
