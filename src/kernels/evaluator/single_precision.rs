//! Decides whether single precision suffices for the outputs of an expansion: large coefficients, as those of least squares with a small
//! penalty are, cancel to small outputs, and the errors of their terms remain.
//!
//! An output may be off by a thousandth of its spread. Its error is estimated by independent roundings of all terms, each as large
//! as that of a kernel value of its vector with itself: a value of distances between rows is as wrong as the squares that they are
//! the difference of. Only where this estimate is not small against the spread, the outputs of a few vectors are computed in
//! both precisions.
//!
//! Cost: one pass over the vectors, and a few rows of outputs.

use super::super::pair::{pair, pair_with_itself};
use super::super::{Kernel, Precision};
use super::PackedExpansion;
use crate::context::Context;
use crate::data::{OwnedRows, Rows};
use crate::error::Result;
use crate::memory::try_vec;
use ndarray::Array2;
use std::sync::Arc;

/// Maximum error of an output in single precision, relative to the spread of the outputs.
const MAX_SINGLE_ERROR: f64 = 1e-3;
/// Number of vectors at which the spread of the outputs and their error in single precision are measured.
const MAX_SAMPLE: usize = 16;
/// Upper bound of the errors in single precision, relative to those of independent roundings, and relative to the largest one of
/// a sample.
const SAFETY_FACTOR: f64 = 8.0;

impl PackedExpansion {
    /// Returns whether outputs in single precision may be off by more than a thousandth of their spread.
    ///
    /// The spread of an output is that of its values at some vectors, without the largest and the smallest: far from all others,
    /// an outlier may have an output of the size of the coefficients. The vectors of a one-class machine may all lie on its
    /// boundary, where terms of one sign cancel with the intercept: there dense rows in the middle of pairs of vectors count too.
    /// Elsewhere they do not: sums of large terms cancel at the vectors, and are of another size between them. An intercept far
    /// from all of them does not hide that the outputs differ by little. Where independent roundings of all terms are small against
    /// the spread, nothing is measured; otherwise the outputs of these vectors are compared with those of kernel values in double
    /// precision.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), [`Error::Stopped`](crate::Error::Stopped).
    pub fn needs_double(&self, vectors: Rows<'_>, ctx: Context<'_>) -> Result<bool> {
        let measure = || -> Result<bool> {
            let (m, q) = (self.len(), self.outputs());
            let independent = self.independent_errors(vectors)?;
            if independent.iter().all(|error| *error == 0.0) {
                return Ok(false);
            }
            let count = m.min(MAX_SAMPLE);
            let places: Vec<usize> = (0..count).map(|k| k * m / count).collect();
            let sample = vectors.gather(&places)?;
            // The rounding of the samples themselves is none of the arithmetic.
            let Some(sample) = sample.view().to_single()? else { return Ok(true) };
            // Vectors that were packed for the measurement are dropped if rows are evaluated in double precision.
            let trial = Self {
                packed: self.packed.without_vectors(),
                coefficients: Arc::clone(&self.coefficients),
                ..*self
            };
            let outputs = trial.evaluate_in(vectors, sample.view(), Precision::Single, ctx)?;
            let between = middles(sample.view())?;
            let between = trial.evaluate_in(vectors, between.view(), Precision::Single, ctx)?;
            let is_boundary = |j: usize| {
                let intercept = self.coefficients.intercepts[j];
                let mut column = self.coefficients.values.iter().skip(j).step_by(q);
                intercept != 0.0 && column.all(|c| c * intercept <= 0.0)
            };
            let spread = |j: usize| -> Result<f64> {
                let more = if is_boundary(j) { between.nrows() } else { 0 };
                let all = outputs.column(j).into_iter().chain(between.column(j).into_iter().take(more));
                let mut sorted: Vec<f64> = all.copied().collect();
                sorted.sort_unstable_by(f64::total_cmp);
                Ok(if sorted.len() > 3 { sorted[sorted.len() - 2] - sorted[1] } else { 0.0 })
            };
            let mut spreads = vec![0.0; q];
            for (j, value) in spreads.iter_mut().enumerate() {
                *value = spread(j)?;
            }
            let exceeds = |j: usize, error: f64| !(SAFETY_FACTOR * error <= MAX_SINGLE_ERROR * spreads[j]);
            if (0..q).all(|j| !exceeds(j, independent[j])) {
                self.packed.adopt(trial.packed);
                return Ok(false);
            }
            let mut errors = vec![0.0_f64; q];
            let mut exact = vec![0.0; q];
            for (k, outputs) in outputs.rows().into_iter().enumerate() {
                ctx.check("outputs", 0, 0)?;
                exact.copy_from_slice(&self.coefficients.intercepts);
                for (i, line) in self.coefficients.values.chunks_exact(q).enumerate() {
                    let value = pair(&self.kernel, sample.view(), k, vectors, i);
                    exact.iter_mut().zip(line).for_each(|(f, c)| *f += c * value);
                }
                for ((error, f), exact) in errors.iter_mut().zip(outputs).zip(&exact) {
                    *error = error.max((f - exact).abs());
                }
            }
            let needs_double = (0..q).any(|j| exceeds(j, errors[j]));
            if !needs_double {
                self.packed.adopt(trial.packed);
            }
            Ok(needs_double)
        };
        self.coefficients.needs_double.get_or_try_init(measure).copied()
    }

    /// Returns the error of each output if its terms are rounded to single precision independently.
    fn independent_errors(&self, vectors: Rows<'_>) -> Result<Vec<f64>> {
        let q = self.outputs();
        let mut errors = vec![0.0; q];
        for (i, line) in self.coefficients.values.chunks_exact(q.max(1)).enumerate() {
            let error = self.rounding_of(vectors, i)?;
            errors.iter_mut().zip(line).for_each(|(sum, c)| *sum += (c * error) * (c * error));
        }
        for error in &mut errors {
            *error = error.sqrt();
        }
        Ok(errors)
    }

    /// Returns the rounding of a kernel value of a vector and a row like it in single precision: that of a value of this size, and
    /// of the distance that it is computed from.
    fn rounding_of(&self, vectors: Rows<'_>, i: usize) -> Result<f64> {
        let standardization = self.packed.standardization(&self.kernel, vectors)?;
        let length = |squared| standardization.magnitudes(vectors, i, squared).1;
        let size = match *standardization.kernel() {
            Kernel::Precomputed => 0.0,
            // Weights of dense columns, which take the place of at least as many vectors as outputs, are in double precision.
            Kernel::Linear if !vectors.is_sparse() && self.outputs() <= self.len() => 0.0,
            Kernel::Linear | Kernel::Polynomial { .. } => pair_with_itself(&self.kernel, vectors, i).abs(),
            Kernel::Rbf { gamma } | Kernel::Sigmoid { gamma, .. } => 1.0 + gamma.abs() * length(true),
            Kernel::Matern { smoothness, gamma } => 1.0 + smoothness.rate(gamma) * length(true).sqrt(),
            Kernel::Laplacian { gamma } | Kernel::ChiSquared { gamma } => 1.0 + gamma * length(false),
        };
        Ok(0.5 * f64::from(f32::EPSILON) * size)
    }
}

/// Returns the middle of each dense row and the next one; no row for sparse ones.
fn middles(rows: Rows<'_>) -> Result<OwnedRows> {
    let (n, d) = (if rows.is_sparse() { 0 } else { rows.rows().saturating_sub(1) }, rows.cols());
    let mut values = try_vec![0.0_f32; n * d]?;
    if n * d > 0 {
        for (i, middle) in values.chunks_exact_mut(d).enumerate() {
            for row in [i, i + 1] {
                rows.for_each_in_row(row, |k, v| middle[k] += 0.5 * v as f32);
            }
        }
    }
    Ok(Array2::from_shape_vec((n, d), values).expect("a number for each entry").into())
}
