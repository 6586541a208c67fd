//! A tree made ready for prediction: rows take their ways and are answered on many threads.

use super::node::{Node, Route, route};
use super::state::TreeState;
use crate::control::Par;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Formula, Kernel, RowBuffer};
use crate::simd::Real;
use ndarray::Array2;

/// Rows that one task answers.
const BLOCK: usize = 256;

/// A tree in one precision.
struct Ready<T> {
    formula: Formula<T>,
    nodes: Vec<Node<T>>,
    features: usize,
    sparse: bool,
    outputs: usize,
}

impl<T: Real> Ready<T> {
    fn new(kernel: &Kernel, state: &TreeState) -> Result<Self> {
        let rows = state.rows.view();
        let (features, sparse) = (rows.cols(), rows.is_sparse());
        let (formula, (nodes, _)) = (Formula::of(kernel, sparse)?, state.build(false)?);
        Ok(Self { formula, nodes, features, sparse, outputs: state.outputs() })
    }

    fn each<R: Send + Clone + Default>(
        &self,
        x: Rows<'_>,
        width: usize,
        par: Par,
        answer: impl Fn(&Self, &RowBuffer<T>, &mut Vec<T>, &mut [R]) + Sync,
    ) -> Vec<R> {
        let mut out = vec![R::default(); x.rows() * width];
        par.for_each_chunk(&mut out, BLOCK * width, |block, out| {
            let (mut row, mut lines) = (RowBuffer::new(self.features, self.sparse), Vec::new());
            for (i, out) in out.chunks_exact_mut(width).enumerate() {
                row.load(&x, block * BLOCK + i);
                answer(self, &row, &mut lines, out);
            }
        });
        out
    }
}

/// What a tree answers in any precision.
trait Answers: Send + Sync {
    fn decide(&self, x: Rows<'_>, par: Par) -> Array2<f64>;
    fn routes(&self, x: Rows<'_>, par: Par) -> Vec<Route>;
}

impl<T: Real> Answers for Ready<T> {
    fn decide(&self, x: Rows<'_>, par: Par) -> Array2<f64> {
        let values = self.each(x, self.outputs, par, |tree, row, lines, out| {
            let way = route(&tree.nodes, &tree.formula, row, lines);
            if let Node::Leaf(leaf) = &tree.nodes[way.leaf] {
                leaf.scores(&tree.formula, row, lines, out);
            }
        });
        Array2::from_shape_vec((x.rows(), self.outputs), values).expect("a line of outputs a row")
    }

    fn routes(&self, x: Rows<'_>, par: Par) -> Vec<Route> {
        let ways = self.each(x, 1, par, |tree, row, lines, out: &mut [Option<Route>]| {
            out[0] = Some(route(&tree.nodes, &tree.formula, row, lines));
        });
        ways.into_iter().flatten().collect()
    }
}

/// A tree made ready for prediction: vectors packed. Computes in the precision of its rows.
pub struct TreePredictor {
    kernel: Kernel,
    features: usize,
    tree: Box<dyn Answers>,
}

impl TreePredictor {
    /// Packs a tree.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Param`] for arrays that contradict each other.
    pub fn new(kernel: Kernel, state: &TreeState) -> Result<Self> {
        kernel.check()?;
        let rows = state.rows.view();
        let tree: Box<dyn Answers> = if rows.is_f64() {
            Box::new(Ready::<f64>::new(&kernel, state)?)
        } else {
            Box::new(Ready::<f32>::new(&kernel, state)?)
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
    /// [`Error::Shape`] for another number of columns, [`Error::Param`] for rows outside the kernel's domain.
    pub fn decide(&self, x: Rows<'_>, par: Par) -> Result<Array2<f64>> {
        self.check(x)?;
        Ok(self.tree.decide(x, par))
    }

    /// The way of each row and its cost.
    ///
    /// # Errors
    /// As [`TreePredictor::decide`].
    pub fn routes(&self, x: Rows<'_>, par: Par) -> Result<Vec<Route>> {
        self.check(x)?;
        Ok(self.tree.routes(x, par))
    }
}
