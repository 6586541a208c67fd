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

use super::Path;
use super::penalised::{Norm, Penalised};
use super::pursuit::{PursuitParams, Selection, pursuit};
use super::zero_norm::ZeroNorm;
use crate::control::{Monitor, Par, StopReason};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Kernel, gram_symmetric};
use crate::linalg::pivoted::pivoted;
use crate::simd::blas::{axpy, dot};

/// Values of gamma that a zero-norm path tries.
const LEVELS: usize = 16;

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
        /// Allowed change; 0 for none.
        gamma: Option<f64>,
    },
    /// The l1 path.
    L1 {
        /// Outputs together or each by itself.
        norm: Norm,
        /// Weights 1 / (sum_j |alpha_ij|) instead of 1: vectors with small coefficients go first.
        inverse_weights: bool,
    },
    /// The l1 path of compressed SVM, eq. 9; the labels are the signs of the coefficients.
    Lars {
        /// Outputs together or each by itself.
        norm: Norm,
        /// The machine's C.
        cost: f64,
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
    let k = gram_symmetric(&target.kernel, target.vectors, par)?;
    let (order, reason) = match method {
        Method::Rank { tolerance } => {
            non_negative("rank_tolerance", tolerance)?;
            let (order, _) = pivoted(&k, m, max_vectors, tolerance);
            (order, StopReason::Converged)
        }
        Method::ZeroNorm { gamma } => {
            non_negative("gamma", gamma.unwrap_or(0.0))?;
            zero_norm_order(&k, target, gamma, max_vectors, monitor)?
        }
        Method::L1 { norm, inverse_weights } => {
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
            Penalised { quadratic: &k, linear: &linear, weights: &weights, outputs: q, norm }
                .order(max_vectors, monitor)?
        }
        Method::Lars { norm, cost } => {
            if !(cost > 0.0 && cost.is_finite()) {
                return Err(Error::param("cost", cost, "finite and positive"));
            }
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
            Penalised { quadratic: &quadratic, linear: &linear, weights: &weights, outputs: q, norm }
                .order(max_vectors, monitor)?
        }
    };
    drop(k);
    // Only the chosen ones are candidates now; one that is none stands for an empty order.
    let first = [0];
    let chosen = target.vectors.gather(if order.is_empty() { &first } else { &order });
    let params = PursuitParams {
        max_vectors: order.len().max(1),
        tolerance,
        selection: Selection::Given((0..order.len()).collect()),
    };
    let mut path = pursuit(target, Some(chosen.view()), &params, monitor, par)?;
    for p in &mut path.order {
        *p = order[*p];
    }
    if reason != StopReason::Converged {
        path.stop.reason = reason;
    }
    Ok(path)
}

fn non_negative(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(Error::param(name, value, "finite and not negative"))
    }
}

fn zero_norm_order(
    k: &[f64],
    target: &ExpansionView<'_>,
    gamma: Option<f64>,
    most: usize,
    monitor: &dyn Monitor,
) -> Result<(Vec<usize>, StopReason)> {
    let (m, q) = (target.len(), target.outputs());
    let (basis, factor) = pivoted(k, m, m, 1e-14);
    let problem =
        ZeroNorm { factor: &factor, rank: basis.len(), coefficients: target.coefficients, outputs: q };
    if basis.is_empty() {
        return Ok((Vec::new(), StopReason::Converged));
    }
    if let Some(gamma) = gamma {
        let (mut order, reason) = problem.support(gamma, monitor)?;
        if order.is_empty() && target.coefficients.iter().any(|&v| v != 0.0) {
            return Err(Error::param("gamma", gamma, "small enough for a vector to be left"));
        }
        order.truncate(most);
        return Ok((order, reason));
    }
    let largest = (0..m).map(|i| k[i * m + i]).fold(0.0, f64::max) * m as f64;
    let (mut order, mut entered) = (Vec::new(), vec![false; m]);
    for level in 0..=LEVELS {
        let (support, reason) = problem.support(largest * 0.1_f64.powf(0.75 * level as f64), monitor)?;
        for i in support {
            if !std::mem::replace(&mut entered[i], true) {
                order.push(i);
            }
        }
        if order.len() >= most || reason != StopReason::Converged {
            order.truncate(most);
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
