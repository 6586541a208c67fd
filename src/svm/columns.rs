//! The columns of all machines of a fit: training rows packed for kernel values, divided into *class blocks* (the classes of
//! a one-vs-one problem), each with a cache of kernel rows if a value is more expensive than storing it and reading it back. In
//! a search, the kernel matrix of all fits takes the place of the caches.
//!
//! Rows and columns are *positions* in the order of the training rows in the fit. The caches of all class blocks hold the
//! same number of rows. Cost: the packed rows; the caches take the rest of the memory budget.

use super::kernel_matrix::KernelMatrix;
use super::params::SvmParams;
use super::precision::{KernelValue, Values};
use super::training::Training;
use crate::cache::RowCache;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{Kernel, KernelFunction, KernelRows, is_packed_sparse, rows_per_tile};
use crate::platform::Stopwatch;
use ndarray::ArrayView2;
use std::ops::Range;

/// Multiply-adds between two checks of the monitor while rows are computed: a few tenths of a second.
const WORK_PER_CHECK: usize = 2_000_000_000;
/// Assumed cost of a value of a user-defined kernel, in features: always cached.
const CALLBACK_DEPTH: usize = 1 << 12;

/// Cost of the fit of all machines together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Number of kernel values that were computed, without those read from a cache.
    pub kernel_values: u64,
    /// Number of kernel rows found in a cache.
    pub cache_hits: u64,
    /// Number of kernel rows computed for a cache.
    pub cache_misses: u64,
    /// Wall-clock time.
    pub seconds: f64,
}

impl Effort {
    /// Returns the sum of this and a later effort, whose clock started later.
    pub(super) fn and(self, next: Self) -> Self {
        Self {
            kernel_values: self.kernel_values + next.kernel_values,
            cache_hits: self.cache_hits + next.cache_hits,
            cache_misses: self.cache_misses + next.cache_misses,
            seconds: self.seconds + next.seconds,
        }
    }
}

/// A range of columns with its packed rows, and a cache of their kernel rows.
pub(super) struct ClassBlock<'a, K> {
    pub(super) positions: Range<usize>,
    pub(super) source: KernelRows<'a>,
    stored: StoredRows<'a, K>,
}

/// The storage of the kernel rows of a class block.
enum StoredRows<'a, K> {
    /// Nowhere: values are computed again.
    None,
    Cache(RowCache<K>),
    /// All of them, by position, in the columns of all class blocks.
    Matrix(&'a KernelMatrix<K>),
}

impl<K: KernelValue> ClassBlock<'_, K> {
    /// Returns a stored kernel row.
    pub(super) fn row(&self, position: usize) -> &[K] {
        match &self.stored {
            StoredRows::None => &[],
            StoredRows::Cache(cache) => cache.row(position),
            StoredRows::Matrix(matrix) => &matrix.row(position)[self.positions.clone()],
        }
    }

    /// Returns whether kernel rows are stored; otherwise values are computed again.
    pub(super) fn is_stored(&self) -> bool {
        !matches!(self.stored, StoredRows::None)
    }

    /// Returns the cache of kernel rows, if there is one.
    pub(super) fn cache(&self) -> Option<&RowCache<K>> {
        match &self.stored {
            StoredRows::Cache(cache) => Some(cache),
            StoredRows::None | StoredRows::Matrix(_) => None,
        }
    }

    /// Returns the cache of kernel rows, if there is one.
    pub(super) fn cache_mut(&mut self) -> Option<&mut RowCache<K>> {
        match &mut self.stored {
            StoredRows::Cache(cache) => Some(cache),
            StoredRows::None | StoredRows::Matrix(_) => None,
        }
    }

    /// Computes the missing ones of the kernel rows at some positions; see [`KernelColumns::fetch`].
    fn fetch(
        &mut self,
        positions: &[usize],
        order: &[usize],
        depth: usize,
        ctx: Context<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let StoredRows::Cache(cache) = &mut self.stored else { return Ok(()) };
        let mut missing = cache.claim(positions);
        let batch = rows_between_checks(self.positions.len(), depth);
        while !missing.is_empty() {
            let later = missing.split_off(batch.min(missing.len()));
            let rows: Vec<usize> = missing.iter().map(|&position| order[position]).collect();
            self.source.compute(&rows, &mut cache.slots_mut(&missing), ctx)?;
            missing = later;
            if !missing.is_empty()
                && let Err(stopped) = check()
            {
                cache.forget(missing);
                return Err(stopped);
            }
        }
        Ok(())
    }
}

/// Returns the number of kernel rows that are computed between two checks of the monitor; as many as a tile has are computed in
/// one pass over the columns.
fn rows_between_checks(columns: usize, depth: usize) -> usize {
    let tile = rows_per_tile(depth.saturating_mul(size_of::<f32>()));
    (WORK_PER_CHECK / columns.saturating_mul(depth.max(16)).max(1)).max(tile)
}

/// The packed columns of all machines, and the order of their rows.
pub(super) struct KernelColumns<'a, K> {
    pub(super) class_blocks: Vec<ClassBlock<'a, K>>,
    pub(super) order: Vec<usize>,
    /// K_ii by position.
    pub(super) diagonal: Vec<f64>,
    depth: usize,
    pub(super) values: Values,
    start: Stopwatch,
}

impl<'a, K: KernelValue> KernelColumns<'a, K> {
    /// Packs the rows in the given order, divided into class blocks of the given sizes; the largest machine has
    /// `machine_size` variables.
    pub(super) fn new(
        training: &Training<'a>,
        values: Values,
        order: Vec<usize>,
        sizes: &[usize],
        machine_size: usize,
    ) -> Result<Self> {
        let start = Stopwatch::start();
        let &Training { ref rows, params, ctx, .. } = training;
        let mut none = rows.kernel_rows(&[], values.precision, ctx)?.storing(K::PRECISION);
        if !params.tuning.fast_sums {
            none = none.without_fast_sums();
        }
        let mut end = 0;
        let packed = sizes.iter().map(|&size| {
            end += size;
            let positions = end - size..end;
            let source = none.with_columns(&order[positions.clone()], ctx)?;
            Ok(ClassBlock { positions, source, stored: StoredRows::None })
        });
        let mut class_blocks = packed.collect::<Result<Vec<_>>>()?;
        let depth = depth(rows.kernel, rows.rows);
        if is_cached(depth, machine_size, params) {
            let packed: usize = class_blocks.iter().map(|s| s.source.bytes()).sum();
            let per_column = params.cache_bytes.saturating_sub(packed) / order.len().max(1);
            for class_block in &mut class_blocks {
                let len = class_block.positions.len();
                let cache = RowCache::new(order.len(), len, per_column * len, params.tuning.max_block)?;
                class_block.stored = StoredRows::Cache(cache);
            }
        }
        let diagonal = rows.diagonal(&order);
        Ok(Self { class_blocks, order, diagonal, depth, values, start })
    }

    /// Creates the columns of a matrix, whose positions are those of `order`.
    pub(super) fn of_matrix(
        training: &Training<'a>,
        values: Values,
        order: Vec<usize>,
        sizes: &[usize],
        matrix: &'a KernelMatrix<K>,
    ) -> Result<Self> {
        let start = Stopwatch::start();
        let &Training { ref rows, ctx, .. } = training;
        let none = rows.kernel_rows(&[], values.precision, ctx)?.storing(K::PRECISION);
        let mut end = 0;
        let class_blocks = sizes.iter().map(|&size| {
            end += size;
            let source = none.with_columns(&[], ctx)?;
            Ok(ClassBlock { positions: end - size..end, source, stored: StoredRows::Matrix(matrix) })
        });
        let class_blocks = class_blocks.collect::<Result<_>>()?;
        let diagonal = rows.diagonal(&order);
        Ok(Self { class_blocks, order, diagonal, depth: depth(rows.kernel, rows.rows), values, start })
    }

    /// Returns the same columns with kernel values in double precision.
    pub(super) fn in_double(
        self,
        training: &Training<'a>,
        machine_size: usize,
    ) -> Result<KernelColumns<'a, f64>> {
        let Self { order, values, class_blocks, .. } = self;
        let sizes: Vec<usize> = class_blocks.iter().map(|block| block.positions.len()).collect();
        drop(class_blocks);
        KernelColumns::new(training, values.in_double(), order, &sizes, machine_size)
    }

    /// Returns the training rows in some class blocks, the variables of a machine, and their K_ii.
    pub(super) fn variables(&self, class_blocks: &[usize]) -> (Vec<usize>, Vec<f64>) {
        let positions = || class_blocks.iter().flat_map(|&b| self.class_blocks[b].positions.clone());
        let rows = positions().map(|position| self.order[position]).collect();
        (rows, positions().map(|position| self.diagonal[position]).collect())
    }

    /// Returns the columns of some training rows with the given K_ii, without caches.
    pub(super) fn subset(&self, rows: Vec<usize>, diagonal: Vec<f64>, ctx: Context<'_>) -> Result<Self> {
        let source = self.class_blocks[0].source.with_columns(&rows, ctx)?;
        let class_blocks = vec![ClassBlock { positions: 0..rows.len(), source, stored: StoredRows::None }];
        Ok(Self {
            class_blocks,
            order: rows,
            diagonal,
            depth: self.depth,
            values: self.values,
            start: self.start,
        })
    }

    /// Returns what must be subtracted from the intercepts, (q,): kernel values may be those of rows about a center.
    /// Coefficients (m, q) are those of the listed training rows.
    pub(super) fn intercept_correction(&self, rows: &[usize], coefficients: ArrayView2<'_, f64>) -> Vec<f64> {
        let flat = coefficients.to_slice().expect("a new array is row-major");
        self.class_blocks[0].source.rows().intercept_correction(rows, flat, coefficients.ncols())
    }

    /// Returns the training rows by position, and the kernel rows of the first class block.
    pub(super) fn into_source(self) -> (Vec<usize>, KernelRows<'a>) {
        let source = self.class_blocks.into_iter().next().expect("there is a class block").source;
        (self.order, source)
    }

    /// Returns the number of features that a kernel value depends on.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns whether kernel rows are cached; otherwise values are computed again.
    pub(super) fn are_stored(&self) -> bool {
        self.class_blocks[0].is_stored()
    }

    /// Computes the missing kernel rows of each class block in batches, with a call of `check` between two batches. Class
    /// blocks are computed at the same time, so that no thread waits for the end of each.
    ///
    /// # Errors
    /// Returns the error of `check`, after which the cache has complete rows only.
    pub(super) fn fetch(
        &mut self,
        positions: &[Vec<usize>],
        ctx: Context<'_>,
        check: impl Fn() -> Result<()> + Sync,
    ) -> Result<()> {
        let Self { class_blocks, order, depth, .. } = self;
        let mut pairs: Vec<_> = class_blocks.iter_mut().zip(positions).collect();
        ctx.try_for_each_chunk(&mut pairs, 1, |_, pair| {
            let (class_block, positions) = &mut pair[0];
            class_block.fetch(positions, order, *depth, ctx, &check)
        })
    }

    /// Returns the cost up to now.
    pub(super) fn effort(&self) -> Effort {
        let caches = || self.class_blocks.iter().filter_map(ClassBlock::cache);
        Effort {
            // Counted for all class blocks together.
            kernel_values: self.class_blocks[0].source.values_computed(),
            cache_hits: caches().map(|cache| cache.hits).sum(),
            cache_misses: caches().map(|cache| cache.misses).sum(),
            seconds: self.start.seconds(),
        }
    }
}

/// Returns whether kernel rows are cached, from the depth of a kernel value and the number of variables of the largest
/// machine.
pub(super) fn is_cached(depth: usize, machine_size: usize, params: &SvmParams) -> bool {
    depth > params.tuning.cheap_kernel && machine_size > params.tuning.max_whole
}

/// Estimates the number of features that a kernel value depends on.
pub(super) fn depth(kernel: KernelFunction<'_>, rows: Rows<'_>) -> usize {
    match kernel {
        KernelFunction::BuiltIn(Kernel::Precomputed) => return 0,
        KernelFunction::Blocks(_) => return CALLBACK_DEPTH,
        KernelFunction::BuiltIn(_) => {}
    }
    if !is_packed_sparse(rows) {
        return rows.cols();
    }
    let sample = rows.rows().clamp(1, 256);
    let mut stored = 0;
    for i in 0..sample.min(rows.rows()) {
        stored += rows.entries(i * rows.rows() / sample);
    }
    // A sparse entry costs about as much as two dense ones.
    2 * stored / sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_many_features_do_not_delay_the_next_check() {
        // Ten billion multiply-adds take a core less than a second.
        for (columns, depth) in [(3_000, 200_000), (1_000, 500_000), (100_000, 784), (50, 20)] {
            let rows = rows_between_checks(columns, depth);
            assert!(rows * columns * depth <= 10_000_000_000, "{columns} {depth}: {rows} rows");
            assert!(rows >= 12);
        }
    }
}
