//! A Newton step on the free variables: one linear system in place of thousands of SMO steps.
//!
//! Once the set F of unbounded variables has settled, the rest is a quadratic program without bounds,
//!
//! ```text
//! minimise  1/2 d'K_FF d + g_F'd   subject to  sum of d over each group = 0
//! ```
//!
//! with the solution d = -H^-1 (g_F - l), where H is K_FF with a small ridge and l has one value per group. Variables that
//! would leave their bounds are set to the bound and the system is solved again for the others, as in the projected Newton
//! method (Bertsekas 1982) and in primal-dual active-set methods (Hintermueller, Ito, Kunisch 2003). The result is used as a
//! search direction, and only if the objective decreases along it. SMO steps decide which variables leave their bounds.
//!
//! Invariant: bounds and sums are kept, the objective does not increase. Cost: m^3 / 6 multiply-adds for m variables,
//! for each of at most [`MAX_PROJECTIONS`] systems.
//!
//! All allocations are small: at most 2,048 variables.

use super::super::precision::KernelValue;
use super::super::problem::MAX_GROUPS;
use super::super::subproblem::Subproblem;
use super::budget::StepBudget;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::linalg::cholesky;
use crate::linalg::dense::{Square, factor};
use crate::simd::blas::add_rows;

/// Minimum number of free variables in a Newton step; for fewer, SMO steps are as fast.
const MIN_NEWTON_VARIABLES: usize = 32;
/// Maximum number of free variables in a Newton step. Bounds the time between two checks of the monitor to about a second.
const MAX_NEWTON_VARIABLES: usize = 2048;
/// Maximum number of systems solved in a step, each after some variables were set to their bounds.
const MAX_PROJECTIONS: usize = 6;
/// Number of ridges tried, each ten times the last, until the matrix is positive definite; see [`KernelValue::RIDGE`].
const MAX_RIDGES: usize = 3;
/// Multiply-adds of a factorization that take as long as scanning one entry in an SMO step.
const FACTOR_OPERATIONS_PER_ENTRY: u64 = 24;
/// Maximum change of a sum in a step, relative to the sizes of its terms.
const MAX_SUM_ERROR: f64 = 1e-10;

/// Returns whether a Newton step on `m` free variables is due.
pub(in crate::svm) fn is_newton_due(budget: &StepBudget, m: usize) -> bool {
    let variables = m as u64;
    (MIN_NEWTON_VARIABLES..=MAX_NEWTON_VARIABLES).contains(&m)
        && budget.covers(variables * variables * (variables / 6 + 64) / FACTOR_OPERATIONS_PER_ENTRY)
}

impl<K: KernelValue> Subproblem<K> {
    /// Makes a Newton step on the unbounded variables and returns its length relative to the full step, 0 for no step.
    ///
    /// # Errors
    /// Returns the errors of the factorization, except for a matrix that is not positive definite and for memory.
    pub(in crate::svm) fn newton_step(&mut self, ctx: Context<'_>) -> Result<f64> {
        let free = FreeSet::new(self);
        let Some((values, length)) = free.solve(ctx)? else { return Ok(0.0) };
        let slots = free.slots;
        self.set_values(&slots, &values);
        Ok(length)
    }
}

/// The free variables of a block.
struct FreeSet<'a, K> {
    /// k(i, j) at `kernel[slots[i] * stride + slots[j]]`, the ridge of the problem on the diagonal.
    kernel: &'a [K],
    stride: usize,
    slots: Vec<usize>,
    values: Vec<f64>,
    /// Derivatives of the objective, with the term of epsilon.
    derivatives: Vec<f64>,
    /// Interval of each variable in which the objective is quadratic.
    intervals: Vec<(f64, f64)>,
    /// Group of each variable whose sum is kept; `None` if no sum is kept.
    groups: Vec<Option<u8>>,
}

impl<'a, K: KernelValue> FreeSet<'a, K> {
    /// Returns the unbounded variables of a block.
    fn new(block: &'a Subproblem<K>) -> Self {
        let slots: Vec<usize> = block.unbounded().collect();
        let group = |slot: usize| u8::from(slot >= block.groups[1].start);
        let with_sum = |group: u8| Some(group).filter(|group| *group > 0 || block.has_equality);
        Self {
            kernel: block.kernel.values(),
            stride: block.stride,
            values: slots.iter().map(|&i| block.beta[i]).collect(),
            derivatives: slots.iter().map(|&i| block.gradient[i] + block.up[i]).collect(),
            intervals: slots.iter().map(|&i| block.interval(i)).collect(),
            groups: slots.iter().map(|&i| with_sum(group(i))).collect(),
            slots,
        }
    }

    /// Returns values that decrease the objective, and the step length relative to the full step; `None` if none are found.
    fn solve(&self, ctx: Context<'_>) -> Result<Option<(Vec<f64>, f64)>> {
        let n = self.slots.len();
        let mut active: Vec<usize> = (0..n).collect();
        let mut to = self.values.clone();
        // The last solution keeps the sums, and all bounds if it is feasible.
        let (mut solution, mut is_feasible) = (None, false);
        for _ in 0..MAX_PROJECTIONS {
            if active.len() < 2 || !self.solve_for(&active, &mut to, ctx)? {
                break;
            }
            solution = Some(to.clone());
            let before = active.len();
            active.retain(|&i| {
                let (lower, upper) = self.intervals[i];
                let is_inside = to[i] > lower && to[i] < upper;
                to[i] = to[i].clamp(lower, upper);
                is_inside
            });
            is_feasible = active.len() == before;
            if is_feasible {
                break;
            }
        }
        Ok(solution.and_then(|to| self.line_search(&to, is_feasible)))
    }

    /// Sets `to` of the active variables to the minimum for the given values of the others; returns false if the system
    /// has no solution.
    fn solve_for(&self, active: &[usize], to: &mut [f64], ctx: Context<'_>) -> Result<bool> {
        let m = active.len();
        let Some(l) = self.factor(active, ctx)? else { return Ok(false) };
        let mut fixed: Vec<(usize, f64)> =
            (0..self.slots.len()).map(|i| (i, to[i] - self.values[i])).filter(|&(_, d)| d != 0.0).collect();
        // `active` is sorted.
        fixed.retain(|(i, _)| active.binary_search(i).is_err());
        let right_side = |&i: &usize| {
            let line = self.line(i);
            let moved: f64 = fixed.iter().map(|&(j, d)| d * line[self.slots[j]].wide()).sum();
            -self.derivatives[i] - moved
        };
        let mut solution: Vec<f64> = active.iter().map(right_side).collect();
        cholesky::solve_one(l.values(), l.stride(), &mut solution);
        // H^-1 1 of each group with active variables, and the change of its sum that the multipliers must bring about.
        let mut groups: Vec<(u8, Vec<f64>, f64)> = Vec::new();
        let sum_of = |group: u8, values: &[f64]| -> f64 {
            (0..m).filter(|&k| self.groups[active[k]] == Some(group)).map(|k| values[k]).sum()
        };
        for group in 0..MAX_GROUPS as u8 {
            let is_member = |i: usize| self.groups[i] == Some(group);
            if !active.iter().any(|&i| is_member(i)) {
                if fixed.iter().any(|&(i, _)| is_member(i)) {
                    return Ok(false);
                }
                continue;
            }
            let mut ones: Vec<f64> = active.iter().map(|&i| if is_member(i) { 1.0 } else { 0.0 }).collect();
            cholesky::solve_one(l.values(), l.stride(), &mut ones);
            let moved: f64 = fixed.iter().filter(|&&(j, _)| is_member(j)).map(|&(_, d)| d).sum();
            groups.push((group, ones, -moved - sum_of(group, &solution)));
        }
        let entry = |k: usize, j: usize| sum_of(groups[k].0, &groups[j].1);
        let multipliers = match groups.len() {
            0 => vec![],
            1 => vec![groups[0].2 / entry(0, 0)],
            _ => {
                let determinant = entry(0, 0) * entry(1, 1) - entry(0, 1) * entry(1, 0);
                vec![
                    (groups[0].2 * entry(1, 1) - entry(0, 1) * groups[1].2) / determinant,
                    (entry(0, 0) * groups[1].2 - groups[0].2 * entry(1, 0)) / determinant,
                ]
            }
        };
        for (k, &i) in active.iter().enumerate() {
            let level: f64 = groups.iter().zip(&multipliers).map(|((_, ones, _), l)| l * ones[k]).sum();
            to[i] = self.values[i] + solution[k] + level;
        }
        Ok(active.iter().all(|&i| to[i].is_finite()))
    }

    /// Returns the Cholesky factor of the kernel matrix of the active variables with a ridge; `None` if it is not positive
    /// definite with any ridge, or if memory is short.
    fn factor(&self, active: &[usize], ctx: Context<'_>) -> Result<Option<Square<f64>>> {
        let m = active.len();
        let largest = active.iter().map(|&i| self.line(i)[self.slots[i]].wide()).fold(0.0, f64::max);
        let mut ridge = K::RIDGE * (m as f64).sqrt() * largest;
        for _ in 0..MAX_RIDGES {
            let Ok(mut matrix) = Square::<f64>::new(m) else { return Ok(None) };
            let stride = matrix.stride();
            ctx.for_each_chunk(matrix.values_mut(), 64 * stride, |task, lines| {
                for (k, out) in (task * 64..).zip(lines.chunks_exact_mut(stride)) {
                    let line = self.line(active[k]);
                    for (out, &j) in out.iter_mut().zip(&active[..=k]) {
                        *out = line[self.slots[j]].wide();
                    }
                    out[k] += ridge;
                }
            });
            match factor(&mut matrix, ctx.silent()) {
                Ok(()) => return Ok(Some(matrix)),
                Err(Error::NotPositiveDefinite { .. }) => ridge *= 10.0,
                // SMO steps work without this memory.
                Err(Error::Memory { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Returns the kernel values of a variable against all slots.
    fn line(&self, i: usize) -> &[K] {
        &self.kernel[self.slots[i] * self.stride..][..self.stride]
    }

    /// Returns the best feasible values on the segment to `to`, and the step length; `None` if the objective does not
    /// decrease.
    fn line_search(&self, to: &[f64], is_feasible: bool) -> Option<(Vec<f64>, f64)> {
        let moves: Vec<f64> = to.iter().zip(&self.values).map(|(to, from)| to - from).collect();
        let slope: f64 = moves.iter().zip(&self.derivatives).map(|(d, g)| d * g).sum();
        let lines: Vec<&[K]> = (0..moves.len()).map(|i| self.line(i)).collect();
        let mut product = vec![0.0; self.stride];
        add_rows(&moves, &lines, 0, &mut product);
        let curvature: f64 = moves.iter().zip(&self.slots).map(|(d, &slot)| d * product[slot]).sum();
        if !(slope < 0.0) {
            return None;
        }
        let mut length = if curvature > 0.0 { (-slope / curvature).min(1.0) } else { 1.0 };
        if !is_feasible {
            for ((&(lower, upper), &from), &d) in self.intervals.iter().zip(&self.values).zip(&moves) {
                let distance = if d > 0.0 { upper - from } else { from - lower };
                if d.abs() * length > distance {
                    length = distance / d.abs();
                }
            }
        }
        if !(length > 0.0) {
            return None;
        }
        let at = |i: usize| {
            let (lower, upper) = self.intervals[i];
            if length == 1.0 { to[i] } else { self.values[i] + length * moves[i] }.clamp(lower, upper)
        };
        let values: Vec<f64> = (0..moves.len()).map(at).collect();
        self.keeps_sums(&values).then_some((values, length))
    }

    /// Returns whether rounding leaves the sums unchanged: a step far longer than the intervals may lose them.
    fn keeps_sums(&self, values: &[f64]) -> bool {
        (0..MAX_GROUPS as u8).all(|group| {
            let (mut moved, mut size) = (0.0, 0.0);
            for i in (0..values.len()).filter(|&i| self.groups[i] == Some(group)) {
                moved += values[i] - self.values[i];
                size += values[i].abs() + self.values[i].abs();
            }
            moved.abs() <= MAX_SUM_ERROR * size
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    /// Returns 1/2 d'Kd + g'd of the change d from the present values.
    fn objective(free: &FreeSet<'_, f32>, to: &[f64]) -> f64 {
        let moves: Vec<f64> = to.iter().zip(&free.values).map(|(to, from)| to - from).collect();
        let product = |i: usize| -> f64 {
            moves.iter().zip(&free.slots).map(|(d, &slot)| d * f64::from(free.line(i)[slot])).sum()
        };
        (0..moves.len()).map(|i| moves[i] * (0.5 * product(i) + free.derivatives[i])).sum()
    }

    /// Returns kernel values of `n` rows in the plane from slot 1 on, amid slots that must not be read.
    fn matrix(n: usize, random: &mut Random) -> Vec<f32> {
        let x: Vec<[f64; 2]> = (0..n).map(|_| [random.normal(), random.normal()]).collect();
        let mut kernel = vec![f32::MAX; (n + 3) * (n + 3)];
        for (i, a) in x.iter().enumerate() {
            for (j, b) in x.iter().enumerate() {
                let squared = (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
                kernel[(i + 1) * (n + 3) + j + 1] = (-squared).exp() as f32;
            }
        }
        kernel
    }

    /// Returns all of them as free variables in `groups` groups, with bounds at a distance of `c`.
    fn free_set<'a>(
        kernel: &'a [f32],
        n: usize,
        groups: u8,
        c: f64,
        random: &mut Random,
    ) -> FreeSet<'a, f32> {
        FreeSet {
            kernel,
            stride: n + 3,
            slots: (1..=n).collect(),
            values: (0..n).map(|_| c * (0.9 * random.uniform() - 0.45)).collect(),
            derivatives: (0..n).map(|_| random.normal()).collect(),
            intervals: vec![(-0.5 * c, 0.5 * c); n],
            groups: (0..n).map(|i| (groups > 0).then(|| (i % usize::from(groups.max(1))) as u8)).collect(),
        }
    }

    proptest! {
        #[test]
        fn bounds_and_sums_are_kept_and_the_objective_falls(
            n in 2..90_usize,
            groups in 0..=2_u8,
            c in prop::sample::select(vec![1e-6, 0.1, 1.0, 30.0, 1e5]),
            seed in 0..1000_u64,
        ) {
            let mut random = Random::new(seed);
            let kernel = matrix(n, &mut random);
            let free = free_set(&kernel, n, groups, c, &mut random);
            let Some((to, length)) = free.solve(Context::SEQUENTIAL).unwrap() else { return Ok(()) };
            prop_assert!(length > 0.0 && length <= 1.0);
            prop_assert!(to.iter().all(|v| v.abs() <= 0.5 * c));
            for group in 0..groups {
                let sum = |values: &[f64]| -> f64 {
                    (0..n).filter(|&i| free.groups[i] == Some(group)).map(|i| values[i]).sum()
                };
                prop_assert!((sum(&to) - sum(&free.values)).abs() <= 1e-9 * c * n as f64);
            }
            let change = objective(&free, &to);
            prop_assert!(change < 0.0, "{}", change);
        }
    }

    #[test]
    fn without_active_bounds_the_step_reaches_the_solution() {
        let mut random = Random::new(5);
        let mut kernel = matrix(40, &mut random);
        // Eigenvalues far above the ridge.
        (1..=40).for_each(|slot| kernel[slot * 43 + slot] += 1.0);
        let free = free_set(&kernel, 40, 1, 1e9, &mut random);
        let (to, length) = free.solve(Context::SEQUENTIAL).unwrap().unwrap();
        let gradient: Vec<f64> = (0..40)
            .map(|i| {
                let line = free.line(i);
                let product: f64 =
                    (0..40).map(|j| (to[j] - free.values[j]) * f64::from(line[free.slots[j]])).sum();
                free.derivatives[i] + product
            })
            .collect();
        let level = gradient.iter().sum::<f64>() / 40.0;
        assert!(length == 1.0 && gradient.iter().all(|g| (g - level).abs() < 1e-4), "{gradient:?}");
    }

    #[test]
    fn a_step_is_due_for_a_moderate_number_of_variables_once_it_is_covered() {
        let mut budget = StepBudget::newton(true);
        assert!(!is_newton_due(&budget, 100));
        budget.charge(u64::from(u32::MAX));
        assert!(is_newton_due(&budget, 100));
        assert!(!is_newton_due(&budget, MIN_NEWTON_VARIABLES - 1));
        assert!(!is_newton_due(&budget, MAX_NEWTON_VARIABLES + 1));
    }
}
