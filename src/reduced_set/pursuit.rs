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
//! The second is what the residual really loses by the step. `linalg::greedy` keeps both for all candidates and grows the
//! pivoted Cholesky factor; coefficients of every size follow from that afterwards (see `path`).
//!
//! Cost: candidates x steps^2 / 2 multiply-adds and (about) steps x candidates kernel values; memory
//! candidates x steps numbers.

use super::path::Path;
use crate::control::{Monitor, Par, Progress, Stop, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, Kernel, KernelRows, Precision, diagonal};
use crate::linalg::greedy::{Candidates, Criterion};
use crate::simd::blas::dot;
use std::ops::ControlFlow;

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
    let correlations = if candidates.is_some() { evaluator.evaluate_double(pool, par)? } else { of_vectors };

    let all: Vec<usize> = (0..count).collect();
    let source = KernelRows::new(kernel, pool, &all, Precision::Double, par);
    let criterion = match params.selection {
        Selection::PreFitting => Criterion::Gain,
        _ => Criterion::Angle,
    };
    let own = diagonal(&kernel, pool);
    let mut rivals = Candidates::new(&source, criterion, own, correlations, q, most);

    let mut given = match &params.selection {
        Selection::Given(order) => Some(order.iter().copied()),
        _ => None,
    };
    let (mut order, mut lines, mut projections) = (Vec::new(), Vec::<Vec<f64>>::new(), Vec::new());
    let mut residual = norm;
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
            Some(given) => match given.find(|&p| rivals.score(p) >= 0.0) {
                Some(p) => p,
                None => break StopReason::Converged,
            },
            None => match rivals.best() {
                Some((p, score)) if score > 0.0 => p,
                _ => break StopReason::Converged,
            },
        };
        let column = rivals.column(best, par);
        let pivot = rivals.distance(best).sqrt();
        let mut line = rivals.line(best).to_vec();
        let projection: Vec<f64> = rivals.correlations(best).iter().map(|c| c / pivot).collect();
        rivals.advance(&column, &line, pivot, &projection, par);
        rivals.leave_out(best);
        line.push(pivot);
        lines.push(line);
        order.push(best);
        residual = (residual - dot(&projection, &projection)).max(0.0);
        residual_norms.push(residual.sqrt());
        projections.extend(projection);
    };

    let m = order.len();
    let mut kept = vec![0.0; m * m];
    for (kept, line) in kept.chunks_exact_mut(m.max(1)).zip(&lines) {
        kept[..line.len()].copy_from_slice(line);
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
