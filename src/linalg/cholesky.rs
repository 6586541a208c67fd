//! Serial Cholesky factorization A = L L' of a symmetric positive definite A (n, n), solution of A X = B, and inverse.
//!
//! These functions are for matrices of up to a few hundred rows and for callers that are themselves parallel: they need no
//! copy, no packing and no threads. `dense` factors matrices that fill the memory, over threads and in any precision, with
//! another order of summation.
//!
//! Invariant: the upper triangle is neither read nor written, except by [`invert`]. Cost: n^3 / 6 multiply-adds to factor,
//! n^2 q to solve for q right-hand sides.

use crate::context::WorkCounter;
use crate::error::{Error, Result};
use crate::simd::blas::{axpy, dot};
use std::ops::Range;

/// Replaces the lower triangle of `a` by L.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] at the first pivot that is not positive.
pub(crate) fn factor(a: &mut [f64], n: usize) -> Result<()> {
    factor_lines(a, n, 0..n)
}

/// Factors as [`factor`] does, with checks of the monitor.
///
/// # Errors
/// See [`factor`]; [`Error::Stopped`].
pub(crate) fn factor_counted(a: &mut [f64], n: usize, counter: &mut WorkCounter<'_>) -> Result<()> {
    counter.for_each_batch(n, (n * n / 2) as u64, |lines, _| factor_lines(a, n, lines))
}

/// Computes some lines of L, given those above.
fn factor_lines(a: &mut [f64], n: usize, lines: Range<usize>) -> Result<()> {
    for i in lines {
        let (above, line) = a.split_at_mut(i * n);
        substitute_forward(|j| &above[j * n..], &mut line[..i]);
        let pivot = line[i] - dot(&line[..i], &line[..i]);
        if !(pivot > 0.0) {
            let largest = (i + 1..n).fold(a[i * n + i], |largest, k| a[k * n + k].max(largest));
            return Err(Error::NotPositiveDefinite { index: i, pivot, largest });
        }
        line[i] = pivot.sqrt();
    }
    Ok(())
}

/// Solves L L' X = B in place, B (n, q) row-major.
pub(crate) fn solve(l: &[f64], n: usize, b: &mut [f64], q: usize) {
    if q == 1 {
        return solve_one(l, n, b);
    }
    for i in 0..n {
        let (solved, mine) = b.split_at_mut(i * q);
        for j in 0..i {
            axpy(-l[i * n + j], &solved[j * q..(j + 1) * q], &mut mine[..q]);
        }
        for v in &mut mine[..q] {
            *v /= l[i * n + i];
        }
    }
    for i in (0..n).rev() {
        let (before, mine) = b.split_at_mut(i * q);
        let mine = &mut mine[..q];
        for v in mine.iter_mut() {
            *v /= l[i * n + i];
        }
        for j in 0..i {
            axpy(-l[i * n + j], mine, &mut before[j * q..(j + 1) * q]);
        }
    }
}

/// Solves for one right-hand side (n,), with the lines of L `stride` apart.
pub(crate) fn solve_one(l: &[f64], stride: usize, b: &mut [f64]) {
    substitute_forward(|i| &l[i * stride..], b);
    substitute_backward(|i| &l[i * stride..], b);
}

/// Solves L x = b in place; `row(i)` begins with the i + 1 entries of row i of L.
pub(super) fn substitute_forward<'l>(row: impl Fn(usize) -> &'l [f64], b: &mut [f64]) {
    for i in 0..b.len() {
        let row = row(i);
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
}

/// Solves L' x = b in place; `row(i)` begins with the i + 1 entries of row i of L.
pub(super) fn substitute_backward<'l>(row: impl Fn(usize) -> &'l [f64], b: &mut [f64]) {
    for i in (0..b.len()).rev() {
        let row = row(i);
        let (before, tail) = b.split_at_mut(i);
        tail[0] /= row[i];
        axpy(-tail[0], &row[..i], before);
    }
}

/// Replaces a symmetric positive definite A (n, n) by A^-1; returns false if A is not positive definite.
///
/// `row` is a buffer. Cost n^3 / 2 multiply-adds.
///
/// # Errors
/// [`Error::Stopped`].
pub(crate) fn invert(
    a: &mut [f64],
    n: usize,
    row: &mut Vec<f64>,
    counter: &mut WorkCounter<'_>,
) -> Result<bool> {
    for i in 0..n {
        counter.charge((i * i) as u64)?;
        if factor_lines(a, n, i..i + 1).is_err() {
            return Ok(false);
        }
    }
    // M = L^-1 in place of L, row by row.
    for i in 0..n {
        counter.charge((i * i) as u64)?;
        let (above, line) = a.split_at_mut(i * n);
        row.clear();
        row.resize(i, 0.0);
        for (k, &l) in line[..i].iter().enumerate() {
            axpy(-l, &above[k * n..=k * n + k], &mut row[..=k]);
        }
        let inverse_pivot = 1.0 / line[i];
        line[..i].iter_mut().zip(&*row).for_each(|(out, v)| *out = inverse_pivot * v);
        line[i] = inverse_pivot;
    }
    // M'M in place of M: row i takes the rows of M from i on.
    for i in 0..n {
        counter.charge((i * (n - i)) as u64)?;
        row.clear();
        row.resize(i + 1, 0.0);
        for line in a.chunks_exact(n).skip(i) {
            axpy(line[i], &line[..=i], row);
        }
        a[i * n..=i * n + i].copy_from_slice(row);
    }
    for i in 0..n {
        for k in 0..i {
            a[k * n + i] = a[i * n + k];
        }
    }
    Ok(a.iter().all(|v| v.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;

    #[test]
    fn the_solution_and_the_inverse_are_exact_and_indefinite_matrices_are_refused() {
        let (n, q) = (40, 3);
        let noise = |i: usize| (i as f64 * 0.7 + (i * i) as f64 * 0.01).sin();
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                a[i * n + j] = (0..n).map(|k| noise(i * n + k) * noise(j * n + k)).sum::<f64>();
            }
            a[i * n + i] += 1.0;
        }
        let x: Vec<f64> = (0..n * q).map(noise).collect();
        let mut b = vec![0.0; n * q];
        for i in 0..n {
            for k in 0..n {
                axpy(a[i * n + k], &x[k * q..(k + 1) * q], &mut b[i * q..(i + 1) * q]);
            }
        }
        let mut l = a.clone();
        factor(&mut l, n).unwrap();
        solve(&l, n, &mut b, q);
        assert!(b.iter().zip(&x).all(|(b, x)| (b - x).abs() < 1e-9));
        let (mut inverse, mut counter) = (a.clone(), Context::default().counter("", 0));
        assert!(invert(&mut inverse, n, &mut Vec::new(), &mut counter).unwrap());
        for i in 0..n {
            for j in 0..n {
                let entry = dot(&a[i * n..(i + 1) * n], &inverse[j * n..(j + 1) * n]);
                assert!((entry - if i == j { 1.0 } else { 0.0 }).abs() < 1e-9, "{i} {j}: {entry}");
            }
        }
        assert!(invert(&mut [], 0, &mut Vec::new(), &mut counter).unwrap());
        assert!(!invert(&mut [1.0, 2.0, 2.0, 1.0], 2, &mut Vec::new(), &mut counter).unwrap());
        a[5 * n + 5] = -1.0;
        assert!(matches!(factor(&mut a, n), Err(Error::NotPositiveDefinite { index: 5, .. })));
    }
}
