//! A kernel expansion as a tree of local ones (section 1: "a post-processing step to any kernel-based classifier").
//!
//! The root inherits all m vectors. A node above the budget is split like a leaf of a growing tree, on a sample of the rows
//! that reach it, and each child inherits at most half of its vectors (or the budget, if that is more): log2(m / B)
//! levels. Without a refit this is the tree. With a refit, each leaf selects B vectors among all m by a matching pursuit
//! with pre-fitting and takes the coefficients that minimize
//! sum_i |sum_j beta_j k(x_i, z_j) + b - f(x_i)|^2 + alpha n beta'K beta over its n rows, with f the whole
//! expansion. All outputs share partition, vectors and matrix.
//!
//! Rows of a refit are those that reach the leaf, and, where these are few for its B coefficients, rows on the other side of
//! the hyperplanes close to them, as in a spill tree (Liu, Moore, Gray and Yang 2004). On letter with 5,000 rows and 50
//! vectors the tree errs at 8.0 % with them; a model of it errs at 9.9 % without.
//!
//! The leaves select among all m vectors because fewer candidates are worse: with the vectors that the programs keep, or a
//! forward selection among 8 B of them, the tree errs at 3.3 % and 2.5 %, with all at 1.4 %, the expansion itself at 1.3 %
//! (ijcnn1). So a partition that does not depend on the vectors needs no programs before a refit.
//!
//! Invariant: every row is in exactly one open node or finished leaf as one that reaches it.
//!
//! Cost: with programs, at the root O(s m^2) a round for s sampled rows, half at each further level, memory m^2; the
//! selections O(n m B) and the fits O(n B^2) for each leaf of n rows, leaves at the same time.

use super::grow::Tree;
use super::node::{Leaf, Node, Rule, projection};
use super::params::TreeParams;
use super::partition::{Cut, explaining_direction, halved, random_direction};
use super::program::lower_products;
use super::split::Split;
use super::state::TreeState;
use super::strategy::{Partition, Strategy};
use crate::context::{Context, WorkCounter};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, RowBuffer, gram, gram_symmetric};
use crate::linalg::cholesky;
use crate::matching_pursuit::{
    BuiltIn, KernelFunctions, MatchingParams, Measure, Storage, Task, Variant, matching_pursuit,
};
use crate::memory::try_vec;
use crate::perceptron::params::{check_piece, check_stream};
use crate::simd::Real;
use crate::simd::blas::dot;
use ndarray::{Array2, Axis, aview1};
use std::collections::BTreeMap;

/// Maximum number of vectors of an expansion whose nodes are split by programs; that at the root takes memory of its square.
const MAX_VECTORS: usize = 16_384;

/// Ridge of the fits as a share of the largest diagonal entry.
const RELATIVE_RIDGE: f64 = 1e-11;

/// Maximum number of rows on which a leaf selects its vectors.
const MAX_SELECTION_ROWS: usize = 1536;
/// Maximum number of bytes of kernel values that a selection keeps.
const MAX_SELECTION_BYTES: usize = 1 << 28;
/// Number of rows for each vector of a leaf that a fit needs, and the maximum share of rows from other leaves.
const ROWS_PER_VECTOR: f64 = 3.0;
const MAX_OVERLAP: f64 = 4.0;
/// Number of leaves for each thread that are fitted between two changes of the tree.
const LEAVES_PER_THREAD: usize = 4;

/// Parameters of a conversion.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ConvertParams {
    /// B: maximum number of vectors of a leaf.
    pub budget: usize,
    /// Number of rows on which a node is split, and of rows that a leaf keeps.
    pub sample: usize,
    /// If true, leaves store rows, from which they may learn later.
    pub keeps_samples: bool,
    /// Number of draws when a fractional selection is rounded.
    pub draws: usize,
    /// Strategy of splitting a node.
    pub strategy: Strategy,
    /// alpha of the fits in the leaves; `None` keeps the expansion's coefficients.
    pub refit: Option<f64>,
    /// Seed of all random choices.
    pub seed: u64,
}

impl ConvertParams {
    /// Returns the parameters of leaves of at most `budget` vectors fitted without a penalty, with 512 rows and 100 draws
    /// for a split.
    pub fn new(budget: usize, strategy: Strategy) -> Self {
        Self { budget, sample: 512, keeps_samples: true, draws: 100, strategy, refit: Some(0.0), seed: 0 }
    }

    /// Returns the partition, if no node needs its vectors for it.
    fn free_partition(&self) -> Option<Partition> {
        match self.strategy {
            Strategy::Heuristic(partition @ (Partition::Explaining | Partition::RandomHyperplane), _) => {
                self.refit.map(|_| partition)
            }
            _ => None,
        }
    }
}

/// Converts an expansion to a tree, split by the given rows; `labels` are their classes.
///
/// # Errors
/// [`Error::Param`] for an expansion of too many vectors and for parameters outside their rules, [`Error::Shape`]
/// and [`Error::NotFinite`] for rows that do not fit, [`Error::Stopped`] when the monitor stops the work.
pub fn from_expansion(
    expansion: &ExpansionView<'_>,
    rows: Rows<'_>,
    labels: &[usize],
    classes: usize,
    params: &ConvertParams,
    ctx: Context<'_>,
) -> Result<TreeState> {
    check_stream(&expansion.kernel, classes)?;
    check_piece(&expansion.kernel, classes, expansion.vectors.cols(), rows, labels)?;
    let rule =
        format!("an expansion of at most {MAX_VECTORS} vectors for this split and refit; compress it first");
    let size = format!("{} vectors", expansion.len());
    let has_programs = params.free_partition().is_none();
    Error::check_param(expansion.len() <= MAX_VECTORS || !has_programs, "model", size, rule)?;
    Error::check_param(rows.rows() > 0, "X", "(0 rows)", "at least one row")?;
    Error::check_not_negative("alpha", params.refit.unwrap_or(0.0))?;
    let tree = TreeParams {
        kernel: expansion.kernel,
        classes,
        budget: params.budget,
        child_budget: params.budget.div_ceil(2),
        sample: params.sample,
        draws: params.draws,
        max_leaves: usize::MAX,
        strategy: params.strategy,
    };
    tree.check()?;
    let mut counter = ctx.counter("tree", rows.rows());
    let mut targets = Vec::new();
    if params.refit.is_some() {
        let evaluator = Evaluator::new(expansion)?;
        let work = (expansion.len() * rows.cols().max(8)) as u64;
        counter.for_each_batch(rows.rows(), work, |part, _| {
            let outputs = evaluator.evaluate(rows.slice(part), ctx.silent())?;
            targets.extend(outputs - aview1(expansion.intercepts));
            Ok(())
        })?;
    }
    let shape = (targets.len() / expansion.outputs(), expansion.outputs());
    let targets = Array2::from_shape_vec(shape, targets).expect("a line of outputs a row");
    let expansion = &expansion.reborrow();
    let source = Source { expansion, rows: rows.reborrow(), labels, targets: &targets, params };
    if expansion.vectors.is_f64() {
        Conversion::<f64>::new(source, tree, counter)?.run()
    } else {
        Conversion::<f32>::new(source, tree, counter)?.run()
    }
}

/// The expansion, the rows and the parameters of a conversion.
struct Source<'a> {
    expansion: &'a ExpansionView<'a>,
    rows: Rows<'a>,
    labels: &'a [usize],
    /// f less its intercepts at all rows; empty without a refit.
    targets: &'a Array2<f64>,
    params: &'a ConvertParams,
}

#[derive(Default)]
struct NodeRows {
    /// The rows that reach it.
    inside: Vec<usize>,
    /// Rows on the other side of hyperplanes, close to them.
    near: Vec<usize>,
}

/// A node that may be split.
struct OpenNode {
    at: usize,
    /// Number of vectors that it inherits.
    vectors: usize,
    rows: NodeRows,
}

/// A leaf that is to be fitted.
struct FinishedLeaf {
    at: usize,
    rows: Vec<usize>,
    /// The rows on which it selects its vectors.
    selection: Vec<usize>,
}

/// The state of a conversion.
struct Conversion<'a, T> {
    source: Source<'a>,
    tree: Tree<T>,
    /// All distinct vectors in one leaf.
    root: Leaf<T>,
    /// Place of each vector of the expansion in the root, and a vector of each place.
    slots: Vec<usize>,
    firsts: Vec<usize>,
    open: Vec<OpenNode>,
    finished: Vec<FinishedLeaf>,
    /// Share of a node's rows on each side of its hyperplane that the other side gets too.
    spill: f64,
    counter: WorkCounter<'a>,
}

impl<'a, T: Real> Conversion<'a, T> {
    /// Puts all vectors into the root.
    fn new(source: Source<'a>, params: TreeParams, counter: WorkCounter<'a>) -> Result<Self> {
        let (vectors, q) = (source.expansion.vectors, source.expansion.outputs());
        let mut tree = Tree::<T>::new(params, vectors, q, source.params.seed)?;
        let mut root = Leaf::new(&tree.row, source.expansion.intercepts.to_vec());
        let (mut known, mut slots) = (BTreeMap::new(), Vec::with_capacity(vectors.rows()));
        let mut firsts = Vec::new();
        for i in 0..vectors.rows() {
            tree.row.load(&vectors, i);
            let id = tree.store.intern(&tree.row)?;
            let slot = *known.entry(id).or_insert(root.ids.len());
            slots.push(slot);
            if slot == root.ids.len() {
                root.push(id, &tree.row, std::iter::repeat_n(0.0, q))?;
                firsts.push(i);
            }
            for c in 0..q {
                root.coefficients[slot * q + c] += source.expansion.coefficients[[i, c]];
            }
        }
        let inherits = source.params.free_partition().is_none();
        let all = tree.child(&root, &vec![inherits; root.ids.len()])?;
        tree.nodes.push(Node::Leaf(all));
        let (m, n) = (root.ids.len(), source.rows.rows());
        let rows = NodeRows { inside: (0..n).collect(), near: Vec::new() };
        let open = vec![OpenNode { at: 0, vectors: m, rows }];
        let spill = if source.params.refit.is_some() { spill(m, n, source.params.budget) } else { 0.0 };
        Ok(Self { source, tree, root, slots, firsts, open, finished: Vec::new(), spill, counter })
    }

    /// Splits nodes until all are finished, and fits the leaves.
    fn run(mut self) -> Result<TreeState> {
        let budget = self.source.params.budget;
        while let Some(node) = self.open.pop() {
            if node.vectors <= budget {
                self.finish(node)?;
            } else {
                self.divide(node)?;
            }
        }
        self.fit()?;
        self.tree.state()
    }

    /// Splits a node. If no rule divides its rows, it keeps its best vectors, or is finished if its vectors do not matter.
    fn divide(&mut self, node: OpenNode) -> Result<()> {
        let (source, tree) = (&self.source, &mut self.tree);
        let empty = Node::Leaf(Leaf::new(&tree.row, self.root.intercepts.clone()));
        let Node::Leaf(leaf) = std::mem::replace(&mut tree.nodes[node.at], empty) else { return Ok(()) };
        let max_vectors = node.vectors.div_ceil(2).max(source.params.budget);
        let inside = &node.rows.inside;
        let chosen = tree.random.sample(inside.len(), inside.len().min(source.params.sample));
        let chosen: Vec<usize> = chosen.into_iter().map(|i| inside[i]).collect();
        let mut sample = Vec::with_capacity(chosen.len());
        for &i in &chosen {
            let mut row: RowBuffer<T> = tree.row.another();
            row.load(&source.rows, i);
            sample.push(row);
        }
        let split = if let Some(partition) = source.params.free_partition() {
            let direction = match partition {
                Partition::Explaining if !sample.is_empty() => {
                    let columns = source.targets.columns().into_iter();
                    let target: Vec<f64> =
                        columns.flat_map(|output| chosen.iter().map(move |&i| output[i])).collect();
                    explaining_direction(&sample, &target)
                }
                _ if sample.is_empty() => Vec::new(),
                _ => random_direction(&sample, &mut tree.random),
            };
            let Some((cut, rows)) = halved(&sample, direction) else { return self.finish(node) };
            Split { cut, rows, left: Vec::new(), right: Vec::new() }
        } else {
            let labels: Vec<u32> = chosen.iter().map(|&i| source.labels[i] as u32).collect();
            let mut random = tree.random;
            let division = tree.divide(&leaf, &sample, &labels, max_vectors, &mut random, &mut self.counter);
            tree.random = random;
            let (split, selected) = division?;
            let Some(split) = split else {
                tree.nodes[node.at] = Node::Leaf(tree.child(&leaf, &selected)?);
                self.open.push(OpenNode {
                    vectors: selected.iter().filter(|selected| **selected).count(),
                    ..node
                });
                return Ok(());
            };
            split
        };
        let stored: Vec<u32> = match split.cut {
            Cut::Nearest => sample.iter().map(|row| tree.store.intern(row)).collect::<Result<Vec<_>>>()?,
            _ => Vec::new(),
        };
        let rule = tree.rule(&leaf, &sample, &stored, &split)?;
        let children = [tree.child(&leaf, &split.left)?, tree.child(&leaf, &split.right)?];
        let left = tree.nodes.len();
        let counts = children
            .each_ref()
            .map(|child| if split.left.is_empty() { max_vectors } else { child.ids.len() });
        tree.nodes.extend(children.map(Node::Leaf));
        let [left_rows, right_rows] = self.distribute(&rule, &node.rows)?;
        let child = |side: usize, rows| OpenNode { at: left + side, vectors: counts[side], rows };
        self.open.extend([child(1, right_rows), child(0, left_rows)]);
        self.tree.nodes[node.at] = Node::Branch { rule, left, right: left + 1 };
        Ok(())
    }

    /// Returns the rows of both children.
    fn distribute(&mut self, rule: &Rule<T>, rows: &NodeRows) -> Result<[NodeRows; 2]> {
        let tree = &mut self.tree;
        let cost = rule.cost(tree.row.features().max(8)) as u64;
        let mut children = [NodeRows::default(), NodeRows::default()];
        let mut borders = [Vec::new(), Vec::new()];
        let n_inside = rows.inside.len();
        for (place, &i) in rows.inside.iter().chain(&rows.near).enumerate() {
            self.counter.charge(cost)?;
            tree.row.load(&self.source.rows, i);
            let side = usize::from(!rule.goes_left(&tree.formula, &tree.row, &mut tree.workspace)?);
            let NodeRows { inside, near } = &mut children[side];
            if place < n_inside { inside } else { near }.push(i);
            if let Rule::Linear { direction, threshold } = rule {
                borders[side].push(((projection(direction, &tree.row) - threshold).abs(), i));
            }
        }
        let count = (self.spill * (n_inside + rows.near.len()) as f64) as usize;
        for (side, mut border) in borders.into_iter().enumerate() {
            border.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            children[1 - side].near.extend(border.into_iter().take(count).map(|(_, i)| i));
        }
        Ok(children)
    }

    /// Finishes a leaf: draws the sample that it keeps, and the rows on which it selects its vectors.
    fn finish(&mut self, node: OpenNode) -> Result<()> {
        let (source, tree) = (&self.source, &mut self.tree);
        let OpenNode { at, rows: NodeRows { inside: mut rows, near }, .. } = node;
        self.counter.advance(rows.len());
        let n_samples = if source.params.keeps_samples { rows.len().min(source.params.sample) } else { 0 };
        let chosen = tree.random.sample(rows.len(), n_samples);
        let Node::Leaf(leaf) = &mut tree.nodes[at] else { return Ok(()) };
        leaf.seen = rows.len() as u64;
        for i in chosen {
            tree.row.load(&source.rows, rows[i]);
            leaf.sample.push((tree.store.intern(&tree.row)?, source.labels[rows[i]] as u32));
        }
        if source.params.refit.is_some() && !rows.is_empty() {
            rows.extend(near);
            let chosen = tree.random.sample(rows.len(), rows.len().min(MAX_SELECTION_ROWS));
            let selection = chosen.into_iter().map(|i| rows[i]).collect();
            self.finished.push(FinishedLeaf { at, rows, selection });
        }
        Ok(())
    }

    /// Selects the vectors of all leaves and fits their coefficients, some leaves at the same time.
    fn fit(&mut self) -> Result<()> {
        let ctx = self.counter.context();
        let finished = std::mem::take(&mut self.finished);
        for part in finished.chunks(LEAVES_PER_THREAD * ctx.threads()) {
            let (source, slots, firsts) = (&self.source, &self.slots, &self.firsts);
            let fitted = ctx.try_map(part.len(), |i| {
                // The threads divide the rows of a few large leaves.
                let ctx = if part.len() < ctx.threads() { ctx } else { ctx.sequential() };
                source.fitted(&part[i], (slots, firsts), ctx)
            })?;
            for (finished, (chosen, coefficients)) in part.iter().zip(fitted) {
                let child = self.tree.child(&self.root, &chosen)?;
                if let Node::Leaf(leaf) = &mut self.tree.nodes[finished.at] {
                    let sample = std::mem::take(&mut leaf.sample);
                    *leaf = Leaf { sample, seen: leaf.seen, coefficients, ..child };
                }
            }
        }
        Ok(())
    }
}

/// Returns the share of the rows on each side of a hyperplane that the other side gets too, so that a leaf has the rows that its
/// fit needs, for m vectors, n rows and a budget.
fn spill(m: usize, n: usize, budget: usize) -> f64 {
    let levels = (m as f64 / budget as f64).log2().ceil().max(1.0);
    let rows_of_a_leaf = (n as f64 / levels.exp2()).max(1.0);
    let overlap = (ROWS_PER_VECTOR * budget as f64 / rows_of_a_leaf).clamp(1.0, MAX_OVERLAP);
    (overlap.powf(1.0 / levels) - 1.0) / 2.0
}

impl Source<'_> {
    /// Returns which places of the root a leaf selects, and its coefficients.
    fn fitted(
        &self,
        leaf: &FinishedLeaf,
        (slots, firsts): (&[usize], &[usize]),
        ctx: Context<'_>,
    ) -> Result<(Vec<bool>, Vec<f64>)> {
        let Self { expansion, params, targets, .. } = self;
        let mut chosen = vec![firsts.len() <= params.budget; firsts.len()];
        if firsts.len() > params.budget {
            for vector in self.select(&leaf.selection, ctx)? {
                chosen[slots[vector]] = true;
            }
        }
        let members: Vec<usize> = (0..firsts.len()).filter(|&j| chosen[j]).map(|j| firsts[j]).collect();
        let (n, m, q) = (leaf.rows.len(), members.len(), expansion.outputs());
        if m == 0 {
            return Ok((chosen, Vec::new()));
        }
        let (vectors, rows) = (expansion.vectors.gather(&members)?, self.rows.gather(&leaf.rows)?);
        let columns = gram(&expansion.kernel, vectors.view(), rows.view(), ctx)?.into_raw_vec_and_offset().0;
        let mut counter = ctx.counter("tree", 0);
        let mut system = lower_products(&columns, m, |_, _| 1.0, &mut counter)?.into_raw_vec_and_offset().0;
        let alpha = params.refit.unwrap_or(0.0);
        if alpha > 0.0 {
            let values = gram_symmetric(&expansion.kernel, vectors.view(), ctx)?;
            for j in 0..m {
                for k in 0..=j {
                    system[j * m + k] += alpha * n as f64 * values[[j, k]];
                }
            }
        }
        let mut solution = try_vec![0.0; m * q]?;
        for c in 0..q {
            let target: Vec<f64> = leaf.rows.iter().map(|&i| targets[[i, c]]).collect();
            counter.charge((m * n) as u64)?;
            for j in 0..m {
                solution[j * q + c] = dot(&columns[j * n..(j + 1) * n], &target);
            }
        }
        // A dependent column leaves a pivot of rounding size; with the ridge its coefficient is negligible.
        let largest = (0..m).map(|j| system[j * m + j]).fold(f64::MIN_POSITIVE, f64::max);
        for j in 0..m {
            system[j * m + j] += RELATIVE_RIDGE * largest;
        }
        cholesky::factor_counted(&mut system, m, &mut counter)?;
        cholesky::solve(&system, m, &mut solution, q);
        Ok((chosen, solution))
    }

    /// Returns the vectors that approximate f best on some rows, by number.
    fn select(&self, list: &[usize], ctx: Context<'_>) -> Result<Vec<usize>> {
        let (rows, vectors) = (self.rows.gather(list)?, self.expansion.vectors.reborrow());
        let functions = KernelFunctions::new(self.expansion.kernel, vectors, rows.view(), None)?;
        let targets = self.targets.select(Axis(0), list);
        let task = Task {
            functions: &[&functions],
            targets: targets.view(),
            weights: None,
            constant: false,
            loss: &BuiltIn::Squared,
            squared: true,
            validation: None,
        };
        let params = MatchingParams {
            variant: Variant::PreFitting,
            functions: self.params.budget,
            max_iterations: None,
            every: 1,
            tolerance: 0.0,
            patience: None,
            measure: Measure::Loss,
            storage: Storage { single: true, budget: MAX_SELECTION_BYTES },
            sample: None,
            seed: 0,
        };
        Ok(matching_pursuit(&task, &params, ctx)?.order)
    }
}
