//! The functions of a stored dictionary as candidates of an orthogonal pursuit; most of them are updated every few steps only.
//!
//! A pass over the dictionary is bound by memory, but one pass can serve the basis vectors of several steps. So a step
//! chooses among the *active* functions of the last of three levels: all functions, brought up to date every 12 steps; the
//! best of them, every 3; the best of those, at every step. An update finds the first step at which one of the functions
//! would have been better than the function that was chosen; that step and all later ones are undone. So the final choices
//! are those among all functions, and the number of products is that without levels: only the order of the work differs.
//!
//! Invariant: n_k and C_k are those after the steps whose products the line of function k has.

use super::basis::SPAN_TOLERANCE;
use super::dictionary::Dictionary;
use super::state::State;
use crate::context::Context;
use crate::data::{copy_columns, matrix};
use crate::error::Result;
use crate::memory::TryGrow;

/// Steps between two updates of each level.
const LEVEL_INTERVALS: [usize; 3] = [12, 3, 1];
/// Minimum number of functions of the second and third level.
const MIN_LEVEL_SIZE: usize = 64;
/// Shares of the best score; the next level shrinks if the scores of all functions outside it stay below them.
const HALVE_BELOW: f64 = 0.7;
const SHRINK_BELOW: f64 = 0.85;

/// The candidates.
pub(super) struct CandidateLevels<'a> {
    dictionary: &'a Dictionary<'a>,
    by_gain: bool,
    /// n, (M,).
    distances: Vec<f64>,
    /// C, (M, q).
    correlations: Vec<f64>,
    /// Products of every function with the basis.
    lines: Vec<Vec<f64>>,
    outputs: usize,
    /// A score that is larger by less than this factor is equal: of functions that are multiples of each other the first is
    /// chosen.
    better: f64,
    /// Vectors of the basis before the first step.
    before: usize,
    /// Chosen functions and those inside the span, with the number of steps after which they were closed.
    closed: Vec<Option<usize>>,
    /// Functions of each level, each a part of the level before.
    levels: [Vec<usize>; 3],
    /// The intended number of functions of the levels after the first.
    level_sizes: [usize; 3],
    /// The number of steps at which each level was brought up to date last.
    last: [usize; 3],
    /// For every step, the score that was best.
    scores: Vec<f64>,
}

impl<'a> CandidateLevels<'a> {
    pub(super) fn new(
        dictionary: &'a Dictionary<'a>,
        state: &State<'_, '_>,
        by_gain: bool,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let all: Vec<usize> = (0..dictionary.count()).collect();
        let correlations = dictionary.products(&all, &state.residuals, ctx)?;
        let inside = dictionary.products(&all, state.basis.vectors(), ctx)?;
        let n = state.basis.len();
        let lines = copy_columns(matrix((all.len(), n), &inside)?.t())?;
        let squares = |line: &[f64]| line.iter().map(|v| v * v).sum::<f64>();
        let distances =
            all.iter().map(|&p| dictionary.squared_norms[p] - squares(&lines[p])).collect::<Vec<_>>();
        let count = all.len().max(1);
        let mut field = Self {
            dictionary,
            by_gain,
            distances,
            correlations,
            lines,
            outputs: state.task.outputs(),
            better: 1.0 + dictionary.rounding(),
            before: n,
            closed: vec![None; all.len()],
            levels: [all, Vec::new(), Vec::new()],
            // The first steps change all scores.
            level_sizes: [count, count, count],
            last: [0; 3],
            scores: Vec::new(),
        };
        field.choose_levels(1);
        Ok(field)
    }

    #[inline]
    fn score(&self, p: usize) -> f64 {
        let (squared_norm, distance, q) = (self.dictionary.squared_norms[p], self.distances[p], self.outputs);
        if !(distance > SPAN_TOLERANCE * squared_norm) {
            return f64::NEG_INFINITY;
        }
        let aligned: f64 = self.correlations[p * q..(p + 1) * q].iter().map(|c| c * c).sum();
        aligned / if self.by_gain { distance } else { squared_norm }
    }

    /// Takes the share of a basis vector out of a function, or puts it back with `sign` -1.
    #[inline]
    fn shift(&mut self, p: usize, l: f64, shares: &[f64], sign: f64) {
        let q = self.outputs;
        self.distances[p] -= sign * l * l;
        for (c, share) in self.correlations[p * q..(p + 1) * q].iter_mut().zip(shares) {
            *c -= sign * l * share;
        }
    }

    /// Fills the levels from one on with the best of the level before.
    fn choose_levels(&mut self, from: usize) {
        for level in from..LEVEL_INTERVALS.len() {
            let mut ranked: Vec<(f64, usize)> = self.levels[level - 1]
                .iter()
                .filter(|&&p| self.closed[p].is_none())
                .map(|&p| (self.score(p), p))
                .filter(|(score, _)| *score > 0.0)
                .collect();
            let size = self.level_sizes[level].max(MIN_LEVEL_SIZE);
            let better = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            if ranked.len() > size {
                ranked.select_nth_unstable_by(size - 1, better);
                ranked.truncate(size);
            }
            let mut members: Vec<usize> = ranked.into_iter().map(|(_, p)| p).collect();
            members.sort_unstable();
            self.levels[level] = members;
        }
    }

    /// The function of the last level with the best score, the first of equals; the score is noted for the next step.
    pub(super) fn best(&mut self, steps: usize) -> Option<usize> {
        let mut best = (0.0, None);
        for &p in self.levels[LEVEL_INTERVALS.len() - 1].iter().filter(|&&p| self.closed[p].is_none()) {
            let score = self.score(p);
            if score > best.0 * self.better {
                best = (score, Some(p));
            }
        }
        self.scores.truncate(steps);
        self.scores.push(best.0);
        best.1
    }

    /// Returns a function and others of the last level with the best scores, at most `count`, without those that `unwanted` names.
    pub(super) fn best_candidates(
        &self,
        p: usize,
        count: usize,
        unwanted: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let others = self.levels[LEVEL_INTERVALS.len() - 1].iter().copied();
        let mut ranked: Vec<(f64, usize)> = others
            .filter(|&k| k != p && self.closed[k].is_none() && !unwanted(k))
            .map(|k| (self.score(k), k))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        std::iter::once(p).chain(ranked.into_iter().map(|(_, k)| k)).take(count).collect()
    }

    /// Number of vectors of the basis that will not be taken back.
    pub(super) fn n_final_vectors(&self) -> usize {
        self.before + self.last[0]
    }

    /// Returns true if a function is chosen, or inside the span, after a step that will not be undone.
    pub(super) fn is_final(&self, p: usize) -> bool {
        self.closed[p].is_some_and(|at| at < self.last[0])
    }

    /// Products of a function with the basis, as far as it is known.
    pub(super) fn line(&self, p: usize) -> &[f64] {
        &self.lines[p]
    }

    /// Steps that a function has seen.
    fn done(&self, p: usize) -> usize {
        self.lines[p].len() - self.before
    }

    /// Excludes a function that is chosen, or inside the span, after `steps` steps.
    pub(super) fn close(&mut self, p: usize, steps: usize) {
        self.closed[p] = Some(steps);
    }

    /// Brings the levels up to date whose time it is, or all of them with `all`; `exhausted` says that the last level had
    /// nothing left. The number of steps that stand.
    pub(super) fn refresh(
        &mut self,
        state: &mut State<'_, '_>,
        all: bool,
        exhausted: bool,
        ctx: Context<'_>,
    ) -> Result<usize> {
        let steps = state.order.len();
        let due = |level: usize| all || steps >= self.last[level] + LEVEL_INTERVALS[level];
        let Some(level) = (0..LEVEL_INTERVALS.len()).find(|&level| due(level)) else { return Ok(steps) };
        let list: Vec<usize> =
            self.levels[level].iter().copied().filter(|&p| self.closed[p].is_none()).collect();
        let (stands, closest) = self.update_level(&list, level, state, ctx)?;
        if stands < steps {
            for p in 0..self.lines.len() {
                for step in (stands..self.done(p)).rev() {
                    if let Some(l) = self.lines[p].pop() {
                        self.shift(p, l, state.shares(step), -1.0);
                    }
                }
            }
            for closed in &mut self.closed {
                if closed.is_some_and(|at| at >= stands) {
                    *closed = None;
                }
            }
            while state.order.len() > stands {
                state.undo_step();
            }
        }
        // The next level is larger where one outside was better, smaller where all stayed far from being chosen.
        if level + 1 < LEVEL_INTERVALS.len() {
            let size = &mut self.level_sizes[level + 1];
            if stands < steps || exhausted {
                *size *= 2;
            } else if closest < HALVE_BELOW {
                *size /= 2;
            } else if closest < SHRINK_BELOW {
                *size -= *size / 4;
            }
            *size = (*size).clamp(MIN_LEVEL_SIZE, self.lines.len().max(MIN_LEVEL_SIZE));
            self.choose_levels(level + 1);
        }
        for last in &mut self.last[level..] {
            *last = stands;
        }
        for last in &mut self.last[..level] {
            *last = (*last).min(stands);
        }
        Ok(stands)
    }

    /// Brings functions of a level to the current step; the first step at which one would have been better, and the
    /// largest share of the best score that one outside the next level had.
    fn update_level(
        &mut self,
        list: &[usize],
        level: usize,
        state: &State<'_, '_>,
        ctx: Context<'_>,
    ) -> Result<(usize, f64)> {
        let steps = state.order.len();
        let (mut stands, mut closest) = (steps, 0.0_f64);
        for (from, group) in self.groups(list, steps) {
            let products = self.dictionary.products(&group, state.directions(from, steps), ctx)?;
            for (&p, products) in group.iter().zip(products.chunks_exact(steps - from)) {
                let outside = self.levels.get(level + 1).is_some_and(|next| next.binary_search(&p).is_err());
                for (step, &l) in (from..steps).zip(products) {
                    // The levels of this step were chosen with this function at its first.
                    if step > from {
                        let score = self.score(p);
                        if outside {
                            closest = closest.max(score / self.scores[step]);
                        }
                        if score > self.scores[step] * self.better {
                            stands = stands.min(step);
                        }
                    }
                    self.shift(p, l, state.shares(step), 1.0);
                }
                self.lines[p].try_extend(products.iter().copied())?;
            }
        }
        Ok((stands, closest))
    }

    /// Functions of a list that have not seen all steps, by the number that they have.
    fn groups(&self, list: &[usize], steps: usize) -> Vec<(usize, Vec<usize>)> {
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for &p in list {
            let done = self.done(p);
            if done < steps {
                match groups.iter_mut().find(|(at, _)| *at == done) {
                    Some((_, group)) => group.push(p),
                    None => groups.push((done, vec![p])),
                }
            }
        }
        groups
    }
}
