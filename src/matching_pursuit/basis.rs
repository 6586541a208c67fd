//! An orthonormal basis Q of the chosen columns, D_S = Q L', grown by one column at a time.
//!
//! Columns are orthogonalized by the classical Gram-Schmidt method, and again if rounding left too much of the span in the
//! residual. So Q stays orthogonal for any condition of D_S, and residuals are orthogonal to the chosen columns. The products
//! Q'd of a column are known since it was a candidate. One pass over Q, by stretches of rows that stay in the cache, subtracts
//! Q Q'd and computes the products of the residual. A pass can serve several columns. Residuals are stored, so that only newer
//! vectors are subtracted from a column when it is chosen. The validation rows get the same combinations.
//!
//! Cost of a column 2 n l multiply-adds for n columns before it, 3 n l where it is done twice.

use crate::context::Context;
use crate::data::{copy_flat, matrix};
use crate::error::Result;
use crate::linalg::matrix_of_rows;
use crate::memory::{TryCollect, TryGrow, try_reserve, try_vec, try_with_capacity};
use crate::simd::blas::{add_rows, axpy, dot};
use crate::simd::inner::row_products;
use ndarray::Array2;

/// A function whose squared distance from the span is below this share of its squared norm counts as inside it.
pub(super) const SPAN_TOLERANCE: f64 = 1e-10;
/// Number of entries of Q that fit a core's cache: 512 kB.
const CACHE_NUMBERS: usize = 1 << 16;
/// Minimum and maximum length of a stretch of a vector.
const STRETCH_LENGTHS: (usize, usize) = (128, 4096);

/// Maximum share of the squared norm of a residual that lies in the span.
const REORTHOGONALIZE_ABOVE: f64 = 1e-28;
/// Rounding error of a column, relative to its norm: a few roundings of a kernel value.
const COLUMN_ROUNDING: f64 = 8.0 * f64::EPSILON;
/// Squared ratio of a residual to its rounding from which it counts as known.
const SQUARED_CERTAINTY: f64 = 1e4;
/// Share of its squared norm below which newer vectors reduce a residual so far that it is projected on all vectors again.
const REPROJECT_BELOW: f64 = 1e-2;

/// Q as n vectors of l numbers, L as lines, and the basis functions on the validation rows.
pub(super) struct Basis {
    rows: usize,
    validation_rows: usize,
    vectors: Vec<f64>,
    validation: Vec<f64>,
    lines: Vec<Vec<f64>>,
    /// Squared rounding error of each vector.
    errors: Vec<f64>,
}

/// The residual of a column after projection on the first vectors of the basis, and its products with them.
#[derive(Clone)]
pub(super) struct ColumnResidual {
    column: Vec<f64>,
    line: Vec<f64>,
    /// Squared norm of the column.
    squared_norm: f64,
    /// Squared norm of the residual.
    squared: f64,
}

impl ColumnResidual {
    /// Returns the residual of a column before any projection.
    pub(super) fn of(column: Vec<f64>) -> Self {
        let squared_norm = dot(&column, &column);
        Self { column, line: Vec::new(), squared_norm, squared: squared_norm }
    }

    pub(super) fn column(&self) -> &[f64] {
        &self.column
    }

    /// Returns its squared norm.
    pub(super) fn squared(&self) -> f64 {
        self.squared
    }

    /// Returns the number of vectors whose parts were subtracted.
    pub(super) fn seen(&self) -> usize {
        self.line.len()
    }
}

/// A column outside the span: `direction` is its normalized residual.
pub(super) struct NewDirection {
    pub(super) line: Vec<f64>,
    pub(super) pivot: f64,
    pub(super) direction: Vec<f64>,
    /// Squared rounding error of the direction.
    error: f64,
}

impl Basis {
    pub(super) fn new(rows: usize, validation_rows: usize) -> Self {
        let (vectors, validation, lines, errors) = Default::default();
        Self { rows, validation_rows, vectors, validation, lines, errors }
    }

    /// Returns the number of vectors.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns the n vectors, one after the other.
    pub(super) fn vectors(&self) -> &[f64] {
        &self.vectors
    }

    fn stretch(&self) -> usize {
        let (min_length, max_length) = STRETCH_LENGTHS;
        (CACHE_NUMBERS / self.len().max(1)).next_multiple_of(64).clamp(min_length, max_length)
    }

    /// Returns Q'v.
    pub(super) fn products(&self, v: &[f64], ctx: Context<'_>) -> Vec<f64> {
        ctx.map(self.len(), |j| dot(&self.vectors[j * self.rows..(j + 1) * self.rows], v))
    }

    /// Adds Q c to `out`.
    pub(super) fn add(&self, c: &[f64], out: &mut [f64], ctx: Context<'_>) -> Result<()> {
        self.add_from(0, c, out, ctx)
    }

    /// Adds the products of the vectors from `first` on to `outs`; `c` has a line of coefficients for each of them.
    fn add_from(&self, first: usize, c: &[f64], outs: &mut [f64], ctx: Context<'_>) -> Result<()> {
        let (rows, stretch) = (self.rows, self.stretch());
        let lines = self.lines_of(first, c, outs);
        let start: &[f64] = outs;
        let done = ctx.try_map(rows.div_ceil(stretch), |chunk| {
            let (from, to) = (chunk * stretch, rows.min((chunk + 1) * stretch));
            let mut parts = stretches(start, rows, from, to)?;
            add_rows(c, &lines, from, &mut parts);
            Ok(parts)
        })?;
        for (chunk, parts) in done.iter().enumerate() {
            put_stretches(parts, outs, rows, chunk * stretch);
        }
        Ok(())
    }

    /// Returns the vectors from `first` on for which `c` has coefficients, in a line for each of `outs`.
    fn lines_of(&self, first: usize, c: &[f64], outs: &[f64]) -> Vec<&[f64]> {
        let n = c.len() * self.rows / outs.len().max(1);
        self.vectors.chunks_exact(self.rows).skip(first).take(n).collect()
    }

    /// Adds the products of the vectors from `first` on to `outs`, calls `then` with each stretch and the number of its first
    /// row, and returns Q'outs, in one pass over Q. The coefficients `c` and the products have a line for each of `outs`.
    fn pass(
        &self,
        first: usize,
        c: &[f64],
        outs: &mut [f64],
        then: impl Fn(usize, &mut [f64]) + Sync + Send,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        let (rows, stretch) = (self.rows, self.stretch());
        let lines = self.lines_of(first, c, outs);
        let (count, n) = (outs.len() / rows, lines.len());
        let start: &[f64] = outs;
        let done = ctx.try_map(rows.div_ceil(stretch), |chunk| {
            let (from, to) = (chunk * stretch, rows.min((chunk + 1) * stretch));
            let mut parts = stretches(start, rows, from, to)?;
            add_rows(c, &lines, from, &mut parts);
            then(from, &mut parts);
            let lines: Vec<&[f64]> = lines.iter().map(|line| &line[from..to]).collect();
            let mut products = try_vec![0.0; n * count]?;
            row_products(&lines, &parts, to - from, &mut products);
            Ok((parts, products))
        })?;
        let mut products = try_vec![0.0; n * count]?;
        for (chunk, (parts, some)) in done.iter().enumerate() {
            put_stretches(parts, outs, rows, chunk * stretch);
            axpy(1.0, some, &mut products);
        }
        if count > 1 {
            products = copy_flat(matrix((n, count), &products)?.t())?;
        }
        Ok(products)
    }

    /// Adds Q c to `out`, calls `then` with each stretch and the number of its first row, and returns Q'out, in one pass over Q.
    pub(super) fn add_and_project(
        &self,
        c: &[f64],
        out: &mut [f64],
        then: impl Fn(usize, &mut [f64]) + Sync + Send,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        self.pass(0, c, out, then, ctx)
    }

    /// Subtracts the parts along the vectors from `first` on from columns, which lie one after the other. `lines` are their
    /// products with these vectors; they may be inexact and are corrected.
    fn subtract_projection(
        &self,
        first: usize,
        columns: &mut [f64],
        lines: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let (l, n) = (self.rows, lines.len() * self.rows / columns.len());
        let minus = |c: &[f64]| c.iter().map(|v| -v).try_collect_vec();
        let left = self.pass(first, &minus(lines)?, columns, |_, _| {}, ctx)?;
        let again = left
            .chunks_exact(n)
            .zip(columns.chunks_exact(l))
            .any(|(left, column)| dot(left, left) > REORTHOGONALIZE_ABOVE * dot(column, column));
        if again {
            self.add_from(first, &minus(&left)?, columns, ctx)?;
            axpy(1.0, &left, lines);
        }
        Ok(())
    }

    /// Subtracts the next vectors from residuals that have seen the same number of them. `newer` has a line of products with
    /// these vectors for each residual; they may be inexact.
    pub(super) fn orthogonalize(
        &self,
        residuals: &mut [ColumnResidual],
        newer: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<()> {
        let (first, l) = (residuals.first().map_or(0, ColumnResidual::seen), self.rows);
        let n = newer.len() / residuals.len().max(1);
        let mut columns = try_with_capacity("columns of the dictionary", residuals.len() * l)?;
        for residual in residuals.iter() {
            columns.extend_from_slice(&residual.column);
        }
        self.subtract_projection(first, &mut columns, newer, ctx)?;
        for (k, (residual, column)) in residuals.iter_mut().zip(columns.chunks_exact_mut(l)).enumerate() {
            residual.line.try_extend(newer[k * n..(k + 1) * n].iter().copied())?;
            let mut squared = dot(column, column);
            if first > 0 && squared < REPROJECT_BELOW * residual.squared {
                let mut again = vec![0.0; first + n];
                self.subtract_projection(0, column, &mut again, ctx)?;
                axpy(1.0, &again, &mut residual.line);
                squared = dot(column, column);
            }
            residual.column.copy_from_slice(column);
            residual.squared = squared;
        }
        Ok(())
    }

    /// Returns the squared rounding error of a residual: that of its column, and those of the vectors that were subtracted.
    /// Roundings are taken as independent.
    fn squared_rounding(&self, line: &[f64], squared_norm: f64) -> f64 {
        let taken: f64 = line.iter().zip(&self.errors).map(|(share, error)| share * share * error).sum();
        COLUMN_ROUNDING * COLUMN_ROUNDING * squared_norm + taken
    }

    /// Returns whether a column is outside the span of the vectors that were subtracted: its squared distance is more than
    /// `inside` of its squared norm, or, if functions may share a large part (`inside` is 0), more than its rounding.
    pub(super) fn is_outside(&self, residual: &ColumnResidual, inside: f64) -> bool {
        if inside > 0.0 {
            residual.squared > inside * residual.squared_norm
        } else {
            residual.squared
                > SQUARED_CERTAINTY * self.squared_rounding(&residual.line, residual.squared_norm)
        }
    }

    /// Splits a column into its parts inside and outside the span; `newer` are its products with the vectors that it has
    /// not seen, which may be inexact. `None` if it is not outside ([`Basis::is_outside`]).
    pub(super) fn split(
        &self,
        mut residual: ColumnResidual,
        mut newer: Vec<f64>,
        inside: f64,
        ctx: Context<'_>,
    ) -> Result<Option<NewDirection>> {
        self.orthogonalize(std::slice::from_mut(&mut residual), &mut newer, ctx)?;
        if !self.is_outside(&residual, inside) {
            return Ok(None);
        }
        let ColumnResidual { mut column, line, squared_norm, squared } = residual;
        let (pivot, error) = (squared.sqrt(), self.squared_rounding(&line, squared_norm) / squared);
        for v in &mut column {
            *v /= pivot;
        }
        Ok(Some(NewDirection { line, pivot, direction: column, error }))
    }

    /// Appends a split column; `validation` holds its function on the validation rows.
    pub(super) fn push(&mut self, outside: NewDirection, mut validation: Vec<f64>) -> Result<()> {
        let NewDirection { mut line, pivot, direction, error } = outside;
        let n = self.validation_rows;
        for (j, &c) in line.iter().enumerate() {
            axpy(-c, &self.validation[j * n..(j + 1) * n], &mut validation);
        }
        let basis = "the basis of a pursuit";
        try_reserve(basis, &mut self.vectors, direction.len())?;
        try_reserve(basis, &mut self.validation, validation.len())?;
        self.validation.extend(validation.iter().map(|v| v / pivot));
        self.vectors.extend(direction);
        line.push(pivot);
        self.lines.push(line);
        self.errors.push(error);
        Ok(())
    }

    /// Removes the last column.
    pub(super) fn pop(&mut self) {
        self.lines.pop();
        self.errors.pop();
        self.vectors.truncate(self.lines.len() * self.rows);
        self.validation.truncate(self.lines.len() * self.validation_rows);
    }

    /// Returns the last vector, and the last basis function on the validation rows.
    pub(super) fn last(&self) -> (&[f64], &[f64]) {
        let n = self.len().saturating_sub(1);
        (&self.vectors[n * self.rows..], &self.validation[n * self.validation_rows..])
    }

    /// Returns L, (n, n).
    pub(super) fn factor(&self) -> Result<Array2<f64>> {
        matrix_of_rows(&self.lines)
    }
}

/// Copies a stretch of each line, one after the other.
fn stretches(values: &[f64], line: usize, from: usize, to: usize) -> Result<Vec<f64>> {
    let mut out = try_with_capacity("columns of the dictionary", values.len() / line * (to - from))?;
    values.chunks_exact(line).for_each(|line| out.extend_from_slice(&line[from..to]));
    Ok(out)
}

/// Writes stretches, which lie one after the other, to a place of each line.
fn put_stretches(parts: &[f64], values: &mut [f64], line: usize, from: usize) {
    let length = parts.len() * line / values.len();
    for (line, part) in values.chunks_exact_mut(line).zip(parts.chunks_exact(length)) {
        line[from..from + length].copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_orthonormal_on_columns_that_are_almost_equal() {
        let (l, n) = (60, 12);
        let mut basis = Basis::new(l, 3);
        let columns: Vec<Vec<f64>> = (0..n)
            .map(|j| (0..l).map(|i| (-0.001 * (i as f64 - f64::from(j)).powi(2)).exp()).collect())
            .collect();
        let mut taken = Vec::new();
        for column in &columns {
            let line = basis.products(column, Context::SEQUENTIAL);
            if let Some(outside) =
                basis.split(ColumnResidual::of(column.clone()), line, 1e-20, Context::SEQUENTIAL).unwrap()
            {
                basis.push(outside, column[..3].to_vec()).unwrap();
                taken.push(column.clone());
            }
        }
        assert!(basis.len() >= 6);
        for j in 0..basis.len() {
            let products = basis.products(&basis.vectors()[j * l..(j + 1) * l], Context::SEQUENTIAL);
            for (k, v) in products.iter().enumerate() {
                assert!((v - f64::from(u8::from(k == j))).abs() < 1e-14);
            }
            // Validation rows get the same combinations.
            assert!((basis.validation[j * 3] - basis.vectors[j * l]).abs() < 1e-3);
        }
        let factor = basis.factor().unwrap();
        for (t, column) in taken.iter().enumerate() {
            let mut again = vec![0.0; l];
            basis.add(&factor.row(t).to_vec(), &mut again, Context::SEQUENTIAL).unwrap();
            assert!(again.iter().zip(column).all(|(a, b)| (a - b).abs() < 1e-13));
        }
        // Several columns together, of which the first vectors were taken away before, are split as each by itself.
        let mut residuals: Vec<ColumnResidual> =
            columns[..5].iter().cloned().map(ColumnResidual::of).collect();
        let lines = |from: usize, to: usize| -> Vec<f64> {
            let vectors = |c: &Vec<f64>| basis.products(c, Context::SEQUENTIAL)[from..to].to_vec();
            columns[..5].iter().flat_map(vectors).collect()
        };
        for (from, to) in [(0, 0), (0, 2), (2, 6)] {
            basis.orthogonalize(&mut residuals, &mut lines(from, to), Context::default()).unwrap();
        }
        for (residual, column) in residuals.iter().zip(&columns) {
            let mut again = residual.column.clone();
            basis.add(&residual.line, &mut again, Context::SEQUENTIAL).unwrap();
            assert!(again.iter().zip(column).all(|(a, b)| (a - b).abs() < 1e-13));
            let left = basis.products(&residual.column, Context::SEQUENTIAL);
            assert!(left[..6].iter().all(|v| v.abs() < 1e-13) && residual.seen() == 6);
        }
        // Products that are known to six digits do.
        let line: Vec<f64> =
            basis.products(&taken[0], Context::SEQUENTIAL).iter().map(|v| v * (1.0 + 1e-6)).collect();
        assert!(
            basis
                .split(ColumnResidual::of(taken[0].clone()), line, 1e-10, Context::SEQUENTIAL)
                .unwrap()
                .is_none()
        );
    }
}
