//! A = L L' for a symmetric positive definite A (n, n), row by row with inner products, and A X = B by two
//! triangular solves.
//!
//! Cost n^3 / 6 multiply-adds to factor, n^2 q to solve for q right-hand sides.

use crate::error::{Error, Result};
use crate::simd::blas::{axpy, dot};
use std::ops::Range;

/// Replaces the lower triangle of `a` by L; the upper one is neither read nor written.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] at the first pivot that is not above zero.
pub(crate) fn factor(a: &mut [f64], n: usize) -> Result<()> {
    factor_lines(a, n, 0..n)
}

/// Some lines of L, after those above: for callers who look at a monitor in between.
///
/// # Errors
/// As [`factor`].
pub(crate) fn factor_lines(a: &mut [f64], n: usize, lines: Range<usize>) -> Result<()> {
    for i in lines {
        let (above, line) = a.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..j * n + j + 1];
            line[j] = (line[j] - dot(&line[..j], &other[..j])) / other[j];
        }
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

/// One right-hand side (n,), the lines of L `stride` apart: along the rows of L in both directions.
pub(crate) fn solve_one(l: &[f64], stride: usize, b: &mut [f64]) {
    for i in 0..b.len() {
        let row = &l[i * stride..=i * stride + i];
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
    for i in (0..b.len()).rev() {
        let row = &l[i * stride..=i * stride + i];
        b[i] /= row[i];
        let (before, mine) = b.split_at_mut(i);
        axpy(-mine[0], &row[..i], before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_and_refuses() {
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
        a[5 * n + 5] = -1.0;
        assert!(matches!(factor(&mut a, n), Err(Error::NotPositiveDefinite { index: 5, .. })));
    }
}
