//! Nodes: branching rules, leaves, and the way of a row through them.
//!
//! | rule | left where | source |
//! |---|---|---|
//! | linear | w'x / |x| > theta | section 3.3, RNDW |
//! | kernel | k(x, b) <= t | section 4.1 |
//! | nearest | the nearest of the stored rows went left | section 3.2 |
//!
//! Cost of an answer: the rules on its path (d, one kernel value, or as many distances as rows are stored), then at
//! most B kernel values.

use crate::error::Result;
use crate::kernels::{Formula, PoolWorkspace, RowBuffer, VectorPool};
use crate::memory::TryGrow;
use crate::simd::Real;
use crate::simd::blas::dot;

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

    pub(super) fn goes_left(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        lines: &mut PoolWorkspace<T>,
    ) -> Result<bool> {
        match self {
            Self::Linear { direction, threshold } => Ok(projection(direction, row) > *threshold),
            Self::Kernel { vector, threshold, .. } => {
                Ok(vector.values(formula, row, lines)?[0].to_f64() <= *threshold)
            }
            Self::Nearest { rows, left, .. } => {
                Ok(left[nearest(rows.values(&formula.squared_distance(), row, lines)?)])
            }
        }
    }
}

/// A perceptron over few vectors, and the rows that its split will need.
pub(super) struct Leaf<T> {
    pub(super) ids: Vec<u32>,
    pub(super) pool: VectorPool<T>,
    /// (vectors, q), row-major: those of the last hypothesis, which learns.
    pub(super) coefficients: Vec<f64>,
    /// Every addition to a coefficient, times the rows that had been learnt from before it.
    pub(super) early: Vec<f64>,
    /// Rows learnt from since the vectors were chosen.
    pub(super) lived: u64,
    pub(super) intercepts: Vec<f64>,
    /// Rows with their classes: a uniform sample of the `seen` rows that came here.
    pub(super) sample: Vec<(u32, u32)>,
    pub(super) seen: u64,
}

impl<T: Real> Leaf<T> {
    /// Without vectors, for rows like the one in a buffer.
    pub(super) fn new(like: &RowBuffer<T>, intercepts: Vec<f64>) -> Self {
        let pool = VectorPool::new(like.features(), like.is_sparse());
        Self {
            ids: Vec::new(),
            pool,
            coefficients: Vec::new(),
            early: Vec::new(),
            lived: 0,
            intercepts,
            sample: Vec::new(),
            seen: 0,
        }
    }

    /// One more vector.
    pub(super) fn push(
        &mut self,
        id: u32,
        row: &RowBuffer<T>,
        coefficients: impl IntoIterator<Item = f64>,
    ) -> Result<()> {
        self.ids.try_push(id)?;
        self.pool.push(row)?;
        self.coefficients.try_extend(coefficients)?;
        self.early.try_resize(self.coefficients.len(), 0.0)?;
        Ok(())
    }

    /// What the current row, counted in `lived`, adds to a coefficient.
    pub(super) fn add(&mut self, at: usize, value: f64) {
        self.coefficients[at] += value;
        self.early[at] += value * (self.lived - 1) as f64;
    }

    /// Answers by the average of its hypotheses from now on: a coefficient that grew by c after r of L rows was part
    /// of L - r of them.
    pub(super) fn average(&mut self) {
        if self.lived > 0 {
            for (coefficient, early) in self.coefficients.iter_mut().zip(&self.early) {
                *coefficient -= early / self.lived as f64;
            }
        }
    }

    /// Writes the kernel values of a row against the vectors to place i of their columns.
    pub(super) fn to_columns(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        lines: &mut PoolWorkspace<T>,
        i: usize,
        columns: &mut [f64],
    ) -> Result<()> {
        let n = columns.len() / self.ids.len().max(1);
        for (column, value) in columns.chunks_exact_mut(n).zip(self.pool.values(formula, row, lines)?) {
            column[i] = value.to_f64();
        }
        Ok(())
    }

    /// The outputs for a row. Cost: one kernel value a vector.
    pub(super) fn scores(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        lines: &mut PoolWorkspace<T>,
        out: &mut [f64],
    ) -> Result<()> {
        out.copy_from_slice(&self.intercepts);
        let values = self.pool.values(formula, row, lines)?;
        for (value, coefficients) in values.iter().zip(self.coefficients.chunks_exact(out.len())) {
            let value = value.to_f64();
            for (score, coefficient) in out.iter_mut().zip(coefficients) {
                *score += coefficient * value;
            }
        }
        Ok(())
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
    lines: &mut PoolWorkspace<T>,
) -> Result<Route> {
    let mut way = Route { leaf: 0, depth: 0, kernel_values: 0, distances: 0 };
    loop {
        match &nodes[way.leaf] {
            Node::Leaf(leaf) => {
                way.kernel_values += leaf.ids.len();
                return Ok(way);
            }
            Node::Branch { rule, left, right } => {
                match rule {
                    Rule::Linear { .. } => {}
                    Rule::Kernel { .. } => way.kernel_values += 1,
                    Rule::Nearest { ids, .. } => way.distances += ids.len(),
                }
                way.depth += 1;
                way.leaf = if rule.goes_left(formula, row, lines)? { *left } else { *right };
            }
        }
    }
}
