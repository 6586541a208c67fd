//! Rows of any layout and precision, repacked for the micro-kernel: column panels for one side of a tile, row blocks for
//! the other. Only packing changes the precision of numbers and standardizes rows.
//!
//! Memory does not grow with the number of columns of sparse rows: if the columns are many more than the entries, the
//! columns that any panel has are numbered, and panels and blocks name features by these numbers.

use super::bytes::{ByteBlock, BytePanels, Unit};
use super::distances;
use super::overflow_check::{MAX_PRODUCT_LENGTH, Precision, is_single};
use super::sparse_panel::{PACKED, SparsePanel, number_columns};
use super::standardization::{Standardization, is_packed_sparse};
use crate::context::Context;
use crate::data::{Element, Rows, row as dense_row};
use crate::error::Result;
use crate::fast_gauss;
use crate::kernels::{Kernel, KernelFunction};
use crate::memory::{self, try_vec};
use crate::simd::micro::{Block, Measure, PanelView, SlotMap, SparseBlock, panel_width};
use crate::simd::standardize::{squared_lengths, standardize};
use crate::simd::{Real, epilogue::Epilogue};
use crate::with_rows;
use std::sync::Arc;

/// Maximum number of rows in which an estimate of memory looks for a unit.
const MAX_ESTIMATE_ROWS: usize = 512;
/// Minimum number of columns of sparse rows for each entry of the panels at which columns are numbered.
const MIN_COLUMNS_PER_ENTRY: usize = 2;

/// Returns how the micro-kernel computes a kernel of rows that are not far from each other; `None` for precomputed values.
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
        Kernel::Matern { smoothness, gamma } => {
            (Measure::SquaredL2, Epilogue::Matern { rate: t(smoothness.rate(gamma)), smoothness })
        }
        Kernel::Precomputed => return None,
    })
}

/// Returns the number of bytes of `n` rows like these when each is packed once in a precision. Some of the rows decide whether
/// bytes suffice.
pub(crate) fn packed_bytes(
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    n: usize,
    precision: Precision,
) -> Result<usize> {
    let kernel = kernel.built_in();
    if kernel == Kernel::Precomputed {
        return Ok(n.saturating_mul(size_of::<usize>()));
    }
    let points = if fast_gauss::is_applicable(&kernel, rows.cols()) {
        n.saturating_mul(rows.cols() * size_of::<f64>())
    } else {
        0
    };
    let (number, width) = match precision {
        Precision::Single => (size_of::<f32>(), panel_width::<f32>()),
        Precision::Double => (size_of::<f64>(), panel_width::<f64>()),
    };
    let (n_rows, lines) = (rows.rows(), n.div_ceil(width).saturating_mul(width));
    let sample = n_rows.min(MAX_ESTIMATE_ROWS);
    let sampled_rows = rows.gather(&(0..sample).map(|i| i * n_rows / sample).collect::<Vec<_>>())?;
    if precision == Precision::Single
        && Unit::find(&kernel, sampled_rows.view(), Context::SEQUENTIAL).is_some()
    {
        return Ok(lines.saturating_mul(BytePanels::bytes_per_row(rows.cols()) + number));
    }
    if !is_packed_sparse(rows) {
        return Ok(lines.saturating_mul(number * (rows.cols() + 1)).saturating_add(points));
    }
    let (mut features, mut panel_features) = (0, Vec::new());
    let count = n_rows.div_ceil(width);
    for panel in 0..count {
        panel_features.clear();
        for row in panel * width..n_rows.min((panel + 1) * width) {
            rows.for_each_entry(row, |k, _| panel_features.push(k as u32));
        }
        panel_features.sort_unstable();
        panel_features.dedup();
        features += panel_features.len();
    }
    let bytes = features * (number * width + size_of::<u32>()) + 2 * number * count * width;
    Ok((bytes as f64 * n as f64 / n_rows.max(1) as f64) as usize)
}

/// One side of a tile: rows packed as columns of panels.
pub(super) struct Panels<T> {
    standardization: Arc<Standardization>,
    features: usize,
    width: usize,
    data: Data<T>,
    /// Squared norms, `width` for each panel; zero behind the last row.
    norms: Vec<T>,
    /// True if a row is longer than [`MAX_PRODUCT_LENGTH`].
    is_wide: bool,
}

/// The values of the panels: each has one line of `width` values for each of its features.
enum Data<T> {
    /// Dense rows: panels of equal size, one after the other.
    Dense(Vec<T>),
    /// Dense rows of multiples of a unit, in single precision.
    Bytes(BytePanels),
    /// Sparse rows: each panel has its own features; with a list of columns, rising, features are indices of this list.
    Sparse(Vec<SparsePanel<T>>, Option<Vec<u32>>),
}

impl<T: Real> Panels<T> {
    /// Packs the listed rows in their order, as bytes if a unit is given. Cost: one pass over the rows.
    pub(super) fn pack(
        rows: Rows<'_>,
        order: &[usize],
        standardization: &Arc<Standardization>,
        unit: Option<Unit>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (width, standardization) = (panel_width::<T>(), Arc::clone(standardization));
        let count = order.len().div_ceil(width);
        let panel_rows = |p: usize| &order[p * width..order.len().min((p + 1) * width)];
        if let Some(unit) = unit {
            let panels = BytePanels::pack(unit, rows, order, width, ctx)?;
            let norms = panels.norms();
            return Ok(Self {
                standardization,
                features: rows.cols(),
                width,
                data: Data::Bytes(panels),
                norms,
                is_wide: false,
            });
        }
        let mut norms = vec![T::ZERO; count * width];
        if standardization.is_sparse() {
            let interrupts = ctx.interrupts();
            let pack = |p| {
                interrupts.charge(panel_rows(p).iter().map(|&row| rows.stored(row)).sum())?;
                SparsePanel::pack(&standardization, rows, panel_rows(p), width)
            };
            let mut panels = ctx.try_map(count, pack)?;
            for (norms, panel) in norms.chunks_exact_mut(width).zip(&panels) {
                norms.copy_from_slice(&panel.norms);
            }
            let entries: usize = panels.iter().map(|panel| panel.features.len()).sum();
            let are_many = rows.cols() > MIN_COLUMNS_PER_ENTRY * entries + (1 << 16);
            let columns = are_many.then(|| number_columns(&mut panels, ctx)).transpose()?;
            let features = columns.as_ref().map_or(rows.cols(), |columns| columns.len() + 1);
            return Ok(Self::new(standardization, features, width, Data::Sparse(panels, columns), norms));
        }
        let (features, size) = (rows.cols(), rows.cols() * width);
        let mut data = memory::try_zeros(PACKED, count.saturating_mul(size))?;
        if size > 0 {
            let interrupts = ctx.interrupts();
            ctx.try_for_each_chunk(&mut data, size, |p, panel| {
                interrupts.charge(size)?;
                let list = panel_rows(p);
                let mut lines = try_vec![T::ZERO; list.len() * features]?;
                standardize_rows(&standardization, rows, list, &mut lines, features);
                for (j, line) in lines.chunks_exact(features).enumerate() {
                    for (out, &v) in panel[j..].iter_mut().step_by(width).zip(line) {
                        *out = v;
                    }
                }
                Ok(())
            })?;
            ctx.for_each_chunk(&mut norms, width, |p, norms| {
                let mut sums = vec![0.0; width];
                for line in data[p * size..(p + 1) * size].chunks_exact(width) {
                    for (sum, v) in sums.iter_mut().zip(line) {
                        *sum += v.to_f64() * v.to_f64();
                    }
                }
                for (norm, sum) in norms.iter_mut().zip(sums) {
                    *norm = T::from_f64(sum);
                }
            });
        }
        Ok(Self::new(standardization, features, width, Data::Dense(data), norms))
    }

    fn new(
        standardization: Arc<Standardization>,
        features: usize,
        width: usize,
        data: Data<T>,
        norms: Vec<T>,
    ) -> Self {
        let is_wide = norms.iter().any(|norm| norm.to_f64() > MAX_PRODUCT_LENGTH);
        Self { standardization, features, width, data, norms, is_wide }
    }

    /// Returns how the micro-kernel computes the kernel of the packed rows; `None` for precomputed values. Where rows are so far
    /// from each other that products would round equal rows apart, the RBF kernel is computed from `distances`.
    pub(super) fn method(&self) -> Option<(Measure, Epilogue<T>)> {
        match self.standardization.kernel() {
            Kernel::Rbf { gamma } if self.is_wide => {
                Some((Measure::SquaredL2, Epilogue::Decay { gamma: T::from_f64(*gamma) }))
            }
            kernel => method(kernel),
        }
    }

    pub(super) fn standardization(&self) -> &Standardization {
        &self.standardization
    }

    /// Returns whether single precision suffices for values of the packed rows.
    pub(super) fn is_single(&self) -> bool {
        self.byte_panels().is_some()
            || self.norms.iter().all(|norm| is_single(self.standardization.kernel(), norm.to_f64()))
    }

    /// Returns whether the precision of the panels suffices for the values of a row of the block.
    pub(super) fn suffices(&self, block: &RowBlock<T>, row: usize) -> bool {
        if let Form::Bytes(bytes) = &block.form {
            return bytes.is_exact[row];
        }
        let norm = block.norms[row].to_f64();
        match self.standardization.kernel() {
            kernel if size_of::<T>() == size_of::<f32>() => is_single(kernel, norm),
            Kernel::Rbf { .. } | Kernel::Matern { .. } => norm.is_finite(),
            // The square of a number may overflow where the kernel value does not. NaN may become a valid kernel value.
            _ => !norm.is_nan(),
        }
    }

    /// Returns a map for the features of sparse panels.
    pub(super) fn slots(&self) -> Result<SlotMap> {
        SlotMap::new(if matches!(self.data, Data::Sparse(..)) { self.features } else { 0 })
    }

    pub(super) fn count(&self) -> usize {
        self.norms.len() / self.width
    }

    /// Returns the number of columns of a panel.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn bytes(&self) -> usize {
        let values = match &self.data {
            Data::Dense(values) => size_of_val(values.as_slice()),
            Data::Bytes(panels) => panels.bytes(),
            Data::Sparse(panels, _) => panels.iter().map(SparsePanel::bytes).sum(),
        };
        values + size_of_val(self.norms.as_slice())
    }

    /// Returns whether squared distances are computed from products.
    pub(super) fn uses_products(&self) -> bool {
        matches!(self.data, Data::Sparse(..)) || self.features >= distances::MIN_FEATURES
    }

    /// Returns the panels if they are of bytes.
    pub(super) fn byte_panels(&self) -> Option<&BytePanels> {
        if let Data::Bytes(panels) = &self.data { Some(panels) } else { None }
    }

    /// Returns one panel that is not of bytes, as the micro-kernel reads it.
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

    /// Returns the features of a sparse panel; none for others, which have all.
    pub(super) fn features(&self, p: usize) -> &[u32] {
        if let Data::Sparse(panels, _) = &self.data { &panels[p].features } else { &[] }
    }

    /// Packs rows in the form that the micro-kernel pairs with these panels.
    pub(super) fn block(&self, rows: Rows<'_>, list: &[usize]) -> Result<RowBlock<T>> {
        let features = self.features;
        if let Data::Sparse(_, columns) = &self.data {
            let number = |k: usize| match columns {
                // Columns that no panel has share the number behind all others.
                Some(columns) => columns.binary_search(&(k as u32)).unwrap_or(columns.len()),
                None => k,
            };
            let mut entries = SparseBlock::new(features);
            entries.reserve(list.iter().map(|&row| rows.entries(row)).sum())?;
            let mut norms = Vec::with_capacity(list.len());
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
        let mut norms = vec![T::ZERO; list.len()];
        if let Data::Bytes(panels) = &self.data {
            return Ok(RowBlock { norms, form: Form::Bytes(panels.block(rows, list)?) });
        }
        // Rows a power of two apart would fall into the same few lines of the first cache.
        let stride = if features.is_multiple_of(64) && features > 0 { features + 16 } else { features };
        let mut data: Vec<T> = memory::try_zeros(PACKED, list.len().saturating_mul(stride))?;
        standardize_rows(&self.standardization, rows, list, &mut data, stride);
        squared_lengths(&data, stride, features, &mut norms);
        Ok(RowBlock { norms, form: Form::Dense { data, stride, depth: features } })
    }
}

/// Writes the listed rows, standardized, to lines `stride` apart.
fn standardize_rows<T: Real>(
    standardization: &Standardization,
    rows: Rows<'_>,
    list: &[usize],
    out: &mut [T],
    stride: usize,
) {
    let (centre, scale) = standardization.dense();
    with_rows!(&rows,
    dense(view) => {
        let rows: Vec<_> = list.iter().map(|&row| dense_row(view, row)).collect();
        standardize(&rows, centre, scale, out, stride);
    },
    csr(view) => if stride > 0 {
        for (out, &row) in out.chunks_exact_mut(stride).zip(list) {
            for (out, &c) in out.iter_mut().zip(centre) {
                *out = T::from_f64(-c * scale);
            }
            view.for_each_in_row(row, |k, v| out[k] = T::from_f64((Element::to_f64(v) - centre[k]) * scale));
        }
    });
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
    pub(super) fn len(&self) -> usize {
        self.norms.len()
    }

    /// Returns the approximate number of bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        match &self.form {
            Form::Dense { stride, .. } => stride * size_of::<T>(),
            Form::Bytes(bytes) => bytes.row_bytes(),
            Form::Sparse(_) => 512,
        }
    }

    /// Returns the rows if they are of bytes.
    pub(super) fn bytes(&self) -> Option<&ByteBlock> {
        if let Form::Bytes(bytes) = &self.form { Some(bytes) } else { None }
    }

    /// Returns rows that are not of bytes as the micro-kernel reads them, for the panel that `slots` has entered.
    pub(super) fn view<'a>(&'a self, slots: &'a SlotMap) -> Block<'a, T> {
        match &self.form {
            Form::Dense { data, stride, depth } => Block::Dense { data, stride: *stride, depth: *depth },
            Form::Bytes(_) => Block::Dense { data: &[], stride: 0, depth: 0 },
            Form::Sparse(entries) => Block::Sparse { entries, slots },
        }
    }
}
