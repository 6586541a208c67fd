//! Selection from an expansion that is too long for the method, a chunk at a time (Weston and Bakir, TR-132, section 3.6).
//!
//! ```text
//! w = sum_j w_j       w_j the part of chunk j; each w_j is replaced by its best approximation on few of its vectors
//! ```
//!
//! The vectors that the chunks keep, between a quarter and a half of theirs or the final number, are one expansion again,
//! which is divided into chunks until one is enough. Neighbors share a chunk, since vectors that a learner has sorted by
//! class can represent each other. The last selection has the remaining vectors as candidates and the *whole* expansion as
//! target.
//!
//! Invariant: coefficients and residual norms are those of the full model.
//!
//! Memory: that of a selection from one chunk, and the vectors. Cost: m / chunk selections, and for the last one the
//! kernel values between m and a chunk. The norm of the target costs m^2 kernel values; if these are too many, an
//! upper bound replaces it, and the residual norms are upper bounds, too: with e_j the error of each replacement,
//! ||w|| <= ||sum_j w^_j|| + sum_j ||e_j||.

use super::matrix::{Method, OrderedPaths, select};
use super::pursuit::{PursuitParams, TargetProducts, for_blocks, pursuit};
use crate::context::{Context, GracePeriod, StopReason};
use crate::data::{Rows, copy_flat, flat, matrix};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::Evaluator;
use crate::path::{Path, path_coefficients};
use crate::simd::blas::dot;

/// The method of selection and its parameters.
#[derive(Debug, Clone)]
pub enum Reducer<'a> {
    /// A pursuit: vectors enter one by one, and few kernel values are stored.
    Pursuit(PursuitParams<'a>),
    /// A method that needs the whole kernel matrix.
    Matrix {
        /// The method that orders the vectors by their kernel matrix.
        method: &'a dyn Method,
        /// Maximum number of vectors.
        max_vectors: usize,
        /// Stop when the residual norm is at most this share of the target's norm.
        tolerance: f64,
    },
}

/// Limits of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of vectors of a chunk, at least twice the number to choose. `None` takes one chunk if the memory allows it, and
    /// otherwise chunks that take seconds.
    pub chunk: Option<usize>,
    /// Maximum number of bytes of a selection, without the expansion.
    pub memory: u64,
}

impl Reducer<'_> {
    fn max_vectors(&self) -> usize {
        match self {
            Self::Pursuit(params) => params.max_vectors,
            Self::Matrix { max_vectors, .. } => *max_vectors,
        }
    }

    /// Returns the approximate number of bytes of a selection among m vectors for q outputs.
    fn bytes(&self, m: usize, q: usize) -> u64 {
        let (m, q, max_vectors) = (m as u64, q as u64, self.max_vectors().min(m) as u64);
        let numbers = match self {
            Self::Pursuit(params) if params.sample.is_some() && params.joint => {
                m * (q + 8) + max_vectors * max_vectors / 2
            }
            // Rows of L, and columns of the matrix computed ahead.
            Self::Pursuit(params) if params.joint => m * (max_vectors + 2 * q + 200),
            Self::Pursuit(_) => m * (2 * max_vectors + 40 * q + 200),
            Self::Matrix { method, .. } => method.numbers(m, q, max_vectors),
        };
        8 * numbers
    }

    /// Returns the default size of a chunk, from which the method selects in seconds.
    fn default_chunk(&self) -> usize {
        match self {
            Self::Pursuit(_) => 4096,
            Self::Matrix { method, .. } => method.default_chunk(),
        }
    }

    /// Selects at most `max_vectors` vectors.
    fn run(
        &self,
        target: &ExpansionView<'_>,
        max_vectors: usize,
        is_draft: bool,
        ctx: Context<'_>,
    ) -> Result<Path> {
        match self {
            Self::Pursuit(params) => {
                let params = PursuitParams { max_vectors, ..params.clone() };
                pursuit(target, None, &params, ctx)
            }
            Self::Matrix { method, tolerance, .. } => {
                select(target, *method, max_vectors, *tolerance, is_draft, ctx)
            }
        }
    }
}

impl Limits {
    /// Returns the number of vectors of a selection: all, or those of a chunk.
    fn chunk_size(self, reducer: &Reducer<'_>, all: usize, outputs: usize) -> usize {
        match self.chunk {
            Some(chunk) => chunk.min(all),
            None if reducer.bytes(all, outputs) <= self.memory => all,
            None => reducer.default_chunk().max(2 * reducer.max_vectors()).min(all),
        }
    }

    /// Returns the approximate number of bytes of a reduction for a number of candidates, without the expansion.
    pub fn bytes(self, reducer: &Reducer<'_>, candidates: usize, outputs: usize) -> u64 {
        reducer.bytes(self.chunk_size(reducer, candidates, outputs), outputs)
    }
}

/// Reduces `target` to a few of its own vectors, or of the candidates of a pursuit.
///
/// # Errors
/// See [`pursuit`] and [`Method::order`]; [`Error::Param`] if a chunk is too small, or needs more memory than allowed.
pub fn reduce(
    target: &ExpansionView<'_>,
    candidates: Option<Rows<'_>>,
    reducer: &Reducer<'_>,
    limits: Limits,
    ctx: Context<'_>,
) -> Result<Path> {
    let (m, q, max_vectors) = (target.len(), target.outputs(), reducer.max_vectors());
    let n_candidates = candidates.map_or(m, |rows| rows.rows());
    let fits = |size: usize| reducer.bytes(size, q) <= limits.memory;
    let too_much = |size: usize| {
        Error::param(
            "max_memory",
            format!("{:.0} MB", limits.memory as f64 / 1e6),
            format!(
                "at least {:.0} MB to choose {max_vectors} of {size} vectors; choose fewer, or by another method",
                reducer.bytes(size, q) as f64 / 1e6
            ),
        )
    };
    let chunk = match limits.chunk {
        Some(chunk) if chunk < (2 * max_vectors).max(4) && chunk < n_candidates => {
            let rule =
                format!("at least {}, twice the number of vectors to choose", (2 * max_vectors).max(4));
            return Err(Error::param("chunk", chunk, rule));
        }
        _ => limits.chunk_size(reducer, n_candidates, q),
    };
    if !fits(chunk.min(n_candidates)) {
        return Err(too_much(chunk.min(n_candidates)));
    }
    if let (Some(rows), Reducer::Pursuit(params)) = (candidates, reducer) {
        let rule = "None where the candidates are not the model's own vectors";
        Error::check_param(chunk >= rows.rows() || limits.chunk.is_none(), "chunk", chunk, rule)?;
        return if fits(n_candidates) {
            pursuit(target, candidates, params, ctx)
        } else {
            Err(too_much(n_candidates))
        };
    }
    if chunk >= m {
        return reducer.run(target, max_vectors, false, ctx);
    }
    if let Reducer::Matrix { method, .. } = reducer {
        // The penalized coefficients of a chunk are not those of the whole model.
        let rule = format!("true where the {m} vectors are taken in chunks of {chunk}");
        Error::check_param(!method.keeps_coefficients(), "refit", false, rule)?;
    }
    let path = reduce_chunks(target, reducer, chunk, ctx)
        .and_then(|remaining| final_selection(target, reducer, &remaining, ctx));
    Path::or_empty(path, q)
}

/// Maximum number of vectors of a target whose norm is computed.
const MAX_NORM_VECTORS: usize = 1 << 16;

/// The remaining vectors of an expansion, by index, and their coefficients.
struct Remaining {
    indices: Vec<usize>,
    coefficients: Vec<f64>,
    /// Upper bound on the error of the replacements.
    error_bound: f64,
}

/// Reduces the chunks until one chunk is left.
fn reduce_chunks(
    target: &ExpansionView<'_>,
    reducer: &Reducer<'_>,
    chunk: usize,
    ctx: Context<'_>,
) -> Result<Remaining> {
    let (q, max_vectors) = (target.outputs(), reducer.max_vectors());
    let mut remaining = Remaining {
        indices: (0..target.len()).collect(),
        coefficients: copy_flat(target.coefficients)?,
        error_bound: 0.0,
    };
    while remaining.indices.len() > chunk {
        let parts = remaining.indices.len().div_ceil(chunk);
        let size = remaining.indices.len().div_ceil(parts);
        let mut next =
            Remaining { indices: Vec::new(), coefficients: Vec::new(), error_bound: remaining.error_bound };
        for (indices, coefficients) in
            remaining.indices.chunks(size).zip(remaining.coefficients.chunks(size * q))
        {
            if coefficients.iter().all(|&v| v == 0.0) {
                continue;
            }
            let vectors = target.vectors.gather(indices)?;
            let coefficients = matrix((indices.len(), q), coefficients)?;
            let part = ExpansionView { vectors: vectors.view(), coefficients, ..target.reborrow() };
            let keep = (indices.len() / 4).max(max_vectors.min(indices.len() / 2)).max(1);
            let path = reducer.run(&part, keep, true, ctx)?;
            if let Some(interruption) = path.stop.reason.interruption() {
                return Err(Error::Stopped(interruption));
            }
            next.error_bound += path.residual_norms.last().copied().unwrap_or(0.0);
            let reduced = path_coefficients(&path.view(), path.order.len())?;
            // Sorted, so that neighbors stay neighbors.
            let mut places: Vec<usize> = (0..path.order.len()).collect();
            places.sort_unstable_by_key(|&t| path.order[t]);
            for t in places {
                next.indices.push(indices[path.order[t]]);
                next.coefficients.extend(reduced.row(t));
            }
        }
        remaining = next;
    }
    Ok(remaining)
}

/// Selects among the remaining vectors, with the whole target.
fn final_selection(
    target: &ExpansionView<'_>,
    reducer: &Reducer<'_>,
    remaining: &Remaining,
    ctx: Context<'_>,
) -> Result<Path> {
    if remaining.indices.is_empty() {
        return Ok(Path::empty(target.outputs(), StopReason::Converged));
    }
    let vectors = target.vectors.gather(&remaining.indices)?;
    let coefficients = matrix((remaining.indices.len(), target.outputs()), &remaining.coefficients)?;
    let small = ExpansionView { vectors: vectors.view(), coefficients, ..target.reborrow() };
    let norm_bound = if target.len() > MAX_NORM_VECTORS {
        let zero = vec![0.0; target.outputs()];
        let evaluator = Evaluator::new(&ExpansionView { intercepts: &zero, ..small.reborrow() })?;
        let work = small.len() * small.vectors.cols().max(1);
        let values = for_blocks(small.vectors, work, ctx, |block| {
            evaluator.evaluate_double(block, ctx.silent()).map(flat)
        })?;
        Some((dot(&values, &remaining.coefficients).max(0.0).sqrt() + remaining.error_bound).powi(2))
    } else {
        None
    };
    let mut path = match reducer {
        Reducer::Pursuit(params) => {
            let max_vectors = params.max_vectors.min(remaining.indices.len());
            let params = PursuitParams { max_vectors, norm_bound, ..params.clone() };
            pursuit(target, Some(vectors.view()), &params, ctx)?
        }
        Reducer::Matrix { max_vectors, tolerance, .. } => {
            // Computed first, because the coefficients need it even if the time ends during the selection.
            let pool = vectors.view();
            let products = TargetProducts::new(target, Some(pool), norm_bound, ctx)?;
            let chosen = reducer.run(&small, (*max_vectors).min(remaining.indices.len()), false, ctx)?;
            let (kernel, outputs) = (target.kernel, target.outputs());
            let ordered = OrderedPaths {
                kernel,
                outputs,
                pool,
                products: &products,
                tolerance: *tolerance,
                norm_bound,
            };
            let grace = GracePeriod::new(ctx.monitor());
            let mut path = ordered.path(&chosen.order, ctx.with_monitor(&grace))?;
            if chosen.stop.reason != StopReason::Converged {
                path.stop.reason = chosen.stop.reason;
            }
            if chosen.penalties.len() == chosen.order.len() {
                let place = |p: &usize| chosen.order.iter().position(|o| o == p);
                path.penalties = path.order.iter().filter_map(place).map(|at| chosen.penalties[at]).collect();
            }
            path
        }
    };
    for p in &mut path.order {
        *p = remaining.indices[*p];
    }
    Ok(path)
}
