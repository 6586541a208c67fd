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
//! that system has a solution is for a factorisation to say. The decomposition itself is the caller's (LAPACK's, in
//! Python): it cannot be interrupted, so it is for a few thousand rows only.
//!
//! Cost n^2 (q + 2) multiply-adds an alpha, against 2 n^3 / 3 for a factor and its inverse.

use super::Problem;
use super::exact::{Bordered, Solution};
use crate::control::Par;
use crate::error::{Error, Result};

/// Rows of a task.
const ROWS: usize = 64;

/// The eigenvalues and eigenvectors of S K S.
#[derive(Debug, Clone, Copy)]
pub struct Spectrum<'a> {
    /// s, (n,).
    pub values: &'a [f64],
    /// V, (n, n) row-major: eigenvectors are its columns.
    pub vectors: &'a [f64],
}

/// A spectrum with the targets in its coordinates.
pub(super) struct Spectral<'a> {
    spectrum: Spectrum<'a>,
    /// V' S (Y, 1), (n, columns) row-major.
    projected: Vec<f64>,
    columns: usize,
    least: f64,
    rounding: f64,
}

impl<'a> Spectral<'a> {
    pub(super) fn new(spectrum: Spectrum<'a>, problem: &Problem<'_>) -> Result<Self> {
        let n = problem.rows.rows();
        Error::check_len("eigenvalues (one for each row)", n, spectrum.values.len())?;
        Error::check_len("eigenvectors (rows squared)", n * n, spectrum.vectors.len())?;
        let Bordered { values, columns } = Bordered::targets(problem);
        let mut projected = vec![0.0; n * columns];
        for (i, (y, line)) in values.chunks_exact(columns).zip(spectrum.vectors.chunks_exact(n)).enumerate() {
            let root = problem.weight(i).sqrt();
            for (sums, v) in projected.chunks_exact_mut(columns).zip(line) {
                let v = v * root;
                sums.iter_mut().zip(y).for_each(|(sum, y)| *sum += v * y);
            }
        }
        let least = spectrum.values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = spectrum.values.iter().fold(0.0, |most: f64, s| most.max(s.abs()));
        Ok(Self { spectrum, projected, columns, least, rounding: n as f64 * f64::EPSILON * largest })
    }

    /// The solution with leave-one-out values; `None` where the system is singular to rounding.
    pub(super) fn solve(
        &self,
        problem: &Problem<'_>,
        alpha: f64,
        diagonal: &[f64],
        par: Par,
    ) -> Option<Solution> {
        // Written so that an eigenvalue that is not a number is left to the factorisation, too.
        if !(self.least + alpha > self.rounding) {
            return None;
        }
        let (n, columns) = (problem.rows.rows(), self.columns);
        let inverse: Vec<f64> = self.spectrum.values.iter().map(|s| 1.0 / (s + alpha)).collect();
        let mut scaled = self.projected.clone();
        for (line, inverse) in scaled.chunks_exact_mut(columns).zip(&inverse) {
            for v in line {
                *v *= inverse;
            }
        }
        // G (Y, 1), and the diagonal of G in the last place of each line.
        let mut lines = vec![0.0; n * (columns + 1)];
        par.for_each_chunk(&mut lines, ROWS * (columns + 1), |task, lines| {
            for (i, line) in (task * ROWS..).zip(lines.chunks_exact_mut(columns + 1)) {
                let (sums, own) = line.split_at_mut(columns);
                let weight = problem.weight(i);
                let vectors = &self.spectrum.vectors[i * n..(i + 1) * n];
                for ((v, inverse), scaled) in vectors.iter().zip(&inverse).zip(scaled.chunks_exact(columns)) {
                    own[0] += v * v * inverse;
                    sums.iter_mut().zip(scaled).for_each(|(sum, scaled)| *sum += v * scaled);
                }
                own[0] *= weight;
                for sum in sums {
                    *sum *= weight.sqrt();
                }
            }
        });
        let own = lines.iter().skip(columns).step_by(columns + 1).copied().collect();
        let values = lines.chunks_exact(columns + 1).flat_map(|line| &line[..columns]).copied().collect();
        Some(Bordered { values, columns }.solution(problem, diagonal.to_vec(), Some(own)))
    }
}
