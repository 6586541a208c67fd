//! A walk from face to face: what a block of few free variables is solved by once pair steps have done the rough work.
//!
//! An active-set method (Scheinberg 2006). A *face* is a set of free variables, the others held where they are:
//!
//! 1. go towards the minimum over the face, as in `newton`, as far as the first of them meets the end of its piece of the
//!    cost; that one leaves;
//! 2. at the minimum the variable that violates most joins.
//!
//! At large C a few dozen variables change sides between one C and the next, where pair steps need thousands of steps
//! among badly conditioned kernel values. With more free variables moves become dear: a walk begins with at most [`MOST`]
//! and ends when it has cost a few times as much as the pair steps before it; one that has not arrived makes the next wait.
//! (Up to 300 were slower wherever there are hundreds.)
//!
//! Tried and dropped: many violators at once, those that leave again clipped to their bounds (a primal-dual active set):
//! faces grow without an end in sight, slower than pair steps alone.
//!
//! Invariant: bounds and sums are kept, the objective does not rise, gradients are exact. Cost: n m + m^2 a move for m free
//! variables of n.
//!
//! All allocations are small: at most 48 free variables, or those of a block.

use super::super::precision::KernelValue;
use super::state::{Goal, Subproblem};
use crate::error::Result;
use crate::linalg::growing::GrowingCholesky;
use crate::memory::TryCollect;
use crate::simd::blas::add_rows;

/// Most free variables to begin with.
const MOST: usize = 48;
/// How many more there may become.
const MORE: usize = 32;
/// How much of what the pair steps before it have cost a walk may cost.
const BUDGET: u64 = 4;
/// What a move costs besides, in scanned entries.
const MOVE: usize = 1000;

/// The free variables, each with the rate of the kink on its piece, and their factor.
struct Face {
    free: Vec<(usize, f64)>,
    factor: GrowingCholesky,
    ridge: f64,
    most: usize,
}

impl Face {
    /// Whether the variable could join.
    fn join<K: KernelValue>(&mut self, block: &Subproblem<K>, i: usize, rate: f64) -> Result<bool> {
        if self.free.len() == self.most {
            return Ok(false);
        }
        let row = block.row(i);
        let values: Vec<f64> = self.free.iter().map(|&(j, _)| row[j].wide()).try_collect_vec()?;
        let joins = self.factor.append(&values, block.diagonal[i] + self.ridge, 0.0)?;
        if joins {
            self.free.push((i, rate));
        }
        Ok(joins)
    }

    fn leave(&mut self, k: usize) {
        self.factor.remove(k);
        self.free.remove(k);
    }

    /// The way to the minimum, on which the sum stays unless there is none to keep.
    fn way<K>(&self, block: &Subproblem<K>) -> Vec<f64> {
        let mut way: Vec<f64> = self.free.iter().map(|&(i, rate)| -block.gradient[i] - rate).collect();
        self.factor.solve(&mut way);
        if !block.anchored {
            let mut ones = vec![1.0; way.len()];
            self.factor.solve(&mut ones);
            let level = way.iter().sum::<f64>() / ones.iter().sum::<f64>();
            way.iter_mut().zip(&ones).for_each(|(d, one)| *d -= level * one);
        }
        way
    }
}

/// How a move ended.
enum Moved {
    /// At the minimum over the face.
    Down,
    /// Where the k-th free variable met an end.
    Met(usize),
    /// Where it began: the one that joined last cannot move.
    Nowhere,
}

impl<K: KernelValue> Subproblem<K> {
    /// Walks until the goal is reached or it has cost too much; the number of moves. Machines with two sums do not walk.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(super) fn walk(&mut self, goal: Goal) -> Result<u64> {
        let mut free: Vec<usize> = Vec::new();
        if self.groups[1].is_empty() {
            free.extend(self.unbounded().take(MOST + 1));
        }
        if free.is_empty() || free.len() > MOST {
            self.wait.paid(false);
            return Ok(0);
        }
        let largest = free.iter().map(|&i| self.diagonal[i]).fold(0.0, f64::max);
        let ridge = K::RIDGE * (free.len() as f64).sqrt() * largest;
        let most = free.len() + MORE;
        let mut face = Face { free: Vec::new(), factor: GrowingCholesky::default(), ridge, most };
        for i in free {
            // One that is like the others is left to the pair steps.
            face.join(self, i, self.up[i])?;
        }
        if face.free.is_empty() {
            self.wait.paid(false);
            return Ok(0);
        }
        let (mut budget, mut moves, mut is_rest) = (BUDGET * self.wait.spent, 0, false);
        let arrived = loop {
            let m = face.free.len();
            let cost = (m * m / 4 + m * self.stride / 8 + self.stride + MOVE) as u64;
            match budget.checked_sub(cost) {
                Some(left) if moves < goal.max_steps => budget = left,
                _ => break false,
            }
            moves += 1;
            match self.go(&face) {
                Moved::Nowhere => break false,
                Moved::Met(k) => {
                    face.leave(k);
                    is_rest = false;
                    if face.free.is_empty() {
                        break false;
                    }
                }
                Moved::Down => {
                    let Some((i, rate)) = self.worst(&face, goal.tolerance) else { break true };
                    if self.up[i] == self.low[i] {
                        // What the ridge has left: once more on the same face.
                        if std::mem::replace(&mut is_rest, true) {
                            break false;
                        }
                    } else if !face.join(self, i, rate)? {
                        break false;
                    } else {
                        is_rest = false;
                    }
                }
            }
        };
        self.wait.paid(arrived);
        Ok(moves)
    }

    /// Moves the free variables towards the minimum.
    fn go(&mut self, face: &Face) -> Moved {
        let way = face.way(self);
        let (mut share, mut met) = (1.0, None);
        for (k, (&(i, rate), &d)) in face.free.iter().zip(&way).enumerate() {
            let (below, above) = self.piece(i, rate);
            let (end, room) =
                if d > 0.0 { (above, above - self.beta[i]) } else { (below, self.beta[i] - below) };
            if d.abs() * share > room {
                share = room / d.abs();
                met = Some((k, end));
            }
        }
        if !way.iter().all(|d| d.is_finite())
            || (share <= 0.0 && met.is_some_and(|(k, _)| k + 1 == way.len()))
        {
            return Moved::Nowhere;
        }
        // Ends are assigned, so that "at its bound" stays an exact comparison.
        let mut to: Vec<f64> = (0..way.len())
            .map(|k| {
                let (i, rate) = face.free[k];
                let (below, above) = self.piece(i, rate);
                match met {
                    Some((at, end)) if at == k => end,
                    _ => (self.beta[i] + share * way[k]).clamp(below, above),
                }
            })
            .collect();
        if !self.anchored {
            self.keep_sum(face, met.map(|(k, _)| k), &mut to);
        }
        let changes: Vec<f64> = face.free.iter().zip(&to).map(|(&(i, _), to)| to - self.beta[i]).collect();
        let mut gradient = std::mem::take(&mut self.gradient);
        let rows: Vec<&[K]> = face.free.iter().map(|&(i, _)| self.row(i)).collect();
        add_rows(&changes, &rows, 0, &mut gradient);
        self.gradient = gradient;
        for (&(i, _), to) in face.free.iter().zip(to) {
            self.beta[i] = to;
            self.note_bounds(i);
        }
        met.map_or(Moved::Down, |(k, _)| Moved::Met(k))
    }

    /// Gives what the rounding of a badly conditioned system has added to the sum to the variable with the most room.
    fn keep_sum(&self, face: &Face, met: Option<usize>, to: &mut [f64]) {
        let excess: f64 = face.free.iter().zip(&*to).map(|(&(i, _), to)| to - self.beta[i]).sum();
        let ends = |k: usize| self.piece(face.free[k].0, face.free[k].1);
        let room = |k: usize| {
            let (below, above) = ends(k);
            (to[k] - below).min(above - to[k])
        };
        let others = (0..to.len()).filter(|&k| met != Some(k));
        if let Some(k) = others.max_by(|&a, &b| room(a).total_cmp(&room(b))) {
            let (below, above) = ends(k);
            to[k] = (to[k] - excess).clamp(below, above);
        }
    }

    /// Where the piece of the cost with a rate ends, below and above.
    fn piece(&self, i: usize, rate: f64) -> (f64, f64) {
        let (lower, upper) = (self.lower[i], self.upper[i]);
        match rate {
            _ if self.kink == 0.0 => (lower, upper),
            _ if rate > 0.0 => (lower.max(0.0), upper),
            _ => (lower, upper.min(0.0)),
        }
    }

    /// The variable that violates most at the minimum over a face, with the rate of the piece it wants to move on; `None`
    /// within the tolerance.
    fn worst(&self, face: &Face, tolerance: f64) -> Option<(usize, f64)> {
        let of_anchor = if self.anchored { (0.0, usize::MAX) } else { (f64::INFINITY, usize::MAX) };
        let (mut up, mut low) =
            (of_anchor, if self.anchored { of_anchor } else { (f64::NEG_INFINITY, usize::MAX) });
        for &i in &self.slots {
            let (rise, fall) = (self.gradient[i] + self.up[i], self.gradient[i] + self.low[i]);
            up = if rise < up.0 { (rise, i) } else { up };
            low = if fall > low.0 { (fall, i) } else { low };
        }
        // Not a number is nothing to go by.
        if low.0 - up.0 <= tolerance || !(low.0 - up.0).is_finite() {
            return None;
        }
        let level = if self.anchored {
            0.0
        } else {
            let sum: f64 = face.free.iter().map(|&(i, rate)| self.gradient[i] + rate).sum();
            sum / face.free.len() as f64
        };
        let rises = level - up.0 > low.0 - level;
        let i = if rises { up.1 } else { low.1 };
        Some((i, if rises { self.up[i] } else { self.low[i] }))
    }
}
