//! Every size of one greedy reduction, from one triangular factor.
//!
//! With S the vectors in the order chosen and K_SS = L L', the orthonormal directions of the greedy run are the rows of
//! L^-1 k_S(.), and the target's projections on them are G. The best coefficients on the first t vectors solve
//! L_t' A = G_t, and the outputs of all sizes at a row x are the running sums of phi_t(x) G_t with L phi = k_S(x): both
//! cost O(t^2), so no size is ever fitted afresh.
//!
//! A basic pursuit has no such factor: its steps change the coefficients of one vector each, a vector's more than once.
//! Then L is left out (it is the identity) and `turns` says which vector each row of G belongs to, `ends` how many rows
//! a size has. With a factor every vector has one row.

use crate::control::{Par, Stop, StopReason};
use crate::data::{Rows, flat};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, gram};
use crate::simd::blas::{axpy, dot};

/// A greedy reduction of an expansion with q outputs to at most M vectors.
#[derive(Debug, Clone)]
pub struct Path {
    /// The M candidates in the order they were chosen.
    pub order: Vec<usize>,
    /// L, (M, M) row-major, lower triangular: the Cholesky factor of their inner products. Empty for basic steps.
    pub factor: Vec<f64>,
    /// G, (steps, q) row-major: the target's projections on the orthonormal directions, or the changes of coefficients
    /// that basic steps make.
    pub projections: Vec<f64>,
    /// (steps,): the place in `order` of the vector that each row of G belongs to.
    pub turns: Vec<usize>,
    /// (M,): the number of rows of G that sizes 1, 2, ... M have.
    pub ends: Vec<usize>,
    /// (M + 1,): norm of what is missing after 0, 1, ... M vectors, all outputs together:
    /// sqrt(sum_j ||w_j - w_j^(t)||^2), or the root mean square of the difference of the outputs where predictions were
    /// compared.
    pub residual_norms: Vec<f64>,
    /// (M,): for the penalised paths the lambda below which each vector enters; else empty.
    pub penalties: Vec<f64>,
    /// Whether `residual_norms` are what they say, or upper bounds.
    pub exact: bool,
    /// Whether every size is the orthogonal projection of the target on its vectors in feature space.
    pub orthogonal: bool,
    /// Why the run ended: converged where no candidate can lower the residual below the tolerance.
    pub stop: Stop,
}

impl Path {
    /// No vectors, for the reason given.
    pub(crate) fn empty(outputs: usize, reason: StopReason) -> Self {
        debug_assert!(outputs > 0);
        Self {
            order: Vec::new(),
            factor: Vec::new(),
            projections: Vec::new(),
            turns: Vec::new(),
            ends: Vec::new(),
            residual_norms: vec![f64::NAN],
            penalties: Vec::new(),
            exact: true,
            orthogonal: true,
            stop: Stop { reason, iterations: 0, gap: f64::NAN },
        }
    }

    /// What the coefficients and the outputs of all sizes follow from.
    pub fn steps(&self) -> Steps<'_> {
        Steps {
            vectors: self.order.len(),
            outputs: if self.turns.is_empty() { 1 } else { self.projections.len() / self.turns.len() },
            projections: &self.projections,
            form: if self.factor.is_empty() {
                Form::Basic { turns: &self.turns, ends: &self.ends }
            } else {
                Form::Factored(&self.factor)
            },
        }
    }
}

/// The numbers of a path, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a> {
    /// M.
    pub vectors: usize,
    /// q.
    pub outputs: usize,
    /// G, see [`Path::projections`].
    pub projections: &'a [f64],
    /// How G becomes coefficients.
    pub form: Form<'a>,
}

/// How the rows of G become coefficients.
#[derive(Debug, Clone, Copy)]
pub enum Form<'a> {
    /// Through L, (M, M); a row each.
    Factored(&'a [f64]),
    /// Added to the coefficients of a vector.
    Basic {
        /// See [`Path::turns`].
        turns: &'a [usize],
        /// See [`Path::ends`].
        ends: &'a [usize],
    },
}

impl Steps<'_> {
    fn check(&self) -> Result<()> {
        let (m, q) = (self.vectors, self.outputs);
        match self.form {
            Form::Factored(factor) => {
                Error::check_len("factor of a path (M times M)", m * m, factor.len())?;
                Error::check_len("projections of a path (M times outputs)", m * q, self.projections.len())
            }
            Form::Basic { turns, ends } => {
                Error::check_len(
                    "changes of a path (steps times outputs)",
                    turns.len() * q,
                    self.projections.len(),
                )?;
                Error::check_len("ends of a path", m, ends.len())?;
                if let Some(turn) = turns.iter().find(|&&turn| turn >= m) {
                    return Err(Error::param("turns", turn, format!("below {m}, the vectors of the path")));
                }
                if ends.windows(2).any(|w| w[0] > w[1]) || ends.last().is_some_and(|&end| end > turns.len()) {
                    return Err(Error::param(
                        "ends",
                        format!("{ends:?}"),
                        "increasing, up to the number of steps",
                    ));
                }
                Ok(())
            }
        }
    }

    /// The rows of G that size t has and size t - 1 has not, each with its vector.
    fn rows_of(&self, t: usize) -> impl Iterator<Item = (usize, &[f64])> {
        let q = self.outputs;
        let rows = match self.form {
            Form::Factored(_) => t - 1..t,
            Form::Basic { ends, .. } => {
                let first = if t == 1 { 0 } else { ends[t - 2] };
                first..ends[t - 1]
            }
        };
        rows.map(move |row| {
            let vector = match self.form {
                Form::Factored(_) => row,
                Form::Basic { turns, .. } => turns[row],
            };
            (vector, &self.projections[row * q..(row + 1) * q])
        })
    }
}

/// The coefficients (size, q) of the first `size` of a path's M vectors: L_t' A = G_t. Cost O(size^2 q).
///
/// # Errors
/// [`Error::Param`] where `size` exceeds M, [`Error::Shape`] where the arrays disagree.
pub fn path_coefficients(steps: &Steps<'_>, size: usize) -> Result<Vec<f64>> {
    steps.check()?;
    let (m, q) = (steps.vectors, steps.outputs);
    if size > m {
        return Err(Error::param("size", size, format!("at most {m}, the vectors of the path")));
    }
    let factor = match steps.form {
        Form::Factored(factor) => factor,
        Form::Basic { .. } => {
            let mut a = vec![0.0; size * q];
            for t in 1..=size {
                for (vector, change) in steps.rows_of(t) {
                    axpy(1.0, change, &mut a[vector * q..(vector + 1) * q]);
                }
            }
            return Ok(a);
        }
    };
    let mut a = steps.projections[..size * q].to_vec();
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
pub fn path_decisions(
    kernel: &Kernel,
    kept: Rows<'_>,
    steps: &Steps<'_>,
    intercepts: &[f64],
    x: Rows<'_>,
    sizes: &[usize],
    par: Par,
) -> Result<Vec<f64>> {
    let features = flat(gram(kernel, x, kept, par)?);
    outputs_of(features, (x.rows(), kept.rows()), steps, intercepts, sizes, par)
}

/// Outputs (sizes, n, q) as [`path_decisions`], from the values (n, M) of the path's M functions at the rows.
///
/// # Errors
/// As [`path_decisions`].
pub fn path_outputs(
    features: Vec<f64>,
    (n, m): (usize, usize),
    factor: &[f64],
    projections: &[f64],
    intercepts: &[f64],
    sizes: &[usize],
    par: Par,
) -> Result<Vec<f64>> {
    let steps = Steps { vectors: m, outputs: intercepts.len(), projections, form: Form::Factored(factor) };
    outputs_of(features, (n, m), &steps, intercepts, sizes, par)
}

fn outputs_of(
    mut features: Vec<f64>,
    (n, m): (usize, usize),
    steps: &Steps<'_>,
    intercepts: &[f64],
    sizes: &[usize],
    par: Par,
) -> Result<Vec<f64>> {
    let q = intercepts.len();
    steps.check()?;
    Error::check_len("vectors of a path", steps.vectors, m)?;
    Error::check_len("outputs of a path", steps.outputs, q)?;
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
                    if t > 0 {
                        if let Form::Factored(factor) = steps.form {
                            let line = &factor[(t - 1) * m..(t - 1) * m + t];
                            phi[t - 1] = (phi[t - 1] - dot(&phi[..t - 1], &line[..t - 1])) / line[t - 1];
                        }
                        for (vector, change) in steps.rows_of(t) {
                            axpy(phi[vector], change, &mut outputs);
                        }
                    }
                    if next < sizes.len() && sizes[next] == t {
                        out[next * q..(next + 1) * q].copy_from_slice(&outputs);
                        next += 1;
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
