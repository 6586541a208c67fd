//! A packed expansion together with its vectors, which it shares with the expansion of a Rust program.

use super::packed::Coefficients;
use super::{PackedExpansion, Partial};
use crate::context::Context;
use crate::data::{OwnedRows, Rows};
use crate::error::Result;
use crate::expansion::{ExpansionView, KernelExpansion};
use crate::kernels::Precision;
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

/// An expansion prepared for prediction, with its vectors. Reusable and shareable.
pub struct Evaluator {
    vectors: Arc<OwnedRows>,
    model: PackedExpansion,
}

impl Evaluator {
    /// Copies the expansion. Vectors are packed when the first rows are evaluated, whose precision they follow.
    ///
    /// # Errors
    /// See [`ExpansionView::new`].
    pub fn new(expansion: &ExpansionView<'_>) -> Result<Self> {
        let model = PackedExpansion::new(expansion)?;
        let all: Vec<usize> = (0..model.len()).collect();
        Ok(Self { vectors: Arc::new(expansion.vectors.gather(&all)?), model })
    }

    /// Prepares an expansion and shares its vectors.
    ///
    /// # Errors
    /// See [`ExpansionView::new`].
    pub fn sharing(expansion: &KernelExpansion) -> Result<Self> {
        let model = PackedExpansion::new(&expansion.view())?;
        Ok(Self { vectors: Arc::clone(&expansion.vectors), model })
    }

    /// Replaces coefficients (m, q) and intercepts (q,), and keeps the packed vectors.
    ///
    /// # Errors
    /// See [`ExpansionView::new`]; the expansion is unchanged after an error.
    pub fn set_coefficients(&mut self, coefficients: ArrayView2<'_, f64>, intercepts: &[f64]) -> Result<()> {
        let view = ExpansionView::new(self.model.kernel, self.vectors.view(), coefficients, intercepts)?;
        self.model.coefficients = Arc::new(Coefficients::new(&view)?);
        Ok(())
    }

    /// Returns the number of outputs q, the columns of the result.
    pub fn outputs(&self) -> usize {
        self.model.outputs()
    }

    /// Number of vectors m, the kernel values of one row.
    pub fn len(&self) -> usize {
        self.model.len()
    }

    /// Returns whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.model.is_empty()
    }

    /// Computes F, (n, q): in single precision for rows of bytes or single precision, unless its errors are too large; else
    /// in double precision.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) where the rows have another number of columns than the vectors (or, for a precomputed
    /// kernel, fewer than the largest index), [`Error::Param`](crate::Error::Param) for rows outside the kernel's domain,
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub fn evaluate(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.model.complete(Partial::default(), self.vectors.view(), x, ctx)
    }

    /// Computes F in double precision whatever the rows hold.
    ///
    /// # Errors
    /// See [`Evaluator::evaluate`].
    pub fn evaluate_double(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.evaluate_in(x, Precision::Double, ctx)
    }

    pub(in crate::kernels) fn evaluate_in(
        &self,
        x: Rows<'_>,
        precision: Precision,
        ctx: Context<'_>,
    ) -> Result<Array2<f64>> {
        self.model.evaluate_in(self.vectors.view(), x, precision, ctx)
    }

    /// See [`PackedExpansion::needs_double`].
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), [`Error::Stopped`](crate::Error::Stopped).
    pub fn needs_double(&self, ctx: Context<'_>) -> Result<bool> {
        self.model.needs_double(self.vectors.view(), ctx)
    }
}
