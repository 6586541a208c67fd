//! Steps that consider a few random candidates and store nothing about the others (the 59-trick of Smola and Schoelkopf,
//! 2000).
//!
//! Invariant: the residual and the factor are those of the vectors taken, as in `stepper`.
//! Cost of a step: sample x steps kernel values.

use super::space::Space;
use super::stepper::{INDEFINITE_TOLERANCE, Proposal, Rule, Step, score};
use crate::context::Context;
use crate::error::Result;
use crate::memory::{TryGrow, TryToVec, try_reserve};
use crate::random::Random;
use crate::simd::blas::{axpy, dot, row_times};
use std::ops::Range;

/// A stepper that considers a few random candidates in each step.
///
/// The correlation of a candidate is T_p - sum_s k(p, s) B_s with the current coefficients B, or its image times the
/// residual on the rows. Its row of L is computed only if it is the best; with pre-fitting, for all candidates.
pub(super) struct Sampled<'s, 'a> {
    space: &'s Space<'a>,
    rule: Rule,
    outputs: Range<usize>,
    size: usize,
    random: Random,
    /// Candidates outside the span, in no order.
    remaining: Vec<usize>,
    taken: Vec<usize>,
    lines: Vec<Vec<f64>>,
    /// B, (taken, outputs).
    coefficients: Vec<f64>,
    /// Residual on the rows, (n, outputs), if predictions are compared.
    residual: Vec<f64>,
    /// Images of the vectors taken, (taken, n), if predictions are compared.
    images: Vec<f64>,
    proposed: Option<ProposedCandidate>,
}

/// The last proposed candidate.
struct ProposedCandidate {
    line: Vec<f64>,
    correlations: Vec<f64>,
    pivot: f64,
    image: Vec<f64>,
}

/// A candidate of the sample.
struct Candidate {
    at: usize,
    score: f64,
    squared_norm: f64,
    distance: f64,
    correlations: Vec<f64>,
    /// Inner products <phi(p), phi(s)> with the vectors taken, then the row of L; empty until needed.
    line: Vec<f64>,
}

impl<'s, 'a> Sampled<'s, 'a> {
    /// Returns a stepper for some outputs of the space with `size` candidates for each step.
    pub(super) fn new(
        space: &'s Space<'a>,
        outputs: Range<usize>,
        rule: Rule,
        size: usize,
        random: Random,
    ) -> Result<Self> {
        Ok(Self {
            space,
            rule,
            size,
            random,
            remaining: (0..space.len()).collect(),
            taken: Vec::new(),
            lines: Vec::new(),
            coefficients: Vec::new(),
            residual: space.residual(outputs.clone())?,
            images: Vec::new(),
            proposed: None,
            outputs,
        })
    }

    /// Returns the best of a few random candidates. If all are inside the span others are drawn, until none remain.
    pub(super) fn propose(&mut self, ctx: Context<'_>) -> Result<Option<Proposal>> {
        let basic = self.rule == Rule::Basic;
        let mut tried = 0;
        while tried < self.remaining.len() {
            let count = self.size.min(self.remaining.len() - tried);
            for i in tried..tried + count {
                let other = i + self.random.below((self.remaining.len() - i) as u64) as usize;
                self.remaining.swap(i, other);
            }
            let list = self.remaining[tried..tried + count].to_vec();
            let images = self.space.images(&list, ctx)?;
            let mut candidates = self.evaluate(&list, &images, ctx)?;
            candidates.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.at.cmp(&b.at)));
            let mut inside = Vec::new();
            let mut best = None;
            for mut candidate in candidates {
                if !basic && self.rule != Rule::PreFitting && candidate.score > f64::NEG_INFINITY {
                    self.solve(&mut candidate, &images)?;
                    candidate.score =
                        score(self.rule, candidate.squared_norm, &candidate.correlations, candidate.distance);
                }
                if candidate.score == f64::NEG_INFINITY {
                    inside.push(list[candidate.at]);
                } else if candidate.score > 0.0 {
                    best = Some(candidate);
                    break;
                }
            }
            if !inside.is_empty() {
                // A candidate inside the span stays inside.
                self.remaining.retain(|p| !inside.contains(p));
            }
            if let Some(candidate) = best {
                let length = if basic { candidate.squared_norm } else { candidate.distance };
                let gain = dot(&candidate.correlations, &candidate.correlations) / length;
                let n = images.len() / list.len();
                self.proposed = Some(ProposedCandidate {
                    pivot: if basic { length } else { length.sqrt() },
                    line: candidate.line,
                    correlations: candidate.correlations,
                    image: images[candidate.at * n..(candidate.at + 1) * n].to_vec(),
                });
                return Ok(Some(Proposal { candidate: list[candidate.at], gain }));
            }
            tried += count - inside.len();
        }
        Ok(None)
    }

    /// Computes the correlations and scores of a sample.
    fn evaluate(&self, list: &[usize], images: &[f64], ctx: Context<'_>) -> Result<Vec<Candidate>> {
        let (t, q, all) = (self.taken.len(), self.outputs.len(), self.space.outputs());
        let on_rows = !images.is_empty();
        let kernel =
            if on_rows || t == 0 { Vec::new() } else { self.space.kernel(list, &self.taken, ctx)? };
        let n = images.len() / list.len();
        ctx.try_map(list.len(), |at| {
            let p = list[at];
            let (squared_norm, correlations, line) = if on_rows {
                let image = &images[at * n..(at + 1) * n];
                (dot(image, image), row_times(image, &self.residual, q), Vec::new())
            } else {
                let line = kernel[at * t..(at + 1) * t].to_vec();
                let mut correlations =
                    self.space.targets[p * all..(p + 1) * all][self.outputs.clone()].to_vec();
                for (c, part) in correlations.iter_mut().zip(row_times(&line, &self.coefficients, q)) {
                    *c -= part;
                }
                (self.space.squared_norms[p], correlations, line)
            };
            let mut candidate =
                Candidate { at, score: 0.0, squared_norm, distance: squared_norm, correlations, line };
            if self.rule == Rule::PreFitting {
                self.solve(&mut candidate, images)?;
            }
            candidate.score = score(self.rule, squared_norm, &candidate.correlations, candidate.distance);
            Ok(candidate)
        })
    }

    /// Computes the row of L of a candidate, and its distance from the span.
    fn solve(&self, candidate: &mut Candidate, images: &[f64]) -> Result<()> {
        let t = self.taken.len();
        if !self.residual.is_empty() {
            let n = self.residual.len() / self.outputs.len();
            let image = &images[candidate.at * n..(candidate.at + 1) * n];
            candidate.line = self.images.chunks_exact(n).map(|taken| dot(taken, image)).collect();
        }
        for k in 0..t {
            let l = (candidate.line[k] - dot(&candidate.line[..k], &self.lines[k][..k])) / self.lines[k][k];
            candidate.line[k] = l;
            candidate.distance -= l * l;
        }
        if candidate.distance < -INDEFINITE_TOLERANCE * candidate.squared_norm {
            return Err(self.space.indefinite(candidate.distance));
        }
        Ok(())
    }

    /// Takes the last proposed candidate.
    pub(super) fn take(&mut self, proposal: Proposal) -> Result<Option<Step>> {
        let Some(proposed) = self.proposed.take() else { return Ok(None) };
        let ProposedCandidate { mut line, correlations, pivot, image } = proposed;
        let (q, n) = (self.outputs.len(), image.len());
        let change: Vec<f64> = correlations.iter().map(|c| c / pivot).collect();
        if self.rule == Rule::Basic {
            line.clear();
            for (residual, v) in self.residual.chunks_exact_mut(q).zip(&image) {
                axpy(-v, &change, residual);
            }
            if let Some(at) = self.taken.iter().position(|&p| p == proposal.candidate) {
                axpy(1.0, &change, &mut self.coefficients[at * q..(at + 1) * q]);
            } else {
                self.taken.push(proposal.candidate);
                self.coefficients.try_extend(change.iter().copied())?;
            }
            return Ok(Some(Step { line, change }));
        }
        line.push(pivot);
        self.lines.push(line.try_to_vec()?);
        self.remaining.retain(|&p| p != proposal.candidate);
        self.taken.push(proposal.candidate);
        try_reserve("predictions of the vectors chosen", &mut self.images, image.len())?;
        self.images.extend(image.iter().copied());
        // The new direction in terms of the vectors taken: L' delta = e.
        let t = self.taken.len();
        let mut delta = vec![0.0; t];
        delta[t - 1] = 1.0;
        for k in (0..t).rev() {
            delta[k] /= self.lines[k][k];
            let (before, tail) = delta.split_at_mut(k);
            axpy(-tail[0], &self.lines[k][..k], before);
        }
        self.coefficients.try_resize(t * q, 0.0)?;
        for (&d, coefficients) in delta.iter().zip(self.coefficients.chunks_exact_mut(q)) {
            axpy(d, &change, coefficients);
        }
        if n > 0 {
            let mut direction = vec![0.0; n];
            for (&d, image) in delta.iter().zip(self.images.chunks_exact(n)) {
                axpy(d, image, &mut direction);
            }
            for (&v, residual) in direction.iter().zip(self.residual.chunks_exact_mut(q)) {
                axpy(-v, &change, residual);
            }
        }
        Ok(Some(Step { line, change }))
    }
}
