//! Looks at the monitor by the work that was done, so that the time between two looks does not depend on the data: a row
//! can be a few multiplications or the split of a leaf, which is as long as thousands of rows.

use crate::control::{Monitor, Progress, Silent};
use crate::error::{Error, Result};
use std::ops::Range;

/// Multiplications between two looks, roughly: a millisecond.
const WORK_PER_LOOK: u64 = 2_000_000;
/// What a row counts at least: it costs more than its multiplications.
const LEAST_OF_A_ROW: u64 = WORK_PER_LOOK / 512;
/// Multiplications that several threads do together before one of them looks: some ten milliseconds.
const STRETCH: u64 = 1 << 27;

/// The monitor of a stream or a conversion, and the work since the last look.
pub(super) struct Watch<'a> {
    monitor: &'a dyn Monitor,
    progress: Progress,
    work: u64,
}

impl<'a> Watch<'a> {
    /// For so many rows.
    pub(super) fn new(monitor: &'a dyn Monitor, phase: &'static str, rows: usize) -> Self {
        Self { monitor, progress: Progress::of(phase, 0, rows), work: 0 }
    }

    /// For work on other threads, which are not to look.
    pub(super) fn silent() -> Self {
        Self::new(&Silent, "", 0)
    }

    /// The monitor, for work that looks by itself.
    pub(super) fn monitor(&self) -> &'a dyn Monitor {
        self.monitor
    }

    /// Notes that so many more rows are done.
    pub(super) fn done(&mut self, rows: usize) {
        self.progress.done += rows as u64;
    }

    /// Before a row that takes about `work` multiplications.
    pub(super) fn row(&mut self, work: usize) -> Result<()> {
        self.done(1);
        self.spend((work as u64).max(LEAST_OF_A_ROW))
    }

    /// Before about `work` multiplications.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where the monitor stops the work: it has no usable part.
    pub(super) fn spend(&mut self, work: u64) -> Result<()> {
        self.work += work;
        if self.work < WORK_PER_LOOK {
            return Ok(());
        }
        self.work = 0;
        if self.monitor.tick(&self.progress).is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Stretches of `count` pieces of work, each of about `work` multiplications, with a look before each stretch.
    pub(super) fn stretches(
        &mut self,
        count: usize,
        work: u64,
        mut then: impl FnMut(Range<usize>, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let step = usize::try_from(STRETCH / work.max(1)).unwrap_or(usize::MAX).max(1);
        for from in (0..count).step_by(step) {
            let part = from..count.min(from + step);
            self.spend(work.saturating_mul(part.len() as u64))?;
            then(part, self)?;
        }
        Ok(())
    }
}
