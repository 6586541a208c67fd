//! The middle tier: a block too large for one matrix is solved by blocks of its own.
//!
//! The block's variables are a problem like the machine's, with kernel values among themselves only. Small blocks of the
//! largest violators are solved by SMO steps in a matrix that fits the second-level cache, and the gradients within the
//! large block are updated by one product, in parallel. Compared with one matrix for the whole block this takes more SMO
//! steps, but each costs less: scans are short, and no matrix of 64 MB is written and read. All changes together then
//! update the gradients of all variables once (Rifkin 2002, 2.4, with one more tier).
//!
//! The unbounded variables of the large block take Newton steps together (`active_set`).
//!
//! Invariant: gradients are exact for the present coefficients between rounds, as in the outer tier. Cost: a round takes
//! (changed coefficients) x (variables) kernel values, never stored.

use super::active_set::{StepBudget, is_newton_due};
use super::params::Tuning;
use super::precision::KernelValue;
use super::problem::DualProblem;
use super::subproblem::{BlockEnd, BlockSolution, Goal, Subproblem, write_block};
use super::working_set::WorkingSet;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::KernelRows;
use crate::memory::Arenas;

/// Tolerance of an inner block, relative to the violation of the large block.
const INNER_TOLERANCE_SHARE: f64 = 0.3;

/// Solves the problem of a large block by blocks of `tuning.nested_block` variables until the goal is reached. `rows` are
/// the training rows of its variables.
///
/// # Errors
/// Returns the errors of `check` and of a Newton step.
pub(super) fn solve<K: KernelValue>(
    mut problem: DualProblem,
    (rows, source): (&[usize], &KernelRows<'_>),
    tuning: &Tuning,
    memory: &Arenas<K>,
    (goal, newton_budget): (Goal, &mut StepBudget),
    ctx: Context<'_>,
    check: impl Fn() -> Result<()>,
) -> Result<BlockSolution> {
    let source = source.with_columns(rows, ctx)?;
    let block_of = |problem: &DualProblem, members: &[usize]| {
        let rows: Vec<usize> = members.iter().map(|&v| rows[v]).collect();
        Subproblem::new(problem, members, tuning, memory, |kernel, stride, slots| {
            write_block(&source, &rows, kernel, stride, slots, ctx, &check)
        })
    };
    let update = |problem: &mut DualProblem, members: &[usize], beta: &[f64]| {
        let (changed, changes) = problem.set_coefficients(members, beta);
        let changed: Vec<usize> = changed.iter().map(|&v| rows[v]).collect();
        source.add_product(&changed, &changes, &mut problem.gradient, ctx)
    };
    let mut set = WorkingSet::new(tuning.nested_block);
    let (mut steps, mut expected_gain) = (0, 0.0);
    while steps < goal.max_iterations {
        check()?;
        let kkt = problem.kkt_violation(ctx);
        let violation = kkt.largest();
        if violation <= goal.tolerance {
            break;
        }
        if is_newton_due(newton_budget, kkt.n_unbounded) {
            let free = problem.filter(ctx, |v| problem.is_unbounded(v));
            // SMO steps work without the memory of a Newton step.
            let (length, beta) = match block_of(&problem, &free) {
                Ok(mut block) => {
                    (block.newton_step(ctx)?, block.into_solution(BlockEnd::at_goal(1), memory).beta)
                }
                Err(Error::Memory { .. }) => (0.0, Vec::new()),
                Err(error) => return Err(error),
            };
            newton_budget.record_gain(length);
            if length > 0.0 {
                steps += 1;
                update(&mut problem, &free, &beta)?;
                continue;
            }
        }
        set.select(&problem, &kkt.maximal_pairs, ctx);
        let mut block = block_of(&problem, &set.members)?;
        let tolerance = (INNER_TOLERANCE_SHARE * violation).max(0.5 * goal.tolerance);
        let made =
            block.solve(Goal { tolerance, max_iterations: goal.max_iterations - steps, ..goal }, ctx)?;
        let solution = block.into_solution(BlockEnd::at_goal(made), memory);
        expected_gain += solution.expected_gain;
        if made == 0 {
            break;
        }
        steps += made;
        newton_budget.charge(made * set.members.len() as u64);
        update(&mut problem, &set.members, &solution.beta)?;
    }
    Ok(BlockSolution { beta: problem.beta, gradient: None, expected_gain, end: BlockEnd::at_goal(steps) })
}
