//! A cell whose value is computed at its first use, by one thread while others wait for it.
//!
//! A thread of a rayon pool takes up other work while it waits for the tasks of a parallel loop. If such work waited for the
//! value that the loop computes, neither would end. So a thread waits only for the value of a thread that cannot need it: it
//! computes no other value itself, and it is not a thread of the same pool. Otherwise it computes the value too, and the first
//! one is kept. Pools that were not built with [`start_handler`] count as the same pool. The cells of one parallel loop must not
//! be those of a loop in another pool.
//!
//! Cost: an atomic read, once there is a value.

use crate::error::Result;
use crate::platform::process_id;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// The pool of threads that were not started by [`start_handler`].
const UNKNOWN_POOL: u64 = 0;

thread_local! {
    static POOL: Cell<u64> = const { Cell::new(UNKNOWN_POOL) };
    /// True while the thread computes the value of a cell.
    static IS_COMPUTING: Cell<bool> = const { Cell::new(false) };
}

/// Returns a start handler for the threads of a new rayon pool, which marks them as threads of this pool.
pub fn start_handler() -> impl Fn(usize) + Send + Sync + 'static {
    static LAST: AtomicU64 = AtomicU64::new(UNKNOWN_POOL);
    let pool = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    move |_| POOL.set(pool)
}

/// A cell that is empty at first.
pub(crate) struct OnceCell<T> {
    value: OnceLock<T>,
    /// The pool and the process of the thread that computes the value, if one does. A child process has no such thread.
    computing: Mutex<Option<(u64, u32)>>,
    ended: Condvar,
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), computing: Mutex::new(None), ended: Condvar::new() }
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        Self { value: value.into(), ..Self::default() }
    }
}

impl<T> OnceCell<T> {
    /// Returns the value, if there is one.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Sets the value of an empty cell; one that has a value keeps it.
    pub(crate) fn set(&self, value: T) {
        self.value.get_or_init(|| value);
    }

    /// Returns the value, if there is one, without the cell.
    pub(crate) fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Returns the value, which `init` computes if the cell is empty.
    ///
    /// # Errors
    /// The errors of `init`, after which the cell is still empty.
    pub(crate) fn get_or_try_init(&self, init: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let mut computing = self.lock();
        if computing.is_some_and(|(_, process)| process != process_id()) {
            *computing = None;
        }
        while let Some((pool, _)) = *computing
            && may_wait_for(pool)
        {
            computing = self.ended.wait(computing).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _computation = computing.is_none().then(|| {
            *computing = Some((POOL.get(), process_id()));
            Computation { cell: self, was_computing: IS_COMPUTING.replace(true) }
        });
        drop(computing);
        init().map(|value| self.value.get_or_init(|| value))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(u64, u32)>> {
        self.computing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether this thread may wait for a value that a thread of a pool computes.
fn may_wait_for(pool: u64) -> bool {
    !IS_COMPUTING.get() && (rayon::current_thread_index().is_none() || POOL.get() != pool)
}

/// The computation of a value, which ends when this is dropped, by an error or a panic too.
struct Computation<'a, T> {
    cell: &'a OnceCell<T>,
    was_computing: bool,
}

impl<T> Drop for Computation<'_, T> {
    fn drop(&mut self) {
        IS_COMPUTING.set(self.was_computing);
        *self.cell.lock() = None;
        self.cell.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use rayon::prelude::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    const THREADS: usize = 4;

    /// Calls `work` on some threads at the same time.
    fn on_threads(work: impl Fn() + Sync) {
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    work();
                });
            }
        });
    }

    #[test]
    fn one_thread_computes_the_value() {
        let (cell, count) = (OnceCell::default(), AtomicUsize::new(0));
        on_threads(|| {
            let value = cell.get_or_try_init(|| {
                std::thread::sleep(Duration::from_millis(20));
                Ok(count.fetch_add(1, Ordering::Relaxed))
            });
            assert_eq!(*value.unwrap(), 0);
        });
        assert_eq!(count.into_inner(), 1);
    }

    #[test]
    fn threads_of_several_pools_compute_it_once() {
        let (cell, count) = (OnceCell::default(), AtomicUsize::new(0));
        on_threads(|| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).start_handler(start_handler());
            pool.build().unwrap().install(|| {
                let sum = || (0..100_u64).into_par_iter().sum();
                let value: Result<&u64> = cell.get_or_try_init(|| {
                    std::thread::sleep(Duration::from_millis(20));
                    count.fetch_add(1, Ordering::Relaxed);
                    Ok(sum())
                });
                assert_eq!(*value.unwrap(), 4950);
            });
        });
        assert_eq!(count.into_inner(), 1);
    }

    #[test]
    fn tasks_of_a_pool_that_computes_the_value_do_not_wait_for_it() {
        for is_known in [true, false] {
            let mut pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS);
            if is_known {
                pool = pool.start_handler(start_handler());
            }
            let sum = || (0..1000_u64).into_par_iter().map(|i| (0..i).sum::<u64>()).sum();
            pool.build().unwrap().install(|| {
                for _ in 0..20 {
                    let cells: [OnceCell<u64>; 2] = Default::default();
                    (0..64).into_par_iter().for_each(|task| {
                        assert_eq!(*cells[task % 2].get_or_try_init(|| Ok(sum())).unwrap(), 166_167_000);
                    });
                }
            });
        }
    }

    #[test]
    fn the_next_thread_computes_it_after_an_error_or_a_panic() {
        let (cell, count) = (OnceCell::<usize>::default(), AtomicUsize::new(0));
        let attempt = || {
            cell.get_or_try_init(|| match count.fetch_add(1, Ordering::Relaxed) {
                0 => Err(Error::param("value", 0, "1")),
                1 => panic!("the second attempt"),
                attempt => Ok(attempt),
            })
            .copied()
        };
        assert!(attempt().is_err());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)).is_err());
        assert_eq!((cell.get(), attempt().unwrap(), cell.get()), (None, 2, Some(&2)));
    }
}
