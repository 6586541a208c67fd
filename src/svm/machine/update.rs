//! The update of a machine after the solution of its block: coefficients, gradients, stalls, the size of the working set; and
//! the variables that it sets aside.
//!
//! Invariant: gradients are exact for the coefficients. Where a stop leaves the gradients incomplete, the coefficients of the
//! block are set back. Only a product of computed kernel values that is long enough to be stopped needs a copy of the gradients.
//!
//! Cost: (changed coefficients) x (variables) kernel values, which are read or computed.

use super::super::columns::KernelColumns;
use super::super::precision::KernelValue;
use super::super::stall::{Change, UNCERTAIN_ROUNDINGS, dual_gain};
use super::super::subproblem::BlockSolution;
use super::super::training::Training;
use super::{Machine, cache_capacity};
use crate::context::{Context, StopReason};
use crate::error::Result;
use crate::simd::blas::add_rows;

/// Number of rounds without progress after which a machine has stalled.
const MAX_IDLE_ROUNDS: u32 = 50;
/// Columns per task of a gradient update: their gradients fit the first-level cache.
const COLUMNS_PER_TASK: usize = 4096;

impl<'a> Machine<'a> {
    /// Takes the coefficients of the block's solution and updates all gradients: f += K(:, changed) changes. Detects stalls,
    /// and adapts the size of the working set.
    ///
    /// # Errors
    /// [`Error::Stopped`]. If the gradients are not complete, the changes are undone.
    pub(in crate::svm) fn update<K: KernelValue>(
        &mut self,
        solution: BlockSolution,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        self.iterations += solution.end.steps;
        self.rounds += 1;
        let block = self.working_set.members.len().min(self.tuning.nested_block.max(self.tuning.max_whole));
        let work = solution.end.steps.saturating_mul(block as u64);
        self.work = self.work.saturating_add(work);
        if solution.end.steps == 0 {
            self.end(StopReason::Stalled);
            return Ok(());
        }
        let members = &self.working_set.members;
        let problem = &self.variables.problem;
        let before: Vec<(f64, f64)> =
            members.iter().map(|&v| (problem.beta[v], problem.gradient[v])).collect();
        let (changed, changes) = self.variables.problem.set_coefficients(members, &solution.beta);
        match &solution.gradient {
            Some(gradient) if self.has_whole_block() => {
                for (&v, &gradient) in self.working_set.members.iter().zip(gradient) {
                    self.variables.problem.gradient[v] = gradient;
                }
            }
            _ => {
                let depth = if columns.are_stored() { 1 } else { columns.depth() };
                self.work += (changed.len() * self.problem().len()) as u64 * depth as u64;
                if let Err(error) = self.add_changes((&changed, &changes), columns, training) {
                    self.undo(&before);
                    return Err(error);
                }
            }
        }
        self.kkt = self.problem().kkt_violation(training.ctx);
        self.detect_stall(&before, &solution, work);
        // A block must be larger than the number of unbounded variables, or rounds undo each other (Rifkin 2002, 2.6.3).
        let min_size = (self.kkt.n_unbounded * 7 / 4).next_multiple_of(64).min(self.tuning.max_block);
        self.working_set.size = self.working_set.size.max(min_size).min(cache_capacity(&self.parts, columns));
        solution.end.check()
    }

    /// Sets the members of the working set to their coefficients and gradients before a round.
    fn undo(&mut self, before: &[(f64, f64)]) {
        let problem = &mut self.variables.problem;
        for (&v, &(beta, gradient)) in self.working_set.members.iter().zip(before) {
            (problem.beta[v], problem.gradient[v]) = (beta, gradient);
        }
    }

    /// Ends the machine after rounds without progress; `before` has coefficients and gradients of the members before the round,
    /// whose steps have made `work` multiply-adds.
    fn detect_stall(&mut self, before: &[(f64, f64)], solution: &BlockSolution, work: u64) {
        let problem = &self.variables.problem;
        let members = self.working_set.members.iter().zip(before);
        let changes =
            members.filter(|&(&v, &(from, _))| problem.beta[v] != from).map(|(&v, &(from, gradient))| {
                Change {
                    from,
                    to: problem.beta[v],
                    gradient: f64::midpoint(gradient, problem.gradient[v]),
                    group: problem.group[v],
                }
            });
        let gain = dual_gain(changes, problem.epsilon, problem.has_equality);
        self.gain_rate = gain / work as f64;
        self.gradient_rounding = self.kkt.rounding();
        let floor = UNCERTAIN_ROUNDINGS * self.gradient_rounding;
        let idle = self.stall.record_stretch(gain, solution.expected_gain, self.kkt.largest(), floor);
        // A block of a larger machine may have stalled because it was the wrong one.
        let max_idle = if solution.end.stop != Some(StopReason::Stalled) {
            MAX_IDLE_ROUNDS
        } else if self.working_set.members.len() < problem.len() {
            MAX_IDLE_ROUNDS / 10
        } else {
            0
        };
        if idle >= max_idle {
            self.end(StopReason::Stalled);
        }
    }

    /// Adds the products of the changes of some variables to all gradients.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which the gradients are those from before.
    fn add_changes<K: KernelValue>(
        &mut self,
        (changed, changes): (&[usize], &[f64]),
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        if columns.are_stored() {
            self.add_stored_rows((changed, changes), columns, training.ctx);
            return Ok(());
        }
        let (depth, n) = (columns.depth(), self.problem().len());
        let before = if training.may_stop_product(depth, changed.len(), n) {
            Some(self.problem().gradient.clone())
        } else {
            None
        };
        let added = self.add_products((changed, changes), columns, training);
        if let (Err(_), Some(before)) = (&added, before) {
            self.variables.problem.gradient = before;
        }
        added
    }

    /// Adds products with kernel values that are computed, against the active variables only in a machine that is shrunk.
    fn add_products<K: KernelValue>(
        &mut self,
        (changed, changes): (&[usize], &[f64]),
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let depth = columns.depth();
        let rows = self.rows_of(changed);
        let gradient = &mut self.variables.problem.gradient;
        if let Some(source) = &self.variables.source {
            return training.add_product(source, depth, (&rows, changes), gradient);
        }
        for part in &self.parts {
            let source = &columns.class_blocks[part.class_block].source;
            let gradient = &mut gradient[part.first..part.first + part.positions.len()];
            training.add_product(source, depth, (&rows, changes), gradient)?;
        }
        Ok(())
    }

    /// Adds products with kernel rows that are stored.
    fn add_stored_rows<K: KernelValue>(
        &mut self,
        (changed, changes): (&[usize], &[f64]),
        columns: &KernelColumns<'_, K>,
        ctx: Context<'_>,
    ) {
        let positions: Vec<usize> = changed.iter().map(|&v| self.position(v)).collect();
        for part in &self.parts {
            let class_block = &columns.class_blocks[part.class_block];
            let rows: Vec<&[K]> = positions.iter().map(|&position| class_block.row(position)).collect();
            let gradient =
                &mut self.variables.problem.gradient[part.first..part.first + part.positions.len()];
            ctx.for_each_chunk(gradient, COLUMNS_PER_TASK, |task, gradient| {
                add_rows(changes, &rows, task * COLUMNS_PER_TASK, gradient);
            });
        }
    }

    /// Sets variables aside that no pair can move at present, if kernel values are not cached.
    pub(in crate::svm) fn shrink<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'a, K>,
        ctx: Context<'_>,
    ) -> Result<()> {
        let all = &columns.class_blocks[self.parts[0].class_block].source;
        if let Some(number) = self.variables.shrink(&self.kkt, all, ctx)? {
            self.working_set = self.working_set.renumbered(|v| number[v]);
        }
        Ok(())
    }

    /// Undoes the last shrinking.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which nothing is changed.
    pub(in crate::svm) fn unshrink<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let Some(active) = self.variables.unshrink(columns.depth(), training)? else { return Ok(()) };
        self.working_set = self.working_set.renumbered(|k| Some(active[k]));
        self.kkt = self.problem().kkt_violation(training.ctx);
        Ok(())
    }

    /// Undoes all shrinking.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which the machine is shrunk less or as before.
    pub(in crate::svm) fn unshrink_all<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        while self.is_shrunk() {
            self.unshrink(columns, training)?;
        }
        Ok(())
    }
}
