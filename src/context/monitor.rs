//! Monitors: the hook for progress bars, Ctrl-C, budgets and tests.
//!
//! A monitor receives the progress and answers whether the work shall stop, and for which reason. Monitors wrap each other: a time
//! budget asks the caller's monitor first. The reasons are values of two types, so that work that was interrupted cannot report
//! convergence.

use crate::error::{Error, Result};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Time that [`GracePeriod`] adds to an expired time budget.
const GRACE_PERIOD: Duration = Duration::from_millis(300);

/// The progress of a solver at a tick.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Short noun for the current phase: `"fit"`, `"pursuit"`.
    pub phase: &'static str,
    /// Work done so far, in the phase's own unit (outer rounds, vectors chosen).
    pub done: u64,
    /// Total work if it is known beforehand.
    pub total: Option<u64>,
    /// Optimality gap, or `NaN` if the phase has none.
    pub gap: f64,
    /// Number of steps of the innermost iteration so far (SMO steps), 0 if there are none.
    pub steps: u64,
}

impl Progress {
    /// Describes `done` of `total` units, without a gap or steps.
    pub fn new(phase: &'static str, done: usize, total: usize) -> Self {
        Self { phase, done: done as u64, total: Some(total as u64), gap: f64::NAN, steps: 0 }
    }
}

/// The reason for which a solver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The tolerance was reached.
    Converged,
    /// The iteration budget was spent.
    MaxIterations,
    /// The time budget was spent.
    MaxTime,
    /// The user interrupted.
    Interrupted,
    /// Steps make no numerical progress any more although the tolerance is not reached.
    Stalled,
}

/// The reason for which a monitor stops work. It cannot say that the work has converged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The iteration budget was spent.
    MaxIterations,
    /// The time budget was spent.
    MaxTime,
    /// The user interrupted.
    Interrupted,
}

impl From<Interruption> for StopReason {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::MaxIterations => Self::MaxIterations,
            Interruption::MaxTime => Self::MaxTime,
            Interruption::Interrupted => Self::Interrupted,
        }
    }
}

impl Interruption {
    /// Returns the interruption if the monitor stopped the work, for a caller that keeps the partial result.
    ///
    /// # Errors
    /// Every error other than [`Error::Stopped`](crate::Error::Stopped).
    pub(crate) fn from_result(result: Result<()>) -> Result<Option<Self>> {
        match result {
            Ok(()) => Ok(None),
            Err(Error::Stopped(interruption)) => Ok(Some(interruption)),
            Err(error) => Err(error),
        }
    }
}

impl StopReason {
    /// Returns the interruption if the user or the time budget ended the work.
    pub(crate) fn interruption(self) -> Option<Interruption> {
        match self {
            Self::Interrupted => Some(Interruption::Interrupted),
            Self::MaxTime => Some(Interruption::MaxTime),
            Self::Converged | Self::Stalled | Self::MaxIterations => None,
        }
    }

    /// Returns the name used in certificates and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxIterations => "max_iter",
            Self::MaxTime => "max_time",
            Self::Interrupted => "interrupted",
            Self::Stalled => "stalled",
        }
    }

    /// Returns the reason if the monitor stopped the work, for a caller that keeps the partial result.
    ///
    /// # Errors
    /// Every error other than [`Error::Stopped`](crate::Error::Stopped).
    pub(crate) fn from_result(result: Result<()>) -> Result<Option<Self>> {
        Ok(Interruption::from_result(result)?.map(Self::from))
    }
}

/// The end of a solver: a value, not an error.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// Reason for which the solver ended.
    pub reason: StopReason,
    /// Number of steps of the innermost iteration.
    pub iterations: u64,
    /// Optimality gap at the end, in the solver's own measure.
    pub gap: f64,
}

/// The hook that every long algorithm calls.
///
/// An algorithm ticks at least every few milliseconds of work per thread; several threads may tick at once. If the answer
/// is `Break`, it stops at the next consistent state. A monitor that asked for a stop keeps asking for it: the parts of a
/// parallel computation stop one by one.
pub trait Monitor: Sync {
    /// Receives the progress; `Break` asks the algorithm to stop.
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption>;
}

/// A monitor that ignores the progress and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
        ControlFlow::Continue(())
    }
}

/// Adds an iteration and a time budget to another monitor.
pub struct Budget<'a> {
    inner: &'a dyn Monitor,
    max_iterations: Option<u64>,
    deadline: Option<Instant>,
}

impl<'a> Budget<'a> {
    /// Limits [`Progress::steps`] and the time, which runs from this call.
    pub fn new(inner: &'a dyn Monitor, max_iterations: Option<u64>, max_time: Option<Duration>) -> Self {
        Self { inner, max_iterations, deadline: max_time.and_then(|t| Instant::now().checked_add(t)) }
    }
}

impl Monitor for Budget<'_> {
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption> {
        self.inner.tick(progress)?;
        if self.max_iterations.is_some_and(|max| progress.steps >= max) {
            return ControlFlow::Break(Interruption::MaxIterations);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return ControlFlow::Break(Interruption::MaxTime);
        }
        ControlFlow::Continue(())
    }
}

/// Lets work continue for a short time after its time budget has expired, to make what was computed so far usable.
pub(crate) struct GracePeriod<'a> {
    inner: &'a dyn Monitor,
    end: OnceLock<Instant>,
}

impl<'a> GracePeriod<'a> {
    pub(crate) fn new(inner: &'a dyn Monitor) -> Self {
        Self { inner, end: OnceLock::new() }
    }
}

impl Monitor for GracePeriod<'_> {
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption> {
        let answer = self.inner.tick(progress);
        if answer == ControlFlow::Break(Interruption::MaxTime) {
            let now = Instant::now();
            if now < *self.end.get_or_init(|| now + GRACE_PERIOD) {
                return ControlFlow::Continue(());
            }
        }
        answer
    }
}
