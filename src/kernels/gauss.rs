//! Sums of Gaussians in one to three columns, without a look at every pair.
//!
//! ```text
//! f(x) = sum_j weight_j exp(-gamma |x - y_j|^2)   for n points x and m points y
//! ```
//!
//! A Gaussian is smooth: in a box of a side of at most 1.5 / sqrt(gamma) it is a polynomial of few terms to ten digits, and
//! a product of one Gaussian an axis. So the points y of a box are told by the moments of their weights, sums of
//! products of Chebyshev polynomials; one small matrix an axis, the same for boxes as far from each other, makes them the
//! coefficients of f in every box; and f at x is the polynomial of its box. (The idea is the fast Gauss transform's of
//! Greengard and Strain, 1991; the polynomials are those of interpolation in Chebyshev nodes, as in Fong and Darve, The
//! black-box fast multipole method, 2009.)
//!
//! Derivatives of e^(-t^2) are at most 1.09 sqrt(2^P P!) (Cramer), so interpolation by P polynomials in a box of half side
//! h / sqrt(gamma) errs by at most 2.2 (h / sqrt 2)^P / sqrt(P!) of the weights near by: [`KINDS`]. Where 5e-11 of all
//! weights is more than 1e-6, what single precision does to sums of a few ordinary weights, boxes are so small that the
//! error is that of double precision.
//!
//! Cost: P^d multiply-adds for each x and each y, and B^(d + 1) for B coefficients along an axis, which is nothing beside
//! n m where the points are many and the boxes few. [`BoundingBox::plan`] says when. Bits do not depend on threads.

use super::Kernel;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::memory::{self, TryCollect, try_vec, try_with_capacity};
use crate::simd::chebyshev::{AXES, Boxes, MARGIN, collect, evaluate};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

/// What the memory of this file is for.
const SUM: &str = "a sum of Gaussians";
/// Polynomials an axis, the side of a box in units of 1 / sqrt(gamma), and the share of the weights that sums may be off.
const KINDS: [(usize, f64, f64); 4] =
    [(8, 0.25, 4.1e-11), (12, 0.75, 1.3e-11), (16, 1.5, 2.1e-11), (16, 0.75, EXACT)];
/// The share at which sums are as good as any in double precision.
const EXACT: f64 = 4e-16;
/// Error of a sum that does not matter beside that of kernel values in single precision.
const SMALL: f64 = 1e-6;
/// Distance, in these units, beyond which a Gaussian is less than 1e-16.
const REACH: f64 = 6.1;
/// Costs in units of a kernel value: of every sum, of a point, of eight coefficients at a point, of a multiply-add of the
/// matrices.
const START: f64 = 3e5;
const POINT: f64 = 30.0;
const POLYNOMIAL: f64 = 4.0;
const MATRIX: f64 = 0.3;
/// Coefficients in all that are not too many to hold.
const MOST_COEFFICIENTS: f64 = 4e6;
/// Kernel values that a model's boxes are worth, for one in so many of all values between its vectors.
const WORTH: f64 = 0.125;
/// Share of the weights below which an output is one of the far side of some Gaussians, of which no digit may be right.
const FAR: f64 = 1e-11;
/// Points of a task, and lines of coefficients of one.
const POINTS: usize = 2048;
const LINES: usize = 32;

/// Where the points of a problem lie, in units of 1 / sqrt(gamma).
pub(super) struct BoundingBox {
    unit: f64,
    least: Vec<f64>,
    lengths: Vec<f64>,
}

/// Boxes over an extent.
pub(super) struct Plan {
    boxes: Boxes,
    /// Boxes a unit.
    scale: f64,
}

/// Whether sums of such kernel values may be those of this file.
pub(super) fn is_summed_fast(kernel: &Kernel, columns: usize) -> bool {
    matches!(kernel, Kernel::Rbf { .. }) && (1..=AXES).contains(&columns)
}

impl BoundingBox {
    /// That of all rows, where sums of the kernel's values may be those of this file.
    pub(super) fn of(kernel: &Kernel, rows: Rows<'_>) -> Option<Self> {
        let (Kernel::Rbf { gamma }, d) = (*kernel, rows.cols()) else { return None };
        if !is_summed_fast(kernel, d) || rows.rows() == 0 {
            return None;
        }
        // small: at most three columns
        let (mut least, mut most) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
        let mut point = vec![0.0; d]; // small: at most three columns
        for row in 0..rows.rows() {
            point.fill(0.0);
            rows.for_each_in_row(row, |k, v| point[k] = v);
            for k in 0..d {
                least[k] = least[k].min(point[k]);
                most[k] = most[k].max(point[k]);
            }
        }
        let unit = gamma.sqrt();
        // small: at most three columns
        let lengths = least.iter().zip(&most).map(|(least, most)| unit * (most - least)).collect();
        Some(Self { unit, least, lengths })
    }

    /// Rows as points in these units.
    pub(super) fn points(&self, rows: Rows<'_>, list: &[usize]) -> Result<Vec<f64>> {
        let d = self.least.len();
        let mut points = memory::try_zeros(SUM, list.len() * d)?;
        let mut buffer = [0.0; AXES];
        for (point, &row) in points.chunks_exact_mut(d).zip(list) {
            buffer.fill(0.0);
            rows.for_each_in_row(row, |k, v| buffer[k] = v);
            for k in 0..d {
                point[k] = self.unit * (buffer[k] - self.least[k]);
            }
        }
        Ok(points)
    }

    /// The boxes that cost least for points y with these weights and `n` points x, `exactly` in double precision; `None`
    /// where all kernel values cost less than twice as much.
    pub(super) fn plan(&self, weights: &[f64], n: usize, exactly: bool) -> Option<Plan> {
        let values = weights.len() as f64 * n as f64;
        if values < 2.0 * START {
            return None;
        }
        let total: f64 = weights.iter().map(|w| w.abs()).sum();
        let good = KINDS.iter().filter(|kind| kind.2 <= EXACT || !exactly && kind.2 * total <= SMALL);
        let plans = good.map(|&(order, side, _)| self.boxes(order, side, weights.len() + n));
        let (cost, plan) = plans.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (2.0 * cost < values).then(plan)
    }

    /// What boxes of this kind cost for so many points.
    fn boxes(&self, order: usize, side: f64, points: usize) -> (f64, impl FnOnce() -> Plan) {
        // small: at most three columns
        let counts: Vec<f64> = self.lengths.iter().map(|l| (l / side).floor() + 1.0).collect();
        let size: f64 = counts.iter().map(|count| count * order as f64).product();
        let band = |count: f64| count.min(2.0 * reach(side) as f64 + 1.0) * order as f64;
        let matrices: f64 = counts.iter().map(|&count| band(count)).sum();
        let lines = (order.pow(self.lengths.len() as u32 - 1) * order.div_ceil(8)) as f64;
        let cost = START + points as f64 * (POINT + POLYNOMIAL * lines) + MATRIX * size * matrices;
        let cost = if size <= MOST_COEFFICIENTS { cost } else { f64::INFINITY };
        (cost, move || Plan {
            // small: at most three columns
            boxes: Boxes { order, counts: counts.into_iter().map(|count| count as usize).collect() },
            scale: 1.0 / side,
        })
    }
}

/// Boxes next to each other that points of a box reach on either side.
fn reach(side: f64) -> usize {
    (REACH / side).ceil() as usize
}

impl Plan {
    /// The polynomials of sums over `y`.
    fn coefficients(&self, (y, weights): (&[f64], &[f64]), ctx: Context<'_>) -> Result<Vec<f64>> {
        let size = self.boxes.size();
        let mut values = memory::try_zeros(SUM, size + MARGIN)?;
        collect(&self.boxes, self.scale, y, weights, &mut values);
        let stencil = self.stencil();
        for axis in 0..self.boxes.counts.len() {
            let mut next = memory::try_zeros(SUM, size + MARGIN)?;
            self.pass(axis, &stencil, &values[..size], &mut next[..size], ctx);
            values = next;
        }
        Ok(values)
    }

    /// From moments to coefficients along an axis, the first one of `from`, which becomes the last one of `to`.
    fn pass(&self, axis: usize, stencil: &Array2<f64>, from: &[f64], to: &mut [f64], ctx: Context<'_>) {
        let (order, count, len) = (self.boxes.order, self.boxes.counts[axis], self.boxes.len(axis));
        let (rest, reach) = (from.len() / len, reach(1.0 / self.scale));
        let from = ArrayView2::from_shape((len, rest), from).expect("all coefficients");
        ctx.for_each_chunk(to, LINES * len, |chunk, to| {
            let lines = to.len() / len;
            let mut to = ArrayViewMut2::from_shape((lines, len), to).expect("whole lines");
            let from = from.slice(s![.., chunk * LINES..chunk * LINES + lines]);
            for i in 0..count {
                let near = i.saturating_sub(reach)..count.min(i + reach + 1);
                let matrix =
                    stencil.slice(s![(near.start + reach - i) * order..(near.end + reach - i) * order, ..]);
                let some = from.slice(s![near.start * order..near.end * order, ..]);
                let mut to = to.slice_mut(s![.., i * order..(i + 1) * order]);
                general_mat_mul(1.0, &some.t(), &matrix, 0.0, &mut to);
            }
        });
    }

    /// ((2 reach + 1) P, P): line (k + reach) P + b holds the coefficients, in a box, of the Gaussians that are summed with
    /// T_b in the box k places after it.
    fn stencil(&self) -> Array2<f64> {
        let (order, side) = (self.boxes.order, 1.0 / self.scale);
        let reach = reach(side);
        let angle = |q: usize| std::f64::consts::PI * (q as f64 + 0.5) / order as f64;
        // small: the order of a polynomial
        let to_coefficients = Array2::from_shape_fn((order, order), |(a, q)| {
            let half = if a == 0 { 1.0 } else { 2.0 };
            half / order as f64 * (a as f64 * angle(q)).cos()
        });
        // small: the order of a polynomial
        let mut stencil = Array2::zeros(((2 * reach + 1) * order, order));
        for k in 0..2 * reach + 1 {
            let apart = k as f64 - reach as f64;
            // small: the order of a polynomial
            let values = Array2::from_shape_fn((order, order), |(b, a)| {
                let distance = side * (apart + 0.5 * (angle(b).cos() - angle(a).cos()));
                (-distance * distance).exp()
            });
            let matrix = to_coefficients.dot(&values).dot(&to_coefficients.t());
            stencil.slice_mut(s![k * order..(k + 1) * order, ..]).assign(&matrix);
        }
        stencil
    }
}

/// A sum whose polynomials are known.
pub(crate) struct FastSum<'a> {
    plan: Plan,
    polynomials: Vec<f64>,
    x: &'a [f64],
}

impl<'a> FastSum<'a> {
    /// Sums over the points `y` for those of `x`.
    pub(super) fn new(plan: Plan, y: (&[f64], &[f64]), x: &'a [f64], ctx: Context<'_>) -> Result<Self> {
        let polynomials = plan.coefficients(y, ctx)?;
        Ok(Self { plan, polynomials, x })
    }

    /// `out += f` for points from one on.
    pub(crate) fn add(&self, first: usize, out: &mut [f64], ctx: Context<'_>) {
        let Plan { boxes, scale } = &self.plan;
        let d = boxes.counts.len();
        ctx.for_each_chunk(out, POINTS, |chunk, out| {
            let from = (first + chunk * POINTS) * d;
            evaluate(boxes, *scale, &self.polynomials, &self.x[from..from + out.len() * d], out);
        });
    }
}

/// The outputs of a model of many vectors in few columns: a sum over the same points for rows that come and go.
pub(super) struct FastGaussTransform {
    extent: BoundingBox,
    plan: Plan,
    /// Those of each output that is not zero everywhere, with the least sum that is computed well enough.
    outputs: Vec<Option<(Vec<f64>, f64)>>,
}

impl FastGaussTransform {
    /// Polynomials for coefficients (m, q); `None` where they are not worth it, which depends on the model alone, so that an
    /// output is the same whatever rows it is computed with.
    pub(super) fn new(
        kernel: &Kernel,
        vectors: Rows<'_>,
        coefficients: &[f64],
        ctx: Context<'_>,
    ) -> Result<Option<Self>> {
        let m = vectors.rows();
        let Some(extent) = BoundingBox::of(kernel, vectors) else { return Ok(None) };
        let q = coefficients.len() / m;
        let (order, side, _) = KINDS[KINDS.len() - 1];
        let (cost, plan) = extent.boxes(order, side, 2 * m);
        let live = (0..q).filter(|&j| coefficients.iter().skip(j).step_by(q).any(|&c| c != 0.0)).count();
        if !(live as f64 * cost < WORTH * m as f64 * m as f64) {
            return Ok(None);
        }
        let plan = plan();
        if (live * plan.boxes.size()) as f64 > 2.0 * MOST_COEFFICIENTS {
            return Ok(None);
        }
        let points = extent.points(vectors, &(0..m).try_collect_vec()?)?;
        let mut outputs = try_with_capacity("the outputs' polynomials", q)?;
        for output in 0..q {
            let weights: Vec<f64> = coefficients.iter().skip(output).step_by(q).copied().try_collect_vec()?;
            let total: f64 = weights.iter().map(|w| w.abs()).sum();
            let polynomials =
                if total > 0.0 { Some(plan.coefficients((&points, &weights), ctx)?) } else { None };
            outputs.push(polynomials.map(|polynomials| (polynomials, FAR * total)));
        }
        Ok(Some(Self { extent, plan, outputs }))
    }

    /// Multiply-adds of a row.
    pub(super) fn work(&self) -> usize {
        self.outputs.len() * self.plan.boxes.order.pow(self.extent.lengths.len() as u32)
    }

    /// Adds the sums of some rows to their outputs; not a number for rows that are not among the vectors, or so far from
    /// all of them that little is left of any Gaussian.
    pub(super) fn add(&self, x: Rows<'_>, list: &[usize], out: &mut [f64]) -> Result<()> {
        let (q, d) = (self.outputs.len(), self.extent.lengths.len());
        let points = self.extent.points(x, list)?;
        let mut sums = try_vec![0.0; list.len()]?;
        for (j, output) in self.outputs.iter().enumerate() {
            let Some((polynomials, least)) = output else { continue };
            sums.fill(0.0);
            evaluate(&self.plan.boxes, self.plan.scale, polynomials, &points, &mut sums);
            for (sum, out) in sums.iter().zip(out.iter_mut().skip(j).step_by(q)) {
                *out += if sum.abs() > *least { *sum } else { f64::NAN };
            }
        }
        for (point, out) in points.chunks_exact(d).zip(out.chunks_exact_mut(q)) {
            if !point.iter().zip(&self.extent.lengths).all(|(v, length)| (0.0..=*length).contains(v)) {
                out.fill(f64::NAN);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expansion::ExpansionView;
    use crate::kernels::{Evaluator, KernelRows, Precision, pair};
    use crate::random::Random;

    /// Rows in a box of such sides, some of them at its corners.
    fn rows(n: usize, sides: &[f64], random: &mut Random) -> Vec<f64> {
        let mut value = |i: usize, side: f64| match i {
            0 => 0.0,
            1 => side,
            _ => side * random.uniform(),
        };
        (0..n).flat_map(|i| sides.iter().map(|&side| value(i, side) - 0.3).collect::<Vec<_>>()).collect()
    }

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
            let extent = BoundingBox::of(&Kernel::Rbf { gamma }, x).unwrap();
            let points = extent.points(x, &(0..n).collect::<Vec<_>>()).unwrap();
            for (order, side, share) in KINDS {
                let counts = extent.lengths.iter().map(|l| (l / side) as usize + 1).collect();
                let plan = Plan { boxes: Boxes { order, counts }, scale: 1.0 / side };
                let mut out = vec![0.5; n];
                FastSum::new(plan, (&points, &weights), &points, Context::default()).unwrap().add(
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

    /// Outputs of a model of many vectors in two heaps: exact in double precision and beyond single, whatever rows come
    /// together; rows between the heaps and outside are those of all pairs, however small they are.
    #[test]
    fn outputs_of_many_vectors_are_sums() {
        let (m, q, gamma) = (12_000, 3, 3.0);
        let mut random = Random::new(4);
        let mut z = rows(m, &[2.0, 1.5], &mut random);
        z.chunks_exact_mut(2).step_by(2).for_each(|row| row[0] += 9.0);
        let coefficients: Vec<f64> =
            (0..m * q).map(|i| if i % q == 1 { 0.0 } else { 500.0 * ((i % 11) as f64 - 4.0) }).collect();
        let z_rows = Rows::from_shape((m, 2), &z).unwrap();
        let intercepts = [0.0, 0.5, -3.0];
        let kernel = Kernel::Rbf { gamma };
        assert!(
            FastGaussTransform::new(&kernel, z_rows, &coefficients, Context::default()).unwrap().is_some()
        );
        let view = crate::data::matrix((m, q), &coefficients).unwrap();
        let evaluator =
            Evaluator::new(&ExpansionView::new(kernel, z_rows, view, &intercepts).unwrap()).unwrap();
        let mut x = z[..80].to_vec();
        x.extend([5.0, 0.4, -1.0, 0.0, 30.0, 30.0, 4.9, -0.3]);
        let n = x.len() / 2;
        let single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let total: f64 = 500.0 * 3.0 * m as f64;
        for (rows, digits) in [
            (Rows::from_shape((n, 2), &x).unwrap(), 1e-14),
            (Rows::from_shape((n, 2), &single).unwrap(), 1e-6),
        ] {
            let f = evaluator.evaluate(rows, Context::default()).unwrap();
            assert_eq!(f, evaluator.evaluate(rows, Context::SEQUENTIAL).unwrap());
            for i in 0..n {
                let alone = rows.gather(&[i]);
                let alone = evaluator.evaluate(alone.unwrap().view(), Context::SEQUENTIAL).unwrap();
                for j in 0..q {
                    assert_eq!(f[[i, j]], alone[[0, j]]);
                    let of = |k: usize| coefficients[k * q + j] * pair(&kernel, rows, i, z_rows, k);
                    let sum: f64 = (0..m).map(of).sum();
                    let off = (f[[i, j]] - intercepts[j] - sum).abs();
                    assert!(off <= digits * total, "{i} {j}: {sum} {off:e}");
                    // No sign is noise.
                    assert!(
                        off <= 1e-2 * sum.abs() + 1e3 * f64::from(f32::MIN_POSITIVE) * total,
                        "{i} {j}: {sum} {off:e}"
                    );
                }
            }
        }
    }
}
