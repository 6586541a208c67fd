//! Every size of one greedy reduction, from one triangular factor.
//!
//! With S the vectors in the order chosen and K_SS = L L', the orthonormal directions of the greedy run are the rows of
//! L^-1 k_S(.), and the target's projections on them are G. The best coefficients on the first t vectors solve
//! L_t' A = G_t, and the outputs of all sizes at a row x are the running sums of phi_t(x) G_t with L phi = k_S(x): both
//! cost O(t^2), so no size is ever fitted afresh.

use crate::control::{Par, Stop};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, gram};
use crate::simd::blas::{axpy, dot};

/// A greedy reduction of an expansion with q outputs to at most M vectors.
#[derive(Debug, Clone)]
pub struct Path {
    /// The M candidates in the order they were chosen.
    pub order: Vec<usize>,
    /// L, (M, M) row-major, lower triangular: the Cholesky factor of their kernel matrix.
    pub factor: Vec<f64>,
    /// G, (M, q) row-major: the target's projections on the orthonormal directions.
    pub projections: Vec<f64>,
    /// (M + 1,): norm of what is missing after 0, 1, ... M vectors, all outputs together:
    /// sqrt(sum_j ||w_j - w_j^(t)||^2).
    pub residual_norms: Vec<f64>,
    /// Why the run ended: converged where no candidate can lower the residual below the tolerance.
    pub stop: Stop,
}

fn check(factor: &[f64], projections: &[f64], m: usize, q: usize) -> Result<()> {
    Error::check_len("factor of a path (M times M)", m * m, factor.len())?;
    Error::check_len("projections of a path (M times outputs)", m * q, projections.len())
}

/// The coefficients (size, q) of the first `size` of a path's M vectors: L_t' A = G_t. Cost O(size^2 q).
///
/// # Errors
/// [`Error::Param`] where `size` exceeds M, [`Error::Shape`] where the arrays disagree.
pub fn path_coefficients(
    factor: &[f64],
    m: usize,
    projections: &[f64],
    q: usize,
    size: usize,
) -> Result<Vec<f64>> {
    check(factor, projections, m, q)?;
    if size > m {
        return Err(Error::param("size", size, format!("at most {m}, the vectors of the path")));
    }
    let mut a = projections[..size * q].to_vec();
    for t in (0..size).rev() {
        let line = &factor[t * m..t * m + t + 1];
        let (before, mine) = a.split_at_mut(t * q);
        let mine = &mut mine[..q];
        for v in mine.iter_mut() {
            *v /= line[t];
        }
        for (u, target) in before.chunks_exact_mut(q).enumerate() {
            axpy(-line[u], mine, target);
        }
    }
    Ok(a)
}

/// Outputs at the rows of X for several sizes of a path, (sizes, n, q).
///
/// `kept` holds the path's M vectors in order, `sizes` increases. Cost n M (d + M / 2) whatever the number of sizes.
///
/// # Errors
/// [`Error::Param`] where the sizes do not increase or exceed M, [`Error::Shape`] where the arrays disagree.
#[allow(clippy::too_many_arguments)]
pub fn path_decisions(
    kernel: &Kernel,
    kept: Rows<'_>,
    factor: &[f64],
    projections: &[f64],
    intercepts: &[f64],
    x: Rows<'_>,
    sizes: &[usize],
    par: Par,
) -> Result<Vec<f64>> {
    let features = gram(kernel, x, kept, par)?;
    path_outputs(features, (x.rows(), kept.rows()), factor, projections, intercepts, sizes, par)
}

/// Outputs (sizes, n, q) as [`path_decisions`], from the values (n, M) of the path's M functions at the rows.
///
/// # Errors
/// As [`path_decisions`].
pub fn path_outputs(
    mut features: Vec<f64>,
    (n, m): (usize, usize),
    factor: &[f64],
    projections: &[f64],
    intercepts: &[f64],
    sizes: &[usize],
    par: Par,
) -> Result<Vec<f64>> {
    let q = intercepts.len();
    check(factor, projections, m, q)?;
    Error::check_len("features of a path (rows times M)", n * m, features.len())?;
    if sizes.windows(2).any(|w| w[0] >= w[1]) || sizes.last().is_some_and(|&s| s > m) {
        return Err(Error::param(
            "sizes",
            format!("{sizes:?}"),
            format!("increasing and at most {m}, the vectors of the path"),
        ));
    }
    let largest = sizes.last().copied().unwrap_or(0);
    // One line of outputs for every row, all sizes after each other; put in the order of sizes at the end.
    let per_row = sizes.len() * q;
    let mut by_row = vec![0.0; n * per_row];
    if m > 0 && per_row > 0 {
        let mut pairs: Vec<(&mut [f64], &mut [f64])> =
            features.chunks_exact_mut(m).zip(by_row.chunks_exact_mut(per_row)).collect();
        par.for_each_chunk(&mut pairs, 16, |_, pairs| {
            for (phi, out) in pairs {
                let mut outputs = intercepts.to_vec();
                let mut next = 0;
                for t in 0..=largest {
                    if next < sizes.len() && sizes[next] == t {
                        out[next * q..(next + 1) * q].copy_from_slice(&outputs);
                        next += 1;
                    }
                    if t < largest {
                        let line = &factor[t * m..t * m + t + 1];
                        phi[t] = (phi[t] - dot(&phi[..t], &line[..t])) / line[t];
                        axpy(phi[t], &projections[t * q..(t + 1) * q], &mut outputs);
                    }
                }
            }
        });
    } else {
        for out in by_row.chunks_exact_mut(q.max(1)) {
            out.copy_from_slice(intercepts);
        }
    }
    let mut out = vec![0.0; by_row.len()];
    for (i, line) in by_row.chunks_exact(per_row.max(1)).enumerate() {
        for (s, values) in line.chunks_exact(q).enumerate() {
            out[(s * n + i) * q..(s * n + i + 1) * q].copy_from_slice(values);
        }
    }
    Ok(out)
}
