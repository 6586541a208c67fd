//! A batch of dense rows for gradient steps, in both orders.
//!
//! Invariant: both copies hold the same numbers. Cost: two copies of each number.

use crate::context::Context;
use crate::error::Result;
use crate::memory::TryGrow;

/// Rows that one task writes.
const ROWS_PER_TASK: usize = 24;
/// Features that one task transposes.
const FEATURES_PER_TASK: usize = 4 * SQUARE;
/// Rows and features of a square of a transposition.
const SQUARE: usize = 16;

/// A batch of dense rows, row-major and feature-major.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    pub(super) rows: usize,
    pub(super) by_row: Vec<f32>,
    pub(super) by_feature: Vec<f32>,
    pub(super) norms: Vec<f32>,
}

impl Batch {
    /// Takes n rows of d numbers, which `write(first, lines)` writes from row `first` on.
    pub(crate) fn fill(
        &mut self,
        (rows, features): (usize, usize),
        write: impl Fn(usize, &mut [f32]) + Sync + Send,
        ctx: Context<'_>,
    ) -> Result<()> {
        self.rows = rows;
        self.by_row.try_resize(rows * features, 0.0)?;
        self.norms.resize(rows, 0.0);
        let lines = self.by_row.chunks_mut((ROWS_PER_TASK * features).max(1));
        let mut parts: Vec<_> = lines.zip(self.norms.chunks_mut(ROWS_PER_TASK)).collect();
        ctx.for_each_chunk(&mut parts, 1, |task, part| {
            let (lines, norms) = &mut part[0];
            write(task * ROWS_PER_TASK, lines);
            for (norm, x) in norms.iter_mut().zip(lines.chunks_exact(features)) {
                *norm = x.iter().map(|v| v * v).sum();
            }
        });
        self.by_feature.try_resize(rows * features, 0.0)?;
        let by_row = &self.by_row;
        ctx.for_each_chunk(&mut self.by_feature, (FEATURES_PER_TASK * rows).max(1), |task, out| {
            transpose(by_row, features, task * FEATURES_PER_TASK, out, rows);
        });
        Ok(())
    }
}

/// Writes the features from `first` on of rows (n, features) to `out`, feature after feature, one square at a time so that
/// both sides stay in the cache.
fn transpose(by_row: &[f32], features: usize, first: usize, out: &mut [f32], n: usize) {
    for i in (0..n).step_by(SQUARE) {
        for (j, squares) in out.chunks_mut(SQUARE * n).enumerate() {
            let j = first + j * SQUARE;
            for row in i..n.min(i + SQUARE) {
                let line = &by_row[row * features + j..];
                for (out, value) in squares.chunks_exact_mut(n).zip(line) {
                    out[row] = *value;
                }
            }
        }
    }
}
