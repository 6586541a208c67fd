//! The Cholesky factor of the kernel matrix of a few vectors, and projections onto their span.
//!
//! For a row with kernel values k against the vectors and K = L L': l = L^-1 k, the squared distance from the span is
//! delta^2 = k(x, x) - l'l, and d = L'^-1 l are the coefficients of the projection. l and delta are the new row of L if
//! the row becomes a vector. No entry of L exceeds the square root of the largest k(x, x), and a row, once written,
//! never changes. Cost: O(m^2) a row, m^2 / 2 numbers.

use crate::error::{Error, Result};
use crate::memory::try_with_capacity;
use crate::simd::blas::{axpy, dot};

/// Squared distances below this part of k(x, x) are rounding.
pub(super) const SPAN: f64 = 1e-12;

/// L, row by row, and what the last row needed.
#[derive(Default)]
pub(super) struct Factor {
    pub(super) rows: Vec<Vec<f64>>,
    line: Vec<f64>,
    coefficients: Vec<f64>,
}

impl Factor {
    /// Solves for l; returns l'l.
    pub(super) fn forward(&mut self, values: &[f64]) -> f64 {
        self.line.clear();
        for (row, value) in self.rows.iter().zip(values) {
            let i = self.line.len();
            self.line.push((value - dot(&row[..i], &self.line)) / row[i]);
        }
        dot(&self.line, &self.line)
    }

    /// d of the row of the last `forward`.
    pub(super) fn backward(&mut self) -> &[f64] {
        self.coefficients.clone_from(&self.line);
        for (i, row) in self.rows.iter().enumerate().rev() {
            let (before, rest) = self.coefficients.split_at_mut(i);
            rest[0] /= row[i];
            axpy(-rest[0], &row[..i], before);
        }
        &self.coefficients
    }

    /// The row of the last `forward` becomes a vector.
    pub(super) fn grow(&mut self, squared: f64) -> Result<()> {
        let mut row = try_with_capacity("the factor of a projection", self.line.len() + 1)?;
        row.extend_from_slice(&self.line);
        row.push(squared.sqrt());
        self.rows.push(row);
        Ok(())
    }

    /// A vector that is there already, with k(z, z) and its kernel values against those before it, which another kernel
    /// may have told apart from their span.
    pub(super) fn push(&mut self, own: f64, values: &[f64]) -> Result<()> {
        let projected = self.forward(values);
        let rule = "pools of vectors with a finite k(x, x) above 0 and of a positive semidefinite kernel";
        let sound = own > 0.0 && (own + projected).is_finite();
        Error::check_param(sound, "vectors", format!("k(x, x)={own}"), rule)?;
        self.grow((own - projected).max(SPAN * own))
    }
}

/// Checks coefficients that a projection has changed.
pub(super) fn check_projected<'a>(changed: impl IntoIterator<Item = &'a f64>) -> Result<()> {
    let rule = "large enough for the coefficients of a projection to stay finite; scale the rows";
    Error::check_param(changed.into_iter().all(|value| value.is_finite()), "X", "(rows)", rule)
}
