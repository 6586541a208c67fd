//! Learning from a piece of a stream on several threads, with the bits of learning from one row after the other.
//!
//! What a leaf learns from a row depends neither on other leaves nor on random numbers. The latter decide which rows a leaf
//! samples, and the sample is read by a split only. A block of rows is therefore learned in steps:
//!
//! 1. All rows pass to their leaves.
//! 2. Each leaf learns from its rows, until it overflows its budget.
//! 3. The leaf of the first row with an overflow is split, and its children learn from the remaining rows of the leaf.
//!    This is repeated until no leaf overflows.
//! 4. Leaves take their samples.
//!
//! Rows of step 1, leaves of steps 2 and 4 and some splits of step 3 are distributed over the threads. A row that reaches a
//! full sample draws one random number, and a split draws many, so the generator has a known state before each row up to the
//! first split. Splits behind it start from a prediction of that state: as if each split drew as many numbers as the last
//! one, and no other leaf overflowed before. A split is used only if its prediction was right, which compares two numbers.
//!
//! Invariant: rows before `position` have their generator states, and every split before it has been made. Nodes are
//! numbered in the order of the rows that split them. Cost: the work of one thread, a second load of each row, and splits
//! whose prediction was wrong. Memory: a few numbers for each row of a block, and the splits made at the same time.

use super::grow::{Division, Tree};
use super::growing::{GrowingLeaf, Piece};
use super::node::{Leaf, Node, Route, Rule, route};
use crate::context::{Context, WorkCounter};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{PoolWorkspace, RowBuffer};
use crate::memory::try_vec;
use crate::random::Random;
use crate::simd::Real;
use std::sync::{Mutex, PoisonError};

/// Minimum number of rows of a block for each leaf; it is at least twice the budget, so that many leaves overflow in a block
/// and few of them twice.
const MIN_BLOCK_ROWS_PER_LEAF: usize = 256;
/// Minimum and maximum number of rows of a block.
const MIN_BLOCK_ROWS: usize = 1024;
const MAX_BLOCK_ROWS: usize = 1 << 16;
/// Number of rows that a task passes through rules.
const ROWS_PER_TASK: usize = 64;
/// Maximum number of bytes of the splits that several threads make at the same time; a larger split is made alone.
pub const MAX_SPLIT_BYTES: usize = 64 << 20;

/// Learns from the rows of a piece; returns those that were mistakes.
pub(super) fn learn_concurrently<T: Real>(
    tree: &mut Tree<T>,
    rows: Rows<'_>,
    labels: &[usize],
    ctx: Context<'_>,
) -> Result<Vec<u64>> {
    let piece = Piece::new(rows.reborrow(), labels, ctx);
    let (mut wrong, mut first, mut split_draws) = (Vec::new(), 0, 0);
    while first < labels.len() {
        let n_leaves = tree.nodes.len().div_ceil(2);
        let rows_per_leaf = MIN_BLOCK_ROWS_PER_LEAF.max(tree.params.budget.saturating_mul(2));
        let count = n_leaves.saturating_mul(rows_per_leaf).clamp(MIN_BLOCK_ROWS, MAX_BLOCK_ROWS);
        let count = count.min(labels.len() - first);
        let mut block = Block::new(tree, &piece, first, count, split_draws)?;
        block.learn_with_splits()?;
        block.finish(&mut wrong)?;
        split_draws = block.split_draws;
        first += count;
    }
    wrong.sort_unstable();
    Ok(wrong)
}

/// The first row that a rule cannot send to a side, with its error.
type Failure = Option<(usize, Error)>;

/// A split that may be used.
struct Candidate<T> {
    /// Rows of the block that have come into the sample.
    places: Vec<Option<usize>>,
    seen: u64,
    /// The rows of the sample.
    rows: Vec<RowBuffer<T>>,
    division: Division<T>,
    /// The generator's state before the split, and the generator after it.
    start: u64,
    random: Random,
}

/// A block of consecutive rows.
struct Block<'b, 'a, T> {
    tree: &'b mut Tree<T>,
    piece: &'b Piece<'a>,
    /// Its first row in the piece.
    first: usize,
    leaves: Vec<GrowingLeaf<T>>,
    /// The place in `leaves` of the leaf of each row.
    leaf_of: Vec<usize>,
    /// State of the generator before each row.
    states: Vec<u64>,
    position: usize,
    failure: Failure,
    /// Change of the generator's state by the last split.
    split_draws: u64,
}

impl<'b, 'a, T: Real> Block<'b, 'a, T> {
    /// Passes the rows to the leaves, which are taken out of the tree.
    fn new(
        tree: &'b mut Tree<T>,
        piece: &'b Piece<'a>,
        first: usize,
        count: usize,
        split_draws: u64,
    ) -> Result<Self> {
        let states = try_vec![0; count]?;
        let mut block = Self {
            tree,
            piece,
            first,
            leaves: Vec::new(),
            leaf_of: Vec::new(),
            states,
            position: 0,
            failure: None,
            split_draws,
        };
        let mut slots = try_vec![usize::MAX; block.tree.nodes.len()]?;
        for (row, node) in block.route(count)?.into_iter().enumerate() {
            let Some(node) = node else {
                // The block ends before this row.
                block.leaf_of.push(usize::MAX);
                continue;
            };
            if slots[node] == usize::MAX {
                slots[node] = block.leaves.len();
                let leaf = block.take(node, Vec::new())?;
                block.leaves.push(leaf);
            }
            block.leaf_of.push(slots[node]);
            block.leaves[slots[node]].rows.push(row);
        }
        Ok(block)
    }

    /// Returns the node of the leaf of each row.
    fn route(&mut self, count: usize) -> Result<Vec<Option<usize>>> {
        if self.tree.nodes.len() == 1 {
            return try_vec![Some(0); count];
        }
        let tree = &*self.tree;
        let (nodes, failure) = self.pass(&(0..count).collect::<Vec<_>>(), |row, workspace, counter| {
            let Route { leaf, depth, distances, .. } = route(&tree.nodes, &tree.formula, row, workspace)?;
            counter.charge(((depth + distances) * row.features().max(8)) as u64)?;
            Ok(leaf)
        })?;
        self.failure = failure;
        Ok(nodes)
    }

    /// Returns the results of `decide` for rows of the block, and the first row for which it fails with its error.
    fn pass<R: Copy + Send>(
        &self,
        rows: &[usize],
        decide: impl Fn(&RowBuffer<T>, &mut PoolWorkspace<T>, &mut WorkCounter<'_>) -> Result<R> + Sync,
    ) -> Result<(Vec<Option<R>>, Failure)> {
        let mut results = try_vec![None; rows.len()]?;
        let failure = Mutex::new(None);
        let tree = &*self.tree;
        let ctx = self.piece.ctx.for_operations(rows.len().saturating_mul(tree.row.features().max(8)));
        ctx.for_each_chunk(&mut results, ROWS_PER_TASK, |task, results| {
            let (mut row, mut workspace) = (tree.row.another(), PoolWorkspace::new());
            self.piece.with_counter(|counter| {
                for (&number, result) in rows[task * ROWS_PER_TASK..].iter().zip(results) {
                    row.load(&self.piece.rows, self.first + number);
                    match decide(&row, &mut workspace, counter) {
                        Ok(answer) => *result = Some(answer),
                        Err(error) => {
                            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                            return earliest(&mut failure, number, error);
                        }
                    }
                }
            });
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, error @ Error::Stopped(_))) => Err(error),
            failure => Ok((results, failure)),
        }
    }

    /// Takes a leaf out of the tree, for rows of the block.
    fn take(&mut self, at: usize, rows: Vec<usize>) -> Result<GrowingLeaf<T>> {
        let empty = Node::Leaf(Leaf::new(&self.tree.row, Vec::new()));
        let Node::Leaf(leaf) = std::mem::replace(&mut self.tree.nodes[at], empty) else {
            return Err(Error::param("tree", "a path that ends at a rule", "a path to a leaf"));
        };
        let sample_size = leaf.sample.len();
        Ok(GrowingLeaf {
            at,
            leaf,
            rows,
            learned: 0,
            sample_size,
            overflows: false,
            wrong: Vec::new(),
            error: None,
        })
    }

    /// Learns from all rows.
    fn learn_with_splits(&mut self) -> Result<()> {
        loop {
            self.learn()?;
            let mut overflows = self.overflows();
            self.check_failure(overflows.first().map(|&(row, _)| row))?;
            if overflows.is_empty() {
                return Ok(());
            }
            if self.tree.is_grown() {
                self.undo_overflows()?;
                continue;
            }
            overflows.truncate(self.max_candidates());
            let starts = self.predict(&overflows);
            let candidates = {
                let block = &*self;
                block.piece.ctx.map(starts.len(), |i| block.split(overflows[i].1, starts[i]))
            };
            for (i, (candidate, &(row, slot))) in candidates.into_iter().zip(&overflows).enumerate() {
                if i > 0 {
                    self.learn()?;
                    let is_next = self.overflows().first() == Some(&(row, slot));
                    if !is_next || self.failed_before(row) || self.tree.is_grown() {
                        break;
                    }
                }
                if !self.assign(row) || self.tree.random.state() != starts[i] {
                    break;
                }
                self.apply(slot, candidate?)?;
            }
        }
    }

    /// Lets all leaves learn that can.
    fn learn(&mut self) -> Result<()> {
        let Self { tree, piece, first, leaves, .. } = self;
        let (tree, piece, first) = (&**tree, *piece, *first);
        let is_closed = tree.is_grown();
        let mut active: Vec<_> = leaves.iter_mut().filter(|leaf| leaf.can_learn()).collect();
        let rows: usize = active.iter().map(|leaf| leaf.rows.len() - leaf.learned).sum();
        let work = tree.params.work_per_row(&piece.rows) as usize;
        piece.ctx.for_operations(rows.saturating_mul(work)).for_each_chunk(&mut active, 1, |_, leaves| {
            let mut buffers = tree.buffers();
            piece.with_counter(|counter| {
                for leaf in leaves {
                    let result = leaf.learn(tree.shared(), (piece, first), &mut buffers, is_closed, counter);
                    leaf.error = result.err();
                }
            });
        });
        let stopped = leaves.iter_mut().find(|leaf| matches!(leaf.error, Some(Error::Stopped(_))));
        stopped.and_then(|leaf| leaf.error.take()).map_or(Ok(()), Err)
    }

    /// Returns the rows with which leaves overflow and the places of these leaves, in the order of the rows.
    fn overflows(&self) -> Vec<(usize, usize)> {
        let overflow = |(slot, leaf): (usize, &GrowingLeaf<T>)| leaf.overflow().map(|row| (row, slot));
        let mut overflows: Vec<_> = self.leaves.iter().enumerate().filter_map(overflow).collect();
        overflows.sort_unstable();
        overflows
    }

    /// Returns the first row with an error and the place of its leaf, if it has reached a leaf.
    fn first_failure(&self) -> Option<(usize, Option<usize>)> {
        let in_leaf = |(slot, leaf): (usize, &GrowingLeaf<T>)| {
            leaf.error.as_ref().map(|_| (leaf.rows[leaf.learned], Some(slot)))
        };
        let on_path = self.failure.as_ref().map(|&(row, _)| (row, None));
        self.leaves.iter().enumerate().filter_map(in_leaf).chain(on_path).min()
    }

    fn failed_before(&self, row: usize) -> bool {
        self.first_failure().is_some_and(|(failed, _)| failed < row)
    }

    /// Returns the error of the first row that has one, unless a split comes before it.
    fn check_failure(&mut self, next_split: Option<usize>) -> Result<()> {
        match self.first_failure() {
            Some((row, slot)) if next_split.is_none_or(|next| row < next) => {
                let error = match slot {
                    Some(slot) => self.leaves[slot].error.take(),
                    None => self.failure.take().map(|(_, error)| error),
                };
                error.map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    /// Takes back the last vector of leaves that are not split because the tree is grown.
    fn undo_overflows(&mut self) -> Result<()> {
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.overflows) {
            if let Some(&id) = leaf.leaf.ids.last() {
                leaf.leaf.pop(self.tree.outputs)?;
                self.tree.store.release(id);
            }
            leaf.overflows = false;
        }
        Ok(())
    }

    /// Returns the maximum number of splits that are made at the same time.
    fn max_candidates(&self) -> usize {
        let (params, features) = (&self.tree.params, self.tree.row.features());
        let (sample, m) = (params.sample, params.budget.saturating_add(1));
        let of_rows = sample.saturating_mul(features.saturating_mul(4 * size_of::<T>()) + 24 * m);
        let bytes = of_rows.saturating_add(m.saturating_mul(m).saturating_mul(8 * size_of::<f64>()));
        (MAX_SPLIT_BYTES / bytes).clamp(1, self.piece.ctx.threads())
    }

    /// Gives each row up to `last` the state of the generator before it; returns whether all of them had that state.
    fn assign(&mut self, last: usize) -> bool {
        let mut is_unchanged = true;
        for row in self.position..=last {
            let state = self.tree.random.state();
            is_unchanged &= std::mem::replace(&mut self.states[row], state) == state;
            let leaf = &mut self.leaves[self.leaf_of[row]];
            if leaf.sample_size < self.tree.params.sample {
                leaf.sample_size += 1;
            } else {
                self.tree.random.bits();
            }
        }
        self.position = self.position.max(last + 1);
        is_unchanged
    }

    /// Predicts the states of the generator for the rows up to the last of some overflows; returns those at the splits.
    fn predict(&mut self, overflows: &[(usize, usize)]) -> Vec<u64> {
        let mut sizes: Vec<_> = self.leaves.iter().map(|leaf| Some(leaf.sample_size)).collect();
        let (mut random, mut starts) = (self.tree.random, Vec::new());
        let mut remaining = overflows.iter().peekable();
        for row in self.position.min(overflows[0].0)..=overflows[overflows.len() - 1].0 {
            if row >= self.position {
                self.states[row] = random.state();
                match &mut sizes[self.leaf_of[row]] {
                    Some(size) if *size < self.tree.params.sample => *size += 1,
                    Some(_) => {
                        random.bits();
                    }
                    // The children of a split leaf rarely have full samples.
                    None => {}
                }
            }
            if let Some(&(_, slot)) = remaining.next_if(|&&(next, _)| next == row) {
                starts.push(random.state());
                random = Random::new(random.state().wrapping_add(self.split_draws));
                sizes[slot] = None;
            }
        }
        starts
    }

    /// Splits a leaf from a state of the generator, without changing anything.
    fn split(&self, slot: usize, start: u64) -> Result<Candidate<T>> {
        let (tree, piece, growing) = (&*self.tree, self.piece, &self.leaves[slot]);
        let (places, seen) = growing.sampled(growing.learned, &self.states, tree.params.sample);
        let mut rows = tree.rows(growing.leaf.sample.iter().map(|&(id, _)| id))?;
        let mut labels: Vec<u32> = growing.leaf.sample.iter().map(|&(_, label)| label).collect();
        for (place, number) in places.iter().enumerate() {
            let Some(number) = number else { continue };
            if place == rows.len() {
                rows.push(tree.row.another());
                labels.push(0);
            }
            rows[place].load(&piece.rows, self.first + number);
            labels[place] = piece.labels[self.first + number] as u32;
        }
        let mut random = Random::new(start);
        let max_vectors = tree.params.child_budget;
        let division = piece.with_counter(|counter| {
            tree.divide(&growing.leaf, &rows, &labels, max_vectors, &mut random, counter)
        })?;
        Ok(Candidate { places, seen, rows, division, start, random })
    }

    /// Applies a split, and passes the remaining rows of the leaf to its children.
    fn apply(&mut self, slot: usize, candidate: Candidate<T>) -> Result<()> {
        let Candidate { places, seen, rows, division, start, random } = candidate;
        self.tree.random = random;
        self.split_draws = random.state().wrapping_sub(start);
        let growing = &mut self.leaves[slot];
        for (place, number) in places.iter().enumerate() {
            if let Some(number) = number {
                let label = self.piece.labels[self.first + number];
                growing.put(self.tree.shared(), place, &rows[place], label)?;
            }
        }
        let (at, wrong) = (growing.at, std::mem::take(&mut growing.wrong));
        let remaining = growing.rows.split_off(growing.learned);
        let empty = Leaf::new(&self.tree.row, Vec::new());
        let leaf = Leaf { seen, ..std::mem::replace(&mut growing.leaf, empty) };
        self.tree.replace(at, leaf, rows, division)?;
        let Node::Branch { rule, left, right } = &self.tree.nodes[at] else {
            self.leaves[slot] = GrowingLeaf { wrong, ..self.take(at, remaining)? };
            return Ok(());
        };
        let (left, right) = (*left, *right);
        let (sides, failure) = self.sides(rule, &remaining)?;
        if let Some((row, error)) = failure {
            earliest(&mut self.failure, row, error);
        }
        let (mut left_rows, mut right_rows) = (Vec::new(), Vec::new());
        for (&row, side) in remaining.iter().zip(sides) {
            if side == Some(true) {
                left_rows.push(row);
            } else if side == Some(false) {
                self.leaf_of[row] = self.leaves.len();
                right_rows.push(row);
            }
        }
        self.leaves[slot] = GrowingLeaf { wrong, ..self.take(left, left_rows)? };
        let right = self.take(right, right_rows)?;
        self.leaves.push(right);
        Ok(())
    }

    /// Returns whether a rule sends rows left, and the first row for which it fails.
    fn sides(&self, rule: &Rule<T>, rows: &[usize]) -> Result<(Vec<Option<bool>>, Failure)> {
        let formula = &self.tree.formula;
        self.pass(rows, |row, workspace, counter| {
            counter.charge(rule.cost(row.features().max(8)) as u64)?;
            rule.goes_left(formula, row, workspace)
        })
    }

    /// Takes the samples, and puts the leaves back into the tree; adds the mistakes to `wrong`.
    fn finish(&mut self, wrong: &mut Vec<u64>) -> Result<()> {
        self.assign(self.states.len() - 1);
        let Self { tree, piece, first, leaves, states, .. } = self;
        let (shared, row) = (tree.shared(), &tree.row);
        let (piece, first, states) = (*piece, *first, &**states);
        let work = states.len().saturating_mul(row.features().max(8));
        piece.ctx.for_operations(work).try_for_each_chunk(leaves, 1, |_, leaves| {
            let mut row = row.another();
            for growing in leaves {
                let (places, seen) = growing.sampled(growing.rows.len(), states, shared.params.sample);
                for (place, number) in places.into_iter().enumerate() {
                    if let Some(number) = number {
                        row.load(&piece.rows, first + number);
                        growing.put(shared, place, &row, piece.labels[first + number])?;
                    }
                }
                growing.leaf.seen = seen;
            }
            Ok(())
        })?;
        for growing in std::mem::take(&mut self.leaves) {
            wrong.extend(growing.wrong);
            self.tree.nodes[growing.at] = Node::Leaf(growing.leaf);
        }
        Ok(())
    }
}

/// Keeps the error of the earlier row; the end of the work comes before all of them.
fn earliest(failure: &mut Failure, row: usize, error: Error) {
    let is_stop = |error: &Error| matches!(error, Error::Stopped(_));
    let is_earlier = match failure {
        None => true,
        Some((first, previous)) => !is_stop(previous) && (is_stop(&error) || row < *first),
    };
    if is_earlier {
        *failure = Some((row, error));
    }
}
