//! Common subsequences of two strings, weighted by their gaps: the dynamic program of Lodhi and others (2002).
//!
//! For each number of symbols p the table A_p(i, j) is the weight of the common subsequences of p symbols in the first i symbols
//! of s and the first j of t, discounted by `decay` for each symbol after the last match:
//!
//! ```text
//! B_p(i, j) = decay B_p(i, j-1) + [s_i = t_j] A_{p-1}(i-1, j-1)      A_0 = 1
//! A_p(i, j) = decay A_p(i-1, j) + B_p(i, j)
//! ```
//!
//! and the kernel of length n is the sum of A_{n-1}(i-1, j-1) over all matches. These are K' and K'' of the paper without
//! the factor decay^2 of each match, which is the same for all strings. A string of at least n symbols then has a value of at
//! least 1 with itself, so that values below the smallest double are zero after the normalization.
//!
//! The cells of an antidiagonal i + j = d depend only on the two antidiagonals before, so they are the lanes, as in
//! [`super::alignment`].

use super::vectorized;
use std::ops::Range;

/// Two strings.
#[derive(Clone, Copy)]
pub(crate) struct Strings<'a> {
    /// The first string, and the second in reversed order.
    pub(crate) ascending: &'a [i64],
    pub(crate) descending: &'a [i64],
    /// The discount of a symbol in a gap.
    pub(crate) decay: f64,
}

/// The antidiagonals of the tables.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// A_p of three antidiagonals, the one of d at d % 3, and B_p of the last one, for p = 1, 2, ...; indexed by i from 0.
    levels: Vec<[Vec<f64>; 4]>,
    /// Sums over the matches of each symbol of the first string.
    sums: Vec<f64>,
}

impl Tables {
    /// Makes the tables of subsequences of `length` symbols zero.
    pub(crate) fn start(&mut self, strings: &Strings<'_>, length: usize) {
        let cells = strings.ascending.len() + 1;
        self.levels.resize_with(length - 1, Default::default);
        for table in self.levels.iter_mut().flatten().chain([&mut self.sums]) {
            table.clear();
            table.resize(cells, 0.0);
        }
    }

    /// Computes the antidiagonals of a range, which follow those computed before; the first is 2.
    pub(crate) fn advance(&mut self, strings: &Strings<'_>, range: Range<usize>) {
        let (levels, sums) = (&mut *self.levels, &mut *self.sums);
        vectorized!([] (strings: &Strings<'_>, levels: &mut [[Vec<f64>; 4]], sums: &mut [f64], range: Range<usize>) {
            for d in range {
                diagonal(strings, levels, sums, d);
            }
        });
    }

    /// Returns the sum over all matches.
    pub(crate) fn sum(&self) -> f64 {
        self.sums.iter().sum()
    }
}

/// Computes the antidiagonal d of all tables.
#[inline(always)]
fn diagonal(strings: &Strings<'_>, levels: &mut [[Vec<f64>; 4]], sums: &mut [f64], d: usize) {
    let (n, m) = (strings.ascending.len(), strings.descending.len());
    let (first, last) = (d.saturating_sub(m).max(1), n.min(d - 1));
    let symbols = &strings.ascending[first - 1..last];
    let others = &strings.descending[m + first - d..][..symbols.len()];
    // Below the first table are ones, and above the last one is the sum.
    let mut below: Option<&[f64]> = None;
    for [a, b, c, discounted] in levels {
        let (before, previous, current) = match d % 3 {
            0 => (b, c, a),
            1 => (c, a, b),
            _ => (a, b, c),
        };
        let (previous, current) = (&previous[first - 1..last], &mut current[first..=last]);
        update(strings, symbols, others, below, (previous, &mut discounted[first..=last], current));
        below = Some(&before[first - 1..last]);
    }
    let sums = &mut sums[first..=last];
    match below {
        None => add_matches(sums, symbols, others, |_| 1.0),
        Some(below) => {
            let below = &below[..symbols.len()];
            add_matches(sums, symbols, others, |k| below[k]);
        }
    }
}

/// Updates B_p and A_p.
#[inline(always)]
fn update(
    strings: &Strings<'_>,
    symbols: &[i64],
    others: &[i64],
    below: Option<&[f64]>,
    (previous, discounted, current): (&[f64], &mut [f64], &mut [f64]),
) {
    let decay = strings.decay;
    match below {
        None => discount(discounted, decay, symbols, others, |_| 1.0),
        Some(below) => {
            let below = &below[..symbols.len()];
            discount(discounted, decay, symbols, others, |k| below[k]);
        }
    }
    for ((current, previous), discounted) in current.iter_mut().zip(previous).zip(&*discounted) {
        *current = decay * previous + discounted;
    }
}

#[inline(always)]
fn discount(values: &mut [f64], decay: f64, symbols: &[i64], others: &[i64], below: impl Fn(usize) -> f64) {
    for (k, ((value, symbol), other)) in values.iter_mut().zip(symbols).zip(others).enumerate() {
        let matched = if symbol == other { below(k) } else { 0.0 };
        *value = decay * *value + matched;
    }
}

#[inline(always)]
fn add_matches(sums: &mut [f64], symbols: &[i64], others: &[i64], below: impl Fn(usize) -> f64) {
    for (k, ((sum, symbol), other)) in sums.iter_mut().zip(symbols).zip(others).enumerate() {
        *sum += if symbol == other { below(k) } else { 0.0 };
    }
}
