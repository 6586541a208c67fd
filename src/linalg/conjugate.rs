//! Conjugate gradients with a preconditioner for several right-hand sides at once: A X = B, A symmetric positive
//! definite and known by its products alone (Rifkin 2002, appendix C; Hestenes and Stiefel, 1952).
//!
//! Each column has its own steps and its own end; all share every product with A. Where the recursion says that all
//! have converged, the true residual is computed, and the iteration starts again from it if it is larger: what is
//! reported is the true residual.
//!
//! Cost a product with A and one with the preconditioner an iteration.

use std::ops::ControlFlow;

use crate::control::{Monitor, Progress, StopReason};
use crate::error::Result;

/// When the iteration ends: where every column has ||r|| <= relative ||b|| + backward ||A|| ||x||, with the largest
/// Rayleigh quotient seen for ||A||, or all products are spent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) relative: f64,
    pub(crate) backward: f64,
    /// Most products with A.
    pub(crate) products: u64,
}

/// How the iteration ended.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// Products with A.
    pub(crate) products: u64,
    /// ||b - A x|| / ||b|| of each column, computed from x; 0 where b is.
    pub(crate) residuals: Vec<f64>,
    /// Why it ended.
    pub(crate) reason: StopReason,
}

/// Times the iteration starts again from the true residual.
const RESTARTS: usize = 4;

/// Inner products of the columns of two (n, q) matrices.
fn dots(a: &[f64], b: &[f64], q: usize) -> Vec<f64> {
    let mut sums = vec![0.0; q];
    for (a, b) in a.chunks_exact(q).zip(b.chunks_exact(q)) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums
}

/// y += x diag(weights)
fn add(weights: &[f64], x: &[f64], y: &mut [f64]) {
    let q = weights.len();
    for (x, y) in x.chunks_exact(q).zip(y.chunks_exact_mut(q)) {
        for ((w, x), y) in weights.iter().zip(x).zip(y) {
            *y += w * x;
        }
    }
}

/// Improves `x` (n, q) until the iteration ends.
///
/// `apply(p, out)` writes A p, `precondition(r, out)` an approximation of A^-1 r, both (n, q) row-major.
///
/// # Errors
/// Those of `apply` and `precondition`.
pub(crate) fn solve(
    b: &[f64],
    x: &mut [f64],
    q: usize,
    limits: Limits,
    mut apply: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    mut precondition: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    let size: Vec<f64> = dots(b, b, q).into_iter().map(f64::sqrt).collect();
    let relative = |r: &[f64]| -> Vec<f64> {
        let of_size = |(r, b): (&f64, &f64)| if *b > 0.0 { r.sqrt() / b } else { 0.0 };
        dots(r, r, q).iter().zip(&size).map(of_size).collect()
    };
    let (mut products, mut norm) = (0, 0.0_f64);
    let mut r = vec![0.0; b.len()];
    let (mut z, mut ap) = (vec![0.0; b.len()], vec![0.0; b.len()]);
    let mut reason = StopReason::Converged;
    let mut before = f64::INFINITY;
    let mut residuals = vec![0.0; q];
    for restart in 0..=RESTARTS {
        if x.iter().any(|&x| x != 0.0) {
            apply(x, &mut ap)?;
            products += 1;
        } else {
            ap.fill(0.0);
        }
        for ((r, b), ap) in r.iter_mut().zip(b).zip(&ap) {
            *r = b - ap;
        }
        let small = |r: &[f64], x: &[f64], norm: f64| -> Vec<bool> {
            let (r, x) = (dots(r, r, q), dots(x, x, q));
            (0..q)
                .map(|j| r[j].sqrt() <= limits.relative * size[j] + limits.backward * norm * x[j].sqrt())
                .collect()
        };
        residuals = relative(&r);
        let worst = residuals.iter().copied().fold(0.0, f64::max);
        let mut done = small(&r, x, norm);
        if done.iter().all(|&done| done) || reason != StopReason::Converged {
            break;
        }
        // The arithmetic of the products leaves no more to gain.
        if restart == RESTARTS || worst > 0.5 * before {
            reason = StopReason::Stalled;
            break;
        }
        before = worst;
        precondition(&r, &mut z)?;
        let mut p = z.clone();
        let mut rz = dots(&r, &z, q);
        while !done.iter().all(|&done| done) {
            let gap = relative(&r).into_iter().fold(0.0, f64::max);
            let progress =
                Progress { phase: "conjugate gradients", done: products, total: None, gap, steps: products };
            if let ControlFlow::Break(why) = monitor.tick(&progress) {
                reason = why;
                break;
            }
            if products >= limits.products {
                reason = StopReason::MaxIterations;
                break;
            }
            apply(&p, &mut ap)?;
            products += 1;
            let (curve, length) = (dots(&p, &ap, q), dots(&p, &p, q));
            let mut step = vec![0.0; q];
            for j in 0..q {
                if !done[j] && curve[j] > 0.0 && rz[j].is_finite() {
                    step[j] = rz[j] / curve[j];
                    norm = norm.max(curve[j] / length[j]);
                } else if !done[j] {
                    // Not positive definite along p, or nothing left of it: rounding has won.
                    done[j] = true;
                }
            }
            add(&step, &p, x);
            let back: Vec<f64> = step.iter().map(|s| -s).collect();
            add(&back, &ap, &mut r);
            for (done, small) in done.iter_mut().zip(small(&r, x, norm)) {
                *done |= small;
            }
            if done.iter().all(|&done| done) {
                break;
            }
            precondition(&r, &mut z)?;
            let next = dots(&r, &z, q);
            let turn: Vec<f64> =
                next.iter().zip(&rz).map(|(a, b)| if *b > 0.0 { a / b } else { 0.0 }).collect();
            for (z, p) in z.chunks_exact(q).zip(p.chunks_exact_mut(q)) {
                for ((p, z), turn) in p.iter_mut().zip(z).zip(&turn) {
                    *p = z + turn * *p;
                }
            }
            rz = next;
        }
    }
    Ok(Outcome { products, residuals, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Silent;

    #[test]
    fn diagonal_systems_take_as_many_products_as_there_are_values() {
        let values = [1.0, 3.0, 7.0, 20.0];
        let (n, q) = (40, 3);
        let b: Vec<f64> = (0..n * q).map(|i| if i % q == 2 { 0.0 } else { (i as f64).sin() }).collect();
        let mut x = vec![0.0; n * q];
        let limits = Limits { relative: 1e-12, backward: 0.0, products: 100 };
        let times = |p: &[f64], out: &mut [f64]| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = values[i / q % 4] * p[i];
            }
            Ok(())
        };
        let same = |r: &[f64], out: &mut [f64]| {
            out.copy_from_slice(r);
            Ok(())
        };
        let outcome = solve(&b, &mut x, q, limits, times, same, &Silent).unwrap();
        assert_eq!(outcome.reason, StopReason::Converged);
        assert!(outcome.products <= 6, "{outcome:?}");
        for (i, x) in x.iter().enumerate() {
            assert!((values[i / q % 4] * x - b[i]).abs() < 1e-11);
        }
    }
}
