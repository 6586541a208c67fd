//! Least-recently-used cache of kernel rows in one arena.
//!
//! Invariant: a row is in at most one slot; the slots in use form one list from the most to the least recently used.
//! Cost: reading a row and evicting one are O(1). The missing rows of a request are computed in one batch, directly in
//! their slots. The arena is reserved at once, but the system provides pages only as they are touched, so a large
//! budget by itself costs nothing.

use crate::error::Result;
use crate::memory::Arena;

/// The slot of rows that are not cached, and the row of free slots.
const NONE: u32 = u32::MAX;
/// The end of the list, before the newest and after the oldest slot, which are counted from 1.
const END: u32 = 0;

/// Cached rows of one length under a budget of bytes.
pub(crate) struct RowCache<T> {
    len: usize,
    capacity: usize,
    arena: Arena<T>,
    slot_of: Vec<u32>,
    row_of: Vec<u32>,
    /// The list of slots is a circle through [`END`], whose neighbors are the oldest and the newest slot.
    newer: Vec<u32>,
    older: Vec<u32>,
    /// Number of requested rows that were cached.
    pub(crate) hits: u64,
    /// Number of requested rows that were missing.
    pub(crate) misses: u64,
}

impl<T: bytemuck::Pod> RowCache<T> {
    /// Creates a cache for rows of `len` values, of which there are `rows`. It holds at least two rows, whatever the budget, and
    /// fewer than the budget allows if the system refuses the memory, but not fewer than `max_request`, the maximum number of
    /// rows of a request: results may not depend on how much memory there is.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) if the system refuses memory for a request.
    pub(crate) fn new(rows: usize, len: usize, bytes: usize, max_request: usize) -> Result<Self> {
        let mut capacity =
            (bytes / (size_of::<T>() * len.max(1))).clamp(2, rows.max(2)).min(NONE as usize - 1);
        let least = capacity.min(max_request.max(2));
        let arena = loop {
            match Arena::new("cached kernel rows", capacity.saturating_mul(len)) {
                Ok(arena) => break arena,
                Err(error) if capacity == least => return Err(error),
                Err(_) => capacity = (capacity / 2).max(least),
            }
        };
        Ok(Self {
            len,
            capacity,
            arena,
            slot_of: vec![NONE; rows],
            row_of: vec![NONE],
            newer: vec![END],
            older: vec![END],
            hits: 0,
            misses: 0,
        })
    }

    /// Returns the maximum number of cached rows.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Assigns slots to the rows and returns those that are missing, in the order of their slots. The caller must fill these
    /// through [`RowCache::slots_mut`] before they are read, or [`RowCache::forget`] them.
    ///
    /// # Panics
    /// If there are more rows than the cache holds.
    pub(crate) fn claim(&mut self, rows: &[usize]) -> Vec<usize> {
        assert!(
            rows.len() <= self.capacity,
            "{} rows requested from a cache for {}",
            rows.len(),
            self.capacity
        );
        let mut missing = Vec::new();
        for &row in rows {
            let slot = self.slot_of[row];
            if slot == NONE {
                missing.push(row);
            } else {
                self.unlink(slot);
                self.link_after(END, slot);
            }
        }
        self.hits += (rows.len() - missing.len()) as u64;
        self.misses += missing.len() as u64;
        for &row in &missing {
            // Forgotten slots are used first, since their memory was touched before.
            let oldest = self.newer[END as usize];
            let forgotten = oldest != END && self.row_of[oldest as usize] == NONE;
            let slot = if !forgotten && self.row_of.len() <= self.capacity {
                self.row_of.push(NONE);
                self.newer.push(END);
                self.older.push(END);
                (self.row_of.len() - 1) as u32
            } else {
                self.unlink(oldest);
                let evicted = self.row_of[oldest as usize];
                if evicted != NONE {
                    self.slot_of[evicted as usize] = NONE;
                }
                oldest
            };
            self.row_of[slot as usize] = row as u32;
            self.slot_of[row] = slot;
            self.link_after(END, slot);
        }
        missing.sort_unstable_by_key(|&row| self.slot_of[row]);
        missing
    }

    /// Returns the slots of rows that [`RowCache::claim`] returned, in the same order.
    pub(crate) fn slots_mut(&mut self, rows: &[usize]) -> Vec<&mut [T]> {
        if self.len == 0 {
            return rows.iter().map(|_| &mut [][..]).collect();
        }
        let mut slots = rows.iter().map(|&row| self.slot_of[row] as usize).peekable();
        let mut out = Vec::with_capacity(rows.len());
        for (slot, values) in (1..).zip(self.arena.values_mut().chunks_exact_mut(self.len)) {
            if slots.peek() == Some(&slot) {
                slots.next();
                out.push(values);
            }
        }
        assert_eq!(out.len(), rows.len(), "rows must be in the order of their slots");
        out
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let start = (self.slot_of[row] as usize - 1) * self.len;
        &self.arena.values()[start..start + self.len]
    }

    /// Removes rows that are no longer needed or whose computation was interrupted; their slots are used next.
    pub(crate) fn forget(&mut self, rows: impl IntoIterator<Item = usize>) {
        for row in rows {
            let slot = self.slot_of[row];
            if slot != NONE {
                self.unlink(slot);
                self.link_after(self.newer[END as usize], slot);
                self.slot_of[row] = NONE;
                self.row_of[slot as usize] = NONE;
            }
        }
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = (self.newer[slot as usize], self.older[slot as usize]);
        self.older[newer as usize] = older;
        self.newer[older as usize] = newer;
    }

    /// Inserts a slot as the next older one of another slot, or as the newest one after [`END`].
    fn link_after(&mut self, newer: u32, slot: u32) {
        let older = std::mem::replace(&mut self.older[newer as usize], slot);
        (self.newer[slot as usize], self.older[slot as usize]) = (newer, older);
        self.newer[older as usize] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fetch(cache: &mut RowCache<f32>, rows: &[usize]) -> Vec<usize> {
        let missing = cache.claim(rows);
        for (row, slot) in missing.iter().zip(cache.slots_mut(&missing)) {
            slot.fill(*row as f32);
        }
        missing
    }

    #[test]
    fn the_least_recently_used_row_is_evicted() {
        let mut cache = RowCache::<f32>::new(10, 3, 3 * 3 * 4, 3).unwrap();
        assert_eq!(cache.capacity(), 3);
        fetch(&mut cache, &[1, 2, 3]);
        fetch(&mut cache, &[1]);
        assert_eq!(fetch(&mut cache, &[4]), vec![4]);
        assert!(fetch(&mut cache, &[1, 3, 4]).is_empty());
        assert_eq!(fetch(&mut cache, &[2]), vec![2]);
        assert_eq!((cache.hits, cache.misses), (4, 5));
    }

    #[test]
    fn interrupted_rows_are_computed_again() {
        let mut cache = RowCache::<f32>::new(10, 2, 2 * 2 * 4, 2).unwrap();
        let missing = cache.claim(&[5, 6]);
        cache.forget(missing);
        assert_eq!(fetch(&mut cache, &[6]), vec![6]);
        assert_eq!(fetch(&mut cache, &[5, 6]), vec![5]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Fetch(Vec<usize>),
        /// Rows are claimed, and their computation is interrupted.
        Interrupt(Vec<usize>),
        Forget(Vec<usize>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let rows = || prop::sample::subsequence((0..20_usize).collect::<Vec<_>>(), 0..9).prop_shuffle();
        let step = prop_oneof![
            4 => rows().prop_map(Step::Fetch),
            1 => rows().prop_map(Step::Interrupt),
            1 => rows().prop_map(Step::Forget),
        ];
        prop::collection::vec(step, 1..80)
    }

    proptest! {
        /// The cache behaves as a list of rows, the most recently used first.
        #[test]
        fn it_is_a_list_of_rows_by_their_last_use(capacity in 2..9_usize, steps in steps()) {
            let mut cache = RowCache::<f32>::new(20, 4, capacity * 16, capacity).unwrap();
            prop_assert_eq!(cache.capacity(), capacity);
            let (mut present, mut hits, mut misses) = (Vec::<usize>::new(), 0, 0);
            for step in steps {
                match step {
                    Step::Fetch(mut rows) => {
                        rows.truncate(capacity);
                        let mut expected: Vec<usize> = rows.iter().copied().filter(|r| !present.contains(r)).collect();
                        let mut missing = fetch(&mut cache, &rows);
                        hits += rows.len() - missing.len();
                        misses += missing.len();
                        // Cached rows move to the front first, then the others.
                        for &row in rows.iter().filter(|r| !expected.contains(r)).chain(&expected) {
                            present.retain(|&r| r != row);
                            present.insert(0, row);
                        }
                        present.truncate(capacity);
                        missing.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(missing, expected);
                    }
                    Step::Interrupt(mut rows) => {
                        rows.truncate(capacity);
                        let missing = cache.claim(&rows);
                        hits += rows.len() - missing.len();
                        misses += missing.len();
                        let present_rows: Vec<usize> = rows.iter().copied().filter(|r| present.contains(r)).collect();
                        for row in present_rows {
                            present.retain(|&r| r != row);
                            present.insert(0, row);
                        }
                        // Rows that were evicted for the missing rows stay evicted.
                        present.truncate(capacity - missing.len());
                        cache.forget(missing);
                    }
                    Step::Forget(rows) => {
                        present.retain(|row| !rows.contains(row));
                        cache.forget(rows);
                    }
                }
                for &row in &present {
                    prop_assert!(cache.row(row).iter().all(|&v| v == row as f32));
                }
                prop_assert_eq!((cache.hits, cache.misses), (hits as u64, misses as u64));
            }
        }
    }
}
