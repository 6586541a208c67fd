//! The middle tier: a block too large for one matrix, solved by blocks of its own.
//!
//! The block's variables are a problem like the machine's, with kernel values against each other only. Small blocks
//! of its worst violators are solved by pair steps in a matrix that stays in the second cache, and the gradients within
//! the large block follow by one product, in parallel. Beside one matrix for the whole block this makes more pair
//! steps, but each costs less: their scans are short, and no matrix of 64 MB is written and read. The moves taken
//! together then update the gradients of all variables once (thesis 2.4, a tier more).
//!
//! Tried and dropped: conjugate gradients over the unbounded variables. Where nearly all vectors are unbounded the
//! matrix is so badly conditioned that twenty products did not halve a violation that four rounds of blocks do.
//!
//! Invariant: gradients are exact for the present coefficients, between rounds, as in the outer tier. Cost: a round
//! takes (changed coefficients) x (variables) kernel values, never stored.

use super::problem::DualProblem;
use super::subproblem::{Goal, Subproblem, write_block};
use super::working_set::WorkingSet;
use crate::control::Par;
use crate::kernels::KernelRows;
use crate::memory::Arenas;

/// Share of the large block's violation that one of its blocks is solved to.
const SHARE: f64 = 0.3;

/// Solves the problem of the variables of a large block by blocks of `size` until the goal is reached; returns
/// coefficients and the number of pair steps. `rows` are the variables' rows.
pub(super) fn solve(
    mut problem: DualProblem,
    rows: &[usize],
    source: &KernelRows<'_>,
    size: usize,
    memory: &Arenas,
    goal: Goal,
    par: Par,
) -> (Vec<f64>, u64) {
    let source = source.with_columns(rows, par);
    let mut set = WorkingSet::new(size);
    let mut steps = 0;
    while steps < goal.max_steps {
        let survey = problem.survey();
        let gap = survey.violation();
        if gap <= goal.tolerance {
            break;
        }
        set.choose(&problem, &survey.extremes);
        let members: Vec<usize> = set.members.iter().map(|&v| rows[v]).collect();
        let mut block = Subproblem::new(&problem, &set.members, memory, |kernel, stride, slots| {
            write_block(&source, &members, kernel, stride, slots, par);
        });
        let made = block.solve(Goal {
            tolerance: (SHARE * gap).max(0.5 * goal.tolerance),
            max_steps: goal.max_steps - steps,
        });
        let (beta, _) = block.finish(memory);
        if made == 0 {
            break;
        }
        steps += made;
        let (changed, changes) = problem.move_to(&set.members, &beta);
        let changed: Vec<usize> = changed.iter().map(|&v| rows[v]).collect();
        source.add_product(&changed, &changes, &mut problem.gradient, par);
    }
    (problem.beta, steps)
}
