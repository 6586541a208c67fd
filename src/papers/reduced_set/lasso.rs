//! The whole l1 path of one output, exact at every lambda (Efron, Hastie, Johnstone and Tibshirani, Least angle
//! regression, Annals of Statistics 32, 2004, with the lasso modification of section 3.1), from inner products alone:
//!
//! ```text
//! b' H b - 2 b' t + lambda sum_i c_i |b_i|       r = t - H b       r_i = h c_i sign(b_i) where b_i is not 0,   h = lambda / 2
//!                                                               |r_i| <= h c_i          elsewhere
//! ```
//!
//! Between two events b is linear in h: with A the active vectors and s their signs, b_A changes by H_AA^-1 (c s)_A while
//! h falls by 1. An event is the next h at which the residual of an inactive vector reaches its bound, so that the vector
//! enters, or at which a coefficient becomes zero, so that its vector leaves. A vector in the span of the active ones
//! cannot enter and need not: its residual stays at the bound until one of them leaves.
//!
//! Invariant: the two lines above, at every event. Every few events r is computed from b, and b is corrected by the error
//! of r_A, so that errors do not accumulate.
//!
//! Cost of an event: m |A| for the residuals, |A|^2 for the Cholesky factor of H_AA, which grows by a row or loses one.

use crate::context::Context;
use crate::error::Result;
use crate::linalg::growing::GrowingCholesky;
use crate::simd::blas::{add_rows, axpy};

/// Squared distance from the span of the active vectors, as a share of the squared length, below which a vector is
/// inside the span.
const MIN_RELATIVE_PIVOT: f64 = 1e-9;
/// Number of events between two exact computations of the residual.
const EVENTS_PER_CORRECTION: usize = 16;
/// Number of residuals that a task updates.
const RESIDUALS_PER_TASK: usize = 1024;
/// Rate at which a residual approaches its bound, as a share of the bound's own rate, below which it is rounding error.
const MIN_RELATIVE_RATE: f64 = 1e-12;

/// The event that ends a linear piece of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Event {
    /// Vector i enters with this sign.
    Enter(usize, f64),
    /// The active vector at this place leaves.
    Leave(usize),
    /// h = 0.
    End,
}

/// The path at one h, and its next event.
pub(super) struct Lasso<'a> {
    quadratic: &'a [f64],
    linear: Vec<f64>,
    weights: &'a [f64],
    ctx: Context<'a>,
    /// h of the last event.
    half: f64,
    /// The active vectors A.
    active: Vec<usize>,
    signs: Vec<f64>,
    /// b_A, and its growth as h falls by 1.
    b: Vec<f64>,
    rates: Vec<f64>,
    factor: GrowingCholesky,
    /// r, and its fall as h falls by 1, (m,).
    residual: Vec<f64>,
    falls: Vec<f64>,
    /// Vectors that cannot enter: active, dependent, delayed, or without length or weight.
    excluded: Vec<bool>,
    /// Vectors in the span of the active ones.
    dependent: Vec<usize>,
    /// Vectors that may enter once h has fallen.
    delayed: Vec<usize>,
    next: (f64, Event),
    n_events: usize,
    /// Number of events at the current h.
    n_stationary: usize,
}

impl<'a> Lasso<'a> {
    /// Starts at the lambda at which the first vector enters: H (m, m), t (m,), c (m,). A vector with c = 0 never enters.
    pub(super) fn new(quadratic: &'a [f64], linear: Vec<f64>, weights: &'a [f64], ctx: Context<'a>) -> Self {
        let m = weights.len();
        let excluded: Vec<bool> = (0..m).map(|i| !(weights[i] > 0.0 && quadratic[i * m + i] > 0.0)).collect();
        let half = (0..m).filter(|&i| !excluded[i]).map(|i| linear[i].abs() / weights[i]).fold(0.0, f64::max);
        let mut lasso = Self {
            quadratic,
            weights,
            ctx,
            half,
            active: Vec::new(),
            signs: Vec::new(),
            b: Vec::new(),
            rates: Vec::new(),
            factor: GrowingCholesky::default(),
            residual: linear.clone(),
            falls: vec![0.0; m],
            linear,
            excluded,
            dependent: Vec::new(),
            delayed: Vec::new(),
            next: (half, Event::End),
            n_events: 0,
            n_stationary: 0,
        };
        lasso.next = lasso.next_event();
        lasso
    }

    /// Returns h of the next event, and the event.
    pub(super) fn next(&self) -> (f64, Event) {
        self.next
    }

    /// Returns whether a vector is active.
    pub(super) fn is_active(&self, i: usize) -> bool {
        self.active.contains(&i)
    }

    /// Returns the approximate number of multiplications of an event.
    pub(super) fn work(&self) -> u64 {
        let (m, n) = (self.weights.len(), self.active.len());
        (m * (n + 8) + 2 * n * n) as u64
    }

    /// Returns whether events repeat endlessly at one h, which only rounding can cause.
    pub(super) fn is_cycling(&self) -> bool {
        self.n_stationary > 4 * self.weights.len() + 100
    }

    /// Returns the nonzero coefficients at an h between the last event and the next one.
    pub(super) fn at(&self, half: f64) -> impl Iterator<Item = (usize, f64)> {
        let step = self.half - half;
        let values = self.b.iter().zip(&self.rates).map(move |(b, rate)| b + step * rate);
        // A coefficient that becomes zero at the next event must not keep a rounding error.
        let leaves = match self.next {
            (at, Event::Leave(place)) if at == half => Some(place),
            _ => None,
        };
        self.active
            .iter()
            .copied()
            .zip(values)
            .enumerate()
            .filter(move |(place, (_, value))| Some(*place) != leaves && *value != 0.0)
            .map(|(_, pair)| pair)
    }

    /// Advances to the next event and applies it.
    pub(super) fn advance(&mut self) -> Result<()> {
        let (half, event) = self.next;
        let step = self.half - half;
        for (b, rate) in self.b.iter_mut().zip(&self.rates) {
            *b += step * rate;
        }
        axpy(-step, &self.falls, &mut self.residual);
        self.half = half;
        if step > 0.0 {
            self.n_stationary = 0;
            for i in self.delayed.drain(..) {
                self.excluded[i] = false;
            }
        }
        self.n_stationary += 1;
        self.n_events += 1;
        if self.n_events.is_multiple_of(EVENTS_PER_CORRECTION) {
            self.correct();
        }
        match event {
            Event::Enter(i, sign) => self.enter(i, sign)?,
            Event::Leave(place) => {
                let i = self.leave(place);
                self.excluded[i] = false;
            }
            Event::End => return Ok(()),
        }
        self.direction();
        // An entered vector whose coefficient would grow against its sign was at its bound by rounding alone.
        while let Some(place) =
            (0..self.active.len()).find(|&p| self.b[p] == 0.0 && self.rates[p] * self.signs[p] <= 0.0)
        {
            let i = self.leave(place);
            self.delayed.push(i);
            self.direction();
        }
        self.next = self.next_event();
        Ok(())
    }

    /// Adds a vector to the active ones, unless it depends on them.
    fn enter(&mut self, i: usize, sign: f64) -> Result<()> {
        let m = self.weights.len();
        let line = &self.quadratic[i * m..(i + 1) * m];
        let products: Vec<f64> = self.active.iter().map(|&k| line[k]).collect();
        self.excluded[i] = true;
        if self.factor.append(&products, line[i], MIN_RELATIVE_PIVOT)? {
            self.active.push(i);
            self.signs.push(sign);
            self.b.push(0.0);
        } else {
            self.dependent.push(i);
        }
        Ok(())
    }

    /// Removes the active vector at a place, which stays excluded.
    fn leave(&mut self, place: usize) -> usize {
        self.factor.remove(place);
        self.signs.remove(place);
        self.b.remove(place);
        for i in self.dependent.drain(..) {
            self.excluded[i] = false;
        }
        self.active.remove(place)
    }

    /// Computes r from b, and corrects b by the error of r_A.
    fn correct(&mut self) {
        for round in 0..2 {
            let mut products = vec![0.0; self.weights.len()];
            self.times(&self.b, &mut products);
            for ((r, t), product) in self.residual.iter_mut().zip(&self.linear).zip(&products) {
                *r = t - product;
            }
            if round == 0 {
                let places = self.active.iter().zip(&self.signs);
                let mut off: Vec<f64> =
                    places.map(|(&i, sign)| self.residual[i] - self.half * self.weights[i] * sign).collect();
                self.factor.solve(&mut off);
                for ((b, off), sign) in self.b.iter_mut().zip(&off).zip(&self.signs) {
                    let corrected = *b + off;
                    if corrected * sign > 0.0 && *b != 0.0 {
                        *b = corrected;
                    }
                }
            }
        }
    }

    /// Adds H_.A v to `out`.
    fn times(&self, v: &[f64], out: &mut [f64]) {
        let m = self.weights.len();
        let rows: Vec<&[f64]> = self.active.iter().map(|&k| &self.quadratic[k * m..(k + 1) * m]).collect();
        self.ctx.for_each_chunk(out, RESIDUALS_PER_TASK, |task, out| {
            add_rows(v, &rows, task * RESIDUALS_PER_TASK, out);
        });
    }

    /// Computes the rates of b and r as h falls.
    fn direction(&mut self) {
        self.rates = self.active.iter().zip(&self.signs).map(|(&i, sign)| self.weights[i] * sign).collect();
        self.factor.solve(&mut self.rates);
        let mut falls = std::mem::take(&mut self.falls);
        falls.fill(0.0);
        self.times(&self.rates, &mut falls);
        self.falls = falls;
    }

    /// Finds the event at the largest h below the current one.
    fn next_event(&self) -> (f64, Event) {
        let (mut step, mut event) = (self.half, Event::End);
        for (place, (b, rate)) in self.b.iter().zip(&self.rates).enumerate() {
            if b * rate < 0.0 && -b / rate < step {
                (step, event) = (-b / rate, Event::Leave(place));
            }
        }
        for (i, (&r, &fall)) in self.residual.iter().zip(&self.falls).enumerate() {
            if self.excluded[i] {
                continue;
            }
            let c = self.weights[i];
            for sign in [1.0, -1.0] {
                let (gap, rate) = ((self.half * c - sign * r).max(0.0), c - sign * fall);
                if rate > MIN_RELATIVE_RATE * c && gap / rate < step {
                    (step, event) = (gap / rate, Event::Enter(i, sign));
                }
            }
        }
        (if event == Event::End { 0.0 } else { self.half - step }, event)
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
        let mut lasso = Lasso::new(h, t.to_vec(), weights, Context::SEQUENTIAL);
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
            assert!(!lasso.is_cycling());
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
        let mut lasso = Lasso::new(&h2, t2, &[1.0; 20], Context::SEQUENTIAL);
        while lasso.next().1 != Event::End {
            lasso.advance().unwrap();
        }
        assert_eq!(lasso.active.len(), 10);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        let lasso = Lasso::new(&[1.0, 0.0, 0.0, 1.0], vec![0.0; 2], &[1.0; 2], Context::SEQUENTIAL);
        assert_eq!(lasso.next(), (0.0, Event::End));
        let lasso = Lasso::new(&[4.0], vec![2.0], &[1.0], Context::SEQUENTIAL);
        assert_eq!(lasso.next(), (2.0, Event::Enter(0, 1.0)));
    }
}
