//! Piecewise polynomials in one to three variables: their values at points, and the moments of points.
//!
//! Space is divided into boxes. In each, a polynomial is a sum of products of Chebyshev polynomials T_0 .. T_(P-1), one per
//! variable. All coefficients are one row-major array with P entries per box along each axis, so a *line* of P coefficients,
//! those of the last variable's polynomials, is contiguous. Points times `scale` are in units of a box.

use super::{Isa, Operation, Vector, run};

/// Maximum number of polynomials per axis.
pub(crate) const MAX_ORDER: usize = 16;
/// Maximum number of axes.
pub(crate) const MAX_AXES: usize = 3;
/// Number of elements behind the last coefficient that may be read, and written with their own values.
pub(crate) const MARGIN: usize = MAX_ORDER;

/// The layout of boxes in the array of coefficients.
#[derive(Debug, Clone)]
pub(crate) struct Boxes {
    /// Number of polynomials per axis: 8, 12 or 16.
    pub(crate) order: usize,
    /// Number of boxes along each axis.
    pub(crate) counts: Vec<usize>,
}

impl Boxes {
    /// Returns the number of coefficients along an axis.
    pub(crate) fn len(&self, axis: usize) -> usize {
        self.counts[axis] * self.order
    }

    pub(crate) fn size(&self) -> usize {
        (0..self.counts.len()).map(|axis| self.len(axis)).product()
    }

    /// Returns the distance between neighboring coefficients along each axis.
    fn strides(&self) -> [usize; MAX_AXES] {
        let d = self.counts.len();
        let mut strides = [0; MAX_AXES];
        for axis in 0..d {
            strides[axis] = (axis + 1..d).map(|axis| self.len(axis)).product();
        }
        strides
    }

    /// Returns the starts of the lines of a box, relative to its first coefficient.
    fn lines(&self) -> Vec<usize> {
        let strides = self.strides();
        let mut lines = vec![0];
        for axis in 0..self.counts.len() - 1 {
            lines = lines
                .iter()
                .flat_map(|line| (0..self.order).map(move |k| line + k * strides[axis]))
                .collect();
        }
        lines
    }
}

struct BoxLocator<'a> {
    boxes: &'a Boxes,
    strides: [usize; MAX_AXES],
    lines: Vec<usize>,
}

impl<'a> BoxLocator<'a> {
    fn new(boxes: &'a Boxes) -> Self {
        Self { boxes, strides: boxes.strides(), lines: boxes.lines() }
    }

    /// Finds the boxes of up to [`GROUP_POINTS`] points, and evaluates T_0 .. T_(P-1) at their coordinates.
    #[inline(always)]
    fn find<const P: usize>(&self, scale: f64, points: &[f64], located: &mut LocatedPoints) {
        let d = self.boxes.counts.len();
        located.starts = [0; GROUP_POINTS];
        for axis in 0..d {
            let last_box = self.boxes.counts[axis] as f64 - 1.0;
            let mut t = [0.0; GROUP_POINTS];
            for (k, point) in points.chunks_exact(d).enumerate() {
                let u = scale * point[axis];
                let of_box = u.floor().max(0.0).min(last_box);
                located.starts[k] += of_box as usize * P * self.strides[axis];
                t[k] = 2.0 * (u - of_box) - 1.0;
            }
            let mut values = [[0.0; GROUP_POINTS]; MAX_ORDER];
            (values[0], values[1]) = ([1.0; GROUP_POINTS], t);
            // T_(2k) = 2 T_k^2 - 1, T_(2k+1) = 2 T_k T_(k+1) - t: short chains.
            for k in 1..P / 2 {
                for i in 0..GROUP_POINTS {
                    values[2 * k][i] = 2.0 * values[k][i] * values[k][i] - 1.0;
                    values[2 * k + 1][i] = 2.0 * values[k][i] * values[k + 1][i] - t[i];
                }
            }
            for i in 0..GROUP_POINTS {
                for k in 0..P {
                    located.polynomials[axis][i][k] = values[k][i];
                }
            }
        }
    }

    /// Returns the products of the polynomials of all variables of a point except the last, one per line, and those of the last.
    #[inline(always)]
    fn weights<'w, const P: usize>(
        &self,
        located: &'w LocatedPoints,
        i: usize,
        space: &'w mut [f64; MAX_ORDER * MAX_ORDER],
    ) -> (&'w [f64], &'w [f64; MAX_ORDER]) {
        let polynomials = |axis: usize| &located.polynomials[axis][i];
        match self.boxes.counts.len() {
            1 => (&[1.0], polynomials(0)),
            2 => (&polynomials(0)[..P], polynomials(1)),
            _ => {
                for (line, &w) in space.chunks_exact_mut(P).zip(&polynomials(0)[..P]) {
                    line.iter_mut().zip(polynomials(1)).for_each(|(out, v)| *out = w * v);
                }
                (&space[..P * P], polynomials(2))
            }
        }
    }
}

/// Number of points whose polynomials are evaluated together.
const GROUP_POINTS: usize = 8;

struct LocatedPoints {
    starts: [usize; GROUP_POINTS],
    /// The polynomials by axis and point; zeros beyond the last polynomial.
    polynomials: [[[f64; MAX_ORDER]; GROUP_POINTS]; MAX_AXES],
}

impl LocatedPoints {
    fn new() -> Self {
        Self { starts: [0; GROUP_POINTS], polynomials: [[[0.0; MAX_ORDER]; GROUP_POINTS]; MAX_AXES] }
    }
}

struct Evaluate<'a, const P: usize> {
    locator: BoxLocator<'a>,
    scale: f64,
    coefficients: &'a [f64],
    points: &'a [f64],
    out: &'a mut [f64],
}

impl<const P: usize> Operation for Evaluate<'_, P> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        type V<I> = <I as Isa>::F64;
        let lanes = <V<I> as Vector>::LANES;
        let d = self.locator.boxes.counts.len();
        let (mut located, mut space) = (LocatedPoints::new(), [0.0; MAX_ORDER * MAX_ORDER]);
        for (at, out) in self.out.iter_mut().enumerate() {
            if at % GROUP_POINTS == 0 {
                let points = &self.points[at * d..self.points.len().min((at + GROUP_POINTS) * d)];
                self.locator.find::<P>(self.scale, points, &mut located);
            }
            let start = located.starts[at % GROUP_POINTS];
            let (weights, last) = self.locator.weights::<P>(&located, at % GROUP_POINTS, &mut space);
            // SAFETY: boxes and lines are within the coefficients, which have a margin of MAX_ORDER; so have `last` and the sums.
            unsafe {
                let from = self.coefficients.as_ptr().add(start);
                let mut sums = [V::<I>::zero(); MAX_ORDER];
                for (&line, &weight) in self.locator.lines.iter().zip(weights) {
                    let (from, weight) = (from.add(line), V::<I>::splat(weight));
                    for v in 0..P.div_ceil(lanes) {
                        sums[v] = weight.mul_add(V::<I>::load(from.add(v * lanes)), sums[v]);
                    }
                }
                let mut sum = V::<I>::zero();
                for v in 0..P.div_ceil(lanes) {
                    sum = sums[v].mul_add(V::<I>::load(last.as_ptr().add(v * lanes)), sum);
                }
                *out += sum.sum();
            }
        }
    }
}

struct Collect<'a, const P: usize> {
    locator: BoxLocator<'a>,
    scale: f64,
    points: &'a [f64],
    weights: &'a [f64],
    moments: &'a mut [f64],
}

impl<const P: usize> Operation for Collect<'_, P> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        type V<I> = <I as Isa>::F64;
        let lanes = <V<I> as Vector>::LANES;
        let d = self.locator.boxes.counts.len();
        let (mut located, mut space) = (LocatedPoints::new(), [0.0; MAX_ORDER * MAX_ORDER]);
        for (at, &of_point) in self.weights.iter().enumerate() {
            if at % GROUP_POINTS == 0 {
                let points = &self.points[at * d..self.points.len().min((at + GROUP_POINTS) * d)];
                self.locator.find::<P>(self.scale, points, &mut located);
            }
            let start = located.starts[at % GROUP_POINTS];
            let (weights, last) = self.locator.weights::<P>(&located, at % GROUP_POINTS, &mut space);
            // SAFETY: as in `Evaluate`.
            unsafe {
                let to = self.moments.as_mut_ptr().add(start);
                for (&line, &weight) in self.locator.lines.iter().zip(weights) {
                    let (to, weight) = (to.add(line), V::<I>::splat(of_point * weight));
                    for v in 0..P.div_ceil(lanes) {
                        let to = to.add(v * lanes);
                        weight
                            .mul_add(V::<I>::load(last.as_ptr().add(v * lanes)), V::<I>::load(to))
                            .store(to);
                    }
                }
            }
        }
    }
}

/// Adds the value of the polynomial of each point's box to `out`. `coefficients` has [`MARGIN`] elements more than the boxes.
pub(crate) fn evaluate(boxes: &Boxes, scale: f64, coefficients: &[f64], points: &[f64], out: &mut [f64]) {
    assert!(coefficients.len() == boxes.size() + MARGIN && points.len() == out.len() * boxes.counts.len());
    let locator = BoxLocator::new(boxes);
    // SAFETY: the array has all boxes and the margin; a point outside is taken to be in the box next to it.
    unsafe {
        match boxes.order {
            8 => run(Evaluate::<8> { locator, scale, coefficients, points, out }),
            12 => run(Evaluate::<12> { locator, scale, coefficients, points, out }),
            16 => run(Evaluate::<16> { locator, scale, coefficients, points, out }),
            order => unreachable!("{order} polynomials"),
        }
    }
}

/// Adds the weighted products of Chebyshev polynomials of each point to the moments of its box.
pub(crate) fn collect(boxes: &Boxes, scale: f64, points: &[f64], weights: &[f64], moments: &mut [f64]) {
    assert!(moments.len() == boxes.size() + MARGIN && points.len() == weights.len() * boxes.counts.len());
    let locator = BoxLocator::new(boxes);
    // SAFETY: as in `evaluate`.
    unsafe {
        match boxes.order {
            8 => run(Collect::<8> { locator, scale, points, weights, moments }),
            12 => run(Collect::<12> { locator, scale, points, weights, moments }),
            16 => run(Collect::<16> { locator, scale, points, weights, moments }),
            order => unreachable!("{order} polynomials"),
        }
    }
}
