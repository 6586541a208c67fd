//! The methods that need the whole kernel matrix: each gives an order of the vectors, and the path along it, with the best
//! coefficients of every size (TR-132, eq. 7), is that of a pursuit. So the shrinking that a penalty does to the
//! coefficients is undone; the residual can only fall by that. A path that keeps them is a list of changes, as that of a
//! basic pursuit.
//!
//! Cost and memory grow with the square of the number of vectors, and more for some: see the methods' files.

use super::problem::{Coefficients, Norm, Order, Problem, kernel_matrix};
use super::{l0, l1, rank};
use crate::context::{Context, GracePeriod, StopReason};
use crate::data::{Rows, matrix};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::Kernel;
use crate::memory::{TryCollect, TryToVec, try_to_matrix, try_vec};
use crate::path::Path;
use crate::reduced_set::pursuit::{Known, PursuitParams, Selection, Space, check_kernel, indefinite, pursue};
use crate::simd::blas::{axpy, dot};
use std::collections::HashMap;

/// A way to put the vectors in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// A basis, the vector farthest from the span next; vectors within `tolerance` of the span, in squared distance
    /// relative to the largest k(z, z), are in it.
    Rank {
        /// Relative squared distance.
        tolerance: f64,
    },
    /// The zero norm. With `None` gamma falls from large to small, and vectors enter as they are first needed.
    ZeroNorm {
        /// Outputs together or each by itself.
        norm: Norm,
        /// Allowed change; 0 for none.
        gamma: Option<f64>,
        /// Values of gamma that the path tries where none is given, [`LEVELS`](super::LEVELS) for a fine one.
        levels: usize,
    },
    /// The l1 path.
    L1 {
        /// Outputs together or each by itself.
        norm: Norm,
        /// Weights 1 / (sum_j |alpha_ij|) instead of 1: vectors with small coefficients go first.
        inverse_weights: bool,
        /// The vectors of the solution at this lambda instead of the path.
        penalty: Option<f64>,
        /// Whether the coefficients of every size are solved for again, or stay as the penalty has them.
        refit: bool,
    },
    /// The l1 path of compressed SVM, eq. 9; the labels are the signs of the coefficients.
    Lars {
        /// Outputs together or each by itself.
        norm: Norm,
        /// What the squares cost against ||w||^2; `None` takes twice the largest |coefficient|.
        cost: Option<f64>,
        /// The vectors of the solution at this lambda instead of the path.
        penalty: Option<f64>,
        /// Whether the coefficients of every size are solved for again, or stay as the penalty has them.
        refit: bool,
    },
}

/// Reduces `target` to at most `max_vectors` of its own vectors in the order that a method gives.
///
/// # Errors
/// [`Error::Param`] for parameters outside their rules or a precomputed kernel.
pub fn select(
    target: &ExpansionView<'_>,
    method: Method,
    max_vectors: usize,
    tolerance: f64,
    ctx: Context<'_>,
) -> Result<Path> {
    let (m, q) = (target.len(), target.outputs());
    check_kernel(&target.kernel)?;
    let rule = format!("between 1 and {m}, the number of vectors");
    Error::check_param((1..=m).contains(&max_vectors), "max_vectors", max_vectors, rule)?;
    method.check()?;
    Path::or_empty(path(target, method, max_vectors, tolerance, ctx), q)
}

/// The path of a method, for parameters that have been checked.
fn path(
    target: &ExpansionView<'_>,
    method: Method,
    max_vectors: usize,
    tolerance: f64,
    ctx: Context<'_>,
) -> Result<Path> {
    ctx.check("kernel matrix", 0, max_vectors)?;
    // What the coefficients will need, before the time can be over.
    let known = Known::new(target, None, None, ctx)?;
    let (Order { vectors: order, penalties, own, reason }, gram) = ordered(target, method, max_vectors, ctx)?;
    let grace = GracePeriod::new(ctx.monitor());
    let ctx = ctx.with_monitor(&grace);
    let (kernel, pool) = (target.kernel, target.vectors.reborrow());
    if let Some(own) = own {
        let order = Order { vectors: order, penalties, own: None, reason };
        return as_they_are(order, &own, &known, &gram, tolerance, ctx);
    }
    let along = Along { kernel, outputs: target.outputs(), pool, known: &known, tolerance, norm_bound: None };
    let mut path = along.path(&order, ctx)?;
    // Vectors inside the span of earlier ones have left the order.
    if !penalties.is_empty() {
        let at: HashMap<usize, f64> = order.iter().copied().zip(penalties).collect(); // small: one penalty per vector of the path
        path.penalties = path.order.iter().map(|p| at[p]).try_collect_vec()?;
    }
    if reason != StopReason::Converged {
        path.stop.reason = reason;
    }
    Ok(path)
}

/// The path of an order with the coefficients that the method gives it; ends as a pursuit does.
fn as_they_are(
    order: Order,
    own: &Coefficients,
    known: &Known,
    gram: &[f64],
    tolerance: f64,
    ctx: Context<'_>,
) -> Result<Path> {
    let Order { vectors, penalties, reason, .. } = order;
    let (q, m) = (own.outputs(), gram.len().isqrt());
    let mut path = Path::empty(q, reason);
    let squared = known.squared_norm();
    path.residual_norms = vec![squared.sqrt()];
    let targets = known.of(&vectors, q)?;
    let mut b = try_vec![0.0; vectors.len() * q]?;
    let mut counter = ctx.counter("coefficients", vectors.len());
    let mut steps = 0;
    for (size, &until) in (1..).zip(&own.steps_of_size) {
        let work = (size * size * q) as u64;
        if let Some(reason) = StopReason::from_result(counter.charge(work))? {
            path.stop.reason = reason;
            break;
        }
        for step in steps..until {
            let place = own.vector_of_step[step];
            axpy(1.0, &own.changes[step * q..(step + 1) * q], &mut b[place * q..(place + 1) * q]);
        }
        steps = until;
        // ||w - w^||^2 = ||w||^2 - sum over the vectors of b_i (2 f(z_i) - f^(z_i))
        let mut rest = squared;
        for (place, row) in b.chunks_exact(q).enumerate().take(size) {
            let line = &gram[vectors[place] * m..(vectors[place] + 1) * m];
            let mut outputs = try_vec![0.0; q]?;
            for (&other, row) in vectors[..size].iter().zip(b.chunks_exact(q)) {
                axpy(line[other], row, &mut outputs);
            }
            rest -= 2.0 * dot(row, targets.target(place, q)) - dot(row, &outputs);
        }
        path.residual_norms.push(rest.max(0.0).sqrt());
        path.steps_of_size.push(until);
        if rest <= tolerance * tolerance * squared {
            break;
        }
    }
    let size = path.steps_of_size.len();
    path.order = vectors[..size].try_to_vec()?;
    path.penalties = penalties[..size].try_to_vec()?;
    path.vector_of_step = own.vector_of_step[..steps].try_to_vec()?;
    path.projections = try_to_matrix(matrix((steps, q), &own.changes[..steps * q])?)?;
    path.orthogonal = false;
    path.stop.iterations = size as u64;
    Ok(path)
}

/// The order that a method gives, and the kernel matrix.
fn ordered(
    target: &ExpansionView<'_>,
    method: Method,
    max_vectors: usize,
    ctx: Context<'_>,
) -> Result<(Order, Vec<f64>)> {
    let k = kernel_matrix(&target.kernel, target.vectors, ctx)?;
    let problem = Problem { target, gram: &k, max_vectors, ctx };
    if let Some(negative) = problem.diagonal().find(|&v| v < 0.0) {
        return Err(indefinite(&target.kernel, negative));
    }
    let order = match method {
        Method::Rank { tolerance } => rank::order(&problem, tolerance),
        Method::ZeroNorm { norm, gamma, levels } => l0::order(&problem, norm, gamma, levels),
        Method::L1 { norm, inverse_weights, penalty, refit } => {
            l1::order(&problem, norm, inverse_weights, penalty, !refit)
        }
        Method::Lars { norm, cost, penalty, refit } => l1::lars_order(&problem, norm, cost, penalty, !refit),
    };
    Ok((order?, k))
}

/// What paths along orders of some vectors have in common.
pub(in crate::reduced_set) struct Along<'a> {
    pub(in crate::reduced_set) kernel: Kernel,
    /// q.
    pub(in crate::reduced_set) outputs: usize,
    /// The vectors that orders refer to, and what is known of them.
    pub(in crate::reduced_set) pool: Rows<'a>,
    pub(in crate::reduced_set) known: &'a Known,
    pub(in crate::reduced_set) tolerance: f64,
    /// As for a pursuit.
    pub(in crate::reduced_set) norm_bound: Option<f64>,
}

impl Along<'_> {
    /// The path along an order.
    pub(in crate::reduced_set) fn path(&self, order: &[usize], ctx: Context<'_>) -> Result<Path> {
        // Only the chosen ones are candidates now; one that is none stands for an empty order.
        let (first, q) = ([0], self.outputs);
        let places = if order.is_empty() { &first } else { order };
        let chosen = self.pool.gather(places)?;
        let known = self.known.of(places, q)?;
        let space = Space::of_features(self.kernel, chosen.view(), known, q, ctx)?;
        let params = PursuitParams {
            tolerance: self.tolerance,
            norm_bound: self.norm_bound,
            selection: Selection::Given((0..order.len()).try_collect_vec()?),
            ..PursuitParams::new(order.len().max(1))
        };
        let mut path = pursue(&space, &params, ctx)?;
        for p in &mut path.order {
            *p = order[*p];
        }
        Ok(path)
    }
}

impl Method {
    fn check(self) -> Result<()> {
        match self {
            Self::Rank { tolerance } => Error::check_not_negative("rank_tolerance", tolerance),
            Self::ZeroNorm { gamma, .. } => Error::check_not_negative("gamma", gamma.unwrap_or(0.0)),
            Self::L1 { penalty, .. } => Error::check_not_negative("penalty", penalty.unwrap_or(0.0)),
            Self::Lars { penalty, cost, .. } => {
                let cost = cost.unwrap_or(1.0);
                let holds = cost > 0.0 && cost.is_finite();
                Error::check_param(holds, "cost", cost, "finite and positive")?;
                Error::check_not_negative("penalty", penalty.unwrap_or(0.0))
            }
        }
    }
}
