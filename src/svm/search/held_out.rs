//! Outputs for held-out rows from the coefficients of a fold's machines.
//!
//! Kernel values of the training rows against the held-out ones are put side by side once, and serve all machines and
//! every C of a chain; without a matrix to take them from they are computed anew for the vectors of each machine.

use super::super::matrix::KernelMatrix;
use super::super::precision::KernelValue;
use super::super::subproblem::write_block;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{self, Arenas, TryCollect, try_vec};
use crate::simd::blas::add_rows;
use crate::simd::gather::Indices;

/// What the fits of a chain read kernel values from.
pub(super) struct Values<'a, 's, K> {
    pub(super) matrix: Option<&'a KernelMatrix<K>>,
    pub(super) source: &'a KernelRows<'s>,
    pub(super) held_out: &'a HeldOut<'s, K>,
    pub(super) memory: &'a Arenas<K>,
}

impl<K: KernelValue> Values<'_, '_, K> {
    /// Writes the kernel values of a block's rows among each other.
    pub(super) fn fill(
        &self,
        positions: &[usize],
        rows: &[usize],
        kernel: &mut [K],
        stride: usize,
        slots: &[usize],
    ) -> Result<()> {
        let Some(matrix) = self.matrix else {
            return write_block(self.source, rows, kernel, stride, slots, Context::SEQUENTIAL);
        };
        let columns = Indices::new(positions)?;
        for (&position, &slot) in positions.iter().zip(slots) {
            // There is one group: its slots are consecutive.
            let line = &mut kernel[slot * stride + slots[0]..][..positions.len()];
            columns.gather(matrix.row(position), line);
        }
        Ok(())
    }
}

/// Held-out rows of a fold, as the machines of the fold see them.
pub(super) enum HeldOut<'a, K> {
    /// Kernel values: a line of all held-out rows for each training position, which `lines` finds.
    Values { values: Vec<K>, lines: Vec<u32>, count: usize },
    /// Where they are computed.
    Source { source: Box<KernelRows<'a>>, count: usize },
}

impl<'a, K: KernelValue> HeldOut<'a, K> {
    /// From a matrix; `train` and `test` are positions.
    pub(super) fn gather(
        matrix: &KernelMatrix<K>,
        positions: usize,
        train: &[usize],
        test: &[usize],
    ) -> Result<Self> {
        let count = test.len();
        let mut values = memory::try_zeros("kernel values of held-out rows", train.len() * count)?;
        let mut lines = try_vec![u32::MAX; positions]?;
        let columns = Indices::new(test)?;
        for ((line, &position), out) in (0..).zip(train).zip(values.chunks_exact_mut(count.max(1))) {
            lines[position] = line;
            columns.gather(matrix.row(position), out);
        }
        Ok(Self::Values { values, lines, count })
    }

    /// Computed when they are asked for; `test` are rows.
    pub(super) fn computed(source: &KernelRows<'a>, test: &[usize], ctx: Context<'_>) -> Result<Self> {
        Ok(Self::Source { source: Box::new(source.with_columns(test, ctx)?), count: test.len() })
    }

    /// b + sum over the vectors, whose positions and rows are given.
    pub(super) fn outputs(
        &self,
        positions: &[usize],
        rows: &[usize],
        coefficients: &[f64],
        b: f64,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        match self {
            Self::Values { values, lines, count } => {
                let mut out = try_vec![b; *count]?;
                let line = |&position: &usize| &values[lines[position] as usize * count..][..*count];
                let rows: Vec<&[K]> = positions.iter().map(line).try_collect_vec()?;
                add_rows(coefficients, &rows, 0, &mut out);
                Ok(out)
            }
            Self::Source { source, count } => {
                let mut out = try_vec![b; *count]?;
                source.add_product(rows, coefficients, &mut out, ctx)?;
                Ok(out)
            }
        }
    }
}
