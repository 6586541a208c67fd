//! Outputs for the held-out rows of a fold from the coefficients of its machines.
//!
//! Kernel values of training rows against the held-out rows are gathered from the matrix of the search once, and serve all
//! machines and every C of a chain; without a matrix they are computed for the vectors of each fit.

use super::super::kernel_matrix::KernelMatrix;
use super::super::precision::KernelValue;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{self, try_vec};
use crate::simd::blas::add_rows;
use crate::simd::gather::Indices;

/// Line of a row without kernel values.
const NO_LINE: u32 = u32::MAX;

/// The held-out rows of a fold.
pub(super) struct HeldOut<'a, K> {
    /// Source of kernel values against the held-out rows; `None` if values are gathered.
    source: Option<Box<KernelRows<'a>>>,
    /// Number of held-out rows.
    count: usize,
    /// Gathered kernel values: a line for each training row of the fold.
    values: Vec<K>,
    /// Line of each training row; empty if values are computed.
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
        let mut lines = vec![NO_LINE; order.len()];
        let columns = Indices::new(test);
        for ((line, &position), out) in (0..).zip(train).zip(values.chunks_exact_mut(count.max(1))) {
            lines[order[position]] = line;
            columns.gather(matrix.row(position), out);
        }
        Ok(Self { source: None, count, values, lines })
    }

    /// Computes values when they are needed; `test` are rows.
    pub(super) fn computed(source: &KernelRows<'a>, test: &[usize], ctx: Context<'_>) -> Result<Self> {
        let source = Some(Box::new(source.with_columns(test, ctx)?));
        Ok(Self { source, count: test.len(), values: Vec::new(), lines: Vec::new() })
    }

    /// Returns b + sum k(x, x_i) coefficients_i over training rows.
    pub(super) fn outputs(
        &self,
        rows: &[usize],
        coefficients: &[f64],
        b: f64,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        let mut out = try_vec![b; self.count]?;
        if let Some(source) = &self.source {
            source.add_product(rows, coefficients, &mut out, ctx)?;
        } else {
            let line = |&row: &usize| &self.values[self.lines[row] as usize * self.count..][..self.count];
            let lines: Vec<&[K]> = rows.iter().map(line).collect();
            add_rows(coefficients, &lines, 0, &mut out);
        }
        Ok(out)
    }
}
