//! Points for a low rank approximation, chosen by the kernel matrix (Rifkin 2002, section 3.7.1).
//!
//! Incomplete Cholesky factorization with pivots: K ~ L L' gains a column at each step. The pivoted Cholesky rule (Fine and
//! Scheinberg 2001) chooses the row with the largest diagonal of the remainder R = K - L L'. The greedy trace rule (Smola and
//! Schoelkopf 2000) draws random rows at each step and chooses the one that lowers the trace most, by sum_j R_ij^2 / R_ii.
//!
//! Invariant: the diagonal of the remainder is never negative, and its sum falls. Cost n m^2 / 2 multiply-adds and n m
//! kernel values, times the number of candidates for the greedy trace rule; memory n m numbers.
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::least_squares::selection::select_points;
//!
//! let x = Array2::from_shape_fn((40, 1), |(i, _)| 0.1 * i as f64);
//! let points = select_points(Kernel::Rbf { gamma: 1.0 }, Rows::try_from(&x)?, 5, None, Context::default())?;
//! assert_eq!(points.rows.len(), 5);
//! assert!(points.remaining[5] < 0.2 * points.remaining[0]);
//! # Ok::<(), svmarrow::Error>(())
//! ```

use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{CoefficientSum, Kernel, KernelRows, Precision, PreparedRows};
use crate::linalg::pivoted::{PivotedCholesky, SymmetricColumns};
use crate::random::Random;

/// The rows chosen, in order, and the trace of the remainder after each; the first entry is the trace of K.
#[derive(Debug, Clone)]
pub struct Points {
    /// Indices of the selected rows, in the order in which they were chosen.
    pub rows: Vec<usize>,
    /// One more than there are rows.
    pub remaining: Vec<f64>,
}

/// Random rows of each step, of which the best is chosen.
#[derive(Debug, Clone, Copy)]
pub struct Candidates {
    /// Number of rows drawn at each step, which are fewer at the end.
    pub count: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Chooses up to `count` rows: the largest diagonal if `candidates` is `None`, else the best of the rows drawn at each step.
///
/// Ends early if the remainder is zero to rounding.
///
/// # Errors
/// [`Error::Param`](crate::Error::Param) for a kernel that is not computed from rows,
/// [`Error::Stopped`](crate::Error::Stopped).
pub fn select_points(
    kernel: Kernel,
    x: Rows<'_>,
    count: usize,
    candidates: Option<Candidates>,
    ctx: Context<'_>,
) -> Result<Points> {
    let rows = PreparedRows::new(kernel, x, CoefficientSum::Any, ctx)?;
    rows.magnitudes().check_overflow("X", Precision::Double)?;
    let n = x.rows();
    let all: Vec<usize> = (0..n).collect();
    let source = rows.kernel_rows(&all, Precision::Double, ctx)?;
    let columns = KernelMatrixColumns { source: &source, rows: &all };
    let max_points = count.min(n);
    let mut factorization = PivotedCholesky::new(&columns, max_points)?;
    let total: f64 = factorization.remaining.iter().sum();
    let mut remaining = vec![total];
    let mut draws = candidates.map(|Candidates { count, seed }| (count, Random::new(seed)));
    let min_distance = 1e-12 * total / n as f64;
    while factorization.order.len() < max_points {
        ctx.check("select", factorization.order.len(), max_points)?;
        let left = &factorization.remaining;
        let open: Vec<usize> = match &mut draws {
            None => (0..n)
                .max_by(|&a, &b| left[a].total_cmp(&left[b]).then(b.cmp(&a)))
                .into_iter()
                .collect::<Vec<_>>(),
            Some((count, random)) => {
                let open: Vec<usize> = (0..n).filter(|&i| left[i] > min_distance).collect();
                random
                    .sample(open.len(), open.len().min(*count))
                    .into_iter()
                    .map(|i| open[i])
                    .collect::<Vec<_>>()
            }
        };
        let open: Vec<usize> = open.into_iter().filter(|&i| left[i] > min_distance).collect();
        if open.is_empty() {
            break;
        }
        factorization.take_best(&open, ctx)?;
        remaining.push(factorization.remaining.iter().sum());
    }
    let mut rows = factorization.order;
    if rows.is_empty() && max_points > 0 {
        // A kernel that is zero everywhere has one point, since callers need at least one.
        rows.push(0);
        remaining.push(total);
    }
    Ok(Points { rows, remaining })
}

/// The kernel matrix of rows, as columns.
struct KernelMatrixColumns<'k, 'a> {
    source: &'k KernelRows<'a>,
    rows: &'k [usize],
}

impl SymmetricColumns for KernelMatrixColumns<'_, '_> {
    fn diagonal(&self) -> Vec<f64> {
        self.source.diagonal(self.rows)
    }

    fn write(&self, numbers: &[usize], columns: &mut [&mut [f64]], ctx: Context<'_>) -> Result<()> {
        self.source.compute(numbers, columns, ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;

    #[test]
    fn a_kernel_that_is_zero_has_one_point() {
        let x: Rows<'_> = Rows::from_shape((5, 2), &[0.0; 10]).unwrap();
        let chosen = select_points(Kernel::Linear, x, 3, None, Context::SEQUENTIAL).unwrap();
        assert_eq!((chosen.rows, chosen.remaining), (vec![0], vec![0.0, 0.0]));
    }

    #[test]
    fn the_trace_falls_and_duplicates_are_not_chosen_twice() {
        let (n, d) = (60, 3);
        let data: Vec<f64> = (0..n * d).map(|i| ((i % (n * d / 2)) as f64 * 0.77).sin()).collect();
        let x: Rows<'_> = Rows::from_shape((n, d), &data).unwrap();
        let kernel = Kernel::Rbf { gamma: 2.0 };
        for candidates in [None, Some(Candidates { count: 7, seed: 3 })] {
            let chosen = select_points(kernel, x, n, candidates, Context::default()).unwrap();
            assert!(chosen.rows.len() <= n / 2);
            assert!(chosen.remaining.windows(2).all(|w| w[1] <= w[0]));
            assert!(*chosen.remaining.last().unwrap() < 1e-6);
            let again = select_points(kernel, x, n, candidates, Context::SEQUENTIAL).unwrap();
            assert_eq!(again.rows, chosen.rows);
        }
    }
}
