//! Algorithm 2 over a stream: the leaf of a row answers and learns; a leaf above the budget is split.
//!
//! A leaf keeps a uniform sample of the rows that reached it (Vitter's algorithm R). At a split each child inherits its
//! side of the sample, as a sample of its share of the rows. A mistake on a row that is already a vector of its leaf adds to
//! that vector's coefficients.
//!
//! The hypothesis of a leaf changes with its mistakes. The leaf also accumulates the average of its hypotheses, each
//! weighted by the number of rows that it answered (Freund and Schapire, Machine Learning 37, 1999). Averages can answer at
//! prediction; they do not learn. They restart when the vectors of a leaf are selected, that is in a child.
//!
//! Invariant between two rows: no leaf has more than B vectors. If no rule divides the sample of a leaf (all rows are
//! equal), it remains a leaf and keeps the best C of its vectors. Cost of a row: its path and B kernel values; of a split,
//! see `split`.

use super::learning::{Buffers, Outcome, Shared};
use super::node::{Leaf, Node, Rule, route};
use super::params::TreeParams;
use super::partition::Cut;
use super::rows::Store;
use super::split::{Problem, Split};
use super::state::TreeState;
use super::strategy::{Selection, Strategy};
use crate::context::{Context, WorkCounter};
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{Formula, PoolWorkspace, RowBuffer, VectorPool};
use crate::memory::{try_with_capacity, try_zeros};
use crate::perceptron::params::check_values;
use crate::random::Random;
use crate::simd::Real;

/// A split of a leaf, or the vectors that it keeps if no rule divides its rows.
pub(super) type Division<T> = (Option<Split<T>>, Vec<bool>);

/// A tree that learns.
pub(super) struct Tree<T> {
    pub(super) params: TreeParams,
    pub(super) formula: Formula<T>,
    pub(super) nodes: Vec<Node<T>>,
    pub(super) store: Store<T>,
    pub(super) random: Random,
    pub(super) row: RowBuffer<T>,
    pub(super) workspace: PoolWorkspace<T>,
    pub(super) outputs: usize,
}

impl<T: Real> Tree<T> {
    /// Returns a tree without nodes, for rows laid out like those of `like`.
    pub(super) fn new(params: TreeParams, like: Rows<'_>, q: usize, seed: u64) -> Result<Self> {
        let (features, sparse) = (like.cols(), like.is_sparse());
        let formula = Formula::of(&params.kernel, sparse)?;
        Ok(Self {
            params,
            formula,
            nodes: Vec::new(),
            store: Store::new(features, sparse),
            random: Random::new(seed),
            row: formula.row(features),
            workspace: PoolWorkspace::new(),
            outputs: q,
        })
    }

    /// Returns the arrays of the tree; the counts of rows and mistakes are 0.
    pub(super) fn state(&mut self) -> Result<TreeState> {
        let arrays = TreeState::from_nodes(&self.nodes, &self.store, self.outputs, &mut self.row);
        Ok(TreeState { random: self.random.state(), ..arrays? })
    }

    /// Returns what the leaves share.
    pub(super) fn shared(&self) -> Shared<'_, T> {
        Shared { params: &self.params, formula: &self.formula, store: &self.store }
    }

    /// Returns buffers for a thread.
    pub(super) fn buffers(&self) -> Buffers<T> {
        let scores = vec![0.0; self.outputs];
        Buffers { row: self.row.another(), workspace: PoolWorkspace::new(), scores }
    }

    /// Returns whether the tree has the maximum number of leaves.
    pub(super) fn is_grown(&self) -> bool {
        // A binary tree of n nodes has (n + 1) / 2 leaves.
        self.nodes.len().div_ceil(2) >= self.params.max_leaves
    }

    /// Learns from rows on the calling thread; returns those that were mistakes.
    pub(super) fn learn_in_order(
        &mut self,
        rows: &Rows<'_>,
        labels: &[usize],
        ctx: Context<'_>,
    ) -> Result<Vec<u64>> {
        let mut counter = ctx.counter("stream", labels.len());
        let (mut wrong, mut buffers) = (Vec::new(), self.buffers());
        let work = self.params.work_per_row(rows) as usize;
        for (i, &label) in labels.iter().enumerate() {
            counter.charge_row(work)?;
            buffers.row.load(rows, i);
            if self.learn(i, label, &mut buffers, &mut counter)? {
                wrong.push(i as u64);
            }
        }
        Ok(wrong)
    }

    /// Answers and learns from the row in the buffers; returns whether it was a mistake.
    fn learn(
        &mut self,
        number: usize,
        label: usize,
        buffers: &mut Buffers<T>,
        counter: &mut WorkCounter<'_>,
    ) -> Result<bool> {
        let at = route(&self.nodes, &self.formula, &buffers.row, &mut buffers.workspace)?.leaf;
        let is_grown = self.is_grown();
        let Node::Leaf(leaf) = &mut self.nodes[at] else { return Ok(false) };
        let tree = Shared { params: &self.params, formula: &self.formula, store: &self.store };
        let outcome = leaf.learn(tree, number, label, buffers)?;
        leaf.seen += 1;
        if leaf.sample.len() < self.params.sample {
            leaf.sample.push((self.store.intern(&buffers.row)?, label as u32));
        } else {
            let place = self.random.below(leaf.seen) as usize;
            if place < leaf.sample.len() {
                let id = self.store.intern(&buffers.row)?;
                let (old, _) = std::mem::replace(&mut leaf.sample[place], (id, label as u32));
                self.store.release(old);
            }
        }
        match outcome {
            Outcome::Correct => return Ok(false),
            Outcome::Learned => {}
            // The leaf learns no new vectors.
            Outcome::Overflow { id, .. } if is_grown => self.store.release(id),
            Outcome::Overflow { id, update } => {
                leaf.learn_vector(id, update, &buffers.row, self.outputs)?;
                self.split(at, counter)?;
            }
        }
        Ok(true)
    }

    /// Splits a leaf (SPLIT of algorithm 2).
    fn split(&mut self, at: usize, counter: &mut WorkCounter<'_>) -> Result<()> {
        let empty = Node::Leaf(Leaf::new(&self.row, Vec::new()));
        let Node::Leaf(leaf) = std::mem::replace(&mut self.nodes[at], empty) else { return Ok(()) };
        let rows = self.rows(leaf.sample.iter().map(|&(id, _)| id))?;
        let labels: Vec<u32> = leaf.sample.iter().map(|&(_, label)| label).collect();
        let mut random = self.random;
        let division = self.divide(&leaf, &rows, &labels, self.params.child_budget, &mut random, counter)?;
        self.random = random;
        self.replace(at, leaf, rows, division)
    }

    /// Replaces a leaf by a branch with two children, or by itself with fewer vectors if no rule divides its rows.
    pub(super) fn replace(
        &mut self,
        at: usize,
        leaf: Leaf<T>,
        rows: Vec<RowBuffer<T>>,
        (split, selected): Division<T>,
    ) -> Result<()> {
        if let Some(split) = split {
            return self.branch(at, leaf, rows, &split);
        }
        let child = self.child(&leaf, &selected);
        self.release(&leaf.ids);
        self.nodes[at] = Node::Leaf(Leaf { sample: leaf.sample, seen: leaf.seen, ..child? });
        Ok(())
    }

    /// Returns the rows with the given ids.
    pub(super) fn rows(&self, ids: impl Iterator<Item = u32>) -> Result<Vec<RowBuffer<T>>> {
        ids.map(|id| {
            let mut row = self.row.another();
            self.store.read(id, &mut row);
            Ok(row)
        })
        .collect()
    }

    /// Returns a split of a leaf, or the vectors that it keeps if no rule divides its rows.
    pub(super) fn divide(
        &self,
        leaf: &Leaf<T>,
        rows: &[RowBuffer<T>],
        labels: &[u32],
        max_vectors: usize,
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Division<T>> {
        let (n, m) = (rows.len(), leaf.ids.len());
        let mut workspace = PoolWorkspace::new();
        let values_of_a_row = (m * self.row.features().max(8)) as u64;
        let mut kernel = try_zeros("kernel values of a split", n * m)?;
        for (i, row) in rows.iter().enumerate() {
            counter.charge(values_of_a_row)?;
            leaf.to_columns(&self.formula, row, &mut workspace, i, &mut kernel);
        }
        let induced = matches!(self.params.strategy, Strategy::Heuristic(_, Selection::Induced));
        let vectors = if induced { self.rows(leaf.ids.iter().copied()) } else { Ok(Vec::new()) }?;
        let mut gram = try_with_capacity("kernel values of a split", vectors.len() * m)?;
        for vector in &vectors {
            counter.charge(values_of_a_row)?;
            gram.extend(
                leaf.pool.values(&self.formula, vector, &mut workspace).iter().map(|value| value.to_f64()),
            );
        }
        let double = size_of::<T>() == size_of::<f64>();
        check_values(&self.params.kernel, 0, kernel.iter().chain(&gram).copied(), double)?;
        let problem = Problem {
            rows,
            labels,
            vectors: &vectors,
            kernel: &kernel,
            gram: &gram,
            coefficients: &leaf.coefficients,
            outputs: self.outputs,
            max_vectors,
            draws: self.params.draws,
            target: Vec::new(),
            total: ndarray::Array2::zeros((0, 0)),
        }
        .prepare(counter)?;
        Ok(match problem.split(self.params.strategy, random, counter)? {
            Some(split) => (Some(split), Vec::new()),
            None => (None, problem.reduce(random, counter)?),
        })
    }

    /// Returns a leaf with the selected vectors of another one, and adds a reference to each.
    pub(super) fn child(&self, leaf: &Leaf<T>, chosen: &[bool]) -> Result<Leaf<T>> {
        let (q, mut row) = (self.outputs, self.row.another());
        let mut child = Leaf::new(&self.row, leaf.intercepts.clone());
        for (j, &id) in leaf.ids.iter().enumerate().filter(|&(j, _)| chosen[j]) {
            self.store.retain(id);
            self.store.read(id, &mut row);
            child.push(id, &row, leaf.coefficients[j * q..(j + 1) * q].iter().copied())?;
        }
        Ok(child)
    }

    /// Returns the branching rule of a split, and adds a reference to each of its rows.
    pub(super) fn rule(
        &self,
        leaf: &Leaf<T>,
        rows: &[RowBuffer<T>],
        sample: &[u32],
        split: &Split<T>,
    ) -> Result<Rule<T>> {
        match &split.cut {
            Cut::Linear { direction, threshold } => {
                Ok(Rule::Linear { direction: direction.clone(), threshold: *threshold })
            }
            Cut::Vector { vector, threshold } => {
                let mut chosen = vec![false; leaf.ids.len()];
                chosen[*vector] = true;
                let alone = self.child(leaf, &chosen)?;
                Ok(Rule::Kernel { id: alone.ids[0], vector: alone.pool, threshold: *threshold })
            }
            Cut::Nearest => {
                let mut pool = VectorPool::new(self.row.features(), self.row.is_sparse());
                for (row, &id) in rows.iter().zip(sample) {
                    pool.push(row)?;
                    self.store.retain(id);
                }
                Ok(Rule::Nearest { ids: sample.to_vec(), rows: pool, left: split.rows.clone() })
            }
        }
    }

    /// Replaces a leaf by a branch with two children.
    fn branch(&mut self, at: usize, leaf: Leaf<T>, rows: Vec<RowBuffer<T>>, split: &Split<T>) -> Result<()> {
        let sample: Vec<u32> = leaf.sample.iter().map(|&(id, _)| id).collect();
        let rule = self.rule(&leaf, &rows, &sample, split)?;
        let mut children = [self.child(&leaf, &split.left)?, self.child(&leaf, &split.right)?];
        for (&member, &left) in leaf.sample.iter().zip(&split.rows) {
            children[usize::from(!left)].sample.push(member);
        }
        for child in &mut children {
            child.seen =
                (leaf.seen as f64 * child.sample.len() as f64 / leaf.sample.len() as f64).round() as u64;
        }
        self.release(&leaf.ids);
        let left = self.nodes.len();
        self.nodes[at] = Node::Branch { rule, left, right: left + 1 };
        self.nodes.extend(children.map(Node::Leaf));
        Ok(())
    }

    /// Releases the vectors of a leaf.
    fn release(&self, ids: &[u32]) {
        for &id in ids {
            self.store.release(id);
        }
    }
}
