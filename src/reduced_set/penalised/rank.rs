//! A basis of the span of all vectors, lossless where it is complete (Weston and Bakir, TR-132, eq. 3, after Downs, Gates
//! and Masters, 2001): the vector farthest from the span of those chosen is next.
//!
//! Cost: m r^2 for a basis of r vectors.

use super::problem::{Order, Problem};
use crate::context::StopReason;
use crate::error::Result;
use crate::linalg::pivoted::pivoted;
use crate::reduced_set::pursuit::indefinite;
use crate::simd::blas::dot;

/// The basis; vectors within `tolerance` of the span, in squared distance relative to the largest k(z, z), are in it.
pub(super) fn order(problem: &Problem<'_, '_>, tolerance: f64) -> Result<Order> {
    let (vectors, _, stopped) = basis(problem, problem.max_vectors, tolerance)?;
    Ok(Order::new(vectors, stopped.unwrap_or(StopReason::Converged)))
}

/// A basis of at most so many vectors, L (m, r) with K ~ L L', and why it is not whole where the monitor has said so.
pub(super) fn basis(
    problem: &Problem<'_, '_>,
    most: usize,
    tolerance: f64,
) -> Result<(Vec<usize>, Vec<f64>, Option<StopReason>)> {
    let mut counter = problem.ctx.counter("basis", most);
    let (order, factor, stopped) =
        pivoted(problem.gram, problem.target.len(), most, tolerance, &mut counter)?;
    // What the factor leaves of the diagonal must be a squared distance.
    let (rank, largest) = (order.len(), problem.largest());
    let line = |i: usize| &factor[i * rank..(i + 1) * rank];
    let left = problem.diagonal().enumerate().map(|(i, own)| own - dot(line(i), line(i)));
    match left.into_iter().find(|&v| v < -1e-6 * largest) {
        Some(negative) => Err(indefinite(&problem.target.kernel, negative)),
        None => Ok((order, factor, stopped)),
    }
}
