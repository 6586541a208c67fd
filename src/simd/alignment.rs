//! Sums over all alignments of two series: the dynamic program of the global alignment kernel (Cuturi 2011).
//!
//! M(i, j) = kappa(i, j) (M(i-1, j) + M(i, j-1) + M(i-1, j-1)) with kappa = g / (2 - g) and g = w(i - j) 2^(-s |x_i - y_j|^2).
//! The cells of an antidiagonal i + j = d depend only on the two antidiagonals before, so they are the lanes: i ascends
//! along one series, j descends along the other, which is stored in reversed order.
//!
//! M leaves the range of doubles in both directions, and neighboring cells may differ by any factor. Hence each cell
//! is a number m 2^e with its own integral e, so that every step has the relative error of a few roundings. Scaling by
//! powers of two is exact. Mantissas drift by less than 256 bits before they are normalized again: a step has a factor from
//! 2^-1.6 to 3.3.
//!
//! As long as the cells of an antidiagonal differ by less than 1000 bits they share an exponent, which takes half of the
//! operations and rounds no worse.
//!
//! Invariant: the operations are symmetric in the two series, so that exchanging them gives the same bits.

use super::exp::polynomial;
use super::{Isa, Operation, Real, Vector, run};
use std::ops::Range;

/// A multiple of the number of lanes of every vector of doubles. Series and diagonals are padded by as many numbers. Those of
/// a series lie between its smallest and its largest number, so that lanes without a cell have no smaller g than the cells.
pub(crate) const PADDING: usize = 8;
/// The exponent of zero, below that of every cell.
const ZERO_EXPONENT: f64 = -((1_u64 << 60) as f64);
/// The smallest exponent of a factor kappa; factors below count as 2 to this power. A path over such a cell has less weight
/// than 2^-1074 relative to the diagonal, for series of less than six million steps.
const MIN_EXPONENT: f64 = -((1_u32 << 24) as f64);
/// Number of antidiagonals between two normalizations.
const STEPS_PER_NORMALIZATION: usize = 128;
/// Number of antidiagonals between two normalizations of antidiagonals with a common exponent, and the smallest binary
/// logarithm of g for which there is one: between two normalizations a cell shrinks by at most 16 times 26 bits.
const STEPS_PER_COMMON_NORMALIZATION: usize = 16;
const MIN_COMMON_LOGARITHM: f64 = -25.0;
/// The exponent of the largest cell after a normalization with a common exponent, and the smallest one of any cell. Numbers
/// stay normal until the next normalization.
const COMMON_TOP: i64 = 500;
const COMMON_BOTTOM: i64 = -500;
/// The smallest exponent of a normal number.
const MIN_NORMAL: f64 = -1022.0;
/// Number of explicit bits of a mantissa, the bits of an exponent, and its bias.
const MANTISSA_BITS: u32 = 52;
const EXPONENT_MASK: u64 = 0x7ff << MANTISSA_BITS;
const BIAS: u64 = 1023;

/// The cells of an antidiagonal, indexed by i from 0.
#[derive(Debug, Default)]
struct Diagonal {
    mantissas: Vec<f64>,
    exponents: Vec<f64>,
}

impl Diagonal {
    /// Makes all cells zero.
    fn reset(&mut self, length: usize) {
        self.mantissas.clear();
        self.mantissas.resize(length, 0.0);
        self.exponents.clear();
        self.exponents.resize(length, ZERO_EXPONENT);
    }

    /// Makes a cell zero.
    fn clear(&mut self, i: usize) {
        self.mantissas[i] = 0.0;
        self.exponents[i] = ZERO_EXPONENT;
    }

    /// Returns the mantissa and the exponent of a cell.
    fn cell(&self, i: usize) -> (f64, f64) {
        (self.mantissas[i], self.exponents[i])
    }

    /// Returns the smallest and the largest mantissa of a range.
    #[inline(always)]
    fn bounds(&self, range: Range<usize>) -> (f64, f64) {
        self.mantissas[range].iter().fold((f64::MAX, 0.0), |(min, max), &mantissa| {
            (if mantissa < min { mantissa } else { min }, if mantissa > max { mantissa } else { max })
        })
    }

    /// Moves the mantissas of a range into [1, 2).
    #[inline(always)]
    fn normalize(&mut self, range: Range<usize>) {
        let exponents = &mut self.exponents[range.clone()];
        for (mantissa, exponent) in self.mantissas[range].iter_mut().zip(exponents) {
            let bits = mantissa.to_bits();
            let shift = ((bits >> MANTISSA_BITS) as i64 - BIAS as i64) as f64;
            let is_zero = *mantissa == 0.0;
            *exponent = if is_zero { ZERO_EXPONENT } else { *exponent + shift };
            let normal = f64::from_bits(bits & !EXPONENT_MASK | BIAS << MANTISSA_BITS);
            *mantissa = if is_zero { 0.0 } else { normal };
        }
    }
}

/// Two series, and the cells of their grid that have a weight.
#[derive(Clone, Copy)]
pub(crate) struct Grid<'a> {
    /// Feature after feature, the first series in ascending and the second in descending order, each padded by [`PADDING`].
    pub(crate) ascending: &'a [f64],
    pub(crate) descending: &'a [f64],
    /// Numbers of steps of the series.
    pub(crate) steps: (usize, usize),
    pub(crate) features: usize,
    /// The factor s of the squared distances.
    pub(crate) scale: f64,
    /// Binary logarithms of the weights, if there is a band.
    pub(crate) weights: Option<&'a Weights>,
}

/// The antidiagonals of a dynamic program.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The cells of the antidiagonal d are in d % 3.
    diagonals: [Diagonal; 3],
    /// The exponent of all cells, in addition to those of the cells.
    exponent: i64,
    /// True if the exponents of the cells are not used.
    is_common: bool,
}

/// Binary logarithms of the weights w(i - j) for |i - j| <= reach, those of even and of odd differences apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    pub(crate) reach: usize,
    logarithms: [Vec<f64>; 2],
}

impl Weights {
    /// Takes the logarithm of the weight of each difference up to `reach`.
    pub(crate) fn new(reach: usize, logarithm: impl Fn(usize) -> f64) -> Self {
        // The entry k of the even table is that of the difference 2 (k - offset), of the odd one that plus 1.
        let offset = reach / 2 + 1;
        let logarithms = [0, 1].map(|parity: usize| {
            let weight = |k: usize| {
                let difference = (2 * k + parity).abs_diff(2 * offset);
                if difference <= reach { logarithm(difference) } else { 0.0 }
            };
            (0..2 * offset + 1 + PADDING).map(weight).collect()
        });
        Self { reach, logarithms }
    }

    /// Returns the logarithm of the weight of a difference, at most `reach`.
    pub(crate) fn logarithm(&self, difference: usize) -> f64 {
        self.logarithms[difference % 2][self.reach / 2 + 1 + difference / 2]
    }

    /// Returns the table of an antidiagonal d and the place of the cell i there: the difference is 2 i - d.
    #[inline(always)]
    fn table(&self, d: usize, i: usize) -> (&[f64], usize) {
        let offset = self.reach / 2 + 1;
        (&self.logarithms[d % 2], i + offset - d.div_ceil(2))
    }
}

impl Grid<'_> {
    /// Returns the first and the last i of the cells of an antidiagonal; there are none if the first is larger.
    pub(crate) fn cells(&self, d: usize) -> (usize, usize) {
        let (n, m) = self.steps;
        let (first, last) = (d.saturating_sub(m).max(1), n.min(d - 1));
        self.weights.map_or((first, last), |weights| {
            (
                first.max(d.saturating_sub(weights.reach).div_ceil(2)),
                last.min(usize::midpoint(d, weights.reach)),
            )
        })
    }

    /// Returns the number of the last antidiagonal.
    pub(crate) fn last(&self) -> usize {
        self.steps.0 + self.steps.1
    }
}

impl Table {
    /// Writes the antidiagonals before the cell (1, 1): M(0, 0) = 1. No g has a smaller binary logarithm than `logarithm`.
    pub(crate) fn start(&mut self, grid: &Grid<'_>, logarithm: f64) {
        self.diagonals.iter_mut().for_each(|diagonal| diagonal.reset(grid.steps.0 + 1 + PADDING));
        self.exponent = 0;
        self.is_common = logarithm >= MIN_COMMON_LOGARITHM;
        self.diagonals[0].mantissas[0] = 1.0;
        if !self.is_common {
            self.diagonals[0].exponents[0] = 0.0;
        }
    }

    /// Computes the antidiagonals of a range, which follow those computed before; the first is 2.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub(crate) fn advance(&mut self, grid: &Grid<'_>, mut range: Range<usize>) {
        let (n, m) = grid.steps;
        assert!(range.start >= 2 && range.end <= grid.last() + 1);
        assert!(grid.ascending.len() >= grid.features * (n + PADDING));
        assert!(grid.descending.len() >= grid.features * (m + PADDING));
        let length = n + 1 + PADDING;
        assert!(self.diagonals.iter().all(|d| d.mantissas.len() == length && d.exponents.len() == length));
        // SAFETY: the lengths were checked.
        unsafe {
            if self.is_common {
                range.start = run(AdvanceTogether { grid, table: self, range: range.clone() });
            }
            run(Advance { grid, diagonals: &mut self.diagonals, range });
        }
    }

    /// Returns a number and an exponent of 2 whose product is the last cell.
    pub(crate) fn last(&self, grid: &Grid<'_>) -> (f64, i64) {
        let (mantissa, exponent) = self.diagonals[grid.last() % 3].cell(grid.steps.0);
        (mantissa, self.exponent + if self.is_common { 0 } else { exponent as i64 })
    }

    /// Moves the largest of the cells of two antidiagonals to [`COMMON_TOP`], or gives each cell its own exponent if they differ too
    /// much.
    #[inline(always)]
    fn normalize_together(&mut self, grid: &Grid<'_>, d: usize) {
        let ranges =
            [d - 1, d].map(|d| (d % 3, grid.cells(d))).map(|(k, (first, last))| (k, first..last + 1));
        // One of the two has cells, also if the band has only the diagonal.
        let mut bounds = (f64::MAX, 0.0);
        for (k, range) in &ranges {
            let (min, max) = self.diagonals[*k].bounds(range.clone());
            bounds = (f64::min(bounds.0, min), f64::max(bounds.1, max));
        }
        let (bottom, top) = (binary_exponent(bounds.0), binary_exponent(bounds.1));
        if bottom - top < COMMON_BOTTOM - COMMON_TOP {
            self.is_common = false;
            for (k, range) in ranges {
                self.diagonals[k].exponents[range.clone()].fill(0.0);
                self.diagonals[k].normalize(range);
            }
            return;
        }
        let factor = f64::from_bits(((COMMON_TOP - top + BIAS as i64) as u64) << MANTISSA_BITS);
        for (k, range) in ranges {
            self.diagonals[k].mantissas[range].iter_mut().for_each(|mantissa| *mantissa *= factor);
        }
        self.exponent += top - COMMON_TOP;
    }
}

/// Returns the exponent of a positive normal number.
#[inline(always)]
fn binary_exponent(number: f64) -> i64 {
    (number.to_bits() >> MANTISSA_BITS) as i64 - BIAS as i64
}

/// Returns the diagonals d - 2, d - 1 and d.
#[inline(always)]
fn rotated(diagonals: &mut [Diagonal; 3], d: usize) -> (&mut Diagonal, &mut Diagonal, &mut Diagonal) {
    let [a, b, c] = diagonals;
    match d % 3 {
        0 => (b, c, a),
        1 => (c, a, b),
        _ => (a, b, c),
    }
}

/// The operation of [`Table::advance`] with an exponent for each cell.
struct Advance<'a> {
    grid: &'a Grid<'a>,
    diagonals: &'a mut [Diagonal; 3],
    range: Range<usize>,
}

impl Operation for Advance<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        let Self { grid, diagonals, range } = self;
        for d in range {
            let (first, last) = grid.cells(d);
            let (before, previous, current) = rotated(diagonals, d);
            for i in (first..=last).step_by(I::F64::LANES) {
                // SAFETY: i is a cell of the antidiagonal, and everything is padded by the widest vector.
                unsafe {
                    let (kappa, exponent) = factors::<I::F64>(grid, d, i);
                    let (sum, top) = neighbors::<I::F64>(previous, before, i);
                    sum.mul(kappa).store(current.mantissas.as_mut_ptr().add(i));
                    top.add(exponent).store(current.exponents.as_mut_ptr().add(i));
                }
            }
            // The cells beside these are zero for the next antidiagonals, which read no further.
            current.clear(last + 1);
            current.clear(first.saturating_sub(1));
            if d.is_multiple_of(STEPS_PER_NORMALIZATION) {
                let cells = first.saturating_sub(2)..last + 2;
                current.normalize(cells.clone());
                previous.normalize(cells);
            }
        }
    }
}

/// The operation of [`Table::advance`] as long as the exponent is common. It returns the first antidiagonal that is left.
struct AdvanceTogether<'a> {
    grid: &'a Grid<'a>,
    table: &'a mut Table,
    range: Range<usize>,
}

impl Operation for AdvanceTogether<'_> {
    type Output = usize;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> usize {
        let Self { grid, table, range } = self;
        for d in range.clone() {
            let cells = grid.cells(d);
            let (before, previous, current) = rotated(&mut table.diagonals, d);
            // SAFETY: all cells are on the antidiagonal, and everything is padded by the widest vector.
            unsafe {
                match (grid.weights, grid.features) {
                    (None, 1) => together::<I::F64, true>(grid, d, cells, (before, previous, current)),
                    _ => together::<I::F64, false>(grid, d, cells, (before, previous, current)),
                }
            }
            current.mantissas[cells.1 + 1] = 0.0;
            current.mantissas[cells.0.saturating_sub(1)] = 0.0;
            if d.is_multiple_of(STEPS_PER_COMMON_NORMALIZATION) {
                table.normalize_together(grid, d);
                if !table.is_common {
                    return d + 1;
                }
            }
        }
        range.end
    }
}

/// Computes the cells of an antidiagonal with a common exponent: kappa = 1 / (2 / g - 1).
///
/// # Safety
/// See [`Vector`]; the cells must be those of the antidiagonal, and everything must be padded.
#[inline(always)]
unsafe fn together<V: Vector<Elem = f64>, const IS_PLAIN: bool>(
    grid: &Grid<'_>,
    d: usize,
    (first, last): (usize, usize),
    (before, previous, current): (&Diagonal, &Diagonal, &mut Diagonal),
) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let (n, m) = grid.steps;
        // The cell i has the steps i - 1 and m + i - d; the differences may lie before the series.
        let x = grid.ascending.as_ptr().wrapping_sub(1);
        let y = grid.descending.as_ptr().wrapping_add(m).wrapping_sub(d);
        let (before, previous) = (before.mantissas.as_ptr(), previous.mantissas.as_ptr());
        let current = current.mantissas.as_mut_ptr();
        let (scale, unit) = (V::splat(grid.scale), V::splat(1.0));
        let mut i = first;
        while i <= last {
            let difference = V::load(x.wrapping_add(i)).sub(V::load(y.wrapping_add(i)));
            let mut distance = difference.mul(difference);
            let mut t = unit;
            if !IS_PLAIN {
                for feature in 1..grid.features {
                    let difference = V::load(x.wrapping_add(i + feature * (n + PADDING)))
                        .sub(V::load(y.wrapping_add(i + feature * (m + PADDING))));
                    distance = difference.mul_add(difference, distance);
                }
                if let Some(weights) = grid.weights {
                    let (table, place) = weights.table(d, i);
                    t = unit.sub(V::load(table[place..place + PADDING].as_ptr()));
                }
            }
            let t = distance.mul_add(scale, t);
            let shift = t.round();
            let r = t.sub(shift);
            let power = polynomial(f64::EXP2_POLYNOMIAL, r).mul_add(r, unit).scale_pow2(shift);
            let sum =
                V::load(previous.add(i)).add(V::load(previous.add(i - 1))).add(V::load(before.add(i - 1)));
            sum.div(power.sub(unit)).store(current.add(i));
            i += V::LANES;
        }
    }
}

/// Returns the mantissas and exponents of kappa at the cells from i on of the antidiagonal d.
///
/// # Safety
/// See [`Vector`]; i must be one of the cells, and the series must be padded.
#[inline(always)]
unsafe fn factors<V: Vector<Elem = f64>>(grid: &Grid<'_>, d: usize, i: usize) -> (V, V) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let (power, exponent) = power::<V>(grid, d, i);
        let scale = V::splat(1.0).scale_pow2(exponent.max(V::splat(MIN_NORMAL)));
        (power.div(V::splat(2.0).sub(power.mul(scale))), exponent)
    }
}

/// Returns the mantissas, from 0.7 to 1.5, and the exponents of g at the cells from i on of the antidiagonal d.
///
/// # Safety
/// See [`Vector`]; i must be one of the cells, and the series must be padded.
#[inline(always)]
unsafe fn power<V: Vector<Elem = f64>>(grid: &Grid<'_>, d: usize, i: usize) -> (V, V) {
    let (n, m) = grid.steps;
    // SAFETY: the contract is the caller's. The place in the table of weights is checked here.
    unsafe {
        let mut x = grid.ascending.as_ptr().add(i - 1);
        let mut y = grid.descending.as_ptr().add(m + i - d);
        let difference = V::load(x).sub(V::load(y));
        let mut distance = difference.mul(difference);
        for _ in 1..grid.features {
            x = x.add(n + PADDING);
            y = y.add(m + PADDING);
            let difference = V::load(x).sub(V::load(y));
            distance = difference.mul_add(difference, distance);
        }
        let mut t = distance.mul(V::splat(-grid.scale));
        if let Some(weights) = grid.weights {
            let (table, place) = weights.table(d, i);
            t = t.add(V::load(table[place..place + PADDING].as_ptr()));
        }
        let t = t.max(V::splat(MIN_EXPONENT));
        let exponent = t.round();
        let r = t.sub(exponent);
        (polynomial(f64::EXP2_POLYNOMIAL, r).mul_add(r, V::splat(1.0)), exponent)
    }
}

/// Returns the mantissas and exponents of the sums of the three neighbors before the cells from i on.
///
/// # Safety
/// See [`Vector`]; the diagonals must be padded.
#[inline(always)]
unsafe fn neighbors<V: Vector<Elem = f64>>(previous: &Diagonal, before: &Diagonal, i: usize) -> (V, V) {
    // SAFETY: the contract is the caller's.
    unsafe {
        let load = |diagonal: &Diagonal, i: usize| {
            (V::load(diagonal.mantissas.as_ptr().add(i)), V::load(diagonal.exponents.as_ptr().add(i)))
        };
        let (left, above, corner) = (load(previous, i), load(previous, i - 1), load(before, i - 1));
        let top = left.1.max(above.1).max(corner.1);
        let shifted = |(mantissa, exponent): (V, V)| {
            let shift = exponent.sub(top).max(V::splat(MIN_NORMAL));
            mantissa.mul(V::splat(1.0).scale_pow2(shift))
        };
        (shifted(left).add(shifted(above)).add(shifted(corner)), top)
    }
}
