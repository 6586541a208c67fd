//! Sums of Gaussians at fixed samples for weights that change, as the gradients of a solver: each round changes a few weights.
//!
//! The points are scaled to the bounding box of the data once; the division into boxes is chosen for each sum by its number of
//! weights and their total, and `None` says that all kernel values cost less.
//!
//! Cost: see the module; memory d numbers for each target.

use std::sync::Arc;

use super::bounding_box::BoundingBox;
use super::boxes::Plan;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::simd::chebyshev::evaluate;

/// Number of points of a task.
const TASK_POINTS: usize = 2048;

/// The samples at which a solver needs sums f(x) = sum_j weight_j k(x, y_j); the y_j are rows of the same data.
#[derive(Clone)]
pub(crate) struct GaussTargets {
    bounds: Arc<BoundingBox>,
    points: Vec<f64>,
}

impl GaussTargets {
    /// Returns no targets among the rows of `source`, or `None` if the module does not apply to the kernel.
    pub(crate) fn new(kernel: &Kernel, source: Rows<'_>) -> Option<Self> {
        Some(Self { bounds: Arc::new(BoundingBox::of(kernel, source)?), points: Vec::new() })
    }

    /// Returns the listed rows of the same source as targets.
    pub(crate) fn with_rows(&self, source: Rows<'_>, rows: &[usize]) -> Result<Self> {
        Ok(Self { bounds: Arc::clone(&self.bounds), points: self.bounds.points(source, rows)? })
    }

    /// Returns the sum over the listed rows of the source, or `None` if all kernel values cost less. `exactly` asks for double
    /// precision.
    pub(crate) fn sum(
        &self,
        (source, rows): (Rows<'_>, &[usize]),
        weights: &[f64],
        exactly: bool,
        ctx: Context<'_>,
    ) -> Result<Option<GaussSum<'_>>> {
        let targets = self.points.len() / self.bounds.lengths.len();
        let Some(plan) = self.bounds.plan(weights, targets, exactly) else { return Ok(None) };
        let sources = self.bounds.points(source, rows)?;
        GaussSum::new(plan, (&sources, weights), &self.points, ctx).map(Some)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.points.len() * size_of::<f64>()
    }
}

/// A sum whose polynomials are known.
pub(crate) struct GaussSum<'a> {
    plan: Plan,
    polynomials: Vec<f64>,
    x: &'a [f64],
}

impl<'a> GaussSum<'a> {
    /// Prepares the sum over the points `y` at the points `x`.
    fn new(plan: Plan, y: (&[f64], &[f64]), x: &'a [f64], ctx: Context<'_>) -> Result<Self> {
        let polynomials = plan.coefficients(y, ctx)?;
        Ok(Self { plan, polynomials, x })
    }

    /// Adds the sums at the points from `first` on to `out`.
    pub(crate) fn add(&self, first: usize, out: &mut [f64], ctx: Context<'_>) {
        let Plan { boxes, scale } = &self.plan;
        let d = boxes.counts.len();
        ctx.for_each_chunk(out, TASK_POINTS, |chunk, out| {
            let from = (first + chunk * TASK_POINTS) * d;
            evaluate(boxes, *scale, &self.polynomials, &self.x[from..from + out.len() * d], out);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_gauss::boxes::KINDS;
    use crate::fast_gauss::tests::rows;
    use crate::kernels::{KernelRows, Precision, pair};
    use crate::random::Random;
    use crate::simd::chebyshev::Boxes;

    fn expected(gamma: f64, x: Rows<'_>, weights: &[f64], row: usize) -> f64 {
        let of = |(j, w): (usize, &f64)| w * pair(&Kernel::Rbf { gamma }, x, row, x, j);
        weights.iter().enumerate().map(of).sum()
    }

    /// Every kind of boxes keeps its promise, in one, two and three columns, with boxes in number and a single one.
    #[test]
    fn sums_are_those_of_all_pairs() {
        let mut random = Random::new(5);
        for sides in
            [&[9.0][..], &[0.0], &[300.0], &[7.0, 0.4], &[2.0, 11.0], &[1.5, 1e-9, 4.0], &[3.0, 2.0, 0.0]]
        {
            let (n, d, gamma) = (150, sides.len(), 1.7);
            let data = rows(n, sides, &mut random);
            let x = Rows::from_shape((n, d), &data).unwrap();
            let weights: Vec<f64> = (0..n).map(|i| (i % 3) as f64 - 0.8).collect();
            let total: f64 = weights.iter().map(|w| w.abs()).sum();
            let bounds = BoundingBox::of(&Kernel::Rbf { gamma }, x).unwrap();
            let points = bounds.points(x, &(0..n).collect::<Vec<_>>()).unwrap();
            for (order, side, share) in KINDS {
                let counts = bounds.lengths.iter().map(|l| (l / side) as usize + 1).collect();
                let plan = Plan { boxes: Boxes { order, counts }, scale: 1.0 / side };
                let mut out = vec![0.5; n];
                GaussSum::new(plan, (&points, &weights), &points, Context::default()).unwrap().add(
                    0,
                    &mut out,
                    Context::default(),
                );
                let allowed = total * (3.0 * d as f64 * share + 1e-14);
                for row in 0..n {
                    let off = out[row] - 0.5 - expected(gamma, x, &weights, row);
                    assert!(off.abs() < allowed, "{order} {side} {sides:?}: {off:e} {allowed:e}");
                }
            }
        }
    }

    /// The solver's sums, where boxes pay: close to those of kernel values, the same for any number of threads and in any
    /// layout, with weights of any size.
    #[test]
    fn fast_sums_are_sums() {
        let (n, d) = (3000, 2);
        let mut random = Random::new(8);
        let data = rows(n, &[3.0, 2.0], &mut random);
        let x = Rows::from_shape((n, d), &data).unwrap();
        let single: Vec<f32> = data.iter().map(|&v| v as f32).collect();
        let (kernel, all): (_, Vec<usize>) = (Kernel::Rbf { gamma: 2.0 }, (0..n).collect());
        for size in [1.0, 500.0, 1e7] {
            let weights: Vec<f64> = (0..n).map(|i| size * ((i % 7) as f64 - 2.0)).collect();
            let sum = |rows: Rows<'_>, fast: bool, ctx: Context<'_>| {
                let source = KernelRows::new(kernel, rows, &all, Precision::Single, ctx).unwrap();
                assert!(source.fast_sum(&all, &weights, ctx).unwrap().is_some());
                let source = if fast { source } else { source.without_fast_sums() };
                let mut out = vec![0.0; n];
                source.add_product(&all, &weights, &mut out, ctx).unwrap();
                (out, source.values_computed())
            };
            let (fast, computed) = sum(x, true, Context::default());
            assert_eq!(computed, 0);
            assert_eq!(fast, sum(x, true, Context::SEQUENTIAL).0);
            let (slow, of_single) = (
                sum(x, false, Context::default()).0,
                sum(Rows::from_shape((n, d), &single).unwrap(), true, Context::default()).0,
            );
            for row in 0..n {
                let exact = expected(2.0, x, &weights, row);
                assert!(
                    (fast[row] - exact).abs() < 1e-6_f64.max(1e-14 * size * n as f64),
                    "{} {exact}",
                    fast[row]
                );
                assert!((slow[row] - exact).abs() < 1e-6 * size * n as f64);
                assert!((of_single[row] - exact).abs() < 1e-6 * size * n as f64);
            }
        }
    }
}
