//! Checks counted by work, so that the time between two of them does not depend on the data: a row can be a few
//! multiplications or the split of a leaf, which takes as long as thousands of rows.

use super::{Context, Progress};
use crate::error::Result;
use std::ops::Range;

/// Approximate number of multiplications between two checks: a millisecond.
const WORK_PER_CHECK: u64 = 2_000_000;
/// Minimum work counted for a row, which costs more than its multiplications.
const MIN_WORK_PER_ROW: u64 = WORK_PER_CHECK / 512;
/// Number of multiplications of a batch, which several threads compute between two checks: about ten milliseconds.
const WORK_PER_BATCH: u64 = 1 << 27;

/// A context and the work since its last check.
pub(crate) struct WorkCounter<'a> {
    ctx: Context<'a>,
    progress: Progress,
    work: u64,
}

impl<'a> WorkCounter<'a> {
    /// Counts the work of a phase of `total` rows or other units.
    pub(super) fn new(ctx: Context<'a>, phase: &'static str, total: usize) -> Self {
        Self { ctx, progress: Progress::new(phase, 0, total), work: 0 }
    }

    /// Returns the context, for work that checks by itself.
    pub(crate) fn context(&self) -> Context<'a> {
        self.ctx
    }

    /// Adds `rows` to the progress.
    pub(crate) fn advance(&mut self, rows: usize) {
        self.progress.done += rows as u64;
    }

    /// Charges a row of about `work` multiplications, before it is computed.
    ///
    /// # Errors
    /// The errors of [`charge`](Self::charge).
    pub(crate) fn charge_row(&mut self, work: usize) -> Result<()> {
        self.advance(1);
        self.charge((work as u64).max(MIN_WORK_PER_ROW))
    }

    /// Charges about `work` multiplications, before they are computed.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) if the monitor asks for a stop.
    pub(crate) fn charge(&mut self, work: u64) -> Result<()> {
        self.work = self.work.saturating_add(work);
        if self.work < WORK_PER_CHECK {
            return Ok(());
        }
        self.work = 0;
        self.ctx.tick(&self.progress)
    }

    /// Calls `compute` for consecutive batches of `count` items of about `work` multiplications each, with a check before
    /// each batch.
    ///
    /// # Errors
    /// The errors of [`charge`](Self::charge) and of `compute`.
    pub(crate) fn for_each_batch(
        &mut self,
        count: usize,
        work: u64,
        mut compute: impl FnMut(Range<usize>, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let size = usize::try_from(WORK_PER_BATCH / work.max(1)).unwrap_or(usize::MAX).max(1);
        for first in (0..count).step_by(size) {
            let batch = first..count.min(first + size);
            self.charge(work.saturating_mul(batch.len() as u64))?;
            compute(batch, self)?;
        }
        Ok(())
    }
}
