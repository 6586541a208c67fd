//! Preconditioned conjugate gradients for several right-hand sides at once: A X = B with A symmetric positive definite and
//! given by its products (Rifkin 2002, appendix C; Hestenes and Stiefel, 1952).
//!
//! Each column has its own step lengths and its own end; all columns share the products with A. When the recursion reports
//! that all columns have converged, the true residual is computed, and the iteration restarts from it if it is larger.
//!
//! Invariant: the residuals returned are true residuals, except after a stop by the monitor, between products or during one:
//! then x is that of the last complete product, and the residual is the recursion's.
//!
//! Cost: one product with A and one with the preconditioner for an iteration; four matrices of the size of B.
//!
//! All other allocations are small: a few numbers for each right-hand side.

use crate::context::{Context, Progress, StopReason};
use crate::error::Result;
use crate::memory;

/// The end of the iteration: when every column has ||r|| <= relative ||b|| + backward ||A|| ||x||, with the largest
/// Rayleigh quotient seen for ||A||, or after the maximum number of products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) relative: f64,
    pub(crate) backward: f64,
    /// Maximum number of products with A.
    pub(crate) products: u64,
}

/// The result of an iteration.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// Number of products with A.
    pub(crate) products: u64,
    /// ||b - A x|| / ||b|| of each column, 0 if b = 0.
    pub(crate) residuals: Vec<f64>,
    /// Reason of the end.
    pub(crate) reason: StopReason,
}

/// Maximum number of restarts from the true residual.
const MAX_RESTARTS: usize = 4;

/// Number of products without a decrease of the residual by 1 % after which the iteration stalls.
const MAX_STALLED_PRODUCTS: u64 = 2000;

/// Returns the largest number, or NaN if there is one.
fn worst_of(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |worst: f64, &v| if v > worst || v.is_nan() { v } else { worst })
}

/// Returns the inner products of the columns of two (n, q) matrices.
fn dots(a: &[f64], b: &[f64], q: usize) -> Vec<f64> {
    let mut sums = vec![0.0; q];
    for (a, b) in a.chunks_exact(q).zip(b.chunks_exact(q)) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums
}

/// Computes y += x diag(weights).
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
/// The errors of `apply` and `precondition`, except [`Error::Stopped`](crate::Error::Stopped), which ends the
/// iteration.
pub(crate) fn solve(
    b: &[f64],
    x: &mut [f64],
    q: usize,
    limits: Limits,
    mut apply: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    mut precondition: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    ctx: Context<'_>,
) -> Result<Outcome> {
    let size: Vec<f64> = dots(b, b, q).into_iter().map(f64::sqrt).collect();
    let relative = |r: &[f64]| -> Vec<f64> {
        let of_size = |(r, b): (&f64, &f64)| if *b > 0.0 { r.sqrt() / b } else { 0.0 };
        dots(r, r, q).iter().zip(&size).map(of_size).collect()
    };
    let (mut products, mut norm) = (0, 0.0_f64);
    let vector = || memory::try_zeros::<f64>("conjugate gradients", b.len());
    let (mut r, mut z, mut ap, mut p) = (vector()?, vector()?, vector()?, vector()?);
    let mut reason = StopReason::Converged;
    let mut before = f64::INFINITY;
    r.copy_from_slice(b);
    let mut residuals = relative(&r);
    'restarts: for restart in 0..=MAX_RESTARTS {
        if x.iter().any(|&x| x != 0.0) {
            if let Some(why) = StopReason::from_result(apply(x, &mut ap))? {
                (reason, residuals) = (why, relative(&r));
                break;
            }
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
        let worst = worst_of(&residuals);
        let mut done = small(&r, x, norm);
        if done.iter().all(|&done| done) || reason != StopReason::Converged {
            break;
        }
        // The residual has reached the rounding errors of the products.
        if restart == MAX_RESTARTS || !(worst <= 0.5 * before) {
            reason = StopReason::Stalled;
            break;
        }
        before = worst;
        if let Some(why) = StopReason::from_result(precondition(&r, &mut z))? {
            (reason, residuals) = (why, relative(&r));
            break 'restarts;
        }
        p.copy_from_slice(&z);
        let mut rz = dots(&r, &z, q);
        let (mut best, mut improved) = (f64::INFINITY, products);
        while !done.iter().all(|&done| done) {
            let gap = worst_of(&relative(&r));
            if gap < 0.99 * best {
                (best, improved) = (gap, products);
            }
            let progress =
                Progress { phase: "conjugate gradients", done: products, total: None, gap, steps: products };
            if let Some(why) = StopReason::from_result(ctx.tick(&progress))? {
                (reason, residuals) = (why, relative(&r));
                break 'restarts;
            }
            if products >= limits.products {
                reason = StopReason::MaxIterations;
                break;
            }
            if products > improved + MAX_STALLED_PRODUCTS {
                reason = StopReason::Stalled;
                break;
            }
            if let Some(why) = StopReason::from_result(apply(&p, &mut ap))? {
                (reason, residuals) = (why, relative(&r));
                break 'restarts;
            }
            products += 1;
            let (curve, length) = (dots(&p, &ap, q), dots(&p, &p, q));
            let mut step = vec![0.0; q];
            for j in 0..q {
                if !done[j] && curve[j] > 0.0 && rz[j].is_finite() {
                    step[j] = rz[j] / curve[j];
                    norm = norm.max(curve[j] / length[j]);
                } else if !done[j] {
                    // A is not positive definite along p, or p is zero: only rounding errors are left.
                    done[j] = true;
                }
            }
            add(&step, &p, x);
            let negative: Vec<f64> = step.iter().map(|s| -s).collect();
            add(&negative, &ap, &mut r);
            for (done, small) in done.iter_mut().zip(small(&r, x, norm)) {
                *done |= small;
            }
            if done.iter().all(|&done| done) {
                break;
            }
            if let Some(why) = StopReason::from_result(precondition(&r, &mut z))? {
                (reason, residuals) = (why, relative(&r));
                break 'restarts;
            }
            let next = dots(&r, &z, q);
            let ratio: Vec<f64> =
                next.iter().zip(&rz).map(|(a, b)| if *b > 0.0 { a / b } else { 0.0 }).collect();
            for (z, p) in z.chunks_exact(q).zip(p.chunks_exact_mut(q)) {
                for ((p, z), ratio) in p.iter_mut().zip(z).zip(&ratio) {
                    *p = z + ratio * *p;
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
    use crate::context::Monitor;
    use std::ops::ControlFlow;

    /// No preconditioner.
    #[expect(clippy::unnecessary_wraps, reason = "the signature of a preconditioner")]
    fn same(residual: &[f64], out: &mut [f64]) -> Result<()> {
        out.copy_from_slice(residual);
        Ok(())
    }

    #[test]
    fn an_iteration_that_gets_nowhere_ends_and_does_not_call_itself_converged() {
        let b: Vec<f64> = (0..40).map(|i| f64::from(i).sin()).collect();
        let limits = Limits { relative: 1e-12, backward: 0.0, products: u64::MAX };
        // Products that are not numbers, of no length, and such as no matrix has.
        for kind in 0..3 {
            let mut random = crate::random::Random::new(5);
            let mut x = vec![0.0; b.len()];
            let times = |p: &[f64], out: &mut [f64]| {
                for (out, p) in out.iter_mut().zip(p) {
                    *out = [f64::NAN, 0.0, p * (0.01 + random.uniform())][kind];
                }
                Ok(())
            };
            let outcome = solve(&b, &mut x, 1, limits, times, same, Context::default()).unwrap();
            assert_eq!(outcome.reason, StopReason::Stalled, "{kind}");
        }
    }

    #[test]
    fn a_product_that_is_stopped_leaves_the_last_whole_step() {
        assert_every_stop_leaves_a_whole_step(true, false);
    }

    #[test]
    fn a_preconditioner_that_is_stopped_leaves_the_last_whole_step() {
        assert_every_stop_leaves_a_whole_step(false, true);
    }

    /// Stops at each look, within a product with A or within one with the preconditioner.
    fn assert_every_stop_leaves_a_whole_step(in_product: bool, in_preconditioner: bool) {
        struct After(std::sync::atomic::AtomicU64);
        impl Monitor for After {
            fn tick(&self, _: &Progress) -> ControlFlow<StopReason> {
                match self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) {
                    1 => ControlFlow::Break(StopReason::MaxTime),
                    _ => ControlFlow::Continue(()),
                }
            }
        }
        let b: Vec<f64> = (0..40).map(|i| f64::from(i).sin()).collect();
        let limits = Limits { relative: 1e-12, backward: 0.0, products: 100 };
        let mut stops = 0;
        for ticks in 1..50 {
            let monitor = After(ticks.into());
            let ctx = Context::default().with_monitor(&monitor);
            let mut x = vec![0.0; b.len()];
            let look = |asked: bool, half: usize| if asked { ctx.check("half", half, 2) } else { Ok(()) };
            let times = |p: &[f64], out: &mut [f64]| {
                for half in 0..2 {
                    look(in_product, half)?;
                    for i in half * 20..half * 20 + 20 {
                        out[i] = (1 + i % 7) as f64 * p[i];
                    }
                }
                Ok(())
            };
            let halves = |r: &[f64], out: &mut [f64]| {
                for half in 0..2 {
                    look(in_preconditioner, half)?;
                    out[half * 20..][..20].copy_from_slice(&r[half * 20..][..20]);
                }
                Ok(())
            };
            let outcome = solve(&b, &mut x, 1, limits, times, halves, ctx).unwrap();
            stops += u64::from(outcome.reason == StopReason::MaxTime);
            let missing = x.iter().zip(&b).enumerate().map(|(i, (x, b))| b - (1 + i % 7) as f64 * x);
            let size = b.iter().map(|b| b * b).sum::<f64>();
            let residual = (missing.map(|r| r * r).sum::<f64>() / size).sqrt();
            assert!((outcome.residuals[0] - residual).abs() < 1e-12, "{ticks}");
        }
        assert!((10..49).contains(&stops), "{stops}");
    }

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
        let outcome = solve(&b, &mut x, q, limits, times, same, Context::default()).unwrap();
        assert_eq!(outcome.reason, StopReason::Converged);
        assert!(outcome.products <= 6, "{outcome:?}");
        for (i, x) in x.iter().enumerate() {
            assert!((values[i / q % 4] * x - b[i]).abs() < 1e-11);
        }
    }
}
