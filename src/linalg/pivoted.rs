//! Pivoted Cholesky factorization of a positive semidefinite A (m, m): A ~ L L' with L (m, r) (Higham,
//! 1990): the row with the largest remaining diagonal entry is next, until that is at most `tolerance` times the largest of A.
//!
//! Invariant: the remaining diagonal is the squared distance of every row from the span of the chosen rows, which are a
//! basis. Cost m r^2.

use crate::argmax::argmax;
use crate::context::{StopReason, WorkCounter};
use crate::error::Result;
use crate::memory::{TryGrow, try_with_capacity};
use crate::simd::blas::dot;

/// Returns the chosen rows in order, L row-major with one column for each, and the reason of the monitor if it stopped the
/// work.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(crate) fn pivoted(
    a: &[f64],
    m: usize,
    max_rank: usize,
    tolerance: f64,
    counter: &mut WorkCounter<'_>,
) -> Result<(Vec<usize>, Vec<f64>, Option<StopReason>)> {
    let mut distance: Vec<f64> = (0..m).map(|i| a[i * m + i]).collect();
    let min_distance = tolerance * distance.iter().copied().fold(0.0, f64::max);
    let mut lines: Vec<Vec<f64>> = vec![Vec::new(); m];
    let mut order = Vec::new();
    let mut stopped = None;
    while order.len() < max_rank.min(m) {
        stopped = StopReason::from_result(counter.charge((m * (order.len() + 8)) as u64))?;
        if stopped.is_some() {
            break;
        }
        let best = argmax(distance.iter().copied());
        if !(distance[best] > min_distance) {
            break;
        }
        let pivot = distance[best].sqrt();
        let line = lines[best].clone();
        for i in 0..m {
            let value = if i == best { pivot } else { (a[best * m + i] - dot(&lines[i], &line)) / pivot };
            // Chosen rows are in the span; the formula gives rounding errors for them.
            let value = if distance[i] == 0.0 && i != best { 0.0 } else { value };
            lines[i].try_push(value)?;
            distance[i] = if i == best { 0.0 } else { (distance[i] - value * value).max(0.0) };
        }
        order.push(best);
    }
    let mut factor = try_with_capacity("a basis", m * order.len())?;
    for line in &lines {
        factor.extend_from_slice(line);
    }
    Ok((order, factor, stopped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;

    #[test]
    fn the_rank_is_exact_and_the_product_is_the_matrix() {
        let (m, d) = (30, 4);
        let x: Vec<f64> = (0..m * d).map(|i| (i as f64 * 0.77 + (i * i) as f64 * 0.013).sin()).collect();
        let a: Vec<f64> =
            (0..m * m).map(|i| dot(&x[i / m * d..(i / m + 1) * d], &x[i % m * d..(i % m + 1) * d])).collect();
        let (order, l, _) = pivoted(&a, m, m, 1e-12, &mut Context::default().counter("", 0)).unwrap();
        assert_eq!(order.len(), d);
        for i in 0..m {
            for j in 0..m {
                let product = dot(&l[i * d..(i + 1) * d], &l[j * d..(j + 1) * d]);
                assert!((product - a[i * m + j]).abs() < 1e-12);
            }
        }
        assert_eq!(pivoted(&a, m, 2, 0.0, &mut Context::default().counter("", 0)).unwrap().0.len(), 2);
        assert!(pivoted(&[0.0; 9], 3, 3, 0.0, &mut Context::default().counter("", 0)).unwrap().0.is_empty());
    }
}
