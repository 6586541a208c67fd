//! Least-recently-used cache of kernel rows in one arena.
//!
//! Invariant: a row is in at most one slot; the slots in use form one list from the most to the least recently
//! wanted. Getting a row and evicting one are O(1); the missing rows of a request are computed in one batch, straight
//! into their slots. The arena is reserved at once, but the system gives pages only as they are touched, so a
//! generous budget costs nothing by itself.

use crate::error::Result;
use crate::memory::{Arena, try_vec};

const NONE: u32 = u32::MAX;

/// Rows of one length under a budget.
pub(crate) struct RowCache<T> {
    len: usize,
    capacity: usize,
    arena: Arena<T>,
    slot_of: Vec<u32>,
    row_of: Vec<u32>,
    newer: Vec<u32>,
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Rows that were asked for and present.
    pub(crate) hits: u64,
    /// Rows that were asked for and computed.
    pub(crate) misses: u64,
}

impl<T: bytemuck::Pod> RowCache<T> {
    /// A cache for `rows` rows of `len` values; never fewer than two fit, whatever the budget. Where the system grants
    /// less than the budget, the cache is as large as what it grants.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) where not even two rows are granted.
    pub(crate) fn new(rows: usize, len: usize, bytes: usize) -> Result<Self> {
        let mut capacity =
            (bytes / (size_of::<T>() * len.max(1))).clamp(2, rows.max(2)).min(NONE as usize - 1);
        let arena = loop {
            match Arena::new("cached kernel rows", capacity * len) {
                Ok(arena) => break arena,
                Err(error) if capacity == 2 => return Err(error),
                Err(_) => capacity = (capacity / 2).max(2),
            }
        };
        Ok(Self {
            len,
            capacity,
            arena,
            slot_of: try_vec![NONE; rows]?,
            row_of: Vec::new(),
            newer: Vec::new(),
            older: Vec::new(),
            newest: NONE,
            oldest: NONE,
            hits: 0,
            misses: 0,
        })
    }

    /// How many rows fit.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for the rows and returns those that are missing, most wanted first, in the order of their slots;
    /// each is promised to be filled through [`RowCache::slots_mut`] before it is read.
    ///
    /// # Panics
    /// If more distinct rows are asked for than fit.
    pub(crate) fn claim(&mut self, rows: &[usize]) -> Vec<usize> {
        assert!(rows.len() <= self.capacity, "{} rows asked of a cache for {}", rows.len(), self.capacity);
        let mut missing = Vec::new();
        for &row in rows {
            let slot = self.slot_of[row];
            if slot == NONE {
                missing.push(row);
            } else {
                self.unlink(slot);
                self.link(slot);
            }
        }
        self.hits += (rows.len() - missing.len()) as u64;
        self.misses += missing.len() as u64;
        for &row in &missing {
            // A forgotten slot first: its memory has been touched already.
            let forgotten = self.oldest != NONE && self.row_of[self.oldest as usize] == NONE;
            let slot = if !forgotten && self.row_of.len() < self.capacity {
                self.row_of.push(NONE);
                self.newer.push(NONE);
                self.older.push(NONE);
                (self.row_of.len() - 1) as u32
            } else {
                let slot = self.oldest;
                self.unlink(slot);
                let evicted = self.row_of[slot as usize];
                if evicted != NONE {
                    self.slot_of[evicted as usize] = NONE;
                }
                slot
            };
            self.row_of[slot as usize] = row as u32;
            self.slot_of[row] = slot;
            self.link(slot);
        }
        missing.sort_unstable_by_key(|&row| self.slot_of[row]);
        missing
    }

    /// The slots of rows that [`RowCache::claim`] returned, in the same order.
    pub(crate) fn slots_mut(&mut self, rows: &[usize]) -> Vec<&mut [T]> {
        if self.len == 0 {
            return rows.iter().map(|_| &mut [][..]).collect(); // small: a block of rows
        }
        let mut wanted = rows.iter().map(|&row| self.slot_of[row] as usize).peekable();
        let mut out = Vec::with_capacity(rows.len()); // small: a block of rows
        for (slot, values) in self.arena.values_mut().chunks_exact_mut(self.len).enumerate() {
            if wanted.peek() == Some(&slot) {
                wanted.next();
                out.push(values);
            }
        }
        assert_eq!(out.len(), rows.len(), "rows are asked for in the order of their slots");
        out
    }

    /// A row that is present.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let start = self.slot_of[row] as usize * self.len;
        &self.arena.values()[start..start + self.len]
    }

    /// Forgets rows that nobody will want again, or whose computation was broken off; their slots are used next.
    pub(crate) fn forget(&mut self, rows: impl IntoIterator<Item = usize>) {
        for row in rows {
            let slot = self.slot_of[row];
            if slot != NONE {
                self.unlink(slot);
                self.link_oldest(slot);
                self.slot_of[row] = NONE;
                self.row_of[slot as usize] = NONE;
            }
        }
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = (self.newer[slot as usize], self.older[slot as usize]);
        if newer == NONE {
            self.newest = older;
        } else {
            self.older[newer as usize] = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            self.newer[older as usize] = newer;
        }
    }

    fn link(&mut self, slot: u32) {
        self.newer[slot as usize] = NONE;
        self.older[slot as usize] = self.newest;
        if self.newest == NONE {
            self.oldest = slot;
        } else {
            self.newer[self.newest as usize] = slot;
        }
        self.newest = slot;
    }

    fn link_oldest(&mut self, slot: u32) {
        self.older[slot as usize] = NONE;
        self.newer[slot as usize] = self.oldest;
        if self.oldest == NONE {
            self.newest = slot;
        } else {
            self.older[self.oldest as usize] = slot;
        }
        self.oldest = slot;
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
    fn the_least_recently_wanted_row_leaves() {
        let mut cache = RowCache::<f32>::new(10, 3, 3 * 3 * 4).unwrap();
        assert_eq!(cache.capacity(), 3);
        fetch(&mut cache, &[1, 2, 3]);
        fetch(&mut cache, &[1]);
        assert_eq!(fetch(&mut cache, &[4]), vec![4]);
        assert!(fetch(&mut cache, &[1, 3, 4]).is_empty());
        assert_eq!(fetch(&mut cache, &[2]), vec![2]);
        assert_eq!((cache.hits, cache.misses), (4, 5));
    }

    #[test]
    fn broken_off_rows_are_computed_again() {
        let mut cache = RowCache::<f32>::new(10, 2, 2 * 2 * 4).unwrap();
        let missing = cache.claim(&[5, 6]);
        cache.forget(missing);
        assert_eq!(fetch(&mut cache, &[6]), vec![6]);
        assert_eq!(fetch(&mut cache, &[5, 6]), vec![5]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Fetch(Vec<usize>),
        /// Rows are claimed, and their computation is broken off.
        BreakOff(Vec<usize>),
        Forget(Vec<usize>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let rows = || prop::sample::subsequence((0..20_usize).collect::<Vec<_>>(), 0..9).prop_shuffle();
        let step = prop_oneof![
            4 => rows().prop_map(Step::Fetch),
            1 => rows().prop_map(Step::BreakOff),
            1 => rows().prop_map(Step::Forget),
        ];
        prop::collection::vec(step, 1..80)
    }

    proptest! {
        /// Against the plainest cache there is: a list of rows, the most recently wanted first.
        #[test]
        fn it_is_a_list_of_rows_by_their_last_use(capacity in 2..9_usize, steps in steps()) {
            let mut cache = RowCache::<f32>::new(20, 4, capacity * 16).unwrap();
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
                        // Those that were there come forward first, then the others.
                        for &row in rows.iter().filter(|r| !expected.contains(r)).chain(&expected) {
                            present.retain(|&r| r != row);
                            present.insert(0, row);
                        }
                        present.truncate(capacity);
                        missing.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(missing, expected);
                    }
                    Step::BreakOff(mut rows) => {
                        rows.truncate(capacity);
                        let missing = cache.claim(&rows);
                        hits += rows.len() - missing.len();
                        misses += missing.len();
                        let kept: Vec<usize> = rows.iter().copied().filter(|r| present.contains(r)).collect();
                        for row in kept {
                            present.retain(|&r| r != row);
                            present.insert(0, row);
                        }
                        // What made room for the missing rows is gone all the same.
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
