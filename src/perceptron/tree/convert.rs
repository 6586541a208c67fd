//! A kernel expansion as a tree of local ones (section 1: "a post-processing step to any kernel-based classifier").
//!
//! The root holds all m vectors. A node above the budget is split like a leaf of a growing tree, on a sample of the rows
//! that reach it, and each child inherits at most half of its vectors (or the budget, if that is more): log2(m / B)
//! levels. Without a refit this is the tree. With a refit, each leaf selects B vectors among all m by a matching pursuit
//! with pre-fitting and takes the coefficients that minimize
//! sum_i |sum_j beta_j k(x_i, z_j) + b - f(x_i)|^2 + alpha n beta'K beta over the n rows that reach it, with f the whole
//! expansion. All outputs share partition, vectors and matrix.
//!
//! The leaves select among all m vectors because fewer candidates are worse: with the vectors that the programs keep, or a
//! forward selection among 8 B of them, the tree errs at 3.3 % and 2.5 %, with all at 1.4 %, the expansion itself at 1.3 %
//! (ijcnn1).
//!
//! Invariant: every row of the sample is in exactly one open node or finished leaf.
//!
//! Cost: at the root O(s m^2) a round for s sampled rows, half at each further level; the selections O(s m B) and the
//! fits O(n B^2) for each leaf of n rows; memory m^2.

use super::grow::{Tree, TreeParams};
use super::node::{Leaf, Node};
use super::program::lower_products;
use super::state::TreeState;
use super::strategy::Strategy;
use crate::context::{Context, WorkCounter};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, RowBuffer};
use crate::linalg::cholesky;
use crate::matching_pursuit::{
    BuiltIn, KernelFunctions, MatchingParams, Measure, Storage, Task, Variant, matching_pursuit,
};
use crate::memory::{try_vec, try_zeros};
use crate::perceptron::params::{check_piece, check_stream};
use crate::simd::Real;
use crate::simd::blas::dot;
use ndarray::{Array2, Axis, aview1};
use std::collections::BTreeMap;

/// Maximum number of vectors of an expansion; the program at the root takes memory of its square.
const MAX_VECTORS: usize = 16_384;

/// Ridge of the fits as a share of the largest diagonal entry.
const RELATIVE_RIDGE: f64 = 1e-11;

/// Maximum number of rows on which a leaf selects its vectors.
const MAX_SELECTION_ROWS: usize = 1536;
/// Maximum number of bytes of kernel values that a selection keeps.
const MAX_SELECTION_BYTES: usize = 1 << 28;

/// Parameters of a conversion.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ConvertParams {
    /// B: maximum number of vectors of a leaf.
    pub budget: usize,
    /// Number of rows on which a node is split, and of rows that a leaf keeps.
    pub sample: usize,
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
        Self { budget, sample: 512, draws: 100, strategy, refit: Some(0.0), seed: 0 }
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
    let rule = format!("an expansion of at most {MAX_VECTORS} vectors; compress it first");
    let found = format!("{} vectors", expansion.len());
    Error::check_param(expansion.len() <= MAX_VECTORS, "model", found, rule)?;
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

/// The state of a conversion.
struct Conversion<'a, T> {
    source: Source<'a>,
    tree: Tree<T>,
    /// All distinct vectors in one leaf.
    root: Leaf<T>,
    /// Place of each vector of the expansion in the root.
    slots: Vec<usize>,
    /// Unfinished nodes, and the rows that reach them.
    open: Vec<(usize, Vec<usize>)>,
    counter: WorkCounter<'a>,
}

impl<'a, T: Real> Conversion<'a, T> {
    /// Puts all vectors into the root.
    fn new(source: Source<'a>, params: TreeParams, counter: WorkCounter<'a>) -> Result<Self> {
        let (vectors, q) = (source.expansion.vectors, source.expansion.outputs());
        let mut tree = Tree::<T>::new(params, vectors, q, source.params.seed)?;
        let mut root = Leaf::new(&tree.row, source.expansion.intercepts.to_vec());
        let (mut known, mut slots) = (BTreeMap::new(), Vec::with_capacity(vectors.rows()));
        for i in 0..vectors.rows() {
            tree.row.load(&vectors, i);
            let id = tree.store.intern(&tree.row)?;
            let slot = *known.entry(id).or_insert(root.ids.len());
            slots.push(slot);
            if slot == root.ids.len() {
                root.push(id, &tree.row, std::iter::repeat_n(0.0, q))?;
            }
            for c in 0..q {
                root.coefficients[slot * q + c] += source.expansion.coefficients[[i, c]];
            }
        }
        let all = tree.child(&root, &vec![true; root.ids.len()])?;
        tree.nodes.push(Node::Leaf(all));
        let open = vec![(0, (0..source.rows.rows()).collect::<Vec<_>>())];
        Ok(Self { source, tree, root, slots, open, counter })
    }

    /// Splits nodes until all are finished.
    fn run(mut self) -> Result<TreeState> {
        let budget = self.source.params.budget;
        while let Some((at, list)) = self.open.pop() {
            let Node::Leaf(leaf) = &mut self.tree.nodes[at] else { continue };
            let m = leaf.ids.len();
            if m <= budget {
                self.finish(at, &list)?;
                self.counter.advance(list.len());
            } else {
                let taken = std::mem::replace(leaf, Leaf::new(&self.tree.row, Vec::new()));
                self.divide(&taken, at, list, m.div_ceil(2).max(budget))?;
            }
        }
        self.tree.state()
    }

    /// Splits a node, or keeps its best vectors if no rule divides its rows.
    fn divide(&mut self, leaf: &Leaf<T>, at: usize, list: Vec<usize>, most: usize) -> Result<()> {
        let (source, tree) = (&self.source, &mut self.tree);
        let features = tree.row.features();
        let chosen = tree.random.sample(list.len(), list.len().min(source.params.sample));
        let load = |i: usize| {
            let mut row = tree.row.another();
            row.load(&source.rows, list[i]);
            Ok(row)
        };
        let sample: Vec<RowBuffer<T>> = chosen.iter().map(|&i| load(i)).collect::<Result<_>>()?;
        let labels: Vec<u32> = chosen.iter().map(|&i| source.labels[list[i]] as u32).collect();
        let (found, kept) = tree.divide(leaf, &sample, &labels, most, &mut self.counter)?;
        let Some(split) = found else {
            tree.nodes[at] = Node::Leaf(tree.child(leaf, &kept)?);
            self.open.push((at, list));
            return Ok(());
        };
        let stored: Vec<u32> = match source.params.strategy {
            Strategy::JointNearest => {
                sample.iter().map(|row| tree.store.intern(row)).collect::<Result<Vec<_>>>()?
            }
            _ => Vec::new(),
        };
        let rule = tree.rule(leaf, &sample, &stored, &split)?;
        let (mut left_rows, mut right_rows) = (Vec::new(), Vec::new());
        for i in list {
            self.counter.charge(rule.cost(features.max(8)) as u64)?;
            tree.row.load(&source.rows, i);
            let goes_left = rule.goes_left(&tree.formula, &tree.row, &mut tree.workspace)?;
            if goes_left { &mut left_rows } else { &mut right_rows }.push(i);
        }
        let children = [tree.child(leaf, &split.left)?, tree.child(leaf, &split.right)?];
        let left = tree.nodes.len();
        tree.nodes.extend(children.map(Node::Leaf));
        tree.nodes[at] = Node::Branch { rule, left, right: left + 1 };
        self.open.extend([(left + 1, right_rows), (left, left_rows)]);
        Ok(())
    }

    /// Finishes a leaf within the budget: draws its sample and fits its coefficients.
    fn finish(&mut self, at: usize, list: &[usize]) -> Result<()> {
        let (source, tree) = (&self.source, &mut self.tree);
        let chosen = tree.random.sample(list.len(), list.len().min(source.params.sample));
        let Node::Leaf(leaf) = &mut tree.nodes[at] else { return Ok(()) };
        leaf.seen = list.len() as u64;
        for i in chosen {
            tree.row.load(&source.rows, list[i]);
            leaf.sample.push((tree.store.intern(&tree.row)?, source.labels[list[i]] as u32));
        }
        let Some(alpha) = source.params.refit else { return Ok(()) };
        if self.root.ids.len() > source.params.budget {
            self.select(at, list)?;
        }
        let (source, tree, counter) = (&self.source, &mut self.tree, &mut self.counter);
        let Node::Leaf(leaf) = &mut tree.nodes[at] else { return Ok(()) };
        let (n, m, q) = (list.len(), leaf.ids.len(), source.expansion.outputs());
        if m == 0 || n == 0 {
            return Ok(());
        }
        let values_of_a_row = (m * source.rows.cols().max(8)) as u64;
        let mut columns = try_zeros("kernel values of a leaf", m * n)?;
        for (i, &row) in list.iter().enumerate() {
            counter.charge(values_of_a_row)?;
            tree.row.load(&source.rows, row);
            leaf.to_columns(&tree.formula, &tree.row, &mut tree.workspace, i, &mut columns)?;
        }
        let column = |j: usize| &columns[j * n..(j + 1) * n];
        let mut system = lower_products(&columns, m, |_, _| 1.0, counter)?.into_raw_vec_and_offset().0;
        for j in 0..m {
            counter.charge(values_of_a_row)?;
            tree.store.read(leaf.ids[j], &mut tree.row);
            let values = leaf.pool.values(&tree.formula, &tree.row, &mut tree.workspace)?;
            for k in 0..=j {
                system[j * m + k] += alpha * n as f64 * values[k].to_f64();
            }
        }
        let mut solution = try_vec![0.0; m * q]?;
        for c in 0..q {
            let target: Vec<f64> = list.iter().map(|&i| source.targets[[i, c]]).collect();
            for j in 0..m {
                solution[j * q + c] = dot(column(j), &target);
            }
        }
        // A dependent column leaves a pivot of rounding size; with the ridge its coefficient is negligible.
        let largest = (0..m).map(|j| system[j * m + j]).fold(f64::MIN_POSITIVE, f64::max);
        for j in 0..m {
            system[j * m + j] += RELATIVE_RIDGE * largest;
        }
        cholesky::factor_counted(&mut system, m, counter)?;
        cholesky::solve(&system, m, &mut solution, q);
        leaf.coefficients = solution;
        Ok(())
    }

    /// Selects the vectors of a leaf that approximate f best on its rows.
    fn select(&mut self, at: usize, list: &[usize]) -> Result<()> {
        let (source, tree) = (&self.source, &mut self.tree);
        if list.is_empty() {
            return Ok(());
        }
        let subset: Vec<usize> = if list.len() > MAX_SELECTION_ROWS {
            tree.random
                .sample(list.len(), MAX_SELECTION_ROWS)
                .into_iter()
                .map(|i| list[i])
                .collect::<Vec<_>>()
        } else {
            list.to_vec()
        };
        let (rows, vectors) = (source.rows.gather(&subset)?, source.expansion.vectors.reborrow());
        let functions = KernelFunctions::new(source.expansion.kernel, vectors, rows.view(), None)?;
        let targets = source.targets.select(Axis(0), &subset);
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
            functions: source.params.budget,
            max_iterations: None,
            every: 1,
            tolerance: 0.0,
            patience: None,
            measure: Measure::Loss,
            storage: Storage { single: true, budget: MAX_SELECTION_BYTES },
            sample: None,
            seed: 0,
        };
        let fit = matching_pursuit(&task, &params, self.counter.context())?;
        let mut chosen = vec![false; self.root.ids.len()];
        for vector in fit.order {
            chosen[self.slots[vector]] = true;
        }
        let child = tree.child(&self.root, &chosen);
        if let Node::Leaf(leaf) = &mut tree.nodes[at] {
            let sample = std::mem::take(&mut leaf.sample);
            *leaf = Leaf { sample, seen: leaf.seen, ..child? };
        }
        Ok(())
    }
}
