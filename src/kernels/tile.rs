//! Tiles of kernel values: blocks of rows against packed panels, and [`KernelRows`], the solver's source of kernel rows.
//!
//! Problem: a solver asks for a few rows of K at a time, against a fixed list of columns. The columns are packed once into panels;
//! a block of rows is packed for each call, and stays in the second-level cache while groups of panels pass by. Values of
//! precomputed kernels and of user-defined functions come through the same interface, and products with K in few columns
//! are sums of Gaussians (`fast_gauss`) if that costs less.
//!
//! Invariant: a value has the same bits in every tile, for any list of rows or columns and any number of threads.
//!
//! Cost: rows x columns kernel values for [`KernelRows::compute`]; memory one packed copy of the columns, one tile a thread.

use super::Kernel;
use super::distances::{DistanceWorkspace, squared_distances};
use super::function::{KernelBlocks, KernelFunction, MAX_BLOCK_VALUES};
use super::overflow_check::Precision;
use super::pack::{Panels, RowBlock};
use super::prepared::PreparedRows;
use super::standardization::CoefficientSum;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::fast_gauss::{GaussSum, GaussTargets};
use crate::memory::{self, try_vec, try_with_capacity};
use crate::simd::Real;
use crate::simd::blas::{Stored, add_rows};
use crate::simd::bytes::byte_tile;
use crate::simd::epilogue::finish_tile;
use crate::simd::micro::{Measure, panel_tile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum number of tasks of a thread, if there are enough panels: the last ones end at about the same time.
const TASKS_PER_THREAD: usize = 16;
/// Context reported when the allocation of kernel values fails.
const VALUES: &str = "kernel values";
/// Maximum number of rows of a tile.
const MAX_TILE_ROWS: usize = 96;
/// Minimum number of rows of a tile unless a block has fewer: those of a register tile.
pub(crate) const MIN_TILE_ROWS: usize = 12;
/// Rows that one task packs.
const ROWS_PER_BLOCK: usize = 2 * MAX_TILE_ROWS;
/// Rows of a product with values that are not computed in tiles.
const PRODUCT_ROWS: usize = 64;

/// Returns the number of rows of a tile: they take half of a second-level cache, so that they stay while the panels pass by.
pub(crate) fn rows_per_tile(row_bytes: usize) -> usize {
    ((1 << 19) / row_bytes.max(1)).clamp(MIN_TILE_ROWS, MAX_TILE_ROWS)
}

/// Calls `sink(first_row, rows, panel, tile)` for every tile of K(block, panels[range]). A tile has one line of
/// `panels.width()` values per row, and at most `max_rows` rows.
pub(super) fn for_each_tile<T: Real>(
    block: &RowBlock<T>,
    panels: &Panels<T>,
    range: std::ops::Range<usize>,
    max_rows: usize,
    mut sink: impl FnMut(usize, usize, usize, &[T]),
) -> Result<()> {
    let kernel = panels.standardization().kernel();
    let Some(method) = panels.method() else { return Ok(()) };
    let width = panels.width();
    let step = rows_per_tile(block.row_bytes()).min(max_rows).max(MIN_TILE_ROWS);
    let mut tile = try_vec![T::ZERO; step.min(block.len()) * width]?;
    let mut slots = panels.slots()?;
    let (finds_near_rows, mut workspace) =
        (method.0 == Measure::SquaredL2 && panels.uses_products(), DistanceWorkspace::default());
    let bytes = panels.byte_panels().zip(block.bytes());
    let bytes = bytes.map(|(panels, rows)| (panels, panels.unit.measure(kernel), rows.view()));
    // The lengths are in the measure of bytes already.
    let zeros = vec![T::ZERO; if bytes.is_some() { step.max(width) } else { 0 }];
    for first in (0..block.len()).step_by(step) {
        let rows = step.min(block.len() - first);
        for p in range.clone() {
            let features = panels.features(p);
            let slots = slots.enter(features);
            let out = &mut tile[..rows * width];
            if let Some((panels, measure, rows_of_bytes)) = bytes {
                byte_tile(rows_of_bytes, first, panels.panel(p), measure, bytemuck::cast_slice_mut(out));
                finish_tile(method.1, &zeros[..rows], &zeros[..width], out);
            } else if finds_near_rows {
                let block_rows = (block.view(&slots), &*block.norms);
                squared_distances(block_rows, first, panels.panel(p), features, out, &mut workspace);
                finish_tile(method.1, &block.norms[first..first + rows], panels.panel(p).norms, out);
            } else {
                panel_tile(method, (block.view(&slots), &block.norms), first, panels.panel(p), out);
            }
            sink(first, rows, p, &tile);
        }
    }
    Ok(())
}

/// Writes values as those of another type, which may be the same. A line of a tile is short: pieces of constant length are
/// copied without a call.
#[inline]
fn write_values<T: Real, O: Real>(values: &[T], out: &mut [O]) {
    const PIECE: usize = 16;
    if size_of::<T>() == size_of::<O>() {
        let values: &[O] = bytemuck::cast_slice(values);
        let (pieces, remainder) = values.as_chunks::<PIECE>();
        let (out_pieces, out_remainder) = out.as_chunks_mut::<PIECE>();
        out_pieces.iter_mut().zip(pieces).for_each(|(out, piece)| *out = *piece);
        out_remainder.iter_mut().zip(remainder).for_each(|(out, value)| *out = *value);
    } else {
        out.iter_mut().zip(values).for_each(|(out, value)| *out = O::from_f64(value.to_f64()));
    }
}

/// Returns the number of panels of a task: about a quarter of a second-level cache, but enough tasks for threads to end at
/// about the same time.
fn group_size<T: Real>(panels: &Panels<T>, ctx: Context<'_>) -> usize {
    let panel_bytes = panels.bytes() / panels.count().max(1);
    ((1 << 19) / panel_bytes.max(1))
        .clamp(1, 16)
        .min(panels.count().div_ceil(TASKS_PER_THREAD * ctx.threads()).max(1))
}

/// A precision that kernel values are written in: `f32` or `f64`.
#[allow(private_bounds)]
pub trait Value: Real {}
impl Value for f32 {}
impl Value for f64 {}

enum Packed<'a> {
    Single(Panels<f32>),
    Double(Panels<f64>),
    Precomputed(Vec<usize>),
    Blocks(&'a dyn KernelBlocks, Vec<usize>),
}

/// Kernel rows k(x_i, x_t) of one training set against a fixed list of columns, computed in batches.
pub struct KernelRows<'a> {
    rows: PreparedRows<'a>,
    precision: Precision,
    /// The precision to which values are rounded before they are summed.
    stored: Precision,
    packed: Packed<'a>,
    columns: usize,
    /// The columns as targets of sums of Gaussians in few columns.
    gauss: Option<GaussTargets>,
    /// Number of kernel values computed by this source and by those made from it.
    computed: Arc<AtomicU64>,
}

impl<'a> KernelRows<'a> {
    /// Packs the rows named in `columns`, in that order. Holds about one single-precision copy of them.
    ///
    /// # Errors
    /// [`Error::Param`](crate::Error::Param) for rows outside the kernel's domain, [`Error::Memory`](crate::Error::Memory).
    pub fn new<'r: 'a>(
        kernel: impl Into<KernelFunction<'a>>,
        source: Rows<'r>,
        columns: &[usize],
        precision: Precision,
        ctx: Context<'_>,
    ) -> Result<Self> {
        PreparedRows::new(kernel, source, CoefficientSum::Any, ctx)?.kernel_rows(columns, precision, ctx)
    }

    pub(super) fn without_columns(rows: PreparedRows<'a>, precision: Precision) -> Self {
        let gauss = rows.gauss().cloned();
        let packed = Packed::Precomputed(Vec::new());
        Self {
            rows,
            precision,
            stored: Precision::Single,
            packed,
            columns: 0,
            gauss,
            computed: Arc::default(),
        }
    }

    /// Returns the same rows and kernel with other columns.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn with_columns(&self, columns: &[usize], ctx: Context<'_>) -> Result<Self> {
        let (rows, standardization) = (&self.rows, self.rows.standardization());
        let packed = match (rows.kernel, self.precision) {
            (KernelFunction::Blocks(blocks), _) => Packed::Blocks(blocks, columns.to_vec()),
            (KernelFunction::BuiltIn(Kernel::Precomputed), _) => Packed::Precomputed(columns.to_vec()),
            (_, Precision::Single) => Packed::Single(Panels::pack(
                rows.to_pack(ctx)?,
                columns,
                standardization,
                rows.unit(ctx)?,
                ctx,
            )?),
            (_, Precision::Double) => {
                Packed::Double(Panels::pack(rows.to_pack(ctx)?, columns, standardization, None, ctx)?)
            }
        };
        let gauss = self.gauss.as_ref().map(|gauss| gauss.with_rows(rows.rows, columns)).transpose()?;
        let (rows, computed) = (rows.clone(), Arc::clone(&self.computed));
        Ok(Self { rows, packed, columns: columns.len(), gauss, computed, ..*self })
    }

    /// Returns the prepared rows.
    pub(crate) fn rows(&self) -> &PreparedRows<'a> {
        &self.rows
    }

    /// Returns the number of columns, which is the length of a kernel row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of kernel values computed so far, including by sources made with [`KernelRows::with_columns`].
    pub fn values_computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes of the packed columns.
    pub fn bytes(&self) -> usize {
        let packed = match &self.packed {
            Packed::Single(panels) => panels.bytes(),
            Packed::Double(panels) => panels.bytes(),
            Packed::Precomputed(columns) | Packed::Blocks(_, columns) => columns.len() * size_of::<usize>(),
        };
        packed + self.gauss.as_ref().map_or(0, GaussTargets::bytes)
    }

    /// Fills `out[i]` with the kernel values of row `rows[i]` of the source against all columns, rounded to the
    /// precision of `out`.
    ///
    /// Cost: rows x columns kernel values, spread over groups of columns.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn compute<O: Value>(&self, rows: &[usize], out: &mut [&mut [O]], ctx: Context<'_>) -> Result<()> {
        assert_eq!(rows.len(), out.len());
        assert!(out.iter().all(|row| row.len() == self.columns));
        if rows.is_empty() || self.columns == 0 {
            return Ok(());
        }
        self.computed.fetch_add((rows.len() * self.columns) as u64, Ordering::Relaxed);
        match &self.packed {
            Packed::Single(panels) => self.tiles(panels, rows, out, ctx)?,
            Packed::Double(panels) => self.tiles(panels, rows, out, ctx)?,
            Packed::Precomputed(columns) => {
                self.rows.rows.for_each_dense(rows.iter().copied(), |place, values| {
                    for (out, &column) in out[place].iter_mut().zip(columns) {
                        *out = O::from_f64(values[column]);
                    }
                })?;
            }
            Packed::Blocks(blocks, columns) => {
                let count = (MAX_BLOCK_VALUES / columns.len()).max(1);
                for (rows, out) in rows.chunks(count).zip(out.chunks_mut(count)) {
                    let mut values = memory::try_zeros(VALUES, rows.len() * columns.len())?;
                    blocks.fill(rows, columns, &mut values);
                    for (line, out) in values.chunks_exact(columns.len()).zip(out) {
                        for (value, out) in line.iter().zip(out.iter_mut()) {
                            *out = O::from_f64(*value);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn tiles<T: Real, O: Real>(
        &self,
        panels: &Panels<T>,
        rows: &[usize],
        out: &mut [&mut [O]],
        ctx: Context<'_>,
    ) -> Result<()> {
        let group = group_size(panels, ctx);
        let chunk = group * panels.width();
        let blocks = self.packed_blocks(panels, rows, ctx)?;
        let tasks = self.columns.div_ceil(chunk);
        let mut parts: Vec<Vec<&mut [O]>> = (0..tasks)
            .map(|_| try_with_capacity("the lines of a block", rows.len()))
            .collect::<Result<_>>()?;
        for row in out.iter_mut() {
            for (part, piece) in parts.iter_mut().zip(row.chunks_mut(chunk)) {
                part.push(piece);
            }
        }
        ctx.try_for_each_chunk(&mut parts, 1, |task, part| {
            let panel_range = task * group..panels.count().min((task + 1) * group);
            for (block, lines) in blocks.iter().zip(part[0].chunks_mut(ROWS_PER_BLOCK)) {
                for_each_tile(block, panels, panel_range.clone(), MAX_TILE_ROWS, |first, count, p, tile| {
                    let from = (p - task * group) * panels.width();
                    for (line, out) in tile.chunks_exact(panels.width()).zip(&mut lines[first..first + count])
                    {
                        let to = out.len().min(from + panels.width());
                        write_values(&line[..to - from], &mut out[from..to]);
                    }
                })?;
            }
            Ok(())
        })
    }

    /// Packs rows for tiles with the panels, in blocks of [`ROWS_PER_BLOCK`] rows.
    fn packed_blocks<T: Real>(
        &self,
        panels: &Panels<T>,
        rows: &[usize],
        ctx: Context<'_>,
    ) -> Result<Vec<RowBlock<T>>> {
        let rows_of = |b: usize| &rows[b * ROWS_PER_BLOCK..rows.len().min((b + 1) * ROWS_PER_BLOCK)];
        let ctx = ctx.for_operations(rows.len() * self.rows.rows.cols());
        let source = self.rows.to_pack(ctx)?;
        ctx.try_map(rows.len().div_ceil(ROWS_PER_BLOCK), |b| panels.block(source, rows_of(b)))
    }

    /// Returns the same rows in double precision with other columns; values computed by it are not counted.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn in_double(&self, columns: &[usize], ctx: Context<'_>) -> Result<Self> {
        let double = Self::without_columns(self.rows.clone(), Precision::Double).storing(Precision::Double);
        double.without_fast_sums().with_columns(columns, ctx)
    }

    /// Returns the same source for a solver that stores kernel values in a precision.
    pub(crate) fn storing(self, stored: Precision) -> Self {
        assert!(stored == Precision::Single || self.precision == Precision::Double);
        Self { stored, ..self }
    }

    /// Returns the same source with every kernel value of a sum computed.
    pub(crate) fn without_fast_sums(self) -> Self {
        Self { gauss: None, ..self }
    }

    /// Returns a sum over rows by the fast Gauss transform; `None` if computing all kernel values costs less.
    pub(crate) fn fast_sum(
        &self,
        rows: &[usize],
        weights: &[f64],
        ctx: Context<'_>,
    ) -> Result<Option<GaussSum<'_>>> {
        let Some(gauss) = &self.gauss else { return Ok(None) };
        gauss.sum((self.rows.rows, rows), weights, self.stored == Precision::Double, ctx)
    }

    /// Adds `sum_i weights[i] k(x_rows[i], x_t)` to `out[t]` for all columns t, without storing a kernel value.
    ///
    /// Values are those of [`KernelRows::compute`] in the precision in which they are stored, sums are in double precision. Sums
    /// of Gaussians in few columns may be computed by the fast Gauss transform, to about ten digits of the weights nearby.
    pub fn add_product(
        &self,
        rows: &[usize],
        weights: &[f64],
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<()> {
        assert_eq!((rows.len(), self.columns), (weights.len(), out.len()));
        if rows.is_empty() || self.columns == 0 {
            return Ok(());
        }
        if let Some(sum) = self.fast_sum(rows, weights, ctx)? {
            sum.add(0, out, ctx);
            return Ok(());
        }
        match &self.packed {
            Packed::Single(panels) => self.product_tiles(panels, rows, weights, out, ctx)?,
            Packed::Double(panels) => self.product_tiles(panels, rows, weights, out, ctx)?,
            Packed::Precomputed(_) | Packed::Blocks(..) if self.stored == Precision::Double => {
                self.product_of_values::<f64>(rows, weights, out, ctx)?;
            }
            Packed::Precomputed(_) | Packed::Blocks(..) => {
                self.product_of_values::<f32>(rows, weights, out, ctx)?;
            }
        }
        Ok(())
    }

    fn product_of_values<O: Value + Stored>(
        &self,
        rows: &[usize],
        weights: &[f64],
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<()> {
        for (rows, weights) in rows.chunks(PRODUCT_ROWS).zip(weights.chunks(PRODUCT_ROWS)) {
            let mut values: Vec<O> = memory::try_zeros(VALUES, rows.len() * self.columns)?;
            let mut lines: Vec<&mut [O]> = values.chunks_exact_mut(self.columns).collect();
            self.compute(rows, &mut lines, ctx)?;
            let lines: Vec<&[O]> = values.chunks_exact(self.columns).collect();
            add_rows(weights, &lines, 0, out);
        }
        Ok(())
    }

    fn product_tiles<T: Real + Stored>(
        &self,
        panels: &Panels<T>,
        rows: &[usize],
        weights: &[f64],
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<()> {
        self.computed.fetch_add((rows.len() * self.columns) as u64, Ordering::Relaxed);
        let blocks = self.packed_blocks(panels, rows, ctx)?;
        let group = group_size(panels, ctx);
        let width = panels.width();
        ctx.try_for_each_chunk(out, group * width, |task, out| {
            let range = task * group..panels.count().min((task + 1) * group);
            let mut space = Vec::new();
            for (block, weights) in blocks.iter().zip(weights.chunks(ROWS_PER_BLOCK)) {
                for_each_tile(block, panels, range.clone(), MAX_TILE_ROWS, |first, count, p, tile| {
                    let from = (p - task * group) * width;
                    let to = out.len().min(from + width);
                    let (weights, tile, out) =
                        (&weights[first..first + count], &tile[..count * width], &mut out[from..to]);
                    if self.stored == Precision::Double {
                        add_lines(weights, tile, width, out);
                    } else {
                        add_lines(weights, T::singles(tile, &mut space), width, out);
                    }
                })?;
            }
            Ok(())
        })
    }

    /// Returns k(x_i, x_i) of the listed rows, exactly.
    pub fn diagonal(&self, rows: &[usize]) -> Vec<f64> {
        self.rows.diagonal(rows)
    }
}

impl<'a> PreparedRows<'a> {
    /// Packs the rows named in `columns`, in that order, as the columns of kernel rows.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn kernel_rows(
        &self,
        columns: &[usize],
        precision: Precision,
        ctx: Context<'_>,
    ) -> Result<KernelRows<'a>> {
        KernelRows::without_columns(self.clone(), precision).with_columns(columns, ctx)
    }
}

/// Adds the lines of a tile times their weights to `out`.
fn add_lines<T: Stored>(weights: &[f64], tile: &[T], width: usize, out: &mut [f64]) {
    let mut lines: [&[T]; MAX_TILE_ROWS] = [&[]; MAX_TILE_ROWS];
    for (line, values) in lines.iter_mut().zip(tile.chunks_exact(width)) {
        *line = values;
    }
    add_rows(weights, &lines[..weights.len()], 0, out);
}
