//! Divisions of a bounding box into boxes, and the polynomials of a sum in each.
//!
//! A division is chosen by a model of its cost among four kinds ([`KINDS`]), whose error bounds follow from the order of the
//! polynomials and the side of the boxes. Moments become coefficients axis by axis: a box receives those of its neighbors in which
//! its Gaussians are not negligible, multiplied by a matrix that depends on their distance alone.
//!
//! Invariant: the tasks do not depend on the number of threads, so sums have the same bits on any number of them.
//!
//! Cost: for each axis, the number of all coefficients times that of the neighboring boxes along it.

use super::SUM;
use super::bounding_box::BoundingBox;
use crate::context::Context;
use crate::error::Result;
use crate::memory;
use crate::simd::chebyshev::{Boxes, MARGIN, collect};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

/// Number of polynomials per axis, the side of a box in units of 1 / sqrt(gamma), and the error of a sum relative to the weights.
pub(super) const KINDS: [(usize, f64, f64); 4] =
    [(8, 0.25, 4.1e-11), (12, 0.75, 1.3e-11), (16, 1.5, 2.1e-11), (16, 0.75, DOUBLE_PRECISION_ERROR)];
/// The relative error of sums in double precision.
const DOUBLE_PRECISION_ERROR: f64 = 4e-16;
/// Maximum error of a sum that is negligible compared with that of kernel values in single precision.
const NEGLIGIBLE_ERROR: f64 = 1e-6;
/// Maximum distance, in units of 1 / sqrt(gamma), at which a Gaussian is not negligible: beyond, it is less than 1e-16.
const MAX_DISTANCE: f64 = 6.1;
/// Cost of a sum, in units of a kernel value.
const COST_OF_SUM: f64 = 3e5;
/// Cost of a point, in units of a kernel value.
const COST_OF_POINT: f64 = 30.0;
/// Cost of eight coefficients at a point, in units of a kernel value.
const COST_OF_COEFFICIENTS: f64 = 4.0;
/// Cost of a multiply-add of the matrices, in units of a kernel value.
const COST_OF_MULTIPLY_ADD: f64 = 0.3;
/// Maximum number of coefficients of a sum.
pub(super) const MAX_COEFFICIENTS: f64 = 4e6;
/// Number of lines of coefficients of a task.
const TASK_LINES: usize = 32;

/// A division of a bounding box into boxes of equal size.
pub(super) struct Plan {
    pub(super) boxes: Boxes,
    /// Number of boxes per unit.
    pub(super) scale: f64,
}

impl BoundingBox {
    /// Returns the cheapest division for sources y with these weights and `n` targets x, or `None` if all kernel values cost less
    /// than twice as much. `exactly` asks for double precision.
    pub(super) fn plan(&self, weights: &[f64], n: usize, exactly: bool) -> Option<Plan> {
        let values = weights.len() as f64 * n as f64;
        if values < 2.0 * COST_OF_SUM {
            return None;
        }
        let total: f64 = weights.iter().map(|w| w.abs()).sum();
        let good = KINDS.iter().filter(|kind| {
            kind.2 <= DOUBLE_PRECISION_ERROR || !exactly && kind.2 * total <= NEGLIGIBLE_ERROR
        });
        let plans = good.map(|&(order, side, _)| self.boxes(order, side, weights.len() + n));
        let (cost, plan) = plans.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (2.0 * cost < values).then(plan)
    }

    /// Returns the cost of a division for a number of points, and a function that makes it.
    pub(super) fn boxes(&self, order: usize, side: f64, points: usize) -> (f64, impl FnOnce() -> Plan) {
        // small: at most three columns
        let counts: Vec<f64> = self.lengths.iter().map(|l| (l / side).floor() + 1.0).collect();
        let size: f64 = counts.iter().map(|count| count * order as f64).product();
        let band = |count: f64| count.min(2.0 * n_neighbours(side) as f64 + 1.0) * order as f64;
        let matrices: f64 = counts.iter().map(|&count| band(count)).sum();
        let lines = (order.pow(self.lengths.len() as u32 - 1) * order.div_ceil(8)) as f64;
        let per_point = COST_OF_POINT + COST_OF_COEFFICIENTS * lines;
        let cost = COST_OF_SUM + points as f64 * per_point + COST_OF_MULTIPLY_ADD * size * matrices;
        let cost = if size <= MAX_COEFFICIENTS { cost } else { f64::INFINITY };
        (cost, move || Plan {
            // small: at most three columns
            boxes: Boxes { order, counts: counts.into_iter().map(|count| count as usize).collect() },
            scale: 1.0 / side,
        })
    }
}

/// Returns the number of neighboring boxes on either side in which a Gaussian of a box is not negligible.
fn n_neighbours(side: f64) -> usize {
    (MAX_DISTANCE / side).ceil() as usize
}

impl Plan {
    /// Computes the polynomials of sums over `y`.
    pub(super) fn coefficients(&self, (y, weights): (&[f64], &[f64]), ctx: Context<'_>) -> Result<Vec<f64>> {
        let size = self.boxes.size();
        let zeros = || memory::try_zeros(SUM, size + MARGIN);
        let mut values = zeros()?;
        collect(&self.boxes, self.scale, y, weights, &mut values);
        let stencil = self.stencil();
        for axis in 0..self.boxes.counts.len() {
            let mut next = zeros()?;
            self.pass(axis, &stencil, &values[..size], &mut next[..size], ctx);
            values = next;
        }
        Ok(values)
    }

    /// Turns moments into coefficients along an axis, the first of `from`, which becomes the last of `to`.
    fn pass(&self, axis: usize, stencil: &Array2<f64>, from: &[f64], to: &mut [f64], ctx: Context<'_>) {
        let (order, count, len) = (self.boxes.order, self.boxes.counts[axis], self.boxes.len(axis));
        let (lines, neighbours) = (from.len() / len, n_neighbours(1.0 / self.scale));
        let from = ArrayView2::from_shape((len, lines), from).expect("all coefficients");
        ctx.for_each_chunk(to, TASK_LINES * len, |chunk, to| {
            let lines = to.len() / len;
            let mut to = ArrayViewMut2::from_shape((lines, len), to).expect("whole lines");
            let from = from.slice(s![.., chunk * TASK_LINES..chunk * TASK_LINES + lines]);
            for i in 0..count {
                let near = i.saturating_sub(neighbours)..count.min(i + neighbours + 1);
                let matrix = stencil.slice(s![
                    (near.start + neighbours - i) * order..(near.end + neighbours - i) * order,
                    ..
                ]);
                let some = from.slice(s![near.start * order..near.end * order, ..]);
                let mut to = to.slice_mut(s![.., i * order..(i + 1) * order]);
                general_mat_mul(1.0, &some.t(), &matrix, 0.0, &mut to);
            }
        });
    }

    /// Returns the matrix ((2 n + 1) P, P) from moments to coefficients for n neighbors on either side: line (k + n) P + b
    /// holds the coefficients, in a box, of the Gaussians that are summed with T_b in the box k places after it.
    fn stencil(&self) -> Array2<f64> {
        let (order, side) = (self.boxes.order, 1.0 / self.scale);
        let neighbours = n_neighbours(side);
        let angle = |q: usize| std::f64::consts::PI * (q as f64 + 0.5) / order as f64;
        // small: the order of a polynomial
        let to_coefficients = Array2::from_shape_fn((order, order), |(a, q)| {
            let half = if a == 0 { 1.0 } else { 2.0 };
            half / order as f64 * libm::cos(a as f64 * angle(q))
        });
        // small: the order of a polynomial
        let mut stencil = Array2::zeros(((2 * neighbours + 1) * order, order));
        for k in 0..2 * neighbours + 1 {
            let apart = k as f64 - neighbours as f64;
            // small: the order of a polynomial
            let values = Array2::from_shape_fn((order, order), |(b, a)| {
                let distance = side * (apart + 0.5 * (libm::cos(angle(b)) - libm::cos(angle(a))));
                libm::exp(-distance * distance)
            });
            let matrix = to_coefficients.dot(&values).dot(&to_coefficients.t());
            stencil.slice_mut(s![k * order..(k + 1) * order, ..]).assign(&matrix);
        }
        stencil
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::fast_gauss::tests::rows;
    use crate::kernel::Kernel;
    use crate::random::Random;

    #[test]
    fn boxes_are_for_few_columns_and_wide_gaussians_only() {
        let mut random = Random::new(2);
        let data = rows(5000, &[4.0, 4.0], &mut random);
        let x = Rows::from_shape((5000, 2), &data).unwrap();
        let weights = vec![1.0; 5000];
        let pays = |gamma: f64, m: usize| {
            BoundingBox::of(&Kernel::Rbf { gamma }, x).unwrap().plan(&weights[..m], 5000, false).is_some()
        };
        assert!(pays(1.0, 5000) && pays(1e-9, 1000) && pays(30.0, 5000));
        assert!(!pays(1.0, 10) && !pays(1e9, 5000) && !pays(f64::MAX, 5000));
        let wide = Rows::from_shape((2500, 4), &data).unwrap();
        assert!(BoundingBox::of(&Kernel::Rbf { gamma: 1.0 }, wide).is_none());
    }
}
