//! A tree made ready for prediction: rows take their ways and are answered on many threads.

use super::node::{Node, Route, route};
use super::state::TreeState;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Formula, Kernel, PoolWorkspace, RowBuffer};
use crate::memory::{try_filled, try_with_capacity};
use crate::perceptron::params::check_values;
use crate::simd::Real;
use ndarray::Array2;

/// Rows that one task answers.
const BLOCK: usize = 256;
/// Multiplications of a thread between two checks of the monitor, roughly.
const WORK_PER_CHECK: usize = 1 << 27;

/// A tree in one precision.
struct Ready<T> {
    kernel: Kernel,
    formula: Formula<T>,
    nodes: Vec<Node<T>>,
    features: usize,
    outputs: usize,
    /// Members of the largest node.
    largest: usize,
}

impl<T: Real> Ready<T> {
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

    fn each<R: Send + Clone + Default>(
        &self,
        x: Rows<'_>,
        width: usize,
        ctx: Context<'_>,
        answer: impl Fn(&Self, &RowBuffer<T>, &mut PoolWorkspace<T>, &mut [R]) -> Result<()> + Sync,
    ) -> Result<Vec<R>> {
        let mut out = try_filled("the answers of a tree", x.rows() * width, R::default())?;
        let part =
            BLOCK * (WORK_PER_CHECK / (BLOCK * self.largest * self.features.max(8)).max(1)).clamp(1, 64);
        let part = part * ctx.threads();
        for (round, out) in out.chunks_mut(part * width).enumerate() {
            ctx.check("tree", round * part, x.rows())?;
            ctx.try_for_each_chunk(out, BLOCK * width, |block, out| {
                let (mut row, mut lines) = (self.formula.row(self.features)?, PoolWorkspace::new());
                for (i, out) in out.chunks_exact_mut(width).enumerate() {
                    row.load(&x, round * part + block * BLOCK + i);
                    answer(self, &row, &mut lines, out)?;
                }
                Ok(())
            })?;
        }
        Ok(out)
    }
}

/// What a tree answers in any precision.
trait Answers: Send + Sync {
    fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>>;
    fn routes(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Vec<Route>>;
}

impl<T: Real> Answers for Ready<T> {
    fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        let values = self.each(x, self.outputs, ctx, |tree, row, lines, out| {
            let way = route(&tree.nodes, &tree.formula, row, lines)?;
            if let Node::Leaf(leaf) = &tree.nodes[way.leaf] {
                leaf.scores(&tree.formula, row, lines, out)?;
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
        let ways = self.each(x, 1, ctx, |tree, row, lines, out: &mut [Option<Route>]| {
            out[0] = Some(route(&tree.nodes, &tree.formula, row, lines)?);
            Ok(())
        })?;
        let mut routes = try_with_capacity("the ways of rows", ways.len())?;
        routes.extend(ways.into_iter().flatten());
        Ok(routes)
    }
}

/// A tree made ready for prediction: vectors packed. Computes in the precision of its rows.
pub struct TreePredictor {
    kernel: Kernel,
    features: usize,
    tree: Box<dyn Answers>,
}

impl TreePredictor {
    /// Packs a tree, whose leaves answer by their last hypothesis, or `averaged`: by the average of all of them.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Param`] for arrays that contradict each other.
    pub fn new(kernel: Kernel, state: &TreeState, averaged: bool) -> Result<Self> {
        kernel.check()?;
        let rows = state.rows.view();
        let tree: Box<dyn Answers> = if rows.is_f64() {
            Box::new(Ready::<f64>::new(&kernel, state, averaged)?)
        } else {
            Box::new(Ready::<f32>::new(&kernel, state, averaged)?)
        };
        Ok(Self { kernel, features: rows.cols(), tree })
    }

    fn check(&self, x: Rows<'_>) -> Result<()> {
        Error::check_len("columns of X", self.features, x.cols())?;
        self.kernel.check_rows("X", x)
    }

    /// The outputs, (n, q).
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, [`Error::Param`] for rows outside the kernel's domain,
    /// [`Error::Stopped`].
    pub fn decide(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.check(x)?;
        self.tree.decide(x, ctx)
    }

    /// The way of each row and its cost.
    ///
    /// # Errors
    /// As [`TreePredictor::decide`].
    pub fn routes(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Vec<Route>> {
        self.check(x)?;
        self.tree.routes(x, ctx)
    }
}
