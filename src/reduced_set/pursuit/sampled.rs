//! Steps that look at a few random candidates and keep nothing of the others (the 59-trick of Smola and Schoelkopf, 2000).

use super::space::Space;
use super::stepper::{NEGATIVE, Proposal, Rule, Step, score};
use crate::context::Context;
use crate::error::Result;
use crate::memory::{TryCollect, TryGrow, TryToVec, try_reserve, try_vec};
use crate::random::Random;
use crate::simd::blas::{axpy, dot, row_times};
use std::ops::Range;

/// A stepper that looks at a few random candidates a step and keeps nothing of the others.
///
/// A candidate's correlation is T_p - sum_s k(p, s) B_s with the coefficients B of now, or its image times what is
/// missing on the rows; its row of L is solved for only if it is the best (with pre-fitting, for all of them).
pub(super) struct Sampled<'s, 'a> {
    space: &'s Space<'a>,
    rule: Rule,
    outputs: Range<usize>,
    size: usize,
    random: Random,
    /// Candidates that may still be of use, in no order.
    left: Vec<usize>,
    taken: Vec<usize>,
    lines: Vec<Vec<f64>>,
    /// B, (taken, outputs).
    coefficients: Vec<f64>,
    /// (n, outputs), and the images of the vectors taken, (taken, n): on predictions only.
    missing: Vec<f64>,
    images: Vec<f64>,
    look: Option<Look>,
}

/// What was seen of the last candidate proposed.
struct Look {
    line: Vec<f64>,
    correlations: Vec<f64>,
    pivot: f64,
    image: Vec<f64>,
}

/// A candidate of the sample.
struct Seen {
    at: usize,
    score: f64,
    own: f64,
    distance: f64,
    correlations: Vec<f64>,
    /// <phi(p), phi(s)> with those taken, or its row of L; empty until needed.
    line: Vec<f64>,
}

impl<'s, 'a> Sampled<'s, 'a> {
    /// For some of the space's outputs, `size` candidates a step.
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
            left: (0..space.len()).try_collect_vec()?,
            taken: Vec::new(),
            lines: Vec::new(),
            coefficients: Vec::new(),
            missing: space.missing(outputs.clone())?,
            images: Vec::new(),
            look: None,
            outputs,
        })
    }

    /// The best of a random few. Where none of them is outside the span others are drawn, until none is left.
    pub(super) fn propose(&mut self, ctx: Context<'_>) -> Result<Option<Proposal>> {
        let basic = self.rule == Rule::Basic;
        let mut tried = 0;
        while tried < self.left.len() {
            let count = self.size.min(self.left.len() - tried);
            for i in tried..tried + count {
                let other = i + self.random.below((self.left.len() - i) as u64) as usize;
                self.left.swap(i, other);
            }
            let list = self.left[tried..tried + count].try_to_vec()?;
            let images = self.space.images(&list, ctx)?;
            let mut seen = self.see(&list, &images, ctx)?;
            seen.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.at.cmp(&b.at)));
            let mut inside = Vec::new();
            let mut best = None;
            for mut one in seen {
                if !basic && self.rule != Rule::PreFitting && one.score > f64::NEG_INFINITY {
                    self.solve(&mut one, &images)?;
                    one.score = score(self.rule, one.own, &one.correlations, one.distance);
                }
                if one.score == f64::NEG_INFINITY {
                    inside.push(list[one.at]);
                } else if one.score > 0.0 {
                    best = Some(one);
                    break;
                }
            }
            if !inside.is_empty() {
                // What is inside the span stays inside.
                self.left.retain(|p| !inside.contains(p));
            }
            if let Some(one) = best {
                let length = if basic { one.own } else { one.distance };
                let gain = dot(&one.correlations, &one.correlations) / length;
                let n = images.len() / list.len();
                self.look = Some(Look {
                    pivot: if basic { length } else { length.sqrt() },
                    line: one.line,
                    correlations: one.correlations,
                    image: images[one.at * n..(one.at + 1) * n].try_to_vec()?,
                });
                return Ok(Some(Proposal { candidate: list[one.at], gain }));
            }
            tried += count - inside.len();
        }
        Ok(None)
    }

    /// Correlations and scores of a sample.
    fn see(&self, list: &[usize], images: &[f64], ctx: Context<'_>) -> Result<Vec<Seen>> {
        let (t, q, all) = (self.taken.len(), self.outputs.len(), self.space.outputs());
        let on_rows = !images.is_empty();
        let kernel =
            if on_rows || t == 0 { Vec::new() } else { self.space.kernel(list, &self.taken, ctx)? };
        let n = images.len() / list.len();
        ctx.try_map(list.len(), |at| {
            let p = list[at];
            let (own, correlations, line) = if on_rows {
                let image = &images[at * n..(at + 1) * n];
                (dot(image, image), row_times(image, &self.missing, q), Vec::new())
            } else {
                let line = kernel[at * t..(at + 1) * t].try_to_vec()?;
                let mut correlations =
                    self.space.targets[p * all..(p + 1) * all][self.outputs.clone()].try_to_vec()?;
                for (c, part) in correlations.iter_mut().zip(row_times(&line, &self.coefficients, q)) {
                    *c -= part;
                }
                (self.space.own[p], correlations, line)
            };
            let mut one = Seen { at, score: 0.0, own, distance: own, correlations, line };
            if self.rule == Rule::PreFitting {
                self.solve(&mut one, images)?;
            }
            one.score = score(self.rule, own, &one.correlations, one.distance);
            Ok(one)
        })
    }

    /// The row of L of a candidate, and its distance from the span.
    fn solve(&self, one: &mut Seen, images: &[f64]) -> Result<()> {
        let t = self.taken.len();
        if !self.missing.is_empty() {
            let n = self.missing.len() / self.outputs.len();
            let image = &images[one.at * n..(one.at + 1) * n];
            one.line = self.images.chunks_exact(n).map(|taken| dot(taken, image)).try_collect_vec()?;
        }
        for k in 0..t {
            let l = (one.line[k] - dot(&one.line[..k], &self.lines[k][..k])) / self.lines[k][k];
            one.line[k] = l;
            one.distance -= l * l;
        }
        if one.distance < -NEGATIVE * one.own {
            return Err(self.space.indefinite(one.distance));
        }
        Ok(())
    }

    /// Takes the candidate that was proposed last.
    pub(super) fn take(&mut self, proposal: Proposal) -> Result<Option<Step>> {
        let Some(look) = self.look.take() else { return Ok(None) };
        let Look { mut line, correlations, pivot, image } = look;
        let (q, n) = (self.outputs.len(), image.len());
        let change: Vec<f64> = correlations.iter().map(|c| c / pivot).try_collect_vec()?;
        if self.rule == Rule::Basic {
            line.clear();
            for (missing, v) in self.missing.chunks_exact_mut(q).zip(&image) {
                axpy(-v, &change, missing);
            }
            if let Some(at) = self.taken.iter().position(|&p| p == proposal.candidate) {
                axpy(1.0, &change, &mut self.coefficients[at * q..(at + 1) * q]);
            } else {
                self.taken.try_push(proposal.candidate)?;
                self.coefficients.try_extend(change.iter().copied())?;
            }
            return Ok(Some(Step { line, change }));
        }
        line.push(pivot);
        self.lines.push(line.try_to_vec()?);
        self.left.retain(|&p| p != proposal.candidate);
        self.taken.try_push(proposal.candidate)?;
        try_reserve("predictions of the vectors chosen", &mut self.images, image.len())?;
        self.images.try_extend(image.iter().copied())?;
        // The new direction in terms of the vectors taken: L' delta = e.
        let t = self.taken.len();
        let mut delta = try_vec![0.0; t]?;
        delta[t - 1] = 1.0;
        for k in (0..t).rev() {
            delta[k] /= self.lines[k][k];
            let (before, rest) = delta.split_at_mut(k);
            axpy(-rest[0], &self.lines[k][..k], before);
        }
        self.coefficients.try_resize(t * q, 0.0)?;
        for (&d, coefficients) in delta.iter().zip(self.coefficients.chunks_exact_mut(q)) {
            axpy(d, &change, coefficients);
        }
        if n > 0 {
            let mut direction = try_vec![0.0; n]?;
            for (&d, image) in delta.iter().zip(self.images.chunks_exact(n)) {
                axpy(d, image, &mut direction);
            }
            for (&v, missing) in direction.iter().zip(self.missing.chunks_exact_mut(q)) {
                axpy(-v, &change, missing);
            }
        }
        Ok(Some(Step { line, change }))
    }
}
