//! Rows of any layout and precision, repacked for the micro-kernel: column panels for one side of a tile, row blocks
//! for the other. Packing is the only place where data change precision.
//!
//! Distances are computed as ||x||^2 + ||z||^2 - 2 x'z, which cancels when rows lie far from the origin. A
//! [`Centre`] near the mean is subtracted while dense rows are packed: translation does not change a distance. It
//! is rounded so coarsely that subtracting it from numbers with few digits (integers, pixels) stays exact.

use crate::control::Par;
use crate::data::{Rows, row as dense_row};
use crate::kernels::{Kernel, KernelFunction};
use crate::simd::micro::{Block, Measure, PanelView, SlotMap, SparseBlock, panel_width};
use crate::simd::{Real, epilogue::Epilogue};
use crate::with_rows;

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

/// A point subtracted from every row of a dense matrix.
#[derive(Clone)]
pub(super) struct Centre(Vec<f64>);

impl Centre {
    /// Near the mean of a sample of the rows; nothing where translation would change the kernel or fill zeros.
    pub(super) fn of(kernel: &Kernel, rows: Rows<'_>) -> Self {
        const SAMPLE: usize = 1024;
        if !matches!(kernel, Kernel::Rbf { .. }) || rows.is_sparse() || rows.rows() == 0 {
            return Self(vec![0.0; rows.cols()]);
        }
        let (n, d) = (rows.rows(), rows.cols());
        let count = n.min(SAMPLE);
        let mut sum = vec![0.0; d];
        let (mut low, mut high) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
        for i in 0..count {
            rows.for_each_in_row(i * n / count, |k, v| {
                sum[k] += v;
                low[k] = low[k].min(v);
                high[k] = high[k].max(v);
            });
        }
        let near_mean = |k: usize| {
            let spread = high[k] - low[k];
            if spread == 0.0 {
                return low[k];
            }
            let quantum = (spread.log2().floor() - 4.0).exp2();
            (sum[k] / count as f64 / quantum).round() * quantum
        };
        Self((0..d).map(near_mean).collect())
    }

    /// Its squared distance from the origin.
    pub(super) fn squared_norm(&self) -> f64 {
        self.0.iter().map(|c| c * c).sum()
    }

    /// Its coordinate k.
    pub(super) fn at(&self, k: usize) -> f64 {
        self.0[k]
    }
}

/// Bytes of the rows packed in single precision, each once.
pub fn packed_bytes(kernel: KernelFunction<'_>, rows: Rows<'_>) -> usize {
    let n = rows.rows();
    if kernel.built_in() == Kernel::Precomputed {
        return n * size_of::<usize>();
    }
    let width = panel_width::<f32>();
    let count = n.div_ceil(width);
    if !rows.is_sparse() {
        return 4 * count * width * (rows.cols() + 1);
    }
    let mut seen = vec![usize::MAX; rows.cols()];
    let mut features = 0;
    for row in 0..n {
        rows.for_each_in_row(row, |k, _| {
            features += usize::from(seen[k] != row / width);
            seen[k] = row / width;
        });
    }
    4 * (features * (width + 1) + 2 * count * width)
}

/// Squared norms in double precision of the values that will be computed with.
fn squared_norm<T: Real>(values: impl Iterator<Item = T>) -> T {
    T::from_f64(values.map(|v| v.to_f64() * v.to_f64()).sum())
}

/// One side of a tile: rows packed as columns of panels.
pub(super) struct Panels<T> {
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
    /// Sparse rows: each panel has its own features.
    Sparse(Vec<SparsePanel<T>>),
}

impl<T: Real> Panels<T> {
    /// Packs the listed rows in their order. Cost: one read of them.
    pub(super) fn pack(rows: Rows<'_>, order: &[usize], centre: &Centre, par: Par) -> Self {
        let width = panel_width::<T>();
        let count = order.len().div_ceil(width);
        let mut norms = vec![T::ZERO; count * width];
        let panel_rows = |p: usize| &order[p * width..order.len().min((p + 1) * width)];
        if rows.is_sparse() {
            let panels = par.map(count, |p| SparsePanel::pack(rows, panel_rows(p), width));
            for (norms, panel) in norms.chunks_exact_mut(width).zip(&panels) {
                norms.copy_from_slice(&panel.norms);
            }
            Self { features: rows.cols(), width, data: Data::Sparse(panels), norms }
        } else {
            let size = rows.cols() * width;
            let mut data = vec![T::ZERO; count * size];
            if size > 0 {
                par.for_each_chunk(&mut data, size, |p, panel| {
                    for (j, &row) in panel_rows(p).iter().enumerate() {
                        with_rows!(&rows,
                            dense(view) => for ((k, &v), &c) in dense_row(view, row).iter().enumerate().zip(&centre.0) {
                                panel[k * width + j] = T::from_f64(crate::data::Element::to_f64(v) - c);
                            },
                            csr(_s) => unreachable!("sparse rows are packed above"));
                    }
                });
                par.for_each_chunk(&mut norms, width, |p, norms| {
                    let panel = &data[p * size..(p + 1) * size];
                    let mut sums = vec![0.0; width];
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
            Self { features: rows.cols(), width, data: Data::Dense(data), norms }
        }
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
            Data::Sparse(panels) => panels.iter().map(SparsePanel::bytes).sum(),
        };
        values + size_of_val(self.norms.as_slice())
    }

    /// One panel, as the micro-kernel reads it.
    pub(super) fn panel(&self, p: usize) -> PanelView<'_, T> {
        let (values, baseline) = match &self.data {
            Data::Dense(values) => {
                let size = self.features * self.width;
                (&values[p * size..(p + 1) * size], None)
            }
            Data::Sparse(panels) => (&*panels[p].values, Some(&*panels[p].baseline)),
        };
        PanelView { values, norms: &self.norms[p * self.width..(p + 1) * self.width], baseline }
    }

    /// The features of a sparse panel.
    pub(super) fn present(&self, p: usize) -> Option<&[u32]> {
        match &self.data {
            Data::Dense(_) => None,
            Data::Sparse(panels) => Some(&panels[p].features),
        }
    }

    /// Rows in the form that the micro-kernel pairs with these panels.
    pub(super) fn block(&self, rows: Rows<'_>, list: &[usize], centre: &Centre) -> RowBlock<T> {
        let features = self.features;
        if matches!(self.data, Data::Sparse(_)) {
            let mut entries = SparseBlock::new(features);
            let mut norms = Vec::with_capacity(list.len());
            for &row in list {
                let mut norm = 0.0;
                rows.for_each_in_row(row, |k, v| {
                    if v != 0.0 {
                        let value = T::from_f64(v);
                        norm += value.to_f64() * value.to_f64();
                        entries.push(k, value);
                    }
                });
                entries.end_row();
                norms.push(T::from_f64(norm));
            }
            return RowBlock { norms, form: Form::Sparse(entries) };
        }
        // Rows a power of two apart would fall into the same few lines of the first cache.
        let stride = if features.is_multiple_of(64) && features > 0 { features + 16 } else { features };
        let mut data = vec![T::ZERO; list.len() * stride];
        let mut norms = Vec::with_capacity(list.len());
        for (i, &row) in list.iter().enumerate() {
            let out = &mut data[i * stride..i * stride + features];
            with_rows!(&rows,
            dense(view) => for ((out, &v), &c) in out.iter_mut().zip(dense_row(view, row)).zip(&centre.0) {
                *out = T::from_f64(crate::data::Element::to_f64(v) - c);
            },
            csr(view) => {
                for (out, &c) in out.iter_mut().zip(&centre.0) {
                    *out = T::from_f64(-c);
                }
                view.for_each_in_row(row, |k, v| out[k] = T::from_f64(crate::data::Element::to_f64(v) - centre.0[k]));
            });
            norms.push(squared_norm(out.iter().copied()));
        }
        RowBlock { norms, form: Form::Dense { data, stride, depth: features } }
    }
}

struct SparsePanel<T> {
    features: Vec<u32>,
    /// A line of zeros, to which absent features are directed, then a line for each feature.
    values: Vec<T>,
    norms: Vec<T>,
    baseline: Vec<T>,
}

impl<T: Real> SparsePanel<T> {
    fn pack(rows: Rows<'_>, list: &[usize], width: usize) -> Self {
        // Sorted are keys of feature and place, which are small; the places are already in the order of the columns.
        let (mut keys, mut entries) = (Vec::new(), Vec::new());
        for (j, &row) in list.iter().enumerate() {
            rows.for_each_in_row(row, |k, v| {
                keys.push((k as u64) << 32 | entries.len() as u64);
                entries.push((j, T::from_f64(v)));
            });
        }
        keys.sort_unstable();
        let (mut features, mut values) = (Vec::new(), vec![T::ZERO; width]);
        let (mut norms, mut baseline) = (vec![0.0; width], vec![0.0; width]);
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
        let rounded = |sums: Vec<f64>| sums.into_iter().map(T::from_f64).collect();
        Self { features, values, norms: rounded(norms), baseline: rounded(baseline) }
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
            Form::Sparse(_) => 512,
        }
    }

    /// The rows as the micro-kernel reads them, against the panel that `slots` has entered.
    pub(super) fn view<'a>(&'a self, slots: &'a SlotMap) -> Block<'a, T> {
        match &self.form {
            Form::Dense { data, stride, depth } => Block::Dense { data, stride: *stride, depth: *depth },
            Form::Sparse(entries) => Block::Sparse { entries, slots },
        }
    }
}
