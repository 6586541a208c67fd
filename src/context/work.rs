//! Checks counted by work, so that the time between two of them does not depend on the data: a row can be a few
//! multiplications or the split of a leaf, which takes as long as thousands of rows.
//!
//! Work without a partial result, as packing rows, checks for interruptions alone: other reasons to stop are left to the solver,
//! which has a result then.

use super::{Context, Interruption, Progress};
use crate::error::{Error, Result};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Approximate number of multiplications between two checks: a millisecond.
const WORK_PER_CHECK: u64 = 2_000_000;
/// Minimum work counted for a row, which costs more than its multiplications.
const MIN_WORK_PER_ROW: u64 = WORK_PER_CHECK / 512;
/// Number of elements between two checks for interruptions: at most about a tenth of a second.
const ELEMENTS_PER_CHECK: usize = 1 << 25;
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

    /// Returns a counter of the same phase for another thread.
    pub(crate) fn fork(&self) -> Self {
        Self { ctx: self.ctx, progress: self.progress, work: 0 }
    }

    /// Adds the work that earlier tasks have left unchecked to this counter, which belongs to a task: many small tasks are
    /// checked as often as a large one.
    pub(crate) fn take_over(&mut self, unchecked: &AtomicU64) {
        self.work = self.work.saturating_add(unchecked.swap(0, Ordering::Relaxed));
    }

    /// Leaves the work since the last check to later tasks.
    pub(crate) fn leave(self, unchecked: &AtomicU64) {
        unchecked.fetch_add(self.work, Ordering::Relaxed);
    }

    /// Sets the number of rows that all threads have done.
    pub(crate) fn set_rows(&mut self, rows: u64) {
        self.progress.done = rows;
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

/// A context and the elements that any number of threads have visited, for work without a partial result.
pub(crate) struct InterruptCheck<'a> {
    ctx: Context<'a>,
    elements: AtomicUsize,
    is_interrupted: AtomicBool,
}

impl<'a> InterruptCheck<'a> {
    /// Counts from zero.
    pub(super) fn new(ctx: Context<'a>) -> Self {
        Self { ctx, elements: AtomicUsize::new(0), is_interrupted: AtomicBool::new(false) }
    }

    /// Counts elements before they are visited, and asks the monitor from time to time.
    ///
    /// # Errors
    /// [`Error::Stopped`] after the user has interrupted.
    pub(crate) fn charge(&self, elements: usize) -> Result<()> {
        let before = self.elements.fetch_add(elements, Ordering::Relaxed);
        let is_due = before / ELEMENTS_PER_CHECK != before.wrapping_add(elements) / ELEMENTS_PER_CHECK;
        if is_due {
            let answer = self.ctx.monitor().tick(&Progress::new("prepare", 0, 0));
            if answer == ControlFlow::Break(Interruption::Interrupted) {
                self.is_interrupted.store(true, Ordering::Relaxed);
            }
        }
        self.check()
    }

    /// Returns the error of an interruption that was found before.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_interrupted.load(Ordering::Relaxed) {
            return Err(Error::Stopped(Interruption::Interrupted));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Monitor;

    /// Asks for the same stop at each tick, and counts the ticks.
    struct Asking(Interruption, AtomicUsize);

    impl Monitor for Asking {
        fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
            self.1.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Break(self.0)
        }
    }

    #[test]
    fn only_an_interruption_ends_work_without_a_result() {
        for (reason, ends) in [
            (Interruption::Interrupted, true),
            (Interruption::MaxTime, false),
            (Interruption::MaxIterations, false),
        ] {
            let monitor = Asking(reason, AtomicUsize::new(0));
            let interrupts = Context::SEQUENTIAL.with_monitor(&monitor).interrupts();
            // Short work is not checked.
            assert!(interrupts.charge(ELEMENTS_PER_CHECK - 1).is_ok());
            assert_eq!(monitor.1.load(Ordering::Relaxed), 0);
            assert_eq!(interrupts.charge(1).is_err(), ends);
            assert_eq!(interrupts.check().is_err(), ends);
            assert_eq!(interrupts.charge(5).is_err(), ends);
            assert_eq!(monitor.1.load(Ordering::Relaxed), 1);
        }
    }
}
