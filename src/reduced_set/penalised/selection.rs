//! The selections that need the whole kernel matrix: rank, zero norm, l1 and LARS-SVM. Each gives an order of the
//! vectors; the path along it, with the best coefficients of every size (TR-132, eq. 7), is that of a pursuit.
//!
//! | method | chooses | source |
//! |---|---|---|
//! | rank | a basis of the span of all vectors: lossless | TR-132, eq. 3, after Downs, Gates and Masters, 2001 |
//! | zero norm | as few vectors as keep w, gamma lets w change | TR-132, alg. 3.4 and 3.5 |
//! | l1 | the penalised path | TR-132, eq. 4 and 5 |
//! | LARS-SVM | the penalised path of an SVM trained again on its own vectors | compressed SVM, eq. 6 to 9 |
//!
//! Cost and memory grow with the square of the number of vectors, and more for some: see the methods' files.

use super::l0::ZeroNorm;
use super::l1::{Entered, Norm, Penalised};
use crate::control::{Monitor, Par, Progress, StopReason};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Kernel, gram_symmetric};
use crate::linalg::pivoted::pivoted;
use crate::path::Path;
use crate::reduced_set::pursuit::{PursuitParams, Selection, indefinite, pursuit};
use crate::simd::blas::{axpy, dot};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Values of gamma that a zero-norm path tries.
pub const LEVELS: usize = 16;
/// Share of the first gamma that the last one is.
const LAST: f64 = 1e-12;

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
        /// Values of gamma that the path tries where none is given, [`LEVELS`] for a fine one.
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
    if target.kernel == Kernel::Precomputed {
        return Err(Error::param("kernel", "precomputed", "a function of two vectors to be reduced"));
    }
    if max_vectors == 0 || max_vectors > m {
        return Err(Error::param(
            "max_vectors",
            max_vectors,
            format!("between 1 and {m}, the number of vectors"),
        ));
    }
    if let ControlFlow::Break(reason) = monitor.tick(&Progress {
        phase: "kernel matrix",
        done: 0,
        total: Some(max_vectors as u64),
        gap: f64::NAN,
        steps: 0,
    }) {
        return Ok(Path::empty(q, reason));
    }
    let Entered { order, penalties, reason } = order_of(target, method, max_vectors, monitor, par)?;
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

/// The vectors in the order of a method.
fn order_of(
    target: &ExpansionView<'_>,
    method: Method,
    max_vectors: usize,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Entered> {
    let (m, q) = (target.len(), target.outputs());
    method.check()?;
    let k = gram_symmetric(&target.kernel, target.vectors, par)?;
    if let Some(negative) = (0..m).map(|i| k[i * m + i]).find(|&v| v < 0.0) {
        return Err(indefinite(&target.kernel, negative));
    }
    match method {
        Method::Rank { tolerance } => {
            let (order, factor) = pivoted(&k, m, max_vectors, tolerance);
            check_semidefinite(&k, &factor, m, &target.kernel)?;
            Ok(Entered { order, penalties: Vec::new(), reason: StopReason::Converged })
        }
        Method::ZeroNorm { norm, gamma, levels } => {
            let (order, reason) = zero_norm_order(&k, target, norm, (gamma, levels), max_vectors, monitor)?;
            Ok(Entered { order, penalties: Vec::new(), reason })
        }
        Method::L1 { norm, inverse_weights, penalty } => {
            let linear = times(&k, target.coefficients, m, q, par);
            let weights: Vec<f64> = target
                .coefficients
                .chunks_exact(q)
                .map(|row| row.iter().map(|v| v.abs()).sum::<f64>())
                .map(|size| {
                    if !inverse_weights {
                        1.0
                    } else if size > 0.0 {
                        1.0 / size
                    } else {
                        0.0
                    }
                })
                .collect();
            Penalised { quadratic: &k, linear: &linear, weights: &weights, outputs: q, norm }.order(
                max_vectors,
                penalty,
                monitor,
            )
        }
        Method::Lars { norm, cost, penalty } => {
            // y - b where the vector has a say in the output, the machine's own value where it has none.
            let mut wanted = times(&k, target.coefficients, m, q, par);
            for (wanted, alpha) in wanted.chunks_exact_mut(q).zip(target.coefficients.chunks_exact(q)) {
                for ((wanted, &alpha), b) in wanted.iter_mut().zip(alpha).zip(target.intercepts) {
                    if alpha != 0.0 {
                        *wanted = alpha.signum() - b;
                    }
                }
            }
            let mut linear = times(&k, &wanted, m, q, par);
            for v in &mut linear {
                *v *= cost;
            }
            let mut quadratic = vec![0.0; m * m];
            par.for_each_chunk(&mut quadratic, m, |i, line| {
                for (j, value) in line.iter_mut().enumerate() {
                    *value = cost * dot(&k[i * m..(i + 1) * m], &k[j * m..(j + 1) * m]) + k[i * m + j];
                }
            });
            let weights = vec![1.0; m];
            Penalised { quadratic: &quadratic, linear: &linear, weights: &weights, outputs: q, norm }.order(
                max_vectors,
                penalty,
                monitor,
            )
        }
    }
}

/// What the factor leaves of the diagonal must be a squared distance.
fn check_semidefinite(k: &[f64], factor: &[f64], m: usize, kernel: &Kernel) -> Result<()> {
    let rank = factor.len() / m;
    let largest = (0..m).map(|i| k[i * m + i]).fold(0.0, f64::max);
    let left =
        |i: usize| k[i * m + i] - dot(&factor[i * rank..(i + 1) * rank], &factor[i * rank..(i + 1) * rank]);
    match (0..m).map(left).find(|&v| v < -1e-6 * largest) {
        Some(negative) => Err(indefinite(kernel, negative)),
        None => Ok(()),
    }
}

impl Method {
    fn check(self) -> Result<()> {
        match self {
            Self::Rank { tolerance } => non_negative("rank_tolerance", tolerance),
            Self::ZeroNorm { gamma, .. } => non_negative("gamma", gamma.unwrap_or(0.0)),
            Self::L1 { penalty, .. } => non_negative("penalty", penalty.unwrap_or(0.0)),
            Self::Lars { penalty, cost, .. } => {
                if !(cost > 0.0 && cost.is_finite()) {
                    return Err(Error::param("cost", cost, "finite and positive"));
                }
                non_negative("penalty", penalty.unwrap_or(0.0))
            }
        }
    }
}

fn non_negative(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(Error::param(name, value, "finite and not negative"))
    }
}

/// Together, or the union of what each output keeps, the outputs taking turns.
fn zero_norm_order(
    k: &[f64],
    target: &ExpansionView<'_>,
    norm: Norm,
    (gamma, levels): (Option<f64>, usize),
    most: usize,
    monitor: &dyn Monitor,
) -> Result<(Vec<usize>, StopReason)> {
    let (m, q) = (target.len(), target.outputs());
    let (basis, factor) = pivoted(k, m, m, 1e-14);
    check_semidefinite(k, &factor, m, &target.kernel)?;
    if basis.is_empty() {
        return Ok((Vec::new(), StopReason::Converged));
    }
    let (factor, rank) = (factor.as_slice(), basis.len());
    if norm == Norm::Joint || q == 1 {
        let problem = ZeroNorm { factor, rank, coefficients: target.coefficients, outputs: q };
        let (mut order, reason) = zero_norm_path(k, &problem, (gamma, levels), most, monitor)?;
        order.truncate(most);
        return Ok((order, reason));
    }
    let mut orders = Vec::new();
    for j in 0..q {
        let column: Vec<f64> = target.coefficients.iter().skip(j).step_by(q).copied().collect();
        let problem = ZeroNorm { factor, rank, coefficients: &column, outputs: 1 };
        let (order, reason) = zero_norm_path(k, &problem, (gamma, levels), most, monitor)?;
        orders.push(order);
        if reason != StopReason::Converged {
            return Ok((take_turns(&orders, m, most), reason));
        }
    }
    Ok((take_turns(&orders, m, most), StopReason::Converged))
}

/// The first of every order, then the second, and so on, each vector once.
fn take_turns(orders: &[Vec<usize>], m: usize, most: usize) -> Vec<usize> {
    let (mut union, mut inside) = (Vec::new(), vec![false; m]);
    for turn in 0..orders.iter().map(Vec::len).max().unwrap_or(0) {
        for &i in orders.iter().filter_map(|order| order.get(turn)) {
            if !std::mem::replace(&mut inside[i], true) && union.len() < most {
                union.push(i);
            }
        }
    }
    union
}

fn zero_norm_path(
    k: &[f64],
    problem: &ZeroNorm<'_>,
    (gamma, levels): (Option<f64>, usize),
    most: usize,
    monitor: &dyn Monitor,
) -> Result<(Vec<usize>, StopReason)> {
    if let Some(gamma) = gamma {
        return problem.support(gamma, monitor);
    }
    let m = problem.coefficients.len() / problem.outputs;
    let largest = (0..m).map(|i| k[i * m + i]).fold(0.0, f64::max) * m as f64;
    let (mut order, mut entered) = (Vec::new(), vec![false; m]);
    for level in 0..=levels {
        let gamma = largest * LAST.powf(level as f64 / levels.max(1) as f64);
        let (support, reason) = problem.support(gamma, monitor)?;
        for i in support {
            if !std::mem::replace(&mut entered[i], true) {
                order.push(i);
            }
        }
        if order.len() >= most || reason != StopReason::Converged {
            return Ok((order, reason));
        }
    }
    Ok((order, StopReason::Converged))
}

/// A (m, m) times B (m, q).
fn times(a: &[f64], b: &[f64], m: usize, q: usize, par: Par) -> Vec<f64> {
    let mut out = vec![0.0; m * q];
    par.for_each_chunk(&mut out, q, |i, out| {
        for (&a, b) in a[i * m..(i + 1) * m].iter().zip(b.chunks_exact(q)) {
            if a != 0.0 {
                axpy(a, b, out);
            }
        }
    });
    out
}
