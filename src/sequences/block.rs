//! Packed objects, and the matrices of their kernel values.
//!
//! A block refers to packed objects that several blocks share, so that a part of a block costs its indices alone. The value of
//! each object with itself is computed once, when it is packed. Matrices are divided into tasks of about equal work
//! over consecutive entries; a task computes pair by pair.

use super::scaled::Scaled;
use crate::context::{Context, InterruptCheck};
use crate::error::{Error, Result};
use crate::linalg::copy_upper_to_lower;
use crate::memory::try_zero_matrix;
use ndarray::Array2;
use std::ops::Range;
use std::sync::Arc;

/// Minimum work of a task, in cells of a dynamic program: a tenth of a millisecond.
const MIN_TASK_WORK: u64 = 1 << 17;
/// Approximate number of multiplications of a cell.
pub(super) const WORK_PER_CELL: u64 = 16;
/// Minimum number of tasks for each thread, if there is enough work.
const TASKS_PER_THREAD: usize = 16;
/// Number of cells between two checks for interruptions: about ten milliseconds.
const CELLS_PER_CHECK: usize = 1 << 22;

/// A kernel of sequences. It cannot be implemented outside of this crate.
pub trait SequenceKernel: Clone + PartialEq + Send + Sync + std::fmt::Debug {
    /// The numbers that an object consists of.
    #[doc(hidden)]
    type Item: Copy + Send + Sync + std::fmt::Debug;
    /// Everything that is computed once for a matrix, and the memory that a task reuses.
    #[doc(hidden)]
    type Space: Default;

    /// Returns the number of cells of the dynamic program, and their cost relative to the simplest one.
    #[doc(hidden)]
    fn work(&self, x: Object<'_, Self::Item>, y: Object<'_, Self::Item>) -> u64;

    /// Returns the number of doubles of a task's memory for objects of this length.
    #[doc(hidden)]
    fn space(&self, length: usize, features: usize) -> usize;

    /// Returns the kernel value before the normalization.
    #[doc(hidden)]
    fn value(
        &self,
        x: Object<'_, Self::Item>,
        y: Object<'_, Self::Item>,
        space: &mut Self::Space,
        interrupts: Interrupts<'_>,
    ) -> Result<Scaled>;
}

/// A packed object.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Object<'a, T> {
    /// Its numbers, as the kernel packs them.
    pub(super) items: &'a [T],
    /// Number of steps or symbols.
    pub(super) length: usize,
    /// Number of features of a step; 1 for symbols.
    pub(super) features: usize,
}

/// The check for interruptions of all tasks of a matrix.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Interrupts<'a>(pub(super) &'a InterruptCheck<'a>);

impl Interrupts<'_> {
    /// Calls `advance` for consecutive parts of the antidiagonals 2..end, with `cells` cells each at most, and checks for
    /// interruptions before each part.
    pub(super) fn in_parts(
        self,
        end: usize,
        cells: usize,
        cost: usize,
        mut advance: impl FnMut(Range<usize>),
    ) -> Result<()> {
        let size = (CELLS_PER_CHECK / cells.max(1) / cost.max(1)).max(1);
        for first in (2..end).step_by(size) {
            let part = first..end.min(first + size);
            self.0.charge((part.len() * cells).saturating_mul(cost))?;
            advance(part);
        }
        Ok(())
    }
}

/// Objects that blocks share.
#[derive(Debug)]
struct Store<K: SequenceKernel> {
    kernel: K,
    /// The packed objects, one after the other.
    items: Vec<K::Item>,
    /// The end of each object in `items`.
    ends: Vec<usize>,
    lengths: Vec<usize>,
    features: usize,
    /// The value of each object with itself.
    squares: Vec<Scaled>,
}

impl<K: SequenceKernel> Store<K> {
    fn object(&self, index: usize) -> Object<'_, K::Item> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Object {
            items: &self.items[start..self.ends[index]],
            length: self.lengths[index],
            features: self.features,
        }
    }
}

/// Objects in the form in which a kernel computes, with their values with themselves.
#[derive(Debug, Clone)]
pub struct Block<K: SequenceKernel> {
    store: Arc<Store<K>>,
    indices: Arc<[usize]>,
}

impl<K: SequenceKernel> Block<K> {
    /// Takes packed objects: the items of each with its length.
    pub(super) fn new(
        kernel: K,
        items: Vec<K::Item>,
        ends: Vec<usize>,
        lengths: Vec<usize>,
        features: usize,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let count = lengths.len();
        let mut store = Store { kernel, items, ends, lengths, features, squares: Vec::new() };
        let check = ctx.interrupts();
        let works = (0..count).map(|i| store.kernel.work(store.object(i), store.object(i)));
        let size = task_size(count, works.sum(), ctx);
        let parts = ctx.try_map(count.div_ceil(size.max(1)), |task| {
            let mut space = K::Space::default();
            let range = task * size..count.min((task + 1) * size);
            let square =
                |i| store.kernel.value(store.object(i), store.object(i), &mut space, Interrupts(&check));
            range.map(square).collect::<Result<Vec<_>>>()
        })?;
        store.squares = parts.into_iter().flatten().collect();
        Ok(Self { store: Arc::new(store), indices: (0..count).collect() })
    }

    /// Returns the kernel with which the objects are packed.
    pub fn kernel(&self) -> &K {
        &self.store.kernel
    }

    /// Returns the number of objects, which are the rows of a matrix.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Returns the number of features of a step; 1 for symbols.
    pub fn features(&self) -> usize {
        self.store.features
    }

    /// Returns the block of the objects at these places, without a copy of the objects.
    ///
    /// # Errors
    /// [`Error::Param`] if an index is too large.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        Error::check_below("indices", indices, self.len(), "the number of objects")?;
        let indices = indices.iter().map(|&i| self.indices[i]).collect();
        Ok(Self { store: Arc::clone(&self.store), indices })
    }

    /// Returns the normalized values of the objects with themselves: 1, or 0 where the value is 0 before the normalization.
    pub fn diagonal(&self) -> Vec<f64> {
        self.indices.iter().map(|&i| self.store.unit(i)).collect()
    }

    /// Returns the approximate number of multiplications for all pairs with the objects of `other`.
    pub fn work(&self, other: &Self) -> u64 {
        let Some((x, y)) = self.typical().zip(other.typical()) else { return 0 };
        let pairs = (self.len() as u64).saturating_mul(other.len() as u64);
        self.kernel().work(x, y).saturating_mul(pairs).saturating_mul(WORK_PER_CELL)
    }

    /// Returns the number of doubles that each thread needs for pairs with the objects of `other`.
    pub fn space(&self, other: &Self) -> usize {
        let longest = |block: &Self| block.indices.iter().map(|&i| block.store.lengths[i]).max();
        let length = longest(self).max(longest(other)).unwrap_or(0);
        self.kernel().space(length, self.features())
    }

    /// Returns the objects in their order.
    pub(super) fn objects(&self) -> impl Iterator<Item = Object<'_, K::Item>> {
        self.indices.iter().map(|&i| self.store.object(i))
    }

    /// Returns an object of mean length, without its items.
    fn typical(&self) -> Option<Object<'_, K::Item>> {
        let total: usize = self.indices.iter().map(|&i| self.store.lengths[i]).sum();
        let length = total.checked_div(self.len())?;
        Some(Object { items: &[], length, features: self.store.features })
    }

    /// Computes the kernel values of all pairs, (n, m).
    ///
    /// # Errors
    /// [`Error::Param`] if the blocks have different kernels or a value exceeds the range of doubles, [`Error::Shape`] if
    /// they have different numbers of features, [`Error::Memory`], [`Error::Stopped`].
    pub fn gram(&self, other: &Self, ctx: Context<'_>) -> Result<Array2<f64>> {
        let kernels = (self.kernel(), other.kernel());
        Error::check_param(
            kernels.0 == kernels.1,
            "block",
            format!("{:?}", kernels.1),
            format!("prepared by {:?}", kernels.0),
        )?;
        if !self.is_empty() && !other.is_empty() {
            Error::check_len("features of the second block", self.features(), other.features())?;
        }
        self.matrix(other, false, ctx)
    }

    /// Computes the kernel values of all pairs of this block, (n, n), each pair once.
    ///
    /// # Errors
    /// [`Error::Param`] if a value exceeds the range of doubles, [`Error::Memory`], [`Error::Stopped`].
    pub fn gram_symmetric(&self, ctx: Context<'_>) -> Result<Array2<f64>> {
        let mut values = self.matrix(self, true, ctx)?;
        if let Some(values) = values.as_slice_mut() {
            copy_upper_to_lower(values, self.len());
        }
        Ok(values)
    }

    /// Computes all entries, or those of the upper triangle.
    fn matrix(&self, other: &Self, is_symmetric: bool, ctx: Context<'_>) -> Result<Array2<f64>> {
        let (n, m) = (self.len(), other.len());
        let mut values = try_zero_matrix("kernel values", (n, m))?;
        let Some(entries) = values.as_slice_mut().filter(|entries| !entries.is_empty()) else {
            return Ok(values);
        };
        let check = ctx.interrupts();
        let size = task_size(n * m, self.work(other) / WORK_PER_CELL, ctx);
        ctx.try_for_each_chunk(entries, size, |task, entries| {
            let mut space = K::Space::default();
            for (place, entry) in (task * size..).zip(entries) {
                let (i, j) = (place / m, place % m);
                if !is_symmetric || i <= j {
                    *entry = self.entry((i, j), other, &mut space, Interrupts(&check))?;
                }
            }
            Ok(())
        })?;
        Ok(values)
    }

    fn entry(
        &self,
        (i, j): (usize, usize),
        other: &Self,
        space: &mut K::Space,
        interrupts: Interrupts<'_>,
    ) -> Result<f64> {
        let (i, j) = (self.indices[i], other.indices[j]);
        let (rows, columns) = (&*self.store, &*other.store);
        let (square, other_square) = (rows.squares[i], columns.squares[j]);
        if square.is_zero() || other_square.is_zero() {
            return Ok(0.0);
        }
        if std::ptr::eq(rows, columns) && i == j {
            return Ok(1.0);
        }
        let value = rows.kernel.value(rows.object(i), columns.object(j), space, interrupts)?;
        Ok(value.normalized(square, other_square))
    }
}

impl<K: SequenceKernel> Store<K> {
    /// Returns the normalized value of an object with itself.
    fn unit(&self, index: usize) -> f64 {
        if self.squares[index].is_zero() { 0.0 } else { 1.0 }
    }
}

/// Returns the number of entries of a task, for `count` entries of `work` cells together.
fn task_size(count: usize, work: u64, ctx: Context<'_>) -> usize {
    let tasks = work / MIN_TASK_WORK;
    let tasks =
        usize::try_from(tasks).unwrap_or(usize::MAX).clamp(1, TASKS_PER_THREAD * ctx.threads().max(2));
    count.div_ceil(tasks).max(1)
}
