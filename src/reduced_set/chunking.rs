//! Any selection of an expansion that is too long for it, a part at a time (Weston and Bakir, TR-132, section 3.6).
//!
//! ```text
//! w = sum_j w_j       w_j the part of chunk j; each w_j is replaced by its best approximation on few of its vectors
//! ```
//!
//! What the chunks keep, between a quarter and a half of their vectors or as many as are wanted in all, is one
//! expansion again; chunks are taken from that until one holds the rest. Neighbours share a chunk, since vectors that
//! a learner has sorted by class can stand for each other. The last selection has the rest as candidates and the
//! *whole* expansion as target, so that coefficients and residual norms are those of the full model.
//!
//! Memory: that of a selection from one chunk, and the vectors. Cost: m / chunk selections, and for the last one the
//! kernel values between m and a chunk. The norm of the target costs m^2 kernel values; where that is too many, an
//! upper bound stands for it, and the residual norms are upper bounds too: with e_j what each replacement has lost,
//! ||w|| <= ||sum_j w^_j|| + sum_j ||e_j||.

use super::penalised::{Along, Method, select};
use super::pursuit::{Known, PursuitParams, for_blocks, pursuit};
use crate::context::{Context, GracePeriod, StopReason};
use crate::data::{Rows, flat, matrix};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::Evaluator;
use crate::memory::{TryCollect, TryGrow, TryToVec, try_vec};
use crate::path::{Path, path_coefficients};
use crate::simd::blas::dot;

/// Which vectors are chosen, and how.
#[derive(Debug, Clone)]
pub enum Reducer<'a> {
    /// By a pursuit.
    Pursuit(PursuitParams<'a>),
    /// By a method that looks at the whole kernel matrix.
    Matrix {
        /// Which.
        method: Method,
        /// Most vectors to choose.
        max_vectors: usize,
        /// Stop when the residual norm is at most this share of the target's norm.
        tolerance: f64,
    },
}

/// How much is looked at together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Vectors of a chunk, at least twice as many as are to be chosen. `None` takes all together where the memory
    /// allows it, and else chunks that the method can do in seconds.
    pub chunk: Option<usize>,
    /// Bytes that a selection may take beside the expansion.
    pub memory: u64,
}

impl Reducer<'_> {
    fn max_vectors(&self) -> usize {
        match self {
            Self::Pursuit(params) => params.max_vectors,
            Self::Matrix { max_vectors, .. } => *max_vectors,
        }
    }

    /// About the bytes of a selection among m vectors for q outputs.
    fn bytes(&self, m: usize, q: usize) -> u64 {
        let (m, q, most) = (m as u64, q as u64, self.max_vectors().min(m) as u64);
        let numbers = match self {
            Self::Pursuit(params) if params.sample.is_some() && params.joint => m * (q + 8) + most * most / 2,
            // Rows of L, and columns of the matrix that are kept in store.
            Self::Pursuit(params) if params.joint => m * (most + 2 * q + 200),
            Self::Pursuit(_) => m * (2 * most + 40 * q + 200),
            Self::Matrix { method: Method::Rank { .. }, .. } => m * (m + 2 * most),
            Self::Matrix { method: Method::ZeroNorm { .. }, .. } => 4 * m * m,
            // The matrix, the triangles of the vectors inside, and where they are kept the coefficients of every size.
            Self::Matrix { method: Method::L1 { refit, .. }, .. } => {
                m * (m + 3 * q) + most * most / 2 * if *refit { 1 } else { q + 2 }
            }
            Self::Matrix { method: Method::Lars { refit, .. }, .. } => {
                m * (2 * m + 3 * q) + most * most / 2 * if *refit { 1 } else { q + 2 }
            }
        };
        8 * numbers
    }

    /// Vectors that are quickly chosen from: a chunk where the memory asks for one.
    fn usual_chunk(&self) -> usize {
        match self {
            Self::Matrix { method: Method::ZeroNorm { .. }, .. } => 1024,
            Self::Matrix { method: Method::Lars { .. }, .. } => 2048,
            _ => 4096,
        }
    }

    /// Of a part, at most so many.
    fn run(&self, target: &ExpansionView<'_>, most: usize, ctx: Context<'_>) -> Result<Path> {
        match self {
            Self::Pursuit(params) => {
                let params = PursuitParams { max_vectors: most, ..params.clone() };
                pursuit(target, None, &params, ctx)
            }
            Self::Matrix { method, tolerance, .. } => select(target, *method, most, *tolerance, ctx),
        }
    }
}

impl Limits {
    /// Vectors that are looked at together: all, or those of a chunk.
    fn together(self, reducer: &Reducer<'_>, all: usize, outputs: usize) -> usize {
        match self.chunk {
            Some(chunk) => chunk.min(all),
            None if reducer.bytes(all, outputs) <= self.memory => all,
            None => reducer.usual_chunk().max(2 * reducer.max_vectors()).min(all),
        }
    }

    /// About the bytes that a reduction takes beside the expansion, for so many candidates.
    pub fn bytes(self, reducer: &Reducer<'_>, candidates: usize, outputs: usize) -> u64 {
        reducer.bytes(self.together(reducer, candidates, outputs), outputs)
    }
}

/// Reduces `target` to few of its own vectors, or of other candidates where a pursuit chooses.
///
/// # Errors
/// As [`pursuit`] and [`select`]; [`Error::Param`] where a chunk is too small, or where not even a chunk fits in the
/// memory allowed.
pub fn reduce(
    target: &ExpansionView<'_>,
    candidates: Option<Rows<'_>>,
    reducer: &Reducer<'_>,
    limits: Limits,
    ctx: Context<'_>,
) -> Result<Path> {
    let (m, q, most) = (target.len(), target.outputs(), reducer.max_vectors());
    let whole = candidates.map_or(m, |rows| rows.rows());
    let fits = |size: usize| reducer.bytes(size, q) <= limits.memory;
    let too_much = |size: usize| {
        Error::param(
            "max_memory",
            format!("{:.0} MB", limits.memory as f64 / 1e6),
            format!(
                "at least {:.0} MB to choose {most} of {size} vectors; choose fewer, or by another method",
                reducer.bytes(size, q) as f64 / 1e6
            ),
        )
    };
    let chunk = match limits.chunk {
        Some(chunk) if chunk < (2 * most).max(4) && chunk < whole => {
            let rule = format!("at least {}, twice the number of vectors to choose", (2 * most).max(4));
            return Err(Error::param("chunk", chunk, rule));
        }
        _ => limits.together(reducer, whole, q),
    };
    if !fits(chunk.min(whole)) {
        return Err(too_much(chunk.min(whole)));
    }
    if let (Some(rows), Reducer::Pursuit(params)) = (candidates, reducer) {
        let rule = "None where the candidates are not the model's own vectors";
        Error::check_param(chunk >= rows.rows() || limits.chunk.is_none(), "chunk", chunk, rule)?;
        return if fits(whole) { pursuit(target, candidates, params, ctx) } else { Err(too_much(whole)) };
    }
    if chunk >= m {
        return reducer.run(target, most, ctx);
    }
    if let Reducer::Matrix { method: Method::L1 { refit, .. } | Method::Lars { refit, .. }, .. } = reducer {
        // What a chunk's penalty does to its coefficients has nothing to say about the whole model's.
        let rule = format!("true where the {m} vectors are taken in chunks of {chunk}");
        Error::check_param(*refit, "refit", refit, rule)?;
    }
    let path = rest_of(target, reducer, chunk, ctx).and_then(|rest| last_choice(target, reducer, &rest, ctx));
    Path::or_empty(path, q)
}

/// Vectors of a target up to which its norm is found out.
const NORM: usize = 1 << 16;

/// What is left of an expansion: vectors by their index, and their coefficients.
struct Rest {
    indices: Vec<usize>,
    coefficients: Vec<f64>,
    /// What the replacements have lost, at most.
    lost: f64,
}

/// Passes over the chunks until one chunk holds what is left.
fn rest_of(
    target: &ExpansionView<'_>,
    reducer: &Reducer<'_>,
    chunk: usize,
    ctx: Context<'_>,
) -> Result<Rest> {
    let (q, most) = (target.outputs(), reducer.max_vectors());
    // Which vectors go is decided finely only among the last ones.
    let mut quick = reducer.clone();
    if let Reducer::Matrix { method: Method::ZeroNorm { levels, .. }, .. } = &mut quick {
        *levels = (*levels / 4).max(1);
    }
    let mut rest = Rest {
        indices: (0..target.len()).try_collect_vec()?,
        coefficients: target.flat().try_to_vec()?,
        lost: 0.0,
    };
    while rest.indices.len() > chunk {
        let parts = rest.indices.len().div_ceil(chunk);
        let size = rest.indices.len().div_ceil(parts);
        let mut next = Rest { indices: Vec::new(), coefficients: Vec::new(), lost: rest.lost };
        for (indices, coefficients) in rest.indices.chunks(size).zip(rest.coefficients.chunks(size * q)) {
            if coefficients.iter().all(|&v| v == 0.0) {
                continue;
            }
            let vectors = target.vectors.gather(indices)?;
            let coefficients = matrix((indices.len(), q), coefficients)?;
            let part = ExpansionView { vectors: vectors.view(), coefficients, ..target.reborrow() };
            let keep = (indices.len() / 4).max(most.min(indices.len() / 2)).max(1);
            let path = quick.run(&part, keep, ctx)?;
            if let reason @ (StopReason::Interrupted | StopReason::MaxTime) = path.stop.reason {
                return Err(Error::Stopped(reason));
            }
            next.lost += path.residual_norms.last().copied().unwrap_or(0.0);
            let kept = path_coefficients(&path.view(), path.order.len())?;
            // Back in their own order, so that neighbours stay neighbours.
            let mut places: Vec<usize> = (0..path.order.len()).try_collect_vec()?;
            places.sort_unstable_by_key(|&t| path.order[t]);
            for t in places {
                next.indices.try_push(indices[path.order[t]])?;
                next.coefficients.extend(kept.row(t));
            }
        }
        rest = next;
    }
    Ok(rest)
}

/// The selection among what is left, towards the whole target.
fn last_choice(
    target: &ExpansionView<'_>,
    reducer: &Reducer<'_>,
    rest: &Rest,
    ctx: Context<'_>,
) -> Result<Path> {
    if rest.indices.is_empty() {
        return Ok(Path::empty(target.outputs(), StopReason::Converged));
    }
    let vectors = target.vectors.gather(&rest.indices)?;
    let coefficients = matrix((rest.indices.len(), target.outputs()), &rest.coefficients)?;
    let small = ExpansionView { vectors: vectors.view(), coefficients, ..target.reborrow() };
    let norm_bound = if target.len() > NORM {
        let zero = try_vec![0.0; target.outputs()]?;
        let evaluator = Evaluator::new(&ExpansionView { intercepts: &zero, ..small.reborrow() })?;
        let work = small.len() * small.vectors.cols().max(1);
        let values = for_blocks(small.vectors, work, ctx, |block| {
            evaluator.evaluate_double(block, ctx.silent()).map(flat)
        })?;
        Some((dot(&values, &rest.coefficients).max(0.0).sqrt() + rest.lost).powi(2))
    } else {
        None
    };
    let mut path = match reducer {
        Reducer::Pursuit(params) => {
            let max_vectors = params.max_vectors.min(rest.indices.len());
            let params = PursuitParams { max_vectors, norm_bound, ..params.clone() };
            pursuit(target, Some(vectors.view()), &params, ctx)?
        }
        Reducer::Matrix { max_vectors, tolerance, .. } => {
            // What the coefficients will need, before the time can be over.
            let pool = vectors.view();
            let known = Known::new(target, Some(pool), norm_bound, ctx)?;
            let chosen = reducer.run(&small, (*max_vectors).min(rest.indices.len()), ctx)?;
            let (kernel, outputs) = (target.kernel, target.outputs());
            let along = Along { kernel, outputs, pool, known: &known, tolerance: *tolerance, norm_bound };
            let grace = GracePeriod::new(ctx.monitor());
            let mut path = along.path(&chosen.order, ctx.with_monitor(&grace))?;
            if chosen.stop.reason != StopReason::Converged {
                path.stop.reason = chosen.stop.reason;
            }
            if chosen.penalties.len() == chosen.order.len() {
                let place = |p: &usize| chosen.order.iter().position(|o| o == p);
                path.penalties =
                    path.order.iter().filter_map(place).map(|at| chosen.penalties[at]).try_collect_vec()?;
            }
            path
        }
    };
    for p in &mut path.order {
        *p = rest.indices[*p];
    }
    Ok(path)
}
