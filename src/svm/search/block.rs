//! A small machine of a chain: one block, whose kernel values are gathered once for all C.
//!
//! In few columns the interior-point method takes over once SMO steps have cost as much. Once no coefficient is at its upper bound,
//! every larger C has the same solution.
//!
//! Invariant: gradients are exact for the coefficients between fits. Cost: that of the steps; m^2 kernel values of m rows.

use super::super::certificate::Rounding;
use super::super::engine::{SinglePrecision, Solve};
use super::super::few_columns::{FewColumns, unless_memory_is_short};
use super::super::intercept::intercept;
use super::super::interior_point;
use super::super::kernel_matrix::KernelMatrix;
use super::super::precision::{KernelValue, exceeds_single_precision, restart_coefficients};
use super::super::problem::DualProblem;
use super::super::rounding::MeasuredRounding;
use super::super::subproblem::{BlockEnd, Goal, Subproblem, write_block};
use super::chain::{Chain, ChainSolver, ChainValues, nonzero};
use super::work::FoldResult;
use crate::context::{Context, StopReason};
use crate::error::Result;
use crate::simd::gather::Indices;
use std::sync::Arc;

/// A machine that is solved as one block.
pub(super) struct Block<'c, 'w, K: KernelValue> {
    chain: &'c Chain<'c, 'w>,
    machine: usize,
    values: Arc<ChainValues<'c, 'w, K>>,
    /// Position, row and K_ii of each variable.
    positions: Vec<usize>,
    rows: Vec<usize>,
    diagonal: Vec<f64>,
    /// Index of the present C.
    k: usize,
    /// The present problem, with its solution once it is solved.
    problem: DualProblem,
    end: BlockEnd,
    /// Violation and squared norm of the solution.
    violation: f64,
    squared_norm: f64,
    /// The block, once kernel values have been gathered.
    subproblem: Option<Subproblem<K>>,
    /// The last error by rounding that was measured.
    measured: Option<MeasuredRounding>,
    /// The last result.
    result: Option<FoldResult>,
    /// True if the problem is solved by the solution for the C before.
    is_solved: bool,
}

impl<'c, 'w, K: KernelValue> Block<'c, 'w, K> {
    /// Returns a machine with its problem for the k-th C of the chain, at the coefficients `start` or at zero; `None` if its rows
    /// have one label.
    pub(super) fn new(
        chain: &'c Chain<'c, 'w>,
        machine: usize,
        values: Arc<ChainValues<'c, 'w, K>>,
        k: usize,
        start: Option<Vec<f64>>,
    ) -> Result<Option<Self>> {
        let positions = chain.members(machine);
        let rows = chain.rows_of(&positions);
        let diagonal = values.source.diagonal(&rows);
        let Some(mut problem) = chain.problem(machine, k, &rows, &diagonal) else { return Ok(None) };
        if let Some(beta) = start {
            problem.project(&beta);
            let (used, weights) = nonzero(&problem.beta, &rows);
            let mut products = vec![0.0; rows.len()];
            let columns = values.source.with_columns(&rows, Context::SEQUENTIAL)?;
            columns.add_product(&used, &weights, &mut products, Context::SEQUENTIAL)?;
            problem.set_outputs(&products);
        }
        let end = BlockEnd::at_goal(0);
        let (subproblem, measured, result, is_solved) = (None, None, None, false);
        Ok(Some(Self {
            chain,
            machine,
            values,
            positions,
            rows,
            diagonal,
            k,
            problem,
            end,
            violation: f64::INFINITY,
            squared_norm: 0.0,
            subproblem,
            measured,
            result,
            is_solved,
        }))
    }

    fn max_rounding(&self) -> f64 {
        self.chain.prepared.training.accuracy.max_rounding
    }

    fn max_iterations(&self) -> u64 {
        self.chain.work.params.max_iterations.unwrap_or(u64::MAX)
    }

    /// Returns the block with the present problem.
    fn take_block(&mut self) -> Result<Subproblem<K>> {
        let members: Vec<usize> = (0..self.rows.len()).collect();
        if let Some(mut block) = self.subproblem.take() {
            block.set_problem(&self.problem, &members);
            return Ok(block);
        }
        let (tuning, ChainValues { matrix, source, memory, .. }) =
            (&self.chain.work.params.tuning, &*self.values);
        Subproblem::new(&self.problem, &members, tuning, memory, |kernel, stride, slots| {
            if let Some(matrix) = matrix {
                gather_block(matrix, &self.positions, kernel, stride, slots);
                return Ok(());
            }
            let check = || self.chain.check();
            write_block(source, &self.rows, kernel, stride, slots, Context::SEQUENTIAL, check)
        })
    }

    /// Solves the block. In few columns the interior-point method takes over once SMO steps have cost as much.
    fn solve_block(&mut self, block: &mut Subproblem<K>) -> Result<BlockEnd> {
        let (ctx, params) = (self.chain.work.ctx, self.chain.work.params);
        let check = || self.chain.check();
        let max_iterations = self.max_iterations();
        let goal = Goal { tolerance: params.tolerance, max_iterations, max_rounding: self.max_rounding() };
        let (n, prepared) = (self.rows.len().max(1), self.values.source.rows());
        let before = FewColumns::count_in(prepared, n, params.cache_bytes)
            .map_or(u64::MAX, |d| interior_point::work_before(n, d) / n as u64);
        let first =
            block.solve_monitored(Goal { max_iterations: max_iterations.min(before), ..goal }, ctx, check)?;
        if first.stop.is_some() || first.steps < before || first.steps >= max_iterations {
            return Ok(first);
        }
        let sequential = ctx.sequential();
        let columns = FewColumns::of(prepared, &self.rows, params.cache_bytes, sequential);
        if let Some(columns) = unless_memory_is_short(columns)? {
            let problem = &mut self.problem;
            (problem.beta, problem.gradient) = block.state();
            let solution = interior_point::solve(problem, &columns, sequential);
            if let Some(solution) = unless_memory_is_short(solution)? {
                problem.beta = solution;
                columns.set_gradients(problem, sequential);
                let members: Vec<usize> = (0..self.rows.len()).collect();
                block.set_problem(problem, &members);
            }
        }
        let remaining = Goal { max_iterations: max_iterations - first.steps, ..goal };
        let last = block.solve_monitored(remaining, ctx, check)?;
        Ok(BlockEnd { steps: first.steps + last.steps, ..last })
    }

    /// Returns the reason of an end that was not an interruption.
    fn reason(&self) -> StopReason {
        if self.end.stop.is_some() {
            StopReason::Stalled
        } else if self.violation <= self.chain.work.params.tolerance {
            StopReason::Converged
        } else if self.end.steps >= self.max_iterations() {
            StopReason::MaxIterations
        } else {
            StopReason::Stalled
        }
    }
}

impl<K: KernelValue> Solve for Block<'_, '_, K> {
    fn solve(&mut self) -> Result<()> {
        if self.is_solved {
            return Ok(());
        }
        let mut block = self.take_block()?;
        let end = self.solve_block(&mut block);
        (self.problem.beta, self.problem.gradient) = block.state();
        self.subproblem = Some(block);
        self.end = end?;
        let kkt = self.problem.kkt_violation(Context::SEQUENTIAL);
        (self.violation, self.squared_norm) = (kkt.largest(), kkt.squared_norm);
        self.end.check()
    }
}

impl Block<'_, '_, f32> {
    /// Returns whether the block has ended because its coefficients became too large for single precision.
    fn is_early(&self) -> bool {
        self.end.stop == Some(StopReason::Stalled)
            && exceeds_single_precision::<f32>(self.squared_norm, self.max_rounding())
    }
}

impl<'c, 'w> SinglePrecision for Block<'c, 'w, f32> {
    type Double = Block<'c, 'w, f64>;

    fn needs_double(&mut self) -> Result<bool> {
        if self.is_solved || self.end.steps >= self.max_iterations() {
            return Ok(false);
        }
        let (squared_norm, max_rounding) = (self.squared_norm, self.max_rounding());
        let mut needs_double = self.is_early();
        if self.measured.is_none_or(|measured| measured.may_exceed(squared_norm, max_rounding)) {
            let (values, source) = (self.chain.prepared.training.values(), &self.values.source);
            let rounding =
                Rounding::measure(&self.problem, &self.rows, &values, source, Context::SEQUENTIAL)?;
            self.measured = Some(MeasuredRounding::new(&rounding, squared_norm));
            needs_double |= rounding.output > max_rounding;
        }
        Ok(needs_double)
    }

    fn into_double(self) -> Result<Self::Double> {
        let beta =
            if self.is_early() { restart_coefficients(&self.problem) } else { self.problem.beta.clone() };
        let (chain, machine, k) = (self.chain, self.machine, self.k);
        let values = Arc::new(chain.values_in_double(&self.values.source)?);
        drop(self);
        Ok(Block::new(chain, machine, values, k, Some(beta))?.expect("the machine has a problem"))
    }
}

impl<K: KernelValue> ChainSolver for Block<'_, '_, K> {
    fn set_cost(&mut self, k: usize) -> Result<()> {
        if k == self.k {
            return Ok(());
        }
        self.k = k;
        let has_converged = self.result.as_ref().is_some_and(|result| result.stop == StopReason::Converged);
        self.is_solved = has_converged && self.problem.is_solved_for_larger_c();
        if !self.is_solved
            && let Some(mut problem) = self.chain.problem(self.machine, k, &self.rows, &self.diagonal)
        {
            problem.start_from_smaller_c(&self.problem, self.chain.ratio(k));
            self.problem = problem;
        }
        Ok(())
    }

    fn results(&mut self, seconds: f64) -> Result<Vec<(usize, FoldResult)>> {
        let result = match &self.result {
            Some(result) if self.is_solved => FoldResult { seconds: 0.0, iterations: 0, ..result.clone() },
            _ => {
                let (used, coefficients) = nonzero(&self.problem.beta, &self.rows);
                let (b, _) = intercept(&self.problem);
                FoldResult {
                    outputs: self.values.held_out.outputs(&used, &coefficients, b, Context::SEQUENTIAL)?,
                    seconds,
                    iterations: self.end.steps,
                    support: used.len(),
                    stop: self.reason(),
                }
            }
        };
        self.result = Some(result.clone());
        Ok(vec![(self.machine, result)])
    }
}

/// Releases the memory of the block for another machine.
impl<K: KernelValue> Drop for Block<'_, '_, K> {
    fn drop(&mut self) {
        if let Some(block) = self.subproblem.take() {
            self.values.memory.put(block.kernel);
        }
    }
}

/// Gathers the kernel values of a block's members, at the given positions, from the matrix of all rows.
fn gather_block<K: KernelValue>(
    matrix: &KernelMatrix<K>,
    positions: &[usize],
    kernel: &mut [K],
    stride: usize,
    slots: &[usize],
) {
    let columns = Indices::new(positions);
    for (&position, &slot) in positions.iter().zip(slots) {
        // A search has no problems with two groups: slots are consecutive.
        columns.gather(matrix.row(position), &mut kernel[slot * stride + slots[0]..][..positions.len()]);
    }
}
