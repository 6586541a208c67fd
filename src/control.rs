//! Control over long work: one hook for progress bars, Ctrl-C, time and iteration budgets, and tests.
//!
//! A solver calls [`Monitor::tick`] at least every few milliseconds of work per thread, from one thread only.
//! When the answer is `Break` it stops at the next consistent state and reports a [`Stop`].

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::memory::{TryCollect, TryCollectParallel};

/// What a solver tells at a tick.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// What is being done, as a short noun: `"fit"`, `"pursuit"`.
    pub phase: &'static str,
    /// Work done so far, in the phase's own unit (outer rounds, vectors chosen).
    pub done: u64,
    /// Total work where it is known beforehand.
    pub total: Option<u64>,
    /// Optimality gap, or `NaN` where the phase has none.
    pub gap: f64,
    /// Steps of the innermost iteration so far (pair steps), 0 where there are none.
    pub steps: u64,
}

impl Progress {
    /// So many of a known total are done; no gap, no steps.
    pub fn of(phase: &'static str, done: usize, total: usize) -> Self {
        Self { phase, done: done as u64, total: Some(total as u64), gap: f64::NAN, steps: 0 }
    }
}

/// Why a solver stopped.
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
    /// No step makes numerical progress any more though the tolerance is not reached.
    Stalled,
}

impl StopReason {
    /// The name used in certificates and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxIterations => "max_iter",
            Self::MaxTime => "max_time",
            Self::Interrupted => "interrupted",
            Self::Stalled => "stalled",
        }
    }
}

/// The hook that every long algorithm calls.
pub trait Monitor: Sync {
    /// Sees the progress; `Break` asks the algorithm to stop.
    fn tick(&self, progress: &Progress) -> ControlFlow<StopReason>;
}

impl dyn Monitor + '_ {
    /// Tells that so many of a total are done; `Break` asks to stop.
    pub fn look(&self, phase: &'static str, done: usize, total: usize) -> ControlFlow<StopReason> {
        self.tick(&Progress::of(phase, done, total))
    }

    /// As `look`, for work of which a part is of no use.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where the monitor asks to stop.
    pub fn go_on(&self, phase: &'static str, done: usize, total: usize) -> Result<()> {
        if self.look(phase, done, total).is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Never stops, tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn tick(&self, _: &Progress) -> ControlFlow<StopReason> {
        ControlFlow::Continue(())
    }
}

/// Adds an iteration and a time budget to another monitor.
pub struct Budget<'a> {
    inner: &'a dyn Monitor,
    max_steps: Option<u64>,
    deadline: Option<Instant>,
}

impl<'a> Budget<'a> {
    /// `max_steps` counts [`Progress::steps`]; the time runs from this call.
    pub fn new(inner: &'a dyn Monitor, max_steps: Option<u64>, max_time: Option<Duration>) -> Self {
        Self { inner, max_steps, deadline: max_time.and_then(|t| Instant::now().checked_add(t)) }
    }
}

impl Monitor for Budget<'_> {
    fn tick(&self, progress: &Progress) -> ControlFlow<StopReason> {
        self.inner.tick(progress)?;
        if self.max_steps.is_some_and(|max| progress.steps >= max) {
            return ControlFlow::Break(StopReason::MaxIterations);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return ControlFlow::Break(StopReason::MaxTime);
        }
        ControlFlow::Continue(())
    }
}

/// How work may be spread: passed down as an argument, never taken from a global.
///
/// `Threads` uses the rayon pool that the caller has installed; results do not depend on the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Par {
    /// On the calling thread.
    Sequential,
    /// On the installed rayon pool.
    Threads,
}

impl Par {
    /// How many threads this work would use.
    pub fn threads(self) -> usize {
        match self {
            Self::Sequential => 1,
            Self::Threads => rayon::current_num_threads(),
        }
    }

    /// Calls `work(i)` for every `i < n`, in any order.
    pub fn for_each(self, n: usize, work: impl Fn(usize) + Sync + Send) {
        use rayon::prelude::*;
        match self {
            Self::Threads if n > 1 => (0..n).into_par_iter().with_max_len(1).for_each(work),
            _ => (0..n).for_each(work),
        }
    }

    /// Calls `work(i, chunk)` for consecutive chunks of `data` of length `size`, in any order.
    pub fn for_each_chunk<T: Send>(
        self,
        data: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync + Send,
    ) {
        use rayon::prelude::*;
        match self {
            Self::Threads if data.len() > size => {
                data.par_chunks_mut(size).with_max_len(1).enumerate().for_each(|(i, chunk)| work(i, chunk));
            }
            _ => data.chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk)),
        }
    }

    /// As [`Par::for_each_chunk`] for work that can fail: one of the errors, after which no further chunk is begun.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn try_for_each_chunk<T: Send>(
        self,
        data: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        use rayon::prelude::*;
        match self {
            Self::Threads if data.len() > size => {
                let chunks = data.par_chunks_mut(size).with_max_len(1).enumerate();
                chunks.try_for_each(|(i, chunk)| work(i, chunk))
            }
            _ => data.chunks_mut(size).enumerate().try_for_each(|(i, chunk)| work(i, chunk)),
        }
    }

    /// `work(i)` for every `i < n`, the results in order.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn map<R: Send>(self, n: usize, work: impl Fn(usize) -> R + Sync + Send) -> Result<Vec<R>> {
        use rayon::prelude::*;
        match self {
            Self::Threads if n > 1 => {
                TryCollectParallel::try_collect_vec((0..n).into_par_iter().with_max_len(1).map(work))
            }
            _ => (0..n).map(work).try_collect_vec(),
        }
    }

    /// As [`Par::map`] for work that can fail: the first of the errors.
    ///
    /// # Errors
    /// Those of `work`, [`Error::Memory`].
    pub fn try_map<R: Send>(
        self,
        n: usize,
        work: impl Fn(usize) -> Result<R> + Sync + Send,
    ) -> Result<Vec<R>> {
        self.map(n, work)?.into_iter().try_collect_results()
    }
}

/// How a solver ended: a value, not an error.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// Why it ended.
    pub reason: StopReason,
    /// Steps of the innermost iteration.
    pub iterations: u64,
    /// The optimality gap at the end, in the solver's own measure.
    pub gap: f64,
}
