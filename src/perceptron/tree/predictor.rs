//! Prediction with a tree, blocks of rows over threads.
//!
//! Invariant: a row is answered by the leaf of its path, whatever the number of threads. Cost of a row: see `node`.

use super::node::{Node, Route, route};
use super::state::TreeState;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Formula, Kernel, PoolWorkspace, RowBuffer};
use crate::memory::try_filled;
use crate::perceptron::params::check_values;
use crate::simd::Real;
use ndarray::Array2;

/// Number of rows of a task.
const ROWS_PER_TASK: usize = 256;
/// Approximate number of multiplications of a thread between two checks of the monitor.
const WORK_PER_CHECK: usize = 1 << 27;

/// A tree in one precision.
struct PackedTree<T> {
    kernel: Kernel,
    formula: Formula<T>,
    nodes: Vec<Node<T>>,
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
        for node in nodes.iter_mut().filter(|_| averaged) {
            if let Node::Leaf(leaf) = node {
                leaf.average();
            }
        }
        let largest = state.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize;
        let (features, outputs) = (rows.cols(), state.outputs());
        Ok(Self { kernel: *kernel, formula, nodes, features, outputs, largest })
    }

    /// Computes `width` answers for each row.
    fn each<R: Send + Clone + Default>(
        &self,
        x: Rows<'_>,
        width: usize,
        ctx: Context<'_>,
        answer: impl Fn(&Self, &RowBuffer<T>, &mut PoolWorkspace<T>, &mut [R]) -> Result<()> + Sync,
    ) -> Result<Vec<R>> {
        Error::check_len("columns of X", self.features, x.cols())?;
        self.kernel.check_rows("X", x)?;
        let mut out = try_filled("the answers of a tree", x.rows() * width, R::default())?;
        let part = ROWS_PER_TASK
            * (WORK_PER_CHECK / (ROWS_PER_TASK * self.largest * self.features.max(8)).max(1)).clamp(1, 64);
        let part = part * ctx.threads();
        for (round, out) in out.chunks_mut(part * width).enumerate() {
            ctx.check("tree", round * part, x.rows())?;
            ctx.try_for_each_chunk(out, ROWS_PER_TASK * width, |block, out| {
                let (mut row, mut workspace) = (self.formula.row(self.features), PoolWorkspace::new());
                for (i, out) in out.chunks_exact_mut(width).enumerate() {
                    row.load(&x, round * part + block * ROWS_PER_TASK + i);
                    answer(self, &row, &mut workspace, out)?;
                }
                Ok(())
            })?;
        }
        Ok(out)
    }
}

/// Prediction in any precision.
trait Predict: Send + Sync {
    fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>>;
    fn routes(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Vec<Route>>;
}

impl<T: Real> Predict for PackedTree<T> {
    fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        let values = self.each(x, self.outputs, ctx, |tree, row, workspace, out| {
            let path = route(&tree.nodes, &tree.formula, row, workspace)?;
            if let Node::Leaf(leaf) = &tree.nodes[path.leaf] {
                leaf.scores(&tree.formula, row, workspace, out)?;
            }
            Ok(())
        })?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let double = size_of::<T>() == size_of::<f64>();
            check_values(&self.kernel, at / self.outputs, [values[at]], double)?;
        }
        Ok(Array2::from_shape_vec((x.rows(), self.outputs), values).expect("a line of outputs a row"))
    }

    fn routes(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Vec<Route>> {
        let paths = self.each(x, 1, ctx, |tree, row, workspace, out: &mut [Option<Route>]| {
            out[0] = Some(route(&tree.nodes, &tree.formula, row, workspace)?);
            Ok(())
        })?;
        let mut routes = Vec::with_capacity(paths.len());
        routes.extend(paths.into_iter().flatten());
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
