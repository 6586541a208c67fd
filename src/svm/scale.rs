//! A start from a smaller problem: a machine of many rows begins where one of a quarter of them has ended.
//!
//! A sample of n / 4 rows with C four times as large has nearly the same objective, so nearly the same outputs. They say
//! which coefficients of the whole machine are at which bound: with g = f + s, the derivative of the objective, and the
//! kink e,
//!
//! ```text
//! beta_i = upper_i where g_i + e < t,   lower_i where g_i - e > t,   0 between
//! ```
//!
//! where the level t is such that the coefficients add up to zero (minus the intercept, at an optimum). The sample starts
//! from a sample in its turn. What is left to the rounds are variables near the margin; the others are set aside soon.
//! Where many vectors are unbounded their coefficients do not follow from outputs, and nothing is gained: the smallest
//! sample tells, and is then all that it has cost. Coefficients that change linearly within a band about the level, as
//! wide as outputs are uncertain, were worse at every width: so many rows lie in it that the sums of their errors move
//! outputs by thousands.
//!
//! Invariant: bounds and sums are kept, gradients are exact, and no bit depends on the number of threads. Cost: the
//! sample's fit, and n kernel values for each support vector of the sample and of the start.

use super::certificate::Certificate;
use super::columns::Columns;
use super::decomposition::solve;
use super::machine::Machine;
use super::precision::KernelValue;
use super::problem::DualProblem;
use super::training::Training;
use crate::context::StopReason;
use crate::error::{Error, Result};
use crate::memory::{TryCollect, TryToVec, try_vec};
use crate::random::Random;

/// One row of so many is in the sample.
const PART: usize = 4;
/// Largest share of the support vectors of a sample that may be unbounded.
const UNBOUNDED: f64 = 0.1;
/// Halvings of the interval that the level is in.
const HALVINGS: usize = 64;

/// Gives machines at zero the coefficients that a sample of their rows speaks for, where they are large enough.
///
/// A stop on the way ends a machine with what the sample has come to.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory), and those of a solution that is not made of numbers.
pub(super) fn start<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    columns: &Columns<'a, K>,
    training: &Training<'a>,
) -> Result<()> {
    let params = training.params;
    if columns.are_kept() || params.max_iterations.is_some() {
        return Ok(());
    }
    for machine in machines {
        if machine.problem().len() >= params.tuning.sampled && machine.problem().is_scalable() {
            start_from_sample(machine, columns, training)?;
        }
    }
    Ok(())
}

/// Whether the sample was of use.
fn start_from_sample<'a, K: KernelValue>(
    machine: &mut Machine<'a>,
    columns: &Columns<'a, K>,
    training: &Training<'a>,
) -> Result<bool> {
    let n = machine.problem().len();
    let mut random = Random::new(n as u64);
    // One of every few neighbours: variables are ordered by class.
    let sample: Vec<usize> =
        (0..n / PART).map(|k| PART * k + random.below(PART as u64) as usize).try_collect_vec()?;
    let problem = machine.problem().sample(&sample, PART as f64)?;
    let mut part = columns.part(machine.rows_of(&sample)?, problem.diagonal.try_to_vec()?, training.ctx)?;
    let mut small = Machine::new(problem, true, &[0], &part, training)?;
    if PART * sample.len() >= training.params.tuning.sampled
        && !start_from_sample(&mut small, &part, training)?
    {
        machine.count(&small);
        return Ok(false);
    }
    solve(std::slice::from_mut(&mut small), &mut part, training)?;
    machine.count(&small);
    let (b, _, certificate) = small.outcome()?;
    let solved = small.problem();
    let used: Vec<usize> = (0..solved.len()).filter(|&k| solved.beta[k] != 0.0).try_collect_vec()?;
    let support: Vec<usize> = used.iter().map(|&k| sample[k]).try_collect_vec()?;
    let values: Vec<f64> = used.iter().map(|&k| solved.beta[k]).try_collect_vec()?;
    let give_up = |machine: &mut Machine<'_>, reason| {
        let mut beta = try_vec![0.0; n]?;
        support.iter().zip(&values).for_each(|(&v, value)| beta[v] = value / PART as f64);
        machine.settle_for(beta, b / PART as f64, dual_of_part(solved, &certificate), reason);
        Ok::<_, Error>(())
    };
    if let Some(reason @ (StopReason::MaxTime | StopReason::Interrupted)) = small.stop {
        give_up(machine, reason)?;
        return Ok(true);
    }
    let unbounded = used.iter().filter(|&&k| solved.is_unbounded(k)).count();
    if unbounded as f64 >= UNBOUNDED * used.len() as f64 {
        return Ok(false);
    }
    let started = machine
        .outputs((&support, &values), columns, training)
        .and_then(|outputs| machine.start_at(at_bounds(machine.problem(), &outputs)?, columns, training));
    if let Some(reason) = StopReason::from_result(started)? {
        give_up(machine, reason)?;
    }
    Ok(true)
}

/// The dual objective of the whole machine at the coefficients of the sample's divided by [`PART`].
fn dual_of_part(solved: &DualProblem, certificate: &Certificate) -> f64 {
    let of = |i: usize| solved.beta[i] * solved.linear[i] + solved.kink * solved.beta[i].abs();
    let linear: f64 = (0..solved.len()).map(of).sum();
    let quadratic = -certificate.dual - linear;
    -quadratic / (PART * PART) as f64 - linear / PART as f64
}

/// Coefficients at the bounds that outputs speak for, with the sum zero.
fn at_bounds(problem: &DualProblem, outputs: &[f64]) -> Result<Vec<f64>> {
    let derivative = |v: usize| outputs[v] + problem.linear[v];
    let at = |v: usize, level: f64| {
        let above = derivative(v) - level;
        if above + problem.kink < 0.0 {
            problem.upper[v]
        } else if above - problem.kink > 0.0 {
            problem.lower[v]
        } else {
            0.0
        }
    };
    let variables = 0..problem.len();
    let all = |level: f64| variables.clone().map(|v| at(v, level)).try_collect_vec();
    if problem.anchored {
        return all(0.0);
    }
    // Coefficients rise with the level.
    let (mut below, mut above) =
        variables.clone().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(derivative(v)), high.max(derivative(v)))
        });
    let margin = problem.kink + 1.0;
    (below, above) = (below - margin, above + margin);
    for _ in 0..HALVINGS {
        let level = f64::midpoint(below, above);
        let sum: f64 = variables.clone().map(|v| at(v, level)).sum();
        if sum > 0.0 { above = level } else { below = level }
    }
    let mut beta: Vec<f64> = all(below)?;
    // Variables right at the level make up for what is missing.
    let mut missing = -beta.iter().sum::<f64>();
    for v in variables {
        let room = at(v, above) - beta[v];
        if missing > 0.0 && room > 0.0 {
            beta[v] = if missing < room { beta[v] + missing } else { at(v, above) };
            missing -= room;
        }
    }
    Ok(beta)
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
            anchored in any::<bool>(),
        ) {
            let signs: Vec<bool> = rows.iter().map(|row| row.0).collect();
            let c: Vec<f64> = rows.iter().map(|row| row.1).collect();
            let outputs: Vec<f64> = rows.iter().map(|row| 0.5 * f64::from(row.2)).collect();
            let targets: Vec<f64> = signs.iter().map(|&sign| if sign { 1.0 } else { -0.7 }).collect();
            let mut problem = if epsilon > 0.0 {
                DualProblem::regression(&targets, &c, epsilon, vec![1.0; c.len()])
            } else {
                DualProblem::hinge(&signs, &c, vec![1.0; c.len()])
            }.unwrap();
            problem.anchored = anchored;
            let beta = at_bounds(&problem, &outputs).unwrap();
            for (v, &b) in beta.iter().enumerate() {
                prop_assert!(b >= problem.lower[v] && b <= problem.upper[v]);
            }
            let total: f64 = c.iter().sum();
            prop_assert!(anchored || beta.iter().sum::<f64>().abs() <= 1e-12 * total);
            // Whoever is strictly between has the level's derivative: no one else may differ from a bound or zero.
            let odd: Vec<i32> = (0..beta.len())
                .filter(|&v| beta[v] != 0.0 && beta[v] != problem.lower[v] && beta[v] != problem.upper[v])
                .map(|v| (1e6 * (outputs[v] + problem.linear[v])) as i32)
                .collect();
            prop_assert!(odd.len() <= 1, "{:?}", odd);
        }
    }
}
