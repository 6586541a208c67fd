//! Memory for whatever is larger than the rows and vectors themselves: asked for, never taken for granted.
//!
//! A plain `vec![0.0; n * m]` ends the process where the system has no room for it. Buffers that grow like a product
//! of two sizes are therefore made here, and a refusal is an [`Error::Memory`] that says what they were for. Zeros are
//! the system's own, so pages that are never touched cost nothing.
//!
//! A process that keeps a reserve says with [`set_short`] when it has begun to live off it: all that asks here is then
//! refused at once, so that what is left serves the small blocks that cannot ask, and the work ends.
//!
//! `Arena`s are stretches of numbers that are used again, in huge pages where the system has them: the first touch of
//! gigabytes of small pages was measured to cost as much as computing what is written to them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Zeroable;
use ndarray::Array2;

use crate::error::{Error, Result};

static SHORT: AtomicBool = AtomicBool::new(false);

/// Says whether this process lives off a reserve, to be set by its allocator and taken back when the work has ended.
pub fn set_short(is_short: bool) {
    SHORT.store(is_short, Ordering::Relaxed);
}

/// Whether this process lives off a reserve.
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Nothing where memory is short.
fn asked<T>(what: &'static str, len: usize) -> Result<()> {
    if is_short() { Err(refused::<T>(what, len)) } else { Ok(()) }
}

/// `len` zeros, not yet touched; `what` ends the sentence "not enough memory for ...".
pub(crate) fn zeros<T: Zeroable>(what: &'static str, len: usize) -> Result<Vec<T>> {
    asked::<T>(what, len)?;
    bytemuck::try_zeroed_vec(len).map_err(|()| refused::<T>(what, len))
}

/// A matrix of zeros, not yet touched.
pub(crate) fn zero_matrix<T: Zeroable + Clone>(
    what: &'static str,
    (rows, columns): (usize, usize),
) -> Result<Array2<T>> {
    let values = zeros(what, rows.saturating_mul(columns))?;
    Array2::from_shape_vec((rows, columns), values).map_err(|_| refused::<T>(what, usize::MAX))
}

/// `len` copies of a value.
pub(crate) fn filled<T: Clone>(what: &'static str, len: usize, value: T) -> Result<Vec<T>> {
    let mut values = room(what, len)?;
    values.resize(len, value);
    Ok(values)
}

/// An empty vector with room for `len` items.
pub(crate) fn room<T>(what: &'static str, len: usize) -> Result<Vec<T>> {
    asked::<T>(what, len)?;
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| refused::<T>(what, len))?;
    Ok(values)
}

/// Room for `more` items behind those that are there, grown as a vector grows.
pub(crate) fn more_room<T>(what: &'static str, values: &mut Vec<T>, more: usize) -> Result<()> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    asked::<T>(what, values.len().saturating_add(more))?;
    let reserved = values.try_reserve(more).or_else(|_| values.try_reserve_exact(more));
    reserved.map_err(|_| refused::<T>(what, values.len().saturating_add(more)))
}

/// Makes a vector longer by copies of a value, without more room than it needs.
pub(crate) fn extended<T: Clone>(
    what: &'static str,
    values: &mut Vec<T>,
    len: usize,
    value: T,
) -> Result<()> {
    if len > values.capacity() {
        asked::<T>(what, len)?;
        values.try_reserve_exact(len - values.len()).map_err(|_| refused::<T>(what, len))?;
    }
    values.resize(len, value);
    Ok(())
}

/// A copy of a slice.
pub(crate) fn copied<T: Clone>(what: &'static str, values: &[T]) -> Result<Vec<T>> {
    collected(what, values.iter().cloned())
}

/// What an iterator of known length gives.
pub(crate) fn collected<T>(what: &'static str, items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut values = room(what, items.len())?;
    values.extend(items);
    Ok(values)
}

fn refused<T>(what: &'static str, len: usize) -> Error {
    Error::Memory { what, bytes: len.saturating_mul(size_of::<T>()), remedy: "" }
}

/// Zeroed numbers.
pub(crate) enum Arena<T = f32> {
    /// An anonymous mapping.
    Mapped(memmap2::MmapMut),
    /// Where the system refuses a mapping, and for nothing at all.
    Plain(Vec<T>),
}

impl<T: bytemuck::Pod> Arena<T> {
    /// `len` zeros, not yet touched.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn new(what: &'static str, len: usize) -> Result<Self> {
        let Some(bytes) = len.checked_mul(size_of::<T>()) else { return Err(refused::<T>(what, len)) };
        Ok(match memmap2::MmapMut::map_anon(bytes) {
            Ok(map) => {
                // A hint: without huge pages all is slower, not wrong.
                #[cfg(all(target_os = "linux", not(miri)))]
                let _ = map.advise(memmap2::Advice::HugePage);
                Self::Mapped(map)
            }
            Err(_) => Self::Plain(zeros(what, len)?),
        })
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

/// Arenas that were used and can be used again, holding whatever was written last.
pub(crate) struct Arenas<T = f32>(Mutex<Vec<Arena<T>>>);

impl<T> Default for Arenas<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: bytemuck::Pod> Arenas<T> {
    /// An arena of at least `len` numbers, of any values.
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
            // The smaller ones will not be wanted again by a block that grew.
            free.pop();
            drop(free);
            Arena::new(what, len)
        }
    }

    /// Gives an arena back.
    pub(crate) fn put(&self, arena: Arena<T>) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(arena);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error() {
        let most = isize::MAX as usize;
        for error in [
            zeros::<f64>("a", most).unwrap_err(),
            zeros::<u8>("a", usize::MAX).unwrap_err(),
            zero_matrix::<f32>("a", (1 << 40, 1 << 40)).unwrap_err(),
            filled("a", most / 8, 1.0).unwrap_err(),
            room::<u16>("a", most).unwrap_err(),
            more_room("a", &mut vec![1_u64], most / 8).unwrap_err(),
        ] {
            assert!(
                matches!(error, Error::Memory { what: "a", bytes, remedy: "" } if bytes > 1 << 60),
                "{error}"
            );
        }
    }

    #[test]
    fn what_can_be_had_is_as_asked() {
        assert_eq!(zeros::<u32>("a", 3).unwrap(), [0; 3]);
        assert_eq!(zero_matrix::<f64>("a", (2, 0)).unwrap().dim(), (2, 0));
        assert_eq!(filled("a", 2, 1.5).unwrap(), [1.5; 2]);
        assert_eq!(copied("a", &[1, 2]).unwrap(), [1, 2]);
        assert_eq!(collected("a", (0..4).map(|i| 2 * i)).unwrap(), [0, 2, 4, 6]);
        assert!(room::<u8>("a", 100).unwrap().capacity() >= 100);
    }

    #[test]
    fn a_remedy_is_told_once() {
        let error = zeros::<f64>("the kernel matrix", usize::MAX / 8).unwrap_err();
        let told = error.with_remedy("take fewer rows").with_remedy("buy memory").to_string();
        assert!(told.starts_with("not enough memory for the kernel matrix, which takes "), "{told}");
        assert!(told.ends_with("GB: take fewer rows"), "{told}");
    }

    proptest::proptest! {
        /// Arenas that are out at the same time never share a number, whatever was given back before.
        #[test]
        fn arenas_are_nobody_elses(steps in proptest::collection::vec((proptest::bool::ANY, 0..200_usize), 1..60)) {
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
