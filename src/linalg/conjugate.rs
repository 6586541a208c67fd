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

use crate::context::{Context, Progress, Stop, StopReason};
use crate::error::{Error, Result};
use crate::memory;

/// The end of the iteration: when every column has ||r|| <= relative ||b|| + absolute + backward ||A|| ||x||, with the
/// largest Rayleigh quotient seen for ||A||, or after the maximum number of products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
    pub(crate) backward: f64,
    /// Maximum number of products with A.
    pub(crate) max_iterations: u64,
}

/// The result of an iteration.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// ||b - A x|| / ||b|| of each column, 0 if b = 0.
    pub(crate) residuals: Vec<f64>,
    /// The end: the number of products with A, and the largest of the residuals as the gap.
    pub(crate) stop: Stop,
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
    let mut iteration = Iteration::new(b, q, limits)?;
    let ended = iteration.run(x, &mut apply, &mut precondition, ctx);
    let reason = ended.or_else(Error::into_stop_reason)?;
    let residuals = iteration.residuals();
    let stop = Stop { reason, iterations: iteration.products, gap: worst_of(&residuals) };
    Ok(Outcome { residuals, stop })
}

/// Writes the product of a matrix with a vector for each right-hand side.
type Operator<'f> = dyn FnMut(&[f64], &mut [f64]) -> Result<()> + 'f;

/// The state of the iteration for all right-hand sides.
struct Iteration<'b> {
    b: &'b [f64],
    q: usize,
    limits: Limits,
    /// Length of each right-hand side.
    lengths: Vec<f64>,
    /// Number of products with the matrix.
    products: u64,
    /// The largest quotient p'Ap / p'p of a direction.
    norm: f64,
    /// b - Ax.
    r: Vec<f64>,
    /// The residual with the preconditioner.
    z: Vec<f64>,
    /// Directions.
    p: Vec<f64>,
    /// The last product with the matrix.
    ap: Vec<f64>,
}

impl<'b> Iteration<'b> {
    fn new(b: &'b [f64], q: usize, limits: Limits) -> Result<Self> {
        let lengths = dots(b, b, q).into_iter().map(f64::sqrt).collect();
        let vector = || memory::try_zeros::<f64>("conjugate gradients", b.len());
        let (mut r, z, ap, p) = (vector()?, vector()?, vector()?, vector()?);
        r.copy_from_slice(b);
        Ok(Self { b, q, limits, lengths, products: 0, norm: 0.0, r, z, p, ap })
    }

    /// Makes steps, and starts again from the true residual, until all residuals are small or cannot be reduced.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which the solutions and residuals are those of the last step.
    fn run(
        &mut self,
        x: &mut [f64],
        apply: &mut Operator<'_>,
        precondition: &mut Operator<'_>,
        ctx: Context<'_>,
    ) -> Result<StopReason> {
        let (mut reason, mut before) = (StopReason::Converged, f64::INFINITY);
        for restart in 0..=MAX_RESTARTS {
            if x.iter().any(|&x| x != 0.0) {
                apply(x, &mut self.ap)?;
                self.products += 1;
            } else {
                self.ap.fill(0.0);
            }
            for ((r, b), ap) in self.r.iter_mut().zip(self.b).zip(&self.ap) {
                *r = b - ap;
            }
            let worst = worst_of(&self.residuals());
            let mut done = self.are_small(x);
            if done.iter().all(|&done| done) || reason != StopReason::Converged {
                return Ok(reason);
            }
            // The residual has reached the rounding errors of the products.
            if restart == MAX_RESTARTS || !(worst <= 0.5 * before) {
                return Ok(StopReason::Stalled);
            }
            before = worst;
            precondition(&self.r, &mut self.z)?;
            self.p.copy_from_slice(&self.z);
            reason = self.make_steps(x, &mut done, apply, precondition, ctx)?;
        }
        Ok(reason)
    }

    /// Makes steps until all right-hand sides are done; returns another reason if they end before.
    fn make_steps(
        &mut self,
        x: &mut [f64],
        done: &mut [bool],
        apply: &mut Operator<'_>,
        precondition: &mut Operator<'_>,
        ctx: Context<'_>,
    ) -> Result<StopReason> {
        let mut rz = dots(&self.r, &self.z, self.q);
        let (mut best, mut improved) = (f64::INFINITY, self.products);
        loop {
            let (gap, products) = (worst_of(&self.residuals()), self.products);
            if gap < 0.99 * best {
                (best, improved) = (gap, products);
            }
            let progress =
                Progress { phase: "conjugate gradients", done: products, total: None, gap, steps: products };
            ctx.tick(&progress)?;
            if products >= self.limits.max_iterations {
                return Ok(StopReason::MaxIterations);
            }
            if products > improved + MAX_STALLED_PRODUCTS {
                return Ok(StopReason::Stalled);
            }
            apply(&self.p, &mut self.ap)?;
            self.products += 1;
            self.step(x, &rz, done);
            if done.iter().all(|&done| done) {
                return Ok(StopReason::Converged);
            }
            precondition(&self.r, &mut self.z)?;
            rz = self.next_directions(&rz);
        }
    }

    /// Moves along the directions, whose products with the matrix are known.
    fn step(&mut self, x: &mut [f64], rz: &[f64], done: &mut [bool]) {
        let (curve, length) = (dots(&self.p, &self.ap, self.q), dots(&self.p, &self.p, self.q));
        let mut step = vec![0.0; self.q];
        for j in 0..self.q {
            if !done[j] && curve[j] > 0.0 && rz[j].is_finite() {
                step[j] = rz[j] / curve[j];
                self.norm = self.norm.max(curve[j] / length[j]);
            } else if !done[j] {
                // A is not positive definite along p, or p is zero: only rounding errors are left.
                done[j] = true;
            }
        }
        add(&step, &self.p, x);
        let negative: Vec<f64> = step.iter().map(|s| -s).collect();
        add(&negative, &self.ap, &mut self.r);
        for (done, small) in done.iter_mut().zip(self.are_small(x)) {
            *done |= small;
        }
    }

    /// Makes the directions conjugate to those before, from the residuals with the preconditioner; returns r'z.
    fn next_directions(&mut self, rz: &[f64]) -> Vec<f64> {
        let next = dots(&self.r, &self.z, self.q);
        let ratio: Vec<f64> = next.iter().zip(rz).map(|(a, b)| if *b > 0.0 { a / b } else { 0.0 }).collect();
        for (z, p) in self.z.chunks_exact(self.q).zip(self.p.chunks_exact_mut(self.q)) {
            for ((p, z), ratio) in p.iter_mut().zip(z).zip(&ratio) {
                *p = z + ratio * *p;
            }
        }
        next
    }

    /// Returns the length of each residual relative to its right-hand side.
    fn residuals(&self) -> Vec<f64> {
        let of_length = |(r, b): (&f64, &f64)| if *b > 0.0 { r.sqrt() / b } else { 0.0 };
        dots(&self.r, &self.r, self.q).iter().zip(&self.lengths).map(of_length).collect()
    }

    /// Returns for each right-hand side whether the residual is within the limits.
    fn are_small(&self, x: &[f64]) -> Vec<bool> {
        let (r, x) = (dots(&self.r, &self.r, self.q), dots(x, x, self.q));
        let Limits { relative, absolute, backward, .. } = self.limits;
        (0..self.q)
            .map(|j| {
                r[j].sqrt() <= relative * self.lengths[j] + absolute + backward * self.norm * x[j].sqrt()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Interruption, Monitor};
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
        let limits = Limits { relative: 1e-12, absolute: 0.0, backward: 0.0, max_iterations: u64::MAX };
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
            assert_eq!(outcome.stop.reason, StopReason::Stalled, "{kind}");
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
            fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
                match self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) {
                    1 => ControlFlow::Break(Interruption::MaxTime),
                    _ => ControlFlow::Continue(()),
                }
            }
        }
        let b: Vec<f64> = (0..40).map(|i| f64::from(i).sin()).collect();
        let limits = Limits { relative: 1e-12, absolute: 0.0, backward: 0.0, max_iterations: 100 };
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
            stops += u64::from(outcome.stop.reason == StopReason::MaxTime);
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
        let limits = Limits { relative: 1e-12, absolute: 0.0, backward: 0.0, max_iterations: 100 };
        let times = |p: &[f64], out: &mut [f64]| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = values[i / q % 4] * p[i];
            }
            Ok(())
        };
        let outcome = solve(&b, &mut x, q, limits, times, same, Context::default()).unwrap();
        assert_eq!(outcome.stop.reason, StopReason::Converged);
        assert!(outcome.stop.iterations <= 6, "{outcome:?}");
        for (i, x) in x.iter().enumerate() {
            assert!((values[i / q % 4] * x - b[i]).abs() < 1e-11);
        }
    }
}
