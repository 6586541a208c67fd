//! A starting point from a subsample: a machine of many rows starts from the solution for a quarter of them.
//!
//! A subsample of n / 4 rows with C four times as large has nearly the same objective, so nearly the same outputs. These
//! determine which coefficients of the whole machine are at which bound: with the derivative g = f + s of the objective and
//! epsilon e,
//!
//! ```text
//! beta_i = upper_i if g_i + e < t,   lower_i if g_i - e > t,   0 between
//! ```
//!
//! where the level t is such that the coefficients sum to zero (minus the intercept, at an optimum). A large subsample is
//! itself started from a subsample, so the machines of the [`levels`] are solved from the smallest to the largest. The
//! rounds then move variables near the margin; the others are soon set aside.
//!
//! If many vectors are unbounded, their coefficients do not follow from outputs and nothing is gained. The smallest
//! subsample shows this, and the larger ones are then not solved.
//!
//! Invariant: bounds and sums are kept, gradients are exact, and no bit depends on the number of threads. Cost: the fits of
//! the subsamples, and n kernel values for each support vector of the subsample and of the start.

use super::certificate::Certificate;
use super::columns::{Effort, KernelColumns};
use super::decomposition::Rounds;
use super::engine::Solve;
use super::machine::{Machine, Outcome};
use super::precision::KernelValue;
use super::problem::DualProblem;
use super::training::Training;
use crate::context::StopReason;
use crate::error::Result;
use crate::memory::Arenas;
use crate::random::Random;
use std::sync::Arc;

/// Number of rows per row of a subsample.
const SUBSAMPLE_RATIO: usize = 4;
/// Maximum share of unbounded ones among the support vectors of a subsample.
const MAX_UNBOUNDED_SHARE: f64 = 0.1;
/// Number of bisections of the interval that contains the level.
const LEVEL_BISECTIONS: usize = 64;

/// A subsample of the variables of a larger machine, with the machine that is fitted to it.
struct Level<'t, 'a, K> {
    /// Variables of the larger machine.
    variables: Vec<usize>,
    rounds: Rounds<'t, 'a, K>,
}

/// Where a larger machine starts.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
enum LargerStart {
    /// At the bounds that the outputs of the subsample determine; or it ended there.
    AtBounds,
    /// At zero, because too many support vectors of the subsample are unbounded.
    AtZero,
}

impl<K: KernelValue> Rounds<'_, '_, K> {
    /// Solves the subsamples of large machines from the smallest to the largest, each started from the one before, and starts
    /// the machines from the last.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), and those of a solution that is not finite.
    pub(super) fn start_from_subsamples(&mut self) -> Result<()> {
        let Self { machines, columns, training, memory, .. } = self;
        for machine in machines {
            let mut levels = levels(machine, columns, training, memory)?;
            while let Some(mut level) = levels.pop() {
                level.rounds.solve()?;
                let start = if let Some(larger) = levels.last_mut() {
                    let Rounds { machines, columns, .. } = &mut larger.rounds;
                    level.start(&mut machines[0], columns, training)?
                } else {
                    level.start(machine, columns, training)?
                };
                if start == LargerStart::AtZero {
                    if !levels.is_empty() {
                        machine.add_work_of(level.machine());
                    }
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Returns the subsamples that a machine starts from, from the largest to the smallest; none for machines that are not
/// large, whose kernel rows are stored, or whose problem does not scale with the number of rows.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
fn levels<'t, 'a, K: KernelValue>(
    machine: &Machine<'a>,
    columns: &KernelColumns<'a, K>,
    training: &'t Training<'a>,
    memory: &Arc<Arenas<K>>,
) -> Result<Vec<Level<'t, 'a, K>>> {
    let params = training.params;
    let mut levels = Vec::new();
    if columns.are_stored() || params.max_iterations.is_some() || !machine.problem().is_scalable() {
        return Ok(levels);
    }
    let mut rows_represented = machine.problem().len();
    while rows_represented >= params.tuning.min_subsampled {
        let last: Option<&Level<'t, 'a, K>> = levels.last();
        let (larger, columns) =
            last.map_or((machine, columns), |level| (level.machine(), &level.rounds.columns));
        let mut random = Random::new(larger.problem().len() as u64);
        // One of every few neighbors: variables are ordered by class.
        let variables: Vec<usize> = (0..larger.problem().len() / SUBSAMPLE_RATIO)
            .map(|k| SUBSAMPLE_RATIO * k + random.below(SUBSAMPLE_RATIO as u64) as usize)
            .collect();
        let problem = larger.problem().subsample(&variables, SUBSAMPLE_RATIO as f64, training.ctx);
        let diagonal = problem.diagonal.clone();
        let columns = columns.subset(larger.rows_of(&variables), diagonal, training.ctx)?;
        let machines = vec![Machine::new(problem, true, &[0], &columns, training)?];
        rows_represented = SUBSAMPLE_RATIO * variables.len();
        let (memory, earlier_effort) = (Arc::clone(memory), Effort::default());
        levels.push(Level {
            variables,
            rounds: Rounds { machines, columns, training, memory, earlier_effort },
        });
    }
    Ok(levels)
}

impl<'a, K: KernelValue> Level<'_, 'a, K> {
    /// Returns the machine that is fitted to the subsample.
    fn machine(&self) -> &Machine<'a> {
        &self.rounds.machines[0]
    }

    /// Starts the larger machine at the bounds that the outputs of the solved subsample determine, unless too many support vectors
    /// are unbounded.
    ///
    /// If the subsample or the start was stopped, the larger machine ends with the coefficients of the subsample.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), and those of a solution that is not finite.
    fn start(
        &self,
        larger: &mut Machine<'a>,
        columns: &KernelColumns<'a, K>,
        training: &Training<'a>,
    ) -> Result<LargerStart> {
        larger.add_work_of(self.machine());
        let &Outcome { intercept, certificate, .. } = self.machine().outcome()?;
        let solved = self.machine().problem();
        let used: Vec<usize> = (0..solved.len()).filter(|&k| solved.beta[k] != 0.0).collect();
        let support: Vec<usize> = used.iter().map(|&k| self.variables[k]).collect();
        let values: Vec<f64> = used.iter().map(|&k| solved.beta[k]).collect();
        let mut stop = certificate.stop.interruption().map(StopReason::from);
        if stop.is_none() {
            let unbounded = used.iter().filter(|&&k| solved.is_unbounded(k)).count();
            if unbounded as f64 >= MAX_UNBOUNDED_SHARE * used.len() as f64 {
                return Ok(LargerStart::AtZero);
            }
            let started = larger.outputs((&support, &values), columns, training).and_then(|outputs| {
                larger.start_at(coefficients_at_bounds(larger.problem(), &outputs), columns, training)
            });
            stop = StopReason::from_result(started)?;
        }
        if let Some(reason) = stop {
            let ratio = SUBSAMPLE_RATIO as f64;
            let mut beta = vec![0.0; larger.problem().len()];
            support.iter().zip(&values).for_each(|(&v, value)| beta[v] = value / ratio);
            larger.finish_at(beta, intercept / ratio, scaled_dual(solved, &certificate), reason);
        }
        Ok(LargerStart::AtBounds)
    }
}

/// Returns the dual objective of the larger machine at the coefficients of the subsample divided by [`SUBSAMPLE_RATIO`].
fn scaled_dual(solved: &DualProblem, certificate: &Certificate) -> f64 {
    let term = |i: usize| solved.beta[i] * solved.linear[i] + solved.epsilon * solved.beta[i].abs();
    let linear: f64 = (0..solved.len()).map(term).sum();
    let quadratic = -certificate.dual - linear;
    -quadratic / (SUBSAMPLE_RATIO * SUBSAMPLE_RATIO) as f64 - linear / SUBSAMPLE_RATIO as f64
}

/// Returns the coefficients at the bounds that outputs determine, with sum zero if it must be kept.
fn coefficients_at_bounds(problem: &DualProblem, outputs: &[f64]) -> Vec<f64> {
    let derivative = |v: usize| outputs[v] + problem.linear[v];
    let at = |v: usize, level: f64| {
        let above = derivative(v) - level;
        if above + problem.epsilon < 0.0 {
            problem.upper[v]
        } else if above - problem.epsilon > 0.0 {
            problem.lower[v]
        } else {
            0.0
        }
    };
    let variables = 0..problem.len();
    let all = |level: f64| variables.clone().map(|v| at(v, level)).collect();
    if !problem.has_equality {
        return all(0.0);
    }
    // Coefficients increase with the level.
    let (mut below, mut above) =
        variables.clone().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(derivative(v)), high.max(derivative(v)))
        });
    let margin = problem.epsilon + 1.0;
    (below, above) = (below - margin, above + margin);
    for _ in 0..LEVEL_BISECTIONS {
        let level = f64::midpoint(below, above);
        let sum: f64 = variables.clone().map(|v| at(v, level)).sum();
        if sum > 0.0 { above = level } else { below = level }
    }
    let mut beta: Vec<f64> = all(below);
    // Variables at the level make up for the difference.
    let mut missing = -beta.iter().sum::<f64>();
    for v in variables {
        let range = at(v, above) - beta[v];
        if missing > 0.0 && range > 0.0 {
            beta[v] = if missing < range { beta[v] + missing } else { at(v, above) };
            missing -= range;
        }
    }
    beta
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn coefficients_are_within_their_bounds_and_add_up_to_zero(
            rows in prop::collection::vec((any::<bool>(), 0.01..50.0_f64, -3..3_i32), 2..60),
            epsilon in prop::sample::select(vec![0.0, 0.5]),
            has_equality in any::<bool>(),
        ) {
            let signs: Vec<bool> = rows.iter().map(|row| row.0).collect();
            let c: Vec<f64> = rows.iter().map(|row| row.1).collect();
            let outputs: Vec<f64> = rows.iter().map(|row| 0.5 * f64::from(row.2)).collect();
            let targets: Vec<f64> = signs.iter().map(|&sign| if sign { 1.0 } else { -0.7 }).collect();
            let mut problem = if epsilon > 0.0 {
                DualProblem::regression(&targets, &c, epsilon, vec![1.0; c.len()])
            } else {
                DualProblem::hinge(&signs, &c, vec![1.0; c.len()])
            };
            problem.has_equality = has_equality;
            let beta = coefficients_at_bounds(&problem, &outputs);
            for (v, &b) in beta.iter().enumerate() {
                prop_assert!(b >= problem.lower[v] && b <= problem.upper[v]);
            }
            let total: f64 = c.iter().sum();
            prop_assert!(!has_equality || beta.iter().sum::<f64>().abs() <= 1e-12 * total);
            // At most the variables at one derivative, that of the level, lie strictly between the bounds and zero.
            let odd: Vec<i32> = (0..beta.len())
                .filter(|&v| beta[v] != 0.0 && beta[v] != problem.lower[v] && beta[v] != problem.upper[v])
                .map(|v| (1e6 * (outputs[v] + problem.linear[v])) as i32)
                .collect();
            prop_assert!(odd.len() <= 1, "{:?}", odd);
        }
    }
}
