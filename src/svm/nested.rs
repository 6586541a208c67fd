//! The middle tier: a block too large for one matrix, solved by blocks of its own.
//!
//! The block's variables are a problem like the machine's, with kernel values against each other only. Small blocks
//! of its worst violators are solved by pair steps in a matrix that stays in the second cache, and the gradients within
//! the large block follow by one product, in parallel. Beside one matrix for the whole block this makes more pair
//! steps, but each costs less: their scans are short, and no matrix of 64 MB is written and read. The moves taken
//! together then update the gradients of all variables once (thesis 2.4, a tier more).
//!
//! Where the blocks crawl, the unbounded variables of the large block take a direct step together (`newton`).
//!
//! Tried and dropped: conjugate gradients over the unbounded variables. Where nearly all vectors are unbounded the
//! matrix is so badly conditioned that twenty products did not halve a violation that four rounds of blocks do.
//!
//! Invariant: gradients are exact for the present coefficients, between rounds, as in the outer tier. Cost: a round
//! takes (changed coefficients) x (variables) kernel values, never stored.

use super::newton::{Face, Patience};
use super::params::Tuning;
use super::precision::KernelValue;
use super::problem::DualProblem;
use super::subproblem::{Goal, Subproblem, write_block};
use super::working_set::WorkingSet;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{Arenas, TryCollect};

/// Share of the large block's violation that one of its blocks is solved to.
const SHARE: f64 = 0.3;

/// A large block, solved.
pub(super) struct Solved {
    pub(super) beta: Vec<f64>,
    /// Pair steps.
    pub(super) steps: u64,
    /// What they promise (see `stall`).
    pub(super) promised: f64,
}

/// Solves the problem of the variables of a large block by blocks of `size` until the goal is reached; returns
/// what came of it. `rows` are the variables' rows; an error of `check` ends it.
pub(super) fn solve<K: KernelValue>(
    mut problem: DualProblem,
    (rows, source): (&[usize], &KernelRows<'_>),
    tuning: &Tuning,
    memory: &Arenas<K>,
    (goal, patience): (Goal, &mut Patience),
    ctx: Context<'_>,
    check: impl Fn() -> Result<()>,
) -> Result<Solved> {
    let source = source.with_columns(rows, ctx)?;
    let mut set = WorkingSet::new(tuning.nested);
    let (mut steps, mut promised) = (0, 0.0);
    while steps < goal.max_steps {
        check()?;
        let survey = problem.survey();
        let gap = survey.violation();
        if gap <= goal.tolerance {
            break;
        }
        if patience.is_over(survey.unbounded) {
            let (changed, changes, share) = step_directly(&mut problem, (rows, &source), memory, ctx)?;
            patience.paid(share);
            if share > 0.0 {
                steps += 1;
                source.add_product(&changed, &changes, &mut problem.gradient, ctx)?;
                continue;
            }
        }
        set.choose(&problem, &survey.extremes)?;
        let members: Vec<usize> = set.members.iter().map(|&v| rows[v]).try_collect_vec()?;
        let mut block = Subproblem::new(&problem, &set.members, tuning, memory, |kernel, stride, slots| {
            write_block(&source, &members, kernel, stride, slots, ctx)
        })?;
        let inner =
            Goal { tolerance: (SHARE * gap).max(0.5 * goal.tolerance), max_steps: goal.max_steps - steps };
        let made = block.solve(inner, ctx)?;
        promised += block.promised;
        let (beta, _) = block.finish(memory);
        if made == 0 {
            break;
        }
        steps += made;
        patience.spend(made * members.len() as u64);
        let (changed, changes) = problem.move_to(&set.members, &beta);
        let changed: Vec<usize> = changed.iter().map(|&v| rows[v]).try_collect_vec()?;
        source.add_product(&changed, &changes, &mut problem.gradient, ctx)?;
    }
    Ok(Solved { beta: problem.beta, steps, promised })
}

/// Moves the unbounded variables to the best values that a system of equations finds; the rows of those that have moved,
/// by how much, and
/// the share of the way to the best.
fn step_directly<K: KernelValue>(
    problem: &mut DualProblem,
    (rows, source): (&[usize], &KernelRows<'_>),
    memory: &Arenas<K>,
    ctx: Context<'_>,
) -> Result<(Vec<usize>, Vec<f64>, f64)> {
    let members: Vec<usize> = (0..problem.len()).filter(|&v| problem.is_unbounded(v)).try_collect_vec()?;
    let m = members.len();
    let nothing = (Vec::new(), Vec::new(), 0.0);
    // Pair steps need no more memory than there is.
    let Ok(mut kernel) = memory.take("the kernel matrix of the unbounded variables", m * m) else {
        return Ok(nothing);
    };
    let of_members: Vec<usize> = members.iter().map(|&v| rows[v]).try_collect_vec()?;
    let slots: Vec<usize> = (0..m).try_collect_vec()?;
    let matrix = &mut kernel.values_mut()[..m * m];
    source.with_columns(&of_members, ctx)?.compute(
        &of_members,
        &mut matrix.chunks_exact_mut(m).try_collect_vec()?,
        ctx,
    )?;
    for (k, &v) in members.iter().enumerate() {
        matrix[k * m + k] = K::from_f64(problem.diagonal[v]);
    }
    let kept = |group: u8| Some(group).filter(|group| *group > 0 || !problem.anchored);
    let face = Face {
        kernel: matrix,
        stride: m,
        slots,
        values: members.iter().map(|&v| problem.beta[v]).try_collect_vec()?,
        derivatives: members.iter().map(|&v| problem.rise(v)).try_collect_vec()?,
        ends: members.iter().map(|&v| problem.ends(v)).try_collect_vec()?,
        groups: members.iter().map(|&v| kept(problem.group[v])).try_collect_vec()?,
    };
    let solved = face.solve(ctx)?;
    memory.put(kernel);
    let Some((values, share)) = solved else { return Ok(nothing) };
    let (changed, changes) = problem.move_to(&members, &values);
    Ok((changed.iter().map(|&v| rows[v]).try_collect_vec()?, changes, share))
}
