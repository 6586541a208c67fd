//! The steps of a pursuit: which candidate is next, and what becomes of the residual.
//!
//! | stepper | knows | a step costs |
//! |---|---|---|
//! | [`Complete`] | correlation and distance of every candidate at every step | candidates x steps |
//! | [`Sampled`](super::sampled::Sampled) | the vectors taken; looks at a few random candidates (the 59-trick of Smola and Schoelkopf, 2000) | sample x steps kernel values |
//!
//! Sixty candidates drawn at random contain, with probability .95, one of the best 5 %: 1 - .95^59 = .95.
//!
//! Orthogonal steps (see `pursuit`) grow the Cholesky factor L of the Gram matrix of what is taken by the row l,
//! l_p = L^-1 <phi(S), phi(p)>, pivot^2 = ||phi(p)||^2 - l_p . l_p. Basic steps (Alg. 3.2 alone) subtract the part of
//! the residual along phi(p) and may come back to a vector.

use super::space::Space;
use crate::context::Context;
use crate::error::Result;
use crate::memory::{TryCollect, TryToVec, try_vec, try_with_capacity, try_zeros};
use crate::simd::blas::{axpy, dot};
use std::collections::HashMap;
use std::ops::Range;

/// Columns computed together.
const AHEAD: usize = 24;
/// Candidates a task updates.
const CHUNK: usize = 64;
/// Entries of a candidate's row of L that lie together.
const WIDTH: usize = 128;
/// A candidate whose squared distance from the span is below this share of ||phi(p)||^2 counts as inside it.
const INSIDE: f64 = 1e-10;
/// The same in an order that others have made: a pursuit takes far candidates first, but a row of near ones, each divided
/// by its small distance, would multiply what rounding has left in those before.
const NEAR: f64 = 1e-7;
/// A squared distance below minus this share of the largest ||phi(p)||^2 is no rounding: the kernel is indefinite.
pub(super) const NEGATIVE: f64 = 1e-6;

/// By what a candidate is judged, and whether the taken ones are solved for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Basic,
    BackFitting,
    PreFitting,
}

/// A candidate and what the squared residual would lose by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proposal {
    pub(super) candidate: usize,
    pub(super) gain: f64,
}

/// A step taken.
pub(super) struct Step {
    /// The row of L with its pivot; empty for basic steps.
    pub(super) line: Vec<f64>,
    /// The projections on the new direction, or the coefficients of a basic step, (outputs,).
    pub(super) change: Vec<f64>,
}

impl Step {
    /// What the step takes from the squared residual, from the numbers that are kept of it.
    pub(super) fn gain(&self, proposal: Proposal) -> f64 {
        if self.line.is_empty() { proposal.gain } else { dot(&self.change, &self.change) }
    }
}

/// A column of the space's matrix from which the directions before `from` have been taken away.
struct Column {
    from: usize,
    values: Vec<f64>,
}

/// A stepper that keeps the state of every candidate.
pub(super) struct Complete<'s, 'a> {
    space: &'s Space<'a>,
    rule: Rule,
    outputs: usize,
    /// Rows of L, WIDTH columns at a time, (candidates, WIDTH) each.
    factor: Vec<Vec<f64>>,
    /// Columns that are wanted soon, or of basic steps, again.
    ready: HashMap<usize, Column>,
    correlations: Vec<f64>,
    distance: Vec<f64>,
    scores: Vec<f64>,
    largest: f64,
    steps: usize,
}

/// A task's share of the candidates.
struct Share<'a> {
    first: usize,
    latest: &'a mut [f64],
    correlations: &'a mut [f64],
    distance: &'a mut [f64],
    scores: &'a mut [f64],
}

impl<'s, 'a> Complete<'s, 'a> {
    /// For some of the space's outputs.
    pub(super) fn new(space: &'s Space<'a>, outputs: Range<usize>, rule: Rule) -> Result<Self> {
        let q = space.outputs();
        let correlations: Vec<f64> = space
            .targets
            .chunks_exact(q)
            .flat_map(|line| line[outputs.clone()].iter().copied())
            .try_collect_vec()?;
        let mut stepper = Self {
            space,
            rule,
            outputs: outputs.len(),
            factor: Vec::new(),
            ready: HashMap::new(),
            correlations,
            distance: space.own.try_to_vec()?,
            scores: try_vec![0.0; space.len()]?,
            largest: space.own.iter().copied().fold(0.0, f64::max),
            steps: 0,
        };
        let q = stepper.outputs;
        for p in 0..space.len() {
            stepper.scores[p] =
                score(rule, space.own[p], &stepper.correlations[p * q..(p + 1) * q], space.own[p]);
        }
        Ok(stepper)
    }

    /// The best candidate, if any has a part in what is missing.
    pub(super) fn propose(&self) -> Option<Proposal> {
        let best = (0..self.scores.len())
            .max_by(|&a, &b| self.scores[a].total_cmp(&self.scores[b]).then(b.cmp(&a)))?;
        (self.scores[best] > 0.0).then(|| Proposal { candidate: best, gain: self.gain(best) })
    }

    /// Whether a candidate of an order that is not of its own making is outside the span of those taken.
    pub(super) fn is_outside(&self, candidate: usize) -> bool {
        self.scores[candidate] >= 0.0 && self.distance[candidate] > NEAR * self.space.own[candidate]
    }

    fn gain(&self, p: usize) -> f64 {
        let q = self.outputs;
        let correlations = &self.correlations[p * q..(p + 1) * q];
        let length = if self.rule == Rule::Basic { self.space.own[p] } else { self.distance[p] };
        dot(correlations, correlations) / length
    }

    /// The column of `best`; with it those of the candidates most likely to follow are computed, and the directions so
    /// far are taken from all of them in one pass over L.
    fn column(&mut self, best: usize, ctx: Context<'_>) -> Result<Column> {
        let basic = self.rule == Rule::Basic;
        if !self.ready.contains_key(&best) {
            // Columns that were computed ahead and not chosen for long would pile up.
            if !basic && self.ready.len() > 8 * AHEAD {
                self.ready.clear();
            }
            let scores = &self.scores;
            let mut list: Vec<usize> = (0..scores.len())
                .filter(|p| scores[*p] > 0.0 && *p != best && !self.ready.contains_key(p))
                .try_collect_vec()?;
            let by_score = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
            if list.len() >= AHEAD {
                list.select_nth_unstable_by(AHEAD - 1, by_score);
                list.truncate(AHEAD - 1);
            }
            list.push(best);
            let mut columns = self.space.columns(&list, ctx)?;
            if !basic {
                self.take_away(&list, &mut columns, ctx)?;
            }
            let from = self.steps;
            let columns = columns.into_iter().map(|values| Column { from, values });
            self.ready.extend(list.into_iter().zip(columns));
        }
        let column = match self.ready.get(&best) {
            Some(column) if basic => Some(Column { from: 0, values: column.values.try_to_vec()? }),
            _ => self.ready.remove(&best),
        };
        Ok(column.unwrap_or(Column { from: 0, values: Vec::new() }))
    }

    /// Columns minus L times the rows of L of their candidates.
    fn take_away(&self, list: &[usize], columns: &mut [Vec<f64>], ctx: Context<'_>) -> Result<()> {
        let mut parts: Vec<Vec<&mut [f64]>> = Vec::new();
        for column in columns.iter_mut() {
            for (i, part) in column.chunks_mut(CHUNK).enumerate() {
                if parts.len() == i {
                    parts.push(Vec::new());
                }
                parts[i].push(part);
            }
        }
        for (b, block) in self.factor.iter().enumerate() {
            ctx.check("directions", b * WIDTH, self.steps)?;
            let filled = (self.steps - b * WIDTH).min(WIDTH);
            ctx.for_each_chunk(&mut parts, 1, |i, parts| {
                for (&c, part) in list.iter().zip(parts[0].iter_mut()) {
                    let line = &block[c * WIDTH..c * WIDTH + filled];
                    for (k, value) in part.iter_mut().enumerate() {
                        let p = i * CHUNK + k;
                        *value -= dot(&block[p * WIDTH..p * WIDTH + filled], line);
                    }
                }
            });
        }
        Ok(())
    }

    /// Takes a candidate.
    pub(super) fn take(&mut self, best: usize, ctx: Context<'_>) -> Result<Step> {
        let Column { from, values: column } = self.column(best, ctx)?;
        let (rule, q, steps, own) = (self.rule, self.outputs, self.steps, &self.space.own);
        let basic = rule == Rule::Basic;
        let pivot = if basic { own[best] } else { self.distance[best].sqrt() };
        let mut line = try_with_capacity("a row of the pursuit's factor", steps + 1)?;
        if !basic {
            for (b, block) in self.factor.iter().enumerate() {
                let filled = (steps - b * WIDTH).min(WIDTH);
                line.extend_from_slice(&block[best * WIDTH..best * WIDTH + filled]);
            }
            if steps == self.factor.len() * WIDTH {
                self.factor.push(try_zeros("the factor of a pursuit", self.space.len() * WIDTH)?);
            }
        }
        let change: Vec<f64> =
            self.correlations[best * q..(best + 1) * q].iter().map(|c| c / pivot).try_collect_vec()?;
        let at = steps % WIDTH;
        let (mut latest, earlier): (&mut [f64], &[Vec<f64>]) = match self.factor.split_last_mut() {
            Some((latest, earlier)) => (latest, earlier),
            None => (&mut [], &[]),
        };
        let mut shares = Vec::new();
        let state = self.correlations.chunks_mut(CHUNK * q).zip(self.distance.chunks_mut(CHUNK));
        for (i, ((correlations, distance), scores)) in state.zip(self.scores.chunks_mut(CHUNK)).enumerate() {
            let (mine, rest) = latest.split_at_mut(if basic { 0 } else { distance.len() * WIDTH });
            latest = rest;
            shares.push(Share { first: i * CHUNK, latest: mine, correlations, distance, scores });
        }
        ctx.for_each_chunk(&mut shares, 1, |_, shares| {
            for share in shares {
                for (i, distance) in share.distance.iter_mut().enumerate() {
                    let p = share.first + i;
                    let correlations = &mut share.correlations[i * q..(i + 1) * q];
                    if basic {
                        axpy(-column[p], &change, correlations);
                    } else {
                        // The directions since the column was computed.
                        let first = from.saturating_sub(steps - at);
                        let mut inner = dot(
                            &share.latest[i * WIDTH + first..i * WIDTH + at],
                            &line[steps - at + first..],
                        );
                        for (b, block) in earlier.iter().enumerate().skip(from / WIDTH) {
                            let first = from.saturating_sub(b * WIDTH);
                            let of_line = &line[b * WIDTH + first..(b + 1) * WIDTH];
                            inner += dot(&block[p * WIDTH + first..(p + 1) * WIDTH], of_line);
                        }
                        let l = (column[p] - inner) / pivot;
                        share.latest[i * WIDTH + at] = l;
                        *distance -= l * l;
                        axpy(-l, &change, correlations);
                    }
                    share.scores[i] = score(rule, own[p], correlations, *distance);
                }
            }
        });
        drop(shares);
        if !basic {
            let lowest = self.distance.iter().copied().fold(0.0, f64::min);
            if lowest < -NEGATIVE * self.largest {
                return Err(self.space.indefinite(lowest));
            }
            if let Some(latest) = self.factor.last_mut() {
                latest[best * WIDTH + at] = pivot;
            }
            line.push(pivot);
            self.distance[best] = 0.0;
            self.scores[best] = f64::NEG_INFINITY;
        }
        self.steps += 1;
        Ok(Step { line, change })
    }
}

/// What makes a candidate the next one; minus infinity inside the span.
pub(super) fn score(rule: Rule, own: f64, correlations: &[f64], distance: f64) -> f64 {
    let inside = if rule == Rule::Basic { !(own > 0.0) } else { !(distance > INSIDE * own) };
    if inside {
        return f64::NEG_INFINITY;
    }
    let aligned: f64 = correlations.iter().map(|c| c * c).sum();
    aligned / if rule == Rule::PreFitting { distance } else { own }
}
