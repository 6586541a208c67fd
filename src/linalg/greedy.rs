//! The candidates of a greedy pursuit: which phi_p explains most of what is missing of q targets w_j, in any space whose
//! inner products <phi_k, phi_p> can be had column by column.
//!
//! With r_j what is missing of target j, orthogonal to the span of everything chosen,
//!
//! ```text
//! angle   p = argmax sum_j <r_j, phi_p>^2 / <phi_p, phi_p>
//! gain    p = argmax sum_j <r_j, phi_p>^2 / ||phi_p outside the span||^2
//! ```
//!
//! The second is what the residual really loses by the step. Both need only, for every candidate, its correlations C_p
//! (q,) with the residual, its squared distance d_p from the span, and its row F_p of products with an orthonormal basis
//! of the span. A new direction phi = (v - sum_j line_j phi_j) / pivot with v's column g_k = <phi_k, v> gives
//!
//! ```text
//! l_k = (g_k - F_k . line) / pivot,   d_k -= l_k^2,   C_k -= l_k projection
//! ```
//!
//! Invariant: C_p = <r, phi_p> for the *best* coefficients on what is chosen, so no system is ever solved. If v is itself
//! the candidate s, then line = F_s, pivot = sqrt(d_s) and projection = C_s / pivot: a pivoted Cholesky factor grows.
//! Columns are computed for the few best candidates at once, since they are chosen soon.
//!
//! Cost: candidates x steps^2 / 2 multiply-adds beside the columns; memory candidates x steps numbers.

use crate::control::Par;
use crate::kernels::KernelRows;
use crate::simd::blas::{axpy, dot};
use std::collections::HashMap;

/// Columns computed together.
const AHEAD: usize = 24;
/// Candidates a task updates.
const CHUNK: usize = 64;
/// A candidate whose squared distance from the span is below this share of its squared norm counts as inside it.
pub(crate) const INSIDE: f64 = 1e-10;

/// Inner products among candidates.
pub(crate) trait GramColumns: Sync {
    /// Writes <phi_k, phi_p> for all k to `out[i]`, p = `list[i]`.
    fn fill(&self, list: &[usize], out: &mut [&mut [f64]], par: Par);
}

impl GramColumns for KernelRows<'_> {
    fn fill(&self, list: &[usize], out: &mut [&mut [f64]], par: Par) {
        self.compute(list, out, par);
    }
}

/// How candidates are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Criterion {
    /// The angle between the residual and the candidate: back-fitting.
    Angle,
    /// What the residual loses: pre-fitting, orthogonal least squares.
    Gain,
}

/// All candidates and what is known of them.
pub(crate) struct Candidates<'a> {
    source: &'a dyn GramColumns,
    criterion: Criterion,
    outputs: usize,
    most: usize,
    steps: usize,
    own: Vec<f64>,
    distance: Vec<f64>,
    correlations: Vec<f64>,
    factor: Vec<f64>,
    scores: Vec<f64>,
    columns: HashMap<usize, Vec<f64>>,
}

struct Candidate<'a> {
    factor: &'a mut [f64],
    correlations: &'a mut [f64],
    distance: &'a mut f64,
    score: &'a mut f64,
}

fn score(criterion: Criterion, own: f64, distance: f64, correlations: &[f64]) -> f64 {
    if !(distance > INSIDE * own) {
        return f64::NEG_INFINITY;
    }
    let aligned: f64 = correlations.iter().map(|c| c * c).sum();
    aligned / if criterion == Criterion::Gain { distance } else { own }
}

impl<'a> Candidates<'a> {
    /// Nothing chosen yet: `own` holds <phi_p, phi_p>, `correlations` (candidates, q) <w_j, phi_p>; at most `most`
    /// directions will come.
    pub(crate) fn new(
        source: &'a dyn GramColumns,
        criterion: Criterion,
        own: Vec<f64>,
        correlations: Vec<f64>,
        outputs: usize,
        most: usize,
    ) -> Self {
        let scores = own
            .iter()
            .zip(correlations.chunks_exact(outputs))
            .map(|(&own, c)| score(criterion, own, own, c))
            .collect();
        Self {
            source,
            criterion,
            outputs,
            most,
            steps: 0,
            distance: own.clone(),
            factor: vec![0.0; own.len() * most],
            own,
            correlations,
            scores,
            columns: HashMap::new(),
        }
    }

    /// The candidate with the largest score, and that score; the first of equals.
    pub(crate) fn best(&self) -> Option<(usize, f64)> {
        let scores = &self.scores;
        let best = (0..scores.len()).reduce(|best, p| if scores[p] > scores[best] { p } else { best })?;
        Some((best, scores[best]))
    }

    /// A candidate's score, minus infinity where it is inside the span.
    pub(crate) fn score(&self, p: usize) -> f64 {
        self.scores[p]
    }

    /// F_p: its products with the basis so far.
    pub(crate) fn line(&self, p: usize) -> &[f64] {
        &self.factor[p * self.most..p * self.most + self.steps]
    }

    /// C_p: its products with the residuals.
    pub(crate) fn correlations(&self, p: usize) -> &[f64] {
        &self.correlations[p * self.outputs..(p + 1) * self.outputs]
    }

    /// Its squared distance from the span.
    pub(crate) fn distance(&self, p: usize) -> f64 {
        self.distance[p]
    }

    /// Leaves a candidate out from now on.
    pub(crate) fn leave_out(&mut self, p: usize) {
        self.distance[p] = 0.0;
        self.scores[p] = f64::NEG_INFINITY;
    }

    /// <phi_k, phi_p> for all k, computed together with those of the next best where it is not at hand.
    pub(crate) fn column(&mut self, p: usize, par: Par) -> Vec<f64> {
        if !self.columns.contains_key(&p) {
            self.fetch(p, par);
        }
        self.columns.remove(&p).unwrap_or_default()
    }

    /// Takes the basis direction (v - sum_j line_j phi_j) / pivot, `column` = <phi_k, v>, whose products with the
    /// residuals are `projection`.
    pub(crate) fn advance(&mut self, column: &[f64], line: &[f64], pivot: f64, projection: &[f64], par: Par) {
        let (step, criterion, own) = (self.steps, self.criterion, &self.own);
        let mut parts: Vec<Candidate<'_>> = self
            .factor
            .chunks_exact_mut(self.most)
            .zip(self.correlations.chunks_exact_mut(self.outputs))
            .zip(&mut self.distance)
            .zip(&mut self.scores)
            .map(|(((factor, correlations), distance), score)| Candidate {
                factor,
                correlations,
                distance,
                score,
            })
            .collect();
        par.for_each_chunk(&mut parts, CHUNK, |chunk, parts| {
            for (offset, candidate) in parts.iter_mut().enumerate() {
                let p = chunk * CHUNK + offset;
                let l = (column[p] - dot(&candidate.factor[..step], line)) / pivot;
                candidate.factor[step] = l;
                *candidate.distance -= l * l;
                axpy(-l, projection, candidate.correlations);
                *candidate.score = score(criterion, own[p], *candidate.distance, candidate.correlations);
            }
        });
        self.steps += 1;
    }

    /// Computes the columns of the best candidates that have none, `best` among them.
    fn fetch(&mut self, best: usize, par: Par) {
        // Columns that were computed ahead and not chosen for long would pile up.
        if self.columns.len() > 8 * AHEAD {
            self.columns.clear();
        }
        let (scores, columns) = (&self.scores, &self.columns);
        let mut list: Vec<usize> = (0..scores.len())
            .filter(|p| scores[*p] > 0.0 && *p != best && !columns.contains_key(p))
            .collect();
        let by_score = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
        if list.len() >= AHEAD {
            list.select_nth_unstable_by(AHEAD - 1, by_score);
            list.truncate(AHEAD - 1);
        }
        list.push(best);
        let mut fresh: Vec<Vec<f64>> = list.iter().map(|_| vec![0.0; scores.len()]).collect();
        let mut slices: Vec<&mut [f64]> = fresh.iter_mut().map(Vec::as_mut_slice).collect();
        self.source.fill(&list, &mut slices, par);
        self.columns.extend(list.into_iter().zip(fresh));
    }
}
