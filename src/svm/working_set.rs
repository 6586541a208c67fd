//! Which variables make the next block (thesis 2.3.3, 2.4.2).
//!
//! Half of the block may stay from the last one: first the unbounded variables, whose coefficients still have to find
//! each other, then those that entered last. The rest are the worst violators, as many that should rise as should
//! fall (the steepest feasible direction, (2.93)-(2.98)). A partial selection finds them in O(n).

use super::problem::DualProblem;

/// The block of one machine from round to round.
pub(super) struct WorkingSet {
    /// Variables of the present block; those that entered last stand at the end.
    pub(super) members: Vec<usize>,
    /// Most variables of a block.
    pub(super) size: usize,
    chosen: Vec<bool>,
}

impl WorkingSet {
    pub(super) fn new(variables: usize, size: usize) -> Self {
        Self { members: Vec::new(), size: size.min(variables), chosen: vec![false; variables] }
    }

    /// The set after its variables have got new numbers below `variables`; those without one leave.
    pub(super) fn renumbered(&self, number: impl Fn(usize) -> Option<usize>, variables: usize) -> Self {
        let members: Vec<usize> = self.members.iter().filter_map(|&v| number(v)).collect();
        let mut chosen = vec![false; variables];
        for &v in &members {
            chosen[v] = true;
        }
        Self { members, size: self.size, chosen }
    }

    /// Replaces the block. `up` and `low` are the problem's extremes, which bound the violators.
    pub(super) fn choose(&mut self, problem: &DualProblem, up: f64, low: f64) {
        let first = self.members.is_empty();
        for &i in &self.members {
            self.chosen[i] = false;
        }
        let old = std::mem::take(&mut self.members);
        // The worst pair must always find room, or a round could do nothing.
        let keep = (self.size / 2).min(self.size.saturating_sub(2));
        let (unbounded, settled): (Vec<usize>, Vec<usize>) =
            old.into_iter().partition(|&i| problem.is_unbounded(i));
        for i in unbounded.into_iter().rev().chain(settled.into_iter().rev()).take(keep) {
            self.chosen[i] = true;
            self.members.push(i);
        }
        // Kept in the order of their age.
        self.members.reverse();
        let wanted = self.size.min(problem.len()) - self.members.len();
        let candidates = |should: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..problem.len()).filter(|&i| !self.chosen[i] && should(i)).collect()
        };
        let f = &problem.gradient;
        let mut rising = candidates(&|i| problem.can_rise(i) && f[i] < low);
        let mut falling = candidates(&|i| problem.can_fall(i) && f[i] > up);
        if first {
            // All gradients are equal at the start: an even sample stands for the whole.
            spread(&mut rising, wanted);
            spread(&mut falling, wanted);
        } else {
            partially_sort(&mut rising, wanted, |i| f[i]);
            partially_sort(&mut falling, wanted, |i| -f[i]);
        }
        let (mut rising, mut falling) = (rising.into_iter(), falling.into_iter());
        while self.members.len() < self.size.min(problem.len()) {
            let before = self.members.len();
            for next in [rising.next(), falling.next()].into_iter().flatten() {
                if self.members.len() < self.size && !self.chosen[next] {
                    self.chosen[next] = true;
                    self.members.push(next);
                }
            }
            if self.members.len() == before && rising.len() == 0 && falling.len() == 0 {
                break;
            }
        }
    }
}

/// Brings the `count` smallest by `key` to the front, in order, and drops the rest.
fn partially_sort(list: &mut Vec<usize>, count: usize, key: impl Fn(usize) -> f64) {
    let order = |&a: &usize, &b: &usize| key(a).total_cmp(&key(b)).then(a.cmp(&b));
    if list.len() > count && count > 0 {
        list.select_nth_unstable_by(count - 1, order);
        list.truncate(count);
    }
    list.sort_unstable_by(order);
}

/// Keeps `count` of the list, evenly spread.
fn spread(list: &mut Vec<usize>, count: usize) {
    let n = list.len();
    if n > count {
        *list = (0..count).map(|k| list[k * n / count]).collect();
    }
}
