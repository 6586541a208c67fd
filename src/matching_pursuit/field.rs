//! All functions of a kept dictionary as candidates of an orthogonal pursuit, looked at together every few steps.
//!
//! A pass over the dictionary is bound by memory, but one pass can serve the basis vectors of several steps. So for
//! [`BLOCK`] steps the choice is made among the *active* functions alone, those with the best scores; then one pass brings
//! the others up to date, step by step. If one of them had had a better score than the function chosen at some step, the
//! steps from there on are taken back. The choices that stand are those among all functions, and products are computed as
//! often as without blocks: the rest of the time is arithmetic on a small part of the dictionary.
//!
//! Invariant: `distance` and `correlations` are those at the start of the block for all functions, `now` those at the
//! current step for the active ones.

use super::dictionary::Dictionary;
use super::orthogonal::{INSIDE, State};
use crate::control::Par;
use crate::simd::blas::axpy;

/// Steps between two looks at all functions.
const BLOCK: usize = 16;
/// Fewest active functions.
const LEAST: usize = 256;

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
}

/// The candidates.
pub(super) struct Field<'a> {
    dictionary: &'a Dictionary<'a>,
    by_gain: bool,
    known: Vec<Known>,
    /// Chosen functions and those inside the span, with the number of steps after which they were closed.
    closed: Vec<Option<usize>>,
    active: Vec<usize>,
    now: Vec<Known>,
    wanted: usize,
    /// Steps before the block.
    before: usize,
    /// Of the steps of the block: the score that was best, the shares of the residuals.
    scores: Vec<f64>,
    shares: Vec<Vec<f64>>,
    /// Products of the active functions with the basis vectors of the block.
    products: Vec<Vec<f64>>,
}

impl<'a> Field<'a> {
    pub(super) fn new(dictionary: &'a Dictionary<'a>, state: &State<'_>, by_gain: bool, par: Par) -> Self {
        let all: Vec<usize> = (0..dictionary.count()).collect();
        let q = state.residuals.len() / state.basis.rows();
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
        let mut field = Self {
            dictionary,
            by_gain,
            known,
            closed: vec![None; all.len()],
            active: Vec::new(),
            now: Vec::new(),
            // The first steps change all scores.
            wanted: all.len().max(1),
            before: 0,
            scores: Vec::new(),
            shares: Vec::new(),
            products: Vec::new(),
        };
        field.start();
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

    /// Begins a block: the best functions become active.
    fn start(&mut self) {
        let mut ranked: Vec<(f64, usize)> = (0..self.known.len())
            .filter(|&p| self.closed[p].is_none())
            .map(|p| (self.score(p, &self.known[p]), p))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        let better = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if ranked.len() > self.wanted {
            ranked.select_nth_unstable_by(self.wanted - 1, better);
            ranked.truncate(self.wanted);
        }
        self.active = ranked.into_iter().map(|(_, p)| p).collect();
        self.active.sort_unstable();
        self.now = self.active.iter().map(|&p| self.known[p].clone()).collect();
        self.scores.clear();
        self.shares.clear();
        self.products.clear();
    }

    /// The active function with the best score, the first of equals; the score is noted for the next step.
    pub(super) fn best(&mut self) -> Option<usize> {
        let mut best = (0.0, None);
        for (&p, now) in self.active.iter().zip(&self.now) {
            let score = if self.closed[p].is_some() { f64::NEG_INFINITY } else { self.score(p, now) };
            if score > best.0 {
                best = (score, Some(p));
            }
        }
        self.scores.truncate(self.shares.len());
        self.scores.push(best.0);
        best.1
    }

    /// Whether all functions should be looked at before the next step.
    pub(super) fn is_full(&self) -> bool {
        self.shares.len() == BLOCK
    }

    /// Takes the step of function p, which gave a basis vector and its shares of the residuals.
    pub(super) fn advance(&mut self, p: usize, vector: &[f64], shares: &[f64], par: Par) {
        self.closed[p] = Some(self.before + self.shares.len());
        let products = self.dictionary.products(&self.active, vector, par);
        for (now, &l) in self.now.iter_mut().zip(&products) {
            now.advance(l, shares);
        }
        self.products.push(products);
        self.shares.push(shares.to_vec());
    }

    /// Leaves a function out that is inside the span.
    pub(super) fn close(&mut self, p: usize) {
        self.closed[p] = Some(self.before + self.shares.len());
    }

    /// Looks at all functions and begins a new block: the number of steps that stand, from the first on, and whether a
    /// function that was not active would have been better, at a step taken or, at the end of the pursuit (`last`),
    /// where no active one had anything left.
    pub(super) fn settle(&mut self, state: &State<'_>, last: bool, par: Par) -> (usize, bool) {
        let steps = self.shares.len();
        let is_active = {
            let mut flags = vec![false; self.known.len()];
            self.active.iter().for_each(|&p| flags[p] = true);
            flags
        };
        let others: Vec<usize> =
            (0..self.known.len()).filter(|&p| !is_active[p] && self.closed[p].is_none()).collect();
        let vectors = &state.basis.vectors()[(state.basis.len() - steps) * state.basis.rows()..];
        let products = self.dictionary.products(&others, vectors, par);
        let exhausted = last && self.scores.len() > steps && self.scores[steps] == 0.0;
        let checked = steps + usize::from(exhausted);
        let mut stands = steps;
        let (mut missed, mut closest) = (false, 0.0_f64);
        for (i, &p) in others.iter().enumerate() {
            let mut known = self.known[p].clone();
            for step in 0..checked {
                if step > stands {
                    break;
                }
                let score = self.score(p, &known);
                closest = closest.max(score / self.scores[step]);
                if score > self.scores[step] {
                    stands = stands.min(step);
                    missed = true;
                    break;
                }
                if step < steps {
                    known.advance(products[i * steps + step], &self.shares[step]);
                }
            }
        }
        for (i, &p) in others.iter().enumerate() {
            for step in 0..stands {
                self.known[p].advance(products[i * steps + step], &self.shares[step]);
            }
        }
        for (i, &p) in self.active.iter().enumerate() {
            for step in 0..stands {
                self.known[p].advance(self.products[step][i], &self.shares[step]);
            }
        }
        self.before += stands;
        for closed in &mut self.closed {
            if closed.is_some_and(|at| at >= self.before && stands < steps) {
                *closed = None;
            }
        }
        // Fewer are active where the others stayed far from being chosen.
        self.wanted = if missed {
            2 * self.wanted
        } else if closest < FAR {
            self.wanted / 2
        } else if closest < NEAR {
            self.wanted - self.wanted / 4
        } else {
            self.wanted
        };
        self.wanted = self.wanted.max(LEAST).min(self.known.len().max(1));
        self.start();
        (self.before, missed)
    }
}
