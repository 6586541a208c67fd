//! The whole l1 path of one output, exact at every lambda (Efron, Hastie, Johnstone and Tibshirani, Least angle
//! regression, Annals of Statistics 32, 2004, with the lasso modification of section 3.1), from inner products alone:
//!
//! ```text
//! b' H b - 2 b' t + lambda sum_i c_i |b_i|       r = t - H b       r_i = h c_i sign(b_i) where b_i is not 0,   h = lambda / 2
//!                                                               |r_i| <= h c_i          elsewhere
//! ```
//!
//! Between two events b is linear in h: with A the vectors inside and s their signs, b_A moves by H_AA^-1 (c s)_A while h
//! falls by 1. An event is the next h where the residual of a vector outside reaches its bound, which lets the vector in,
//! or where a coefficient comes to zero, which puts it out. A vector within the span of those inside cannot come in, and
//! need not: its residual stays at the bound until one of them leaves.
//!
//! Invariant: the two lines above, at every event. Every few events r is computed afresh, and b is corrected by what r_A
//! is off, so nothing adds up.
//!
//! Cost of an event: m |A| for the residuals, |A|^2 for the Cholesky factor of H_AA, which grows by a row or loses one.

use crate::context::Context;
use crate::error::Result;
use crate::memory::{TryCollect, TryGrow, TryToVec, try_vec};
use crate::simd::blas::{add_rows, axpy, dot};

/// A vector whose squared distance from the span of those inside is below this share of its squared length is in it.
const SPAN: f64 = 1e-9;
/// Events between two residuals computed afresh.
const AFRESH: usize = 16;
/// Residuals that one thread brings up to date at a time.
const PIECE: usize = 1024;
/// A rate at which a residual nears its bound, as a share of the bound's own: below, it is rounding.
const STILL: f64 = 1e-12;

/// What ends a stretch of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Event {
    /// Vector i comes in with this sign.
    Enter(usize, f64),
    /// The vector at this place of those inside goes out.
    Leave(usize),
    /// h = 0.
    End,
}

/// The path at one h, and what is next.
pub(super) struct Lasso<'a> {
    quadratic: &'a [f64],
    linear: Vec<f64>,
    weights: &'a [f64],
    ctx: Context<'a>,
    /// h, and where b is now.
    half: f64,
    inside: Vec<usize>,
    signs: Vec<f64>,
    /// b of those inside, and by how much it grows as h falls.
    b: Vec<f64>,
    rates: Vec<f64>,
    factor: Triangle,
    /// r, and by how much it falls as h does, (m,).
    residual: Vec<f64>,
    falls: Vec<f64>,
    /// May not come in: inside, in the span, or waiting for h to fall.
    barred: Vec<bool>,
    spanned: Vec<usize>,
    waiting: Vec<usize>,
    next: (f64, Event),
    events: usize,
    standing: usize,
}

impl<'a> Lasso<'a> {
    /// At the lambda where the first vector comes in: H (m, m), t (m,), c (m,). A vector with c = 0 stays out.
    pub(super) fn new(
        quadratic: &'a [f64],
        linear: Vec<f64>,
        weights: &'a [f64],
        ctx: Context<'a>,
    ) -> Result<Self> {
        let m = weights.len();
        let barred: Vec<bool> =
            (0..m).map(|i| !(weights[i] > 0.0 && quadratic[i * m + i] > 0.0)).try_collect_vec()?;
        let half = (0..m).filter(|&i| !barred[i]).map(|i| linear[i].abs() / weights[i]).fold(0.0, f64::max);
        let mut lasso = Self {
            quadratic,
            weights,
            ctx,
            half,
            inside: Vec::new(),
            signs: Vec::new(),
            b: Vec::new(),
            rates: Vec::new(),
            factor: Triangle::default(),
            residual: linear.try_to_vec()?,
            falls: try_vec![0.0; m]?,
            linear,
            barred,
            spanned: Vec::new(),
            waiting: Vec::new(),
            next: (half, Event::End),
            events: 0,
            standing: 0,
        };
        lasso.next = lasso.next_event();
        Ok(lasso)
    }

    /// h of the next event, and the event.
    pub(super) fn next(&self) -> (f64, Event) {
        self.next
    }

    /// Whether a vector is inside.
    pub(super) fn holds(&self, i: usize) -> bool {
        self.inside.contains(&i)
    }

    /// Multiplications that an event takes, roughly.
    pub(super) fn work(&self) -> u64 {
        let (m, n) = (self.weights.len(), self.inside.len());
        (m * (n + 8) + 2 * n * n) as u64
    }

    /// Whether events follow one another without end at one h, which only rounding can bring about.
    pub(super) fn stands_still(&self) -> bool {
        self.standing > 4 * self.weights.len() + 100
    }

    /// The coefficients that are not zero at an h between the last event and the next one.
    pub(super) fn at(&self, half: f64) -> impl Iterator<Item = (usize, f64)> {
        let step = self.half - half;
        let values = self.b.iter().zip(&self.rates).map(move |(b, rate)| b + step * rate);
        // The one that comes to zero at the next event must not be left with rounding.
        let leaves = match self.next {
            (at, Event::Leave(place)) if at == half => Some(place),
            _ => None,
        };
        self.inside
            .iter()
            .copied()
            .zip(values)
            .enumerate()
            .filter(move |(place, (_, value))| Some(*place) != leaves && *value != 0.0)
            .map(|(_, pair)| pair)
    }

    /// Goes to the next event and through it.
    pub(super) fn advance(&mut self) -> Result<()> {
        let (half, event) = self.next;
        let step = self.half - half;
        for (b, rate) in self.b.iter_mut().zip(&self.rates) {
            *b += step * rate;
        }
        axpy(-step, &self.falls, &mut self.residual);
        self.half = half;
        if step > 0.0 {
            self.standing = 0;
            for i in self.waiting.drain(..) {
                self.barred[i] = false;
            }
        }
        self.standing += 1;
        self.events += 1;
        if self.events.is_multiple_of(AFRESH) {
            self.correct()?;
        }
        match event {
            Event::Enter(i, sign) => self.enter(i, sign)?,
            Event::Leave(place) => {
                let i = self.leave(place);
                self.barred[i] = false;
            }
            Event::End => return Ok(()),
        }
        self.direction()?;
        // A newcomer that would move against its sign was at its bound by rounding alone.
        while let Some(place) =
            (0..self.inside.len()).find(|&p| self.b[p] == 0.0 && self.rates[p] * self.signs[p] <= 0.0)
        {
            let i = self.leave(place);
            self.waiting.push(i);
            self.direction()?;
        }
        self.next = self.next_event();
        Ok(())
    }

    fn enter(&mut self, i: usize, sign: f64) -> Result<()> {
        let m = self.weights.len();
        let line = &self.quadratic[i * m..(i + 1) * m];
        let products: Vec<f64> = self.inside.iter().map(|&k| line[k]).try_collect_vec()?;
        self.barred[i] = true;
        if self.factor.grow(products, line[i])? {
            self.inside.push(i);
            self.signs.push(sign);
            self.b.push(0.0);
        } else {
            self.spanned.push(i);
        }
        Ok(())
    }

    /// Takes out the vector at a place, which stays barred.
    fn leave(&mut self, place: usize) -> usize {
        self.factor.remove(place);
        self.signs.remove(place);
        self.b.remove(place);
        for i in self.spanned.drain(..) {
            self.barred[i] = false;
        }
        self.inside.remove(place)
    }

    /// r afresh, and b corrected by what r_A is off.
    fn correct(&mut self) -> Result<()> {
        for round in 0..2 {
            let mut products = try_vec![0.0; self.weights.len()]?;
            self.times(&self.b, &mut products)?;
            for ((r, t), product) in self.residual.iter_mut().zip(&self.linear).zip(&products) {
                *r = t - product;
            }
            if round == 0 {
                let places = self.inside.iter().zip(&self.signs);
                let mut off: Vec<f64> = places
                    .map(|(&i, sign)| self.residual[i] - self.half * self.weights[i] * sign)
                    .try_collect_vec()?;
                self.factor.solve(&mut off);
                for ((b, off), sign) in self.b.iter_mut().zip(&off).zip(&self.signs) {
                    let corrected = *b + off;
                    if corrected * sign > 0.0 && *b != 0.0 {
                        *b = corrected;
                    }
                }
            }
        }
        Ok(())
    }

    /// out += H_.A v.
    fn times(&self, v: &[f64], out: &mut [f64]) -> Result<()> {
        let m = self.weights.len();
        let rows: Vec<&[f64]> =
            self.inside.iter().map(|&k| &self.quadratic[k * m..(k + 1) * m]).try_collect_vec()?;
        self.ctx.for_each_chunk(out, PIECE, |piece, out| add_rows(v, &rows, piece * PIECE, out));
        Ok(())
    }

    fn direction(&mut self) -> Result<()> {
        self.rates =
            self.inside.iter().zip(&self.signs).map(|(&i, sign)| self.weights[i] * sign).try_collect_vec()?;
        self.factor.solve(&mut self.rates);
        let mut falls = std::mem::take(&mut self.falls);
        falls.fill(0.0);
        self.times(&self.rates, &mut falls)?;
        self.falls = falls;
        Ok(())
    }

    fn next_event(&self) -> (f64, Event) {
        let (mut step, mut event) = (self.half, Event::End);
        for (place, (b, rate)) in self.b.iter().zip(&self.rates).enumerate() {
            if b * rate < 0.0 && -b / rate < step {
                (step, event) = (-b / rate, Event::Leave(place));
            }
        }
        for (i, (&r, &fall)) in self.residual.iter().zip(&self.falls).enumerate() {
            if self.barred[i] {
                continue;
            }
            let c = self.weights[i];
            for sign in [1.0, -1.0] {
                let (room, rate) = ((self.half * c - sign * r).max(0.0), c - sign * fall);
                if rate > STILL * c && room / rate < step {
                    (step, event) = (room / rate, Event::Enter(i, sign));
                }
            }
        }
        (if event == Event::End { 0.0 } else { self.half - step }, event)
    }
}

/// L of H_AA = L L', row after row.
#[derive(Default)]
struct Triangle {
    rows: Vec<Vec<f64>>,
}

impl Triangle {
    /// A row for one more vector with these inner products; false where it is in the span.
    fn grow(&mut self, mut products: Vec<f64>, own: f64) -> Result<bool> {
        self.forward(&mut products);
        let rest = own - dot(&products, &products);
        if !(rest > SPAN * own) {
            return Ok(false);
        }
        products.try_push(rest.sqrt())?;
        self.rows.push(products);
        Ok(true)
    }

    /// Without the vector at a place: rotations of neighbouring columns bring the rows below it back to a triangle.
    fn remove(&mut self, place: usize) {
        self.rows.remove(place);
        for j in place..self.rows.len() {
            let (a, b) = (self.rows[j][j], self.rows[j][j + 1]);
            let length = a.hypot(b);
            let (cosine, sine) = (a / length, b / length);
            for row in &mut self.rows[j..] {
                let (x, y) = (row[j], row[j + 1]);
                row[j] = cosine * x + sine * y;
                row[j + 1] = cosine * y - sine * x;
            }
            self.rows[j].truncate(j + 1);
        }
    }

    fn forward(&self, v: &mut [f64]) {
        for (p, row) in self.rows.iter().enumerate() {
            v[p] = (v[p] - dot(&row[..p], &v[..p])) / row[p];
        }
    }

    /// Solves L L' x = v in place.
    fn solve(&self, v: &mut [f64]) {
        self.forward(v);
        for (p, row) in self.rows.iter().enumerate().rev() {
            v[p] /= row[p];
            let (before, mine) = v.split_at_mut(p);
            axpy(-mine[0], &row[..p], before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// H = X'X of random columns, t = X'y.
    fn problem(n: usize, m: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::new(seed);
        let x: Vec<f64> = (0..n * m).map(|_| random.uniform() - 0.5).collect();
        let y: Vec<f64> = (0..n).map(|_| random.uniform() - 0.5).collect();
        let column = |i: usize| (0..n).map(move |k| k * m + i);
        let h =
            (0..m * m).map(|e| column(e / m).zip(column(e % m)).map(|(a, b)| x[a] * x[b]).sum()).collect();
        (h, (0..m).map(|i| column(i).zip(&y).map(|(a, y)| x[a] * y).sum()).collect())
    }

    fn check(h: &[f64], t: &[f64], weights: &[f64], mut events: usize) -> usize {
        let m = t.len();
        let mut lasso = Lasso::new(h, t.to_vec(), weights, Context::SEQUENTIAL).unwrap();
        let scale = t.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
        let (mut above, mut left) = (f64::INFINITY, 0);
        while events > 0 {
            let (half, event) = lasso.next();
            // At the event, and half way to it.
            let last = lasso.half;
            for at in [0.5 * (last + half), half] {
                let mut residual = t.to_vec();
                let mut signs = vec![0.0; m];
                for (i, b) in lasso.at(at) {
                    signs[i] = b.signum();
                    for (r, h) in residual.iter_mut().zip(&h[i * m..(i + 1) * m]) {
                        *r -= b * h;
                    }
                }
                for i in 0..m {
                    let bound = at * weights[i];
                    assert!(residual[i].abs() <= bound + 1e-10 * scale, "{i} beyond at {at}");
                    if signs[i] != 0.0 {
                        assert!((residual[i] - bound * signs[i]).abs() <= 1e-10 * scale, "{i} off at {at}");
                    }
                }
            }
            assert!(half <= above && half >= 0.0);
            above = half;
            left += usize::from(matches!(event, Event::Leave(_)));
            if event == Event::End {
                break;
            }
            lasso.advance().unwrap();
            assert!(!lasso.stands_still());
            events -= 1;
        }
        left
    }

    #[test]
    fn the_conditions_hold_along_the_path() {
        let mut left = 0;
        for seed in 0..6 {
            let (h, t) = problem(40, 25, seed);
            left += check(&h, &t, &[1.0; 25], 1000);
            let weights: Vec<f64> = (0..25).map(|i| 1.0 + f64::from(i % 4)).collect();
            left += check(&h, &t, &weights, 1000);
            // More vectors than dimensions: most are in the span of the others in the end.
            let (h, t) = problem(8, 25, seed);
            left += check(&h, &t, &[1.0; 25], 1000);
        }
        assert!(left > 10, "coefficients come back to zero on such paths");
    }

    #[test]
    fn copies_of_a_vector_stay_out() {
        let (h, t) = problem(30, 10, 3);
        let at = |i: usize| i % 10;
        let h2: Vec<f64> = (0..400).map(|e| h[at(e / 20) * 10 + at(e % 20)]).collect();
        let t2: Vec<f64> = (0..20).map(|i| t[at(i)]).collect();
        check(&h2, &t2, &[1.0; 20], 1000);
        let mut lasso = Lasso::new(&h2, t2, &[1.0; 20], Context::SEQUENTIAL).unwrap();
        while lasso.next().1 != Event::End {
            lasso.advance().unwrap();
        }
        assert_eq!(lasso.inside.len(), 10);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        let lasso = Lasso::new(&[1.0, 0.0, 0.0, 1.0], vec![0.0; 2], &[1.0; 2], Context::SEQUENTIAL).unwrap();
        assert_eq!(lasso.next(), (0.0, Event::End));
        let lasso = Lasso::new(&[4.0], vec![2.0], &[1.0], Context::SEQUENTIAL).unwrap();
        assert_eq!(lasso.next(), (2.0, Event::Enter(0, 1.0)));
    }
}
