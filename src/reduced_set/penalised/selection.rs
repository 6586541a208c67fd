//! The methods that need the whole kernel matrix: each gives an order of the vectors, and the path along it, with the best
//! coefficients of every size (TR-132, eq. 7), is that of a pursuit. So the shrinking that a penalty does to the
//! coefficients is undone; the residual can only fall by that.
//!
//! Cost and memory grow with the square of the number of vectors, and more for some: see the methods' files.

use super::problem::{Norm, Order, Problem};
use super::{l0, l1, rank};
use crate::control::{Monitor, Par, StopReason};
use crate::data::flat;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::gram_symmetric;
use crate::path::Path;
use crate::reduced_set::pursuit::{PursuitParams, Selection, check_kernel, indefinite, pursuit};
use std::collections::HashMap;
use std::ops::ControlFlow;

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
    },
    /// The l1 path of compressed SVM, eq. 9; the labels are the signs of the coefficients.
    Lars {
        /// Outputs together or each by itself.
        norm: Norm,
        /// The machine's C.
        cost: f64,
        /// The vectors of the solution at this lambda instead of the path.
        penalty: Option<f64>,
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
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Path> {
    let (m, q) = (target.len(), target.outputs());
    check_kernel(&target.kernel)?;
    let rule = format!("between 1 and {m}, the number of vectors");
    Error::check_param((1..=m).contains(&max_vectors), "max_vectors", max_vectors, rule)?;
    if let ControlFlow::Break(reason) = monitor.look("kernel matrix", 0, max_vectors) {
        return Ok(Path::empty(q, reason));
    }
    method.check()?;
    let k = flat(gram_symmetric(&target.kernel, target.vectors, par)?);
    let problem = Problem { target, gram: &k, max_vectors, monitor, par };
    if let Some(negative) = problem.diagonal().find(|&v| v < 0.0) {
        return Err(indefinite(&target.kernel, negative));
    }
    let Order { vectors: order, penalties, reason } = match method {
        Method::Rank { tolerance } => rank::order(&problem, tolerance),
        Method::ZeroNorm { norm, gamma, levels } => l0::order(&problem, norm, gamma, levels),
        Method::L1 { norm, inverse_weights, penalty } => l1::order(&problem, norm, inverse_weights, penalty),
        Method::Lars { norm, cost, penalty } => l1::lars_order(&problem, norm, cost, penalty),
    }?;
    let mut path = along(target, &order, tolerance, None, monitor, par)?;
    // Vectors inside the span of earlier ones have left the order.
    if !penalties.is_empty() {
        let at: HashMap<usize, f64> = order.iter().copied().zip(penalties).collect();
        path.penalties = path.order.iter().map(|p| at[p]).collect();
    }
    if reason != StopReason::Converged {
        path.stop.reason = reason;
    }
    Ok(path)
}

/// The path along an order of the target's own vectors; `norm_bound` as for a pursuit.
pub(in crate::reduced_set) fn along(
    target: &ExpansionView<'_>,
    order: &[usize],
    tolerance: f64,
    norm_bound: Option<f64>,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Path> {
    // Only the chosen ones are candidates now; one that is none stands for an empty order.
    let first = [0];
    let chosen = target.vectors.gather(if order.is_empty() { &first } else { order });
    let params = PursuitParams {
        tolerance,
        norm_bound,
        selection: Selection::Given((0..order.len()).collect()),
        ..PursuitParams::new(order.len().max(1))
    };
    let mut path = pursuit(target, Some(chosen.view()), &params, monitor, par)?;
    for p in &mut path.order {
        *p = order[*p];
    }
    Ok(path)
}

impl Method {
    fn check(self) -> Result<()> {
        match self {
            Self::Rank { tolerance } => Error::check_not_negative("rank_tolerance", tolerance),
            Self::ZeroNorm { gamma, .. } => Error::check_not_negative("gamma", gamma.unwrap_or(0.0)),
            Self::L1 { penalty, .. } => Error::check_not_negative("penalty", penalty.unwrap_or(0.0)),
            Self::Lars { penalty, cost, .. } => {
                let holds = cost > 0.0 && cost.is_finite();
                Error::check_param(holds, "cost", cost, "finite and positive")?;
                Error::check_not_negative("penalty", penalty.unwrap_or(0.0))
            }
        }
    }
}
