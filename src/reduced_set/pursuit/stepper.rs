//! The steps of a pursuit: the choice of the next candidate and the update of the residual.
//!
//! | stepper | state | cost of a step |
//! |---|---|---|
//! | [`Complete`] | correlation and distance of every candidate at every step | candidates x steps |
//! | [`Sampled`](super::sampled::Sampled) | the vectors taken; considers a few random candidates (the 59-trick of Smola and Schoelkopf, 2000) | sample x steps kernel values |
//!
//! Sixty candidates drawn at random contain, with probability .95, one of the best 5 %: 1 - .95^59 = .95.
//!
//! Orthogonal steps (see `pursuit`) grow the Cholesky factor L of the Gram matrix of what is taken by the row l,
//! l_p = L^-1 <phi(S), phi(p)>, pivot^2 = ||phi(p)||^2 - l_p . l_p. Basic steps (Alg. 3.2 alone) subtract the part of
//! the residual along phi(p) and may choose a vector again.
//!
//! Invariant: correlation and distance of every candidate belong to the residual and the span after the last step.

use super::space::{Space, columns_of};
use crate::context::Context;
use crate::error::Result;
use crate::memory::try_zeros;
use crate::simd::blas::{axpy, dot};
use std::collections::HashMap;
use std::ops::Range;

/// Number of columns computed together.
const COLUMNS_AHEAD: usize = 24;
/// Number of candidates that a task updates.
const CANDIDATES_PER_TASK: usize = 64;
/// Number of adjacent entries of a candidate's row of L.
const FACTOR_BLOCK_WIDTH: usize = 128;
/// Squared distance from the span, as a share of ||phi(p)||^2, up to which a candidate is inside the span.
const SPAN_TOLERANCE: f64 = 1e-10;
/// The same for a given order: a pursuit takes far candidates first, but a series of near ones, each divided by its small
/// distance, would amplify the rounding errors of those before.
const GIVEN_SPAN_TOLERANCE: f64 = 1e-7;
/// Negative squared distance, as a share of the largest ||phi(p)||^2, below which the kernel is indefinite.
pub(super) const INDEFINITE_TOLERANCE: f64 = 1e-6;

/// The score of a candidate, and whether earlier coefficients change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Basic,
    BackFitting,
    PreFitting,
}

/// A candidate and the decrease of the squared residual that it would cause.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proposal {
    pub(super) candidate: usize,
    pub(super) gain: f64,
}

/// The result of a step.
pub(super) struct Step {
    /// The row of L with its pivot; empty for basic steps.
    pub(super) line: Vec<f64>,
    /// The projections on the new direction, or the coefficients of a basic step, (outputs,).
    pub(super) change: Vec<f64>,
}

impl Step {
    /// Returns the decrease of the squared residual.
    pub(super) fn gain(&self, proposal: Proposal) -> f64 {
        if self.line.is_empty() { proposal.gain } else { dot(&self.change, &self.change) }
    }
}

/// A column of the space's matrix less its parts along the directions before `from`.
struct Column {
    from: usize,
    values: Vec<f64>,
}

/// A stepper that updates every candidate.
pub(super) struct Complete<'s, 'a> {
    space: &'s Space<'a>,
    rule: Rule,
    outputs: usize,
    /// Rows of L in blocks of columns, (candidates, FACTOR_BLOCK_WIDTH) each.
    factor: Vec<Vec<f64>>,
    /// Columns of likely next candidates; with basic steps, of all candidates chosen.
    columns_ahead: HashMap<usize, Column>,
    correlations: Vec<f64>,
    distance: Vec<f64>,
    scores: Vec<f64>,
    largest: f64,
    steps: usize,
}

/// The candidates of a task.
struct CandidateBlock<'a> {
    first: usize,
    latest: &'a mut [f64],
    correlations: &'a mut [f64],
    distance: &'a mut [f64],
    scores: &'a mut [f64],
}

impl<'s, 'a> Complete<'s, 'a> {
    /// Returns a stepper for some outputs of the space.
    pub(super) fn new(space: &'s Space<'a>, outputs: Range<usize>, rule: Rule) -> Result<Self> {
        let q = space.outputs();
        let correlations = columns_of(&space.targets, q, outputs.clone())?;
        let mut stepper = Self {
            space,
            rule,
            outputs: outputs.len(),
            factor: Vec::new(),
            columns_ahead: HashMap::new(),
            correlations,
            distance: space.squared_norms.clone(),
            scores: vec![0.0; space.len()],
            largest: space.squared_norms.iter().copied().fold(0.0, f64::max),
            steps: 0,
        };
        let q = stepper.outputs;
        for p in 0..space.len() {
            stepper.scores[p] = score(
                rule,
                space.squared_norms[p],
                &stepper.correlations[p * q..(p + 1) * q],
                space.squared_norms[p],
            );
        }
        Ok(stepper)
    }

    /// Returns the best candidate, or None if no candidate reduces the residual.
    pub(super) fn propose(&self) -> Option<Proposal> {
        let best = (0..self.scores.len())
            .max_by(|&a, &b| self.scores[a].total_cmp(&self.scores[b]).then(b.cmp(&a)))?;
        (self.scores[best] > 0.0).then(|| Proposal { candidate: best, gain: self.gain(best) })
    }

    /// Returns whether a candidate of a given order is outside the span of those taken.
    pub(super) fn is_outside(&self, candidate: usize) -> bool {
        self.scores[candidate] >= 0.0
            && self.distance[candidate] > GIVEN_SPAN_TOLERANCE * self.space.squared_norms[candidate]
    }

    /// Returns the decrease of the squared residual by a candidate.
    fn gain(&self, p: usize) -> f64 {
        let q = self.outputs;
        let correlations = &self.correlations[p * q..(p + 1) * q];
        let length = if self.rule == Rule::Basic { self.space.squared_norms[p] } else { self.distance[p] };
        dot(correlations, correlations) / length
    }

    /// Returns the column of `best`. If it is not available, it is computed together with those of the most likely next
    /// candidates, and the directions so far are subtracted from all of them in one pass over L.
    fn column(&mut self, best: usize, ctx: Context<'_>) -> Result<Column> {
        let basic = self.rule == Rule::Basic;
        if !self.columns_ahead.contains_key(&best) {
            // Columns that are never chosen would accumulate.
            if !basic && self.columns_ahead.len() > 8 * COLUMNS_AHEAD {
                self.columns_ahead.clear();
            }
            let scores = &self.scores;
            let mut list: Vec<usize> = (0..scores.len())
                .filter(|p| scores[*p] > 0.0 && *p != best && !self.columns_ahead.contains_key(p))
                .collect();
            let by_score = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
            if list.len() >= COLUMNS_AHEAD {
                list.select_nth_unstable_by(COLUMNS_AHEAD - 1, by_score);
                list.truncate(COLUMNS_AHEAD - 1);
            }
            list.push(best);
            let mut columns = self.space.columns(&list, ctx)?;
            if !basic {
                self.subtract_directions(&list, &mut columns, ctx)?;
            }
            let from = self.steps;
            let columns = columns.into_iter().map(|values| Column { from, values });
            self.columns_ahead.extend(list.into_iter().zip(columns));
        }
        let column = match self.columns_ahead.get(&best) {
            Some(column) if basic => Some(Column { from: 0, values: column.values.clone() }),
            _ => self.columns_ahead.remove(&best),
        };
        Ok(column.unwrap_or(Column { from: 0, values: Vec::new() }))
    }

    /// Subtracts L times the rows of L of their candidates from columns.
    fn subtract_directions(&self, list: &[usize], columns: &mut [Vec<f64>], ctx: Context<'_>) -> Result<()> {
        let mut parts: Vec<Vec<&mut [f64]>> = Vec::new();
        for column in columns.iter_mut() {
            for (i, part) in column.chunks_mut(CANDIDATES_PER_TASK).enumerate() {
                if parts.len() == i {
                    parts.push(Vec::new());
                }
                parts[i].push(part);
            }
        }
        for (b, block) in self.factor.iter().enumerate() {
            ctx.check("directions", b * FACTOR_BLOCK_WIDTH, self.steps)?;
            let filled = (self.steps - b * FACTOR_BLOCK_WIDTH).min(FACTOR_BLOCK_WIDTH);
            ctx.for_each_chunk(&mut parts, 1, |i, parts| {
                for (&c, part) in list.iter().zip(parts[0].iter_mut()) {
                    let line = &block[c * FACTOR_BLOCK_WIDTH..c * FACTOR_BLOCK_WIDTH + filled];
                    for (k, value) in part.iter_mut().enumerate() {
                        let p = i * CANDIDATES_PER_TASK + k;
                        *value -= dot(&block[p * FACTOR_BLOCK_WIDTH..p * FACTOR_BLOCK_WIDTH + filled], line);
                    }
                }
            });
        }
        Ok(())
    }

    /// Takes a step with a candidate.
    pub(super) fn take(&mut self, best: usize, ctx: Context<'_>) -> Result<Step> {
        let Column { from, values: column } = self.column(best, ctx)?;
        let (rule, q, steps, squared_norms) =
            (self.rule, self.outputs, self.steps, &self.space.squared_norms);
        let basic = rule == Rule::Basic;
        let pivot = if basic { squared_norms[best] } else { self.distance[best].sqrt() };
        let mut line = Vec::with_capacity(steps + 1);
        if !basic {
            for (b, block) in self.factor.iter().enumerate() {
                let filled = (steps - b * FACTOR_BLOCK_WIDTH).min(FACTOR_BLOCK_WIDTH);
                line.extend_from_slice(&block[best * FACTOR_BLOCK_WIDTH..best * FACTOR_BLOCK_WIDTH + filled]);
            }
            if steps == self.factor.len() * FACTOR_BLOCK_WIDTH {
                self.factor
                    .push(try_zeros("the factor of a pursuit", self.space.len() * FACTOR_BLOCK_WIDTH)?);
            }
        }
        let change: Vec<f64> =
            self.correlations[best * q..(best + 1) * q].iter().map(|c| c / pivot).collect();
        let at = steps % FACTOR_BLOCK_WIDTH;
        let (mut latest, earlier): (&mut [f64], &[Vec<f64>]) = match self.factor.split_last_mut() {
            Some((latest, earlier)) => (latest, earlier),
            None => (&mut [], &[]),
        };
        let mut blocks = Vec::new();
        let state = self
            .correlations
            .chunks_mut(CANDIDATES_PER_TASK * q)
            .zip(self.distance.chunks_mut(CANDIDATES_PER_TASK));
        for (i, ((correlations, distance), scores)) in
            state.zip(self.scores.chunks_mut(CANDIDATES_PER_TASK)).enumerate()
        {
            let (mine, following) =
                latest.split_at_mut(if basic { 0 } else { distance.len() * FACTOR_BLOCK_WIDTH });
            latest = following;
            blocks.push(CandidateBlock {
                first: i * CANDIDATES_PER_TASK,
                latest: mine,
                correlations,
                distance,
                scores,
            });
        }
        let step =
            Direction { rule, column: &column, from, line: &line, steps, earlier, pivot, change: &change };
        ctx.for_each_chunk(&mut blocks, 1, |_, blocks| {
            for block in blocks {
                step.update(block, squared_norms);
            }
        });
        drop(blocks);
        if !basic {
            let lowest = self.distance.iter().copied().fold(0.0, f64::min);
            if lowest < -INDEFINITE_TOLERANCE * self.largest {
                return Err(self.space.indefinite(lowest));
            }
            if let Some(latest) = self.factor.last_mut() {
                latest[best * FACTOR_BLOCK_WIDTH + at] = pivot;
            }
            line.push(pivot);
            self.distance[best] = 0.0;
            self.scores[best] = f64::NEG_INFINITY;
        }
        self.steps += 1;
        Ok(Step { line, change })
    }
}

/// The direction of a step, for the update of all candidates.
struct Direction<'a> {
    rule: Rule,
    /// The column of the candidate, orthogonal to the directions of the first `from` steps.
    column: &'a [f64],
    from: usize,
    /// Row of the candidate in the factor.
    line: &'a [f64],
    steps: usize,
    /// Blocks of the factor that are full.
    earlier: &'a [Vec<f64>],
    pivot: f64,
    change: &'a [f64],
}

impl Direction<'_> {
    /// Updates correlations, distances and scores of some candidates; `squared_norms` has the squared norms of all.
    fn update(&self, block: &mut CandidateBlock<'_>, squared_norms: &[f64]) {
        let q = self.change.len();
        for (i, distance) in block.distance.iter_mut().enumerate() {
            let p = block.first + i;
            let correlations = &mut block.correlations[i * q..(i + 1) * q];
            if self.rule == Rule::Basic {
                axpy(-self.column[p], self.change, correlations);
            } else {
                let at = self.steps % FACTOR_BLOCK_WIDTH;
                let row = &mut block.latest[i * FACTOR_BLOCK_WIDTH..(i + 1) * FACTOR_BLOCK_WIDTH];
                let l = (self.column[p] - self.inner_product(p, &row[..at])) / self.pivot;
                row[at] = l;
                *distance -= l * l;
                axpy(-l, self.change, correlations);
            }
            block.scores[i] = score(self.rule, squared_norms[p], correlations, *distance);
        }
    }

    /// Returns the inner product of the factor's rows of candidate p and of this step, for the directions since the column was
    /// computed; `latest` is the row of p in the last block.
    fn inner_product(&self, p: usize, latest: &[f64]) -> f64 {
        let (from, start) = (self.from, self.steps - latest.len());
        let first = from.saturating_sub(start);
        let mut inner = dot(&latest[first..], &self.line[start + first..]);
        for (b, block) in self.earlier.iter().enumerate().skip(from / FACTOR_BLOCK_WIDTH) {
            let first = from.saturating_sub(b * FACTOR_BLOCK_WIDTH);
            inner += dot(
                &block[p * FACTOR_BLOCK_WIDTH + first..(p + 1) * FACTOR_BLOCK_WIDTH],
                &self.line[b * FACTOR_BLOCK_WIDTH + first..(b + 1) * FACTOR_BLOCK_WIDTH],
            );
        }
        inner
    }
}

/// Returns the score of a candidate: the largest is next; minus infinity inside the span.
pub(super) fn score(rule: Rule, squared_norm: f64, correlations: &[f64], distance: f64) -> f64 {
    let inside =
        if rule == Rule::Basic { !(squared_norm > 0.0) } else { !(distance > SPAN_TOLERANCE * squared_norm) };
    if inside {
        return f64::NEG_INFINITY;
    }
    let aligned: f64 = correlations.iter().map(|c| c * c).sum();
    aligned / if rule == Rule::PreFitting { distance } else { squared_norm }
}
