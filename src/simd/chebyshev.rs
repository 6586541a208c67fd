//! Piecewise polynomials in one to three variables: their values at points, and the moments of points.
//!
//! Space is cut into boxes; in each, a polynomial is a sum of products of Chebyshev polynomials T_0 .. T_(P-1), one a
//! variable. All coefficients are one row-major array with P entries a box along each axis, so a *line* of P coefficients,
//! those of the last variable's polynomials, is contiguous. Points times `scale` are in units of a box.

use super::{Isa, Operation, Vector, run};

/// Largest number of polynomials an axis.
pub(crate) const MOST: usize = 16;
/// Most axes.
pub(crate) const AXES: usize = 3;
/// Numbers behind the last coefficient that may be read and written (with what was there).
pub(crate) const MARGIN: usize = MOST;

/// How boxes lie in the array of coefficients.
#[derive(Debug, Clone)]
pub(crate) struct Boxes {
    /// Polynomials an axis: 8, 12 or 16.
    pub(crate) order: usize,
    /// Boxes along each axis.
    pub(crate) counts: Vec<usize>,
}

impl Boxes {
    /// Coefficients along an axis.
    pub(crate) fn len(&self, axis: usize) -> usize {
        self.counts[axis] * self.order
    }

    /// Coefficients in all.
    pub(crate) fn size(&self) -> usize {
        (0..self.counts.len()).map(|axis| self.len(axis)).product()
    }

    /// Numbers from one coefficient along each axis to the next.
    fn strides(&self) -> [usize; AXES] {
        let d = self.counts.len();
        let mut strides = [0; AXES];
        for axis in 0..d {
            strides[axis] = (axis + 1..d).map(|axis| self.len(axis)).product();
        }
        strides
    }

    /// Starts of the lines of a box, from its first coefficient.
    fn lines(&self) -> Vec<usize> {
        let strides = self.strides();
        let mut lines = vec![0];
        for axis in 0..self.counts.len() - 1 {
            lines = lines
                .iter()
                .flat_map(|line| (0..self.order).map(move |k| line + k * strides[axis]))
                .collect(); // small: the degree of a polynomial
        }
        lines
    }
}

struct Place<'a> {
    boxes: &'a Boxes,
    strides: [usize; AXES],
    lines: Vec<usize>,
}

impl<'a> Place<'a> {
    fn new(boxes: &'a Boxes) -> Self {
        Self { boxes, strides: boxes.strides(), lines: boxes.lines() }
    }

    /// The boxes of up to [`GROUP`] points, and T_0 .. T_(P-1) of their coordinates.
    #[inline(always)]
    fn find<const P: usize>(&self, scale: f64, points: &[f64], found: &mut Found) {
        let d = self.boxes.counts.len();
        found.starts = [0; GROUP];
        for axis in 0..d {
            let last_box = self.boxes.counts[axis] as f64 - 1.0;
            let mut t = [0.0; GROUP];
            for (k, point) in points.chunks_exact(d).enumerate() {
                let u = scale * point[axis];
                let of_box = u.floor().max(0.0).min(last_box);
                found.starts[k] += of_box as usize * P * self.strides[axis];
                t[k] = 2.0 * (u - of_box) - 1.0;
            }
            let mut values = [[0.0; GROUP]; MOST];
            (values[0], values[1]) = ([1.0; GROUP], t);
            // T_(2k) = 2 T_k^2 - 1, T_(2k+1) = 2 T_k T_(k+1) - t: short chains.
            for k in 1..P / 2 {
                for i in 0..GROUP {
                    values[2 * k][i] = 2.0 * values[k][i] * values[k][i] - 1.0;
                    values[2 * k + 1][i] = 2.0 * values[k][i] * values[k + 1][i] - t[i];
                }
            }
            for i in 0..GROUP {
                for k in 0..P {
                    found.polynomials[axis][i][k] = values[k][i];
                }
            }
        }
    }

    /// Products of the polynomials of all variables of a point but the last, one a line; and those of the last.
    #[inline(always)]
    fn weights<'w, const P: usize>(
        &self,
        found: &'w Found,
        i: usize,
        space: &'w mut [f64; MOST * MOST],
    ) -> (&'w [f64], &'w [f64; MOST]) {
        let polynomials = |axis: usize| &found.polynomials[axis][i];
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

/// Points that are looked at together.
const GROUP: usize = 8;

struct Found {
    starts: [usize; GROUP],
    /// By axis and point; zeros beyond the last polynomial.
    polynomials: [[[f64; MOST]; GROUP]; AXES],
}

impl Found {
    fn new() -> Self {
        Self { starts: [0; GROUP], polynomials: [[[0.0; MOST]; GROUP]; AXES] }
    }
}

struct Evaluate<'a, const P: usize> {
    place: Place<'a>,
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
        let d = self.place.boxes.counts.len();
        let (mut found, mut space) = (Found::new(), [0.0; MOST * MOST]);
        for (at, out) in self.out.iter_mut().enumerate() {
            if at % GROUP == 0 {
                let points = &self.points[at * d..self.points.len().min((at + GROUP) * d)];
                self.place.find::<P>(self.scale, points, &mut found);
            }
            let start = found.starts[at % GROUP];
            let (weights, last) = self.place.weights::<P>(&found, at % GROUP, &mut space);
            // SAFETY: boxes and lines are within the coefficients, which have a margin of MOST; so have `last` and the sums.
            unsafe {
                let from = self.coefficients.as_ptr().add(start);
                let mut sums = [V::<I>::zero(); MOST];
                for (&line, &weight) in self.place.lines.iter().zip(weights) {
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
    place: Place<'a>,
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
        let d = self.place.boxes.counts.len();
        let (mut found, mut space) = (Found::new(), [0.0; MOST * MOST]);
        for (at, &of_point) in self.weights.iter().enumerate() {
            if at % GROUP == 0 {
                let points = &self.points[at * d..self.points.len().min((at + GROUP) * d)];
                self.place.find::<P>(self.scale, points, &mut found);
            }
            let start = found.starts[at % GROUP];
            let (weights, last) = self.place.weights::<P>(&found, at % GROUP, &mut space);
            // SAFETY: as in `Evaluate`.
            unsafe {
                let to = self.moments.as_mut_ptr().add(start);
                for (&line, &weight) in self.place.lines.iter().zip(weights) {
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

/// out += the polynomial of each point's box at the point. `coefficients` has [`MARGIN`] numbers more than the boxes.
pub(crate) fn evaluate(boxes: &Boxes, scale: f64, coefficients: &[f64], points: &[f64], out: &mut [f64]) {
    assert!(coefficients.len() == boxes.size() + MARGIN && points.len() == out.len() * boxes.counts.len());
    let place = Place::new(boxes);
    // SAFETY: the array has all boxes and the margin; a point outside is taken to be in the box next to it.
    unsafe {
        match boxes.order {
            8 => run(Evaluate::<8> { place, scale, coefficients, points, out }),
            12 => run(Evaluate::<12> { place, scale, coefficients, points, out }),
            16 => run(Evaluate::<16> { place, scale, coefficients, points, out }),
            order => unreachable!("{order} polynomials"),
        }
    }
}

/// moments += weight times the products of Chebyshev polynomials of each point, at the place of its box.
pub(crate) fn collect(boxes: &Boxes, scale: f64, points: &[f64], weights: &[f64], moments: &mut [f64]) {
    assert!(moments.len() == boxes.size() + MARGIN && points.len() == weights.len() * boxes.counts.len());
    let place = Place::new(boxes);
    // SAFETY: as in `evaluate`.
    unsafe {
        match boxes.order {
            8 => run(Collect::<8> { place, scale, points, weights, moments }),
            12 => run(Collect::<12> { place, scale, points, weights, moments }),
            16 => run(Collect::<16> { place, scale, points, weights, moments }),
            order => unreachable!("{order} polynomials"),
        }
    }
}
