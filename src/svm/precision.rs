//! The precision that kernel values are kept in, and how far rounding may move what a machine computes.
//!
//! Machines are solved with kernel values in single precision first. What that does to their outputs h = Kb follows from
//! the coefficients, which nobody knows beforehand: bounds from C and the number of rows are off by orders of magnitude. So
//! it is *measured*: outputs of some support vectors, drawn in proportion to |b|, are computed again in double precision.
//! Where the errors may be an eighth of the tolerance, the conditions of the optimum cannot be told in single precision,
//! and the machine goes on in double precision. Nothing is assumed of the errors of single values, which are far from
//! independent where values are few or close to each other.
//!
//! With E the errors of the kernel values, the objectives need |b'Eb| and what errors of outputs do to losses. The sum
//! b'Eb is ||b||_1 times the mean of sign(b_i) (Eb)_i over the draws; its mean over [`DRAWS`] of them is off by five
//! standard errors at most. In double precision the bounds are proved: every error is the largest that there can be.
//!
//! A machine whose coefficients become so large that roundings, even if they were independent of each other, are a few
//! times the tolerance ends in single precision at once: coefficients without bounds may grow for ever there, since rounded
//! kernel matrices are not positive definite.
//!
//! Cost: of the measure [`DRAWS`] kernel values a support vector; in double precision a product of all outputs.

use super::certificate::is_steady;
use super::intercept::intercept;
use super::problem::DualProblem;
use crate::control::Par;
use crate::error::Result;
use crate::kernels::{KernelRows, Precision, Reach, Value};
use crate::random::Random;
use crate::simd::blas::{Stored, dot};

/// Support vectors whose outputs are computed again.
const DRAWS: usize = 32;
/// Standard errors that the mean of the draws may be off.
const DEVIATIONS: f64 = 5.0;
/// Errors of outputs are at most so many times as large as the largest that was measured.
const SAFETY: f64 = 2.0;
/// Share of the tolerance that these may be in single precision.
const SHARE: f64 = 0.25;

/// Times the tolerance that the roundings of single precision may be before a machine ends there.
const HOPELESS: f64 = 4.0;

/// A kernel value as blocks and caches keep it.
pub(super) trait KernelValue: Value + Stored {
    /// Its precision.
    const PRECISION: Precision;
    /// Ridge of the systems of the unbounded variables, relative to the largest diagonal entry and to sqrt(m): the size of
    /// what rounding adds to the eigenvalues of a kernel matrix, in its values or in its factor.
    const RIDGE: f64;
}

impl KernelValue for f32 {
    const PRECISION: Precision = Precision::Single;
    const RIDGE: f64 = 1e-7;
}

impl KernelValue for f64 {
    const PRECISION: Precision = Precision::Double;
    const RIDGE: f64 = 1e-13;
}

/// Whether kernel values in single precision are of no use to coefficients that are to be found to a tolerance.
pub(super) fn is_hopeless<K: KernelValue>(beta: &[f64], diagonal: &[f64], tolerance: f64) -> bool {
    K::PRECISION == Precision::Single && {
        let squares: f64 = beta.iter().zip(diagonal).map(|(b, d)| (b * d) * (b * d)).sum();
        0.5 * f64::from(f32::EPSILON) * squares.sqrt() > HOPELESS * tolerance
    }
}

/// Kernel values of a fit: the precision to compute them in, the largest, and the error of one in double precision.
#[derive(Clone, Copy)]
pub(super) struct Values {
    pub(super) precision: Precision,
    largest: f64,
    error: f64,
}

impl Values {
    pub(super) fn new(precision: Precision, reach: &Reach) -> Self {
        let (largest, error) = reach.in_double();
        Self { precision, largest, error }
    }

    /// The same in double precision.
    pub(super) fn in_double(self) -> Self {
        Self { precision: Precision::Double, ..self }
    }
}

/// How far rounding may have moved outputs and their sums.
#[derive(Clone, Copy, Default)]
pub(super) struct Rounding {
    /// An output.
    pub(super) output: f64,
    /// b'Kb.
    pub(super) quadratic: f64,
    /// The sum of b_i h_i over the variables whose loss is steady (see [`is_steady`]).
    pub(super) steady: f64,
}

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

    /// Of the gradients of a problem whose variables are the given rows, by some outputs in double precision.
    pub(super) fn measured(
        problem: &DualProblem,
        rows: &[usize],
        values: &Values,
        source: &KernelRows<'_>,
        par: Par,
    ) -> Result<Self> {
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).collect();
        if used.is_empty() {
            return Ok(Self::default());
        }
        let (draws, is_all) =
            if used.len() <= DRAWS { (used.clone(), true) } else { (draw(problem, &used), false) };
        let rows_of = |list: &[usize]| list.iter().map(|&v| rows[v]).collect::<Vec<usize>>();
        let beta: Vec<f64> = used.iter().map(|&v| problem.beta[v]).collect();
        let source = source.in_double(&rows_of(&used), par)?;
        let mut kernel = vec![0.0; draws.len() * used.len()];
        source.compute(
            &rows_of(&draws),
            &mut kernel.chunks_exact_mut(used.len()).collect::<Vec<_>>(),
            par,
        )?;
        let errors: Vec<f64> = draws
            .iter()
            .zip(kernel.chunks_exact(used.len()))
            .map(|(&v, line)| {
                let output = problem.gradient[v] - problem.linear[v] - problem.ridge[v] * problem.beta[v];
                output - dot(line, &beta)
            })
            .collect();
        let proved = Self::proved(problem, values);
        let output = SAFETY * errors.iter().fold(0.0, |most: f64, e| most.max(e.abs())) + proved.output;
        let levels = intercept(problem);
        // Sums over the draws, weighted so that they stand for all.
        let size: f64 = beta.iter().map(|b| b.abs()).sum();
        let sum = |counts: &dyn Fn(usize) -> bool| {
            let terms = draws.iter().zip(&errors).map(|(&v, e)| match counts(v) {
                false => 0.0,
                true if is_all => problem.beta[v] * e,
                true => size * problem.beta[v].signum() * e,
            });
            let terms: Vec<f64> = terms.collect();
            let total: f64 = terms.iter().sum();
            if is_all {
                return total.abs();
            }
            let count = terms.len() as f64;
            let mean = total / count;
            let spread: f64 = terms.iter().map(|term| (term - mean) * (term - mean)).sum();
            mean.abs() + DEVIATIONS * (spread / (count * (count - 1.0))).sqrt()
        };
        Ok(Self {
            output,
            quadratic: sum(&|_| true) + proved.quadratic,
            steady: sum(&|v| is_steady(problem, levels, output, v)) + proved.steady,
        })
    }
}

/// Variables of those used, in proportion to their coefficients.
fn draw(problem: &DualProblem, used: &[usize]) -> Vec<usize> {
    let mut sums = Vec::with_capacity(used.len());
    let mut total = 0.0;
    for &v in used {
        total += problem.beta[v].abs();
        sums.push(total);
    }
    let mut random = Random::new(used.len() as u64);
    let mut place = || sums.partition_point(|sum| *sum <= random.uniform() * total).min(used.len() - 1);
    (0..DRAWS).map(|_| used[place()]).collect()
}

fn largest_of(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, v| most.max(v.abs()))
}
