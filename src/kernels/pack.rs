//! Rows of any layout and precision, repacked for the micro-kernel: column panels for one side of a tile, row blocks
//! for the other. Packing is the only place where data change precision, and where they move to their [`Standardization`].
//!
//! Nothing here is as long as sparse rows have columns: where those are many more than the entries, the columns that
//! any panel has are numbered, and the features of panels and blocks are these numbers.

use super::bytes::{ByteBlock, BytePanels};
use super::standardization::{Precision, Standardization, is_single};
use crate::context::Context;
use crate::data::{Element, Rows, row as dense_row};
use crate::error::Result;
use crate::fast_gauss;
use crate::kernels::{Kernel, KernelFunction};
use crate::memory::{self, TryCollect, try_vec, try_with_capacity};
use crate::simd::micro::{Block, Measure, PanelView, SlotMap, SparseBlock, panel_width};
use crate::simd::standardize::{squared_lengths, standardize};
use crate::simd::{Real, epilogue::Epilogue};
use crate::with_rows;
use std::sync::Arc;

/// How the micro-kernel computes a kernel; `None` for precomputed values.
pub(super) fn method<T: Real>(kernel: &Kernel) -> Option<(Measure, Epilogue<T>)> {
    let t = T::from_f64;
    Some(match *kernel {
        Kernel::Linear => (Measure::Inner, Epilogue::Identity),
        Kernel::Polynomial { degree, gamma, coef0 } => {
            (Measure::Inner, Epilogue::Power { gamma: t(gamma), coef0: t(coef0), degree })
        }
        Kernel::Rbf { gamma } => (Measure::Inner, Epilogue::Gauss { gamma: t(gamma) }),
        Kernel::Sigmoid { gamma, coef0 } => {
            (Measure::Inner, Epilogue::Tanh { gamma: t(gamma), coef0: t(coef0) })
        }
        Kernel::Laplacian { gamma } => (Measure::L1, Epilogue::Decay { gamma: t(gamma) }),
        Kernel::ChiSquared { gamma } => (Measure::ChiSquared, Epilogue::Decay { gamma: t(gamma) }),
        Kernel::Precomputed => return None,
    })
}

/// Bytes of `n` rows like these when they are packed in a precision, each once. Whether bytes will do is decided by some of
/// the rows.
pub(crate) fn packed_bytes(
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    n: usize,
    precision: Precision,
) -> Result<usize> {
    let kernel = kernel.built_in();
    if kernel == Kernel::Precomputed {
        return Ok(n * size_of::<usize>());
    }
    let points =
        if fast_gauss::is_applicable(&kernel, rows.cols()) { n * rows.cols() * size_of::<f64>() } else { 0 };
    let (number, width) = match precision {
        Precision::Single => (size_of::<f32>(), panel_width::<f32>()),
        Precision::Double => (size_of::<f64>(), panel_width::<f64>()),
    };
    let (given, lines) = (rows.rows(), n.div_ceil(width) * width);
    let looked_at: Vec<usize> =
        (0..given.min(LOOKED_AT)).map(|i| i * given / given.min(LOOKED_AT)).try_collect_vec()?;
    let some = rows.gather(&looked_at)?;
    let standardization = Standardization::of(&kernel, rows)?;
    if precision == Precision::Single
        && standardization.clone().with_bytes(some.view(), Context::SEQUENTIAL).unit().is_some()
    {
        return Ok(lines * (BytePanels::bytes_a_row(rows.cols()) + number));
    }
    if !standardization.is_sparse() {
        return Ok(points + number * lines * (rows.cols() + 1));
    }
    let (mut features, mut of_panel) = (0, Vec::new());
    let count = given.div_ceil(width);
    for panel in 0..count {
        of_panel.clear();
        for row in panel * width..given.min((panel + 1) * width) {
            rows.for_each_entry(row, |k, _| of_panel.push(k as u32));
        }
        of_panel.sort_unstable();
        of_panel.dedup();
        features += of_panel.len();
    }
    let bytes = features * (number * width + size_of::<u32>()) + 2 * number * count * width;
    Ok((bytes as f64 * n as f64 / given.max(1) as f64) as usize)
}

/// What the memory of this file is for.
const PACKED: &str = "packed rows";
/// Rows that an estimate looks at for bytes.
const LOOKED_AT: usize = 512;

/// Sparse rows with so many columns for each entry have them numbered.
const WIDE: usize = 2;

/// One side of a tile: rows packed as columns of panels.
pub(super) struct Panels<T> {
    standardization: Arc<Standardization>,
    features: usize,
    width: usize,
    data: Data<T>,
    /// `width` squared norms a panel, zero behind the last row.
    norms: Vec<T>,
}

/// The values of the panels, in each one line of `width` values for each of its features.
enum Data<T> {
    /// Dense rows: panels of equal size, one after the other.
    Dense(Vec<T>),
    /// Dense rows of multiples of a unit, in single precision.
    Bytes(BytePanels),
    /// Sparse rows: each panel has its own features, numbers of the columns where these are given, rising.
    Sparse(Vec<SparsePanel<T>>, Option<Vec<u32>>),
}

impl<T: Real> Panels<T> {
    /// Packs the listed rows in their order. Cost: one read of them.
    pub(super) fn pack(
        rows: Rows<'_>,
        order: &[usize],
        standardization: &Arc<Standardization>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let width = panel_width::<T>();
        let count = order.len().div_ceil(width);
        let mut norms = try_vec![T::ZERO; count * width]?;
        let panel_rows = |p: usize| &order[p * width..order.len().min((p + 1) * width)];
        let standardization = Arc::clone(standardization);
        let unit = standardization.unit().filter(|_| size_of::<T>() == size_of::<f32>());
        if standardization.is_sparse() && unit.is_none() {
            let mut panels =
                ctx.try_map(count, |p| SparsePanel::pack(&standardization, rows, panel_rows(p), width))?;
            for (norms, panel) in norms.chunks_exact_mut(width).zip(&panels) {
                norms.copy_from_slice(&panel.norms);
            }
            let stored: usize = panels.iter().map(|panel| panel.features.len()).sum();
            let columns =
                (rows.cols() > WIDE * stored + (1 << 16)).then(|| numbered(&mut panels, ctx)).transpose()?;
            let features = columns.as_ref().map_or(rows.cols(), |columns| columns.len() + 1);
            Ok(Self { standardization, features, width, data: Data::Sparse(panels, columns), norms })
        } else if let Some(unit) = unit {
            let panels = BytePanels::pack(unit, rows, order, width, ctx)?;
            let norms = panels.norms()?;
            Ok(Self { standardization, features: rows.cols(), width, data: Data::Bytes(panels), norms })
        } else {
            let size = rows.cols() * width;
            let mut data = memory::try_zeros(PACKED, count.saturating_mul(size))?;
            if size > 0 {
                let (centre, scale) = standardization.dense();
                ctx.try_for_each_chunk(&mut data, size, |p, panel| {
                    let list = panel_rows(p);
                    let mut lines = try_vec![T::ZERO; list.len() * rows.cols()]?;
                    with_rows!(&rows,
                        dense(view) => {
                            let rows: Vec<_> = list.iter().map(|&row| dense_row(view, row)).try_collect_vec()?;
                            standardize(&rows, centre, scale, &mut lines, centre.len());
                        },
                        csr(_s) => unreachable!("sparse rows are packed above"));
                    for (j, line) in lines.chunks_exact(rows.cols()).enumerate() {
                        for (out, &v) in panel[j..].iter_mut().step_by(width).zip(line) {
                            *out = v;
                        }
                    }
                    Ok(())
                })?;
                ctx.for_each_chunk(&mut norms, width, |p, norms| {
                    let panel = &data[p * size..(p + 1) * size];
                    let mut sums = vec![0.0; width]; // small: one number per row of a panel
                    for line in panel.chunks_exact(width) {
                        for (sum, v) in sums.iter_mut().zip(line) {
                            *sum += v.to_f64() * v.to_f64();
                        }
                    }
                    for (norm, sum) in norms.iter_mut().zip(sums) {
                        *norm = T::from_f64(sum);
                    }
                });
            }
            Ok(Self { standardization, features: rows.cols(), width, data: Data::Dense(data), norms })
        }
    }

    /// Where the rows were moved to.
    pub(super) fn standardization(&self) -> &Standardization {
        &self.standardization
    }

    /// Whether values of the rows packed can be computed in their precision, single precision that is.
    pub(super) fn is_single(&self) -> bool {
        self.bytes_of().is_some()
            || self.norms.iter().all(|norm| is_single(self.standardization.kernel(), norm.to_f64()))
    }

    /// Whether the values of a row of the block can be computed in the precision of the panels.
    pub(super) fn is_near(&self, block: &RowBlock<T>, row: usize) -> bool {
        if let Form::Bytes(bytes) = &block.form {
            return bytes.whole[row];
        }
        let norm = block.norms[row].to_f64();
        match self.standardization.kernel() {
            kernel if size_of::<T>() == size_of::<f32>() => is_single(kernel, norm),
            // Others show in the values.
            Kernel::Rbf { .. } => norm.is_finite(),
            _ => true,
        }
    }

    /// A map for the features of sparse panels.
    pub(super) fn slots(&self) -> Result<SlotMap> {
        SlotMap::new(if matches!(self.data, Data::Sparse(..)) { self.features } else { 0 })
    }

    /// Number of panels.
    pub(super) fn count(&self) -> usize {
        self.norms.len() / self.width
    }

    /// Columns of a panel.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let values = match &self.data {
            Data::Dense(values) => size_of_val(values.as_slice()),
            Data::Bytes(panels) => panels.bytes(),
            Data::Sparse(panels, _) => panels.iter().map(SparsePanel::bytes).sum(),
        };
        values + size_of_val(self.norms.as_slice())
    }

    /// The panels, where they are of bytes.
    pub(super) fn bytes_of(&self) -> Option<&BytePanels> {
        if let Data::Bytes(panels) = &self.data { Some(panels) } else { None }
    }

    /// One panel that is not of bytes, as the micro-kernel reads it.
    pub(super) fn panel(&self, p: usize) -> PanelView<'_, T> {
        let (values, baseline) = match &self.data {
            Data::Dense(values) => {
                let size = self.features * self.width;
                (&values[p * size..(p + 1) * size], None)
            }
            Data::Bytes(_) => (&[][..], None),
            Data::Sparse(panels, _) => (&*panels[p].values, Some(&*panels[p].baseline)),
        };
        PanelView { values, norms: &self.norms[p * self.width..(p + 1) * self.width], baseline }
    }

    /// The features of a sparse panel.
    pub(super) fn present(&self, p: usize) -> Option<&[u32]> {
        match &self.data {
            Data::Dense(_) | Data::Bytes(_) => None,
            Data::Sparse(panels, _) => Some(&panels[p].features),
        }
    }

    /// Rows in the form that the micro-kernel pairs with these panels.
    pub(super) fn block(&self, rows: Rows<'_>, list: &[usize]) -> Result<RowBlock<T>> {
        let features = self.features;
        if let Data::Sparse(_, columns) = &self.data {
            let number = |k: usize| match columns {
                // One that no panel has is behind them all.
                Some(columns) => columns.binary_search(&(k as u32)).unwrap_or(columns.len()),
                None => k,
            };
            let mut entries = SparseBlock::new(features);
            entries.reserve(list.iter().map(|&row| rows.entries(row)).sum())?;
            let mut norms = try_with_capacity("norms of packed rows", list.len())?;
            for &row in list {
                let mut norm = 0.0;
                self.standardization.for_each(rows, row, |k, v| {
                    if v != 0.0 {
                        let value = T::from_f64(v);
                        norm += value.to_f64() * value.to_f64();
                        entries.push(number(k), value);
                    }
                });
                entries.end_row();
                norms.push(T::from_f64(norm));
            }
            return Ok(RowBlock { norms, form: Form::Sparse(entries) });
        }
        if let Data::Bytes(panels) = &self.data {
            let block = panels.block(rows, list)?;
            return Ok(RowBlock { norms: try_vec![T::ZERO; list.len()]?, form: Form::Bytes(block) });
        }
        // Rows a power of two apart would fall into the same few lines of the first cache.
        let stride = if features.is_multiple_of(64) && features > 0 { features + 16 } else { features };
        let mut data: Vec<T> = memory::try_zeros(PACKED, list.len().saturating_mul(stride))?;
        let mut norms = try_vec![T::ZERO; list.len()]?;
        let (centre, scale) = self.standardization.dense();
        with_rows!(&rows,
        dense(view) => {
            let lines: Vec<_> = list.iter().map(|&row| dense_row(view, row)).try_collect_vec()?;
            standardize(&lines, centre, scale, &mut data, stride);
        },
        csr(view) => if stride > 0 {
            for (out, &row) in data.chunks_exact_mut(stride).zip(list) {
                for (out, &c) in out.iter_mut().zip(centre) {
                    *out = T::from_f64(-c * scale);
                }
                view.for_each_in_row(row, |k, v| out[k] = T::from_f64((Element::to_f64(v) - centre[k]) * scale));
            }
        });
        squared_lengths(&data, stride, features, &mut norms);
        Ok(RowBlock { norms, form: Form::Dense { data, stride, depth: features } })
    }
}

/// The columns that any of the panels has, rising; their features become numbers of these.
fn numbered<T: Real>(panels: &mut [SparsePanel<T>], ctx: Context<'_>) -> Result<Vec<u32>> {
    let mut columns: Vec<u32> =
        memory::try_with_capacity(PACKED, panels.iter().map(|panel| panel.features.len()).sum())?;
    columns.extend(panels.iter().flat_map(|panel| panel.features.iter()));
    columns.sort_unstable();
    columns.dedup();
    ctx.for_each_chunk(panels, 1, |_, panel| {
        for feature in &mut panel[0].features {
            *feature = columns.partition_point(|column| column < feature) as u32;
        }
    });
    Ok(columns)
}

struct SparsePanel<T> {
    features: Vec<u32>,
    /// A line of zeros, to which absent features are directed, then a line for each feature.
    values: Vec<T>,
    norms: Vec<T>,
    baseline: Vec<T>,
}

impl<T: Real> SparsePanel<T> {
    fn pack(standardization: &Standardization, rows: Rows<'_>, list: &[usize], width: usize) -> Result<Self> {
        // More than enough for dense rows: what is not touched costs less than to count.
        let stored = list.iter().map(|&row| rows.stored(row)).sum();
        // Sorted are keys of feature and place, which are small; the places are already in the order of the columns.
        let (mut keys, mut entries) =
            (memory::try_with_capacity(PACKED, stored)?, memory::try_with_capacity(PACKED, stored)?);
        for (j, &row) in list.iter().enumerate() {
            standardization.for_each(rows, row, |k, v| {
                keys.push((k as u64) << 32 | entries.len() as u64);
                entries.push((j, T::from_f64(v)));
            });
        }
        keys.sort_unstable();
        let count = 1 + keys.windows(2).filter(|pair: &&[u64]| pair[0] >> 32 != pair[1] >> 32).count();
        // There are many panels: even what is small is asked for, and can be refused.
        let mut features = memory::try_with_capacity(PACKED, count)?;
        let mut values = memory::try_with_capacity(PACKED, (count + 1) * width)?;
        values.resize(width, T::ZERO);
        let (mut norms, mut baseline) =
            (memory::try_filled(PACKED, width, 0.0)?, memory::try_filled(PACKED, width, 0.0)?);
        for key in keys {
            let feature = (key >> 32) as u32;
            if features.last() != Some(&feature) {
                features.push(feature);
                values.resize(values.len() + width, T::ZERO);
            }
            let (j, value) = entries[(key & u64::from(u32::MAX)) as usize];
            let line = values.len() - width;
            values[line + j] = value;
            norms[j] += value.to_f64() * value.to_f64();
            baseline[j] += value.to_f64().abs();
        }
        let rounded = |sums: Vec<f64>| memory::try_collect(PACKED, sums.into_iter().map(T::from_f64));
        Ok(Self { features, values, norms: rounded(norms)?, baseline: rounded(baseline)? })
    }

    fn bytes(&self) -> usize {
        size_of_val(self.features.as_slice())
            + size_of_val(self.values.as_slice())
            + size_of_val(self.norms.as_slice())
            + size_of_val(self.baseline.as_slice())
    }
}

enum Form<T> {
    Dense { data: Vec<T>, stride: usize, depth: usize },
    Bytes(ByteBlock),
    Sparse(SparseBlock<T>),
}

/// The other side of a tile: rows packed as rows.
pub(super) struct RowBlock<T> {
    pub(super) norms: Vec<T>,
    form: Form<T>,
}

impl<T: Real> RowBlock<T> {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.norms.len()
    }

    /// Bytes of one row, roughly.
    pub(super) fn row_bytes(&self) -> usize {
        match &self.form {
            Form::Dense { stride, .. } => stride * size_of::<T>(),
            Form::Bytes(bytes) => bytes.row_bytes(),
            Form::Sparse(_) => 512,
        }
    }

    /// The rows, where they are of bytes.
    pub(super) fn bytes(&self) -> Option<&ByteBlock> {
        if let Form::Bytes(bytes) = &self.form { Some(bytes) } else { None }
    }

    /// Rows that are not of bytes as the micro-kernel reads them, against the panel that `slots` has entered.
    pub(super) fn view<'a>(&'a self, slots: &'a SlotMap) -> Block<'a, T> {
        match &self.form {
            Form::Dense { data, stride, depth } => Block::Dense { data, stride: *stride, depth: *depth },
            Form::Bytes(_) => Block::Dense { data: &[], stride: 0, depth: 0 },
            Form::Sparse(entries) => Block::Sparse { entries, slots },
        }
    }
}
