//! Register tiles: pairwise sums between a block of rows and one packed panel, then the kernel's epilogue, while
//! the tile is still in the first cache.
//!
//! A panel holds the vectors of [`panel_width`] columns, feature after feature, so that one feature of all of them
//! is two vector loads. A dense block is row-major; each of its elements is broadcast against the panel:
//! c[i, j] = sum_k measure(a[i, k], b[k, j]). A sparse block visits its stored entries only. A feature that
//! the panel lacks has a row of zeros, so no branch is needed. The contribution of the zeros of the block is the panel's
//! baseline (sum |b| for l1 and chi-squared, nothing for the inner product).
//!
//! Every entry is summed feature by feature in one accumulator for all shapes of tiles, so its value depends neither on its
//! position nor on the number of threads.

use super::epilogue::{self, Epilogue};
use super::{Isa, Operation, Real, Vector, lanes, run};
use crate::error::Result;
use crate::memory;
use std::ops::Deref;

/// Context reported when the allocation of sparse rows fails.
const ENTRIES: &str = "the entries of sparse rows";

/// Returns the number of columns of a panel at the instruction set in use.
pub(crate) fn panel_width<T: Real>() -> usize {
    2 * lanes::<T>()
}

/// A sum over the features of two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// sum a b
    Inner,
    /// sum |a - b|
    L1,
    /// sum (a - b)^2 / (a + b)
    ChiSquared,
    /// sum (a - b)^2 of dense rows: no cancellation, one operation more than the inner product
    SquaredL2,
}

trait Step {
    /// True if the contribution is one multiplication, of which a lane can be a factor.
    const IS_PRODUCT: bool;
    /// Adds one feature's contribution.
    unsafe fn step<V: Vector>(sum: V, a: V, b: V) -> V;
    /// Replaces a zero's contribution, which is in the baseline, by that of a stored entry.
    unsafe fn replace<V: Vector>(sum: V, a: V, b: V) -> V;
}

macro_rules! step {
    ($name:ident, $is_product:literal, |$sum:ident, $a:ident, $b:ident| step: $step:expr, replace: $replace:expr) => {
        struct $name;

        impl Step for $name {
            const IS_PRODUCT: bool = $is_product;
            #[inline(always)]
            unsafe fn step<V: Vector>($sum: V, $a: V, $b: V) -> V {
                // SAFETY: the contract is the caller's.
                unsafe { $step }
            }
            #[inline(always)]
            unsafe fn replace<V: Vector>($sum: V, $a: V, $b: V) -> V {
                // SAFETY: the contract is the caller's.
                unsafe { $replace }
            }
        }
    };
}

step!(InnerStep, true, |sum, a, b| step: a.mul_add(b, sum), replace: a.mul_add(b, sum));
step!(L1Step, false, |sum, a, b| step: sum.add(a.sub(b).abs()), replace: sum.add(a.sub(b).abs().sub(b.abs())));
step!(ChiSquaredStep, false, |sum, a, b|
    step: {
        let difference = a.sub(b);
        let total = a.add(b).max(V::splat(V::Elem::TINY));
        sum.add(difference.mul(difference).div(total))
    },
    replace: Self::step(sum, a, b).sub(b)
);
step!(SquaredL2Step, false, |sum, a, b|
    step: {
        let difference = a.sub(b);
        difference.mul_add(difference, sum)
    },
    replace: Self::step(sum, a, b).sub(b.mul(b))
);

/// The row of a panel that holds each feature. Row 0 is zeros, for features that the panel lacks.
///
/// Invariant, on which unchecked reads rely: every slot is below `panel_rows`.
pub(crate) struct SlotMap {
    slots: Vec<u32>,
    panel_rows: usize,
}

impl SlotMap {
    /// Creates a map for rows of `features` features, all absent.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn new(features: usize) -> Result<Self> {
        Ok(Self { slots: memory::try_zeros("the rows of features", features)?, panel_rows: 1 })
    }

    /// Assigns row i + 1 of the panel to feature `present[i]` until the result is dropped.
    pub(crate) fn enter<'a>(&'a mut self, present: &'a [u32]) -> EnteredPanel<'a> {
        if self.panel_rows != 1 {
            // The result of an earlier call was forgotten.
            self.slots.fill(0);
        }
        debug_assert!(self.slots.iter().all(|slot| *slot == 0), "features of an earlier panel");
        self.panel_rows = present.len() + 1;
        for (slot, &feature) in (1..).zip(present) {
            self.slots[feature as usize] = slot;
        }
        EnteredPanel { map: self, present }
    }

    /// Returns the row of the panel that holds a feature.
    pub(crate) fn slot(&self, feature: u32) -> usize {
        self.slots[feature as usize] as usize
    }
}

/// A map with the features of a panel, which leave it when this is dropped.
pub(crate) struct EnteredPanel<'a> {
    map: &'a mut SlotMap,
    present: &'a [u32],
}

impl Deref for EnteredPanel<'_> {
    type Target = SlotMap;

    fn deref(&self) -> &SlotMap {
        self.map
    }
}

impl Drop for EnteredPanel<'_> {
    fn drop(&mut self) {
        for &feature in self.present {
            self.map.slots[feature as usize] = 0;
        }
        self.map.panel_rows = 1;
    }
}

/// A map of features that are the rows of a panel.
pub(crate) struct IdentityMap(SlotMap);

impl IdentityMap {
    /// Creates a map without features.
    pub(crate) fn new() -> Self {
        Self(SlotMap { slots: Vec::new(), panel_rows: 0 })
    }

    /// Returns the map for a panel of `panel_rows` rows.
    pub(crate) fn with_rows(&mut self, panel_rows: usize) -> &SlotMap {
        let SlotMap { slots, panel_rows: rows } = &mut self.0;
        slots.truncate(panel_rows);
        slots.extend(slots.len() as u32..panel_rows as u32);
        *rows = panel_rows;
        &self.0
    }
}

/// Sparse rows in the precision of the computation.
///
/// Invariant: `starts` rises from 0 to the number of entries, and every feature is below `width`.
pub(crate) struct SparseBlock<T> {
    starts: Vec<usize>,
    features: Vec<u32>,
    values: Vec<T>,
    width: usize,
}

impl<T> SparseBlock<T> {
    /// Creates a block without rows, of `width` features.
    pub(crate) fn new(width: usize) -> Self {
        Self { starts: vec![0], features: Vec::new(), values: Vec::new(), width }
    }

    /// Reserves memory for `entries` more entries.
    pub(crate) fn reserve(&mut self, entries: usize) -> Result<()> {
        memory::try_reserve_entries(ENTRIES, (&mut self.features, &mut self.values), entries)
    }

    /// Appends an entry to the row being written.
    pub(crate) fn push(&mut self, feature: usize, value: T) {
        assert!(feature < self.width);
        self.features.push(feature as u32);
        self.values.push(value);
    }

    /// Removes all rows and keeps the memory, for rows of `width` features.
    pub(crate) fn restart(&mut self, width: usize) {
        self.width = width;
        self.starts.truncate(1);
        self.features.clear();
        self.values.clear();
    }

    /// Returns the features and values of all rows, one after the other.
    pub(crate) fn entries(&self) -> (&[u32], &[T]) {
        (&self.features, &self.values)
    }

    /// Returns the features and values of a row.
    pub(crate) fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.features[range.clone()], &self.values[range])
    }

    /// Ends the row being written.
    pub(crate) fn end_row(&mut self) {
        self.starts.push(self.features.len());
    }
}

/// The rows of a block, as the micro-kernel reads them.
#[derive(Clone, Copy)]
pub(crate) enum Block<'a, T> {
    /// Row-major, rows `stride` apart, `depth` features each.
    Dense { data: &'a [T], stride: usize, depth: usize },
    /// Stored entries, and the rows of the panel that hold their features.
    Sparse { entries: &'a SparseBlock<T>, slots: &'a SlotMap },
}

/// Vectors as columns, with their norms.
#[derive(Clone, Copy)]
pub(crate) struct PanelView<'a, T> {
    /// Features times the panel's width; row 0 of a sparse panel is zeros.
    pub(crate) values: &'a [T],
    /// Squared norms of the columns.
    pub(crate) norms: &'a [T],
    /// The sums of a row of zeros, for a sparse panel.
    pub(crate) baseline: Option<&'a [T]>,
}

/// Writes the kernel values of the rows from `first` of a block, whose squared norms are given, and the columns of one panel to
/// the lines of `out`, which have the panel's width.
pub(crate) fn panel_tile<T: Real>(
    (measure, epilogue): (Measure, Epilogue<T>),
    (block, block_norms): (Block<'_, T>, &[T]),
    first: usize,
    mut panel: PanelView<'_, T>,
    out: &mut [T],
) {
    let width = panel_width::<T>();
    let rows = out.len() / width;
    if measure == Measure::Inner {
        panel.baseline = None;
    }
    assert!(measure != Measure::SquaredL2 || matches!(block, Block::Dense { .. }));
    assert!(rows > 0 && first + rows <= block_norms.len());
    assert!(panel.norms.len() == width && panel.baseline.is_none_or(|b| b.len() == width));
    match block {
        Block::Dense { data, stride, depth } => {
            assert!(stride >= depth && data.len() >= (first + rows - 1) * stride + depth);
            assert!(panel.values.len() >= depth * width);
        }
        Block::Sparse { entries, slots } => {
            assert!(entries.starts.len() > first + rows && slots.slots.len() >= entries.width);
            assert!(panel.values.len() >= slots.panel_rows * width);
            debug_assert!(slots.slots.iter().all(|slot| (*slot as usize) < slots.panel_rows));
        }
    }
    // SAFETY: the assertions above are what the loop relies on.
    unsafe { run(PanelTile { measure, epilogue, block, block_norms, first, rows, panel, out }) };
}

/// Invariant: the sizes are as [`panel_tile`] has checked them.
struct PanelTile<'a, T> {
    measure: Measure,
    epilogue: Epilogue<T>,
    block: Block<'a, T>,
    block_norms: &'a [T],
    first: usize,
    rows: usize,
    panel: PanelView<'a, T>,
    out: &'a mut [T],
}

impl<T: Real> Operation for PanelTile<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        // SAFETY: `panel_tile` has checked every size.
        unsafe {
            match self.measure {
                Measure::Inner => self.with_step::<I, InnerStep>(),
                Measure::L1 => self.with_step::<I, L1Step>(),
                Measure::ChiSquared => self.with_step::<I, ChiSquaredStep>(),
                Measure::SquaredL2 => self.with_step::<I, SquaredL2Step>(),
            }
        }
    }
}

/// Adds the contributions of one lane of the loaded features of R rows, whose first line of the panel is at `b`.
#[inline(always)]
unsafe fn add_lane<V: Vector, S: Step, const R: usize>(
    sums: &mut [[V; 2]; R],
    features: &[V; R],
    b: *const V::Elem,
    lane: usize,
) {
    // SAFETY: the panel has a line of two vectors for each lane; the contract is the caller's.
    unsafe {
        let b = b.add(2 * lane * V::LANES);
        let (b0, b1) = (V::load(b), V::load(b.add(V::LANES)));
        for i in 0..R {
            let a = features[i].broadcast(lane);
            sums[i][0] = S::step(sums[i][0], a, b0);
            sums[i][1] = S::step(sums[i][1], a, b1);
        }
    }
}

impl<T: Real> PanelTile<'_, T> {
    #[inline(always)]
    unsafe fn with_step<I: Isa, S: Step>(mut self) {
        let mut done = 0;
        while done < self.rows {
            let left = self.rows - done;
            // SAFETY: `panel_tile` has checked every size; the tile ends at or before the last row.
            unsafe {
                let tile = if matches!(self.block, Block::Sparse { .. }) {
                    let tile = left.min(I::TILE_ROWS);
                    self.sparse::<T::Of<I>, S>(done, tile);
                    tile
                } else if I::TILE_ROWS == 12 && left >= 12 {
                    self.dense::<T::Of<I>, S, 12>(done)
                } else if I::TILE_ROWS == 8 && left >= 8 {
                    self.dense::<T::Of<I>, S, 8>(done)
                } else if left >= 6 {
                    self.dense::<T::Of<I>, S, 6>(done)
                } else if left >= 2 {
                    self.dense::<T::Of<I>, S, 2>(done)
                } else {
                    self.dense::<T::Of<I>, S, 1>(done)
                };
                let width = 2 * <T::Of<I> as Vector>::LANES;
                epilogue::apply::<T::Of<I>>(
                    &self.epilogue,
                    self.out.as_mut_ptr().add(done * width),
                    width,
                    &self.block_norms[self.first + done..self.first + done + tile],
                    self.panel.norms,
                );
                done += tile;
            }
        }
    }

    /// Computes R rows at once, and returns R.
    #[inline(always)]
    unsafe fn dense<V: Vector<Elem = T>, S: Step, const R: usize>(&mut self, done: usize) -> usize {
        let Block::Dense { data, stride, depth } = self.block else { return R };
        // SAFETY: `panel_tile` has checked that rows, panel and output are long enough.
        unsafe {
            let mut sums = [[V::zero(); 2]; R];
            let a = data.as_ptr().add((self.first + done) * stride);
            let mut b = self.panel.values.as_ptr();
            let mut first = 0;
            if V::MULTIPLIES_BY_LANE && S::IS_PRODUCT {
                while first + V::LANES <= depth {
                    let mut features = [V::zero(); R];
                    for (i, features) in features.iter_mut().enumerate() {
                        *features = V::load(a.add(i * stride + first));
                    }
                    add_lane::<V, S, R>(&mut sums, &features, b, 0);
                    add_lane::<V, S, R>(&mut sums, &features, b, 1);
                    if V::LANES == 4 {
                        add_lane::<V, S, R>(&mut sums, &features, b, 2);
                        add_lane::<V, S, R>(&mut sums, &features, b, 3);
                    }
                    b = b.add(2 * V::LANES * V::LANES);
                    first += V::LANES;
                }
            }
            for k in first..depth {
                let b0 = V::load(b);
                let b1 = V::load(b.add(V::LANES));
                b = b.add(2 * V::LANES);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let ai = V::splat(*a.add(i * stride + k));
                    sum[0] = S::step(sum[0], ai, b0);
                    sum[1] = S::step(sum[1], ai, b1);
                }
            }
            for (i, sum) in sums.iter().enumerate() {
                let out = self.out.as_mut_ptr().add((done + i) * 2 * V::LANES);
                sum[0].store(out);
                sum[1].store(out.add(V::LANES));
            }
        }
        R
    }

    #[inline(always)]
    unsafe fn sparse<V: Vector<Elem = T>, S: Step>(&mut self, done: usize, rows: usize) {
        let Block::Sparse { entries: SparseBlock { starts, features, values, .. }, slots } = self.block
        else {
            return;
        };
        // SAFETY: `panel_tile` has checked the sizes; the invariants of the block and of the map bound every feature
        // and every slot.
        unsafe {
            for i in 0..rows {
                let (mut sum0, mut sum1) = match self.panel.baseline {
                    Some(baseline) => (V::load(baseline.as_ptr()), V::load(baseline.as_ptr().add(V::LANES))),
                    None => (V::zero(), V::zero()),
                };
                let row = self.first + done + i;
                for entry in *starts.get_unchecked(row)..*starts.get_unchecked(row + 1) {
                    let feature = *features.get_unchecked(entry) as usize;
                    let slot = *slots.slots.get_unchecked(feature) as usize;
                    let b = self.panel.values.as_ptr().add(slot * 2 * V::LANES);
                    let a = V::splat(*values.get_unchecked(entry));
                    sum0 = S::replace(sum0, a, V::load(b));
                    sum1 = S::replace(sum1, a, V::load(b.add(V::LANES)));
                }
                let out = self.out.as_mut_ptr().add((done + i) * 2 * V::LANES);
                sum0.store(out);
                sum1.store(out.add(V::LANES));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_a_panel_leave_the_map_with_it() {
        let mut map = SlotMap::new(9).unwrap();
        let slots = |map: &SlotMap| (0..9).map(|feature| map.slot(feature)).collect::<Vec<_>>();
        {
            let entered = map.enter(&[7, 2, 5]);
            assert_eq!((slots(&entered), entered.panel_rows), (vec![0, 0, 2, 0, 0, 3, 0, 1, 0], 4));
        }
        assert_eq!((slots(&map), map.panel_rows), (vec![0; 9], 1));
        // A panel of fewer rows does not see the slots of one that did not leave.
        std::mem::forget(map.enter(&[8, 7, 6, 5]));
        assert_eq!(slots(&map.enter(&[3])), [0, 0, 0, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn rows_of_a_panel_are_mapped_to_themselves() {
        let mut map = IdentityMap::new();
        for rows in [3, 8, 1, 0, 5] {
            let map = map.with_rows(rows);
            assert!(map.panel_rows == rows && map.slots.iter().copied().eq(0..rows as u32));
        }
    }
}
