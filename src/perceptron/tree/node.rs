//! Nodes of a tree: branching rules, leaves, and the path of a row through them.
//!
//! | rule | left if | source |
//! |---|---|---|
//! | linear | w'x / |x| > theta | section 3.3, RNDW |
//! | kernel | k(x, b) <= t | section 4.1 |
//! | nearest | the nearest of the stored rows went left | section 3.2 |
//!
//! Invariant: a leaf has q coefficients and q accumulator entries for each vector.
//!
//! Cost of an answer: the rules on its path (d multiplications, one kernel value, or one distance for each stored row),
//! then at most B kernel values.

use crate::error::{Error, Result};
use crate::kernels::{Formula, PoolWorkspace, RowBuffer, VectorPool};
use crate::memory::TryGrow;
use crate::simd::Real;
use crate::simd::blas::dot;

/// Returns w'x / |x|, or 0 for a row of zeros.
pub(super) fn projection<T: Real>(direction: &[T], row: &RowBuffer<T>) -> f64 {
    let length = row.squared_norm().sqrt();
    if length == 0.0 {
        return 0.0;
    }
    let product = if row.is_sparse() {
        let (features, values) = row.entries();
        features.iter().zip(values).map(|(&k, v)| direction[k as usize].to_f64() * v.to_f64()).sum()
    } else {
        let product = dot(direction, row.values()).to_f64();
        if product.is_finite() {
            product
        } else {
            // The sum has left single precision.
            direction.iter().zip(row.values()).map(|(w, v)| w.to_f64() * v.to_f64()).sum()
        }
    };
    product / length
}

/// Returns the index of the smallest distance, the first among equal ones.
pub(super) fn nearest<T: Real>(distances: &[T]) -> usize {
    let mut best = 0;
    for (i, distance) in distances.iter().enumerate() {
        if *distance < distances[best] {
            best = i;
        }
    }
    best
}

/// The branching rule of an inner node.
pub(super) enum Rule<T> {
    Linear { direction: Vec<T>, threshold: f64 },
    Kernel { id: u32, vector: VectorPool<T>, threshold: f64 },
    Nearest { ids: Vec<u32>, rows: VectorPool<T>, left: Vec<bool> },
}

impl<T: Real> Rule<T> {
    /// Returns the approximate number of multiplications for a row of d features.
    pub(super) fn cost(&self, d: usize) -> usize {
        match self {
            Self::Nearest { ids, .. } => ids.len() * d,
            _ => d,
        }
    }

    /// Returns whether the rule sends a row to the left child.
    pub(super) fn goes_left(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        workspace: &mut PoolWorkspace<T>,
    ) -> Result<bool> {
        match self {
            Self::Linear { direction, threshold } => Ok(projection(direction, row) > *threshold),
            Self::Kernel { vector, threshold, .. } => {
                let value = vector.values(formula, row, workspace)[0].to_f64();
                check_rule(!value.is_nan())?;
                Ok(value <= *threshold)
            }
            Self::Nearest { rows, left, .. } => {
                let distances = rows.values(&formula.squared_distance(), row, workspace);
                let best = nearest(distances);
                check_rule(distances[best].to_f64().is_finite())?;
                Ok(left[best])
            }
        }
    }
}

/// Checks that a rule can tell the side of a row.
fn check_rule(is_known: bool) -> Result<()> {
    let rule = "small enough for the rules of the tree: scale the rows";
    Error::check_param(is_known, "X", "a row whose distance or kernel value has overflowed", rule)
}

/// A perceptron over few vectors, and a sample of its rows for the next split.
pub(super) struct Leaf<T> {
    pub(super) ids: Vec<u32>,
    pub(super) pool: VectorPool<T>,
    /// (vectors, q), row-major: the coefficients of the last hypothesis, which learns.
    pub(super) coefficients: Vec<f64>,
    /// Accumulator of the averaged perceptron: the sum of the additions to each coefficient, each times the age at which it
    /// was made.
    pub(super) accumulator: Vec<f64>,
    /// Number of rows seen since the vectors were selected.
    pub(super) age: u64,
    pub(super) intercepts: Vec<f64>,
    /// Rows with their classes: a uniform sample of the `seen` rows that reached the leaf.
    pub(super) sample: Vec<(u32, u32)>,
    pub(super) seen: u64,
}

impl<T: Real> Leaf<T> {
    /// Returns a leaf without vectors, for rows laid out like the one in a buffer.
    pub(super) fn new(like: &RowBuffer<T>, intercepts: Vec<f64>) -> Self {
        let pool = VectorPool::new(like.features(), like.is_sparse());
        Self {
            ids: Vec::new(),
            pool,
            coefficients: Vec::new(),
            accumulator: Vec::new(),
            age: 0,
            intercepts,
            sample: Vec::new(),
            seen: 0,
        }
    }

    /// Appends a vector with its coefficients.
    pub(super) fn push(
        &mut self,
        id: u32,
        row: &RowBuffer<T>,
        coefficients: impl IntoIterator<Item = f64>,
    ) -> Result<()> {
        self.ids.push(id);
        self.pool.push(row)?;
        self.coefficients.try_extend(coefficients)?;
        self.accumulator.try_resize(self.coefficients.len(), 0.0)?;
        Ok(())
    }

    /// Removes the last vector, to which `outputs` coefficients belong.
    pub(super) fn pop(&mut self, outputs: usize) -> Result<()> {
        self.pool.pop()?;
        self.ids.pop();
        self.coefficients.truncate(self.ids.len() * outputs);
        self.accumulator.truncate(self.ids.len() * outputs);
        Ok(())
    }

    /// Adds to a coefficient at the current row, which `age` includes.
    pub(super) fn add(&mut self, at: usize, value: f64) {
        self.coefficients[at] += value;
        self.accumulator[at] += value * (self.age - 1) as f64;
    }

    /// Replaces the coefficients by those of the average hypothesis: an addition made after r of L rows is part of L - r of
    /// the L hypotheses.
    pub(super) fn average(&mut self) {
        if self.age > 0 {
            for (coefficient, accumulator) in self.coefficients.iter_mut().zip(&self.accumulator) {
                *coefficient -= accumulator / self.age as f64;
            }
        }
    }

    /// Frees the vectors and what belongs to them, but not their numbers.
    pub(super) fn forget_vectors(&mut self) {
        self.pool = VectorPool::new(0, false);
        (self.coefficients, self.accumulator) = (Vec::new(), Vec::new());
    }

    /// Writes the kernel values of a row against the vectors to place i of the columns.
    pub(super) fn to_columns(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        workspace: &mut PoolWorkspace<T>,
        i: usize,
        columns: &mut [f64],
    ) {
        let n = columns.len() / self.ids.len().max(1);
        for (column, value) in columns.chunks_exact_mut(n).zip(self.pool.values(formula, row, workspace)) {
            column[i] = value.to_f64();
        }
    }

    /// Computes the outputs for a row. Cost: one kernel value for each vector.
    pub(super) fn scores(
        &self,
        formula: &Formula<T>,
        row: &RowBuffer<T>,
        workspace: &mut PoolWorkspace<T>,
        out: &mut [f64],
    ) {
        out.copy_from_slice(&self.intercepts);
        let values = self.pool.values(formula, row, workspace);
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

/// The path of a row and its cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Route {
    /// The leaf, as the index of its node.
    pub leaf: usize,
    /// Number of inner nodes on the path.
    pub depth: usize,
    /// Number of kernel values: those of the path's kernel rules and those of the leaf.
    pub kernel_values: usize,
    /// Number of distances: those of the path's nearest-neighbor rules.
    pub distances: usize,
}

/// Follows a row from the root to its leaf.
pub(super) fn route<T: Real>(
    nodes: &[Node<T>],
    formula: &Formula<T>,
    row: &RowBuffer<T>,
    workspace: &mut PoolWorkspace<T>,
) -> Result<Route> {
    let mut path = Route { leaf: 0, depth: 0, kernel_values: 0, distances: 0 };
    loop {
        match &nodes[path.leaf] {
            Node::Leaf(leaf) => {
                path.kernel_values += leaf.ids.len();
                return Ok(path);
            }
            Node::Branch { rule, left, right } => {
                match rule {
                    Rule::Linear { .. } => {}
                    Rule::Kernel { .. } => path.kernel_values += 1,
                    Rule::Nearest { ids, .. } => path.distances += ids.len(),
                }
                path.depth += 1;
                path.leaf = if rule.goes_left(formula, row, workspace)? { *left } else { *right };
            }
        }
    }
}
