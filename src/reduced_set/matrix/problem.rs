//! The interface of methods that select vectors by means of the whole kernel matrix: [`Method`], its input [`Problem`], and its
//! result [`Order`].
//!
//! A method decides the order of the vectors, and may keep coefficients of its own. Its caller computes the matrix, in chunks if it
//! is too large, and otherwise the best coefficients of every size; so a method is a few functions, and `papers` adds others.

use crate::context::{Context, StopReason};
use crate::error::Result;
use crate::expansion::ExpansionView;
use crate::memory::{TryGrow, try_zeros};
use crate::simd::blas::axpy;

/// A method that orders the vectors of an expansion by means of their kernel matrix.
pub trait Method: std::fmt::Debug + Sync {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`](crate::Error::Param) that names the parameter.
    fn check(&self) -> Result<()>;

    /// Returns the vectors in the order in which they are chosen.
    ///
    /// # Errors
    /// [`Error::Param`](crate::Error::Param) for a kernel that is not positive semidefinite,
    /// [`Error::Memory`](crate::Error::Memory).
    fn order(&self, problem: &Problem<'_, '_>) -> Result<Order>;

    /// Returns the approximate count of numbers that are stored for a selection of at most `max_vectors` of m vectors with q
    /// outputs.
    fn numbers(&self, m: u64, q: u64, max_vectors: u64) -> u64;

    /// Returns a number of vectors from which the method selects in seconds.
    fn default_chunk(&self) -> usize {
        4096
    }

    /// Returns whether the result has the coefficients of the method instead of the best ones of every size.
    fn keeps_coefficients(&self) -> bool {
        false
    }
}

/// An expansion with its kernel matrix.
#[derive(Clone, Copy)]
pub struct Problem<'a, 'e> {
    /// The expansion.
    pub target: &'a ExpansionView<'e>,
    /// K of its vectors, (m, m).
    pub gram: &'a [f64],
    /// Maximum number of vectors of the order.
    pub max_vectors: usize,
    /// True for a first pass over a chunk, from which a later one selects again.
    pub is_draft: bool,
    /// Threads and monitor.
    pub ctx: Context<'a>,
}

impl Problem<'_, '_> {
    /// Returns k(z, z) of every vector.
    pub(crate) fn diagonal(&self) -> impl Iterator<Item = f64> + Clone {
        self.gram.iter().step_by(self.target.len() + 1).copied()
    }

    /// Returns the largest k(z, z).
    pub(crate) fn max_diagonal(&self) -> f64 {
        self.diagonal().fold(0.0, f64::max)
    }

    /// Returns K A for A (m, q).
    pub(crate) fn times(&self, a: &[f64]) -> Result<Vec<f64>> {
        let (m, q) = (self.target.len(), self.target.outputs());
        let mut out = try_zeros("the outputs at the vectors", m * q)?;
        self.ctx.counter("product", m).for_each_batch(m, (m * q) as u64, |lines, _| {
            self.ctx.for_each_chunk(&mut out[lines.start * q..lines.end * q], q, |i, out| {
                let i = lines.start + i;
                for (&k, a) in self.gram[i * m..(i + 1) * m].iter().zip(a.chunks_exact(q)) {
                    if k != 0.0 {
                        axpy(k, a, out);
                    }
                }
            });
            Ok(())
        })?;
        Ok(out)
    }
}

/// Vectors in the order in which they are chosen.
#[derive(Debug, PartialEq)]
pub struct Order {
    pub(crate) vectors: Vec<usize>,
    /// The lambda at which each vector entered, for penalized paths.
    pub(crate) penalties: Vec<f64>,
    /// The penalized coefficients of every size, if they are kept.
    pub(crate) coefficients: Option<Coefficients>,
    pub(crate) reason: StopReason,
}

impl Order {
    /// Returns an order without penalties and coefficients.
    pub fn new(vectors: Vec<usize>, reason: StopReason) -> Self {
        Self { vectors, penalties: Vec::new(), coefficients: None, reason }
    }
}

/// Coefficients of sizes 1, 2, ..., each stored as its difference from the one before, as basic steps are (`path`).
#[derive(Debug, PartialEq)]
pub(crate) struct Coefficients {
    outputs: usize,
    /// (steps, q).
    pub(crate) changes: Vec<f64>,
    /// Place of the vector of each step in the order.
    pub(crate) vector_of_step: Vec<usize>,
    /// Number of steps of each size.
    pub(crate) steps_of_size: Vec<usize>,
    /// Coefficients of the last size.
    last: Vec<f64>,
}

impl Coefficients {
    /// Returns coefficients of no size.
    pub(crate) fn new(outputs: usize) -> Self {
        let (changes, last) = (Vec::new(), Vec::new());
        Self { outputs, changes, vector_of_step: Vec::new(), steps_of_size: Vec::new(), last }
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Sets the coefficients (size, q) of the last size, or appends those of the next. Size 0 is ignored.
    pub(crate) fn set(&mut self, rows: &[f64]) -> Result<()> {
        let (q, size) = (self.outputs, rows.len() / self.outputs);
        if size == 0 {
            return Ok(());
        }
        if self.steps_of_size.len() == size {
            self.remove_last();
        }
        self.last.resize(rows.len(), 0.0);
        for (place, (old, new)) in self.last.chunks_exact_mut(q).zip(rows.chunks_exact(q)).enumerate() {
            if old != new {
                self.changes.try_extend(new.iter().zip(&*old).map(|(new, old)| new - old))?;
                self.vector_of_step.push(place);
                old.copy_from_slice(new);
            }
        }
        self.steps_of_size.push(self.vector_of_step.len());
        Ok(())
    }

    /// Removes the last size.
    fn remove_last(&mut self) {
        self.steps_of_size.pop();
        let steps = self.steps_of_size.last().copied().unwrap_or(0);
        let q = self.outputs;
        for (change, place) in self.changes[steps * q..].chunks_exact(q).zip(&self.vector_of_step[steps..]) {
            axpy(-1.0, change, &mut self.last[place * q..(place + 1) * q]);
        }
        self.changes.truncate(steps * q);
        self.vector_of_step.truncate(steps);
        self.last.truncate(self.steps_of_size.len() * q);
    }
}
