//! Bounds and estimates of the effect of rounding on a machine.
//!
//! Machines are solved with kernel values in single precision first. The error of their outputs h = Kb depends on the
//! coefficients, which are unknown beforehand: bounds from C and the number of rows are off by orders of magnitude. So it is
//! *measured*: outputs of support vectors are computed again in double precision, of all support vectors if they are few,
//! otherwise of those with the largest product of |b| and the rounding error of their row, and of others drawn in proportion
//! to this product.
//! If the errors may be larger than the fit allows (see `precision`), the machine continues in double precision. No assumption is made on the errors of single values, which are far from
//! independent if values are few or close to each other.
//!
//! With E the errors of the kernel values, the objectives need |b'Eb| and what errors of outputs do to losses. The sum
//! b'Eb is estimated from the draws, weighted by their probabilities, with an error of at most five standard errors, plus the
//! error of one value of every row, which draws miss if values are mostly zero. In double precision errors are bounded by
//! their worst case.
//!
//! Cost: [`MAX_SAMPLE`] kernel values per support vector; for the bound in double precision, a product of all outputs.

use super::certificate::{Rounding, has_linear_loss};
use super::intercept::intercept;
use super::precision::Values;
use super::problem::DualProblem;
use super::stall::largest_magnitude;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::try_vec;
use crate::random::Random;
use crate::simd::blas::dot;

/// Maximum number of support vectors for which all outputs are computed again.
const MAX_FULLY_MEASURED: usize = 128;
/// Number of support vectors of largest weight in the sample, of more than [`MAX_FULLY_MEASURED`].
const N_LARGEST: usize = 8;
/// Number of support vectors drawn from the others.
const N_DRAWN: usize = 24;
/// Size of the sample.
pub(super) const MAX_SAMPLE: usize = N_LARGEST + N_DRAWN;
/// Maximum error of the mean of the draws, in standard errors.
const MAX_STANDARD_ERRORS: f64 = 5.0;
/// Upper bound of the errors of all outputs, relative to the largest measured one.
const SAFETY_FACTOR: f64 = 2.0;
/// Upper bound of the errors of other coefficients, relative to those extrapolated by their norm.
const EXTRAPOLATION_FACTOR: f64 = 2.0;

impl Rounding {
    /// Bounds the error of outputs that were computed at once, in double precision.
    pub(super) fn bound(problem: &DualProblem, values: &Values) -> Self {
        let used = problem.beta.iter().filter(|b| **b != 0.0).count();
        let size: f64 = problem.beta.iter().map(|b| b.abs()).sum();
        // A plain sum, or a fast Gauss transform.
        let sum_error = 0.51 * f64::EPSILON * (used as f64 + 4.0);
        let largest =
            if values.largest > 0.0 { values.largest } else { largest_magnitude(&problem.diagonal) };
        let output = size * (values.error + sum_error * largest);
        Self { output, quadratic: size * output, linear_losses: size * output }
    }

    /// Bounds the error of the same outputs if errors are known relative to the values: from the `scales` of the rows, K|b|,
    /// and K of |b| times the scales. `None` if relative errors are unknown.
    pub(super) fn bound_by_values(
        problem: &DualProblem,
        values: &Values,
        scales: &[f64],
        (products, scaled): (&[f64], &[f64]),
    ) -> Option<Self> {
        let relative = values.relative?;
        let used = problem.beta.iter().filter(|b| **b != 0.0).count();
        let error = |v: usize| error_of(relative, used, scales[v], products[v], scaled[v]);
        let output = (0..problem.len()).map(error).fold(0.0, f64::max);
        let quadratic = (0..problem.len()).map(|v| problem.beta[v].abs() * error(v)).sum();
        Some(Self { output, quadratic, linear_losses: quadratic })
    }

    /// Measures the error of the gradients of a problem whose variables are the given rows, from some outputs in double
    /// precision.
    pub(super) fn measure(
        problem: &DualProblem,
        rows: &[usize],
        values: &Values,
        source: &KernelRows<'_>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).collect();
        if used.is_empty() {
            return Ok(Self::default());
        }
        let rows_of = |list: &[usize]| list.iter().map(|&v| rows[v]).collect::<Vec<_>>();
        let beta: Vec<f64> = used.iter().map(|&v| problem.beta[v]).collect();
        let of_used = rows_of(&used);
        let scales = source.rows().rounding_scales(&of_used, ctx);
        let sample = Sample::new(&beta, &scales);
        let draws: Vec<usize> = sample.places.iter().map(|&k| used[k]).collect();
        let source = source.in_double(&of_used, ctx)?;
        let mut kernel = try_vec![0.0; draws.len() * used.len()]?;
        source.compute(
            &rows_of(&draws),
            &mut kernel.chunks_exact_mut(used.len()).collect::<Vec<_>>(),
            ctx,
        )?;
        let errors: Vec<f64> = draws
            .iter()
            .zip(kernel.chunks_exact(used.len()))
            .map(|(&v, line)| {
                let output = problem.gradient[v] - problem.linear[v] - problem.ridge[v] * problem.beta[v];
                output - dot(line, &beta)
            })
            .collect();
        let mut bound = Self::bound(problem, values);
        if let Some(relative) = values.relative {
            let of_double: Vec<f64> = sample
                .places
                .iter()
                .zip(kernel.chunks_exact(used.len()))
                .map(|(&k, line)| {
                    let (mut product, mut scaled) = (0.0, 0.0);
                    for ((value, b), scale) in line.iter().zip(&beta).zip(&scales) {
                        product += value * b.abs();
                        scaled += value * b.abs() * scale;
                    }
                    error_of(relative, used.len(), scales[k], product, scaled)
                })
                .collect();
            let output = SAFETY_FACTOR * of_double.iter().fold(0.0, |largest: f64, e| largest.max(*e));
            let quadratic = sample.sum(sample.places.iter().zip(&of_double).map(|(&k, e)| beta[k].abs() * e));
            if output < bound.output {
                bound = Self { output, quadratic, linear_losses: quadratic };
            }
        }
        let output =
            SAFETY_FACTOR * errors.iter().fold(0.0, |largest: f64, e| largest.max(e.abs())) + bound.output;
        let levels = intercept(problem);
        // One row with far larger values may dominate the estimates; the error of an output bounds the sums, too.
        let worst = beta.iter().map(|b| b.abs()).sum::<f64>() * output;
        let sum = |counts: &dyn Fn(usize) -> bool| {
            let terms = draws.iter().zip(&errors);
            sample.sum(terms.map(|(&v, e)| if counts(v) { problem.beta[v] * e } else { 0.0 })).min(worst)
        };
        Ok(Self {
            output,
            quadratic: sum(&|_| true) + bound.quadratic,
            linear_losses: sum(&|v| has_linear_loss(problem, levels, output, v)) + bound.linear_losses,
        })
    }
}

/// The measured error of outputs at some coefficients of a machine. It shows whether the error at other coefficients must be
/// measured too: errors grow with the norm of the coefficients.
#[derive(Clone, Copy)]
pub(super) struct MeasuredRounding {
    output: f64,
    squared_norm: f64,
}

impl MeasuredRounding {
    /// Stores the error of coefficients whose products with k(x, x) have this sum of squares.
    pub(super) fn new(rounding: &Rounding, squared_norm: f64) -> Self {
        Self { output: rounding.output, squared_norm }
    }

    /// Returns whether the error at coefficients of another norm may exceed the maximum.
    pub(super) fn may_exceed(&self, squared_norm: f64, max_rounding: f64) -> bool {
        let growth = (squared_norm / self.squared_norm).sqrt();
        // NaN where all coefficients were zero.
        !(EXTRAPOLATION_FACTOR * self.output * growth <= max_rounding)
    }
}

/// Returns the maximum error of an output in double precision, from the relative error of values (see
/// [`Magnitudes::relative_error_in_double`]), the row's scale, and its entries of K|b| and of K of |b| times the scales.
fn error_of((constant, slope): (f64, f64), used: usize, scale: f64, product: f64, scaled: f64) -> f64 {
    let sum_error = 0.51 * f64::EPSILON * (used as f64 + 4.0);
    1.01 * (product * (constant + sum_error + slope * scale) + slope * scaled)
}

/// A sample of numbers from which their sum is estimated.
struct Sample {
    /// Indices of the largest ones, then of the drawn ones.
    places: Vec<usize>,
    /// Number of terms that each draw represents.
    shares: Vec<f64>,
    /// Additional error of a sum.
    unseen: f64,
}

impl Sample {
    /// Draws a sample for coefficients of rows whose values have errors in proportion to `scales`.
    fn new(beta: &[f64], scales: &[f64]) -> Self {
        let n = beta.len();
        if n <= MAX_FULLY_MEASURED {
            return Self { places: (0..n).collect(), shares: Vec::new(), unseen: 0.0 };
        }
        let mean = scales.iter().sum::<f64>() / n as f64;
        let weights: Vec<f64> = beta.iter().zip(scales).map(|(b, s)| b.abs() * (s + mean)).collect();
        let squares: f64 = beta.iter().zip(scales).map(|(b, s)| (b * b * (s + mean)).powi(2)).sum();
        let unseen = MAX_STANDARD_ERRORS * 0.5 * f64::from(f32::EPSILON) * squares.sqrt();
        let mut places: Vec<usize> = (0..n).collect();
        places.select_nth_unstable_by(N_LARGEST, |&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
        let others = places.split_off(N_LARGEST);
        places.sort_unstable();
        let mut total = 0.0;
        let sums: Vec<f64> = others
            .iter()
            .map(|&k| {
                total += weights[k];
                total
            })
            .collect();
        if total == 0.0 {
            // Values of rows at the center are exact.
            return Self { places, shares: Vec::new(), unseen };
        }
        let mut random = Random::new(n as u64);
        let mut shares = Vec::with_capacity(N_DRAWN); // small: a constant number
        for _ in 0..N_DRAWN {
            let at = random.uniform() * total;
            let k = others[sums.partition_point(|sum| *sum <= at).min(others.len() - 1)];
            places.push(k);
            shares.push(total / weights[k]);
        }
        Self { places, shares, unseen }
    }

    /// Returns an upper bound of the absolute value of the sum, from the terms of the sample.
    fn sum(&self, terms: impl Iterator<Item = f64> + Clone) -> f64 {
        let certain = self.places.len() - self.shares.len();
        let drawn = terms.clone().skip(certain).zip(&self.shares).map(|(term, share)| term * share);
        let certain: f64 = terms.take(certain).sum();
        if self.shares.is_empty() {
            return certain.abs();
        }
        let count = self.shares.len() as f64;
        let mean = drawn.clone().sum::<f64>() / count;
        let spread: f64 = drawn.map(|term| (term - mean) * (term - mean)).sum();
        (certain + mean).abs() + MAX_STANDARD_ERRORS * (spread / (count * (count - 1.0))).sqrt() + self.unseen
    }
}
