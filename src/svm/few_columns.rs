//! The rows of a machine with a linear kernel in few columns: F, (n, d), whose inner products are the kernel values. The columns of
//! a polynomial kernel are the monomials of its rows (`monomials`). Kernel values of few rows have such columns too, the factor of
//! their matrix, if rounding leaves no more of them (Fine and Scheinberg 2001).
//!
//! Outputs are computed from the weights of the columns, K b = F (F'b): in n d multiply-adds instead of n^2 d, and much more
//! exactly. Kernel values of rows in columns of very different scales are large and cancel; a weight is one sum of n terms,
//! which is computed as if in twice the precision here.

use super::certificate::Rounding;
use super::monomials::Monomials;
use super::problem::DualProblem;
use super::stall::largest_magnitude;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, KernelFunction, PreparedRows};
use crate::linalg::pivoted::pivoted;
use crate::memory::try_vec;
use crate::simd::blas::{axpy, axpy_compensated, dot};
use std::ops::Range;

/// Maximum number of columns.
const MAX_COLUMNS: usize = 512;
/// Remaining diagonal entries, relative to the largest, at which a factor ends.
const FACTOR_TOLERANCE: f64 = 1e-15;
/// Maximum difference of a product of the factor from a kernel value, relative to the largest diagonal entry.
const MAX_FACTOR_ERROR: f64 = 1e-13;
/// Rows of a task.
pub(super) const ROWS_PER_TASK: usize = 512;

/// Rows in few columns.
pub(super) struct FewColumns {
    values: Vec<f64>,
    d: usize,
    /// Number of roundings of each number.
    roundings: usize,
}

/// Sums over rows, the rounding errors of these sums, and the sum of the terms' lengths.
type Sums = (Vec<f64>, Vec<f64>, f64);

/// The weights of the columns of a machine, and what their rounding depends on.
struct Weights {
    /// F'b
    values: Vec<f64>,
    /// The sum of |b_i| times the lengths of the rows.
    size: f64,
}

impl FewColumns {
    /// Returns rows from their values, (n, d) with d > 0.
    #[cfg(test)]
    pub(super) fn new(values: Vec<f64>, d: usize) -> Self {
        Self { values, d, roundings: 1 }
    }

    /// Returns the number of columns if the kernel is linear or polynomial, they are few, and `n` rows take at most `max_bytes`.
    pub(super) fn count_in(rows: &PreparedRows<'_>, n: usize, max_bytes: usize) -> Option<usize> {
        let KernelFunction::BuiltIn(kernel) = rows.kernel else { return None };
        let columns = rows.rows.cols();
        let d = if kernel == Kernel::Linear { Some(columns) } else { Monomials::count(&kernel, columns) };
        let is_small = |d: &usize| n.saturating_mul(*d).saturating_mul(size_of::<f64>()) <= max_bytes;
        d.filter(|d| (1..=MAX_COLUMNS).contains(d)).filter(is_small)
    }

    /// Returns the listed rows as the kernel values see them; `None` without few columns (see [`FewColumns::count_in`]).
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(super) fn of(
        rows: &PreparedRows<'_>,
        list: &[usize],
        max_bytes: usize,
        ctx: Context<'_>,
    ) -> Result<Option<Self>> {
        let Some(d) = Self::count_in(rows, list.len(), max_bytes) else { return Ok(None) };
        let len = list.len() * d;
        let mut values = try_vec![0.0; len]?;
        let monomials = Monomials::new(&rows.standardized_kernel(), rows.rows.cols())?;
        ctx.for_operations(len).for_each_chunk(&mut values, ROWS_PER_TASK * d, |task, lines| {
            let mut factors = vec![0.0; if monomials.is_some() { rows.rows.cols() + 1 } else { 0 }];
            for (&row, line) in list[task * ROWS_PER_TASK..].iter().zip(lines.chunks_exact_mut(d)) {
                if let Some(monomials) = &monomials {
                    factors.fill(0.0);
                    rows.for_each_standardized(row, |k, v| factors[k] = v);
                    monomials.write(&mut factors, line);
                } else {
                    rows.for_each_standardized(row, |k, v| line[k] = v);
                }
            }
        });
        let roundings = monomials.map_or(1, |monomials| monomials.roundings());
        Ok(Some(Self { values, d, roundings }))
    }

    /// Returns the factor of a matrix (n, n) of kernel values, if it gives them but for rounding; those of a kernel that is not
    /// positive semidefinite have none.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(super) fn of_values(values: &[f64], n: usize, ctx: Context<'_>) -> Result<Option<Self>> {
        let mut counter = ctx.counter("interior point", 0);
        let (order, factor, stopped) = pivoted(values, n, MAX_COLUMNS, FACTOR_TOLERANCE, &mut counter)?;
        // The next check of the monitor ends the machine.
        if stopped.is_some() {
            return Ok(None);
        }
        let d = order.len();
        let largest = (0..n).map(|i| values[i * n + i].abs()).fold(0.0, f64::max);
        let is_exact = (0..n).all(|i| {
            let row = |i: usize| &factor[i * d..(i + 1) * d];
            (0..=i).all(|j| (values[i * n + j] - dot(row(i), row(j))).abs() <= MAX_FACTOR_ERROR * largest)
        });
        Ok((d > 0 && is_exact).then_some(Self { values: factor, d, roundings: 1 }))
    }

    pub(super) fn count(&self) -> usize {
        self.d
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.d..(i + 1) * self.d]
    }

    /// Returns the sum, (d,), of `n` rows times a number, in double precision.
    pub(super) fn combination(
        &self,
        n: usize,
        ctx: Context<'_>,
        term: impl Fn(usize) -> (usize, f64) + Sync,
    ) -> Vec<f64> {
        let of_range = |range: Range<usize>| {
            let mut sum = vec![0.0; self.d];
            for k in range {
                let (row, value) = term(k);
                axpy(value, self.row(row), &mut sum);
            }
            sum
        };
        let add = |mut first: Vec<f64>, second: Vec<f64>| {
            axpy(1.0, &second, &mut first);
            first
        };
        let ctx = ctx.for_operations(n * self.d);
        ctx.reduce(n, ROWS_PER_TASK, of_range, add).unwrap_or_else(|| vec![0.0; self.d])
    }

    /// Sets the gradients of a problem from the weights of its coefficients, and returns the maximum rounding errors.
    pub(super) fn set_gradients(&self, problem: &mut DualProblem, ctx: Context<'_>) -> Rounding {
        let weights = self.weights(&problem.beta, ctx);
        let outputs = self.outputs(&weights, ctx);
        problem.set_outputs(&outputs);
        let (of_unit, quadratic) = weights.errors(problem, self.roundings);
        let output = of_unit * largest_magnitude(&problem.diagonal).sqrt();
        Rounding { output, quadratic, linear_losses: quadratic }
    }

    /// Returns the weights of the coefficients of all rows.
    fn weights(&self, beta: &[f64], ctx: Context<'_>) -> Weights {
        let of_range = |range: Range<usize>| {
            let (mut sum, mut errors, mut size) = (vec![0.0; self.d], vec![0.0; self.d], 0.0);
            for i in range.filter(|&i| beta[i] != 0.0) {
                axpy_compensated(beta[i], self.row(i), &mut sum, &mut errors);
                size += beta[i].abs() * dot(self.row(i), self.row(i)).sqrt();
            }
            (sum, errors, size)
        };
        let add = |(mut sum, mut errors, size): Sums, (other, other_errors, other_size): Sums| {
            axpy_compensated(1.0, &other, &mut sum, &mut errors);
            axpy(1.0, &other_errors, &mut errors);
            (sum, errors, size + other_size)
        };
        let ctx = ctx.for_operations(beta.len() * self.d);
        let sums = ctx.reduce(beta.len(), ROWS_PER_TASK, of_range, add);
        let (mut values, errors, size) = sums.unwrap_or_else(|| (vec![0.0; self.d], vec![0.0; self.d], 0.0));
        axpy(1.0, &errors, &mut values);
        Weights { values, size }
    }

    /// Returns the outputs F w of all rows.
    fn outputs(&self, weights: &Weights, ctx: Context<'_>) -> Vec<f64> {
        let mut outputs = vec![0.0; self.values.len() / self.d];
        ctx.for_operations(self.values.len()).for_each_chunk(&mut outputs, ROWS_PER_TASK, |task, outputs| {
            for (i, out) in (task * ROWS_PER_TASK..).zip(outputs) {
                *out = dot(self.row(i), &weights.values);
            }
        });
        outputs
    }
}

impl Weights {
    /// Returns the maximum errors of an output of a row of unit length, and of b'Kb, for rows whose numbers have this many
    /// roundings.
    fn errors(&self, problem: &DualProblem, roundings: usize) -> (f64, f64) {
        let (d, roundings) = (self.values.len() as f64, roundings as f64);
        let length = dot(&self.values, &self.values).sqrt();
        // The sum of n terms in twice the precision has the error of its last rounding, and n^2 eps^2 of its terms.
        let n = problem.len() as f64;
        let of_weights =
            0.51 * f64::EPSILON * (length + (1.01 * roundings + n * n * f64::EPSILON) * self.size);
        let of_product = 0.51 * f64::EPSILON * (d + 3.0 + roundings) * length;
        // Where the sums cancel, the weights may be smaller than their error, whose square then counts.
        let quadratic = length * of_weights + self.size * of_product + 3.0 * of_weights * of_weights;
        (of_weights + of_product, quadratic)
    }
}

/// Returns nothing instead of an error if memory is short: SMO steps work without it.
pub(super) fn unless_memory_is_short<T>(result: Result<Option<T>>) -> Result<Option<T>> {
    match result {
        Err(Error::Memory { .. }) => Ok(None),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn outputs_keep_their_digits_where_kernel_values_cancel() {
        let (n, d) = (400, 3);
        let mut random = Random::new(2);
        let columns =
            FewColumns::new((0..n * d).map(|k| [1e6, 1.0, 1e3][k % d] * random.normal()).collect(), d);
        // Coefficients without a part in the first column: pairs of equal rows but for the others.
        let mut values = columns.values.clone();
        for i in (0..n).step_by(2) {
            values[(i + 1) * d] = values[i * d];
        }
        let columns = FewColumns::new(values, d);
        let beta: Vec<f64> =
            (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 } * (1.0 + (i / 2) as f64)).collect();
        let weights = columns.weights(&beta, Context::SEQUENTIAL);
        assert_eq!(weights.values[0], 0.0);
        let plain = columns.combination(n, Context::SEQUENTIAL, |i| (i, beta[i]));
        for (a, b) in weights.values.iter().zip(&plain) {
            assert!((a - b).abs() < 1e-6 * (1.0 + b.abs()));
        }
        let outputs = columns.outputs(&weights, Context::default());
        assert_eq!(
            outputs,
            columns.outputs(&columns.weights(&beta, Context::default()), Context::SEQUENTIAL)
        );
        let diagonal: Vec<f64> = (0..n).map(|i| dot(columns.row(i), columns.row(i))).collect();
        let problem = DualProblem::regression(&vec![0.0; n], &vec![1e3; n], 0.1, diagonal);
        let (of_output, of_quadratic) = weights.errors(&problem, 1);
        // The bound of sums over kernel values.
        let largest = largest_magnitude(&problem.diagonal);
        let by_values = 0.5 * f64::EPSILON * n as f64 * beta.iter().map(|b| b.abs()).sum::<f64>() * largest;
        assert!(of_output > 0.0 && of_output * largest.sqrt() < 0.02 * by_values && of_quadratic > 0.0);
    }

    #[test]
    fn kernel_values_have_a_factor_of_their_rank_if_they_are_positive_semidefinite() {
        let (n, d) = (20, 3);
        let mut random = Random::new(4);
        let columns = FewColumns::new((0..n * d).map(|_| random.normal()).collect(), d);
        let mut values: Vec<f64> = (0..n * n).map(|k| dot(columns.row(k / n), columns.row(k % n))).collect();
        let factor = FewColumns::of_values(&values, n, Context::SEQUENTIAL).unwrap().unwrap();
        assert_eq!(factor.count(), d);
        for k in 0..n * n {
            assert!((dot(factor.row(k / n), factor.row(k % n)) - values[k]).abs() < 1e-13);
        }
        // Twice its value makes a pair of rows that no vectors have.
        values[1] *= 2.0;
        values[n] *= 2.0;
        assert!(FewColumns::of_values(&values, n, Context::SEQUENTIAL).unwrap().is_none());
        assert!(FewColumns::of_values(&[0.0; 4], 2, Context::SEQUENTIAL).unwrap().is_none());
    }
}
