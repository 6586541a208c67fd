//! Tiles of kernel values: blocks of rows against packed panels, and the solver's source of kernel rows.

use super::Kernel;
use super::function::{BLOCK, DIAGONAL, KernelBlocks, KernelFunction};
use super::pack::{Panels, RowBlock, method};
use super::pair::pair_with_itself;
use super::standardization::{CoefficientSum, Precision, Standardization};
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::fast_gauss::{GaussSum, GaussTargets};
use crate::memory::{self, TryCollect, TryToVec, try_vec, try_with_capacity};
use crate::simd::Real;
use crate::simd::blas::{Stored, add_rows};
use crate::simd::bytes::byte_tile;
use crate::simd::epilogue::finish_tile;
use crate::simd::micro::panel_tile;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the memory of this file is for.
const VALUES: &str = "kernel values";
/// Most rows of a tile.
const TILE_ROWS: usize = 96;

/// Calls `sink(first_row, rows, panel, tile)` for every tile of K(block, panels[range]); a tile has one line of
/// `panels.width()` values per row. At most `max_rows` rows a tile.
pub(super) fn for_each_tile<T: Real>(
    block: &RowBlock<T>,
    panels: &Panels<T>,
    range: std::ops::Range<usize>,
    max_rows: usize,
    mut sink: impl FnMut(usize, usize, usize, &[T]),
) -> Result<()> {
    let Some(method) = method::<T>(panels.standardization().kernel()) else { return Ok(()) };
    let width = panels.width();
    // Half of a second-level cache for the rows, so that they stay while the panels pass by.
    let step = max_rows.min((1 << 19) / block.row_bytes().max(1)).clamp(12, TILE_ROWS);
    let mut tile = try_vec![T::ZERO; step.min(block.len()) * width]?;
    let mut slots = panels.slots()?;
    let bytes = panels.bytes_of().zip(block.bytes());
    let bytes = bytes.map(|(panels_of, rows)| {
        (panels_of, panels_of.unit.measure(panels.standardization().kernel()), rows.view())
    });
    let lengths = try_vec![T::ZERO; if bytes.is_some() { step.max(width) } else { 0 }]?;
    for first in (0..block.len()).step_by(step) {
        let rows = step.min(block.len() - first);
        for p in range.clone() {
            if let Some(present) = panels.present(p) {
                slots.enter(present);
            }
            let out = &mut tile[..rows * width];
            if let Some((bytes, measure, of_block)) = bytes {
                byte_tile(of_block, first, bytes.panel(p), measure, bytemuck::cast_slice_mut(out));
                finish_tile(method.1, &lengths[..rows], &lengths[..width], out);
            } else {
                let block = (block.view(&slots), &*block.norms);
                panel_tile(method, block, first, panels.panel(p), out);
            }
            sink(first, rows, p, &tile);
            if let Some(present) = panels.present(p) {
                slots.leave(present);
            }
        }
    }
    Ok(())
}

/// Panels of a task: about a quarter of a second-level cache, and never so many that threads idle.
fn group_size<T: Real>(panels: &Panels<T>, ctx: Context<'_>) -> usize {
    let panel_bytes = panels.bytes() / panels.count().max(1);
    ((1 << 19) / panel_bytes.max(1)).clamp(1, 16).min(panels.count().div_ceil(4 * ctx.threads()).max(1))
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
    function: KernelFunction<'a>,
    precision: Precision,
    /// What values are rounded to before they are summed.
    kept: Precision,
    source: Rows<'a>,
    standardization: Arc<Standardization>,
    packed: Packed<'a>,
    columns: usize,
    /// The columns, for kernels whose sums are those of Gaussians in few columns.
    gauss: Option<GaussTargets>,
    /// Kernel values computed, by this source and by those made of it.
    computed: Arc<AtomicU64>,
}

impl<'a> KernelRows<'a> {
    /// Packs the rows named in `columns`, in that order. Holds about one single-precision copy of them.
    pub fn new<'r: 'a>(
        kernel: impl Into<KernelFunction<'a>>,
        source: Rows<'r>,
        columns: &[usize],
        precision: Precision,
        ctx: Context<'_>,
    ) -> Result<Self> {
        Self::with_coefficients(kernel, source, columns, precision, CoefficientSum::Any, ctx)
    }

    /// As [`KernelRows::new`]; values of the linear kernel are those of rows about a centre where coefficients sum to zero.
    pub(crate) fn with_coefficients<'r: 'a>(
        kernel: impl Into<KernelFunction<'a>>,
        source: Rows<'r>,
        columns: &[usize],
        precision: Precision,
        sums: CoefficientSum,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (function, source) = (kernel.into(), source.reborrow());
        let mut standardization = Standardization::with_coefficients(&function.built_in(), source, sums)?;
        if precision == Precision::Single {
            standardization = standardization.with_bytes(source, ctx);
        }
        let standardization = Arc::new(standardization);
        let gauss = match function {
            KernelFunction::BuiltIn(kernel) => GaussTargets::new(&kernel, source),
            KernelFunction::Blocks(_) => None,
        };
        let packed = Packed::Precomputed(Vec::new());
        let computed = Arc::default();
        let kept = Precision::Single;
        let empty =
            Self { function, precision, kept, source, standardization, packed, columns: 0, gauss, computed };
        empty.with_columns(columns, ctx)
    }

    /// The same kernel, rows and centre with other columns.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn with_columns(&self, columns: &[usize], ctx: Context<'_>) -> Result<Self> {
        let packed = match (self.function, self.precision) {
            (KernelFunction::Blocks(blocks), _) => Packed::Blocks(blocks, columns.try_to_vec()?),
            (KernelFunction::BuiltIn(Kernel::Precomputed), _) => Packed::Precomputed(columns.try_to_vec()?),
            (_, Precision::Single) => {
                Packed::Single(Panels::pack(self.source, columns, &self.standardization, ctx)?)
            }
            (_, Precision::Double) => {
                Packed::Double(Panels::pack(self.source, columns, &self.standardization, ctx)?)
            }
        };
        let (standardization, computed) = (Arc::clone(&self.standardization), Arc::clone(&self.computed));
        let gauss = self.gauss.as_ref().map(|gauss| gauss.with_rows(self.source, columns)).transpose()?;
        Ok(Self { packed, columns: columns.len(), standardization, gauss, computed, ..*self })
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Kernel values computed so far, those of sources made by [`KernelRows::with_columns`] included.
    pub fn values_computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// Bytes held.
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
                for (&row, out) in rows.iter().zip(out) {
                    let mut values = try_vec![0.0; self.source.cols()]?;
                    self.source.for_each_in_row(row, |k, v| values[k] = v);
                    for (out, &column) in out.iter_mut().zip(columns) {
                        *out = O::from_f64(values[column]);
                    }
                }
            }
            Packed::Blocks(blocks, columns) => {
                let count = (BLOCK / columns.len()).max(1);
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
        let block = panels.block(self.source, rows)?;
        let tasks = self.columns.div_ceil(chunk);
        let mut parts: Vec<Vec<&mut [O]>> = (0..tasks)
            .map(|_| try_with_capacity("the lines of a block", rows.len()))
            .try_collect_results()?;
        for row in out.iter_mut() {
            for (part, piece) in parts.iter_mut().zip(row.chunks_mut(chunk)) {
                part.push(piece);
            }
        }
        ctx.try_for_each_chunk(&mut parts, 1, |task, part| {
            let panel_range = task * group..panels.count().min((task + 1) * group);
            for_each_tile(&block, panels, panel_range, TILE_ROWS, |first, count, p, tile| {
                let from = (p - task * group) * panels.width();
                for (line, out) in tile.chunks_exact(panels.width()).zip(&mut part[0][first..first + count]) {
                    let to = out.len().min(from + panels.width());
                    for (out, value) in out[from..to].iter_mut().zip(line) {
                        *out = O::from_f64(value.to_f64());
                    }
                }
            })
        })
    }

    /// The same rows, kernel and centre in double precision, with other columns; what is computed is not counted.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn in_double(&self, columns: &[usize], ctx: Context<'_>) -> Result<Self> {
        let double = Self {
            precision: Precision::Double,
            kept: Precision::Double,
            standardization: Arc::clone(&self.standardization),
            packed: Packed::Precomputed(Vec::new()),
            gauss: None,
            computed: Arc::default(),
            ..*self
        };
        double.with_columns(columns, ctx)
    }

    /// The same for a solver that keeps kernel values in a precision; in double precision they are computed in it.
    pub(crate) fn keeping(self, kept: Precision) -> Self {
        assert!(kept == Precision::Single || self.precision == Precision::Double);
        Self { kept, ..self }
    }

    /// The same, with every kernel value of a sum computed.
    pub(crate) fn without_fast_sums(self) -> Self {
        Self { gauss: None, ..self }
    }

    /// A sum over rows that is made without a look at every pair; `None` where all kernel values cost less.
    pub(crate) fn fast_sum(
        &self,
        rows: &[usize],
        weights: &[f64],
        ctx: Context<'_>,
    ) -> Result<Option<GaussSum<'_>>> {
        let Some(gauss) = &self.gauss else { return Ok(None) };
        gauss.sum((self.source, rows), weights, self.kept == Precision::Double, ctx)
    }

    /// `out[t] += sum_i weights[i] k(x_rows[i], x_t)` over all columns t, without storing a kernel value: the very values
    /// that [`KernelRows::compute`] writes in the precision that they are kept in, sums in double; or sums in double precision to about ten
    /// digits of the weights near by, where Gaussians in few columns are summed without a look at every pair (`fast_gauss`).
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
            Packed::Precomputed(_) | Packed::Blocks(..) if self.kept == Precision::Double => {
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
        for (rows, weights) in rows.chunks(64).zip(weights.chunks(64)) {
            let mut values: Vec<O> = memory::try_zeros(VALUES, rows.len() * self.columns)?;
            let mut lines: Vec<&mut [O]> = values.chunks_exact_mut(self.columns).try_collect_vec()?;
            self.compute(rows, &mut lines, ctx)?;
            let lines: Vec<&[O]> = values.chunks_exact(self.columns).try_collect_vec()?;
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
        let block = panels.block(self.source, rows)?;
        let group = group_size(panels, ctx);
        let width = panels.width();
        ctx.try_for_each_chunk(out, group * width, |task, out| {
            let range = task * group..panels.count().min((task + 1) * group);
            let mut space = Vec::new();
            let add = |first: usize, count: usize, p: usize, tile: &[T]| {
                let from = (p - task * group) * width;
                let to = out.len().min(from + width);
                if self.kept == Precision::Double {
                    let mut lines: [&[T]; TILE_ROWS] = [&[]; TILE_ROWS];
                    for (line, tile) in lines.iter_mut().zip(tile[..count * width].chunks_exact(width)) {
                        *line = tile;
                    }
                    add_rows(&weights[first..first + count], &lines[..count], 0, &mut out[from..to]);
                    return;
                }
                let single = T::singles(&tile[..count * width], &mut space);
                let mut lines: [&[f32]; TILE_ROWS] = [&[]; TILE_ROWS];
                for (line, tile) in lines.iter_mut().zip(single.chunks_exact(width)) {
                    *line = tile;
                }
                add_rows(&weights[first..first + count], &lines[..count], 0, &mut out[from..to]);
            };
            for_each_tile(&block, panels, range, TILE_ROWS, add)
        })
    }

    /// What outputs computed with these values are larger than those of the kernel, (q,): products of the centre with the
    /// weights of coefficients (m, q) of rows of the source.
    pub(crate) fn intercept_correction(
        &self,
        rows: &[usize],
        coefficients: &[f64],
        q: usize,
    ) -> Result<Vec<f64>> {
        if self.function.built_in() != Kernel::Linear {
            return try_vec![0.0; q];
        }
        self.standardization.centre_products(self.source, rows, coefficients, q)
    }

    /// How large rounding is in the kernel values of rows of the source, relative to each other.
    pub(crate) fn scales(&self, rows: &[usize]) -> Result<Vec<f64>> {
        let length = |row: usize| {
            let (mut squared, mut l1) = (0.0, 0.0);
            self.standardization.for_each(self.source, row, |_, v| {
                squared += v * v;
                l1 += v.abs();
            });
            (squared, l1)
        };
        match self.function.built_in() {
            Kernel::Rbf { .. } => rows.iter().map(|&row| 1.0 + length(row).0).try_collect_vec(),
            Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => {
                rows.iter().map(|&row| 1.0 + length(row).1).try_collect_vec()
            }
            Kernel::Linear | Kernel::Polynomial { .. } => self.diagonal(rows),
            Kernel::Sigmoid { .. } | Kernel::Precomputed => try_vec![1.0; rows.len()],
        }
    }

    /// k(x_i, x_i) of rows of the source, exactly.
    pub fn diagonal(&self, rows: &[usize]) -> Result<Vec<f64>> {
        let Packed::Blocks(blocks, _) = self.packed else {
            let kernel = self.function.built_in();
            if kernel == Kernel::Linear {
                return rows
                    .iter()
                    .map(|&row| self.standardization.squared_length(self.source, row))
                    .try_collect_vec();
            }
            return rows.iter().map(|&row| pair_with_itself(&kernel, self.source, row)).try_collect_vec();
        };
        let mut diagonal = try_with_capacity("the diagonal of the kernel matrix", rows.len())?;
        let mut values = try_vec![0.0; DIAGONAL * DIAGONAL]?;
        for rows in rows.chunks(DIAGONAL) {
            let n = rows.len();
            blocks.fill(rows, rows, &mut values[..n * n]);
            diagonal.extend((0..n).map(|i| values[i * n + i]));
        }
        Ok(diagonal)
    }
}
