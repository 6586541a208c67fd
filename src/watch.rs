//! Looks at the monitor by the work that was done, so that the time between two looks does not depend on the data: a row
//! can be a few multiplications or the split of a leaf, which is as long as thousands of rows.
//!
//! Work whose parts are of no use ends by [`Error::Cancelled`] wherever it is told to stop. Who can use what there was
//! before it asks [`Reasoned`] why; and where a time budget is over, [`Grace`] leaves a moment to make what was found
//! usable.

use crate::control::{Monitor, Progress, Silent, StopReason};
use crate::error::{Error, Result};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Multiplications between two looks, roughly: a millisecond.
const WORK_PER_LOOK: u64 = 2_000_000;
/// What a row counts at least: it costs more than its multiplications.
const LEAST_OF_A_ROW: u64 = WORK_PER_LOOK / 512;
/// Multiplications that several threads do together before one of them looks: some ten milliseconds.
const STRETCH: u64 = 1 << 27;

/// What a time budget that is over leaves for the coefficients of the vectors chosen so far.
const GRACE: Duration = Duration::from_millis(300);

/// A monitor, and the work since the last look.
pub(crate) struct Watch<'a> {
    monitor: &'a dyn Monitor,
    progress: Progress,
    work: u64,
}

impl<'a> Watch<'a> {
    /// For so many rows, or whatever is counted.
    pub(crate) fn new(monitor: &'a dyn Monitor, phase: &'static str, rows: usize) -> Self {
        Self { monitor, progress: Progress::of(phase, 0, rows), work: 0 }
    }

    /// For work on other threads, which are not to look.
    pub(crate) fn silent() -> Self {
        Self::new(&Silent, "", 0)
    }

    /// The monitor, for work that looks by itself.
    pub(crate) fn monitor(&self) -> &'a dyn Monitor {
        self.monitor
    }

    /// Notes that so many more rows are done.
    pub(crate) fn done(&mut self, rows: usize) {
        self.progress.done += rows as u64;
    }

    /// Before a row that takes about `work` multiplications.
    pub(crate) fn row(&mut self, work: usize) -> Result<()> {
        self.done(1);
        self.spend((work as u64).max(LEAST_OF_A_ROW))
    }

    /// Before about `work` multiplications.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where the monitor stops the work: it has no usable part.
    pub(crate) fn spend(&mut self, work: u64) -> Result<()> {
        if self.look(work).is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// The same for work whose parts are of use.
    pub(crate) fn look(&mut self, work: u64) -> ControlFlow<StopReason> {
        self.work = self.work.saturating_add(work);
        if self.work < WORK_PER_LOOK {
            return ControlFlow::Continue(());
        }
        self.work = 0;
        self.monitor.tick(&self.progress)
    }

    /// Stretches of `count` pieces of work, each of about `work` multiplications, with a look before each stretch.
    pub(crate) fn stretches(
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

/// A monitor that remembers why it asked to stop.
pub(crate) struct Reasoned<'a> {
    inner: &'a dyn Monitor,
    reason: Mutex<Option<StopReason>>,
}

impl<'a> Reasoned<'a> {
    pub(crate) fn new(inner: &'a dyn Monitor) -> Self {
        Self { inner, reason: Mutex::new(None) }
    }

    /// The result of work under this monitor, or why it was cancelled.
    pub(crate) fn unless_stopped<T>(&self, result: Result<T>) -> Result<Result<T, StopReason>> {
        match (result, *self.reason.lock().unwrap_or_else(PoisonError::into_inner)) {
            (Ok(value), _) => Ok(Ok(value)),
            (Err(Error::Cancelled), Some(reason)) => Ok(Err(reason)),
            (Err(error), _) => Err(error),
        }
    }
}

impl Monitor for Reasoned<'_> {
    fn tick(&self, progress: &Progress) -> ControlFlow<StopReason> {
        let answer = self.inner.tick(progress);
        if let ControlFlow::Break(reason) = answer {
            *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        }
        answer
    }
}

/// A monitor that lets work go on for a moment after its time was over.
pub(crate) struct Grace<'a> {
    inner: &'a dyn Monitor,
    end: OnceLock<Instant>,
}

impl<'a> Grace<'a> {
    pub(crate) fn new(inner: &'a dyn Monitor) -> Self {
        Self { inner, end: OnceLock::new() }
    }
}

impl Monitor for Grace<'_> {
    fn tick(&self, progress: &Progress) -> ControlFlow<StopReason> {
        let answer = self.inner.tick(progress);
        let now = Instant::now();
        if answer.is_break() && now < *self.end.get_or_init(|| now + GRACE) {
            return match answer {
                ControlFlow::Break(StopReason::MaxTime) => ControlFlow::Continue(()),
                other => other,
            };
        }
        answer
    }
}
