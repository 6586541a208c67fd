//! A reserve of address space: memory that runs short ends in an exception, not in an abort.
//!
//! Buffers that grow like a product of sizes are asked for in the core, and a refusal is an error. But a Rust program
//! ends itself when the system refuses any other allocation, however small. So this process keeps two pieces of memory
//! aside, mapped and never touched, which costs address space alone:
//!
//! - [`HEAP`] bytes that serve the small requests which the system refuses. The first of them sets a mark: the core
//!   then refuses what asks, the monitor stops the work at its next look, and it ends in a `MemoryError`. They are
//!   served from here, not given back to the system: where memory is short, glibc takes a whole page for each small
//!   block of a thread. What is still alive in a heap may be part of a model; so a new one is made where none is half
//!   free.
//! - [`PYTHON`] bytes for the interpreter, given back to the system before the exception is made, or where the heap is
//!   used up. The gate keeps them aside again before the next piece of work.
//!
//! Invariant: nothing is allocated while a lock is held.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linked_list_allocator::Heap;
use memmap2::MmapMut;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use svmarrow::memory::{is_short, set_short};

/// Bytes kept for small requests.
const HEAP: usize = 12 << 20;
/// Bytes kept for the interpreter.
const PYTHON: usize = 4 << 20;
/// Bytes up to which a request counts as small, so that many of them fit.
const SMALL: usize = 1 << 20;

/// Heaps there may be.
const HEAPS: usize = 8;

/// Where a heap begins, never moved once it is there; 0 before.
struct Room {
    start: AtomicUsize,
    heap: Mutex<Heap>,
}

/// Made in this order.
static ROOMS: [Room; HEAPS] =
    [const { Room { start: AtomicUsize::new(0), heap: Mutex::new(Heap::empty()) } }; HEAPS];
static KEPT: Mutex<Option<MmapMut>> = Mutex::new(None);

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the reserve aside, if it is not.
///
/// # Errors
/// `MemoryError` where there is no room for it.
pub(crate) fn fill() -> PyResult<()> {
    let is_full = ROOMS.iter().any(Room::is_half_free) && {
        let mut kept = lock(&KEPT);
        if kept.is_none() {
            *kept = MmapMut::map_anon(PYTHON).ok();
        }
        kept.is_some()
    };
    set_short(false);
    if is_full { Ok(()) } else { Err(error()) }
}

/// After work that lived off the reserve: what it has freed is the system's again, for maps and threads' stacks.
pub(crate) fn recover() {
    if !is_short() {
        return;
    }
    set_short(false);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointer, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

impl Room {
    /// Whether half of the heap is free; makes it where there is none.
    fn is_half_free(&self) -> bool {
        let mut heap = lock(&self.heap);
        if heap.size() == 0
            && let Ok(mut map) = MmapMut::map_anon(HEAP)
        {
            // SAFETY: the map is nobody else's, and as it is never dropped it stays for ever.
            unsafe { heap.init(map.as_mut_ptr(), HEAP) };
            self.start.store(map.as_ptr().addr(), Ordering::Relaxed);
            std::mem::forget(map);
        }
        heap.free() > HEAP / 2
    }
}

/// The exception that ends work for which memory ran short.
pub(crate) fn error() -> PyErr {
    give_back();
    PyMemoryError::new_err("memory ran short: less than 16 MB are left to this process")
}

/// Gives the interpreter's part back to the system.
fn give_back() {
    drop(lock(&KEPT).take());
}

/// The system's allocator, with the reserve behind it.
struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

/// A block of a heap; null where there is none, or for what is not small.
fn served(layout: Layout) -> *mut u8 {
    if layout.size() > SMALL {
        return ptr::null_mut();
    }
    set_short(true);
    let block = ROOMS.iter().find_map(|room| lock(&room.heap).allocate_first_fit(layout).ok());
    block.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// The room that a block is in, if it is not the system's.
fn room_of(block: *mut u8) -> Option<&'static Room> {
    let starts = ROOMS.iter().map(|room| (room, room.start.load(Ordering::Relaxed)));
    let mut made = starts.take_while(|&(_, start)| start != 0);
    made.find(|&(_, start)| block.addr().wrapping_sub(start) < HEAP).map(|(room, _)| room)
}

/// What the system gives, else a heap, else what the system gives once the interpreter's part is its own.
fn obtained(layout: Layout, ask: impl Fn() -> *mut u8) -> *mut u8 {
    let mut block = ask();
    if block.is_null() {
        block = served(layout);
    }
    if block.is_null() && layout.size() <= SMALL {
        give_back();
        block = ask();
    }
    block
}

// SAFETY: a block is the system's or a heap's, by their guarantees of its size and alignment; its address tells
// which, and it goes back to where it came from.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout`.
        obtained(layout, || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout`.
        let block = obtained(layout, || unsafe { System.alloc_zeroed(layout) });
        if room_of(block).is_some() {
            // SAFETY: a new block of so many bytes, which may have been another one before.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if room_of(block).is_none() {
            // SAFETY: the caller's promise; a refused request leaves the old block as it was.
            let moved = unsafe { System.realloc(block, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises that `size` is possible with this alignment.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks are alive, apart, and at least so long; the old one is the caller's no more.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match room_of(block).zip(NonNull::new(block)) {
            // SAFETY: this heap gave the block for this layout.
            Some((room, block)) => unsafe { lock(&room.heap).deallocate(block, layout) },
            // SAFETY: the block came from the system's allocator.
            None => unsafe { System.dealloc(block, layout) },
        }
    }
}
