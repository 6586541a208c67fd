//! The frame in which rows are packed: x becomes (x - centre) scale, and the kernel the one that has the same values there.
//!
//! Squared distances are computed as ||x||^2 + ||z||^2 - 2 x'z, which cancels when rows lie far from the origin, and
//! numbers lose digits where they leave single precision. So RBF and Laplacian kernels, which a translation leaves as they
//! are, are computed about a centre near the mean, rounded so coarsely that subtracting it from numbers with few digits
//! (integers, pixels) stays exact. Sparse rows are moved in columns that all of them have, where that does not fill zeros.
//! So are rows of the linear kernel where all coefficients that it is summed with sum to zero (machines with an intercept):
//! sum b_i (x_i - c)'(x - c) is sum b_i x_i'x but for the constant -w'c, w = sum b_i x_i, which belongs to the intercept.
//! Dense rows that are mostly zeros are treated as sparse ones: kernel values take as long in either layout of the input.
//! And `gamma` goes into the rows, by a power of two, which changes no digit: what is left of it is between 1/2 and 2.

use super::bytes::Unit;
use super::function::KernelFunction;
use crate::context::Context;
use crate::data::{Element, Rows, row as dense_row};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::memory::{TryCollect, TryGrow, try_vec, try_with_capacity};
use crate::simd::blas::{axpy, axpy_compensated, dot_compensated};
use crate::with_rows;

/// Units in the last place that the exponential and the last operations of a kernel may be off.
pub(super) const FINISH: f64 = 6.0;

/// The relative error of a result of n roundings.
pub(crate) fn relative_error_bound(n: usize, single: bool) -> f64 {
    let n = n as f64 + 4.0;
    if single { 10.0 * n.sqrt() * f64::from(f32::EPSILON) / 2.0 } else { 1.01 * n * f64::EPSILON / 2.0 }
}

/// Rows that the centre is the mean of.
const SAMPLE: usize = 1024;
/// Rows that are looked at for zeros.
const LOOKED_AT: usize = 256;
/// Sparse rows are the faster ones where dense ones have so many columns for each number that is not zero, in single and
/// double precision; as bytes, where they have so many more [`BYTES_OVERHEAD`] columns.
const COLUMNS_AN_ENTRY: usize = 6;
const BYTE_COLUMNS_AN_ENTRY: usize = 12;
const BYTES_OVERHEAD: usize = 64;
/// Columns from which on the layout matters.
const LEAST_COLUMNS: usize = 32;
/// A column is worth a translation where it is so many times as far from zero as it is wide.
const FAR: f64 = 8.0;
/// Largest numbers that sums of products are made of, in single and in double precision.
const SINGLE: f64 = 1e37;
const DOUBLE: f64 = 1e300;
/// Squared lengths about the centre, times gamma, from which on single precision misses distances by a hundredth.
const LONG: f64 = 65536.0;

/// The precision in which kernel values are computed; rows are kept in single precision either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Twice as fast; errors of about 1e-7 relative to k(x, x).
    #[default]
    Single,
    /// For kernels whose values are large against their differences.
    Double,
}

/// Which translations leave what is computed as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoefficientSum {
    /// Those that the kernel does not see.
    Any,
    /// Those of the linear kernel too: it is only summed with coefficients that sum to zero.
    Zero,
}

/// A translation and a power of two, for one kernel.
#[derive(Clone)]
pub(super) struct Standardization {
    original: Kernel,
    kernel: Kernel,
    /// Which columns are moved, for rows that are packed as sparse ones; `None` for all.
    columns: Option<Vec<u32>>,
    centre: Vec<f64>,
    scale: f64,
    /// Of rows that are packed as bytes.
    unit: Option<Unit>,
}

impl Standardization {
    /// For rows like these.
    pub(super) fn of(kernel: &Kernel, rows: Rows<'_>) -> Result<Self> {
        Self::with_coefficients(kernel, rows, CoefficientSum::Any)
    }

    /// For rows like these, and coefficients with such sums.
    pub(super) fn with_coefficients(kernel: &Kernel, rows: Rows<'_>, sums: CoefficientSum) -> Result<Self> {
        let (kernel_there, scale) = scaled(*kernel);
        let whole = |centre| Self {
            original: *kernel,
            kernel: kernel_there,
            columns: None,
            centre,
            scale,
            unit: None,
        };
        let is_linear = *kernel == Kernel::Linear && sums == CoefficientSum::Zero;
        let moves =
            (is_linear || matches!(kernel, Kernel::Rbf { .. } | Kernel::Laplacian { .. })) && rows.rows() > 0;
        if !is_packed_sparse(rows) {
            let everywhere = is_linear || matches!(kernel, Kernel::Rbf { .. });
            let all: Vec<u32> =
                (0..if moves { rows.cols() } else { 0 }).map(|k| k as u32).try_collect_vec()?;
            let mut centre = near_mean(rows, &all, everywhere)?;
            centre.try_resize(rows.cols(), 0.0)?;
            return Ok(whole(centre));
        }
        let columns = if moves { full_columns(rows)? } else { Vec::new() };
        let centre = near_mean(rows, &columns, false)?;
        let moved = || columns.iter().zip(&centre).filter(|(_, c)| **c != 0.0);
        let (columns, centre) =
            (moved().map(|(k, _)| *k).try_collect_vec()?, moved().map(|(_, c)| *c).try_collect_vec()?);
        Ok(Self { columns: Some(columns), ..whole(centre) })
    }

    /// The same with dense rows as bytes, in single precision, where that is possible and worth it for these.
    pub(super) fn with_bytes(mut self, rows: Rows<'_>, ctx: Context<'_>) -> Self {
        if !is_faster_sparse(rows, BYTE_COLUMNS_AN_ENTRY, BYTES_OVERHEAD) {
            self.unit = Unit::of(&self.kernel, self.scale, rows, ctx);
        }
        self
    }

    /// Whether rows that are not packed as bytes are packed by their entries.
    pub(super) fn is_sparse(&self) -> bool {
        self.columns.is_some()
    }

    /// What rows that are packed as bytes are multiples of.
    pub(super) fn unit(&self) -> Option<Unit> {
        self.unit
    }

    /// The kernel of rows in the frame.
    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What is subtracted from dense rows, in the order of the columns, and what they are multiplied by.
    pub(super) fn dense(&self) -> (&[f64], f64) {
        (&self.centre, self.scale)
    }

    /// Calls `visit(column, value)` for the entries of a row in the frame, in the order of their columns; others are zero.
    pub(super) fn for_each(&self, rows: Rows<'_>, row: usize, mut visit: impl FnMut(usize, f64)) {
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

    /// The squared length of a row in the frame.
    pub(super) fn squared_norm(&self, rows: Rows<'_>, row: usize) -> f64 {
        let mut sum = 0.0;
        self.for_each(rows, row, |_, v| sum += v * v);
        sum
    }

    /// As [`Standardization::squared_norm`], faster for dense rows: in another order of the columns.
    pub(super) fn squared_length(&self, rows: Rows<'_>, row: usize) -> f64 {
        if self.is_sparse() {
            return self.squared_norm(rows, row);
        }
        with_rows!(&rows,
            dense(view) => spans(dense_row(view, row), &self.centre, self.scale, true).1,
            csr(_s) => self.squared_norm(rows, row))
    }

    /// The inner product of a row with the centre, as a sum of two numbers; with a centre that is not zero all numbers of
    /// the row are below the root of [`DOUBLE`].
    fn along_centre(&self, rows: Rows<'_>, row: usize) -> Result<(f64, f64)> {
        let mut values = try_vec![0.0; self.centre.len()]?;
        match &self.columns {
            None => rows.for_each_in_row(row, |k, v| values[k] = v),
            Some(columns) => {
                let mut place = 0;
                rows.for_each_in_row(row, |k, v| {
                    if columns.get(place).is_some_and(|&column| column as usize == k) {
                        values[place] = v;
                        place += 1;
                    }
                });
            }
        }
        Ok(dot_compensated(&values, &self.centre))
    }

    /// w_j'c of w_j = sum_i B[i, j] x_i over the listed rows, (q,), as if in twice the precision; zeros where there is no
    /// centre.
    pub(super) fn centre_products(
        &self,
        rows: Rows<'_>,
        list: &[usize],
        coefficients: &[f64],
        q: usize,
    ) -> Result<Vec<f64>> {
        let (mut sums, mut rests) = (try_vec![0.0; q]?, try_vec![0.0; q]?);
        if self.centre.iter().any(|c| *c != 0.0) {
            for (&row, coefficients) in list.iter().zip(coefficients.chunks_exact(q)) {
                let (product, rest) = self.along_centre(rows, row)?;
                axpy_compensated(product, coefficients, &mut sums, &mut rests);
                axpy(rest, coefficients, &mut rests);
            }
        }
        sums.iter().zip(rests).map(|(sum, rest)| sum + rest).try_collect_vec()
    }

    /// How large numbers get for these rows.
    pub(super) fn reach(&self, rows: Rows<'_>) -> Magnitudes {
        let mut reach =
            Magnitudes { kernel: self.original, entry: 0.0, longest: 0.0, value: 1.0, cols: rows.cols() };
        let squared = !is_l1(&self.kernel);
        for row in 0..rows.rows() {
            let by_entries = || {
                let (mut entry, mut length) = (0.0_f64, 0.0);
                rows.for_each_entry(row, |_, v| entry = entry.max(v.abs()));
                self.for_each(rows, row, |_, v| length += if squared { v * v } else { v.abs() });
                (entry, length)
            };
            let (entry, length) = with_rows!(&rows,
            dense(view) => {
                if self.is_sparse() { by_entries() } else { spans(dense_row(view, row), &self.centre, self.scale, squared) }
            },
            csr(_s) => by_entries());
            reach.entry = reach.entry.max(entry);
            if self.kernel != Kernel::Precomputed {
                reach.longest = reach.longest.max(length);
            }
        }
        reach.value = match self.kernel {
            Kernel::Linear => reach.longest,
            Kernel::Polynomial { degree, gamma, coef0 } => {
                (gamma * reach.longest + coef0.abs()).powf(f64::from(degree))
            }
            Kernel::Precomputed => reach.entry,
            _ => 1.0,
        };
        reach
    }
}

/// How large the numbers are that a kernel's values are made of.
pub(crate) struct Magnitudes {
    kernel: Kernel,
    /// The largest number of the rows.
    entry: f64,
    /// The largest squared length in the frame; for sums of differences the largest l1 length.
    longest: f64,
    /// No kernel value of two of the rows is larger.
    value: f64,
    /// Columns of the rows.
    cols: usize,
}

impl Magnitudes {
    /// Of kernel values among these rows; a function of the caller's vouches for its own.
    pub(crate) fn new(kernel: KernelFunction<'_>, rows: Rows<'_>) -> Result<Self> {
        Self::with_coefficients(kernel, rows, CoefficientSum::Any)
    }

    /// The same for coefficients with such sums.
    pub(crate) fn with_coefficients(
        kernel: KernelFunction<'_>,
        rows: Rows<'_>,
        sums: CoefficientSum,
    ) -> Result<Self> {
        match kernel {
            KernelFunction::BuiltIn(kernel) => {
                Ok(Standardization::with_coefficients(&kernel, rows, sums)?.reach(rows))
            }
            KernelFunction::Blocks(_) => {
                Ok(Self { kernel: Kernel::Precomputed, entry: 0.0, longest: 0.0, value: 0.0, cols: 0 })
            }
        }
    }

    /// The largest size of a kernel value, and how far one that is computed in double precision may be from the exact one
    /// (see `rounding`). Values that are given are exact.
    pub(crate) fn in_double(&self) -> (f64, f64) {
        let (of_sum, finish) =
            (relative_error_bound(self.cols + 4, false), FINISH * relative_error_bound(0, false));
        // What is left of gamma in the frame is at most 2.
        let error = match self.kernel {
            Kernel::Precomputed => 0.0,
            Kernel::Linear => (of_sum + finish) * self.longest,
            Kernel::Polynomial { degree, .. } => 1.1 * f64::from(degree) * (of_sum + finish) * self.value,
            Kernel::Rbf { .. } => 8.8 * of_sum * self.longest + finish,
            Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => 6.6 * of_sum * self.longest + finish,
            Kernel::Sigmoid { coef0, .. } => 2.2 * of_sum * self.longest + finish * (1.0 + coef0.abs()),
        };
        (self.value, error)
    }

    /// (a, b) of an error of at most k(x, z) (a + b (s + t)) in double precision, with the scales s and t of the rows (see
    /// `KernelRows::scales`); `None` where there is no such bound.
    pub(crate) fn relative_error_in_double(&self) -> Option<(f64, f64)> {
        let (of_sum, finish) =
            (relative_error_bound(self.cols + 4, false), FINISH * relative_error_bound(0, false));
        let slope = match self.kernel {
            Kernel::Rbf { .. } => 4.4 * of_sum,
            Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => 3.3 * of_sum,
            _ => return None,
        };
        (slope * (2.0 * self.longest) < 0.1).then_some((finish, slope))
    }

    /// Whether values can be computed in single precision.
    pub(crate) fn is_single(&self) -> bool {
        self.value < SINGLE && is_single(&self.kernel, self.longest)
    }

    /// Whether values can be computed, in double precision, and then be kept in single precision where `kept` says so.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub(crate) fn check(&self, what: &'static str, kept: Precision) -> Result<()> {
        let limit = if kept == Precision::Single { SINGLE } else { DOUBLE };
        // The linear kernel's values are small about a centre, but products with the centre are not.
        let around = self.entry * self.entry * self.cols as f64;
        if self.longest < DOUBLE && self.value < limit && (self.kernel != Kernel::Linear || around < DOUBLE) {
            return Ok(());
        }
        Err(self.refuse(what, format!("stay below {limit:e}")))
    }

    /// As [`Magnitudes::check`] for values so small that single precision takes them for zero, unless less than `enough` is
    /// zero for the caller.
    pub(crate) fn check_small(&self, what: &'static str, enough: f64) -> Result<()> {
        let tiny = self.value > 0.0 && self.value < 1.0 / SINGLE;
        if tiny && self.value > 1e-3 * enough {
            Err(self.refuse(what, format!("reach {:e}", 1.0 / SINGLE)))
        } else {
            Ok(())
        }
    }

    fn refuse(&self, what: &'static str, goal: String) -> Error {
        let Self { kernel, entry, longest, value, .. } = *self;
        let gamma = kernel.gamma().map_or(String::new(), |gamma| format!(" and gamma={gamma:e}"));
        let found = if longest >= DOUBLE {
            longest
        } else if value >= SINGLE || kernel != Kernel::Linear {
            value
        } else {
            value.max(entry * entry)
        };
        Error::param(
            what,
            format!("numbers up to {entry:e}"),
            format!(
                "scaled (for example by StandardScaler) so that {} kernel values {goal}: with these numbers{gamma} they \
                 are as large as {found:e}",
                kernel.name()
            ),
        )
    }
}

/// Whether rows are packed by their entries where they are not packed as bytes: sparse rows, and dense ones that are
/// mostly zeros.
pub(crate) fn is_packed_sparse(rows: Rows<'_>) -> bool {
    rows.is_sparse() || is_faster_sparse(rows, COLUMNS_AN_ENTRY, 0)
}

/// Whether rows have at least so many columns, and `more`, for each number that is not zero; a look at some of them.
fn is_faster_sparse(rows: Rows<'_>, columns_an_entry: usize, more: usize) -> bool {
    let looked_at = rows.rows().min(LOOKED_AT);
    if rows.cols() < LEAST_COLUMNS || looked_at == 0 {
        return false;
    }
    let entries: usize = (0..looked_at).map(|i| rows.entries(i * rows.rows() / looked_at)).sum();
    columns_an_entry * entries <= looked_at * (rows.cols() + more)
}

/// Whether values of rows of such a squared length in the frame can be computed in single precision.
pub(super) fn is_single(kernel: &Kernel, squared_norm: f64) -> bool {
    squared_norm < if matches!(kernel, Kernel::Rbf { .. }) { LONG } else { SINGLE }
}

/// The largest size of the numbers of a dense row, and its squared or l1 length in the frame.
#[inline]
fn spans<T: Element>(row: &[T], centre: &[f64], scale: f64, squared: bool) -> (f64, f64) {
    const LANES: usize = 8;
    let (mut entries, mut lengths) = ([0.0_f64; LANES], [0.0_f64; LANES]);
    let mut look = |lane: usize, v: T, c: f64| {
        let v = v.to_f64();
        let there = (v - c) * scale;
        entries[lane] = if v.abs() > entries[lane] { v.abs() } else { entries[lane] };
        lengths[lane] += if squared { there * there } else { there.abs() };
    };
    let (rows, centres) = (row.chunks_exact(LANES), centre.chunks_exact(LANES));
    for (lane, (&v, &c)) in rows.remainder().iter().zip(centres.remainder()).enumerate() {
        look(lane, v, c);
    }
    for (row, centre) in rows.zip(centres) {
        for lane in 0..LANES {
            look(lane, row[lane], centre[lane]);
        }
    }
    (entries.into_iter().fold(0.0, f64::max), lengths.iter().sum())
}

/// Whether a kernel is made of sums of differences, not of products.
fn is_l1(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Laplacian { .. } | Kernel::ChiSquared { .. })
}

/// The kernel of rows that are multiplied by a power of two, and the power: gamma near 1.
pub(super) fn scaled(kernel: Kernel) -> (Kernel, f64) {
    let Some(gamma) = kernel.gamma().filter(|gamma| *gamma > 0.0) else { return (kernel, 1.0) };
    let squared = !is_l1(&kernel);
    let exponent = (gamma.log2() / if squared { 2.0 } else { 1.0 }).round().clamp(-1000.0, 1000.0);
    let scale = exponent.exp2();
    // In two steps: the square of the scale may be beyond double precision where gamma is not.
    let gamma = if squared { gamma / scale / scale } else { gamma / scale };
    (kernel.with_gamma(gamma), scale)
}

/// For each of the columns, which are rising, a number near the mean of what the rows have there; unless `all` are worth a
/// translation, 0 for those that are not.
fn near_mean(rows: Rows<'_>, columns: &[u32], all: bool) -> Result<Vec<f64>> {
    let (n, d) = (rows.rows(), columns.len());
    if d == 0 {
        return Ok(Vec::new());
    }
    let count = n.min(SAMPLE);
    let (mut low, mut high) = (try_vec![f64::INFINITY; d]?, try_vec![f64::NEG_INFINITY; d]?);
    let mut sums = try_vec![0.0; d]?;
    for i in 0..count {
        let mut place = 0;
        rows.for_each_in_row(i * n / count, |k, v| {
            if columns.get(place).is_some_and(|&column| column as usize == k) {
                sums[place] += v;
                low[place] = low[place].min(v);
                high[place] = high[place].max(v);
                place += 1;
            }
        });
    }
    let of = |place: usize| {
        let (low, spread) = (low[place], high[place] - low[place]);
        if spread == 0.0 {
            return low;
        }
        let mean: f64 = sums[place] / count as f64;
        if !all && mean.abs() < FAR * spread {
            return 0.0;
        }
        let quantum = (spread.log2().floor() - 4.0).exp2();
        let near = (mean / quantum).round() * quantum;
        if near.is_finite() { near } else { low }
    };
    (0..d).map(of).try_collect_vec()
}

/// The columns that every row has, rising.
fn full_columns(rows: Rows<'_>) -> Result<Vec<u32>> {
    let mut columns = try_with_capacity("the columns", rows.entries(0))?;
    rows.for_each_entry(0, |k, _| columns.push(k as u32));
    for row in 1..rows.rows() {
        if columns.is_empty() {
            break;
        }
        let (mut place, mut kept) = (0, 0);
        rows.for_each_entry(row, |k, _| {
            while place < columns.len() && (columns[place] as usize) < k {
                place += 1;
            }
            if columns.get(place).is_some_and(|&column| column as usize == k) {
                columns[kept] = columns[place];
                kept += 1;
                place += 1;
            }
        });
        columns.truncate(kept);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::super::{Evaluator, KernelRows, diagonal, pair};
    use super::*;
    use crate::data::{CsrView, IndexSlice};
    use crate::expansion::ExpansionView;
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
        for kernel in [Kernel::Rbf { gamma: 0.5 }, Kernel::Laplacian { gamma: 0.5 }] {
            // Sixteenths, which are exact beside the offset.
            let near = rows(|v| (16.0 * v).round() / 16.0);
            let far: Vec<f64> = near.iter().map(|v| v + 1e8).collect();
            let csr = CsrView::new(IndexSlice::I32(&indptr), IndexSlice::I32(&indices), &far, D).unwrap();
            let x = Rows::from_shape((N, D), &near).unwrap();
            for far in [Rows::from_shape((N, D), &far).unwrap(), csr.into()] {
                let found = values(kernel, far);
                for i in 0..N {
                    for j in 0..N {
                        assert!((found[i * N + j] - pair(&kernel, x, i, x, j)).abs() < 1e-6, "{kernel:?}");
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
        let found = super::super::gram(&kernel, x, z, Context::SEQUENTIAL).unwrap();
        for i in 0..2 {
            for j in 0..3 {
                assert!((found[[i, j]] - pair(&kernel, x, i, z, j)).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn columns_without_number_cost_nothing() {
        let (indptr, indices, values) = ([0_i64, 2, 3], [0_i64, 1 << 31, 5], [1.0, 2.0, 3.0]);
        let x: Rows<'_> = CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I64(&indices), &values, 1 << 40)
            .unwrap()
            .into();
        for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 0.1 }, Kernel::Laplacian { gamma: 0.1 }] {
            let found = super::super::gram(&kernel, x, x, Context::SEQUENTIAL).unwrap();
            for (at, value) in found.indexed_iter() {
                assert!((value - pair(&kernel, x, at.0, x, at.1)).abs() < 1e-15);
            }
            assert_eq!(diagonal(&kernel, x).unwrap().len(), 2);
        }
        let beyond = [0_i64, 1 << 32, 5];
        let refused = CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I64(&beyond), &values, 1 << 40);
        assert!(refused.unwrap_err().to_string().contains("4294967296"));
    }

    #[test]
    fn numbers_beyond_the_precision_are_refused_by_name() {
        for (size, kernel, kept) in [
            (1e200, Kernel::Linear, Precision::Double),
            (1e30, Kernel::Linear, Precision::Single),
            (1e9, Kernel::Polynomial { degree: 20, gamma: 1.0, coef0: 0.0 }, Precision::Double),
            (1e160, Kernel::Rbf { gamma: 1.0 }, Precision::Double),
        ] {
            let x = rows(|v| size * v);
            let reach = Magnitudes::new(kernel.into(), Rows::from_shape((N, D), &x).unwrap()).unwrap();
            let told = reach.check("X", kept).unwrap_err().to_string();
            assert!(told.starts_with("X=numbers up to ") && told.contains(kernel.name()), "{told}");
        }
        let x = rows(|v| 1e-30 * v);
        let reach = Magnitudes::new(Kernel::Linear.into(), Rows::from_shape((N, D), &x).unwrap()).unwrap();
        assert!(reach.check_small("X", 1e-3).is_ok() && reach.check_small("X", 1e-60).is_err());
    }

    #[test]
    fn rows_far_away_are_computed_in_double_precision() {
        let (z, b) = ([0.0_f32, 1.0], Array2::from_elem((2, 1), 1.0));
        let kernel = Kernel::Polynomial { degree: 4, gamma: 1.0, coef0: 0.0 };
        let z = Rows::from_shape((2, 1), &z).unwrap();
        let f = Evaluator::new(&ExpansionView::new(kernel, z, b.view(), &[0.0]).unwrap()).unwrap();
        let x = [2.0_f32, 1e12, 3.0];
        let found = f.evaluate(Rows::from_shape((3, 1), &x).unwrap(), Context::SEQUENTIAL).unwrap();
        assert_eq!((found[[0, 0]], found[[2, 0]]), (16.0, 81.0));
        assert!((found[[1, 0]] / 1e48 - 1.0).abs() < 1e-6);
        let beyond = [1e100];
        let refused = f.evaluate(Rows::from_shape((1, 1), &beyond).unwrap(), Context::SEQUENTIAL);
        assert!(refused.unwrap_err().to_string().contains("scaled"));
    }
}
