//! k(x, z_1), ..., k(x, z_m) for one row x at a time and vectors z that come and go: what an online learner needs.
//!
//! The vectors are columns of the micro-kernel's panels. A new vector goes into the next free column, or takes the
//! place of another one, so adding and removing cost O(d) and a row of kernel values one pass over the panels, O(m d),
//! without an allocation. Sparse rows have panels that hold only features which some of their columns have; a
//! feature's line is never given back, so that a sparse panel is at most as large as a dense one.
//!
//! Dense squared distances are summed as (a - b)^2: a stream has no mean to centre with before it has ended. Sparse
//! ones are ||x||^2 + ||z||^2 - 2 x'z.
//!
//! Invariant: a value depends on x and z alone, not on the column, the panel or the order in which vectors came.

use ndarray::Array2;

use super::Kernel;
use super::pack::method;
use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::simd::Real;
use crate::simd::blas::dot;
use crate::simd::epilogue::Epilogue;
use crate::simd::micro::{Block, Measure, PanelView, SlotMap, SparseBlock, panel_tile, panel_width};

/// How a pool's values are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Formula<T> {
    measure: Measure,
    epilogue: Epilogue<T>,
}

impl<T: Real> Formula<T> {
    /// For a kernel that is computed from rows.
    pub(crate) fn of(kernel: &Kernel, sparse: bool) -> Result<Self> {
        let (measure, epilogue) = match *kernel {
            Kernel::Rbf { gamma } if !sparse => {
                (Measure::SquaredL2, Epilogue::Decay { gamma: T::from_f64(gamma) })
            }
            _ => method(kernel).ok_or_else(|| Error::param("kernel", kernel.name(), "computed from rows"))?,
        };
        Ok(Self { measure, epilogue })
    }

    /// ||x - z||^2
    pub(crate) fn squared_distance(sparse: bool) -> Self {
        if sparse {
            Self { measure: Measure::Inner, epilogue: Epilogue::Distance }
        } else {
            Self { measure: Measure::SquaredL2, epilogue: Epilogue::Identity }
        }
    }
}

/// k(x, x) from ||x||^2.
pub(crate) fn self_value(kernel: &Kernel, squared_norm: f64) -> f64 {
    match *kernel {
        Kernel::Polynomial { degree, gamma, coef0 } => (gamma * squared_norm + coef0).powi(degree as i32),
        Kernel::Sigmoid { gamma, coef0 } => (gamma * squared_norm + coef0).tanh(),
        _ => kernel.constant_diagonal().unwrap_or(squared_norm),
    }
}

/// One row in the precision of the computation; its memory is used again for the next one.
pub(crate) struct RowBuffer<T> {
    features: usize,
    sparse: bool,
    values: Vec<T>,
    entries: SparseBlock<T>,
    norm: [T; 1],
    squared_norm: f64,
}

impl<T: Real> RowBuffer<T> {
    /// For rows of `features` features.
    pub(crate) fn new(features: usize, sparse: bool) -> Self {
        Self {
            features,
            sparse,
            values: vec![T::ZERO; if sparse { 0 } else { features }],
            entries: SparseBlock::new(features),
            norm: [T::ZERO],
            squared_norm: 0.0,
        }
    }

    /// Takes a row of any layout. Cost O(d), for sparse rows in a sparse buffer O(stored values).
    pub(crate) fn load(&mut self, rows: &Rows<'_>, row: usize) {
        if self.sparse {
            self.load_entries(|push| rows.for_each_in_row(row, |k, v| push(k, T::from_f64(v))));
            return;
        }
        if rows.is_sparse() {
            self.values.fill(T::ZERO);
        }
        let values = &mut self.values;
        rows.for_each_in_row(row, |k, v| values[k] = T::from_f64(v));
        self.finish_dense();
    }

    /// Takes values; only for dense buffers.
    pub(crate) fn load_dense(&mut self, values: impl Iterator<Item = T>) {
        for (to, from) in self.values.iter_mut().zip(values) {
            *to = from;
        }
        self.finish_dense();
    }

    /// Takes the entries that `give` pushes in column order; only for sparse buffers.
    pub(crate) fn load_entries(&mut self, give: impl FnOnce(&mut dyn FnMut(usize, T))) {
        self.entries.clear();
        let entries = &mut self.entries;
        give(&mut |k, v| {
            if v != T::ZERO {
                entries.push(k, v);
            }
        });
        self.entries.end_row();
        let values = self.entries.entries().1;
        self.squared_norm = values.iter().map(|v| v.to_f64() * v.to_f64()).sum();
        self.norm = [T::from_f64(self.squared_norm)];
    }

    fn finish_dense(&mut self) {
        self.norm = [dot(&self.values, &self.values)];
        self.squared_norm = self.norm[0].to_f64();
    }

    /// Number of features.
    pub(crate) fn features(&self) -> usize {
        self.features
    }

    /// Whether it holds stored entries only.
    pub(crate) fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// ||x||^2
    pub(crate) fn squared_norm(&self) -> f64 {
        self.squared_norm
    }

    /// The values of a dense row; empty for a sparse one.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// The entries of a sparse row; empty for a dense one.
    pub(crate) fn entries(&self) -> (&[u32], &[T]) {
        self.entries.entries()
    }

    /// Calls `visit(column, value)` for what the row holds, in column order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize, T)) {
        if self.sparse {
            let (features, values) = self.entries.entries();
            for (&k, &v) in features.iter().zip(values) {
                visit(k as usize, v);
            }
        } else {
            for (k, &v) in self.values.iter().enumerate() {
                visit(k, v);
            }
        }
    }
}

/// `panel_width` vectors.
struct Panel<T> {
    data: Vec<T>,
    norms: Vec<T>,
    baseline: Vec<T>,
    /// For sparse rows: where a feature is, and which feature a line holds (line 0 is zeros).
    slots: SlotMap,
    features: Vec<u32>,
}

/// Vectors that come and go.
pub(crate) struct VectorPool<T> {
    features: usize,
    sparse: bool,
    width: usize,
    len: usize,
    panels: Vec<Panel<T>>,
}

impl<T: Real> VectorPool<T> {
    /// No vectors yet, of `features` features.
    pub(crate) fn new(features: usize, sparse: bool) -> Self {
        Self { features, sparse, width: panel_width::<T>(), len: 0, panels: Vec::new() }
    }

    /// Number of vectors.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a vector behind the last one.
    pub(crate) fn push(&mut self, row: &RowBuffer<T>) {
        if self.len == self.panels.len() * self.width {
            let (lines, slots) = if self.sparse { (1, self.features) } else { (self.features, 0) };
            self.panels.push(Panel {
                data: vec![T::ZERO; lines * self.width],
                norms: vec![T::ZERO; self.width],
                baseline: vec![T::ZERO; self.width],
                slots: SlotMap::new(slots),
                features: Vec::new(),
            });
        }
        self.len += 1;
        self.write(self.len - 1, row);
    }

    /// Puts a vector in the place of another.
    pub(crate) fn replace(&mut self, at: usize, row: &RowBuffer<T>) {
        if self.sparse {
            let (width, panel) = (self.width, &mut self.panels[at / self.width]);
            panel.data.iter_mut().skip(at % width).step_by(width).for_each(|v| *v = T::ZERO);
        }
        self.write(at, row);
    }

    fn write(&mut self, at: usize, row: &RowBuffer<T>) {
        debug_assert!(row.sparse == self.sparse && at < self.len);
        let (width, column) = (self.width, at % self.width);
        let panel = &mut self.panels[at / width];
        let mut total = 0.0;
        if self.sparse {
            row.for_each(|k, v| {
                let line = panel.slots.insert(k);
                if line * width == panel.data.len() {
                    panel.data.resize((line + 1) * width, T::ZERO);
                    panel.features.push(k as u32);
                }
                panel.data[line * width + column] = v;
                total += v.to_f64().abs();
            });
        } else {
            row.for_each(|k, v| panel.data[k * width + column] = v);
        }
        panel.norms[column] = row.norm[0];
        panel.baseline[column] = T::from_f64(total);
    }

    /// Copies a vector out.
    pub(crate) fn read(&self, at: usize, row: &mut RowBuffer<T>) {
        let (width, panel) = (self.width, &self.panels[at / self.width]);
        let column = panel.data.iter().copied().skip(at % width).step_by(width);
        if self.sparse {
            let mut entries: Vec<(u32, T)> =
                panel.features.iter().copied().zip(column.skip(1)).filter(|(_, v)| *v != T::ZERO).collect();
            entries.sort_unstable_by_key(|&(k, _)| k);
            row.load_entries(|push| entries.iter().for_each(|&(k, v)| push(k as usize, v)));
        } else {
            row.load_dense(column);
        }
    }

    /// The values of one row against all vectors, in their order.
    pub(crate) fn values<'a>(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        out: &'a mut Vec<T>,
    ) -> &'a [T] {
        if out.len() < self.panels.len() * self.width {
            out.resize(self.panels.len() * self.width, T::ZERO);
        }
        for (panel, out) in self.panels.iter().zip(out.chunks_exact_mut(self.width)) {
            let block = if self.sparse {
                Block::Sparse { entries: &row.entries, slots: &panel.slots }
            } else {
                Block::Dense { data: &row.values, stride: self.features, depth: self.features }
            };
            let baseline = self.sparse.then_some(&*panel.baseline);
            let panel = PanelView { values: &panel.data, norms: &panel.norms, baseline };
            panel_tile((formula.measure, formula.epilogue), (block, &row.norm), 0, panel, out);
        }
        &out[..self.len]
    }
}

/// Collects rows in the layout of a buffer, in single or double precision.
pub(crate) struct RowWriter {
    features: usize,
    rows: usize,
    values: Values,
    /// Row starts and columns, of sparse rows only.
    structure: Option<(Vec<i64>, Vec<i64>)>,
}

enum Values {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl RowWriter {
    /// No rows yet.
    pub(crate) fn new(features: usize, sparse: bool, double: bool) -> Self {
        let values = if double { Values::Double(Vec::new()) } else { Values::Single(Vec::new()) };
        Self { features, rows: 0, values, structure: sparse.then(|| (vec![0], Vec::new())) }
    }

    /// Adds a row.
    pub(crate) fn push<T: Real>(&mut self, row: &RowBuffer<T>) {
        self.rows += 1;
        match &mut self.values {
            Values::Single(values) => row.for_each(|_, v| values.push(v.to_f64() as f32)),
            Values::Double(values) => row.for_each(|_, v| values.push(v.to_f64())),
        }
        if let Some((indptr, indices)) = &mut self.structure {
            row.for_each(|k, _| indices.push(k as i64));
            indptr.push(indices.len() as i64);
        }
    }

    /// The rows.
    pub(crate) fn finish(self) -> OwnedRows {
        const WHOLE: &str = "whole rows were pushed";
        let (shape, cols) = ((self.rows, self.features), self.features);
        match (self.values, self.structure) {
            (Values::Single(values), None) => Array2::from_shape_vec(shape, values).expect(WHOLE).into(),
            (Values::Double(values), None) => Array2::from_shape_vec(shape, values).expect(WHOLE).into(),
            (Values::Single(values), Some((indptr, indices))) => {
                OwnedRows::CsrF32 { indptr, indices, values, cols }
            }
            (Values::Double(values), Some((indptr, indices))) => {
                OwnedRows::CsrF64 { indptr, indices, values, cols }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrView, IndexSlice};
    use crate::kernels::pair;
    use crate::random::Random;

    const KERNELS: [Kernel; 6] = [
        Kernel::Linear,
        Kernel::Polynomial { degree: 3, gamma: 0.3, coef0: 1.0 },
        Kernel::Rbf { gamma: 0.7 },
        Kernel::Sigmoid { gamma: 0.2, coef0: 0.1 },
        Kernel::Laplacian { gamma: 0.4 },
        Kernel::ChiSquared { gamma: 0.5 },
    ];

    fn check(rows: Rows<'_>, sparse: bool) {
        let (n, d) = (rows.rows(), rows.cols());
        for kernel in KERNELS {
            let formula = Formula::<f64>::of(&kernel, sparse).unwrap();
            let mut pool = VectorPool::new(d, sparse);
            let (mut buffer, mut other, mut out) =
                (RowBuffer::new(d, sparse), RowBuffer::new(d, sparse), Vec::new());
            for i in 0..n / 2 {
                buffer.load(&rows, i);
                pool.push(&buffer);
            }
            // Some vectors make room for others.
            let mut members: Vec<usize> = (0..n / 2).collect();
            for at in [0, 7, n / 2 - 1] {
                buffer.load(&rows, n / 2 + at);
                pool.replace(at, &buffer);
                members[at] = n / 2 + at;
            }
            for i in 0..n {
                buffer.load(&rows, i);
                let values = pool.values(&formula, &buffer, &mut out);
                assert_eq!(values.len(), members.len());
                for (&value, &j) in values.iter().zip(&members) {
                    assert!((value - pair(&kernel, rows, i, rows, j)).abs() < 1e-12, "{kernel:?}");
                }
                let same = self_value(&kernel, buffer.squared_norm());
                assert!((same - pair(&kernel, rows, i, rows, i)).abs() < 1e-12);
            }
            for (at, &i) in members.iter().enumerate() {
                pool.read(at, &mut other);
                buffer.load(&rows, i);
                assert_eq!(other.values(), buffer.values());
                assert_eq!(other.entries(), buffer.entries());
            }
        }
    }

    #[test]
    fn values_are_those_of_the_formula() {
        let mut random = Random::new(3);
        let (n, d) = (90, 11);
        let data: Vec<f64> =
            (0..n * d).map(|_| if random.uniform() < 0.5 { 0.0 } else { random.uniform() }).collect();
        check(Rows::from_shape((n, d), &data).unwrap(), false);
        let (mut indptr, mut indices, mut values) = (vec![0_i32], Vec::new(), Vec::new());
        for row in data.chunks(d) {
            for (k, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                indices.push(k as i32);
                values.push(v);
            }
            indptr.push(indices.len() as i32);
        }
        let csr = CsrView::new(IndexSlice::I32(&indptr), IndexSlice::I32(&indices), &values, d).unwrap();
        check(csr.into(), true);
    }

    #[test]
    fn distances_survive_a_large_offset() {
        let data: Vec<f32> = (0..40).map(|i| 10_000.0 + (i % 7) as f32 * 0.125).collect();
        let rows: Rows<'_> = Rows::from_shape((10, 4), &data).unwrap();
        let formula = Formula::<f32>::squared_distance(false);
        let (mut pool, mut buffer, mut out) =
            (VectorPool::new(4, false), RowBuffer::new(4, false), Vec::new());
        buffer.load(&rows, 0);
        pool.push(&buffer);
        buffer.load(&rows, 1);
        let exact: f32 = (0..4).map(|k| (data[k] - data[4 + k]).powi(2)).sum();
        assert_eq!(pool.values(&formula, &buffer, &mut out), &[exact]);
    }
}
