//! All functions of a kept dictionary as candidates of an orthogonal pursuit, most of them looked at every few steps only.
//!
//! A pass over the dictionary is bound by memory, but one pass can serve the basis vectors of several steps. So a step
//! chooses among the *active* functions of the last of three levels: all functions, brought up to date every 16 steps; the
//! best of them, every 4; the best of those, at every step. When functions are brought up to date, it is seen at which
//! step one of them would have been better than the function that was chosen; the steps from there on are taken back. The
//! choices that stand are those among all functions, and as many products are computed as without levels: only the order
//! of the work is another one.
//!
//! Invariant: `known[k]` is function k after the first `done[k]` steps.

use super::dictionary::Dictionary;
use super::orthogonal::{INSIDE, State};
use crate::control::Par;
use crate::simd::blas::axpy;

/// Steps between two looks at a level.
const EVERY: [usize; 3] = [16, 4, 1];
/// Fewest functions of a level that is not all.
const LEAST: usize = 128;
/// Shares of the best score: functions that stay below the first are far from being chosen.
const FAR: f64 = 0.6;
const NEAR: f64 = 0.8;

/// What is known of one function.
#[derive(Clone)]
struct Known {
    distance: f64,
    correlations: Vec<f64>,
}

impl Known {
    fn advance(&mut self, l: f64, shares: &[f64]) {
        self.distance -= l * l;
        axpy(-l, shares, &mut self.correlations);
    }

    fn take_back(&mut self, l: f64, shares: &[f64]) {
        self.distance += l * l;
        axpy(l, shares, &mut self.correlations);
    }
}

/// The candidates.
pub(super) struct Field<'a> {
    dictionary: &'a Dictionary<'a>,
    by_gain: bool,
    known: Vec<Known>,
    done: Vec<usize>,
    /// Chosen functions and those inside the span, with the number of steps after which they were closed.
    closed: Vec<Option<usize>>,
    /// Functions of each level, each a part of the level before.
    levels: [Vec<usize>; 3],
    /// How many functions the levels after the first shall have.
    wanted: [usize; 3],
    /// The number of steps at which each level was brought up to date last.
    last: [usize; 3],
    /// For every step, the score that was best.
    scores: Vec<f64>,
}

impl<'a> Field<'a> {
    pub(super) fn new(dictionary: &'a Dictionary<'a>, state: &State<'_>, by_gain: bool, par: Par) -> Self {
        let all: Vec<usize> = (0..dictionary.count()).collect();
        let q = state.outputs();
        let aligned = dictionary.products(&all, &state.residuals, par);
        let inside = dictionary.products(&all, state.basis.vectors(), par);
        let n = state.basis.len();
        let known = all
            .iter()
            .map(|&p| Known {
                distance: dictionary.own[p] - inside[p * n..(p + 1) * n].iter().map(|v| v * v).sum::<f64>(),
                correlations: aligned[p * q..(p + 1) * q].to_vec(),
            })
            .collect();
        let count = all.len().max(1);
        let mut field = Self {
            dictionary,
            by_gain,
            known,
            done: vec![0; all.len()],
            closed: vec![None; all.len()],
            levels: [all, Vec::new(), Vec::new()],
            // The first steps change all scores.
            wanted: [count, count, count],
            last: [0; 3],
            scores: Vec::new(),
        };
        field.choose_levels(1);
        field
    }

    fn score(&self, p: usize, known: &Known) -> f64 {
        let own = self.dictionary.own[p];
        if !(known.distance > INSIDE * own) {
            return f64::NEG_INFINITY;
        }
        let aligned: f64 = known.correlations.iter().map(|c| c * c).sum();
        aligned / if self.by_gain { known.distance } else { own }
    }

    /// Fills the levels from one on with the best of the level before.
    fn choose_levels(&mut self, from: usize) {
        for level in from..EVERY.len() {
            let mut ranked: Vec<(f64, usize)> = self.levels[level - 1]
                .iter()
                .filter(|&&p| self.closed[p].is_none())
                .map(|&p| (self.score(p, &self.known[p]), p))
                .filter(|(score, _)| *score > 0.0)
                .collect();
            let wanted = self.wanted[level].max(LEAST);
            let better = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            if ranked.len() > wanted {
                ranked.select_nth_unstable_by(wanted - 1, better);
                ranked.truncate(wanted);
            }
            let mut members: Vec<usize> = ranked.into_iter().map(|(_, p)| p).collect();
            members.sort_unstable();
            self.levels[level] = members;
        }
    }

    /// The function of the last level with the best score, the first of equals; the score is noted for the next step.
    pub(super) fn best(&mut self, steps: usize) -> Option<usize> {
        let mut best = (0.0, None);
        for &p in self.levels[EVERY.len() - 1].iter().filter(|&&p| self.closed[p].is_none()) {
            let score = self.score(p, &self.known[p]);
            if score > best.0 {
                best = (score, Some(p));
            }
        }
        self.scores.truncate(steps);
        self.scores.push(best.0);
        best.1
    }

    /// Leaves a function out that is chosen, or inside the span, after so many steps.
    pub(super) fn close(&mut self, p: usize, steps: usize) {
        self.closed[p] = Some(steps);
    }

    /// Brings the levels up to date whose time it is, or all of them with `all`; `exhausted` says that the last level had
    /// nothing left. The number of steps that stand.
    pub(super) fn refresh(&mut self, state: &mut State<'_>, all: bool, exhausted: bool, par: Par) -> usize {
        let steps = state.order.len();
        let due = |level: usize| all || steps >= self.last[level] + EVERY[level];
        let Some(level) = (0..EVERY.len()).find(|&level| due(level)) else { return steps };
        let list: Vec<usize> =
            self.levels[level].iter().copied().filter(|&p| self.closed[p].is_none()).collect();
        let (stands, closest) = self.catch_up(&list, level, state, par);
        if stands < steps {
            self.take_back(stands, state, par);
            for closed in &mut self.closed {
                if closed.is_some_and(|at| at >= stands) {
                    *closed = None;
                }
            }
            while state.order.len() > stands {
                state.give_back();
            }
        }
        // The next level is larger where one outside was better, smaller where all stayed far from being chosen.
        if level + 1 < EVERY.len() {
            let wanted = &mut self.wanted[level + 1];
            if stands < steps || exhausted {
                *wanted *= 2;
            } else if closest < FAR {
                *wanted /= 2;
            } else if closest < NEAR {
                *wanted -= *wanted / 4;
            }
            *wanted = (*wanted).clamp(LEAST, self.known.len().max(LEAST));
            self.choose_levels(level + 1);
        }
        for last in &mut self.last[level..] {
            *last = stands;
        }
        for last in &mut self.last[..level] {
            *last = (*last).min(stands);
        }
        stands
    }

    /// Brings functions of a level to the current step; the first step at which one would have been better, and the
    /// largest share of the best score that one outside the next level had.
    fn catch_up(&mut self, list: &[usize], level: usize, state: &State<'_>, par: Par) -> (usize, f64) {
        let steps = state.order.len();
        let (mut stands, mut closest) = (steps, 0.0_f64);
        for (from, group) in groups(list, &self.done, |done| done < steps) {
            let products = self.dictionary.products(&group, state.directions(from, steps), par);
            for (&p, products) in group.iter().zip(products.chunks_exact(steps - from)) {
                let mut known = self.known[p].clone();
                let outside = self.levels.get(level + 1).is_some_and(|next| next.binary_search(&p).is_err());
                for (step, &l) in (from..steps).zip(products) {
                    // The levels of this step were chosen with this function at its first.
                    if step > from {
                        let score = self.score(p, &known);
                        if outside {
                            closest = closest.max(score / self.scores[step]);
                        }
                        if score > self.scores[step] {
                            stands = stands.min(step);
                        }
                    }
                    known.advance(l, state.shares(step));
                }
                self.known[p] = known;
                self.done[p] = steps;
            }
        }
        (stands, closest)
    }

    /// Takes functions back to an earlier step.
    fn take_back(&mut self, stands: usize, state: &State<'_>, par: Par) {
        let list: Vec<usize> = (0..self.known.len()).collect();
        for (to, group) in groups(&list, &self.done, |done| done > stands) {
            let products = self.dictionary.products(&group, state.directions(stands, to), par);
            for (&p, products) in group.iter().zip(products.chunks_exact(to - stands)) {
                for (step, &l) in (stands..to).zip(products) {
                    self.known[p].take_back(l, state.shares(step));
                }
                self.done[p] = stands;
            }
        }
    }
}

/// Functions of a list by the number of steps they have seen.
fn groups(list: &[usize], done: &[usize], wanted: impl Fn(usize) -> bool) -> Vec<(usize, Vec<usize>)> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for &p in list.iter().filter(|&&p| wanted(done[p])) {
        match groups.iter_mut().find(|(at, _)| *at == done[p]) {
            Some((_, group)) => group.push(p),
            None => groups.push((done[p], vec![p])),
        }
    }
    groups
}
