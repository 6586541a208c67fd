//! Selection of the variables of the next block (Rifkin 2002, 2.3.3, 2.4.2).
//!
//! At most half of the block stays from the last one: first the unbounded variables, whose coefficients depend on each other
//! most, then those that entered last. The rest are the largest violators, equal numbers that should increase and decrease
//! (the steepest feasible direction, (2.93)-(2.98)), of each group in turn. A partial selection finds them in O(n). One in
//! ten is drawn evenly from all violators instead: the largest ones lie close together, and once some of them are solved,
//! so are their neighbors.

use super::problem::{DualProblem, MaximalPairs, VARIABLES_PER_TASK};
use crate::context::Context;
use std::ops::Range;

/// Interval between two new variables that come from a sample of all violators.
const SAMPLE_INTERVAL: usize = 10;

/// Minimum number of new variables with a sample; for fewer, it costs more rounds than it saves.
const MIN_SAMPLED_COUNT: usize = 512;

/// The working set of one machine.
#[derive(Default)]
pub(super) struct WorkingSet {
    /// Variables of the present working set, sorted by group.
    pub(super) members: Vec<usize>,
    /// Maximum number of variables.
    pub(super) size: usize,
    /// Round in which each member entered.
    entered: Vec<u64>,
    round: u64,
}

impl WorkingSet {
    /// Returns an empty working set for at most `size` variables.
    pub(super) fn new(size: usize) -> Self {
        Self { size, ..Self::default() }
    }

    /// Returns the working set with new numbers of its variables; those without a number are removed.
    pub(super) fn renumbered(&self, number: impl Fn(usize) -> Option<usize>) -> Self {
        let (members, entered) =
            // small: the variables of a block
            self.members.iter().zip(&self.entered).filter_map(|(&v, &e)| Some((number(v)?, e))).unzip();
        Self { members, size: self.size, entered, round: self.round }
    }

    /// Selects the next working set; `maximal_pairs` are those of the problem.
    pub(super) fn select(&mut self, problem: &DualProblem, maximal_pairs: &MaximalPairs, ctx: Context<'_>) {
        let size = self.size.min(problem.len());
        let first = self.round == 0 && problem.beta.iter().all(|b| *b == 0.0);
        self.round += 1;
        // The maximal violating pair must always be included, or a round could do nothing.
        let keep = (size / 2).min(size.saturating_sub(2));
        let mut old: Vec<(usize, u64)> = self.members.drain(..).zip(self.entered.drain(..)).collect();
        // small: the variables of a block
        old.sort_by_key(|&(v, entered)| (!problem.is_unbounded(v), std::cmp::Reverse(entered)));
        old.truncate(keep);
        let mut chosen = vec![false; problem.len()];
        for &(v, _) in &old {
            chosen[v] = true;
        }
        let n_new = size - old.len();

        let mut lists = violators(problem, maximal_pairs, &chosen, ctx);
        // Partial selection takes a few operations for each violator.
        let count = 4 * lists.iter().map(Vec::len).sum::<usize>();
        ctx.for_operations(count).for_each_chunk(&mut lists, 1, |_, list| {
            if first {
                // Gradients are mostly equal at the start: an even sample stands for the whole.
                list[0] = evenly_spaced(&list[0], n_new);
            } else {
                largest_with_sample(&mut list[0], n_new);
            }
        });
        // The group with the larger violation comes first: a block of two must contain its maximal violating pair.
        let gap = |group: usize| maximal_pairs[group].1 - maximal_pairs[group].0;
        if gap(1) > gap(0) {
            lists.rotate_left(2);
        }
        let mut lists = lists.map(Vec::into_iter);
        let mut added = 0;
        while added < n_new {
            let mut is_any_left = false;
            for list in &mut lists {
                let Some((_, v)) = list.next() else { continue };
                is_any_left = true;
                if added < n_new && !chosen[v] {
                    chosen[v] = true;
                    old.push((v, self.round));
                    added += 1;
                }
            }
            if !is_any_left {
                break;
            }
        }
        // Sorted, so that kernel values are gathered in the order of memory.
        old.sort_unstable_by_key(|&(v, _)| (problem.group[v], v));
        (self.members, self.entered) = old.into_iter().unzip(); // small: the variables of a block
    }
}

/// The variables of one group that should increase, or decrease, with the derivative in that direction.
type Violators = Vec<(f64, usize)>;

/// Returns four lists, the variables of each group that should increase and those that should decrease, without those that
/// are chosen already.
fn violators(
    problem: &DualProblem,
    maximal_pairs: &MaximalPairs,
    is_chosen: &[bool],
    ctx: Context<'_>,
) -> [Violators; 4] {
    let of_range = |range: Range<usize>| {
        let mut lists = [const { Violators::new() }; 4];
        for v in range.filter(|&v| !is_chosen[v]) {
            let group = usize::from(problem.group[v]);
            let (up, low) = maximal_pairs[group];
            let (increase, decrease) = (problem.up_derivative(v), problem.down_derivative(v));
            if increase < low {
                lists[2 * group].push((increase, v));
            }
            if decrease > up {
                lists[2 * group + 1].push((-decrease, v));
            }
        }
        lists
    };
    let joined = |mut first: [Violators; 4], second: [Violators; 4]| {
        for (list, more) in first.iter_mut().zip(second) {
            list.extend(more);
        }
        first
    };
    ctx.reduce(problem.len(), VARIABLES_PER_TASK, of_range, joined).unwrap_or_default()
}

/// Sorts the `count` smallest entries to the front, and removes the rest.
fn partially_sort(list: &mut Vec<(f64, usize)>, count: usize) {
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if list.len() > count && count > 0 {
        list.select_nth_unstable_by(count - 1, order);
        list.truncate(count);
    }
    list.sort_unstable_by(order);
}

/// Keeps the `count` smallest entries, sorted; if they are many, every [`SAMPLE_INTERVAL`]th of them is replaced by one of an
/// even sample of the whole list.
fn largest_with_sample(list: &mut Vec<(f64, usize)>, count: usize) {
    let has_sample = count >= MIN_SAMPLED_COUNT && list.len() > count;
    let sample = if has_sample { evenly_spaced(list, count / SAMPLE_INTERVAL) } else { Vec::new() };
    partially_sort(list, count);
    for (slot, sampled) in list.iter_mut().skip(SAMPLE_INTERVAL - 1).step_by(SAMPLE_INTERVAL).zip(sample) {
        *slot = sampled;
    }
}

/// Returns at most `count` entries of the list, evenly spaced.
fn evenly_spaced(list: &[(f64, usize)], count: usize) -> Vec<(f64, usize)> {
    let n = list.len();
    if n > count { (0..count).map(|k| list[k * n / count]).collect() } else { list.to_vec() }
}
