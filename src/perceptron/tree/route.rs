//! The way of a row: branching rules, leaves, decisions.
//!
//! | rule | left where | source |
//! |---|---|---|
//! | linear | w'x / |x| > theta | section 3.3, RNDW |
//! | kernel | k(x, b) <= t | section 4.1 |
//! | nearest | the nearest of the stored rows went left | section 3.2 |
//!
//! Cost of an answer: the rules on its path (d, one kernel value, or as many distances as rows are stored), then at
//! most B kernel values.

use super::state::TreeState;
use crate::control::Par;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Formula, Kernel, RowBuffer, VectorPool};
use crate::perceptron::watch::Watch;
use crate::simd::Real;
use crate::simd::blas::dot;

/// Rows that one task answers.
const BLOCK: usize = 256;

/// w'x / |x|, and 0 for a row of zeros.
pub(super) fn projection<T: Real>(direction: &[T], row: &RowBuffer<T>) -> f64 {
    let length = row.squared_norm().sqrt();
    if length == 0.0 {
        return 0.0;
    }
    let product = if row.is_sparse() {
        let (features, values) = row.entries();
        features.iter().zip(values).map(|(&k, v)| direction[k as usize].to_f64() * v.to_f64()).sum()
    } else {
        dot(direction, row.values()).to_f64()
    };
    product / length
}

/// The lower triangle of the products of m columns, one after the other, each times `weight(j, k)`: (m, m) row-major.
pub(super) fn lower_products(
    columns: &[f64],
    m: usize,
    weight: impl Fn(usize, usize) -> f64 + Sync,
    watch: &mut Watch<'_>,
    par: Par,
) -> Result<Vec<f64>> {
    let n = columns.len() / m.max(1);
    let column = |j: usize| &columns[j * n..(j + 1) * n];
    let mut out = vec![0.0; m * m];
    watch.stretches(m, (n * m) as u64, |lines, _| {
        par.for_each_chunk(&mut out[lines.start * m..lines.end * m], m, |j, line| {
            let j = lines.start + j;
            for (k, value) in line.iter_mut().enumerate().take(j + 1) {
                let weight = weight(j, k);
                if weight != 0.0 {
                    *value = weight * dot(column(j), column(k));
                }
            }
        });
        Ok(())
    })?;
    Ok(out)
}

/// The index of the nearest vector, the first among equals.
pub(super) fn nearest<T: Real>(distances: &[T]) -> usize {
    let mut best = 0;
    for (i, distance) in distances.iter().enumerate() {
        if *distance < distances[best] {
            best = i;
        }
    }
    best
}

/// Where a row goes at an inner node.
pub(super) enum Rule<T> {
    Linear { direction: Vec<T>, threshold: f64 },
    Kernel { id: u32, vector: VectorPool<T>, threshold: f64 },
    Nearest { ids: Vec<u32>, rows: VectorPool<T>, left: Vec<bool> },
}

impl<T: Real> Rule<T> {
    /// Multiplications for a row of d features, roughly.
    pub(super) fn cost(&self, d: usize) -> usize {
        match self {
            Self::Nearest { ids, .. } => ids.len() * d,
            _ => d,
        }
    }

    pub(super) fn goes_left(&self, formula: &Formula<T>, row: &RowBuffer<T>, lines: &mut Vec<T>) -> bool {
        match self {
            Self::Linear { direction, threshold } => projection(direction, row) > *threshold,
            Self::Kernel { vector, threshold, .. } => {
                vector.values(formula, row, lines)[0].to_f64() <= *threshold
            }
            Self::Nearest { rows, left, .. } => {
                left[nearest(rows.values(&Formula::squared_distance(row.is_sparse()), row, lines))]
            }
        }
    }
}

/// A perceptron over few vectors, and the rows that its split will need.
pub(super) struct Leaf<T> {
    pub(super) ids: Vec<u32>,
    pub(super) pool: VectorPool<T>,
    /// (vectors, q), row-major.
    pub(super) coefficients: Vec<f64>,
    pub(super) intercepts: Vec<f64>,
    /// Rows with their classes: a uniform sample of the `seen` rows that came here.
    pub(super) sample: Vec<(u32, u32)>,
    pub(super) seen: u64,
}

impl<T: Real> Leaf<T> {
    /// Writes the kernel values of a row against the vectors to place i of their columns.
    pub(super) fn to_columns(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        lines: &mut Vec<T>,
        i: usize,
        columns: &mut [f64],
    ) {
        let n = columns.len() / self.ids.len().max(1);
        for (column, value) in columns.chunks_exact_mut(n).zip(self.pool.values(formula, row, lines)) {
            column[i] = value.to_f64();
        }
    }

    /// The outputs for a row. Cost: one kernel value a vector.
    pub(super) fn scores(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        lines: &mut Vec<T>,
        out: &mut [f64],
    ) {
        out.copy_from_slice(&self.intercepts);
        let values = self.pool.values(formula, row, lines);
        for (value, coefficients) in values.iter().zip(self.coefficients.chunks_exact(out.len())) {
            let value = value.to_f64();
            for (score, coefficient) in out.iter_mut().zip(coefficients) {
                *score += coefficient * value;
            }
        }
    }
}

/// A node; the root is node 0.
pub(super) enum Node<T> {
    Leaf(Leaf<T>),
    Branch { rule: Rule<T>, left: usize, right: usize },
}

/// What the way of a row has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The leaf, as the index of its node.
    pub leaf: usize,
    /// Inner nodes on the path.
    pub depth: usize,
    /// Kernel values: those of the path's kernel rules and those of the leaf.
    pub kernel_values: usize,
    /// Distances of the path's nearest-neighbour rules.
    pub distances: usize,
}

pub(super) fn route<T: Real>(
    nodes: &[Node<T>],
    formula: &Formula<T>,
    row: &RowBuffer<T>,
    lines: &mut Vec<T>,
) -> Route {
    let mut way = Route { leaf: 0, depth: 0, kernel_values: 0, distances: 0 };
    loop {
        match &nodes[way.leaf] {
            Node::Leaf(leaf) => {
                way.kernel_values += leaf.ids.len();
                return way;
            }
            Node::Branch { rule, left, right } => {
                match rule {
                    Rule::Linear { .. } => {}
                    Rule::Kernel { .. } => way.kernel_values += 1,
                    Rule::Nearest { ids, .. } => way.distances += ids.len(),
                }
                way.depth += 1;
                way.leaf = if rule.goes_left(formula, row, lines) { *left } else { *right };
            }
        }
    }
}

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
        let formula = Formula::of(kernel, rows.is_sparse())
            .ok_or_else(|| Error::param("kernel", kernel.name(), "computed from rows"))?;
        let (nodes, _) = state.build::<T>(false)?;
        let (features, sparse) = (rows.cols(), rows.is_sparse());
        Ok(Self { formula, nodes, features, sparse, outputs: state.outputs })
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

    fn decide(&self, x: Rows<'_>, par: Par) -> Vec<f64> {
        self.each(x, self.outputs, par, |tree, row, lines, out| {
            let way = route(&tree.nodes, &tree.formula, row, lines);
            if let Node::Leaf(leaf) = &tree.nodes[way.leaf] {
                leaf.scores(&tree.formula, row, lines, out);
            }
        })
    }

    fn routes(&self, x: Rows<'_>, par: Par) -> Vec<Route> {
        let ways = self.each(x, 1, par, |tree, row, lines, out: &mut [Option<Route>]| {
            out[0] = Some(route(&tree.nodes, &tree.formula, row, lines));
        });
        ways.into_iter().flatten().collect()
    }
}

enum Precision {
    Single(Ready<f32>),
    Double(Ready<f64>),
}

/// A tree made ready for prediction: vectors packed. Computes in the precision of its rows.
pub struct TreePredictor {
    kernel: Kernel,
    tree: Precision,
}

impl TreePredictor {
    /// Packs a tree.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Param`] for arrays that contradict each other.
    pub fn new(kernel: Kernel, state: &TreeState) -> Result<Self> {
        kernel.check()?;
        let tree = if state.rows.view().is_f64() {
            Precision::Double(Ready::new(&kernel, state)?)
        } else {
            Precision::Single(Ready::new(&kernel, state)?)
        };
        Ok(Self { kernel, tree })
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        match &self.tree {
            Precision::Single(tree) => tree.outputs,
            Precision::Double(tree) => tree.outputs,
        }
    }

    fn check(&self, x: Rows<'_>) -> Result<()> {
        let features = match &self.tree {
            Precision::Single(tree) => tree.features,
            Precision::Double(tree) => tree.features,
        };
        Error::check_len("columns of X", features, x.cols())?;
        self.kernel.check_rows("X", x)
    }

    /// The outputs, (n, q) row-major.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, [`Error::Param`] for rows outside the kernel's domain.
    pub fn decide(&self, x: Rows<'_>, par: Par) -> Result<Vec<f64>> {
        self.check(x)?;
        Ok(match &self.tree {
            Precision::Single(tree) => tree.decide(x, par),
            Precision::Double(tree) => tree.decide(x, par),
        })
    }

    /// The way of each row and its cost.
    ///
    /// # Errors
    /// As [`TreePredictor::decide`].
    pub fn routes(&self, x: Rows<'_>, par: Par) -> Result<Vec<Route>> {
        self.check(x)?;
        Ok(match &self.tree {
            Precision::Single(tree) => tree.routes(x, par),
            Precision::Double(tree) => tree.routes(x, par),
        })
    }
}
