//! The block of a machine's working set: its kernel values are gathered from cached rows, or computed, and the block is solved.
//!
//! A block that is too large for one matrix is solved by blocks of its own (`nested`).
//!
//! Cost: that of the steps; m^2 kernel values of m members.

use super::super::columns::KernelColumns;
use super::super::nested;
use super::super::precision::KernelValue;
use super::super::stall::NEGLIGIBLE_ROUNDINGS;
use super::super::subproblem::{BlockSolution, Goal, Subproblem, write_block};
use super::super::training::Training;
use super::{MAX_STEPS_PER_VARIABLE, Machine};
use crate::context::Context;
use crate::error::Result;
use crate::memory::Arenas;
use crate::simd::gather::Indices;

/// Maximum number of entries scanned in one block: a few tenths of a second.
const MAX_BLOCK_SCAN: usize = 200_000_000;
/// Tolerance of a block, relative to the violation of the machine.
const BLOCK_TOLERANCE_SHARE: f64 = 0.1;
/// The same for a block that is solved by blocks of its own.
const NESTED_TOLERANCE_SHARE: f64 = 0.2;
/// Rows per task in which a block's kernel values are gathered.
const ROWS_PER_TASK: usize = 64;

impl Machine<'_> {
    /// Solves the block of the working set. An error of `check` ends it, or becomes part of the solution if steps have been
    /// made.
    pub(in crate::svm) fn solve_block<K: KernelValue>(
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
        let max_iterations = (max_scan / len).max(1000).min(MAX_STEPS_PER_VARIABLE * len).min(steps_left);
        let relative = |share: f64| (share * self.kkt.largest()).max(0.5 * tolerance);
        if !columns.are_stored() && members.len() > self.tuning.nested_block {
            let source = &columns.class_blocks[self.parts[0].class_block].source;
            let goal = Goal { tolerance: relative(NESTED_TOLERANCE_SHARE), max_iterations, max_rounding };
            let problem = self.problem().select(members, ctx);
            let rows = self.rows_of(members);
            let budget = &mut self.newton_budget;
            return nested::solve(problem, (&rows, source), &self.tuning, memory, (goal, budget), ctx, check);
        }
        let tolerance = if self.has_whole_block() { tolerance } else { relative(BLOCK_TOLERANCE_SHARE) };
        let mut block = self.block(columns, memory, ctx, &check)?;
        let end = block.solve_monitored(Goal { tolerance, max_iterations, max_rounding }, ctx, check)?;
        Ok(block.into_solution(end, memory))
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
            if !columns.are_stored() {
                let source = &class_blocks[self.parts[0].class_block].source;
                return write_block(source, &self.rows_of(members), kernel, stride, slots, ctx, check);
            }
            // Runs of members of one part at consecutive slots: part, first slot, columns in a row of its class block.
            let mut runs: Vec<(usize, usize, Vec<usize>)> = Vec::new();
            let mut member_of = vec![None; stride];
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
            let runs: Vec<(usize, usize, Indices)> = runs
                .iter()
                .map(|(part, first, columns)| (self.parts[*part].class_block, *first, Indices::new(columns)))
                .collect();
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
}
