//! A basis of the span of all vectors, lossless if it is complete (Weston and Bakir, TR-132, eq. 3, after Downs, Gates
//! and Masters, 2001): the vector farthest from the span of those chosen is next.
//!
//! Invariant: the factor reproduces the diagonal of K to 1e-6 of its largest entry, or the kernel is reported as indefinite.
//!
//! Cost: m r^2 for a basis of r vectors.

use super::problem::{Method, Order, Problem};
use crate::context::StopReason;
use crate::error::{Error, Result};
use crate::linalg::pivoted::pivoted;
use crate::reduced_set::pursuit::indefinite;
use crate::simd::blas::dot;

/// A basis: the vector farthest from the span is next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rank {
    /// Squared distance from the span, relative to the largest k(z, z), within which a vector counts as inside it.
    pub tolerance: f64,
}

impl Method for Rank {
    fn check(&self) -> Result<()> {
        Error::check_not_negative("rank_tolerance", self.tolerance)
    }

    fn order(&self, problem: &Problem<'_, '_>) -> Result<Order> {
        let (vectors, _, stopped) = basis(problem, problem.max_vectors, self.tolerance)?;
        Ok(Order::new(vectors, stopped.unwrap_or(StopReason::Converged)))
    }

    fn numbers(&self, m: u64, _: u64, max_vectors: u64) -> u64 {
        m * (m + 2 * max_vectors)
    }
}

/// Returns a basis of at most `max_vectors` vectors, L (m, r) with K ~ L L', and the reason of the monitor if it stopped
/// the work.
pub(crate) fn basis(
    problem: &Problem<'_, '_>,
    max_vectors: usize,
    tolerance: f64,
) -> Result<(Vec<usize>, Vec<f64>, Option<StopReason>)> {
    let mut counter = problem.ctx.counter("basis", max_vectors);
    let (order, factor, stopped) =
        pivoted(problem.gram, problem.target.len(), max_vectors, tolerance, &mut counter)?;
    // The remaining diagonal must be a squared distance.
    let (rank, largest) = (order.len(), problem.max_diagonal());
    let line = |i: usize| &factor[i * rank..(i + 1) * rank];
    let remaining = problem.diagonal().enumerate().map(|(i, self_value)| self_value - dot(line(i), line(i)));
    match remaining.into_iter().find(|&v| v < -1e-6 * largest) {
        Some(negative) => Err(indefinite(&problem.target.kernel, negative)),
        None => Ok((order, factor, stopped)),
    }
}
