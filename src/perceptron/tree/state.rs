//! A tree as plain arrays: the form in which a stream is saved between two pieces.
//!
//! Node t is a leaf (kind 0), or sends rows by a linear (1), kernel (2) or nearest-neighbor (3) rule to
//! `children[t, 0]` (left) or `children[t, 1]`. Its members are `members[starts[t]..starts[t + 1]]`, indices of rows:
//! the vectors of a leaf, the vector of a kernel rule, the rows of a nearest-neighbor rule. `weights` has one line of q
//! numbers for each member: in a leaf the coefficients; in a nearest-neighbor rule the first is 1 for rows that went
//! left, and the others are not used. Linear rules take the lines of `directions` in the order of their nodes.
//!
//! Invariant: rows are numbered in the order in which nodes refer to them, so that equal trees have equal arrays.
//! Cost: O(d) for each row, and O(q) for each member.

use super::node::{Leaf, Node, Rule};
use super::rows::Store;
use crate::data::{OwnedRows, Rows, copy_flat};
use crate::error::{Error, Result};
use crate::kernels::{Formula, RowBuffer, RowWriter, VectorPool};
use crate::memory::{try_with_capacity, try_zero_matrix};
use crate::perceptron::params::check_counts;
use crate::simd::Real;
use ndarray::{Array2, aview1, s};
use std::collections::BTreeMap;

const LEAF: u8 = 0;
const LINEAR: u8 = 1;
const KERNEL: u8 = 2;
const NEAREST: u8 = 3;

/// The state of a stream: everything that later rows depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeState {
    /// The distinct rows that nodes and samples name by index, (r, d).
    pub rows: OwnedRows,
    /// Kind of each node, (nodes,).
    pub kinds: Vec<u8>,
    /// Left and right child of each node, (nodes, 2); 0 for leaves.
    pub children: Array2<u64>,
    /// theta or t of each node, (nodes,); 0 for nodes without a threshold.
    pub thresholds: Vec<f64>,
    /// Index of the first member of each node, (nodes + 1,).
    pub starts: Vec<u64>,
    /// Rows that nodes refer to.
    pub members: Vec<u64>,
    /// (members, q).
    pub weights: Array2<f64>,
    /// Accumulator of the averaged perceptron, (members, q): the sum of the additions to each weight of a leaf, each times
    /// the age at which it was made. The weights less this over `age` are those of the average hypothesis.
    pub accumulator: Array2<f64>,
    /// Number of rows that each leaf has seen since its vectors were selected, (nodes,).
    pub age: Vec<u64>,
    /// w of the linear rules, (linear nodes, d).
    pub directions: Array2<f64>,
    /// (nodes, q); 0 for inner nodes.
    pub intercepts: Array2<f64>,
    /// Index of the first sampled row of each node, (nodes + 1,).
    pub sample_starts: Vec<u64>,
    /// Rows of the samples.
    pub sample: Vec<u64>,
    /// Classes of the rows of the samples.
    pub sample_labels: Vec<u64>,
    /// Number of rows that reached each leaf, (nodes,).
    pub leaf_seen: Vec<u64>,
    /// State of the random generator; initially the seed.
    pub random: u64,
    /// Number of rows of the stream so far.
    pub seen: u64,
    /// Number of rows that were predicted wrongly before they were learned from.
    pub mistakes: u64,
}

impl TreeState {
    /// Returns a tree of one empty leaf for a stream with the columns, layout and precision of `like`.
    pub fn new(like: Rows<'_>, outputs: usize, seed: u64) -> Self {
        Self {
            rows: RowWriter::new(like.cols(), like.is_sparse(), like.is_f64()).finish(),
            kinds: vec![LEAF],
            children: Array2::zeros((1, 2)),
            thresholds: vec![0.0],
            starts: vec![0; 2],
            members: Vec::new(),
            weights: Array2::zeros((0, outputs)),
            accumulator: Array2::zeros((0, outputs)),
            age: vec![0],
            directions: Array2::zeros((0, like.cols())),
            intercepts: Array2::zeros((1, outputs)),
            sample_starts: vec![0; 2],
            sample: Vec::new(),
            sample_labels: Vec::new(),
            leaf_seen: vec![0],
            random: seed,
            seen: 0,
            mistakes: 0,
        }
    }

    /// Returns the number of outputs q, one for two classes in a stream.
    pub fn outputs(&self) -> usize {
        self.intercepts.ncols()
    }

    /// Checks the arrays against each other.
    pub(super) fn check(&self) -> Result<()> {
        let (n, q, rows) = (self.kinds.len(), self.outputs(), self.rows.view());
        let linear = self.kinds.iter().map(|&kind| usize::from(kind == LINEAR)).sum::<usize>();
        let lengths = [
            ("nodes of a tree", 1, n.min(1)),
            ("outputs of a tree", 1, q.min(1)),
            ("thresholds of a tree", n, self.thresholds.len()),
            ("starts of a tree", n + 1, self.starts.len()),
            ("sample starts of a tree", n + 1, self.sample_starts.len()),
            ("labels of the samples of a tree", self.sample.len(), self.sample_labels.len()),
            ("counts of the leaves of a tree", n, self.leaf_seen.len()),
            ("rows that the leaves of a tree learned from", n, self.age.len()),
        ];
        for (what, expected, actual) in lengths {
            Error::check_len(what, expected, actual)?;
        }
        Error::check_shape("children of a tree", (n, 2), self.children.dim())?;
        Error::check_shape("intercepts of a tree", (n, q), self.intercepts.dim())?;
        Error::check_shape("weights of a tree", (self.members.len(), q), self.weights.dim())?;
        Error::check_shape("accumulator of a tree", self.weights.dim(), self.accumulator.dim())?;
        Error::check_shape("directions of a tree", (linear, rows.cols()), self.directions.dim())?;
        check_counts(self.seen, self.mistakes)?;
        // The rows that reached the leaves of a converted expansion are not part of a stream.
        check_counts(self.leaf_seen.iter().copied().max().unwrap_or(0), 0)?;
        let age = self.age.iter().copied().max().unwrap_or(0);
        Error::check_param(age <= self.seen, "age", age, format!("at most {}, the rows seen", self.seen))?;
        rows.check_finite("rows of a tree")?;
        for (what, matrix) in [
            ("weights of a tree", &self.weights),
            ("accumulator of a tree", &self.accumulator),
            ("directions of a tree", &self.directions),
            ("intercepts of a tree", &self.intercepts),
        ] {
            Error::check_finite(what, matrix.iter().copied(), matrix.ncols())?;
        }
        Error::check_finite("thresholds of a tree", self.thresholds.iter().copied(), 1)?;
        let broken = |what: &str| Err(Error::param("tree", what, "the arrays that a fitted tree has kept"));
        for (starts, end) in [(&self.starts, self.members.len()), (&self.sample_starts, self.sample.len())] {
            if starts[0] != 0 || starts[n] != end as u64 || starts.windows(2).any(|w| w[0] > w[1]) {
                return broken("starts that do not rise");
            }
        }
        if self.members.iter().chain(&self.sample).any(|&row| row >= rows.rows() as u64) {
            return broken("members that are not rows");
        }
        for node in 0..n {
            // A child comes after its parent, so that every path ends.
            let inner = self.kinds[node] != LEAF;
            if inner && self.children.row(node).iter().any(|&c| c <= node as u64 || c >= n as u64) {
                return broken("children before their parent");
            }
            let members = self.starts[node + 1] - self.starts[node];
            match self.kinds[node] {
                LEAF | LINEAR => {}
                KERNEL if members == 1 => {}
                NEAREST if members >= 1 => {}
                _ => return broken("nodes of an unknown kind"),
            }
        }
        Ok(())
    }

    /// Returns the nodes, with their samples if `samples`, and the store of their rows.
    pub(super) fn build<T: Real>(
        &self,
        formula: &Formula<T>,
        samples: bool,
    ) -> Result<(Vec<Node<T>>, Store<T>)> {
        self.check()?;
        let view = self.rows.view();
        let (features, sparse) = (view.cols(), view.is_sparse());
        let store = Store::new(features, sparse);
        let mut row = formula.row(features);
        let mut directions = self.directions.rows().into_iter();
        let mut nodes = Vec::with_capacity(self.kinds.len());
        for node in 0..self.kinds.len() {
            let range = self.starts[node] as usize..self.starts[node + 1] as usize;
            let weights = self.weights.slice(s![range.clone(), ..]);
            let mut pool = VectorPool::new(features, sparse);
            let mut ids = Vec::with_capacity(range.len());
            for &member in &self.members[range.clone()] {
                row.load(&view, member as usize);
                pool.push(&row)?;
                ids.push(if samples { store.intern(&row)? } else { member as u32 });
            }
            let threshold = self.thresholds[node];
            let rule = match self.kinds[node] {
                LINEAR => Rule::Linear {
                    direction: directions
                        .next()
                        .map(|w| w.iter().map(|&w| T::from_f64(w)).collect::<Vec<_>>())
                        .unwrap_or_default(),
                    threshold,
                },
                KERNEL => Rule::Kernel { id: ids[0], vector: pool, threshold },
                NEAREST => Rule::Nearest {
                    ids,
                    rows: pool,
                    left: weights.column(0).iter().map(|&w| w != 0.0).collect(),
                },
                _ => {
                    let mut sample = Vec::new();
                    if samples {
                        for at in self.sample_starts[node] as usize..self.sample_starts[node + 1] as usize {
                            row.load(&view, self.sample[at] as usize);
                            sample.push((store.intern(&row)?, self.sample_labels[at] as u32));
                        }
                    }
                    nodes.push(Node::Leaf(Leaf {
                        ids,
                        pool,
                        coefficients: copy_flat(weights)?,
                        accumulator: copy_flat(self.accumulator.slice(s![range.clone(), ..]))?,
                        age: self.age[node],
                        intercepts: self.intercepts.row(node).iter().copied().collect(),
                        sample,
                        seen: self.leaf_seen[node],
                    }));
                    continue;
                }
            };
            let (left, right) = (self.children[[node, 0]] as usize, self.children[[node, 1]] as usize);
            nodes.push(Node::Branch { rule, left, right });
        }
        Ok((nodes, store))
    }

    /// Returns the arrays of a tree; the counts of rows and mistakes are 0.
    pub(super) fn from_nodes<T: Real>(
        nodes: &[Node<T>],
        store: &Store<T>,
        outputs: usize,
        row: &mut RowBuffer<T>,
    ) -> Result<Self> {
        let (features, sparse, double) =
            (row.features(), row.is_sparse(), size_of::<T>() == size_of::<f64>());
        let mut writer = RowWriter::new(features, sparse, double);
        let mut state = Self::new(RowWriter::new(features, sparse, double).finish().view(), outputs, 0);
        let mut numbers: BTreeMap<u32, u64> = BTreeMap::new();
        let mut number = |id: u32| {
            let next = numbers.len() as u64;
            let number = *numbers.entry(id).or_insert(next);
            if number == next {
                store.read(id, row);
                writer.push(row)?;
            }
            Ok::<u64, Error>(number)
        };
        let (members, linear) = nodes.iter().fold((0, 0), |(members, linear), node| match node {
            Node::Leaf(leaf) => (members + leaf.ids.len(), linear),
            Node::Branch { rule: Rule::Linear { .. }, .. } => (members, linear + 1),
            Node::Branch { rule: Rule::Kernel { .. }, .. } => (members + 1, linear),
            Node::Branch { rule: Rule::Nearest { ids, .. }, .. } => (members + ids.len(), linear),
        });
        let numbers_of = |lines: usize, length| try_with_capacity("the arrays of a tree", lines * length);
        let (mut weights, mut accumulator) = (numbers_of(members, outputs)?, numbers_of(members, outputs)?);
        let mut directions = numbers_of(linear, features)?;
        let n = nodes.len();
        state.children = Array2::zeros((n, 2));
        state.intercepts = try_zero_matrix("a matrix of results", (n, outputs))?;
        (state.kinds, state.thresholds) = (vec![LEAF; n], vec![0.0; n]);
        (state.leaf_seen, state.age) = (vec![0; n], vec![0; n]);
        state.starts.truncate(1);
        state.sample_starts.truncate(1);
        for (at, node) in nodes.iter().enumerate() {
            match node {
                Node::Leaf(leaf) => {
                    for &id in &leaf.ids {
                        state.members.push(number(id)?);
                    }
                    weights.extend_from_slice(&leaf.coefficients);
                    accumulator.extend_from_slice(&leaf.accumulator);
                    state.age[at] = leaf.age;
                    for &(id, label) in &leaf.sample {
                        state.sample.push(number(id)?);
                        state.sample_labels.push(u64::from(label));
                    }
                    state.intercepts.row_mut(at).assign(&aview1(&leaf.intercepts));
                    state.leaf_seen[at] = leaf.seen;
                }
                Node::Branch { rule, left, right } => {
                    state.children.row_mut(at).assign(&aview1(&[*left as u64, *right as u64]));
                    state.kinds[at] = match rule {
                        Rule::Linear { direction, threshold } => {
                            directions.extend(direction.iter().map(|w| w.to_f64()));
                            state.thresholds[at] = *threshold;
                            LINEAR
                        }
                        Rule::Kernel { id, threshold, .. } => {
                            state.members.push(number(*id)?);
                            weights.extend(std::iter::repeat_n(0.0, outputs));
                            state.thresholds[at] = *threshold;
                            KERNEL
                        }
                        Rule::Nearest { ids, left, .. } => {
                            for (&id, &left) in ids.iter().zip(left) {
                                state.members.push(number(id)?);
                                weights.push(f64::from(u8::from(left)));
                                weights.extend(std::iter::repeat_n(0.0, outputs - 1));
                            }
                            NEAREST
                        }
                    };
                }
            }
            // The weights of the members of rules are not learned.
            accumulator.resize(weights.len(), 0.0);
            state.starts.push(state.members.len() as u64);
            state.sample_starts.push(state.sample.len() as u64);
        }
        state.weights = to_matrix(weights, (state.members.len(), outputs));
        state.accumulator = to_matrix(accumulator, (state.members.len(), outputs));
        state.directions = to_matrix(directions, (linear, features));
        state.rows = writer.finish();
        Ok(state)
    }
}

/// Returns the matrix of row-major values.
fn to_matrix(values: Vec<f64>, shape: (usize, usize)) -> Array2<f64> {
    Array2::from_shape_vec(shape, values).expect("whole lines were written")
}
