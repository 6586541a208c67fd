//! Many alphas from one eigendecomposition (Rifkin 2002, section 3.3): with S the square roots of the weights,
//!
//! ```text
//! S K S = V diag(s) V',     G = (K + alpha W^-1)^-1 = S V diag(1 / (s + alpha)) V' S
//! ```
//!
//! so that the coefficients G y and the diagonal of G, which is all that leave-one-out values need, are sums over the
//! columns of V.
//!
//! Invariant: an alpha that leaves the smallest eigenvalue within the rounding of the largest is not answered: whether
//! that system has a solution is for a factorization to say. The decomposition itself is the caller's (LAPACK's, in
//! Python): it cannot be interrupted, so it is for a few thousand rows only.
//!
//! Cost n^2 (q + 2) multiply-adds an alpha, against 2 n^3 / 3 for a factor and its inverse.

use super::intercept::right_hand_sides;
use super::problem::Problem;
use super::solution::{InverseDiagonal, Solution};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::{try_to_matrix, try_vec, try_with_capacity, try_zero_matrix};
use crate::simd::blas::dot;
use ndarray::{Array2, ArrayView2, s};

/// Rows of a task.
const ROWS_PER_TASK: usize = 64;

/// The eigenvalues and eigenvectors of S K S.
#[derive(Debug, Clone, Copy)]
pub struct Spectrum<'a> {
    /// s, (n,).
    pub values: &'a [f64],
    /// V, (n, n): eigenvectors are its columns.
    pub vectors: ArrayView2<'a, f64>,
}

/// A spectrum with the targets in its coordinates.
pub(super) struct Spectral<'a> {
    spectrum: Spectrum<'a>,
    /// V' S (Y, 1).
    projected: Array2<f64>,
    least: f64,
    rounding: f64,
}

impl<'a> Spectral<'a> {
    pub(super) fn new(spectrum: Spectrum<'a>, problem: &Problem<'_>) -> Result<Self> {
        let n = problem.rows.rows();
        Error::check_len("eigenvalues (one for each row)", n, spectrum.values.len())?;
        for length in [spectrum.vectors.nrows(), spectrum.vectors.ncols()] {
            Error::check_len("rows and columns of the eigenvectors (one for each row)", n, length)?;
        }
        let right = right_hand_sides(problem)?;
        let mut projected = try_zero_matrix("projected targets", right.dim())?;
        for (i, (y, line)) in right.rows().into_iter().zip(spectrum.vectors.rows()).enumerate() {
            let root = problem.weight(i).sqrt();
            for (mut sums, v) in projected.rows_mut().into_iter().zip(&line) {
                sums.scaled_add(v * root, &y);
            }
        }
        let least = spectrum.values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = spectrum.values.iter().fold(0.0, |max: f64, s| max.max(s.abs()));
        Ok(Self { spectrum, projected, least, rounding: n as f64 * f64::EPSILON * largest })
    }

    /// The solution with leave-one-out values; `None` where the system is singular to rounding.
    pub(super) fn solve(
        &self,
        problem: &Problem<'_>,
        alpha: f64,
        diagonal: &[f64],
        ctx: Context<'_>,
    ) -> Result<Option<Solution>> {
        // Written so that an eigenvalue that is not a number is left to the factorization, too.
        if !(self.least + alpha > self.rounding) {
            return Ok(None);
        }
        let (n, columns) = self.projected.dim();
        let inverse: Vec<f64> = self.spectrum.values.iter().map(|s| 1.0 / (s + alpha)).collect();
        // One line a target.
        let mut scaled = try_with_capacity("scaled targets", n * columns)?;
        for column in self.projected.columns() {
            scaled.extend(column.iter().zip(&inverse).map(|(v, inverse)| v * inverse));
        }
        // G (Y, 1), and the diagonal of G in the last place of each line.
        let mut lines = try_vec![0.0; n * (columns + 1)]?;
        ctx.try_for_each_chunk(&mut lines, ROWS_PER_TASK * (columns + 1), |task, lines| {
            let mut vector = try_vec![0.0; n]?;
            for (i, line) in (task * ROWS_PER_TASK..).zip(lines.chunks_exact_mut(columns + 1)) {
                let (sums, hat) = line.split_at_mut(columns);
                let weight = problem.weight(i);
                vector.iter_mut().zip(self.spectrum.vectors.row(i)).for_each(|(to, v)| *to = *v);
                for (sum, scaled) in sums.iter_mut().zip(scaled.chunks_exact(n.max(1))) {
                    *sum = weight.sqrt() * dot(&vector, scaled);
                }
                for v in &mut vector {
                    *v *= *v;
                }
                hat[0] = weight * dot(&vector, &inverse);
            }
            Ok(())
        })?;
        let lines = Array2::from_shape_vec((n, columns + 1), lines).expect("a line for each row");
        let solved = try_to_matrix(lines.slice(s![.., ..columns]))?;
        let hat = lines.column(columns).iter().copied().collect::<Vec<_>>();
        let inverse = Some(InverseDiagonal { diagonal: hat, factor: None });
        match Solution::new(problem, alpha, solved, diagonal.to_vec(), inverse, ctx) {
            Err(error @ Error::Memory { .. }) => Err(error),
            solution => Ok(solution.ok()),
        }
    }
}
