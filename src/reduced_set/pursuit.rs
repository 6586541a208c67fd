//! Hyperplane matching pursuit: approximate w_j = sum_i B[i, j] phi(z_i), all outputs j at once, in the span of few
//! candidates phi(p) (Weston and Bakir, TR-132, Alg. 3.2 with back-fitting (6)-(10), joint over outputs (12)-(13)).
//!
//! A step takes the candidate that is most aligned with what is missing. With r_j the residual of output j, orthogonal
//! to everything chosen so far,
//!
//! ```text
//! back-fitting   p = argmax sum_j <r_j, phi(p)>^2 / k(p, p)              (absolute value: the print forgets it)
//! pre-fitting    p = argmax sum_j <r_j, phi(p)>^2 / ||phi(p) outside the span||^2
//! ```
//!
//! The second is what the residual really loses by the step. Both need only, for every candidate, its residual
//! correlations C (M_c, q), its squared distance d from the span, and its row of the pivoted Cholesky factor L:
//!
//! ```text
//! l_p = (k(p, s) - L_p . L_s) / sqrt(d_s),   d_p -= l_p^2,   C_p -= l_p C_s / sqrt(d_s)
//! ```
//!
//! Invariant: after t steps C_p = <r, phi(p)> for the *best* coefficients on the t vectors, so no system is ever
//! solved; coefficients of every size follow from L afterwards (see `path`). Kernel columns are computed for the few
//! best candidates at once, since they are chosen soon.
//!
//! Cost: candidates x steps^2 / 2 multiply-adds and (about) steps x candidates kernel values; memory
//! candidates x steps numbers.

use super::path::Path;
use crate::control::{Monitor, Par, Progress, Stop, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, Kernel, KernelRows, Precision, diagonal};
use crate::simd::blas::{axpy, dot};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Kernel columns computed together.
const AHEAD: usize = 24;
/// Candidates a task updates.
const CHUNK: usize = 64;
/// A candidate whose squared distance from the span is below this share of k(p, p) counts as inside it.
const INSIDE: f64 = 1e-10;

/// How the next vector is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// By the angle between the residual and the candidate (TR-132). Measured on classifiers to keep the error lower
    /// than pre-fitting does, though the residual is a little larger.
    #[default]
    BackFitting,
    /// By what the residual loses, the candidate's part inside the span left out (as orthogonal least squares does).
    PreFitting,
    /// In a given order, with the best coefficients of every size; candidates inside the span are passed over.
    Given(Vec<usize>),
}

/// Parameters of a pursuit.
#[derive(Debug, Clone, PartialEq)]
pub struct PursuitParams {
    /// Most vectors to choose, at least 1 and at most the number of candidates.
    pub max_vectors: usize,
    /// Stop when the residual norm is at most this share of the target's norm.
    pub tolerance: f64,
    /// The criterion.
    pub selection: Selection,
}

impl PursuitParams {
    fn check(&self, candidates: usize) -> Result<()> {
        if self.max_vectors == 0 || self.max_vectors > candidates {
            return Err(Error::param(
                "max_vectors",
                self.max_vectors,
                format!("between 1 and {candidates}, the number of candidates"),
            ));
        }
        if let Selection::Given(order) = &self.selection
            && let Some(p) = order.iter().find(|&&p| p >= candidates)
        {
            return Err(Error::param("order", p, format!("below {candidates}, the number of candidates")));
        }
        if !(self.tolerance >= 0.0 && self.tolerance < 1.0) {
            return Err(Error::param("tolerance", self.tolerance, "in [0, 1)"));
        }
        Ok(())
    }
}

struct Candidate<'a> {
    /// Row of L.
    factor: &'a mut [f64],
    /// C_p.
    correlations: &'a mut [f64],
    distance: &'a mut f64,
}

/// Reduces `target` to at most `max_vectors` of the candidates: the rows given, or the target's own vectors.
///
/// # Errors
/// [`Error::Param`] for parameters outside their rules, [`Error::Shape`] where the candidates have other columns than
/// the vectors; a precomputed kernel is refused, since k between vectors is not known.
pub fn pursuit(
    target: &ExpansionView<'_>,
    candidates: Option<Rows<'_>>,
    params: &PursuitParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Path> {
    let kernel = target.kernel;
    if kernel == Kernel::Precomputed {
        return Err(Error::param("kernel", "precomputed", "a function of two vectors to be reduced"));
    }
    let pool = candidates.unwrap_or(target.vectors);
    let (count, q) = (pool.rows(), target.outputs());
    params.check(count)?;
    let most = params.max_vectors;

    let zero = vec![0.0; q];
    let evaluator = Evaluator::new(&ExpansionView { intercepts: &zero, ..*target })?;
    let of_vectors = evaluator.evaluate_double(target.vectors, par)?;
    let norm = dot(&of_vectors, target.coefficients).max(0.0);
    let mut correlations =
        if candidates.is_some() { evaluator.evaluate_double(pool, par)? } else { of_vectors };

    let own = diagonal(&kernel, pool);
    let mut distance = own.clone();
    let mut factor = vec![0.0; count * most];
    let all: Vec<usize> = (0..count).collect();
    let source = KernelRows::new(kernel, pool, &all, Precision::Double, par);
    let mut columns: HashMap<usize, Vec<f64>> = HashMap::new();

    let score = |p: usize, correlations: &[f64], distance: f64| {
        if !(distance > INSIDE * own[p]) {
            return f64::NEG_INFINITY;
        }
        let aligned: f64 = correlations.iter().map(|c| c * c).sum();
        aligned / if params.selection == Selection::PreFitting { distance } else { own[p] }
    };
    let mut scores: Vec<f64> =
        (0..count).map(|p| score(p, &correlations[p * q..(p + 1) * q], distance[p])).collect();

    let mut given = match &params.selection {
        Selection::Given(order) => Some(order.iter().copied()),
        _ => None,
    };
    let (mut order, mut projections, mut residual) = (Vec::new(), Vec::new(), norm);
    let mut residual_norms = vec![norm.sqrt()];
    let enough = params.tolerance * params.tolerance * norm;
    let reason = loop {
        if residual <= enough || order.len() == most {
            break StopReason::Converged;
        }
        let progress = Progress {
            phase: "pursuit",
            done: order.len() as u64,
            total: Some(most as u64),
            gap: (residual / norm).sqrt(),
            steps: order.len() as u64,
        };
        if let ControlFlow::Break(reason) = monitor.tick(&progress) {
            break reason;
        }
        let best = match &mut given {
            // A candidate without a share in the residual still has its place in a given order.
            Some(given) => match given.find(|&p| scores[p] >= 0.0) {
                Some(p) => p,
                None => break StopReason::Converged,
            },
            None => (0..count).fold(0, |best, p| if scores[p] > scores[best] { p } else { best }),
        };
        if given.is_none() && !(scores[best] > 0.0) {
            break StopReason::Converged;
        }
        if !columns.contains_key(&best) {
            fetch_columns(&source, &mut columns, &scores, best, par);
        }
        let column = columns.remove(&best).unwrap_or_default();
        let step = order.len();
        let pivot = distance[best].sqrt();
        let line = factor[best * most..best * most + step].to_vec();
        let projection: Vec<f64> = correlations[best * q..(best + 1) * q].iter().map(|c| c / pivot).collect();

        let mut parts: Vec<(Candidate<'_>, &mut f64)> = factor
            .chunks_exact_mut(most)
            .zip(correlations.chunks_exact_mut(q))
            .zip(&mut distance)
            .zip(&mut scores)
            .map(|(((factor, correlations), distance), score)| {
                (Candidate { factor, correlations, distance }, score)
            })
            .collect();
        par.for_each_chunk(&mut parts, CHUNK, |chunk, parts| {
            for (offset, (candidate, new_score)) in parts.iter_mut().enumerate() {
                let p = chunk * CHUNK + offset;
                let l = (column[p] - dot(&candidate.factor[..step], &line)) / pivot;
                candidate.factor[step] = l;
                *candidate.distance -= l * l;
                axpy(-l, &projection, candidate.correlations);
                **new_score = score(p, candidate.correlations, *candidate.distance);
            }
        });
        drop(parts);
        factor[best * most + step] = pivot;
        distance[best] = 0.0;
        scores[best] = f64::NEG_INFINITY;
        order.push(best);
        residual = (residual - dot(&projection, &projection)).max(0.0);
        residual_norms.push(residual.sqrt());
        projections.extend(projection);
    };

    let m = order.len();
    let mut kept = vec![0.0; m * m];
    for (t, &p) in order.iter().enumerate() {
        kept[t * m..t * m + t + 1].copy_from_slice(&factor[p * most..p * most + t + 1]);
    }
    let gap = if norm > 0.0 { (residual / norm).sqrt() } else { 0.0 };
    Ok(Path {
        order,
        factor: kept,
        projections,
        residual_norms,
        stop: Stop { reason, iterations: m as u64, gap },
    })
}

/// Computes the kernel columns of the best candidates that have none, `best` among them.
fn fetch_columns(
    source: &KernelRows<'_>,
    columns: &mut HashMap<usize, Vec<f64>>,
    scores: &[f64],
    best: usize,
    par: Par,
) {
    // Columns that were computed ahead and not chosen for long would pile up.
    if columns.len() > 8 * AHEAD {
        columns.clear();
    }
    let mut list: Vec<usize> =
        (0..scores.len()).filter(|p| scores[*p] > 0.0 && *p != best && !columns.contains_key(p)).collect();
    let by_score = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
    if list.len() >= AHEAD {
        list.select_nth_unstable_by(AHEAD - 1, by_score);
        list.truncate(AHEAD - 1);
    }
    list.push(best);
    let mut fresh: Vec<Vec<f64>> = list.iter().map(|_| vec![0.0; source.columns()]).collect();
    let mut slices: Vec<&mut [f64]> = fresh.iter_mut().map(Vec::as_mut_slice).collect();
    source.compute(&list, &mut slices, par);
    columns.extend(list.into_iter().zip(fresh));
}
