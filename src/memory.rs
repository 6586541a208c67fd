//! Large stretches of numbers that take memory only where they are touched, in huge pages where the system has them.
//!
//! The first touch of gigabytes of small pages was measured to cost as much as computing what is written to them. So
//! stretches are mapped once, in huge pages, and used again: see [`Arenas`].

use std::sync::Mutex;

/// Zeroed numbers.
pub(crate) enum Arena<T = f32> {
    /// An anonymous mapping.
    Mapped(memmap2::MmapMut),
    /// Where the system refuses a mapping, and for nothing at all.
    Plain(Vec<T>),
}

impl<T: bytemuck::Pod> Arena<T> {
    /// `len` zeros, not yet touched.
    pub(crate) fn new(len: usize) -> Self {
        match memmap2::MmapMut::map_anon(len * size_of::<T>()) {
            Ok(map) => {
                // A hint: without huge pages all is slower, not wrong.
                #[cfg(target_os = "linux")]
                let _ = map.advise(memmap2::Advice::HugePage);
                Self::Mapped(map)
            }
            Err(_) => Self::Plain(vec![T::zeroed(); len]),
        }
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
#[derive(Default)]
pub(crate) struct Arenas(Mutex<Vec<Arena>>);

impl Arenas {
    /// An arena of at least `len` numbers, of any values.
    pub(crate) fn take(&self, len: usize) -> Arena {
        let mut free = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fitting = (0..free.len())
            .filter(|&i| free[i].values().len() >= len)
            .min_by_key(|&i| free[i].values().len());
        if let Some(i) = fitting {
            free.swap_remove(i)
        } else {
            // The smaller ones will not be wanted again by a block that grew.
            free.pop();
            drop(free);
            Arena::new(len)
        }
    }

    /// Gives an arena back.
    pub(crate) fn put(&self, arena: Arena) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(arena);
    }
}
