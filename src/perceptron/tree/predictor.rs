//! Prediction with a tree: the leaves of all rows of a block are found first, then the rows of each leaf are computed together.
//!
//! A leaf is a kernel expansion, so its rows are computed by the same passes as those of any other expansion (see
//! [`PackedExpansion`]): some rows by one product of matrices, each in the precision that it needs.
//!
//! Invariant: an output depends on its row alone, whatever the other rows and the number of threads. Cost of a row: see
//! `node`. Memory: the distinct vectors of the leaves, a packed copy for each leaf that has answered, and the rows of a block.

use super::node::{Node, Route, route};
use super::state::TreeState;
use crate::context::Context;
use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluation, Formula, Kernel, PackedExpansion, Partial, PoolWorkspace};
use crate::memory::try_zero_matrix;
use crate::perceptron::params::check_values;
use crate::simd::Real;
use ndarray::{Array2, ArrayView2};
use std::collections::BTreeMap;

/// Number of rows of a task that finds leaves.
const ROWS_PER_TASK: usize = 256;
/// Maximum number of rows that a leaf answers in one task.
const MAX_LEAF_ROWS: usize = 512;
/// Approximate number of multiplications of a thread between two checks of the monitor.
const WORK_PER_CHECK: usize = 1 << 27;

/// The vectors of a leaf, as places among those of all leaves, and its function.
struct LeafFunction {
    places: Vec<usize>,
    model: PackedExpansion,
}

/// A tree in one precision.
struct PackedTree<T> {
    kernel: Kernel,
    formula: Formula<T>,
    /// The nodes; leaves have no vectors here.
    nodes: Vec<Node<T>>,
    /// The distinct vectors of all leaves.
    vectors: OwnedRows,
    /// The function of each node that is a leaf.
    leaves: Vec<Option<LeafFunction>>,
    features: usize,
    outputs: usize,
    /// Number of members of the largest node.
    largest: usize,
}

impl<T: Real> PackedTree<T> {
    fn new(kernel: &Kernel, state: &TreeState, averaged: bool) -> Result<Self> {
        let rows = state.rows.view();
        let formula = Formula::of(kernel, rows.is_sparse())?;
        let (mut nodes, _) = state.build(&formula, false)?;
        let (mut places, mut used) = (BTreeMap::new(), Vec::new());
        let mut leaves = Vec::with_capacity(nodes.len());
        for node in &mut nodes {
            let Node::Leaf(leaf) = node else {
                leaves.push(None);
                continue;
            };
            if averaged {
                leaf.average();
            }
            let members: Vec<usize> = leaf.ids.iter().map(|&id| id as usize).collect();
            let (vectors, q) = (rows.gather(&members)?, state.outputs());
            let coefficients = ArrayView2::from_shape((members.len(), q), &leaf.coefficients)
                .map_err(|_| Error::param("tree", "its coefficients", "one for each vector and output"))?;
            let view = ExpansionView::new(*kernel, vectors.view(), coefficients, &leaf.intercepts)?;
            let places = members.iter().map(|&row| {
                *places.entry(row).or_insert_with(|| {
                    used.push(row);
                    used.len() - 1
                })
            });
            leaves.push(Some(LeafFunction { places: places.collect(), model: PackedExpansion::new(&view)? }));
            leaf.forget_vectors();
        }
        let largest = state.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize;
        let (features, outputs, vectors) = (rows.cols(), state.outputs(), rows.gather(&used)?);
        Ok(Self { kernel: *kernel, formula, nodes, vectors, leaves, features, outputs, largest })
    }

    /// Number of rows that a thread handles between two checks of the monitor.
    fn rows_per_check(&self) -> usize {
        let row_work = self.largest.saturating_mul(self.features.max(8)).max(1);
        (WORK_PER_CHECK / row_work).clamp(ROWS_PER_TASK, 64 * ROWS_PER_TASK)
    }

    fn check(&self, x: Rows<'_>) -> Result<()> {
        Error::check_len("columns of X", self.features, x.cols())?;
        self.kernel.check_rows("X", x)
    }

    /// Finds the paths of the rows from `first` on.
    fn find_routes(&self, x: Rows<'_>, first: usize, out: &mut [Route], ctx: Context<'_>) -> Result<()> {
        ctx.try_for_each_chunk(out, ROWS_PER_TASK, |block, out| {
            let (mut row, mut workspace) = (self.formula.row(self.features), PoolWorkspace::new());
            for (i, out) in out.iter_mut().enumerate() {
                row.load(&x, first + block * ROWS_PER_TASK + i);
                *out = route(&self.nodes, &self.formula, &row, &mut workspace)?;
            }
            Ok(())
        })
    }

    /// Computes the outputs of a leaf for some rows, one after the other on the calling thread.
    fn answer(&self, leaf: usize, x: Rows<'_>, list: &[usize]) -> Result<Array2<f64>> {
        let Some(LeafFunction { places, model }) = &self.leaves[leaf] else {
            return Err(Error::param("tree", "a path that ends at a rule", "a path to a leaf"));
        };
        let (rows, ctx) = (x.gather(list)?, Context::SEQUENTIAL);
        let in_double = size_of::<T>() == size_of::<f64>();
        let partial = if in_double && !x.is_f64() {
            Partial::in_double()
        } else if model.is_packed_for(rows.view()) {
            match model.evaluate_packed(rows.view(), ctx)? {
                Evaluation::Complete(outputs) => return Ok(outputs),
                Evaluation::Partial(partial) => partial,
            }
        } else {
            Partial::default()
        };
        let vectors = self.vectors.view().gather(places)?;
        let result = model.complete(partial, vectors.view(), rows.view(), ctx);
        if let Err(Error::Param { .. }) = result {
            // The error of the first row that has one.
            if list.len() > 1 {
                list.iter().try_for_each(|&row| self.answer(leaf, x, &[row]).map(drop))?;
            }
            // Rows of single precision were computed in double precision before they were refused.
            check_values(&self.kernel, list[0], [f64::NAN], true)?;
        }
        result
    }
}

/// Prediction in any precision.
trait Predict: Send + Sync {
    fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>>;
    fn routes(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Vec<Route>>;
}

impl<T: Real> Predict for PackedTree<T> {
    fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.check(x)?;
        let (n, q) = (x.rows(), self.outputs);
        let mut out = try_zero_matrix("the answers of a tree", (n, q))?;
        let part = self.rows_per_check() * ctx.threads();
        let mut routes = vec![Route::default(); part.min(n)];
        for first in (0..n).step_by(part) {
            ctx.check("tree", first, n)?;
            let routes = &mut routes[..part.min(n - first)];
            self.find_routes(x, first, routes, ctx)?;
            let mut order: Vec<usize> = (0..routes.len()).collect();
            order.sort_by_key(|&i| routes[i].leaf);
            let tasks: Vec<Vec<usize>> = order
                .chunk_by(|&i, &j| routes[i].leaf == routes[j].leaf)
                .flat_map(|rows| rows.chunks(MAX_LEAF_ROWS))
                .map(|rows| rows.iter().map(|i| first + i).collect())
                .collect();
            let answers =
                ctx.try_map(tasks.len(), |t| self.answer(routes[tasks[t][0] - first].leaf, x, &tasks[t]))?;
            for (rows, answers) in tasks.iter().zip(&answers) {
                for (&row, answer) in rows.iter().zip(answers.rows()) {
                    out.row_mut(row).assign(&answer);
                }
            }
        }
        Ok(out)
    }

    fn routes(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Vec<Route>> {
        self.check(x)?;
        let mut routes = vec![Route::default(); x.rows()];
        let part = self.rows_per_check() * ctx.threads();
        for (round, out) in routes.chunks_mut(part).enumerate() {
            ctx.check("tree", round * part, x.rows())?;
            self.find_routes(x, round * part, out, ctx)?;
        }
        Ok(routes)
    }
}

/// A tree with packed vectors, ready for prediction in the precision of its rows.
pub struct TreePredictor {
    tree: Box<dyn Predict>,
}

impl TreePredictor {
    /// Packs a tree, whose leaves answer by their last hypothesis or, if `averaged`, by the average of all hypotheses.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Param`] for arrays that contradict each other.
    pub fn new(kernel: Kernel, state: &TreeState, averaged: bool) -> Result<Self> {
        kernel.check()?;
        let tree: Box<dyn Predict> = if state.rows.view().is_f64() {
            Box::new(PackedTree::<f64>::new(&kernel, state, averaged)?)
        } else {
            Box::new(PackedTree::<f32>::new(&kernel, state, averaged)?)
        };
        Ok(Self { tree })
    }

    /// Returns the outputs, (n, q).
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, [`Error::Param`] for rows outside the kernel's domain,
    /// [`Error::Stopped`].
    pub fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.tree.decide(x, ctx)
    }

    /// Returns the path of each row and its cost.
    ///
    /// # Errors
    /// See [`TreePredictor::decide`].
    pub fn routes(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Vec<Route>> {
        self.tree.routes(x, ctx)
    }
}
