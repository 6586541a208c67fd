//! One row at a time: loaded from any layout into the precision of a computation, scaled for its kernel, and collected again as
//! it was given.

use ndarray::Array2;

use crate::data::{OwnedRows, Rows};
use crate::error::Result;
use crate::memory::try_reserve;
use crate::simd::Real;
use crate::simd::blas::dot;
use crate::simd::micro::SparseBlock;

/// Context reported when the allocation of collected rows fails.
const VECTORS: &str = "the vectors";

/// Range of squared lengths of dense rows that are summed in single precision.
const SINGLE_SQUARED_NORMS: std::ops::Range<f64> = 1e-30..1e30;

/// One row in the precision of the computation, before and after scaling. Its memory is reused for the next row.
pub(crate) struct RowBuffer<T> {
    features: usize,
    sparse: bool,
    scale: f64,
    /// The values before scaling: all of a dense row, the entries of a sparse one.
    unscaled: Vec<T>,
    /// The scaled values of a dense row.
    pub(super) values: Vec<T>,
    /// The scaled entries of a sparse row.
    pub(super) entries: SparseBlock<T>,
    pub(super) norm: [T; 1],
    squared_norm: f64,
}

impl<T: Real> RowBuffer<T> {
    /// Creates a buffer for rows of `features` features, which are multiplied by `scale`.
    pub(super) fn new(features: usize, sparse: bool, scale: f64) -> Self {
        let width = if sparse { 0 } else { features };
        Self {
            features,
            sparse,
            scale,
            unscaled: vec![T::ZERO; width],
            values: vec![T::ZERO; width],
            entries: SparseBlock::new(features),
            norm: [T::ZERO],
            squared_norm: 0.0,
        }
    }

    /// Creates another buffer for such rows.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.features, self.sparse, self.scale)
    }

    /// Loads a row of any layout. Cost: O(d), for sparse rows in a sparse buffer O(stored values).
    pub(crate) fn load(&mut self, rows: &Rows<'_>, row: usize) {
        if self.sparse {
            self.load_entries(|push| rows.for_each_in_row(row, |k, v| push(k, T::from_f64(v))));
            return;
        }
        if rows.is_sparse() {
            self.unscaled.fill(T::ZERO);
        }
        let unscaled = &mut self.unscaled;
        rows.for_each_in_row(row, |k, v| unscaled[k] = T::from_f64(v));
        self.finish_dense();
    }

    /// Loads the values of a row into a dense buffer.
    pub(crate) fn load_dense(&mut self, values: &[T]) {
        self.unscaled.copy_from_slice(values);
        self.finish_dense();
    }

    /// Loads the entries that `give` pushes in column order into a sparse buffer.
    pub(crate) fn load_entries(&mut self, give: impl FnOnce(&mut dyn FnMut(usize, T))) {
        self.entries.restart(self.features);
        self.unscaled.clear();
        let Self { entries, unscaled, scale, .. } = self;
        give(&mut |k, v| {
            if v != T::ZERO {
                unscaled.push(v);
                entries.push(k, T::from_f64(v.to_f64() * *scale));
            }
        });
        self.entries.end_row();
        let values = self.entries.entries().1;
        self.squared_norm = values.iter().map(|v| v.to_f64() * v.to_f64()).sum();
        self.norm = [T::from_f64(self.squared_norm)];
    }

    fn finish_dense(&mut self) {
        for (to, from) in self.values.iter_mut().zip(&self.unscaled) {
            *to = T::from_f64(from.to_f64() * self.scale);
        }
        self.squared_norm = dot(&self.values, &self.values).to_f64();
        if size_of::<T>() < size_of::<f64>() && !SINGLE_SQUARED_NORMS.contains(&self.squared_norm) {
            self.squared_norm = self.values.iter().map(|v| v.to_f64() * v.to_f64()).sum();
        }
        self.norm = [T::from_f64(self.squared_norm)];
    }

    pub(crate) fn features(&self) -> usize {
        self.features
    }

    /// Returns whether the buffer holds stored entries only.
    pub(crate) fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Returns ||x||^2 of the scaled row.
    pub(crate) fn squared_norm(&self) -> f64 {
        self.squared_norm
    }

    /// Returns the scaled values of a dense row; none of a sparse one.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns the features and scaled entries of a sparse row; none of a dense one.
    pub(crate) fn entries(&self) -> (&[u32], &[T]) {
        self.entries.entries()
    }

    /// Returns the values before scaling: all of a dense row, the entries of a sparse one.
    pub(crate) fn unscaled(&self) -> &[T] {
        &self.unscaled
    }

    /// Calls `visit(column, value)` for the scaled values or entries, in column order.
    pub(crate) fn for_each(&self, visit: impl FnMut(usize, T)) {
        self.for_each_of(if self.sparse { self.entries().1 } else { &self.values }, visit);
    }

    /// Calls `visit(column, value)` for the values or entries before scaling, in column order.
    pub(crate) fn for_each_unscaled(&self, visit: impl FnMut(usize, T)) {
        self.for_each_of(&self.unscaled, visit);
    }

    fn for_each_of(&self, values: &[T], mut visit: impl FnMut(usize, T)) {
        if self.sparse {
            for (&k, &v) in self.entries().0.iter().zip(values) {
                visit(k as usize, v);
            }
        } else {
            for (k, &v) in values.iter().enumerate() {
                visit(k, v);
            }
        }
    }
}

/// Collects rows in the layout of a buffer, in single or double precision.
pub(crate) struct RowWriter {
    features: usize,
    rows: usize,
    values: Values,
    /// Row pointers and column indices of sparse rows.
    structure: Option<(Vec<i64>, Vec<i64>)>,
}

enum Values {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl RowWriter {
    /// Creates a writer without rows.
    pub(crate) fn new(features: usize, sparse: bool, double: bool) -> Self {
        let values = if double { Values::Double(Vec::new()) } else { Values::Single(Vec::new()) };
        Self { features, rows: 0, values, structure: sparse.then(|| (vec![0], Vec::new())) }
    }

    pub(crate) fn push<T: Real>(&mut self, row: &RowBuffer<T>) -> Result<()> {
        let stored = row.unscaled().len();
        match &mut self.values {
            Values::Single(values) => {
                try_reserve(VECTORS, values, stored)?;
                row.for_each_unscaled(|_, v| values.push(v.to_f64() as f32));
            }
            Values::Double(values) => {
                try_reserve(VECTORS, values, stored)?;
                row.for_each_unscaled(|_, v| values.push(v.to_f64()));
            }
        }
        if let Some((indptr, indices)) = &mut self.structure {
            try_reserve(VECTORS, indices, stored)?;
            row.for_each(|k, _| indices.push(k as i64));
            indptr.push(indices.len() as i64);
        }
        self.rows += 1;
        Ok(())
    }

    pub(crate) fn finish(self) -> OwnedRows {
        const WHOLE: &str = "only whole rows are pushed";
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
