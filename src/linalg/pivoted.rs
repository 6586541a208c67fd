//! Pivoted Cholesky factorization of a positive semidefinite A (n, n), which a source gives by columns: A ~ L L' with L (n, r)
//! (Higham, 1990; Fine and Scheinberg, 2001). Each step computes one column of A, or those of a few candidates of which it takes
//! the best, and appends a column to L.
//!
//! There is one factorization for matrices in memory ([`pivoted`]) and for kernel matrices whose columns are computed when they
//! are needed (points of a low-rank approximation), so that both handle rows inside the span alike.
//!
//! Invariant: the remaining diagonal is the squared distance of every row from the span of the chosen rows, which are a
//! basis; it is zero for chosen rows. Cost n r^2 / 2 multiply-adds and n r entries of A, times the number of candidates.

use crate::argmax::argmax;
use crate::context::{Context, StopReason, WorkCounter};
use crate::error::Result;
use crate::memory::try_zeros;
use crate::simd::blas::dot;

/// Number of rows of a task.
const ROWS_PER_TASK: usize = 512;
/// Number of columns for which L has memory at first.
const FIRST_COLUMNS: usize = 32;

/// A symmetric matrix that is given by its columns.
pub(crate) trait SymmetricColumns {
    /// Returns the diagonal of the matrix, (n,), from which pivots are chosen.
    fn diagonal(&self) -> Vec<f64>;

    /// Writes the columns of the given numbers.
    fn write(&self, numbers: &[usize], columns: &mut [&mut [f64]], ctx: Context<'_>) -> Result<()>;
}

/// A matrix (n, n) in memory, row-major.
struct Dense<'a> {
    a: &'a [f64],
    n: usize,
}

impl SymmetricColumns for Dense<'_> {
    fn diagonal(&self) -> Vec<f64> {
        self.a.iter().step_by(self.n + 1).copied().collect()
    }

    fn write(&self, numbers: &[usize], columns: &mut [&mut [f64]], _: Context<'_>) -> Result<()> {
        for (&i, column) in numbers.iter().zip(columns) {
            column.copy_from_slice(&self.a[i * self.n..(i + 1) * self.n]);
        }
        Ok(())
    }
}

/// A factorization that gains columns.
pub(crate) struct PivotedCholesky<'s, S> {
    source: &'s S,
    /// L, row-major; rows are `stride` numbers apart.
    factor: Vec<f64>,
    stride: usize,
    /// The candidates' columns of the last step.
    columns: Vec<f64>,
    /// The chosen rows, in order.
    pub(crate) order: Vec<usize>,
    /// The remaining diagonal.
    pub(crate) remaining: Vec<f64>,
}

impl<'s, S: SymmetricColumns> PivotedCholesky<'s, S> {
    /// Returns a factorization without columns, with memory for `capacity` of them.
    pub(crate) fn new(source: &'s S, capacity: usize) -> Result<Self> {
        let remaining = source.diagonal();
        let factor = try_zeros("a factor of low rank", remaining.len().saturating_mul(capacity))?;
        Ok(Self { source, factor, stride: capacity, columns: Vec::new(), order: Vec::new(), remaining })
    }

    /// Takes the candidate, with a remaining diagonal above zero, that reduces the trace of A - L L' most.
    ///
    /// # Errors
    /// The errors of the source, after which the factorization is as before.
    pub(crate) fn take_best(&mut self, candidates: &[usize], ctx: Context<'_>) -> Result<()> {
        let (n, rank) = (self.remaining.len(), self.order.len());
        if rank == self.stride {
            self.widen()?;
        }
        let (factor, stride) = (&mut self.factor, self.stride);
        if self.columns.len() < candidates.len() * n {
            self.columns = try_zeros("columns of candidates", candidates.len() * n)?;
        }
        let columns = &mut self.columns[..candidates.len() * n];
        let mut parts: Vec<&mut [f64]> = columns.chunks_exact_mut(n).collect();
        self.source.write(candidates, &mut parts, ctx)?;
        for (column, &chosen) in parts.iter_mut().zip(candidates) {
            let line = &factor[chosen * stride..chosen * stride + rank];
            ctx.for_each_chunk(column, ROWS_PER_TASK, |task, column| {
                for (i, value) in (task * ROWS_PER_TASK..).zip(column) {
                    *value -= dot(&factor[i * stride..i * stride + rank], line);
                }
            });
        }
        let gains = parts.iter().zip(candidates).map(|(column, &i)| dot(column, column) / self.remaining[i]);
        let best = if candidates.len() == 1 { 0 } else { argmax(gains) };
        let (row, column) = (candidates[best], &columns[best * n..(best + 1) * n]);
        let pivot = self.remaining[row].sqrt();
        for (i, (remaining, &value)) in self.remaining.iter_mut().zip(column).enumerate() {
            // Chosen rows are in the span; the formula gives rounding errors for them.
            let value = if i == row {
                pivot
            } else if *remaining == 0.0 {
                0.0
            } else {
                value / pivot
            };
            factor[i * stride + rank] = value;
            *remaining = if i == row { 0.0 } else { (*remaining - value * value).max(0.0) };
        }
        self.order.push(row);
        Ok(())
    }

    /// Doubles the memory of L.
    fn widen(&mut self) -> Result<()> {
        let n = self.remaining.len();
        let stride = (2 * self.stride).clamp(FIRST_COLUMNS, n.max(FIRST_COLUMNS));
        let mut wider = try_zeros("a factor of low rank", n.saturating_mul(stride))?;
        if self.stride > 0 {
            for (to, from) in wider.chunks_exact_mut(stride).zip(self.factor.chunks_exact(self.stride)) {
                to[..self.stride].copy_from_slice(from);
            }
        }
        (self.factor, self.stride) = (wider, stride);
        Ok(())
    }

    /// Returns the chosen rows and L, (n, r).
    fn into_parts(mut self) -> (Vec<usize>, Vec<f64>) {
        let (n, rank) = (self.remaining.len(), self.order.len());
        for i in 0..n {
            self.factor.copy_within(i * self.stride..i * self.stride + rank, i * rank);
        }
        self.factor.truncate(n * rank);
        (self.order, self.factor)
    }
}

/// Factors a matrix (m, m) in memory: the row with the largest remaining diagonal entry is next, until that is at most
/// `tolerance` times the largest of A, or `max_rank` rows are chosen.
///
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
    let source = Dense { a, n: m };
    let mut factorization = PivotedCholesky::new(&source, 0)?;
    let min_distance = tolerance * factorization.remaining.iter().copied().fold(0.0, f64::max);
    let mut stopped = None;
    while factorization.order.len() < max_rank.min(m) {
        let work = m * (factorization.order.len() + 8);
        stopped = StopReason::from_result(counter.charge(work as u64))?;
        let best = argmax(factorization.remaining.iter().copied());
        if stopped.is_some() || !(factorization.remaining[best] > min_distance) {
            break;
        }
        factorization.take_best(&[best], Context::SEQUENTIAL)?;
    }
    let (order, factor) = factorization.into_parts();
    Ok((order, factor, stopped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_exact_and_the_product_is_the_matrix() {
        for (m, d) in [(30, 4), (90, 70)] {
            let x: Vec<f64> = (0..m * d).map(|i| (i as f64 * 0.77 + (i * i) as f64 * 0.013).sin()).collect();
            let a: Vec<f64> = (0..m * m)
                .map(|i| dot(&x[i / m * d..(i / m + 1) * d], &x[i % m * d..(i % m + 1) * d]))
                .collect();
            let (order, l, _) = pivoted(&a, m, m, 1e-12, &mut Context::default().counter("", 0)).unwrap();
            assert_eq!(order.len(), d);
            for i in 0..m {
                for j in 0..m {
                    let product = dot(&l[i * d..(i + 1) * d], &l[j * d..(j + 1) * d]);
                    assert!((product - a[i * m + j]).abs() < 1e-11);
                }
            }
            assert_eq!(pivoted(&a, m, 2, 0.0, &mut Context::default().counter("", 0)).unwrap().0.len(), 2);
        }
        assert!(pivoted(&[0.0; 9], 3, 3, 0.0, &mut Context::default().counter("", 0)).unwrap().0.is_empty());
    }

    #[test]
    fn the_best_candidate_reduces_the_trace_most() {
        let a = [4.0, 0.0, 0.0, 0.0, 9.0, 9.0, 0.0, 9.0, 9.0];
        let source = Dense { a: &a, n: 3 };
        let mut factorization = PivotedCholesky::new(&source, 1).unwrap();
        factorization.take_best(&[0, 1], Context::SEQUENTIAL).unwrap();
        assert_eq!((&*factorization.order, &*factorization.remaining), (&[1][..], &[4.0, 0.0, 0.0][..]));
        factorization.take_best(&[0], Context::SEQUENTIAL).unwrap();
        assert_eq!(factorization.remaining, [0.0; 3]);
        assert_eq!(factorization.into_parts().1, [0.0, 2.0, 3.0, 0.0, 3.0, 0.0]);
    }
}
