//! Products with K_ml W K_lm without the matrix K_lm (n, m): kernel values of a few rows are computed once and used twice,
//!
//! ```text
//! V = K_lm C,     U = g(V) row by row,     G = K_ml U
//! ```
//!
//! Values are computed in the precision of the packed vectors; all sums are in double precision. Rows are divided into tasks by
//! the sizes alone. Each task has sums of its own, which are added in the order of the tasks.
//!
//! Invariant: results do not depend on the number of threads. Cost: n m (d + 2 q) multiply-adds for q columns; memory one block of
//! values for a thread, and m q numbers for each task of a round.

use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::PackedVectors;
use crate::linalg::columns;
use crate::memory;
use crate::simd::Real;
use crate::simd::blas::{Stored, add_rows, products_with_rows};
use crate::simd::micro::panel_width;
use crate::simd::panel::{Layout, subtract_product};

/// Context reported when an allocation fails.
const PRODUCTS: &str = "products with kernel values";
/// Number of rows whose kernel values are in memory at the same time, for each thread.
const BLOCK_ROWS: usize = 48;
/// Maximum number of rows of a task.
const MAX_TASK_ROWS: usize = 8 * BLOCK_ROWS;
/// Approximate number of multiply-adds of a task: a few hundredths of a second of one core.
const TASK_WORK: usize = 300_000_000;
/// Cost of a kernel value beyond its features, in multiply-adds.
const VALUE_COST: usize = 32;
/// Maximum number of columns that each take a dot product and a sum of rows; more take a small matrix product.
const MAX_SINGLE_COLUMNS: usize = 4;
/// Number of tasks of a thread between two checks of the monitor.
const TASKS_PER_CHECK: usize = 4;
/// Number of entries of a task of the addition of sums.
const ENTRIES_PER_TASK: usize = 4096;

/// Rows, and the packed vectors of their kernel values.
pub(super) struct KernelProducts<'a, T> {
    pub(super) vectors: PackedVectors<T>,
    pub(super) rows: Rows<'a>,
    /// Number of vectors.
    pub(super) m: usize,
}

/// Numbers of the m vectors in q columns, in the layout of the products: columns one after the other if they are few, otherwise
/// panels.
struct VectorColumns {
    values: Vec<f64>,
    m: usize,
    q: usize,
}

impl VectorColumns {
    fn is_single(q: usize) -> bool {
        q <= MAX_SINGLE_COLUMNS
    }

    /// Returns the number of entries.
    fn len(m: usize, q: usize) -> usize {
        if Self::is_single(q) { m * q } else { m * q.next_multiple_of(panel_width::<f64>()) }
    }

    /// Copies (m, q) row-major numbers.
    fn new(values: &[f64], m: usize, q: usize) -> Result<Self> {
        let values = if Self::is_single(q) {
            let mut columns = memory::try_zeros(PRODUCTS, m * q)?;
            transpose(values, &mut columns, q);
            columns
        } else {
            columns::to_panels::<f64>(values, m, q)?
        };
        Ok(Self { values, m, q })
    }

    /// Writes V = K C for the rows of a block, (r, q).
    fn times<T: Real + Stored>(&self, block: &Block<'_, T>, out: &mut [f64]) {
        if Self::is_single(self.q) {
            products_with_rows(&block.lines, &self.values, out);
            return;
        }
        let (rows, width) = (block.lines.len(), panel_width::<f64>());
        let mut sums = vec![0.0; rows * width];
        for (p, panel) in self.values.chunks_exact(self.m * width).enumerate() {
            sums.fill(0.0);
            let at = Layout { start: 0, row: block.stride, step: 1 };
            subtract_product(block.values, at, (rows, self.m), panel, &mut sums, width);
            for (out, sums) in out.chunks_exact_mut(self.q).zip(sums.chunks_exact(width)) {
                for (out, sum) in out[p * width..].iter_mut().zip(sums) {
                    *out = -sum;
                }
            }
        }
    }
}

/// The kernel values of a few rows.
struct Block<'a, T> {
    values: &'a [T],
    stride: usize,
    lines: Vec<&'a [T]>,
}

impl<T: Real + Stored> Block<'_, T> {
    /// Adds K' U to the sums of a task; U (r, q).
    fn add_transposed(&self, u: &[f64], sums: &mut [f64], m: usize, q: usize) {
        let rows = self.lines.len();
        if VectorColumns::is_single(q) {
            // small: a block of few columns
            let mut weights = vec![0.0; rows * q];
            transpose(u, &mut weights, q);
            add_rows(&weights, &self.lines, 0, sums);
            return;
        }
        let width = panel_width::<f64>();
        let mut panel = vec![0.0; rows * width];
        for (p, sums) in sums.chunks_exact_mut(m * width).enumerate() {
            panel.fill(0.0);
            // A product is subtracted: the panel has the other sign.
            for (line, u) in panel.chunks_exact_mut(width).zip(u.chunks_exact(q)) {
                for (out, u) in line.iter_mut().zip(&u[p * width..]) {
                    *out = -u;
                }
            }
            let at = Layout { start: 0, row: 1, step: self.stride };
            subtract_product(self.values, at, (m, rows), &panel, sums, width);
        }
    }
}

/// Writes the transpose of (n, q) row-major numbers.
fn transpose(values: &[f64], out: &mut [f64], q: usize) {
    let n = values.len() / q;
    for (i, line) in values.chunks_exact(q).enumerate() {
        for (j, v) in line.iter().enumerate() {
            out[j * n + i] = *v;
        }
    }
}

impl<T: Real + Stored> KernelProducts<'_, T> {
    fn rows_per_task(&self) -> usize {
        let row_cost = self.m * (self.rows.cols() + VALUE_COST);
        (TASK_WORK / row_cost.max(1) / BLOCK_ROWS * BLOCK_ROWS).clamp(BLOCK_ROWS, MAX_TASK_ROWS)
    }

    /// Returns G = K_ml U, (m, q) row-major. `row(i, line)` replaces the line of V of the i-th row by that of U; without
    /// `coefficients` (m, q), V is zero.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn normal_product(
        &self,
        coefficients: Option<&[f64]>,
        q: usize,
        row: impl Fn(usize, &mut [f64]) + Sync,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        let (n, m) = (self.rows.rows(), self.m);
        let coefficients = coefficients.map(|c| VectorColumns::new(c, m, q)).transpose()?;
        let (size, rows_per_task) = (VectorColumns::len(m, q), self.rows_per_task());
        let tasks = n.div_ceil(rows_per_task);
        let at_once = (TASKS_PER_CHECK * ctx.threads()).min(tasks);
        let mut sums: Vec<f64> = memory::try_zeros(PRODUCTS, size)?;
        let mut task_sums: Vec<f64> = memory::try_zeros(PRODUCTS, size.saturating_mul(at_once))?;
        for first in (0..tasks).step_by(at_once.max(1)) {
            ctx.check("product", first * rows_per_task, n)?;
            let task_sums = &mut task_sums[..(tasks - first).min(at_once) * size];
            ctx.try_for_each_chunk(task_sums, size, |task, sums| {
                let from = (first + task) * rows_per_task;
                sums.fill(0.0);
                self.add_rows_of_task(
                    (from, n.min(from + rows_per_task)),
                    coefficients.as_ref(),
                    q,
                    &row,
                    sums,
                )
            })?;
            let task_sums = &*task_sums;
            ctx.for_each_chunk(&mut sums, ENTRIES_PER_TASK, |chunk, sums| {
                let start = chunk * ENTRIES_PER_TASK;
                for added in task_sums.chunks_exact(size) {
                    for (sum, v) in sums.iter_mut().zip(&added[start..]) {
                        *sum += v;
                    }
                }
            });
        }
        let mut out = memory::try_zeros(PRODUCTS, m * q)?;
        if VectorColumns::is_single(q) {
            transpose(&sums, &mut out, m);
        } else {
            columns::from_panels(&sums, &mut out, m, q);
        }
        Ok(out)
    }

    /// Adds K' U of some rows to the sums of a task.
    fn add_rows_of_task(
        &self,
        (from, to): (usize, usize),
        coefficients: Option<&VectorColumns>,
        q: usize,
        row: &(impl Fn(usize, &mut [f64]) + Sync),
        sums: &mut [f64],
    ) -> Result<()> {
        let stride = self.vectors.stride();
        let mut values: Vec<T> = memory::try_zeros(PRODUCTS, BLOCK_ROWS.min(to - from) * stride)?;
        for start in (from..to).step_by(BLOCK_ROWS) {
            let list: Vec<usize> = (start..to.min(start + BLOCK_ROWS)).collect();
            let values = &mut values[..list.len() * stride];
            self.vectors.values(self.rows, &list, values, stride)?;
            let lines = values.chunks_exact(stride).map(|line| &line[..self.m]).collect();
            let block = Block { values, stride, lines };
            let mut u = memory::try_zeros(PRODUCTS, list.len() * q)?;
            if let Some(coefficients) = coefficients {
                coefficients.times(&block, &mut u);
            }
            for (i, line) in list.iter().zip(u.chunks_exact_mut(q)) {
                row(*i, line);
            }
            block.add_transposed(&u, sums, self.m, q);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Kernel, gram};

    #[test]
    fn the_product_is_that_of_the_matrix_for_every_number_of_columns_and_threads() {
        for (n, m, q) in [(1, 1, 1), (100, 7, 2), (900, 33, 4), (901, 50, 5), (500, 20, 19)] {
            let d = 3;
            let x: Vec<f64> = (0..n * d).map(|i| (i as f64 * 0.37).sin()).collect();
            let z: Vec<f64> = (0..m * d).map(|i| (i as f64 * 0.71).cos()).collect();
            let c: Vec<f64> = (0..m * q).map(|i| (i as f64 * 0.13).sin()).collect();
            let (rows, vectors) =
                (Rows::from_shape((n, d), &x).unwrap(), Rows::from_shape((m, d), &z).unwrap());
            let kernel = Kernel::Rbf { gamma: 0.5 };
            let k = gram(&kernel, rows, vectors, Context::default()).unwrap();
            let product = |ctx: Context<'_>| {
                let vectors = PackedVectors::<f64>::new(kernel, vectors, ctx).unwrap();
                let products = KernelProducts { vectors, rows, m };
                let row =
                    |i: usize, line: &mut [f64]| line.iter_mut().for_each(|v| *v = (*v + 1.0) * i as f64);
                products.normal_product(Some(&c), q, row, ctx).unwrap()
            };
            let result = product(Context::default());
            assert_eq!(result, product(Context::SEQUENTIAL));
            for j in 0..q {
                let output = |i: usize| (0..m).map(|a| k[[i, a]] * c[a * q + j]).sum::<f64>();
                let u: Vec<f64> = (0..n).map(|i| (output(i) + 1.0) * i as f64).collect();
                for a in 0..m {
                    let expected: f64 = (0..n).map(|i| k[[i, a]] * u[i]).sum();
                    assert!(
                        (result[a * q + j] - expected).abs() < 1e-9 * expected.abs().max(1.0),
                        "{n} {m} {q}"
                    );
                }
            }
        }
    }
}
