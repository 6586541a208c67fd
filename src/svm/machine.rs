//! A machine: its problem, its working set, its columns, and the steps of a round that concern it alone.
//!
//! The block of the working set is solved, and all gradients are updated by one product f += K(:, changed) changes. If a
//! kernel value is cheap, the product is computed without storing kernel values; otherwise its rows come from a cache.
//! Machines without a cache may shrink (see `shrinking`).
//!
//! Invariant between rounds: gradients are exact for the coefficients (sums in double precision of the same
//! single-precision kernel values), coefficients are feasible.
//!
//! Cost of a round: two scans of the block per SMO step, and (changed coefficients) x (columns) kernel values. A stop within
//! a block keeps the steps made; a stop in a nested block or in the update of the gradients undoes the round.

mod finish;
mod start;

use super::active_set::StepBudget;
use super::certificate::{Certificate, Rounding};
use super::columns::{ClassBlock, KernelColumns};
use super::interior_point::InteriorPoint;
use super::nested;
use super::params::Tuning;
use super::precision::KernelValue;
use super::problem::{DualProblem, KktViolation};
use super::rounding::MeasuredRounding;
use super::shrinking::Variables;
use super::stall::{Change, NEGLIGIBLE_ROUNDINGS, StallDetector, UNCERTAIN_ROUNDINGS, dual_gain};
use super::subproblem::{BlockSolution, Goal, Subproblem, write_block};
use super::training::Training;
use super::working_set::WorkingSet;
use crate::cache::RowCache;
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::Precision;
use crate::memory::{Arenas, TryCollect, TryToVec, try_vec};
use crate::simd::blas::add_rows;
use crate::simd::gather::Indices;
use std::ops::Range;

/// Maximum number of entries scanned in one block: a few tenths of a second.
const MAX_BLOCK_SCAN: usize = 200_000_000;
/// Number of steps per variable after which a block ends, and a machine that gains too little.
const MAX_STEPS_PER_VARIABLE: u64 = 20_000;
/// Number of rounds without progress after which a machine has stalled.
const MAX_IDLE_ROUNDS: u32 = 50;
/// Tolerance of a block, relative to the violation of the machine.
const BLOCK_TOLERANCE_SHARE: f64 = 0.1;
/// The same for a block that is solved by blocks of its own.
const NESTED_TOLERANCE_SHARE: f64 = 0.2;
/// Columns per task of a gradient update: their gradients fit the first-level cache.
const COLUMNS_PER_TASK: usize = 4096;
/// Rows per task in which a block's kernel values are gathered.
const ROWS_PER_TASK: usize = 64;

/// A machine. Its variables are the positions of its class blocks, one class block after the other; while the machine is
/// shrunk, the active ones among them.
pub(super) struct Machine<'a> {
    variables: Variables<'a>,
    /// Violation of the optimality conditions at the present coefficients.
    pub(super) kkt: KktViolation,
    pub(super) iterations: u64,
    rounds: u64,
    pub(super) stop: Option<StopReason>,
    parts: Vec<MachineColumns>,
    pub(super) working_set: WorkingSet,
    tuning: Tuning,
    /// Maximum violation at present: less than `max_tolerance` if that left a large gap.
    pub(super) tolerance: f64,
    /// Maximum violation by the parameters.
    max_tolerance: f64,
    newton_budget: StepBudget,
    stall: StallDetector,
    /// Multiply-adds of the rounds since the start or the last run of the interior-point method.
    work: u64,
    interior_point: InteriorPoint,
    /// The error that one rounding adds to a gradient, as of the last round.
    pub(super) gradient_rounding: f64,
    /// Maximum error of the outputs by rounding, once the machine has ended.
    rounding: Option<Rounding>,
    /// The last error that was measured in single precision; later problems of the same machine may need no measurement.
    measured: Option<MeasuredRounding>,
    /// True if `rounding` is a worst-case bound in double precision.
    is_rounding_bounded: bool,
    /// True if gradients are those of kernel values in double precision.
    is_double: bool,
    /// Intercept, rho and certificate of a machine that was stopped before its gradients were exact.
    inexact_outcome: Option<(f64, f64, Certificate)>,
    /// Intercept, rho and certificate of a machine whose rounding has been measured at its end.
    final_outcome: Option<(f64, f64, Certificate)>,
}

/// The columns of one class block in a machine: variables `first..first + positions.len()`.
struct MachineColumns {
    class_block: usize,
    first: usize,
    positions: Range<usize>,
}

impl<'a> Machine<'a> {
    /// Creates a machine over the given class blocks; `is_exact` says that the problem's gradients are those of its
    /// coefficients.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the user interrupts the computation of the gradients, [`Error::Param`] if its time runs out.
    pub(super) fn new<K: KernelValue>(
        problem: DualProblem,
        is_exact: bool,
        class_blocks: &[usize],
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Self> {
        let mut first = 0;
        let parts: Vec<MachineColumns> = class_blocks
            .iter()
            .map(|&class_block| {
                let positions = columns.class_blocks[class_block].positions.clone();
                first += positions.len();
                MachineColumns { class_block, first: first - positions.len(), positions }
            })
            .try_collect_vec()?;
        assert_eq!(first, problem.len());
        let rows = parts.iter().flat_map(|part| columns.order[part.positions.clone()].iter().copied());
        let variables = Variables::new(problem, rows.try_collect_vec()?);
        let (problem, tuning) = (&variables.problem, training.params.tuning);
        let is_exact = is_exact || problem.beta.iter().all(|b| *b == 0.0);
        let mut machine = Self {
            kkt: problem.kkt_violation(training.ctx),
            iterations: 0,
            rounds: 0,
            stop: None,
            working_set: WorkingSet::new(
                tuning.first_block(problem.len()).min(cache_capacity(&parts, columns)),
            ),
            parts,
            tuning,
            tolerance: training.params.tolerance,
            max_tolerance: training.params.tolerance,
            newton_budget: StepBudget::newton(tuning.newton_steps),
            stall: StallDetector::new(),
            work: 0,
            interior_point: InteriorPoint::Possible,
            gradient_rounding: 0.0,
            rounding: None,
            measured: None,
            is_rounding_bounded: false,
            is_double: K::PRECISION == Precision::Double,
            inexact_outcome: None,
            final_outcome: None,
            variables,
        };
        if !is_exact {
            let beta = machine.problem().beta.try_to_vec()?;
            machine.start_at(beta, columns, training).map_err(|error| match error {
                Error::Stopped(StopReason::MaxTime) => {
                    let rule = "long enough for the gradients of the coefficients that the fit starts from";
                    Error::param("max_time", "over before the first round", rule)
                }
                error => error,
            })?;
        }
        Ok(machine)
    }

    /// Replaces the problem by another one of the same variables, whose gradients belong to its coefficients; only for
    /// machines that do not shrink.
    pub(super) fn set_problem(&mut self, problem: DualProblem, ctx: Context<'_>) {
        self.kkt = problem.kkt_violation(ctx);
        self.variables.problem = problem;
        (self.iterations, self.rounds, self.tolerance) = (0, 0, self.max_tolerance);
        (self.work, self.interior_point) = (0, InteriorPoint::Possible);
        self.resume();
    }

    /// Clears how the machine ended, so that rounds can continue from its coefficients.
    fn resume(&mut self) {
        (self.stop, self.stall, self.gradient_rounding) = (None, StallDetector::new(), 0.0);
        (self.rounding, self.is_rounding_bounded, self.final_outcome) = (None, false, None);
    }

    /// Adds the iterations and rounds of a machine whose solution this one starts from.
    pub(super) fn add_work_of(&mut self, other: &Self) {
        self.iterations += other.iterations;
        self.rounds += other.rounds;
    }

    /// Returns the problem: that of the active variables while the machine is shrunk.
    pub(super) fn problem(&self) -> &DualProblem {
        &self.variables.problem
    }

    /// Returns whether gradients are those of the coefficients.
    pub(super) fn is_exact(&self) -> bool {
        self.inexact_outcome.is_none()
    }

    /// Returns the class blocks of the machine's columns.
    pub(super) fn class_blocks(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.class_block)
    }

    /// Removes kernel rows from the caches: those of the rows of one class block against the columns of another, for pairs
    /// of class blocks that `is_unused` names.
    pub(super) fn forget_rows<K: KernelValue>(
        &self,
        class_blocks: &mut [ClassBlock<'_, K>],
        is_unused: impl Fn(usize, usize) -> bool,
    ) {
        for part in &self.parts {
            let Some(cache) = class_blocks[part.class_block].cache_mut() else { continue };
            for other in &self.parts {
                if other.class_block != part.class_block && is_unused(part.class_block, other.class_block) {
                    cache.forget(other.positions.clone());
                }
            }
        }
    }

    /// Returns the first variable and the positions of each class block.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        self.parts.iter().map(|part| (part.first, part.positions.clone()))
    }

    /// Returns the index of the part that contains a variable of a machine that is not shrunk.
    fn part_of(&self, variable: usize) -> usize {
        self.parts.partition_point(|part| part.first <= variable) - 1
    }

    /// Returns the position of a variable of a machine that is not shrunk.
    fn position(&self, variable: usize) -> usize {
        let part = &self.parts[self.part_of(variable)];
        part.positions.start + variable - part.first
    }

    /// Returns the training rows of some variables.
    pub(super) fn rows_of(&self, variables: &[usize]) -> Result<Vec<usize>> {
        variables.iter().map(|&v| self.variables.rows[v]).try_collect_vec()
    }

    /// Returns whether the working set has all variables.
    pub(super) fn has_whole_block(&self) -> bool {
        self.working_set.members.len() == self.problem().len()
    }

    /// Selects the next working set.
    pub(super) fn select(&mut self, ctx: Context<'_>) -> Result<()> {
        self.working_set.select(&self.variables.problem, &self.kkt.maximal_pairs, ctx)
    }

    /// Returns the positions of the members of the working set, for machines whose kernel rows are cached.
    pub(super) fn selected_positions(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.working_set.members.iter().map(|&v| self.position(v))
    }

    /// Solves the block of the working set. An error of `check` ends it, or becomes part of the solution if steps have been
    /// made.
    pub(super) fn solve_block<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        memory: &Arenas<K>,
        training: &Training<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<BlockSolution> {
        let (params, ctx) = (training.params, training.ctx);
        let max_rounding = self.max_rounding(training.accuracy);
        let tolerance = self.tolerance.max(NEGLIGIBLE_ROUNDINGS * self.gradient_rounding);
        let members = &self.working_set.members;
        let steps_left = params.max_iterations.map_or(u64::MAX, |max| max - self.iterations);
        let max_scan = self.work_before_interior_point(training).min(MAX_BLOCK_SCAN as u64);
        let len = members.len().max(1) as u64;
        let max_steps = (max_scan / len).max(1000).min(MAX_STEPS_PER_VARIABLE * len).min(steps_left);
        let relative = |share: f64| (share * self.kkt.largest()).max(0.5 * tolerance);
        if !columns.are_kept() && members.len() > self.tuning.nested_block {
            let source = &columns.class_blocks[self.parts[0].class_block].source;
            let goal = Goal { tolerance: relative(NESTED_TOLERANCE_SHARE), max_steps, max_rounding };
            let problem = self.problem().select(members, ctx)?;
            let rows = self.rows_of(members)?;
            let budget = &mut self.newton_budget;
            return nested::solve(problem, (&rows, source), &self.tuning, memory, (goal, budget), ctx, check);
        }
        let tolerance = if self.has_whole_block() { tolerance } else { relative(BLOCK_TOLERANCE_SHARE) };
        let mut block = self.block(columns, memory, ctx, &check)?;
        let (steps, stop) = block.solve_monitored(Goal { tolerance, max_steps, max_rounding }, ctx, check)?;
        Ok(block.into_solution(steps, stop, memory))
    }

    /// Returns the block of the working set with its kernel values, gathered from cached rows or computed.
    fn block<K: KernelValue>(
        &self,
        columns: &KernelColumns<'_, K>,
        memory: &Arenas<K>,
        ctx: Context<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<Subproblem<K>> {
        let members = &self.working_set.members;
        Subproblem::new(self.problem(), members, &self.tuning, memory, |kernel, stride, slots| {
            let class_blocks = &columns.class_blocks;
            if !columns.are_kept() {
                let source = &class_blocks[self.parts[0].class_block].source;
                return write_block(source, &self.rows_of(members)?, kernel, stride, slots, ctx, check);
            }
            // Runs of members of one part at consecutive slots: part, first slot, columns in a row of its class block.
            let mut runs: Vec<(usize, usize, Vec<usize>)> = Vec::new();
            let mut member_of = try_vec![None; stride]?;
            for (&v, &slot) in members.iter().zip(slots) {
                let part = self.part_of(v);
                let column = v - self.parts[part].first;
                match runs.last_mut() {
                    Some((of, first, columns)) if *of == part && *first + columns.len() == slot => {
                        columns.push(column);
                    }
                    _ => runs.push((part, slot, vec![column])),
                }
                member_of[slot] = Some(v);
            }
            let runs = runs.iter().map(|(part, first, columns)| {
                Ok((self.parts[*part].class_block, *first, Indices::new(columns)))
            });
            let runs: Vec<(usize, usize, Indices)> = runs.try_collect_results()?;
            ctx.for_each_chunk(kernel, ROWS_PER_TASK * stride, |task, lines| {
                for (i, line) in lines.chunks_exact_mut(stride).enumerate() {
                    let Some(member) = member_of[task * ROWS_PER_TASK + i] else { continue };
                    let position = self.position(member);
                    for (class_block, first, columns) in &runs {
                        let out = &mut line[*first..][..columns.len()];
                        columns.gather(class_blocks[*class_block].row(position), out);
                    }
                }
            });
            Ok(())
        })
    }

    /// Takes the coefficients of the block's solution and updates all gradients: f += K(:, changed) changes. Detects stalls,
    /// and adapts the size of the working set.
    ///
    /// # Errors
    /// [`Error::Stopped`]. If the gradients are not complete, the changes are undone.
    pub(super) fn update<K: KernelValue>(
        &mut self,
        solution: BlockSolution,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        self.iterations += solution.steps;
        self.rounds += 1;
        let block = self.working_set.members.len().min(self.tuning.nested_block.max(self.tuning.max_whole));
        self.work = self.work.saturating_add(solution.steps.saturating_mul(block as u64));
        if solution.steps == 0 {
            self.stop = Some(StopReason::Stalled);
            return Ok(());
        }
        let before = (self.problem().beta.try_to_vec()?, self.problem().gradient.try_to_vec()?);
        let (changed, changes) =
            self.variables.problem.set_coefficients(&self.working_set.members, &solution.beta);
        let updated = match &solution.gradient {
            Some(gradient) if self.has_whole_block() => {
                for (&v, &gradient) in self.working_set.members.iter().zip(gradient) {
                    self.variables.problem.gradient[v] = gradient;
                }
                Ok(())
            }
            _ => {
                let depth = if columns.are_kept() { 1 } else { columns.depth() };
                self.work += (changed.len() * self.problem().len()) as u64 * depth as u64;
                self.add_changes((&changed, &changes), columns, training)
            }
        };
        if let Err(error) = updated {
            let problem = &mut self.variables.problem;
            (problem.beta, problem.gradient) = before;
            return Err(error);
        }
        self.kkt = self.problem().kkt_violation(training.ctx);
        self.detect_stall(&changed, before, &solution);
        // A block must be larger than the number of unbounded variables, or rounds undo each other (Rifkin 2002, 2.6.3).
        let wanted = (self.kkt.n_unbounded * 7 / 4).next_multiple_of(64).min(self.tuning.max_block);
        self.working_set.size = self.working_set.size.max(wanted).min(cache_capacity(&self.parts, columns));
        match solution.stop {
            Some(reason) if reason != StopReason::Stalled => Err(Error::Stopped(reason)),
            _ => Ok(()),
        }
    }

    /// Stops the machine after rounds without progress; `before` are the coefficients and gradients before the round.
    fn detect_stall(&mut self, changed: &[usize], before: (Vec<f64>, Vec<f64>), solution: &BlockSolution) {
        let problem = &self.variables.problem;
        let changes = changed.iter().map(|&v| Change {
            from: before.0[v],
            to: problem.beta[v],
            gradient: f64::midpoint(before.1[v], problem.gradient[v]),
            group: problem.group[v],
        });
        let gain = dual_gain(changes, problem.epsilon, problem.has_equality);
        self.gradient_rounding = self.kkt.rounding();
        let floor = UNCERTAIN_ROUNDINGS * self.gradient_rounding;
        let idle = self.stall.record_stretch(gain, solution.expected_gain, self.kkt.largest(), floor);
        // A block of a larger machine may have stalled because it was the wrong one.
        let max_idle = if solution.stop != Some(StopReason::Stalled) {
            MAX_IDLE_ROUNDS
        } else if self.working_set.members.len() < problem.len() {
            MAX_IDLE_ROUNDS / 10
        } else {
            0
        };
        if idle >= max_idle {
            self.stop = Some(StopReason::Stalled);
        }
    }

    /// Adds the products of the changes of some variables to all gradients.
    fn add_changes<K: KernelValue>(
        &mut self,
        (changed, changes): (&[usize], &[f64]),
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let (ctx, depth) = (training.ctx, columns.depth());
        let rows = self.rows_of(changed)?;
        if let Some(source) = &self.variables.source {
            let gradient = &mut self.variables.problem.gradient;
            return training.add_product(source, depth, (&rows, changes), gradient);
        }
        let positions: Vec<usize> = changed.iter().map(|&v| self.position(v)).try_collect_vec()?;
        for part in &self.parts {
            let class_block = &columns.class_blocks[part.class_block];
            let range = part.first..part.first + part.positions.len();
            let gradient = &mut self.variables.problem.gradient[range];
            if class_block.is_kept() {
                let rows: Vec<&[K]> =
                    positions.iter().map(|&position| class_block.row(position)).try_collect_vec()?;
                ctx.for_each_chunk(gradient, COLUMNS_PER_TASK, |task, gradient| {
                    add_rows(changes, &rows, task * COLUMNS_PER_TASK, gradient);
                });
            } else {
                training.add_product(&class_block.source, depth, (&rows, changes), gradient)?;
            }
        }
        Ok(())
    }

    /// Sets variables aside that no pair can move at present, if kernel values are not cached.
    pub(super) fn shrink<K: KernelValue>(
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

    /// Undoes the last shrinking and returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which nothing is changed.
    pub(super) fn unshrink<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<bool> {
        let Some(active) = self.variables.unshrink(columns.depth(), training)? else { return Ok(false) };
        self.working_set = self.working_set.renumbered(|k| Some(active[k]));
        self.kkt = self.problem().kkt_violation(training.ctx);
        Ok(true)
    }
}

/// Returns the maximum number of variables of a block whose rows fit the caches.
fn cache_capacity<K: KernelValue>(parts: &[MachineColumns], columns: &KernelColumns<'_, K>) -> usize {
    parts
        .iter()
        .filter_map(|part| columns.class_blocks[part.class_block].cache())
        .map(RowCache::<K>::capacity)
        .min()
        .unwrap_or(usize::MAX)
}
