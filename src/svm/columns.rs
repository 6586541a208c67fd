//! The columns of all machines of a fit: training rows packed for kernel values, cut into *segments* (the classes of a
//! one-vs-one problem), each with a cache of kernel rows where a value costs more than to store it and to read it back.
//! A search that fits machines to the same rows many times has one matrix of all values instead.
//!
//! Rows and columns are *positions* in the order in which the fit has put the training rows. Every segment's cache holds
//! the same number of rows. Cost: the packed rows, and of the cache what they leave of the budget.

use super::matrix::KernelMatrix;
use super::params::SvmParams;
use super::precision::{KernelValue, Values};
use super::training::Training;
use crate::cache::RowCache;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{Kernel, KernelFunction, KernelRows, is_packed_sparse};
use crate::memory::TryCollect;
use ndarray::ArrayView2;
use std::ops::Range;
use std::time::Instant;

/// Multiply-adds between two checks of the monitor while rows are computed: a few tenths of a second.
const ROW_WORK: usize = 2_000_000_000;
/// What a value of a function of the caller's is taken to cost, in features: always worth a cache.
const FUNCTION_DEPTH: usize = 1 << 12;

/// What the fit of all machines together cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Kernel values computed.
    pub kernel_values: u64,
    /// Kernel rows that were asked for and cached.
    pub cache_hits: u64,
    /// Kernel rows that were asked for and computed.
    pub cache_misses: u64,
    /// Wall-clock time.
    pub seconds: f64,
}

impl Effort {
    /// This and what followed; clocks of what followed begin anew.
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
pub(super) struct Segment<'a, K> {
    pub(super) positions: Range<usize>,
    pub(super) source: KernelRows<'a>,
    pub(super) cache: Option<RowCache<K>>,
    /// All values there are, by position, in the place of a cache.
    matrix: Option<&'a KernelMatrix<K>>,
}

impl<K: KernelValue> Segment<'_, K> {
    /// A kernel row that is kept.
    pub(super) fn row(&self, position: usize) -> &[K] {
        match (self.matrix, &self.cache) {
            (Some(matrix), _) => &matrix.row(position)[self.positions.clone()],
            (None, Some(cache)) => cache.row(position),
            (None, None) => &[],
        }
    }

    /// Whether kernel rows are kept, else values are computed again.
    pub(super) fn is_kept(&self) -> bool {
        self.cache.is_some() || self.matrix.is_some()
    }
}

/// The columns of all machines, packed, and how the rows behind them are ordered.
pub(super) struct Columns<'a, K> {
    pub(super) segments: Vec<Segment<'a, K>>,
    pub(super) order: Vec<usize>,
    /// K_ii by position.
    pub(super) diagonal: Vec<f64>,
    depth: usize,
    pub(super) values: Values,
    start: Instant,
}

impl<'a, K: KernelValue> Columns<'a, K> {
    /// Packs the rows in the given order, cut into segments of the given sizes; the largest machine has `machine_size`
    /// variables.
    pub(super) fn new(
        training: &Training<'a>,
        values: Values,
        order: Vec<usize>,
        sizes: &[usize],
        machine_size: usize,
    ) -> Result<Self> {
        let start = Instant::now();
        let &Training { ref rows, params, ctx } = training;
        let mut none = rows.kernel_rows(&[], values.precision, ctx)?.storing(K::PRECISION);
        if !params.tuning.fast_sums {
            none = none.without_fast_sums();
        }
        let mut end = 0;
        let packed = sizes.iter().map(|&size| {
            end += size;
            let positions = end - size..end;
            let source = none.with_columns(&order[positions.clone()], ctx)?;
            Ok(Segment { positions, source, cache: None, matrix: None })
        });
        let mut segments = packed.try_collect_results()?;
        let depth = depth(rows.kernel, rows.rows);
        if is_cached(depth, machine_size, params) {
            let packed: usize = segments.iter().map(|s| s.source.bytes()).sum();
            let per_column = params.cache_bytes.saturating_sub(packed) / order.len().max(1);
            for segment in &mut segments {
                let len = segment.positions.len();
                segment.cache = Some(RowCache::new(order.len(), len, per_column * len)?);
            }
        }
        let diagonal = rows.diagonal(&order)?;
        Ok(Self { segments, order, diagonal, depth, values, start })
    }

    /// Columns whose kernel values are all there: those of `matrix`, whose positions stand for the rows of `order`.
    pub(super) fn of_matrix(
        training: &Training<'a>,
        values: Values,
        order: Vec<usize>,
        sizes: &[usize],
        matrix: &'a KernelMatrix<K>,
    ) -> Result<Self> {
        let start = Instant::now();
        let &Training { ref rows, ctx, .. } = training;
        let none = rows.kernel_rows(&[], values.precision, ctx)?.storing(K::PRECISION);
        let mut end = 0;
        let segments = sizes.iter().map(|&size| {
            end += size;
            let source = none.with_columns(&[], ctx)?;
            Ok(Segment { positions: end - size..end, source, cache: None, matrix: Some(matrix) })
        });
        let segments = segments.try_collect_results()?;
        let diagonal = rows.diagonal(&order)?;
        Ok(Self { segments, order, diagonal, depth: depth(rows.kernel, rows.rows), values, start })
    }

    /// The same columns with kernel values in double precision; these are let go.
    pub(super) fn in_double(
        self,
        training: &Training<'a>,
        sizes: &[usize],
        machine_size: usize,
    ) -> Result<Columns<'a, f64>> {
        let Self { order, values, segments, .. } = self;
        drop(segments);
        Columns::new(training, values.in_double(), order, sizes, machine_size)
    }

    /// The columns of some training rows alone, with these K_ii; no kernel row is kept.
    pub(super) fn part(&self, rows: Vec<usize>, diagonal: Vec<f64>, ctx: Context<'_>) -> Result<Self> {
        let source = self.segments[0].source.with_columns(&rows, ctx)?;
        let segments = vec![Segment { positions: 0..rows.len(), source, cache: None, matrix: None }];
        Ok(Self {
            segments,
            order: rows,
            diagonal,
            depth: self.depth,
            values: self.values,
            start: self.start,
        })
    }

    /// What intercepts are too large by, (q,): kernel values may be those of rows about a centre. Coefficients (m, q) are
    /// those of the listed training rows.
    pub(super) fn intercept_correction(
        &self,
        rows: &[usize],
        coefficients: ArrayView2<'_, f64>,
    ) -> Result<Vec<f64>> {
        let flat = coefficients.to_slice().expect("a new array is row-major");
        self.segments[0].source.rows().intercept_correction(rows, flat, coefficients.ncols())
    }

    /// Training rows by position, and the rows of kernel values of the first segment.
    pub(super) fn into_source(self) -> (Vec<usize>, KernelRows<'a>) {
        let source = self.segments.into_iter().next().expect("there is a segment").source;
        (self.order, source)
    }

    /// Features that a kernel value touches.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether kernel rows are kept, else values are computed again.
    pub(super) fn are_kept(&self) -> bool {
        self.segments[0].is_kept()
    }

    /// Computes the missing kernel rows of each segment in batches, with a call of `check` between two of them.
    ///
    /// # Errors
    /// That of `check`, after which the cache holds complete rows only.
    pub(super) fn fetch(
        &mut self,
        wanted: &[Vec<usize>],
        ctx: Context<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        for (segment, wanted) in self.segments.iter_mut().zip(wanted) {
            let Some(cache) = &mut segment.cache else { continue };
            let mut missing = cache.claim(wanted);
            let batch = (ROW_WORK / (segment.positions.len() * self.depth.max(16)).max(1)).max(96);
            while !missing.is_empty() {
                let rest = missing.split_off(batch.min(missing.len()));
                let rows: Vec<usize> =
                    missing.iter().map(|&position| self.order[position]).try_collect_vec()?;
                segment.source.compute(&rows, &mut cache.slots_mut(&missing), ctx)?;
                missing = rest;
                if !missing.is_empty()
                    && let Err(stopped) = check()
                {
                    cache.forget(missing);
                    return Err(stopped);
                }
            }
        }
        Ok(())
    }

    /// What everything so far cost.
    pub(super) fn effort(&self) -> Effort {
        let caches = || self.segments.iter().filter_map(|s| s.cache.as_ref());
        Effort {
            // Counted for all segments together.
            kernel_values: self.segments[0].source.values_computed(),
            cache_hits: caches().map(|cache| cache.hits).sum(),
            cache_misses: caches().map(|cache| cache.misses).sum(),
            seconds: self.start.elapsed().as_secs_f64(),
        }
    }
}

/// Whether kernel rows are cached where a value touches `depth` features and the largest machine has so many variables.
pub(super) fn is_cached(depth: usize, machine_size: usize, params: &SvmParams) -> bool {
    depth > params.tuning.cheap && machine_size > params.tuning.whole
}

/// Features that a kernel value really touches, an estimate.
pub(super) fn depth(kernel: KernelFunction<'_>, rows: Rows<'_>) -> usize {
    match kernel {
        KernelFunction::BuiltIn(Kernel::Precomputed) => return 0,
        KernelFunction::Blocks(_) => return FUNCTION_DEPTH,
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
