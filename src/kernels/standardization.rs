//! Translation and scale of rows before they are packed: x becomes (x - center) scale, and the kernel the one that has the
//! same values there.
//!
//! Squared distances are computed as ||x||^2 + ||z||^2 - 2 x'z, which cancels if rows lie far from the origin, and numbers
//! lose digits outside the range of single precision. Therefore:
//!
//! - RBF, Matérn and Laplacian kernels, which no translation changes, are computed about a center near the mean. The center is rounded
//!   so coarsely that subtracting it from numbers with few digits (integers, pixels) is exact. Sparse rows are translated only
//!   in columns that all of them have, so that zeros stay zeros.
//! - The linear kernel is computed about a center if the coefficients of each of its sums add up to zero (machines with an
//!   intercept): sum b_i (x_i - c)'(x - c) is sum b_i x_i'x less the constant w'c, w = sum b_i x_i, which belongs to the intercept.
//! - `gamma` goes into the rows as a power of two, which changes no digit; the remaining gamma is between 1/2 and 2.
//!
//! Dense rows that are mostly zeros are packed as sparse rows, so kernel values take the same time in both layouts.
//!
//! Cost: one pass over at most 1,024 rows, and over sparse rows until no column is left that all of them have.

use crate::context::Context;
use crate::data::{Element, Rows, row as dense_row};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::simd::blas::{axpy, axpy_compensated, dot_compensated};
use crate::with_rows;

/// Maximum number of rows that the center is the mean of.
const MAX_CENTRE_ROWS: usize = 1024;
/// Maximum number of rows whose zeros are counted.
const MAX_COUNTED_ROWS: usize = 256;
/// Minimum number of columns for each number that is not zero at which rows are packed as sparse rows.
const MIN_COLUMNS_PER_ENTRY: usize = 6;
/// Minimum number of columns at which the layout matters.
const MIN_COLUMNS: usize = 32;
/// Minimum distance of a column from zero, relative to its width, at which a translation is worth its cost.
const MIN_RELATIVE_OFFSET: f64 = 8.0;

/// The sum of the coefficients with which kernel values are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoefficientSum {
    /// Any number: kernel values must be those of the kernel.
    Any,
    /// Zero: a translation of the rows changes sums over the linear kernel by a constant alone.
    Zero,
}

/// A translation and a power of two for the rows of one kernel.
pub(crate) struct Standardization {
    kernel: Kernel,
    /// The translated columns of rows that are packed as sparse rows; `None` for all columns.
    columns: Option<Vec<u32>>,
    centre: Vec<f64>,
    scale: f64,
}

impl Standardization {
    /// Fits a standardization to rows.
    pub(super) fn new(kernel: &Kernel, rows: Rows<'_>) -> Result<Self> {
        Self::with_coefficients(kernel, rows, CoefficientSum::Any, Context::SEQUENTIAL)
    }

    /// Fits a standardization to rows and the sum of the coefficients.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) after an interruption.
    pub(super) fn with_coefficients(
        kernel: &Kernel,
        rows: Rows<'_>,
        sum: CoefficientSum,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let is_linear = *kernel == Kernel::Linear && sum == CoefficientSum::Zero;
        let is_euclidean = matches!(kernel, Kernel::Rbf { .. } | Kernel::Matern { .. });
        let has_centre =
            (is_linear || is_euclidean || matches!(kernel, Kernel::Laplacian { .. })) && rows.rows() > 0;
        Self::about_mean(kernel, rows, has_centre, is_linear || is_euclidean, ctx)
    }

    /// Translates columns that are far from zero compared with their width, for the linear kernel.
    pub(crate) fn of_far_columns(rows: Rows<'_>) -> Result<Self> {
        Self::about_mean(&Kernel::Linear, rows, rows.rows() > 0, false, Context::SEQUENTIAL)
    }

    /// Fits a standardization about the mean if `has_centre`, dense rows in `all` columns or in those far from zero.
    fn about_mean(
        kernel: &Kernel,
        rows: Rows<'_>,
        has_centre: bool,
        all: bool,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (kernel, scale) = scaled(*kernel);
        if !is_packed_sparse(rows) {
            let columns: Vec<u32> = (0..if has_centre { rows.cols() } else { 0 }).map(|k| k as u32).collect();
            let mut centre = near_mean(rows, &columns, all, ctx)?;
            centre.resize(rows.cols(), 0.0);
            return Ok(Self { kernel, columns: None, centre, scale });
        }
        let columns = if has_centre { full_columns(rows) } else { Vec::new() };
        let centre = near_mean(rows, &columns, false, ctx)?;
        let moved = || columns.iter().zip(&centre).filter(|(_, c)| **c != 0.0);
        let centre = moved().map(|(_, c)| *c).collect::<Vec<_>>();
        Ok(Self { kernel, columns: Some(moved().map(|(k, _)| *k).collect()), centre, scale })
    }

    /// Returns whether rows that are not packed as bytes are packed by their entries.
    pub(crate) fn is_sparse(&self) -> bool {
        self.columns.is_some()
    }

    /// Returns the kernel of standardized rows.
    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the center of dense rows, a number for each column, and their scale.
    pub(super) fn dense(&self) -> (&[f64], f64) {
        (&self.centre, self.scale)
    }

    /// Calls `visit(column, value)` for the entries of a standardized row in the order of their columns; others are zero.
    pub(crate) fn for_each(&self, rows: Rows<'_>, row: usize, mut visit: impl FnMut(usize, f64)) {
        let column = |place: usize| self.columns.as_ref().map_or(place, |columns| columns[place] as usize);
        let (mut next, count) = (0, self.centre.len());
        rows.for_each_entry(row, |k, v| {
            while next < count && column(next) < k {
                visit(column(next), -self.centre[next] * self.scale);
                next += 1;
            }
            let here = next < count && column(next) == k;
            visit(k, if here { v - self.centre[next] } else { v } * self.scale);
            next += usize::from(here);
        });
        for place in next..count {
            visit(column(place), -self.centre[place] * self.scale);
        }
    }

    /// Calls `visit(column, value)` for the translated columns.
    pub(crate) fn for_each_in_centre(&self, mut visit: impl FnMut(usize, f64)) {
        for (place, &c) in self.centre.iter().enumerate() {
            visit(self.columns.as_ref().map_or(place, |columns| columns[place] as usize), c);
        }
    }

    /// Returns the squared Euclidean length of a standardized row, or its l1 length, summed in the order of the columns.
    pub(super) fn length(&self, rows: Rows<'_>, row: usize, squared: bool) -> f64 {
        let mut length = 0.0;
        self.for_each(rows, row, |_, v| length += if squared { v * v } else { v.abs() });
        length
    }

    /// Returns the largest magnitude of a row's numbers and the [`length`](Self::length) of the standardized row, summed in an
    /// order that is faster for dense rows.
    pub(super) fn magnitudes(&self, rows: Rows<'_>, row: usize, squared: bool) -> (f64, f64) {
        let by_entries = || {
            let mut largest = 0.0_f64;
            rows.for_each_entry(row, |_, v| largest = largest.max(v.abs()));
            (largest, self.length(rows, row, squared))
        };
        with_rows!(&rows,
            dense(view) => {
                if self.is_sparse() { by_entries() } else { magnitudes_of(dense_row(view, row), self.dense(), squared) }
            },
            csr(_s) => by_entries())
    }

    /// Returns the inner product of a row with the center as a sum of two numbers. If the center is not zero, all numbers of
    /// the row are small enough for their squares to be finite.
    fn product_with_centre(&self, rows: Rows<'_>, row: usize) -> (f64, f64) {
        let mut values = vec![0.0; self.centre.len()];
        match &self.columns {
            None => rows.for_each_in_row(row, |k, v| values[k] = v),
            Some(columns) => for_each_in_columns(rows, row, columns, |place, v| values[place] = v),
        }
        dot_compensated(&values, &self.centre)
    }

    /// Returns w_j'c of w_j = sum_i B[i, j] x_i over the listed rows, (q,), as if computed in twice the precision.
    pub(crate) fn centre_products(
        &self,
        rows: Rows<'_>,
        list: &[usize],
        coefficients: &[f64],
        q: usize,
    ) -> Vec<f64> {
        let (mut sums, mut remainders) = (vec![0.0; q], vec![0.0; q]);
        if self.centre.iter().any(|c| *c != 0.0) {
            for (&row, coefficients) in list.iter().zip(coefficients.chunks_exact(q)) {
                let (product, remainder) = self.product_with_centre(rows, row);
                axpy_compensated(product, coefficients, &mut sums, &mut remainders);
                axpy(remainder, coefficients, &mut remainders);
            }
        }
        sums.iter().zip(remainders).map(|(sum, remainder)| sum + remainder).collect()
    }
}

/// Returns whether rows are packed by their entries if they are not packed as bytes: sparse rows, and dense rows that are
/// mostly zeros.
pub(crate) fn is_packed_sparse(rows: Rows<'_>) -> bool {
    rows.is_sparse() || is_mostly_zeros(rows, MIN_COLUMNS_PER_ENTRY, 0)
}

/// Returns whether rows have at least `columns_per_entry` columns for each number that is not zero, less `overhead` columns, by
/// some of the rows.
pub(super) fn is_mostly_zeros(rows: Rows<'_>, columns_per_entry: usize, overhead: usize) -> bool {
    let counted = rows.rows().min(MAX_COUNTED_ROWS);
    if rows.cols() < MIN_COLUMNS || counted == 0 {
        return false;
    }
    let entries: usize = (0..counted).map(|i| rows.entries(i * rows.rows() / counted)).sum();
    columns_per_entry * entries <= counted * (rows.cols() + overhead)
}

/// Returns the largest magnitude of a dense row's numbers, and the squared or l1 length of the standardized row.
#[inline]
fn magnitudes_of<T: Element>(row: &[T], (centre, scale): (&[f64], f64), squared: bool) -> (f64, f64) {
    const LANES: usize = 8;
    let (mut entries, mut lengths) = ([0.0_f64; LANES], [0.0_f64; LANES]);
    let mut add = |lane: usize, v: T, c: f64| {
        let v = v.to_f64();
        let moved = (v - c) * scale;
        entries[lane] = if v.abs() > entries[lane] { v.abs() } else { entries[lane] };
        lengths[lane] += if squared { moved * moved } else { moved.abs() };
    };
    let (rows, centres) = (row.chunks_exact(LANES), centre.chunks_exact(LANES));
    for (lane, (&v, &c)) in rows.remainder().iter().zip(centres.remainder()).enumerate() {
        add(lane, v, c);
    }
    for (row, centre) in rows.zip(centres) {
        for lane in 0..LANES {
            add(lane, row[lane], centre[lane]);
        }
    }
    (entries.into_iter().fold(0.0, f64::max), lengths.iter().sum())
}

/// Returns whether a kernel is a function of sums of differences, not of products.
pub(super) fn is_l1(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Laplacian { .. } | Kernel::ChiSquared { .. })
}

/// Returns the kernel of rows that are multiplied by a power of two, and the power that brings gamma near 1.
pub(super) fn scaled(kernel: Kernel) -> (Kernel, f64) {
    let Some(gamma) = kernel.gamma().filter(|gamma| *gamma > 0.0) else { return (kernel, 1.0) };
    // Other kernels have a gamma times a distance, not times a product.
    let squared = !is_l1(&kernel) && !matches!(kernel, Kernel::Matern { .. });
    let exponent = (gamma.log2() / if squared { 2.0 } else { 1.0 }).round().clamp(-1000.0, 1000.0);
    let scale = exponent.exp2();
    // In two steps: the square of the scale may be beyond double precision if gamma is not.
    let gamma = if squared { gamma / scale / scale } else { gamma / scale };
    (kernel.with_gamma(gamma), scale)
}

/// Calls `visit(place, value)` for the entries of a row in the given columns, which are rising.
fn for_each_in_columns(rows: Rows<'_>, row: usize, columns: &[u32], mut visit: impl FnMut(usize, f64)) {
    let mut place = 0;
    rows.for_each_in_row(row, |k, v| {
        if columns.get(place).is_some_and(|&column| column as usize == k) {
            visit(place, v);
            place += 1;
        }
    });
}

/// Returns a number near the mean of the rows for each of the given columns, which are rising; unless `all` are to be
/// translated, 0 for columns for which a translation is not worth its cost.
fn near_mean(rows: Rows<'_>, columns: &[u32], all: bool, ctx: Context<'_>) -> Result<Vec<f64>> {
    let (n, d) = (rows.rows(), columns.len());
    if d == 0 {
        return Ok(Vec::new());
    }
    let count = n.min(MAX_CENTRE_ROWS);
    let (mut low, mut high) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
    let mut sums = vec![0.0; d];
    let interrupts = ctx.interrupts();
    for i in 0..count {
        interrupts.charge(d)?;
        for_each_in_columns(rows, i * n / count, columns, |place, v| {
            sums[place] += v;
            low[place] = low[place].min(v);
            high[place] = high[place].max(v);
        });
    }
    let rounded_mean = |place: usize| {
        let (low, spread) = (low[place], high[place] - low[place]);
        if spread == 0.0 {
            return low;
        }
        let mean: f64 = sums[place] / count as f64;
        if !all && mean.abs() < MIN_RELATIVE_OFFSET * spread {
            return 0.0;
        }
        let quantum = (spread.log2().floor() - 4.0).exp2();
        let near = (mean / quantum).round() * quantum;
        if near.is_finite() { near } else { low }
    };
    Ok((0..d).map(rounded_mean).collect())
}

/// Returns the columns that every row has, rising.
fn full_columns(rows: Rows<'_>) -> Vec<u32> {
    let mut columns = Vec::with_capacity(rows.entries(0));
    rows.for_each_entry(0, |k, _| columns.push(k as u32));
    for row in 1..rows.rows() {
        if columns.is_empty() {
            break;
        }
        let (mut place, mut n_full) = (0, 0);
        rows.for_each_entry(row, |k, _| {
            while place < columns.len() && (columns[place] as usize) < k {
                place += 1;
            }
            if columns.get(place).is_some_and(|&column| column as usize == k) {
                columns[n_full] = columns[place];
                n_full += 1;
                place += 1;
            }
        });
        columns.truncate(n_full);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::super::{Evaluator, KernelRows, diagonal, pair};
    use super::*;
    use crate::data::{CsrView, IndexSlice};
    use crate::expansion::ExpansionView;
    use crate::kernels::{Precision, Smoothness};
    use ndarray::Array2;
    use proptest::prelude::*;

    const N: usize = 20;
    const D: usize = 3;

    fn rows(of: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..N * D).map(|i| of((i as f64 * 0.77 + (i * i) as f64 * 0.013).sin())).collect()
    }

    /// Kernel values of all rows, in single precision, then outputs in both.
    fn values(kernel: Kernel, x: Rows<'_>) -> Vec<f64> {
        let order: Vec<usize> = (0..N).collect();
        let source = KernelRows::new(kernel, x, &order, Precision::Single, Context::SEQUENTIAL).unwrap();
        let mut values = vec![0.0_f32; N * N];
        source
            .compute(&order, &mut values.chunks_exact_mut(N).collect::<Vec<_>>(), Context::SEQUENTIAL)
            .unwrap();
        let b = Array2::from_shape_fn((N, 2), |(i, j)| (1.0 + i as f64) * if j == 0 { 1e-60 } else { 1e60 });
        let f = Evaluator::new(&ExpansionView::new(kernel, x, b.view(), &[0.0, 0.0]).unwrap()).unwrap();
        let mut all: Vec<f64> = values.into_iter().map(f64::from).collect();
        all.extend(f.evaluate(x, Context::SEQUENTIAL).unwrap().iter());
        all
    }

    proptest! {
        #[test]
        fn a_power_of_two_changes_no_bit(exponent in -480..480_i32, narrow in -115..115_i32) {
            let base = rows(f64::abs);
            for (kernel, times) in [
                (Kernel::Rbf { gamma: 0.7 }, 2),
                (Kernel::Laplacian { gamma: 0.7 }, 1),
                (Kernel::ChiSquared { gamma: 0.7 }, 1),
                (Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma: 0.7 }, 1),
                (Kernel::Polynomial { degree: 3, gamma: 0.7, coef0: 1.0 }, 2),
                (Kernel::Sigmoid { gamma: 0.7, coef0: 0.1 }, 2),
            ] {
                let there = |exponent: i32| kernel.with_gamma(0.7 * f64::from(-times * exponent).exp2());
                let moved: Vec<f64> = base.iter().map(|v| v * f64::from(exponent).exp2()).collect();
                let x = |of: &[f64]| values(kernel, Rows::from_shape((N, D), of).unwrap());
                prop_assert_eq!(x(&base), values(there(exponent), Rows::from_shape((N, D), &moved).unwrap()));
                let single: Vec<f32> = base.iter().map(|&v| v as f32).collect();
                let moved: Vec<f32> = single.iter().map(|v| v * (narrow as f32).exp2()).collect();
                let expected = values(kernel, Rows::from_shape((N, D), &single).unwrap());
                prop_assert_eq!(expected, values(there(narrow), Rows::from_shape((N, D), &moved).unwrap()));
            }
        }
    }

    #[test]
    fn an_offset_is_taken_out_of_dense_and_sparse_rows() {
        let indptr: Vec<i32> = (0..=N as i32).map(|i| i * D as i32).collect();
        let indices: Vec<i32> = (0..N).flat_map(|_| 0..D as i32).collect();
        for kernel in [
            Kernel::Rbf { gamma: 0.5 },
            Kernel::Laplacian { gamma: 0.5 },
            Kernel::Matern { smoothness: Smoothness::Half, gamma: 0.5 },
        ] {
            // Sixteenths, which are exact beside the offset.
            let near = rows(|v| (16.0 * v).round() / 16.0);
            let far: Vec<f64> = near.iter().map(|v| v + 1e8).collect();
            let csr = CsrView::new(IndexSlice::I32(&indptr), IndexSlice::I32(&indices), &far, D).unwrap();
            let x = Rows::from_shape((N, D), &near).unwrap();
            for far in [Rows::from_shape((N, D), &far).unwrap(), csr.into()] {
                let actual = values(kernel, far);
                for i in 0..N {
                    for j in 0..N {
                        assert!((actual[i * N + j] - pair(&kernel, x, i, x, j)).abs() < 1e-6, "{kernel:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_that_lack_a_moved_column_keep_their_distance() {
        let (indptr, indices) = ([0, 2, 4, 6], [0, 1, 0, 1, 0, 1]);
        let z = [1e8, 1.0, 1e8 + 1.0, 2.0, 1e8 + 2.0, 0.5];
        let z: Rows<'_> =
            CsrView::new(IndexSlice::I32(&indptr), IndexSlice::I32(&indices), &z, 2).unwrap().into();
        let (indptr, indices) = ([0, 1, 3], [1, 0, 1]);
        let x = [1.0, 1e8 + 1.0, 1.0];
        let x: Rows<'_> =
            CsrView::new(IndexSlice::I32(&indptr), IndexSlice::I32(&indices), &x, 2).unwrap().into();
        let kernel = Kernel::Rbf { gamma: 1e-16 };
        let actual = super::super::gram(&kernel, x, z, Context::SEQUENTIAL).unwrap();
        for i in 0..2 {
            for j in 0..3 {
                assert!((actual[[i, j]] - pair(&kernel, x, i, z, j)).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn columns_without_number_cost_nothing() {
        let (indptr, indices, values) = ([0_i64, 2, 3], [0_i64, 1 << 31, 5], [1.0, 2.0, 3.0]);
        let x: Rows<'_> = CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I64(&indices), &values, 1 << 40)
            .unwrap()
            .into();
        for kernel in [
            Kernel::Linear,
            Kernel::Rbf { gamma: 0.1 },
            Kernel::Laplacian { gamma: 0.1 },
            Kernel::Matern { smoothness: Smoothness::Half, gamma: 0.1 },
        ] {
            let actual = super::super::gram(&kernel, x, x, Context::SEQUENTIAL).unwrap();
            for (at, value) in actual.indexed_iter() {
                assert!((value - pair(&kernel, x, at.0, x, at.1)).abs() < 1e-15);
            }
            assert_eq!(diagonal(&kernel, x).len(), 2);
        }
        let beyond = [0_i64, 1 << 32, 5];
        let refused = CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I64(&beyond), &values, 1 << 40);
        assert!(refused.unwrap_err().to_string().contains("4294967296"));
    }

    #[test]
    fn rows_far_away_are_computed_in_double_precision() {
        let (z, b) = ([0.0_f32, 1.0], Array2::from_elem((2, 1), 1.0));
        let kernel = Kernel::Polynomial { degree: 4, gamma: 1.0, coef0: 0.0 };
        let z = Rows::from_shape((2, 1), &z).unwrap();
        let f = Evaluator::new(&ExpansionView::new(kernel, z, b.view(), &[0.0]).unwrap()).unwrap();
        let x = [2.0_f32, 1e12, 3.0];
        let actual = f.evaluate(Rows::from_shape((3, 1), &x).unwrap(), Context::SEQUENTIAL).unwrap();
        assert_eq!((actual[[0, 0]], actual[[2, 0]]), (16.0, 81.0));
        assert!((actual[[1, 0]] / 1e48 - 1.0).abs() < 1e-6);
        let beyond = [1e100];
        let refused = f.evaluate(Rows::from_shape((1, 1), &beyond).unwrap(), Context::SEQUENTIAL);
        assert!(refused.unwrap_err().to_string().contains("scaled"));
    }
}
