//! Allocations that return an error if the system refuses the memory.
//!
//! `vec!`, `collect` and `to_vec` abort the process then. An allocation is therefore made by this module, which returns
//! [`Error::Memory`], if its size is a product of sizes (samples by features, a tile, a vector for each of many outputs or
//! candidates) or comes from a file. Zeroed arrays come from the system's zeroed pages, so pages that are never touched cost
//! nothing.
//!
//! Vectors with one number for each sample, feature or vector are the standard library's. Their operation reserves their
//! memory before it starts ([`reserve`]), and again for each of several machines or folds that run at the same time
//! (`reserve_part`). Small allocations (an error message, a thread, a list with one item per block) have
//! no reservation. So an allocation of this module succeeds only if all reservations and [`HEADROOM`] more bytes are
//! available, which each thread checks after every megabyte that it allocated by this module.
//!
//! `Arena`s are reusable arrays in huge pages, if the system has them: touching gigabytes of small pages for the first time
//! takes as long as computing the kernel values that are written to them.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::Zeroable;
use ndarray::{Array2, ArrayView2};

use crate::error::{Error, Result};

/// Number of bytes of address space that a large allocation leaves for small ones.
pub const HEADROOM: usize = 16 << 20;
/// Number of bytes that a thread allocates between two checks that [`HEADROOM`] is available.
const CHECK_INTERVAL: usize = 1 << 20;
/// Number of bytes that an operation reserves for each of its samples, vectors and features: sixteen numbers in double
/// precision. Few methods have more than ten such vectors at the same time.
pub const BYTES_PER_ITEM: usize = 16 * size_of::<f64>();
/// Minimum number of bytes that an allocation counts as.
const PAGE: usize = 4 << 10;
/// Context reported when the allocation of an array without a description fails.
const ARRAY: &str = "an array of intermediate results";

/// Checks that at least `bytes` more bytes of address space are available, by mapping and unmapping them.
///
/// # Errors
/// [`Error::Memory`].
pub fn check_available(what: &'static str, bytes: usize) -> Result<()> {
    match memmap2::MmapMut::map_anon(bytes) {
        Ok(_) => Ok(()),
        // WebAssembly has no mappings; the allocator alone refuses there.
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(()),
        Err(_) => Err(Error::Memory { what, bytes, remedy: "" }),
    }
}

/// Number of bytes reserved by all operations at work.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Memory for the vectors of an operation, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Reservation(usize);

impl Drop for Reservation {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Reserves `bytes` for the plain allocations of an operation: as long as the reservation lives, each allocation of this
/// module leaves as much memory, in addition to [`HEADROOM`] and to the reservations of other operations.
///
/// # Errors
/// [`Error::Memory`].
pub fn reserve(what: &'static str, bytes: usize) -> Result<Reservation> {
    let mut reserved = RESERVED.load(Ordering::Relaxed);
    loop {
        let all = reserved.saturating_add(bytes);
        check_available(what, HEADROOM.saturating_add(all)).map_err(|_| refused_bytes(what, bytes))?;
        match RESERVED.compare_exchange_weak(reserved, all, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Ok(Reservation(all - reserved)),
            Err(current) => reserved = current,
        }
    }
}

/// Reserves memory for the vectors, of up to `length` numbers each, of one of `parts` of an operation that run at the same time:
/// machines, folds. The operation has reserved the vectors of a single one, and it is checked that this memory is available.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn reserve_part(parts: usize, length: usize) -> Result<Reservation> {
    let bytes = length.saturating_mul(BYTES_PER_ITEM);
    // The headroom covers small parts.
    if parts < 2 || bytes < CHECK_INTERVAL / 16 {
        return check_kept(ARRAY, bytes).map(|()| Reservation(0));
    }
    reserve(ARRAY, bytes)
}

/// Checks that the headroom and all reservations are available.
fn check_reserved() -> Result<()> {
    check_available(ARRAY, HEADROOM.saturating_add(RESERVED.load(Ordering::Relaxed)))
}

thread_local! {
    /// Number of bytes allocated by this thread since the last check.
    static UNCHECKED: Cell<usize> = const { Cell::new(0) };
}

/// Returns an allocation, or frees it if less than [`HEADROOM`] is available.
fn keep<T, A>(what: &'static str, len: usize, allocated: A) -> Result<A> {
    check_kept(what, len.saturating_mul(size_of::<T>())).map(|()| allocated)
}

/// Checks that [`HEADROOM`] is available after an allocation. Small ones are checked together.
fn check_kept(what: &'static str, bytes: usize) -> Result<()> {
    // If memory is short, the system's allocator takes a page for each small block.
    let unchecked = UNCHECKED.get().saturating_add(bytes.max(PAGE));
    if unchecked >= CHECK_INTERVAL {
        // After a refusal every allocation is checked: other parts of the work may still allocate before it ends.
        UNCHECKED.set(unchecked);
        check_reserved().map_err(|_| refused_bytes(what, bytes))?;
        UNCHECKED.set(0);
    } else {
        UNCHECKED.set(unchecked);
    }
    Ok(())
}

fn refused<T>(what: &'static str, len: usize) -> Error {
    refused_bytes(what, len.saturating_mul(size_of::<T>()))
}

#[cold]
fn refused_bytes(what: &'static str, bytes: usize) -> Error {
    Error::Memory { what, bytes, remedy: "" }
}

/// Allocates `len` zeros, not yet touched. `what` ends the sentence "not enough memory for ...".
pub fn try_zeros<T: Zeroable>(what: &'static str, len: usize) -> Result<Vec<T>> {
    let values = bytemuck::try_zeroed_vec(len).map_err(|()| refused::<T>(what, len))?;
    keep::<T, _>(what, len, values)
}

/// Allocates a matrix of zeros, not yet touched.
pub fn try_zero_matrix<T: Zeroable + Clone>(
    what: &'static str,
    (rows, columns): (usize, usize),
) -> Result<Array2<T>> {
    let values = try_zeros(what, rows.saturating_mul(columns))?;
    Array2::from_shape_vec((rows, columns), values).map_err(|_| refused::<T>(what, usize::MAX))
}

/// Fills a matrix with the values of a function of row and column.
pub fn try_matrix<T>(
    (rows, columns): (usize, usize),
    mut value: impl FnMut((usize, usize)) -> T,
) -> Result<Array2<T>> {
    let mut values = try_with_capacity(ARRAY, rows.saturating_mul(columns))?;
    for row in 0..rows {
        values.extend((0..columns).map(|column| value((row, column))));
    }
    Array2::from_shape_vec((rows, columns), values).map_err(|_| refused::<T>(ARRAY, usize::MAX))
}

/// Copies a matrix to row-major order.
pub fn try_to_matrix<T: Copy>(values: ArrayView2<'_, T>) -> Result<Array2<T>> {
    try_matrix(values.dim(), |at| values[at])
}

/// Allocates `len` copies of a value.
pub fn try_filled<T: Clone>(what: &'static str, len: usize, value: T) -> Result<Vec<T>> {
    let mut values = try_with_capacity(what, len)?;
    values.resize(len, value);
    Ok(values)
}

/// Allocates an empty vector with capacity for `len` items.
pub fn try_with_capacity<T>(what: &'static str, len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| refused::<T>(what, len))?;
    keep::<T, _>(what, len, values)
}

/// Allocates empty vectors with capacity for the indices and the values of `len` stored entries.
pub fn try_entries<I, T>(what: &'static str, len: usize) -> Result<(Vec<I>, Vec<T>)> {
    Ok((try_with_capacity(what, len)?, try_with_capacity(what, len)?))
}

/// Reserves capacity for the indices and the values of `more` stored entries, growing as vectors grow.
pub fn try_reserve_entries<I, T>(
    what: &'static str,
    (indices, values): (&mut Vec<I>, &mut Vec<T>),
    more: usize,
) -> Result<()> {
    try_reserve(what, indices, more)?;
    try_reserve(what, values, more)
}

/// Reserves capacity for `more` items, growing as a vector grows.
pub fn try_reserve<T>(what: &'static str, values: &mut Vec<T>, more: usize) -> Result<()> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    let len = values.len().saturating_add(more);
    let reserved = values.try_reserve(more).or_else(|_| values.try_reserve_exact(more));
    reserved.map_err(|_| refused::<T>(what, len))?;
    keep::<T, _>(what, len, ())
}

/// Extends a vector by copies of a value, without excess capacity.
pub fn try_resize<T: Clone>(what: &'static str, values: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    if len > values.capacity() {
        values.try_reserve_exact(len - values.len()).map_err(|_| refused::<T>(what, len))?;
        keep::<T, _>(what, len, ())?;
    }
    values.resize(len, value);
    Ok(())
}

/// Copies a slice.
pub fn try_to_vec<T: Clone>(what: &'static str, values: &[T]) -> Result<Vec<T>> {
    let mut copy = try_with_capacity(what, values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// `vec![value; len]` that returns an error if the memory is refused.
macro_rules! try_vec {
    (0.0; $len:expr) => {
        $crate::memory::zeros_like(0.0, $len)
    };
    (0; $len:expr) => {
        $crate::memory::zeros_like(0, $len)
    };
    (false; $len:expr) => {
        $crate::memory::zeros_like(false, $len)
    };
    ($value:expr; $len:expr) => {
        $crate::memory::copies($value, $len)
    };
}
pub(crate) use try_vec;

/// Allocates `len` zeros of the type of `_zero`; see [`try_vec`].
pub(crate) fn zeros_like<T: Zeroable>(_zero: T, len: usize) -> Result<Vec<T>> {
    try_zeros(ARRAY, len)
}

/// Allocates `len` copies of a value; see [`try_vec`].
pub(crate) fn copies<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    try_filled(ARRAY, len, value)
}

/// `collect` into a vector, or an error if the memory is refused.
pub trait TryCollect: Iterator + Sized {
    /// Collects the items.
    fn try_collect_vec(self) -> Result<Vec<Self::Item>> {
        let mut values = Vec::new();
        values.try_extend(self)?;
        Ok(values)
    }
}

impl<I: Iterator> TryCollect for I {}

/// `to_vec`, or an error if the memory is refused.
pub trait TryToVec<T> {
    /// Copies the items.
    fn try_to_vec(&self) -> Result<Vec<T>>;
}

impl<T: Clone> TryToVec<T> for [T] {
    fn try_to_vec(&self) -> Result<Vec<T>> {
        try_to_vec(ARRAY, self)
    }
}

/// Growth of a vector, or an error if the memory is refused.
pub trait TryGrow<T> {
    /// Appends an item.
    fn try_push(&mut self, item: T) -> Result<()>;

    /// Appends the items of an iterator.
    fn try_extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<()>;

    /// Shortens the vector, or extends it by copies of a value.
    fn try_resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: Clone;
}

impl<T> TryGrow<T> for Vec<T> {
    fn try_push(&mut self, item: T) -> Result<()> {
        try_reserve(ARRAY, self, 1)?;
        self.push(item);
        Ok(())
    }

    fn try_extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<()> {
        let mut items = items.into_iter();
        let (min, max) = items.size_hint();
        try_reserve(ARRAY, self, min)?;
        if max == Some(min) {
            self.extend(items);
            return Ok(());
        }
        while let Some(item) = items.next() {
            if self.len() == self.capacity() {
                try_reserve(ARRAY, self, items.size_hint().0.saturating_add(1))?;
            }
            self.push(item);
        }
        Ok(())
    }

    fn try_resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        try_reserve(ARRAY, self, len.saturating_sub(self.len()))?;
        self.resize(len, value);
        Ok(())
    }
}

/// Appends an item to each of several columns.
pub(crate) fn push_row<T>(columns: &mut [Vec<T>], items: impl IntoIterator<Item = T>) -> Result<()> {
    columns.iter_mut().zip(items).try_for_each(|(column, item)| column.try_push(item))
}

/// An array of numbers, zeros at first.
pub(crate) enum Arena<T = f32> {
    /// An anonymous mapping.
    Mapped(memmap2::MmapMut),
    /// A vector, if the system refuses a mapping or for no numbers.
    Plain(Vec<T>),
}

impl<T: bytemuck::Pod> Arena<T> {
    /// Allocates `len` zeros, not yet touched.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn new(what: &'static str, len: usize) -> Result<Self> {
        let Some(bytes) = len.checked_mul(size_of::<T>()) else { return Err(refused::<T>(what, len)) };
        let arena = match memmap2::MmapMut::map_anon(bytes) {
            Ok(map) => {
                // Only a hint: with small pages, the arena is slower.
                #[cfg(all(target_os = "linux", not(miri)))]
                let _ = map.advise(memmap2::Advice::HugePage);
                Self::Mapped(map)
            }
            Err(_) => Self::Plain(try_zeros(what, len)?),
        };
        keep::<T, _>(what, len, arena)
    }

    pub(crate) fn values(&self) -> &[T] {
        match self {
            Self::Mapped(map) => bytemuck::cast_slice(map),
            Self::Plain(values) => values,
        }
    }

    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        match self {
            Self::Mapped(map) => bytemuck::cast_slice_mut(map),
            Self::Plain(values) => values,
        }
    }
}

/// Arenas for reuse, with unspecified contents.
pub(crate) struct Arenas<T = f32>(Mutex<Vec<Arena<T>>>);

impl<T> Default for Arenas<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: bytemuck::Pod> Arenas<T> {
    /// Takes an arena of at least `len` numbers with unspecified contents.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn take(&self, what: &'static str, len: usize) -> Result<Arena<T>> {
        let mut free = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fitting = (0..free.len())
            .filter(|&i| free[i].values().len() >= len)
            .min_by_key(|&i| free[i].values().len());
        if let Some(i) = fitting {
            Ok(free.swap_remove(i))
        } else {
            // A block that grew does not need smaller arenas again.
            free.pop();
            drop(free);
            Arena::new(what, len)
        }
    }

    /// Returns an arena for reuse.
    pub(crate) fn put(&self, arena: Arena<T>) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(arena);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_memory_is_an_error() {
        let max_length = isize::MAX as usize;
        for error in [
            try_zeros::<f64>("a", max_length).unwrap_err(),
            try_zeros::<u8>("a", usize::MAX).unwrap_err(),
            try_zero_matrix::<f32>("a", (1 << 40, 1 << 40)).unwrap_err(),
            try_filled("a", max_length / 8, 1.0).unwrap_err(),
            try_with_capacity::<u16>("a", max_length).unwrap_err(),
            try_reserve("a", &mut vec![1_u64], max_length / 8).unwrap_err(),
        ] {
            assert!(
                matches!(error, Error::Memory { what: "a", bytes, remedy: "" } if bytes > 1 << 60),
                "{error}"
            );
        }
    }

    #[test]
    fn allocations_have_their_length_and_values() {
        assert_eq!(try_zeros::<u32>("a", 3).unwrap(), [0; 3]);
        assert_eq!(try_zero_matrix::<f64>("a", (2, 0)).unwrap().dim(), (2, 0));
        assert_eq!(try_filled("a", 2, 1.5).unwrap(), [1.5; 2]);
        assert_eq!(try_to_vec("a", &[1, 2]).unwrap(), [1, 2]);
        assert_eq!((0..4).map(|i| 2 * i).try_collect_vec().unwrap(), [0, 2, 4, 6]);
        assert!(try_with_capacity::<u8>("a", 100).unwrap().capacity() >= 100);
    }

    #[test]
    fn a_reservation_that_does_not_fit_is_refused_and_leaves_no_trace() {
        assert!(matches!(reserve("a", usize::MAX), Err(Error::Memory { what: "a", bytes: usize::MAX, .. })));
        let reservation = reserve("a", 1 << 20).unwrap();
        assert!((1 << 20..1 << 40).contains(&RESERVED.load(Ordering::Relaxed)));
        assert_eq!(reservation.0, 1 << 20);
    }

    #[test]
    fn parts_that_run_at_the_same_time_reserve_their_vectors() {
        assert_eq!(reserve_part(1, 1 << 20).unwrap().0, 0);
        assert_eq!(reserve_part(2, 1).unwrap().0, 0);
        assert_eq!(reserve_part(2, 1 << 20).unwrap().0, BYTES_PER_ITEM << 20);
        assert!(matches!(reserve_part(2, usize::MAX), Err(Error::Memory { .. })));
    }

    #[test]
    fn a_remedy_is_reported_once() {
        let error = try_zeros::<f64>("the kernel matrix", usize::MAX / 8).unwrap_err();
        let message = error.with_remedy("take fewer rows").with_remedy("buy memory").to_string();
        assert!(message.starts_with("not enough memory for the kernel matrix, which takes "), "{message}");
        assert!(message.ends_with("GB: take fewer rows"), "{message}");
    }

    proptest::proptest! {
        /// Arenas in use at the same time never share a number, whatever was returned before.
        #[test]
        fn arenas_in_use_are_disjoint(steps in proptest::collection::vec((proptest::bool::ANY, 0..200_usize), 1..60)) {
            let arenas = Arenas::<f32>::default();
            let mut out: Vec<(Arena, usize, f32)> = Vec::new();
            for (number, (takes, size)) in steps.into_iter().enumerate() {
                if takes || out.is_empty() {
                    let mut arena = arenas.take("a test", size).unwrap();
                    proptest::prop_assert!(arena.values().len() >= size);
                    arena.values_mut()[..size].fill(number as f32);
                    out.push((arena, size, number as f32));
                } else {
                    let (arena, ..) = out.swap_remove(size % out.len());
                    arenas.put(arena);
                }
                for (arena, size, mark) in &out {
                    proptest::prop_assert!(arena.values()[..*size].iter().all(|value| value == mark));
                }
            }
        }
    }
}
