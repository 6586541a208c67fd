//! The linear system of a step of the interior-point method: I + F' Theta F bordered by the groups.
//!
//! Scaled to a unit diagonal, so that the scales of the columns do not matter, with a small addition to the diagonal where it is
//! singular in double precision. Solutions are corrected by their residuals.
//!
//! Cost: n d^2 / 2 multiply-adds for the products, d^3 / 6 for the factor.

use super::super::few_columns::{FewColumns, ROWS_PER_TASK};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::linalg::cholesky::solve_one;
use crate::linalg::dense::{self, Square, subtract_gram};
use crate::memory::try_vec;
use crate::simd::blas::{axpy, dot};

/// First addition to the scaled diagonal of a system that is singular in double precision, and the factor of the next ones.
const FIRST_SHIFT: f64 = 1e-15;
const SHIFT_FACTOR: f64 = 100.0;
const MAX_SHIFT: f64 = 1e-4;
/// Corrections of a solution by its residual.
const REFINEMENTS: usize = 2;
/// Rows of a block of the weighted product F' Theta F.
const ROWS_PER_BLOCK: usize = 4096;

/// The system, and its scaled factor.
pub(super) struct System {
    matrix: Square<f64>,
    factor: Square<f64>,
    scale: Vec<f64>,
}

impl System {
    /// Factors the system of `n` terms: row, Theta and group. `None` if it is singular.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Stopped`].
    pub(super) fn new(
        columns: &FewColumns,
        groups: usize,
        n: usize,
        ctx: Context<'_>,
        term: impl Fn(usize) -> (usize, f64, Option<usize>) + Sync,
    ) -> Result<Option<Self>> {
        let d = columns.count();
        let mut matrix = Square::<f64>::new(d + groups)?;
        let stride = matrix.stride();
        for first in (0..n).step_by(ROWS_PER_BLOCK) {
            ctx.check("interior point", first, n)?;
            let mut lines = try_vec![0.0; ROWS_PER_BLOCK.min(n - first) * stride]?;
            ctx.for_each_chunk(&mut lines, ROWS_PER_TASK * stride, |task, lines| {
                for (k, line) in (first + task * ROWS_PER_TASK..).zip(lines.chunks_exact_mut(stride)) {
                    let (row, theta, group) = term(k);
                    let root = theta.sqrt();
                    for (out, v) in line.iter_mut().zip(columns.row(row)) {
                        *out = root * v;
                    }
                    if let Some(group) = group {
                        line[d + group] = -root;
                    }
                }
            });
            subtract_gram(&mut matrix, &lines, stride, ctx)?;
        }
        for (i, line) in matrix.values_mut().chunks_exact_mut(stride).enumerate().take(d + groups) {
            line[..=i].iter_mut().for_each(|v| *v = -*v);
            if i < d {
                line[i] += 1.0;
            }
        }
        let scale: Vec<f64> = matrix.diagonal().map(|v| if v > 0.0 { 1.0 / v.sqrt() } else { 1.0 }).collect();
        let mut shift = FIRST_SHIFT;
        while shift <= MAX_SHIFT {
            let mut factor = matrix.shifted::<f64>(|_| 0.0, ctx)?;
            let to = factor.stride();
            for (i, line) in factor.values_mut().chunks_exact_mut(to).enumerate().take(d + groups) {
                line[..=i].iter_mut().zip(&scale).for_each(|(v, s)| *v *= scale[i] * s);
                line[i] += if line[i] > 0.0 { shift } else { 1.0 };
            }
            match dense::factor(&mut factor, ctx) {
                Ok(()) => return Ok(Some(System { matrix, factor, scale })),
                Err(Error::NotPositiveDefinite { .. }) => shift *= SHIFT_FACTOR,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Solves the system in place, with corrections by the residual.
    pub(super) fn solve(&self, b: &mut [f64]) {
        let right_side = b.to_vec();
        let (n, stride, from) = (b.len(), self.factor.stride(), self.matrix.stride());
        let substitute = |b: &mut [f64]| {
            b.iter_mut().zip(&self.scale).for_each(|(v, s)| *v *= s);
            solve_one(self.factor.values(), stride, b);
            b.iter_mut().zip(&self.scale).for_each(|(v, s)| *v *= s);
        };
        substitute(b);
        for _ in 0..REFINEMENTS {
            let mut residual = right_side.clone();
            let values = self.matrix.values();
            for i in 0..n {
                let line = &values[i * from..i * from + i + 1];
                residual[i] -= dot(line, &b[..=i]);
                axpy(-b[i], &line[..i], &mut residual[..i]);
            }
            substitute(&mut residual);
            axpy(1.0, &residual, b);
        }
    }
}
