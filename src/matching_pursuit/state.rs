//! What an orthogonal pursuit has fitted so far: the basis of the chosen functions, the residuals, the outputs of the
//! validation rows.
//!
//! Invariant: R = Y - Q G with Q orthonormal, G = Q'Y.

use super::Task;
use super::basis::{Basis, Outside};
use super::curve::Curve;
use super::dictionary::Dictionary;
use crate::simd::blas::{axpy, dot};

/// The fitted part, without the candidates.
pub(super) struct State<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) basis: Basis,
    /// R, (q, l): output after output.
    pub(super) residuals: Vec<f64>,
    /// G, (n, q).
    pub(super) projections: Vec<f64>,
    /// Outputs of the validation rows, (q, n).
    watched: Vec<f64>,
    pub(super) order: Vec<usize>,
    total_weight: f64,
}

impl<'a> State<'a> {
    pub(super) fn new(task: &'a Task<'a>, dictionary: &Dictionary<'_>) -> Self {
        let (l, q) = (task.rows(), task.outputs);
        let others = task.validation.map_or(0, |v| v.targets.len() / q);
        Self {
            task,
            basis: Basis::new(l, others),
            residuals: dictionary.scaled_targets(task),
            projections: Vec::new(),
            watched: vec![0.0; others * q],
            order: Vec::new(),
            total_weight: task.weights.map_or(l as f64, |w| w.iter().sum()),
        }
    }

    /// q
    pub(super) fn outputs(&self) -> usize {
        self.task.outputs
    }

    /// The basis vectors of some steps, one after the other.
    pub(super) fn directions(&self, from: usize, to: usize) -> &[f64] {
        let (l, before) = (self.basis.rows(), self.basis.len() - self.order.len());
        &self.basis.vectors()[(before + from) * l..(before + to) * l]
    }

    /// The shares of the residuals that a step took.
    pub(super) fn shares(&self, step: usize) -> &[f64] {
        let (q, before) = (self.task.outputs, self.basis.len() - self.order.len());
        &self.projections[(before + step) * q..(before + step + 1) * q]
    }

    pub(super) fn others(&self) -> usize {
        self.watched.len() / self.task.outputs
    }

    pub(super) fn squared_norm(&self) -> f64 {
        dot(&self.residuals, &self.residuals)
    }

    /// Takes a split column into the basis and its share out of the residuals.
    pub(super) fn take(&mut self, outside: Outside, rider: Vec<f64>) {
        self.basis.push(outside, rider);
        let (l, others) = (self.task.rows(), self.others());
        let (direction, rider) = self.basis.last();
        let shares: Vec<f64> = self
            .residuals
            .chunks_exact_mut(l)
            .map(|r| {
                let share = dot(direction, r);
                axpy(-share, direction, r);
                share
            })
            .collect();
        if others > 0 {
            for (f, share) in self.watched.chunks_exact_mut(others).zip(&shares) {
                axpy(*share, rider, f);
            }
        }
        self.projections.extend(&shares);
    }

    /// Gives the last function back.
    pub(super) fn give_back(&mut self) {
        let (l, q, others) = (self.task.rows(), self.task.outputs, self.others());
        let shares = self.projections.split_off(self.projections.len() - q);
        let (direction, rider) = self.basis.last();
        for (r, share) in self.residuals.chunks_exact_mut(l).zip(&shares) {
            axpy(*share, direction, r);
        }
        if others > 0 {
            for (f, share) in self.watched.chunks_exact_mut(others).zip(&shares) {
                axpy(-share, rider, f);
            }
        }
        self.basis.pop();
        self.order.pop();
    }

    /// Notes the step; whether to go on.
    pub(super) fn note(&self, curve: &mut Curve<'_>) -> bool {
        let (q, n) = (self.task.outputs, self.others());
        let training = 0.5 * self.squared_norm() / self.total_weight;
        curve.note(self.order.len(), training, &self.watched, |targets, outputs| {
            let squares = (0..q).flat_map(|j| {
                let f = &outputs[j * n..(j + 1) * n];
                f.iter().zip(targets.iter().skip(j).step_by(q)).map(|(f, y)| (f - y) * (f - y))
            });
            0.5 * squares.sum::<f64>() / n.max(1) as f64
        })
    }
}
