//! The one gate out of the interpreter.
//!
//! Long work runs on a thread of its own, which installs a rayon pool of `n_jobs` threads, made for this call and
//! gone after it. The calling thread waits without the interpreter lock; ten times a second it takes the lock to
//! look for signals and to tell the progress. An exception there (Ctrl-C, or one raised by the progress callback)
//! makes the monitor ask the work to stop, and is raised once the work has let go of the caller's buffers. A
//! callback that answers true asks for the same stop, and nothing is raised: what there is by then is the result.
//!
//! Short work skips all this: a thread costs more than it. Tiny work does not even release the lock. Where work is
//! short by all that is known beforehand but may turn out long (a fit whose steps do not end), it stays on the calling
//! thread, and the monitor takes the lock for the same looks.
//!
//! A Python function that a fit calls may call this gate again, on a thread of the fit. Python delivers signals to
//! the main thread alone, so the threads of a call know whether an exception of Python has ended it: the inner call then ends
//! with a KeyboardInterrupt, which the outer call replaces by that exception.
//!
//! A call reserves the memory of its vectors before the work starts ([`reserve_for`]): the work allocates them by the
//! standard library, which ends the process if the system refuses them.
//!
//! Invariant: no panic passes this gate, and no other file detaches from the interpreter (a test reads the files).

use std::any::Any;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError};
use pyo3::prelude::*;
use svmarrow::Error;
use svmarrow::context::{Budget, Context, Interruption, Monitor, Progress, start_handler};
use svmarrow::data::Rows;
use svmarrow::error::Result;
use svmarrow::memory::{BYTES_PER_ITEM, HEADROOM, Reservation, check_available, reserve};

use crate::error::{internal, to_python};

/// Time between two looks at the interpreter.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of the stack of a thread.
const STACK_BYTES: usize = 2 << 20;
/// Multiplications below which work is done on the calling thread: about a millisecond.
const MAX_CALLER_COST: u64 = 2_000_000;
/// Multiplications of kernel values below which a fit is done on the calling thread: up to 1,100 rows of few columns, where
/// starting and waking threads takes longer than two of them save.
const MAX_CALLER_FIT_COST: u64 = 10_000_000;
/// Multiplications below which the lock is kept: as long as it takes to hand the lock over and back.
const MAX_ATTACHED_COST: u64 = 100_000;

/// Nothing, or the panic of the work.
type Outcome = std::result::Result<(), Box<dyn Any + Send>>;

/// Work that keeps its result itself, so that what follows is compiled once and not for each kind of work.
type Task<'a> = &'a mut (dyn FnMut(Context<'_>) + Send);

/// Bytes that a prediction reserves for each of its rows, vectors and columns.
const PREDICTION_BYTES_PER_ITEM: usize = 4 * size_of::<f64>();

/// The cost of work: its time, and the memory of its vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Number of multiplications; if it is unknown, the work is treated as long.
    multiplications: Option<u64>,
    /// Bytes reserved for vectors with a number for each row, vector or column.
    vector_bytes: usize,
}

impl Cost {
    /// Returns the cost of work of unknown duration with vectors of up to `length` numbers.
    pub(crate) fn unknown(length: usize) -> Self {
        Self { multiplications: None, vector_bytes: length.saturating_mul(BYTES_PER_ITEM) }
    }

    /// Returns the cost of n rows against m vectors of d columns, for work without outputs.
    pub(crate) fn of(rows: usize, vectors: usize, columns: usize) -> Self {
        let length = rows.saturating_add(vectors).saturating_add(columns);
        Self { multiplications: Some(multiplications(rows, vectors, columns)), ..Self::unknown(length) }
    }

    /// Returns the cost of `rows` against m vectors, for work without outputs.
    pub(crate) fn of_rows(rows: &Rows<'_>, vectors: usize) -> Self {
        let length = rows.vector_lengths().saturating_add(vectors);
        let multiplications = multiplications(rows.rows(), vectors, rows.cols());
        Self { multiplications: Some(multiplications), ..Self::unknown(length) }
    }

    /// Returns the cost of m kernel values of each row, of `columns` multiplications each, whose vectors are only over
    /// `rows` and their columns.
    pub(crate) fn of_values(rows: &Rows<'_>, values: usize, columns: usize) -> Self {
        let multiplications = multiplications(rows.rows(), values, columns);
        Self { multiplications: Some(multiplications), ..Self::unknown(rows.vector_lengths()) }
    }

    /// Returns the cost of q outputs of `rows` from m vectors.
    pub(crate) fn of_outputs(rows: &Rows<'_>, vectors: usize, outputs: usize) -> Self {
        let length = rows.vector_lengths().saturating_add(vectors);
        // One output costs hardly more than the kernel value.
        let columns = rows.cols().max(8).saturating_add(outputs.saturating_sub(1));
        Self {
            multiplications: Some(multiplications(rows.rows(), vectors, columns)),
            vector_bytes: length.saturating_mul(PREDICTION_BYTES_PER_ITEM),
        }
    }

    /// Returns the cost of a number of multiplications, whose vectors have up to `length` numbers.
    pub(crate) fn of_work(multiplications: u64, length: usize) -> Self {
        Self { multiplications: Some(multiplications), ..Self::unknown(length) }
    }

    /// Returns whether the work takes fewer multiplications than `limit`.
    fn is_below(self, limit: u64) -> bool {
        self.multiplications.is_some_and(|multiplications| multiplications < limit)
    }
}

/// Returns the number of multiplications of n rows against m vectors of d columns.
fn multiplications(rows: usize, vectors: usize, columns: usize) -> u64 {
    (rows as u64).saturating_mul(vectors as u64).saturating_mul(columns.max(8) as u64)
}

/// The flag of a call that says whether an exception of Python has ended it.
type IsEnded = Arc<AtomicBool>;

thread_local! {
    /// The call that this thread works for.
    static OUTER_CALL: RefCell<Option<IsEnded>> = const { RefCell::new(None) };
}

/// Returns true if the call that this thread works for has been ended by an exception.
fn outer_call_is_ended() -> bool {
    OUTER_CALL.with_borrow(|outer| outer.as_ref().is_some_and(|is_ended| is_ended.load(Ordering::Relaxed)))
}

/// Between the working thread and the waiting one.
struct WorkerMonitor {
    stop: AtomicBool,
    is_ended: IsEnded,
    latest: Mutex<Option<Progress>>,
    outcome: Mutex<Option<Outcome>>,
    finished: Condvar,
}

impl Monitor for WorkerMonitor {
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(*progress);
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(Interruption::Interrupted)
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl WorkerMonitor {
    fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            is_ended: IsEnded::default(),
            latest: Mutex::new(None),
            outcome: Mutex::new(None),
            finished: Condvar::new(),
        }
    }

    fn finish(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.finished.notify_one();
    }

    /// Waits for at most one heartbeat; whether the work has finished.
    fn wait(&self) -> bool {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, _) = self
            .finished
            .wait_timeout_while(outcome, POLL_INTERVAL, |outcome| outcome.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        outcome.is_some()
    }

    /// The progress since the last call.
    fn latest(&self) -> Option<Progress> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Checks signals and reports the progress. Returns true if the callback asks for a stop.
fn poll_python(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    latest: Option<Progress>,
) -> PyResult<bool> {
    py.check_signals()?;
    if outer_call_is_ended() {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    let (Some(callback), Some(p)) = (callback, latest) else { return Ok(false) };
    callback.call1((p.phase, p.done, p.total, p.gap, p.steps))?.is_truthy()
}

/// The monitor of work on the calling thread.
struct CallerMonitor {
    callback: Option<Py<PyAny>>,
    state: Mutex<CallerState>,
}

struct CallerState {
    next_poll: Instant,
    stop: bool,
    raised: Option<PyErr>,
}

impl Monitor for CallerMonitor {
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.stop && Instant::now() >= state.next_poll {
            let answer = Python::attach(|py| {
                poll_python(py, self.callback.as_ref().map(|callback| callback.bind(py)), Some(*progress))
            });
            state.stop = answer.unwrap_or_else(|error| {
                state.raised = Some(error);
                true
            });
            state.next_poll = Instant::now() + POLL_INTERVAL;
        }
        if state.stop { ControlFlow::Break(Interruption::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

/// Runs `work` outside the interpreter on `n_jobs` threads and maps its errors.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    n_jobs: usize,
    cost: Cost,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Context<'_>) -> Result<R> + Send,
) -> PyResult<R> {
    with_result(cost, work, |task| {
        if cost.is_below(MAX_ATTACHED_COST) {
            Ok((caught(task, Context::SEQUENTIAL), None))
        } else if cost.is_below(MAX_CALLER_COST) {
            Ok((detached(py, || caught(task, Context::SEQUENTIAL)), None))
        } else {
            run_on_thread(py, n_jobs, progress, task)
        }
    })
    .and_then(|(result, raised)| raised.map_or(Ok(result), Err))
}

/// Runs work of unknown duration with a limit of its time in seconds, as [`run`] does; its vectors have up to `length`
/// numbers.
pub(crate) fn run_within<R: Send>(
    py: Python<'_>,
    n_jobs: usize,
    length: usize,
    progress: Option<&Bound<'_, PyAny>>,
    max_time: Option<f64>,
    work: impl FnOnce(Context<'_>) -> Result<R> + Send,
) -> PyResult<R> {
    let max_time = duration(max_time)?;
    run(py, n_jobs, Cost::unknown(length), progress, |ctx| {
        let budget = Budget::new(ctx.monitor(), None, max_time);
        work(ctx.with_monitor(&budget))
    })
}

/// Converts a time limit in seconds.
pub(crate) fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let convert = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| to_python(Error::param("max_time", seconds, "a number of seconds, not negative")))
    };
    seconds.map(convert).transpose()
}

/// Runs work that may be long as [`run`] does, and gives what there is of its result beside the exception that ended it
/// early. Where the work has no result, that exception is the error. `cost` is what it takes where nothing goes wrong.
pub(crate) fn run_and_keep<R: Send>(
    py: Python<'_>,
    n_jobs: usize,
    cost: Cost,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Context<'_>) -> Result<R> + Send,
) -> PyResult<(R, Option<PyErr>)> {
    with_result(cost, work, |task| {
        if cost.is_below(MAX_CALLER_FIT_COST) {
            Ok(run_on_caller(py, progress, task))
        } else {
            run_on_thread(py, n_jobs, progress, task)
        }
    })
}

/// Makes a task of `work`, runs it by `run_task` with its memory reserved, and returns its result. `run_task` returns the
/// exception that ended the task early.
fn with_result<R: Send>(
    cost: Cost,
    work: impl FnOnce(Context<'_>) -> Result<R> + Send,
    run_task: impl FnOnce(Task<'_>) -> PyResult<(Outcome, Option<PyErr>)>,
) -> PyResult<(R, Option<PyErr>)> {
    let _reserved = reserve_for(cost.vector_bytes)?;
    let mut work = Some(work);
    let mut result = None;
    let (outcome, raised) = run_task(&mut |ctx| result = work.take().map(|work| work(ctx)))?;
    match (outcome, result, raised) {
        (Ok(()), Some(Ok(result)), raised) => Ok((result, raised)),
        (_, _, Some(raised)) => Err(raised),
        (Ok(()), Some(Err(error)), None) => Err(to_python(error)),
        (Ok(()), None, None) => Err(internal(&"the work ended without a result")),
        (Err(panic), _, None) => Err(internal(panic.as_ref())),
    }
}

fn caught(task: Task<'_>, ctx: Context<'_>) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| task(ctx)))
}

/// Does work on the calling thread, outside the interpreter, which the monitor enters to look for signals.
fn run_on_caller(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    task: Task<'_>,
) -> (Outcome, Option<PyErr>) {
    let state = CallerState { next_poll: Instant::now() + POLL_INTERVAL, stop: false, raised: None };
    let monitor = CallerMonitor {
        callback: progress.map(|callback| callback.clone().unbind()),
        state: Mutex::new(state),
    };
    let outcome = detached(py, || caught(task, Context::SEQUENTIAL.with_monitor(&monitor)));
    let state = monitor.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    (outcome, state.raised)
}

fn run_on_thread(
    py: Python<'_>,
    n_jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
    task: Task<'_>,
) -> PyResult<(Outcome, Option<PyErr>)> {
    let monitor = WorkerMonitor::new();
    let mut raised = None;
    std::thread::scope(|scope| -> PyResult<()> {
        let started = std::thread::Builder::new()
            .name("svmarrow".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || {
                OUTER_CALL.set(Some(Arc::clone(&monitor.is_ended)));
                monitor.finish(catch_unwind(AssertUnwindSafe(|| in_pool(n_jobs, &monitor, task))));
            });
        started.map_err(|e| PyMemoryError::new_err(format!("no thread could be started: {e}")))?;
        while !detached(py, || monitor.wait()) {
            if raised.is_none() {
                let asked = poll_python(py, progress, monitor.latest()).unwrap_or_else(|error| {
                    raised = Some(error);
                    monitor.is_ended.store(true, Ordering::Relaxed);
                    true
                });
                monitor.stop.fetch_or(asked, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    match monitor.outcome.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(outcome) => Ok((outcome, raised)),
        None => Err(internal(&"the working thread ended without a result")),
    }
}

/// Works on a pool of `n_jobs` threads, or of half as many as long as the system refuses to start them: results do
/// not depend on their number. The threads run before the work allocates anything: a thread that starts while memory is
/// short cannot report an error, it ends the process.
fn in_pool(n_jobs: usize, monitor: &WorkerMonitor, task: Task<'_>) {
    let mut threads = n_jobs;
    while threads > 1 {
        if let Some(pool) = started_pool(threads, &monitor.is_ended) {
            return pool.install(|| task(Context::default().with_monitor(monitor)));
        }
        threads /= 2;
    }
    task(Context::SEQUENTIAL.with_monitor(monitor));
}

/// A pool whose threads have started; none where their stacks would leave less than [`HEADROOM`].
fn started_pool(threads: usize, is_ended: &IsEnded) -> Option<rayon::ThreadPool> {
    check_available("threads", HEADROOM.saturating_add(threads.saturating_mul(STACK_BYTES))).ok()?;
    let (mark_thread, is_ended) = (start_handler(), Arc::clone(is_ended));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES).start_handler(
        move |thread| {
            mark_thread(thread);
            OUTER_CALL.set(Some(Arc::clone(&is_ended)));
        },
    );
    let pool = pool.thread_name(|i| format!("svmarrow-{i}")).build().ok()?;
    pool.broadcast(|_| ());
    Some(pool)
}

/// Reserves memory for the vectors of a call and the stack of its thread; small allocations use the headroom.
fn reserve_for(vector_bytes: usize) -> PyResult<Reservation> {
    reserve("the vectors of a call", vector_bytes.saturating_add(STACK_BYTES)).map_err(to_python)
}

/// Reserves memory for work outside [`run`] whose vectors have up to `length` numbers.
pub(crate) fn reserve_vectors(length: usize) -> PyResult<Reservation> {
    reserve_for(length.saturating_mul(BYTES_PER_ITEM))
}

fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    py.detach(work)
}
