//! A reserve of address space: memory that runs short ends in an exception, not in an abort.
//!
//! Buffers that grow like a product of sizes are asked for in the core, and a refusal is an error. But a Rust program
//! ends itself when the system refuses any other allocation, however small. So this process keeps [`RESERVE`] bytes
//! aside, mapped and never touched, which costs address space alone. When the system refuses a small allocation, the
//! reserve is given back to it and the allocation tried again; the monitor then asks the work to stop at its next look,
//! and it ends in a `MemoryError`. The gate fills the reserve again before the next piece of work.
//!
//! Invariant: nothing is allocated while the lock is held.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use memmap2::MmapMut;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Bytes kept aside.
const RESERVE: usize = 16 << 20;
/// Bytes up to which an allocation counts as small: a sixteenth, so that many of them fit.
const SMALL: usize = RESERVE / 16;

static KEPT: Mutex<Option<MmapMut>> = Mutex::new(None);
static SHORT: AtomicBool = AtomicBool::new(false);

/// Keeps the reserve aside, if it is not.
///
/// # Errors
/// `MemoryError` where there is no room even for it.
pub(crate) fn fill() -> PyResult<()> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_none() {
        *kept = MmapMut::map_anon(RESERVE).ok();
    }
    let is_short = kept.is_none();
    SHORT.store(is_short, Ordering::Relaxed);
    if is_short { Err(error()) } else { Ok(()) }
}

/// Whether the reserve had to be given back since it was filled.
pub(crate) fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// The exception that ends work for which memory ran short.
pub(crate) fn error() -> PyErr {
    PyMemoryError::new_err("memory ran short: less than 16 MB are left to this process")
}

/// Gives the reserve back to the system; where another thread is about to do so, waits for it.
fn open() {
    SHORT.store(true, Ordering::Relaxed);
    drop(KEPT.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// The system's allocator, with the reserve behind it.
struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

/// What `ask` gives, asked a second time without the reserve where the first answer to a small request is no.
fn twice(size: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
    let first = ask();
    if first.is_null() && size <= SMALL {
        open();
        return ask();
    }
    first
}

// SAFETY: every request is passed on to the system's allocator as it came, at most twice, the second time only after
// the first was refused, so its guarantees are this one's.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout`.
        twice(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout`.
        twice(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise; a refused request leaves the old block as it was.
        twice(size, || unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the block came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}
