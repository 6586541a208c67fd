//! The reference-counted store of the rows of a tree, in which equal rows are stored once. Several threads may use it.
//!
//! Invariant: an id is valid while its count is positive; the id of a row without references is reused. The results of a
//! tree depend on the rows, never on ids, which depend on the order in which threads store rows. Cost: O(d) for storing and
//! reading a row.

use crate::error::Result;
use crate::kernels::RowBuffer;
use crate::memory::{TryGrow, try_with_capacity};
use crate::simd::Real;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Rows in the layout of their stream.
enum RowStorage<T> {
    Dense(Vec<T>),
    Sparse(Vec<Vec<(u32, T)>>),
}

/// Rows with their reference counts.
pub(super) struct Store<T>(RwLock<StoredRows<T>>);

struct StoredRows<T> {
    features: usize,
    storage: RowStorage<T>,
    counts: Vec<u32>,
    hashes: Vec<u64>,
    free: Vec<u32>,
    by_hash: BTreeMap<u64, Vec<u32>>,
}

impl<T: Real> Store<T> {
    /// Returns an empty store.
    pub(super) fn new(features: usize, sparse: bool) -> Self {
        Self(RwLock::new(StoredRows {
            features,
            storage: if sparse { RowStorage::Sparse(Vec::new()) } else { RowStorage::Dense(Vec::new()) },
            counts: Vec::new(),
            hashes: Vec::new(),
            free: Vec::new(),
            by_hash: BTreeMap::new(),
        }))
    }

    fn lock(&self) -> RwLockWriteGuard<'_, StoredRows<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_for_reading(&self) -> RwLockReadGuard<'_, StoredRows<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of a row, which is stored if it is new, and adds a reference to it.
    pub(super) fn intern(&self, row: &RowBuffer<T>) -> Result<u32> {
        let hash = hash(row);
        self.lock().intern(hash, row)
    }

    /// Adds a reference.
    pub(super) fn retain(&self, id: u32) {
        self.lock().counts[id as usize] += 1;
    }

    /// Removes a reference, and the row if it was the last one.
    pub(super) fn release(&self, id: u32) {
        self.lock().release(id);
    }

    /// Copies a row to a buffer.
    pub(super) fn read(&self, id: u32, buffer: &mut RowBuffer<T>) {
        let rows = self.lock_for_reading();
        match &rows.storage {
            RowStorage::Dense(_) => buffer.load_dense(rows.dense(id)),
            RowStorage::Sparse(rows) => buffer.load_entries(|push| {
                for &(k, v) in &rows[id as usize] {
                    push(k as usize, v);
                }
            }),
        }
    }
}

impl<T: Real> StoredRows<T> {
    fn intern(&mut self, hash: u64, row: &RowBuffer<T>) -> Result<u32> {
        let known =
            self.by_hash.get(&hash).and_then(|ids| ids.iter().copied().find(|&id| self.equals(id, row)));
        let id = match known {
            Some(id) => id,
            None => self.insert(hash, row)?,
        };
        self.counts[id as usize] += 1;
        Ok(id)
    }

    fn release(&mut self, id: u32) {
        self.counts[id as usize] -= 1;
        if self.counts[id as usize] > 0 {
            return;
        }
        let hash = self.hashes[id as usize];
        if let Some(ids) = self.by_hash.get_mut(&hash) {
            ids.retain(|&other| other != id);
            if ids.is_empty() {
                self.by_hash.remove(&hash);
            }
        }
        if let RowStorage::Sparse(rows) = &mut self.storage {
            rows[id as usize] = Vec::new();
        }
        self.free.push(id);
    }

    fn dense(&self, id: u32) -> &[T] {
        match &self.storage {
            RowStorage::Dense(data) => &data[id as usize * self.features..][..self.features],
            RowStorage::Sparse(_) => &[],
        }
    }

    fn equals(&self, id: u32, row: &RowBuffer<T>) -> bool {
        match &self.storage {
            RowStorage::Dense(_) => self.dense(id) == row.unscaled(),
            RowStorage::Sparse(rows) => {
                let (features, values) = (row.entries().0, row.unscaled());
                let stored = &rows[id as usize];
                stored.len() == features.len()
                    && stored
                        .iter()
                        .zip(features.iter().zip(values))
                        .all(|(a, (k, v))| a.0 == *k && a.1 == *v)
            }
        }
    }

    fn insert(&mut self, hash: u64, row: &RowBuffer<T>) -> Result<u32> {
        let id = if let Some(id) = self.free.pop() {
            id
        } else {
            match &mut self.storage {
                RowStorage::Dense(data) => data.try_resize(data.len() + self.features, T::ZERO)?,
                RowStorage::Sparse(rows) => rows.push(Vec::new()),
            }
            self.counts.push(0);
            self.hashes.push(0);
            (self.counts.len() - 1) as u32
        };
        self.hashes[id as usize] = hash;
        match &mut self.storage {
            RowStorage::Dense(data) => {
                let stored = &mut data[id as usize * self.features..][..self.features];
                stored.iter_mut().zip(row.unscaled()).for_each(|(at, &v)| *at = without_sign_of_zero(v));
            }
            RowStorage::Sparse(rows) => {
                let mut entries = try_with_capacity("a row of a tree", row.unscaled().len())?;
                row.for_each_unscaled(|k, v| entries.push((k as u32, without_sign_of_zero(v))));
                rows[id as usize] = entries;
            }
        }
        self.by_hash.entry(hash).or_default().push(id);
        Ok(id)
    }
}

/// Returns the number, 0 for -0: which of two equal rows is stored first depends on the threads.
fn without_sign_of_zero<T: Real>(value: T) -> T {
    if value == T::ZERO { T::ZERO } else { value }
}

/// Returns a hash that is equal for equal rows: zeros are skipped, and so are their signs.
fn hash<T: Real>(row: &RowBuffer<T>) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    row.for_each_unscaled(|k, v| {
        if v != T::ZERO {
            let bits = v.to_f64().to_bits() ^ (k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash = (hash ^ bits).wrapping_mul(0x0000_0100_0000_01B3);
            hash ^= hash >> 29;
        }
    });
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::kernels::{Formula, Kernel};

    #[test]
    fn equal_rows_are_one_and_rows_without_references_are_replaced() {
        let data = [1.0_f32, 0.0, 2.0, 3.0, 1.0, -0.0, 4.0, 5.0];
        let rows: Rows<'_> = Rows::from_shape((4, 2), &data).unwrap();
        for sparse in [false, true] {
            let formula = Formula::<f32>::of(&Kernel::Rbf { gamma: 1e-6 }, sparse).unwrap();
            let (store, mut row) = (Store::new(2, sparse), formula.row(2));
            let ids: Vec<u32> = (0..3)
                .map(|i| {
                    row.load(&rows, i);
                    store.intern(&row).unwrap()
                })
                .collect();
            assert_eq!(ids, [0, 1, 0]);
            store.release(0);
            row.load(&rows, 0);
            assert_eq!(store.intern(&row).unwrap(), 0);
            store.release(0);
            store.release(0);
            row.load(&rows, 3);
            assert_eq!(store.intern(&row).unwrap(), 0);
            store.read(0, &mut row);
            let mut values = Vec::new();
            row.for_each_unscaled(|_, v| values.push(v));
            assert_eq!(values, [4.0, 5.0]);
            // Equal rows are stored with the same bits, whichever comes first.
            row.load(&rows, 2);
            let id = store.intern(&row).unwrap();
            store.read(id, &mut row);
            row.for_each_unscaled(|k, v| assert!(k == 0 || v.to_bits() == 0));
        }
    }
}
