//! Which variables make the next block (thesis 2.3.3, 2.4.2).
//!
//! Half of the block may stay from the last one: first the unbounded variables, whose coefficients still have to find
//! each other, then those that entered last. The rest are the worst violators, as many that should rise as should
//! fall (the steepest feasible direction, (2.93)-(2.98)), of each group in turn. A partial selection finds them in O(n).
//! One in ten is drawn evenly from all violators instead: the worst lie close together, and when some of them are settled
//! so are their neighbours (on 40,000 noisy rows in the plane this halves the rounds).

use super::problem::{DualProblem, Extremes};
use crate::error::Result;
use crate::memory::{TryCollect, TryGrow, TryToVec, try_vec};

/// One in so many new variables comes from a sample of all violators.
const SAMPLED: usize = 10;

/// New variables from which on there is a sample: in small machines it costs more rounds than it saves.
const MANY: usize = 512;

/// The block of one machine from round to round.
#[derive(Default)]
pub(super) struct WorkingSet {
    /// Variables of the present block, in the order of their groups.
    pub(super) members: Vec<usize>,
    /// Most variables of a block.
    pub(super) size: usize,
    /// When each member entered, in step with `members`.
    entered: Vec<u64>,
    round: u64,
}

impl WorkingSet {
    /// An empty block for at most `size` variables.
    pub(super) fn new(size: usize) -> Self {
        Self { size, ..Self::default() }
    }

    /// The set after its variables have got new numbers; those without one leave.
    pub(super) fn renumbered(&self, number: impl Fn(usize) -> Option<usize>) -> Self {
        let (members, entered) =
            // small: the variables of a block
            self.members.iter().zip(&self.entered).filter_map(|(&v, &e)| Some((number(v)?, e))).unzip();
        Self { members, size: self.size, entered, round: self.round }
    }

    /// Replaces the block; `extremes` are the problem's.
    pub(super) fn choose(&mut self, problem: &DualProblem, extremes: &Extremes) -> Result<()> {
        let size = self.size.min(problem.len());
        let first = self.round == 0 && problem.beta.iter().all(|b| *b == 0.0);
        self.round += 1;
        // The worst pair must always find room, or a round could do nothing.
        let keep = (size / 2).min(size.saturating_sub(2));
        let mut old: Vec<(usize, u64)> =
            self.members.drain(..).zip(self.entered.drain(..)).try_collect_vec()?;
        // small: the variables of a block
        old.sort_by_key(|&(v, entered)| (!problem.is_unbounded(v), std::cmp::Reverse(entered)));
        old.truncate(keep);
        let mut chosen = try_vec![false; problem.len()]?;
        for &(v, _) in &old {
            chosen[v] = true;
        }
        let wanted = size - old.len();

        // Four lists: those of each group that should rise, those that should fall.
        let mut lists = [const { Vec::new() }; 4];
        for v in (0..problem.len()).filter(|&v| !chosen[v]) {
            let group = usize::from(problem.group[v]);
            let (up, low) = extremes[group];
            let (rise, fall) = (problem.rise(v), problem.fall(v));
            if rise < low {
                lists[2 * group].try_push((rise, v))?;
            }
            if fall > up {
                lists[2 * group + 1].try_push((-fall, v))?;
            }
        }
        for list in &mut lists {
            if first {
                // Gradients are mostly equal at the start: an even sample stands for the whole.
                *list = spread(list, wanted)?;
            } else {
                worst_with_sample(list, wanted)?;
            }
        }
        // The group with the worst pair goes first: a block of two must hold that pair.
        let gap = |group: usize| extremes[group].1 - extremes[group].0;
        if gap(1) > gap(0) {
            lists.rotate_left(2);
        }
        let mut lists = lists.map(Vec::into_iter);
        let mut added = 0;
        while added < wanted {
            let mut any = false;
            for list in &mut lists {
                let Some((_, v)) = list.next() else { continue };
                any = true;
                if added < wanted && !chosen[v] {
                    chosen[v] = true;
                    old.try_push((v, self.round))?;
                    added += 1;
                }
            }
            if !any {
                break;
            }
        }
        // In the order of the variables, so that kernel values are gathered front to back.
        old.sort_unstable_by_key(|&(v, _)| (problem.group[v], v));
        (self.members, self.entered) = old.into_iter().unzip(); // small: the variables of a block
        Ok(())
    }
}

/// Brings the `count` smallest to the front, in order, and drops the rest.
fn partially_sort(list: &mut Vec<(f64, usize)>, count: usize) {
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if list.len() > count && count > 0 {
        list.select_nth_unstable_by(count - 1, order);
        list.truncate(count);
    }
    list.sort_unstable_by(order);
}

/// The `count` smallest, in order; where there are many, every [`SAMPLED`]th of them is replaced by one of an even
/// sample of the whole list.
fn worst_with_sample(list: &mut Vec<(f64, usize)>, count: usize) -> Result<()> {
    let crowded = count >= MANY && list.len() > count;
    let sample = if crowded { spread(list, count / SAMPLED)? } else { Vec::new() };
    partially_sort(list, count);
    for (slot, sampled) in list.iter_mut().skip(SAMPLED - 1).step_by(SAMPLED).zip(sample) {
        *slot = sampled;
    }
    Ok(())
}

/// At most `count` of the list, evenly spread.
fn spread(list: &[(f64, usize)], count: usize) -> Result<Vec<(f64, usize)>> {
    let n = list.len();
    if n > count { (0..count).map(|k| list[k * n / count]).try_collect_vec() } else { list.try_to_vec() }
}
