//! The execution context that every long computation receives: which threads it may use, and the monitor that follows
//! its progress and may stop it.
//!
//! A [`Context`] is a small `Copy` value, passed down as the last argument and never taken from a global. Results do not
//! depend on it: they have the same bits for any number of threads.
//!
//! There is one way to stop early. When the monitor asks for a stop, the check that sees it returns
//! [`Error::Stopped`] with the [`Interruption`], and `?` passes it up. A function whose partial
//! result is usable catches it in one place (see `StopReason::from_result`) and returns that result with a [`Stop`].

mod monitor;
mod work;

use crate::error::{Error, Result};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use crate::once::start_handler;
pub(crate) use monitor::GracePeriod;
pub use monitor::{Budget, Interruption, Monitor, Progress, Silent, Stop, StopReason};
pub(crate) use work::{InterruptCheck, WorkCounter};

/// Minimum number of arithmetic operations of a loop that other threads are woken for: about ten microseconds.
const MIN_PARALLEL_OPERATIONS: usize = 1 << 15;

/// Maximum number of other threads that should stay awake: each looks for work in the queues of all others.
pub(crate) const MAX_THREADS_AWAKE: usize = 7;

/// Maximum time for which threads without work stay awake.
const MAX_AWAKE: Duration = Duration::from_millis(2);

/// The threads and the monitor of a computation.
///
/// The default uses the rayon pool that the caller has installed and reports no progress.
///
/// ```
/// use std::time::Duration;
/// use svmarrow::context::{Budget, Context, Silent};
///
/// let all_threads = Context::default();
/// let one_thread = all_threads.sequential();
/// let budget = Budget::new(&Silent, None, Some(Duration::from_secs(60)));
/// let one_minute = all_threads.with_monitor(&budget);
/// assert_eq!(one_thread.threads(), 1);
/// assert_eq!(one_minute.threads(), all_threads.threads());
/// ```
#[derive(Clone, Copy)]
pub struct Context<'a> {
    is_parallel: bool,
    monitor: &'a dyn Monitor,
}

impl Default for Context<'_> {
    fn default() -> Self {
        Self { is_parallel: true, monitor: &Silent }
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("is_parallel", &self.is_parallel).finish_non_exhaustive()
    }
}

impl Context<'static> {
    /// One thread and no monitor: the context of short work, and of work inside a parallel loop.
    pub const SEQUENTIAL: Self = Self { is_parallel: false, monitor: &Silent };
}

impl<'a> Context<'a> {
    /// Returns this context restricted to the calling thread.
    #[must_use]
    pub fn sequential(self) -> Self {
        Self { is_parallel: false, ..self }
    }

    /// Returns this context, restricted to the calling thread if the loop has so few operations that waking other threads
    /// would take longer.
    #[must_use]
    pub(crate) fn for_operations(self, operations: usize) -> Self {
        if operations < MIN_PARALLEL_OPERATIONS { self.sequential() } else { self }
    }

    /// Returns this context with another monitor.
    #[must_use]
    pub fn with_monitor(self, monitor: &dyn Monitor) -> Context<'_> {
        Context { is_parallel: self.is_parallel, monitor }
    }

    /// Returns this context without its monitor, for work whose caller reports the progress.
    #[must_use]
    pub fn silent(self) -> Context<'static> {
        Context { is_parallel: self.is_parallel, monitor: &Silent }
    }

    /// Returns the monitor, for another one that wraps it.
    pub fn monitor(self) -> &'a dyn Monitor {
        self.monitor
    }

    /// Reports progress to the monitor.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the monitor asks for a stop.
    pub fn tick(self, progress: &Progress) -> Result<()> {
        match self.monitor.tick(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(reason) => Err(Error::Stopped(reason)),
        }
    }

    /// Reports that `done` of `total` units of a phase are done.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the monitor asks for a stop.
    pub fn check(self, phase: &'static str, done: usize, total: usize) -> Result<()> {
        self.tick(&Progress::new(phase, done, total))
    }

    /// Returns a counter that reports to the monitor each time enough work has been done; `total` is the number of
    /// units of the phase.
    pub(crate) fn counter(self, phase: &'static str, total: usize) -> WorkCounter<'a> {
        WorkCounter::new(self, phase, total)
    }

    /// Returns a check for interruptions of work that visits many elements and has no partial result.
    pub(crate) fn interrupts(self) -> InterruptCheck<'a> {
        InterruptCheck::new(self)
    }

    /// Returns the number of threads that a parallel loop uses.
    pub fn threads(self) -> usize {
        if self.is_parallel { rayon::current_num_threads() } else { 1 }
    }

    /// Calls `work` while up to `count` other threads stay awake, for work whose parallel loops are so short that waking
    /// threads takes as long. They do the work of these loops, and fall asleep after [`MAX_AWAKE`] without any.
    pub(crate) fn with_threads_awake<R>(self, count: usize, work: impl FnOnce() -> R) -> R {
        let count = count.min(self.threads() - 1);
        if count == 0 {
            return work();
        }
        let is_done = AtomicBool::new(false);
        rayon::in_place_scope(|scope| {
            for _ in 0..count {
                scope.spawn(|_| {
                    let mut last = Instant::now();
                    while !is_done.load(Ordering::Acquire) && last.elapsed() < MAX_AWAKE {
                        if rayon::yield_now() == Some(rayon::Yield::Executed) {
                            last = Instant::now();
                        } else {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let result = work();
            is_done.store(true, Ordering::Release);
            result
        })
    }

    /// Calls `work(i)` for every `i < n`, in any order.
    pub fn for_each(self, n: usize, work: impl Fn(usize) + Sync + Send) {
        if self.is_parallel && n > 1 {
            parallel_for_each(n, &work);
        } else {
            (0..n).for_each(work);
        }
    }

    /// Calls `work(i, chunk)` for consecutive chunks of `data` of length `size`, in any order.
    pub fn for_each_chunk<T: Send>(
        self,
        data: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync + Send,
    ) {
        if self.is_parallel && data.len() > size {
            parallel_for_each_chunk(data, size, &work);
        } else {
            data.chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk));
        }
    }

    /// Calls fallible `work(i, chunk)` for consecutive chunks of `data` of length `size`, in any order. After an error no
    /// further chunk is started.
    ///
    /// # Errors
    /// One of the errors of `work`.
    pub fn try_for_each_chunk<T: Send>(
        self,
        data: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let failure = Mutex::new(None);
        let has_failed = AtomicBool::new(false);
        self.for_each_chunk(data, size, |i, chunk| {
            if has_failed.load(Ordering::Relaxed) {
                return;
            }
            if let Err(error) = work(i, chunk) {
                has_failed.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Returns the combination of `work(range)` over consecutive ranges of 0..n of length `size`; `None` if n is 0.
    /// Results are combined in a fixed tree, so sums have the same bits for any number of threads.
    pub(crate) fn reduce<R: Send>(
        self,
        n: usize,
        size: usize,
        work: impl Fn(Range<usize>) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Option<R> {
        let work = |task: usize| work(task * size..n.min((task + 1) * size));
        (n > 0).then(|| self.reduce_tasks(0..n.div_ceil(size), &work, &combine))
    }

    fn reduce_tasks<R: Send>(
        self,
        tasks: Range<usize>,
        work: &(dyn Fn(usize) -> R + Sync),
        combine: &(dyn Fn(R, R) -> R + Sync),
    ) -> R {
        if tasks.len() == 1 {
            return work(tasks.start);
        }
        let middle = tasks.start + tasks.len() / 2;
        let first = || self.reduce_tasks(tasks.start..middle, work, combine);
        let second = || self.reduce_tasks(middle..tasks.end, work, combine);
        let (first, second) = if self.is_parallel { rayon::join(first, second) } else { (first(), second()) };
        combine(first, second)
    }

    /// Returns the results of two pieces of work, which may be done at the same time.
    pub(crate) fn join<A: Send, B: Send>(
        self,
        first: impl FnOnce() -> A + Send,
        second: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        if self.is_parallel { rayon::join(first, second) } else { (first(), second()) }
    }

    /// Returns `work(i)` for every `i < n`, in order.
    pub fn map<R: Send>(self, n: usize, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
        if !self.is_parallel || n <= 1 {
            return (0..n).map(work).collect();
        }
        let results = (0..n).map(|_| Mutex::new(None)).collect::<Vec<_>>();
        parallel_for_each(n, &|i| {
            let result = work(i);
            *results[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        let results =
            results.into_iter().map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
        results.flatten().collect()
    }

    /// Returns the results of fallible `work(i)` for every `i < n`, in order.
    ///
    /// # Errors
    /// The first of the errors of `work`, [`Error::Memory`].
    pub fn try_map<R: Send>(
        self,
        n: usize,
        work: impl Fn(usize) -> Result<R> + Sync + Send,
    ) -> Result<Vec<R>> {
        self.map(n, work).into_iter().collect()
    }
}

/// Calls `work(i)` for every `i < n` on the threads of the pool. The calls are dynamic, so that the compiler makes one
/// parallel loop rather than one for each of the closures.
fn parallel_for_each(n: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().with_max_len(1).for_each(work);
}

/// Calls `work(i, chunk)` for consecutive chunks of length `size` on the threads of the pool, dynamically as above.
fn parallel_for_each_chunk<T: Send>(data: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    data.par_chunks_mut(size).with_max_len(1).enumerate().for_each(|(i, chunk)| work(i, chunk));
}

#[cfg(test)]
mod tests {
    use super::Context;

    #[test]
    fn threads_that_stay_awake_do_the_work_of_inner_loops() {
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let ctx = Context::default();
            let sums = pool.install(|| {
                ctx.with_threads_awake(3, || {
                    let mut sums = vec![0; 1000];
                    ctx.for_each_chunk(&mut sums, 10, |task, sums| sums.fill(task));
                    sums
                })
            });
            assert_eq!(sums, (0..1000).map(|i| i / 10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_reduction_has_the_same_bits_for_any_number_of_threads() {
        let terms: Vec<f64> = (1..10_001).map(|i| 1.0 / f64::from(i)).collect();
        let sum = |ctx: Context<'_>, size: usize| {
            ctx.reduce(terms.len(), size, |range| terms[range].iter().sum::<f64>(), |a, b| a + b).unwrap()
        };
        for size in [1, 7, 1000, 20_000] {
            let expected = sum(Context::SEQUENTIAL, size);
            assert!((expected - 9.787_606_036_044_348).abs() < 1e-12);
            for threads in [1, 2, 3, 8] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let actual = pool.install(|| sum(Context::default(), size));
                assert_eq!(actual.to_bits(), expected.to_bits(), "{threads} threads, tasks of {size}");
            }
        }
        assert_eq!(Context::default().reduce(0, 4, |_| 1, |a: i32, b| a + b), None);
    }
}
