//! How far rounding may move what a machine computes.
//!
//! Machines are solved with kernel values in single precision first. What that does to their outputs h = Kb follows from
//! the coefficients, which nobody knows beforehand: bounds from C and the number of rows are off by orders of magnitude. So
//! it is *measured*: outputs of some support vectors are computed again in double precision: of all where they are few,
//! else of those whose |b| times the rounding of their values, as far as the row tells it, is largest, and of some that are
//! drawn in this proportion.
//! Where the errors may be an eighth of the tolerance, the conditions of the optimum cannot be told in single precision,
//! and the machine goes on in double precision. Nothing is assumed of the errors of single values, which are far from
//! independent where values are few or close to each other.
//!
//! With E the errors of the kernel values, the objectives need |b'Eb| and what errors of outputs do to losses. The sum
//! b'Eb is estimated from the draws, by their shares; it is taken to be off by at most five standard errors, and by what
//! one value of every row may be off besides, which no draw sees where values are mostly zero. In double precision the
//! bounds are proved: every error is the largest that there can be.
//!
//! Cost: of the measure [`CERTAIN`] + [`DRAWS`] kernel values a support vector; in double precision a product of all outputs.

use super::certificate::{Rounding, is_steady};
use super::intercept::intercept;
use super::precision::Values;
use super::problem::DualProblem;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{TryCollect, try_vec};
use crate::random::Random;
use crate::simd::blas::dot;

/// Support vectors up to which the outputs of all are computed again.
const FEW: usize = 128;
/// Of more, how many that weigh most are computed again, and how many are drawn of the others.
const CERTAIN: usize = 8;
const DRAWS: usize = 24;
/// How many are computed again at most.
pub(super) const SAMPLE: usize = CERTAIN + DRAWS;
/// Standard errors that the mean of the draws may be off.
const DEVIATIONS: f64 = 5.0;
/// Errors of outputs are at most so many times as large as the largest that was measured.
const SAFETY: f64 = 2.0;
/// Share of the tolerance that these may be in single precision.
const SHARE: f64 = 0.25;

impl Rounding {
    /// Whether it is too large for a tolerance in single precision.
    pub(super) fn needs_double(&self, tolerance: f64) -> bool {
        self.output > SHARE * tolerance
    }

    /// Of outputs that were computed from the coefficients at once, in double precision.
    pub(super) fn proved(problem: &DualProblem, values: &Values) -> Self {
        let used = problem.beta.iter().filter(|b| **b != 0.0).count();
        let size: f64 = problem.beta.iter().map(|b| b.abs()).sum();
        // A sum of so many terms, or one by boxes.
        let of_sum = 0.51 * f64::EPSILON * (used as f64 + 4.0);
        let largest = if values.largest > 0.0 { values.largest } else { largest_of(&problem.diagonal) };
        let output = size * (values.error + of_sum * largest);
        Self { output, quadratic: size * output, steady: size * output }
    }

    /// The same where errors are known relative to the values: by the `scales` of the rows, K|b|, and K of |b| times the
    /// scales; `None` where they are not known so.
    pub(super) fn proved_by_values(
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
        Some(Self { output, quadratic, steady: quadratic })
    }

    /// Of the gradients of a problem whose variables are the given rows, by some outputs in double precision.
    pub(super) fn measured(
        problem: &DualProblem,
        rows: &[usize],
        values: &Values,
        source: &KernelRows<'_>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).try_collect_vec()?;
        if used.is_empty() {
            return Ok(Self::default());
        }
        let rows_of = |list: &[usize]| list.iter().map(|&v| rows[v]).try_collect_vec();
        let beta: Vec<f64> = used.iter().map(|&v| problem.beta[v]).try_collect_vec()?;
        let of_used = rows_of(&used)?;
        let scales = source.rows().rounding_scales(&of_used)?;
        let sample = Sample::of(&beta, &scales)?;
        let draws: Vec<usize> = sample.places.iter().map(|&k| used[k]).try_collect_vec()?;
        let source = source.in_double(&of_used, ctx)?;
        let mut kernel = try_vec![0.0; draws.len() * used.len()]?;
        source.compute(
            &rows_of(&draws)?,
            &mut kernel.chunks_exact_mut(used.len()).try_collect_vec()?,
            ctx,
        )?;
        let errors: Vec<f64> = draws
            .iter()
            .zip(kernel.chunks_exact(used.len()))
            .map(|(&v, line)| {
                let output = problem.gradient[v] - problem.linear[v] - problem.ridge[v] * problem.beta[v];
                output - dot(line, &beta)
            })
            .try_collect_vec()?;
        let mut proved = Self::proved(problem, values);
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
                .try_collect_vec()?;
            let output = SAFETY * of_double.iter().fold(0.0, |most: f64, e| most.max(*e));
            let quadratic = sample.sum(sample.places.iter().zip(&of_double).map(|(&k, e)| beta[k].abs() * e));
            if output < proved.output {
                proved = Self { output, quadratic, steady: quadratic };
            }
        }
        let output = SAFETY * errors.iter().fold(0.0, |most: f64, e| most.max(e.abs())) + proved.output;
        let levels = intercept(problem);
        let sum = |counts: &dyn Fn(usize) -> bool| {
            let terms = draws.iter().zip(&errors);
            sample.sum(terms.map(|(&v, e)| if counts(v) { problem.beta[v] * e } else { 0.0 }))
        };
        Ok(Self {
            output,
            quadratic: sum(&|_| true) + proved.quadratic,
            steady: sum(&|v| is_steady(problem, levels, output, v)) + proved.steady,
        })
    }
}

/// What an output of a row in double precision may be off, by the relative error of values (see
/// [`Magnitudes::relative_error_in_double`]), the row's scale, and its entries of K|b| and of K of |b| times the scales.
fn error_of((constant, slope): (f64, f64), used: usize, scale: f64, product: f64, scaled: f64) -> f64 {
    let of_sum = 0.51 * f64::EPSILON * (used as f64 + 4.0);
    1.01 * (product * (constant + of_sum + slope * scale) + slope * scaled)
}

/// Some of many numbers that are to be added up.
struct Sample {
    /// Which they are: certain ones, then draws.
    places: Vec<usize>,
    /// Numbers that a draw stands for.
    shares: Vec<f64>,
    /// What a sum may be off besides.
    unseen: f64,
}

impl Sample {
    /// For coefficients of rows whose values are off in proportion to `scales`.
    fn of(beta: &[f64], scales: &[f64]) -> Result<Self> {
        let n = beta.len();
        if n <= FEW {
            return Ok(Self { places: (0..n).try_collect_vec()?, shares: Vec::new(), unseen: 0.0 });
        }
        let mean = scales.iter().sum::<f64>() / n as f64;
        let weights: Vec<f64> =
            beta.iter().zip(scales).map(|(b, s)| b.abs() * (s + mean)).try_collect_vec()?;
        let squares: f64 = beta.iter().zip(scales).map(|(b, s)| (b * b * (s + mean)).powi(2)).sum();
        let unseen = DEVIATIONS * 0.5 * f64::from(f32::EPSILON) * squares.sqrt();
        let mut places: Vec<usize> = (0..n).try_collect_vec()?;
        places.select_nth_unstable_by(CERTAIN, |&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
        let others = places.split_off(CERTAIN);
        places.sort_unstable();
        let mut total = 0.0;
        let sums: Vec<f64> = others
            .iter()
            .map(|&k| {
                total += weights[k];
                total
            })
            .try_collect_vec()?;
        let mut random = Random::new(n as u64);
        let mut shares = Vec::with_capacity(DRAWS); // small: a constant number
        for _ in 0..DRAWS {
            let at = random.uniform() * total;
            let k = others[sums.partition_point(|sum| *sum <= at).min(others.len() - 1)];
            places.push(k);
            shares.push(total / weights[k]);
        }
        Ok(Self { places, shares, unseen })
    }

    /// The largest that the size of the sum of all is, by the terms of the sample.
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
        (certain + mean).abs() + DEVIATIONS * (spread / (count * (count - 1.0))).sqrt() + self.unseen
    }
}

fn largest_of(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, v| most.max(v.abs()))
}
