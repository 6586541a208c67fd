//! What the methods are given, and what they give: vectors in an order.

use crate::control::{Monitor, Par, StopReason};
use crate::expansion::ExpansionView;
use crate::simd::blas::axpy;

/// How the coefficients of one vector are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Norm {
    /// |b|_1: every output chooses for itself.
    Each,
    /// max |b|: all outputs choose together.
    #[default]
    Joint,
}

/// An expansion with its kernel matrix.
pub(super) struct Problem<'a, 'e> {
    pub(super) target: &'a ExpansionView<'e>,
    /// K of its vectors, (m, m).
    pub(super) gram: &'a [f64],
    /// Most vectors to put in order.
    pub(super) max_vectors: usize,
    pub(super) monitor: &'a dyn Monitor,
    pub(super) par: Par,
}

impl Problem<'_, '_> {
    /// k(z, z) of every vector.
    pub(super) fn diagonal(&self) -> impl Iterator<Item = f64> + Clone {
        self.gram.iter().step_by(self.target.len() + 1).copied()
    }

    /// The largest of them.
    pub(super) fn largest(&self) -> f64 {
        self.diagonal().fold(0.0, f64::max)
    }

    /// K A for A (m, q).
    pub(super) fn times(&self, a: &[f64]) -> Vec<f64> {
        let (m, q) = (self.target.len(), self.target.outputs());
        let mut out = vec![0.0; m * q];
        self.par.for_each_chunk(&mut out, q, |i, out| {
            for (&k, a) in self.gram[i * m..(i + 1) * m].iter().zip(a.chunks_exact(q)) {
                if k != 0.0 {
                    axpy(k, a, out);
                }
            }
        });
        out
    }
}

/// Vectors in the order in which they are kept.
#[derive(Debug, PartialEq)]
pub(super) struct Order {
    pub(super) vectors: Vec<usize>,
    /// The lambda that each vector entered at, for the penalised paths.
    pub(super) penalties: Vec<f64>,
    pub(super) reason: StopReason,
}

impl Order {
    /// One without penalties.
    pub(super) fn new(vectors: Vec<usize>, reason: StopReason) -> Self {
        Self { vectors, penalties: Vec::new(), reason }
    }
}
