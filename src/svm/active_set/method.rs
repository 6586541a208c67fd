//! An active-set method for blocks with few free variables (Scheinberg 2006).
//!
//! 1. Move the free variables towards their common minimum, up to the first bound; the variable at the bound is removed
//!    from the free ones.
//! 2. At the minimum, the variable with the largest violation becomes free.
//!
//! At a large C a few dozen variables change sides between one C and the next, where SMO takes thousands of steps on badly
//! conditioned kernel values. A move becomes expensive with many free variables: a run starts with at most
//! [`MAX_INITIAL_FREE`] and ends once it has cost a few times as much as the SMO steps before it.
//!
//! Invariant: bounds and sums are kept, the objective does not increase, gradients are exact. Cost: n m + m^2 per move, for
//! m free variables of n.
//!
//! All allocations are small: at most 80 free variables.

use super::super::precision::KernelValue;
use super::super::subproblem::{Goal, Subproblem};
use crate::error::Result;
use crate::linalg::growing::GrowingCholesky;

/// Maximum number of free variables at the start of a run.
const MAX_INITIAL_FREE: usize = 48;
/// Maximum number of variables that become free in a run, beyond those at its start.
const MAX_ADDED_FREE: usize = 32;
/// Maximum cost of a run, relative to the SMO steps before it.
const MAX_RELATIVE_COST: u64 = 4;
/// Constant cost of a move, in scanned entries.
const MOVE_COST: usize = 1000;
/// The free variables of a block, and the factor of their kernel matrix.
struct FreeFactor {
    /// Each variable with the derivative of epsilon |b| on its side of zero.
    free: Vec<(usize, f64)>,
    factor: GrowingCholesky,
    ridge: f64,
    max_free: usize,
}

impl FreeFactor {
    /// Adds a variable; returns false if its kernel values depend linearly on those of the others, or if there are too many.
    fn add<K: KernelValue>(&mut self, block: &Subproblem<K>, i: usize, rate: f64) -> Result<bool> {
        if self.free.len() == self.max_free {
            return Ok(false);
        }
        let row = block.row(i);
        let values: Vec<f64> = self.free.iter().map(|&(j, _)| row[j].wide()).collect();
        let is_added = self.factor.append(&values, block.diagonal[i] + self.ridge, 0.0)?;
        if is_added {
            self.free.push((i, rate));
        }
        Ok(is_added)
    }

    /// Removes the k-th free variable.
    fn remove(&mut self, k: usize) {
        self.factor.remove(k);
        self.free.remove(k);
    }

    /// Returns the direction to the minimum, along which the sum is constant if it must be kept.
    fn direction<K>(&self, block: &Subproblem<K>) -> Vec<f64> {
        let mut direction: Vec<f64> = self.free.iter().map(|&(i, rate)| -block.gradient[i] - rate).collect();
        self.factor.solve(&mut direction);
        if block.has_equality {
            let mut ones = vec![1.0; direction.len()];
            self.factor.solve(&mut ones);
            let level = direction.iter().sum::<f64>() / ones.iter().sum::<f64>();
            direction.iter_mut().zip(&ones).for_each(|(d, entry)| *d -= level * entry);
        }
        direction
    }
}

enum MoveEnd {
    /// At the minimum over the free variables.
    Minimum,
    /// At a bound of the k-th free variable.
    Bound(usize),
    /// At its start: the variable added last cannot move.
    Start,
}

impl<K: KernelValue> Subproblem<K> {
    /// Runs the active-set method until the goal is reached or its cost is too high; returns the number of moves. Blocks
    /// with two groups are left to SMO steps.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(in crate::svm) fn run_active_set(&mut self, goal: Goal) -> Result<u64> {
        let (moves, is_solved) = self.active_set_moves(goal)?;
        self.active_set_budget.record_gain(f64::from(u8::from(is_solved)));
        Ok(moves)
    }

    /// Returns the number of moves, and whether the goal was reached.
    fn active_set_moves(&mut self, goal: Goal) -> Result<(u64, bool)> {
        if !self.groups[1].is_empty() {
            return Ok((0, false));
        }
        let initial: Vec<usize> = self.unbounded().take(MAX_INITIAL_FREE + 1).collect();
        if initial.len() > MAX_INITIAL_FREE {
            return Ok((0, false));
        }
        let largest = initial.iter().map(|&i| self.diagonal[i]).fold(0.0, f64::max);
        let mut set = FreeFactor {
            free: Vec::new(),
            factor: GrowingCholesky::default(),
            ridge: K::RIDGE * (initial.len() as f64).sqrt() * largest,
            max_free: initial.len() + MAX_ADDED_FREE,
        };
        for i in initial {
            // Linearly dependent variables are left to SMO steps.
            set.add(self, i, self.up[i])?;
        }
        let mut cost_left = MAX_RELATIVE_COST * self.active_set_budget.scanned();
        let (mut moves, mut is_repeated) = (0, false);
        while !set.free.is_empty() {
            let m = set.free.len();
            let cost = (m * m / 4 + m * self.stride / 8 + self.stride + MOVE_COST) as u64;
            match cost_left.checked_sub(cost) {
                Some(left) if moves < goal.max_iterations => cost_left = left,
                _ => break,
            }
            moves += 1;
            match self.move_free(&set) {
                MoveEnd::Start => break,
                MoveEnd::Bound(k) => {
                    set.remove(k);
                    is_repeated = false;
                }
                MoveEnd::Minimum => {
                    let Some((i, rate)) = self.most_violating(&set, goal.tolerance) else {
                        return Ok((moves, true));
                    };
                    if self.up[i] == self.low[i] {
                        // A free variable violates because of the ridge: the move is repeated once.
                        if std::mem::replace(&mut is_repeated, true) {
                            break;
                        }
                    } else if set.add(self, i, rate)? {
                        is_repeated = false;
                    } else {
                        break;
                    }
                }
            }
        }
        Ok((moves, false))
    }

    /// Moves the free variables towards the minimum, up to the first bound.
    fn move_free(&mut self, set: &FreeFactor) -> MoveEnd {
        let direction = set.direction(self);
        let (mut length, mut bound) = (1.0, None);
        for (k, (&(i, rate), &d)) in set.free.iter().zip(&direction).enumerate() {
            let (lower, upper) = self.interval_at(i, rate);
            let (end, distance) =
                if d > 0.0 { (upper, upper - self.beta[i]) } else { (lower, self.beta[i] - lower) };
            if d.abs() * length > distance {
                length = distance / d.abs();
                bound = Some((k, end));
            }
        }
        let is_last = |k: usize| k + 1 == direction.len();
        if !direction.iter().all(|d| d.is_finite())
            || (length <= 0.0 && bound.is_some_and(|(k, _)| is_last(k)))
        {
            return MoveEnd::Start;
        }
        // Bounds are assigned, so that "at its bound" remains an exact comparison.
        let mut to: Vec<f64> = (set.free.iter().zip(&direction).enumerate())
            .map(|(k, (&(i, rate), d))| {
                let (lower, upper) = self.interval_at(i, rate);
                match bound {
                    Some((at, end)) if at == k => end,
                    _ => (self.beta[i] + length * d).clamp(lower, upper),
                }
            })
            .collect();
        let bound = bound.map(|(k, _)| k);
        if self.has_equality {
            self.restore_sum(set, bound, &mut to);
        }
        let slots: Vec<usize> = set.free.iter().map(|&(i, _)| i).collect();
        self.set_values(&slots, &to);
        bound.map_or(MoveEnd::Minimum, MoveEnd::Bound)
    }

    /// Subtracts what rounding in a badly conditioned system has added to the sum from the variable farthest from its bounds.
    fn restore_sum(&self, set: &FreeFactor, bound: Option<usize>, to: &mut [f64]) {
        let excess: f64 = set.free.iter().zip(&*to).map(|(&(i, _), to)| to - self.beta[i]).sum();
        let interval = |k: usize| self.interval_at(set.free[k].0, set.free[k].1);
        let distance = |k: usize| {
            let (lower, upper) = interval(k);
            (to[k] - lower).min(upper - to[k])
        };
        let others = (0..to.len()).filter(|&k| bound != Some(k));
        if let Some(k) = others.max_by(|&a, &b| distance(a).total_cmp(&distance(b))) {
            let (lower, upper) = interval(k);
            to[k] = (to[k] - excess).clamp(lower, upper);
        }
    }

    /// Returns the interval of variable i on which epsilon |b| has the given derivative.
    fn interval_at(&self, i: usize, rate: f64) -> (f64, f64) {
        let (lower, upper) = (self.lower[i], self.upper[i]);
        match rate {
            _ if self.epsilon == 0.0 => (lower, upper),
            _ if rate > 0.0 => (lower.max(0.0), upper),
            _ => (lower, upper.min(0.0)),
        }
    }

    /// Returns the variable with the largest violation at the minimum over the free variables, with the derivative of
    /// epsilon |b| on the side to which it moves; `None` within the tolerance.
    fn most_violating(&self, set: &FreeFactor, tolerance: f64) -> Option<(usize, f64)> {
        let bound = if self.has_equality { f64::INFINITY } else { 0.0 };
        let (mut up, mut low) = ((bound, usize::MAX), (-bound, usize::MAX));
        for &i in &self.slots {
            let (up_derivative, down_derivative) =
                (self.gradient[i] + self.up[i], self.gradient[i] + self.low[i]);
            up = if up_derivative < up.0 { (up_derivative, i) } else { up };
            low = if down_derivative > low.0 { (down_derivative, i) } else { low };
        }
        // A NaN violation ends the run too.
        if low.0 - up.0 <= tolerance || !(low.0 - up.0).is_finite() {
            return None;
        }
        let level = if self.has_equality {
            let sum: f64 = set.free.iter().map(|&(i, rate)| self.gradient[i] + rate).sum();
            sum / set.free.len() as f64
        } else {
            0.0
        };
        if level - up.0 > low.0 - level {
            Some((up.1, self.up[up.1]))
        } else {
            Some((low.1, self.low[low.1]))
        }
    }
}
