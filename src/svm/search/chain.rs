//! The machines of one fold and one kernel along increasing C: their rows, their problems and their kernel values.
//!
//! Cost: a pass over the rows; kernel values against held-out rows that are gathered from the matrix of the search.

use super::super::engine::Solve;
use super::super::kernel_matrix::KernelMatrix;
use super::super::precision::KernelValue;
use super::super::problem::DualProblem;
use super::held_out::HeldOut;
use super::work::{FoldResult, Prepared, Work};
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::Arenas;
use std::sync::Arc;

/// The machines of a fold with a kernel.
pub(super) struct Chain<'c, 'w> {
    pub(super) work: &'c Work<'w>,
    pub(super) prepared: &'c Prepared<'w>,
    pub(super) fold: usize,
    /// Indices of the values of C to fit, ascending.
    pub(super) costs: Vec<usize>,
    /// Positions of the training rows, by class block.
    pub(super) train: Vec<Vec<usize>>,
    /// Positions of the held-out rows.
    pub(super) test: Vec<usize>,
    /// Weight of each row.
    pub(super) weights: Vec<f64>,
}

/// Kernel values of the machines of a chain, in one precision.
pub(super) struct ChainValues<'c, 'w, K> {
    pub(super) matrix: Option<&'c KernelMatrix<K>>,
    pub(super) source: KernelRows<'w>,
    pub(super) held_out: HeldOut<'w, K>,
    pub(super) memory: Arc<Arenas<K>>,
}

/// Some machines of a chain, in one precision.
pub(super) trait ChainSolver: Solve {
    /// Sets the problems for the k-th C of the chain, at the best multiple of the solutions for the C before. The first problems
    /// are set already.
    fn set_cost(&mut self, k: usize) -> Result<()>;

    /// Returns the result of each machine that was solved, in the given time.
    fn results(&mut self, seconds: f64) -> Result<Vec<(usize, FoldResult)>>;
}

impl<'c, 'w> Chain<'c, 'w> {
    pub(super) fn new(work: &'c Work<'w>, prepared: &'c Prepared<'w>, fold: usize) -> Self {
        let (layout, rows) = (&work.plan.layout, &work.grid.folds[fold]);
        let mut position_of = vec![0; layout.order.len()];
        for (position, &row) in layout.order.iter().enumerate() {
            position_of[row] = position;
        }
        let mut is_trained = vec![false; position_of.len()];
        let mut weights = vec![0.0; position_of.len()];
        for (&row, &weight) in rows.train.iter().zip(rows.weights) {
            is_trained[position_of[row]] = true;
            weights[row] = weight;
        }
        let mut end = 0;
        let train = layout.sizes.iter().map(|&size| {
            end += size;
            (end - size..end).filter(|&position| is_trained[position]).collect()
        });
        let points = work.grid.points.row(prepared.index);
        Self {
            work,
            prepared,
            fold,
            costs: (0..points.len()).filter(|&c| points[c]).collect(),
            train: train.collect(),
            test: rows.test.iter().map(|&row| position_of[row]).collect(),
            weights,
        }
    }

    /// Reports to the monitor.
    pub(super) fn check(&self) -> Result<()> {
        self.work.ctx.check("search", 0, 0)
    }

    /// Returns the number of training rows of a machine.
    pub(super) fn size(&self, machine: usize) -> usize {
        self.work.plan.layout.of_machine[machine].iter().map(|&b| self.train[b].len()).sum()
    }

    /// Returns the positions of the training rows of a machine.
    pub(super) fn members(&self, machine: usize) -> Vec<usize> {
        let class_blocks = &self.work.plan.layout.of_machine[machine];
        class_blocks.iter().flat_map(|&b| self.train[b].iter().copied()).collect()
    }

    pub(super) fn rows_of(&self, positions: &[usize]) -> Vec<usize> {
        positions.iter().map(|&position| self.work.plan.layout.order[position]).collect()
    }

    /// Returns the problem of a machine over its training rows, with their K_ii, for the k-th C of the chain.
    pub(super) fn problem(
        &self,
        machine: usize,
        k: usize,
        rows: &[usize],
        diagonal: &[f64],
    ) -> Option<DualProblem> {
        let cost = self.work.grid.costs[self.costs[k]];
        let sample_c: Vec<f64> = rows.iter().map(|&row| cost * self.weights[row]).collect();
        self.work.plan.problem(machine, rows, &sample_c, diagonal.to_vec())
    }

    /// Returns the kernel values in single precision.
    pub(super) fn values(&self) -> Result<ChainValues<'c, 'w, f32>> {
        let rows = &self.prepared.training.rows;
        let source = rows.kernel_rows(&[], rows.precision(), Context::SEQUENTIAL)?;
        let matrix = self.prepared.matrix.as_ref();
        let held_out = self.held_out(matrix, &source)?;
        Ok(ChainValues { matrix, source, held_out, memory: Arc::clone(&self.work.memory) })
    }

    /// Returns the kernel values of `source` in double precision.
    pub(super) fn values_in_double(&self, source: &KernelRows<'w>) -> Result<ChainValues<'c, 'w, f64>> {
        let source = source.in_double(&[], Context::SEQUENTIAL)?;
        let held_out = self.held_out(None, &source)?;
        Ok(ChainValues { matrix: None, source, held_out, memory: Arc::default() })
    }

    /// Returns the held-out rows, with values from the matrix, or computed when they are needed.
    fn held_out<K: KernelValue>(
        &self,
        matrix: Option<&KernelMatrix<K>>,
        source: &KernelRows<'w>,
    ) -> Result<HeldOut<'w, K>> {
        let Some(matrix) = matrix else {
            return HeldOut::computed(source, &self.rows_of(&self.test), self.work.ctx);
        };
        let train: Vec<usize> = self.train.iter().flatten().copied().collect();
        HeldOut::gather(matrix, &self.work.plan.layout.order, &train, &self.test)
    }

    /// Returns the ratio of the k-th C of the chain to the one before.
    pub(super) fn ratio(&self, k: usize) -> f64 {
        let costs = self.work.grid.costs;
        costs[self.costs[k]] / costs[self.costs[k - 1]]
    }
}

/// Returns the rows with a nonzero coefficient, and these coefficients.
pub(super) fn nonzero(beta: &[f64], rows: &[usize]) -> (Vec<usize>, Vec<f64>) {
    let used = || beta.iter().zip(rows).filter(|(b, _)| **b != 0.0);
    (used().map(|(_, &row)| row).collect(), used().map(|(&b, _)| b).collect())
}
