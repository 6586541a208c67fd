//! A basis of the span of all vectors, lossless if it is complete (Weston and Bakir, TR-132, eq. 3, after Downs, Gates
//! and Masters, 2001): the vector farthest from the span of those chosen is next.
//!
//! Invariant: the factor reproduces the diagonal of K to 1e-6 of its largest entry, or the kernel is reported as indefinite.
//!
//! Cost: m r^2 for a basis of r vectors.

use super::problem::{Order, Problem};
use crate::context::StopReason;
use crate::error::Result;
use crate::linalg::pivoted::pivoted;
use crate::reduced_set::pursuit::indefinite;
use crate::simd::blas::dot;

/// Returns a basis; vectors within `tolerance` of the span, in squared distance relative to the largest k(z, z), count as
/// inside it.
pub(super) fn order(problem: &Problem<'_, '_>, tolerance: f64) -> Result<Order> {
    let (vectors, _, stopped) = basis(problem, problem.max_vectors, tolerance)?;
    Ok(Order::new(vectors, stopped.unwrap_or(StopReason::Converged)))
}

/// Returns a basis of at most `max_vectors` vectors, L (m, r) with K ~ L L', and the reason of the monitor if it stopped
/// the work.
pub(super) fn basis(
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
    let remaining = problem.diagonal().enumerate().map(|(i, own)| own - dot(line(i), line(i)));
    match remaining.into_iter().find(|&v| v < -1e-6 * largest) {
        Some(negative) => Err(indefinite(&problem.target.kernel, negative)),
        None => Ok((order, factor, stopped)),
    }
}
