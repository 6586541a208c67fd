//! Least-recently-used cache of kernel rows in one arena.
//!
//! Invariant: a row is in at most one slot; the slots in use form one list from the most to the least recently
//! wanted. Getting a row and evicting one are O(1); the missing rows of a request are computed in one batch, straight
//! into their slots. The arena is reserved at once, but the system gives pages only as they are touched, so a
//! generous budget costs nothing by itself.

use crate::memory::Arena;

const NONE: u32 = u32::MAX;

/// Single-precision rows of one length under a budget.
pub(crate) struct RowCache {
    len: usize,
    capacity: usize,
    arena: Arena,
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

impl RowCache {
    /// A cache for `rows` rows of `len` values; never fewer than two fit, whatever the budget.
    pub(crate) fn new(rows: usize, len: usize, bytes: usize) -> Self {
        let capacity = (bytes / (4 * len.max(1))).clamp(2, rows.max(2)).min(NONE as usize - 1);
        Self {
            len,
            capacity,
            arena: Arena::new(capacity * len),
            slot_of: vec![NONE; rows],
            row_of: Vec::new(),
            newer: Vec::new(),
            older: Vec::new(),
            newest: NONE,
            oldest: NONE,
            hits: 0,
            misses: 0,
        }
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
    pub(crate) fn slots_mut(&mut self, rows: &[usize]) -> Vec<&mut [f32]> {
        if self.len == 0 {
            return rows.iter().map(|_| &mut [][..]).collect();
        }
        let mut wanted = rows.iter().map(|&row| self.slot_of[row] as usize).peekable();
        let mut out = Vec::with_capacity(rows.len());
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
    pub(crate) fn row(&self, row: usize) -> &[f32] {
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

    fn fetch(cache: &mut RowCache, rows: &[usize]) -> Vec<usize> {
        let missing = cache.claim(rows);
        for (row, slot) in missing.iter().zip(cache.slots_mut(&missing)) {
            slot.fill(*row as f32);
        }
        missing
    }

    #[test]
    fn the_least_recently_wanted_row_leaves() {
        let mut cache = RowCache::new(10, 3, 3 * 3 * 4);
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
        let mut cache = RowCache::new(10, 2, 2 * 2 * 4);
        let missing = cache.claim(&[5, 6]);
        cache.forget(missing);
        assert_eq!(fetch(&mut cache, &[6]), vec![6]);
        assert_eq!(fetch(&mut cache, &[5, 6]), vec![5]);
    }

    proptest! {
        #[test]
        fn a_row_is_always_its_own(capacity in 2..9_usize, requests in prop::collection::vec(prop::collection::btree_set(0..20_usize, 1..9), 1..60)) {
            let mut cache = RowCache::new(20, 4, capacity * 16);
            for request in requests {
                let rows: Vec<usize> = request.into_iter().take(cache.capacity()).collect();
                fetch(&mut cache, &rows);
                for &row in &rows {
                    prop_assert!(cache.row(row).iter().all(|&v| v == row as f32));
                }
            }
        }
    }
}
