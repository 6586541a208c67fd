//! Outputs for the held-out rows of a fold from the coefficients of its machines.
//!
//! Kernel values of training rows against the held-out rows are stored, and serve all machines and every C of a chain; values
//! that are cheap are computed again for every fit.

use super::super::precision::KernelValue;
use super::kernel_matrix::KernelMatrix;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{self, TryCollect, TryGrow, try_vec};
use crate::simd::blas::add_rows;
use crate::simd::gather::Indices;

/// Line of a training row without stored kernel values.
const NO_LINE: u32 = u32::MAX;

/// The held-out rows of a fold.
pub(super) struct HeldOut<'a, K> {
    /// Source of kernel values against the held-out rows; `None` if all values are stored.
    source: Option<Box<KernelRows<'a>>>,
    /// Number of held-out rows.
    count: usize,
    /// Stored kernel values: a line for each training row that has one.
    values: Vec<K>,
    /// Line of each training row; empty if values are not stored.
    lines: Vec<u32>,
}

impl<'a, K: KernelValue> HeldOut<'a, K> {
    /// Gathers the values of a matrix; `train` and `test` are positions in `order`.
    pub(super) fn gather(
        matrix: &KernelMatrix<K>,
        order: &[usize],
        train: &[usize],
        test: &[usize],
    ) -> Result<Self> {
        let count = test.len();
        let mut values = memory::try_zeros("kernel values of held-out rows", train.len() * count)?;
        let mut lines = try_vec![NO_LINE; order.len()]?;
        let columns = Indices::new(test)?;
        for ((line, &position), out) in (0..).zip(train).zip(values.chunks_exact_mut(count.max(1))) {
            lines[order[position]] = line;
            columns.gather(matrix.row(position), out);
        }
        Ok(Self { source: None, count, values, lines })
    }

    /// Computes values when they are needed; `rows` is the number of training rows if they are to be stored, else 0.
    pub(super) fn computed(
        source: &KernelRows<'a>,
        test: &[usize],
        rows: usize,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let source = Some(Box::new(source.with_columns(test, ctx)?));
        Ok(Self { source, count: test.len(), values: Vec::new(), lines: try_vec![NO_LINE; rows]? })
    }

    /// Stores the kernel values of more training rows, if values are stored.
    pub(super) fn store(&mut self, rows: &[usize], ctx: Context<'_>) -> Result<()> {
        let is_stored = self.count > 0 && !self.lines.is_empty();
        let Some(source) = self.source.as_ref().filter(|_| is_stored) else { return Ok(()) };
        let missing: Vec<usize> =
            rows.iter().copied().filter(|&row| self.lines[row] == NO_LINE).try_collect_vec()?;
        let stored = self.values.len();
        self.values.try_resize(stored + missing.len() * self.count, K::ZERO)?;
        let lines = self.values[stored..].chunks_exact_mut(self.count.max(1));
        source.compute(&missing, &mut lines.try_collect_vec()?, ctx)?;
        for (line, &row) in (stored / self.count.max(1)..).zip(&missing) {
            self.lines[row] = line as u32;
        }
        Ok(())
    }

    /// Returns b + sum k(x, x_i) coefficients_i over training rows whose values have been stored, if they are stored.
    pub(super) fn outputs(
        &self,
        rows: &[usize],
        coefficients: &[f64],
        b: f64,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        let mut out = try_vec![b; self.count]?;
        match &self.source {
            Some(source) if self.lines.is_empty() => source.add_product(rows, coefficients, &mut out, ctx)?,
            _ => {
                let line = |&row: &usize| &self.values[self.lines[row] as usize * self.count..][..self.count];
                let lines: Vec<&[K]> = rows.iter().map(line).try_collect_vec()?;
                add_rows(coefficients, &lines, 0, &mut out);
            }
        }
        Ok(out)
    }
}
