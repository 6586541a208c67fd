//! A primal-dual interior-point method for machines with a linear kernel in few columns (Mehrotra 1992; the separable form is
//! that of Woodsend and Gondzio 2011), and for small machines with another positive semidefinite kernel, whose matrix is factored.
//!
//! SMO steps get nowhere if the columns have very different scales: a pair moves along one line of a space in which the
//! objective is a narrow valley. A Newton step on all variables costs n d^2 here, since K = F F' with F (n, d). The dual problem
//! of `problem` is written with the weights w of the columns as variables of their own:
//!
//! ```text
//! minimise  1/2 w'w + 1/2 t'Rt + c't   subject to  F't = w,  A t = a,  lower <= t <= upper
//! ```
//!
//! where A sums the groups. The term e |b| splits a variable into its positive and its negative part. With multipliers p of
//! the lower and q of the upper bounds, and Theta = (R + p / (t - lower) + q / (upper - t))^-1, a Newton step of the
//! perturbed conditions is the solution of one positive definite system of d + 2 unknowns at most:
//!
//! ```text
//! [ I + F' Theta F     -F' Theta A' ] [dw]
//! [   -A Theta F        A Theta A'  ] [dy]  =  ...,     dt = Theta (... - F dw + A'dy)
//! ```
//!
//! It is scaled to a unit diagonal, which makes the scales of the columns irrelevant. Each iteration takes a predictor and a
//! corrector step with one factor.
//!
//! At its end variables are put on the bounds that hold them (`finish`): the solver then has nothing left to do but to verify the
//! conditions.
//!
//! Invariant: every sum has an order that depends on the sizes alone, so threads do not change a bit. Cost: some twenty
//! iterations of n d^2 / 2 multiply-adds; memory n d numbers and some dozen for each variable.

mod budget;
mod direction;
mod finish;
mod point;
mod system;

use super::few_columns::FewColumns;
use super::problem::{DualProblem, MAX_GROUPS};
use super::stall::largest_magnitude;
use crate::context::Context;
use crate::error::Result;
use crate::simd::blas::{axpy, dot};
use point::{MAX_RELATIVE_GAP, Point, Residuals, STEP_SHARE};

pub(super) use budget::{InteriorPoint, MAX_FACTORED, work_before, work_before_factor};

/// Maximum number of iterations.
const MAX_ITERATIONS: usize = 100;
/// Mean product of distances and multipliers, or a residual, relative to the smallest one before, of an iteration that makes
/// progress.
const MIN_PROGRESS: f64 = 0.95;
/// Number of iterations without progress after which the method ends.
const MAX_IDLE_ITERATIONS: usize = 8;
/// Maximum change of a sum of coefficients by rounding, relative to their size.
const MAX_SUM_ERROR: f64 = 1e-12;

/// Returns coefficients with a smaller objective than the present ones of a problem whose variable v has row v of `columns`;
/// `None` if none were found.
///
/// # Errors
/// [`Error::Memory`], [`Error::Stopped`].
pub(super) fn solve(
    problem: &DualProblem,
    columns: &FewColumns,
    ctx: Context<'_>,
) -> Result<Option<Vec<f64>>> {
    let Some(mut point) = Point::new(problem, columns, ctx) else { return Ok(None) };
    point.iterate(ctx)?;
    if !point.t.iter().chain(&point.w).all(|v| v.is_finite()) {
        return Ok(None);
    }
    point.move_to_bounds(ctx)?;
    let mut beta = vec![0.0_f64; problem.len()];
    for (part, t) in point.parts.iter().zip(&point.t) {
        beta[part.variable] += t;
    }
    for (v, b) in beta.iter_mut().enumerate() {
        *b = b.clamp(problem.lower[v], problem.upper[v]);
    }
    if !keeps_sums(problem, &beta) {
        return Ok(None);
    }
    let (before, after) =
        (objective(problem, columns, &problem.beta, ctx), objective(problem, columns, &beta, ctx));
    Ok((after < before).then_some(beta))
}

/// Returns whether coefficients have the sums of the present ones but for rounding.
fn keeps_sums(problem: &DualProblem, beta: &[f64]) -> bool {
    let (mut changes, mut sizes) = ([0.0_f64; MAX_GROUPS], [0.0; MAX_GROUPS]);
    for ((&to, &from), &group) in beta.iter().zip(&problem.beta).zip(&problem.group) {
        changes[usize::from(group)] += to - from;
        sizes[usize::from(group)] += to.abs() + from.abs();
    }
    !problem.has_equality
        || changes.iter().zip(&sizes).all(|(change, size)| change.abs() <= MAX_SUM_ERROR * size)
}

/// Returns 1/2 b'(K + diag r) b + s'b + e sum |b|.
fn objective(problem: &DualProblem, columns: &FewColumns, beta: &[f64], ctx: Context<'_>) -> f64 {
    let weights = columns.combination(beta.len(), ctx, |v| (v, beta[v]));
    let of_variables: f64 = (beta.iter().enumerate())
        .map(|(v, b)| b * (problem.linear[v] + 0.5 * problem.ridge[v] * b) + problem.epsilon * b.abs())
        .sum();
    0.5 * dot(&weights, &weights) + of_variables
}

impl Point<'_> {
    /// Iterates until the conditions hold as well as double precision allows.
    fn iterate(&mut self, ctx: Context<'_>) -> Result<()> {
        let (mut best, mut idle) = ([f64::INFINITY; 3], 0);
        for iteration in 0..MAX_ITERATIONS {
            ctx.check("interior point", iteration, MAX_ITERATIONS)?;
            let residuals = self.residuals(ctx);
            let merit = self.merit(&residuals);
            if merit <= MAX_RELATIVE_GAP || merit.is_nan() {
                break;
            }
            let remaining = [
                self.mean_product(None),
                largest_magnitude(&residuals.dual),
                largest_magnitude(&residuals.weights),
            ];
            let is_progress = best.iter().zip(&remaining).any(|(best, now)| *now < MIN_PROGRESS * best);
            idle = if is_progress { 0 } else { idle + 1 };
            best = [0, 1, 2].map(|k| best[k].min(remaining[k]));
            if idle >= MAX_IDLE_ITERATIONS || !self.step(&residuals, ctx)? {
                break;
            }
        }
        Ok(())
    }

    /// Makes a predictor and a corrector step; returns false if their system is singular.
    fn step(&mut self, residuals: &Residuals, ctx: Context<'_>) -> Result<bool> {
        let theta: Vec<f64> = (0..self.t.len())
            .map(|k| {
                let (below, above) = self.distances(k);
                1.0 / (self.parts[k].ridge + self.at_lower[k] / below + self.at_upper[k] / above)
            })
            .collect();
        let Some(system) = self.system(&theta, ctx)? else { return Ok(false) };
        let mean = self.mean_product(None);
        let predictor = self.direction(&system, &theta, residuals, |_| (0.0, 0.0), ctx);
        let length = self.longest_step(&predictor);
        let centring = (self.mean_product(Some((&predictor, length))) / mean).powi(3);
        let target = |k: usize| {
            let change = predictor.t[k];
            (
                centring * mean - change * predictor.at_lower[k],
                centring * mean + change * predictor.at_upper[k],
            )
        };
        let direction = self.direction(&system, &theta, residuals, target, ctx);
        let length = (STEP_SHARE * self.longest_step(&direction)).min(1.0);
        axpy(length, &direction.t, &mut self.t);
        axpy(length, &direction.w, &mut self.w);
        axpy(length, &direction.y, &mut self.y);
        axpy(length, &direction.at_lower, &mut self.at_lower);
        axpy(length, &direction.at_upper, &mut self.at_upper);
        Ok(length > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Rows in `d` columns whose scales differ by `10^spread`.
    fn rows(n: usize, d: usize, spread: f64, random: &mut Random) -> FewColumns {
        let scale = |j: usize| 10f64.powf(spread * j as f64 / d as f64);
        FewColumns::new((0..n * d).map(|k| scale(k % d) * random.normal()).collect(), d)
    }

    fn diagonal(columns: &FewColumns, n: usize) -> Vec<f64> {
        (0..n).map(|i| dot(columns.row(i), columns.row(i))).collect()
    }

    /// Returns the violation of the conditions relative to the largest |s|, or to the largest derivative without linear terms.
    fn violation(problem: &mut DualProblem, columns: &FewColumns, beta: Vec<f64>) -> f64 {
        let n = problem.len();
        let weights = columns.combination(n, Context::SEQUENTIAL, |v| (v, beta[v]));
        let outputs: Vec<f64> = (0..n).map(|v| dot(columns.row(v), &weights)).collect();
        problem.beta = beta;
        problem.set_outputs(&outputs);
        let scale = largest_magnitude(&problem.linear);
        let scale = if scale > 0.0 {
            scale
        } else {
            largest_magnitude(&problem.gradient).max(1e-9 * largest_magnitude(&problem.diagonal))
        };
        problem.kkt_violation(Context::SEQUENTIAL).largest() / scale
    }

    #[test]
    fn the_conditions_hold_for_every_member_of_the_family() {
        let mut random = Random::new(3);
        for (spread, c) in [(0.0, 1.0), (0.0, 1e-3), (4.0, 1.0), (3.0, 100.0)] {
            let (n, d) = (300, 7);
            let columns = rows(n, d, spread, &mut random);
            let twice = FewColumns::new((0..2 * n).flat_map(|i| columns.row(i % n).to_vec()).collect(), d);
            let truth: Vec<f64> = (0..d).map(|_| random.normal()).collect();
            let y: Vec<f64> = (0..n).map(|i| dot(columns.row(i), &truth) + random.normal()).collect();
            let positive: Vec<bool> = y.iter().map(|y| y + 3.0 * random.normal() > 0.0).collect();
            let (c, k) = (vec![c; n], diagonal(&columns, n));
            let mut problems = vec![
                ("hinge", DualProblem::hinge(&positive, &c, k.clone())),
                ("squared", DualProblem::squared_hinge(&positive, &c, k.clone())),
                ("epsilon", DualProblem::regression(&y, &c, 0.3, k.clone())),
                ("quantile", DualProblem::quantile(&y, &c, 0.8, k.clone())),
                ("nu", DualProblem::nu_classification(&positive, &vec![1.0; n], 0.3, k.clone())),
                ("one class", DualProblem::one_class(&vec![1.0; n], 30.0, k.clone())),
                ("nu regression", DualProblem::nu_regression(&y, &c, 0.4, k.repeat(2))),
            ];
            let mut no_intercept = problems[0].1.clone();
            no_intercept.has_equality = false;
            problems.push(("no intercept", no_intercept));
            for (name, mut problem) in problems {
                let columns = if problem.len() > n { &twice } else { &columns };
                let sums = |beta: &[f64]| -> f64 { beta.iter().sum() };
                let before = sums(&problem.beta);
                let beta = solve(&problem, columns, Context::default()).unwrap().expect(name);
                assert!((0..beta.len()).all(|v| beta[v] >= problem.lower[v] && beta[v] <= problem.upper[v]));
                let size: f64 = beta.iter().map(|b| b.abs()).sum();
                if problem.has_equality {
                    assert!((sums(&beta) - before).abs() <= 1e-12 * size, "{name} {spread}");
                }
                let violation = violation(&mut problem, columns, beta);
                assert!(violation < 1e-4, "{name} {spread} {}: {violation:e}", c[0]);
            }
        }
    }

    #[test]
    fn weights_may_have_any_scale() {
        let mut random = Random::new(7);
        let (n, d) = (400, 5);
        let columns = rows(n, d, 2.0, &mut random);
        let positive: Vec<bool> = (0..n).map(|i| columns.row(i)[1] + random.normal() > 0.0).collect();
        let c: Vec<f64> = (0..n).map(|i| 10f64.powi(i as i32 % 9 - 7)).collect();
        let mut problem = DualProblem::hinge(&positive, &c, diagonal(&columns, n));
        let beta = solve(&problem, &columns, Context::SEQUENTIAL).unwrap().unwrap();
        assert!(violation(&mut problem, &columns, beta) < 1e-4);
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let mut random = Random::new(5);
        let (n, d) = (2_000, 20);
        let columns = rows(n, d, 2.0, &mut random);
        let positive: Vec<bool> = (0..n).map(|i| columns.row(i)[0] + random.normal() > 0.0).collect();
        let mut problem = DualProblem::hinge(&positive, &vec![1.0; n], diagonal(&columns, n));
        let beta = solve(&problem, &columns, Context::default()).unwrap().unwrap();
        assert_eq!(beta, solve(&problem, &columns, Context::SEQUENTIAL).unwrap().unwrap());
        assert!(violation(&mut problem, &columns, beta) < 1e-6);
    }

    #[test]
    fn duplicates_and_constant_columns_are_no_obstacle() {
        let (n, d) = (120, 3);
        let columns = FewColumns::new((0..n * d).map(|k| [(k / d % 5) as f64, 0.0, 2.0][k % d]).collect(), d);
        let y: Vec<f64> = (0..n).map(|i| (i % 5) as f64 * 2.0 + if i % 3 == 0 { 0.5 } else { 0.0 }).collect();
        let mut problem = DualProblem::regression(&y, &vec![10.0; n], 0.1, diagonal(&columns, n));
        let beta = solve(&problem, &columns, Context::SEQUENTIAL).unwrap().unwrap();
        assert!(violation(&mut problem, &columns, beta) < 1e-6);
    }
}
