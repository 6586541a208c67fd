//! A batch of dense rows for gradient steps, in both orders.
//!
//! Invariant: both copies hold the same numbers. Cost: two copies of each number.

use crate::error::Result;
use crate::memory::TryGrow;

/// A batch of dense rows, row-major and feature-major.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    pub(super) rows: usize,
    pub(super) by_row: Vec<f32>,
    pub(super) by_feature: Vec<f32>,
    pub(super) norms: Vec<f32>,
}

impl Batch {
    /// Copies n rows of d numbers.
    pub(crate) fn fill(&mut self, by_row: &[f32], features: usize) -> Result<()> {
        self.rows = by_row.len() / features.max(1);
        self.by_row.clear();
        self.by_row.try_extend(by_row.iter().copied())?;
        transpose(by_row, self.rows, features, &mut self.by_feature)?;
        self.norms.clear();
        self.norms
            .try_extend(by_row.chunks_exact(features.max(1)).map(|x| x.iter().map(|v| v * v).sum::<f32>()))
    }
}

/// Transposes (rows, columns) to (columns, rows), one square at a time so that both sides stay in the cache.
fn transpose(source: &[f32], rows: usize, columns: usize, out: &mut Vec<f32>) -> Result<()> {
    const SQUARE: usize = 16;
    out.try_resize(rows * columns, 0.0)?;
    for i in (0..rows).step_by(SQUARE) {
        for j in (0..columns).step_by(SQUARE) {
            for row in i..rows.min(i + SQUARE) {
                for column in j..columns.min(j + SQUARE) {
                    out[column * rows + row] = source[row * columns + column];
                }
            }
        }
    }
    Ok(())
}
