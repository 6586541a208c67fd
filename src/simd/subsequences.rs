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
    /// A_0.
    ones: Vec<f64>,
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
        self.ones.resize(cells, 1.0);
    }

    /// Computes the antidiagonals of a range, which follow those computed before; the first is 2.
    pub(crate) fn advance(&mut self, strings: &Strings<'_>, range: Range<usize>) {
        let tables = self;
        vectorized!([] (tables: &mut Tables, strings: &Strings<'_>, range: Range<usize>) {
            for d in range {
                tables.compute(strings, d);
            }
        });
    }

    /// Computes the antidiagonal d of all tables.
    #[inline(always)]
    fn compute(&mut self, strings: &Strings<'_>, d: usize) {
        let (n, m) = (strings.ascending.len(), strings.descending.len());
        let (first, last) = (d.saturating_sub(m).max(1), n.min(d - 1));
        let cells = first..last + 1;
        // The cells (i-1, ...) before those of the antidiagonal.
        let shifted = first - 1..last;
        let symbols = &strings.ascending[shifted.clone()];
        let others = &strings.descending[m + first - d..][..symbols.len()];
        let mut below = &self.ones[shifted.clone()];
        for [a, b, c, discounted] in &mut self.levels {
            let (before, previous, current) = match d % 3 {
                0 => (b, c, a),
                1 => (c, a, b),
                _ => (a, b, c),
            };
            let tables = (&mut discounted[cells.clone()], &mut current[cells.clone()]);
            update(strings.decay, (symbols, others), (below, &previous[shifted.clone()]), tables);
            below = &before[shifted.clone()];
        }
        let matches = symbols.iter().zip(others).zip(below);
        for (sum, ((symbol, other), below)) in self.sums[cells].iter_mut().zip(matches) {
            *sum += if symbol == other { *below } else { 0.0 };
        }
    }

    /// Returns the sum over all matches.
    pub(crate) fn sum(&self) -> f64 {
        self.sums.iter().sum()
    }
}

/// Updates B_p, `discounted`, and A_p, `current`, from A_{p-1}, `below`, and A_p of the antidiagonal before.
#[inline(always)]
fn update(
    decay: f64,
    (symbols, others): (&[i64], &[i64]),
    (below, previous): (&[f64], &[f64]),
    (discounted, current): (&mut [f64], &mut [f64]),
) {
    let matches = symbols.iter().zip(others).zip(below);
    let tables = discounted.iter_mut().zip(current).zip(previous);
    for (((discounted, current), previous), ((symbol, other), below)) in tables.zip(matches) {
        let matched = if symbol == other { *below } else { 0.0 };
        *discounted = decay * *discounted + matched;
        *current = decay * previous + *discounted;
    }
}
