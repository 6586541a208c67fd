//! An orthonormal basis Q of the chosen columns, D_S = Q L', grown by one column at a time.
//!
//! Classical Gram and Schmidt, twice where little is left of a column: the second pass takes away what rounding left of the
//! first, so that Q stays orthogonal whatever the condition of D_S, and residuals are orthogonal to the chosen columns.
//! The same combinations of other rows (the validation rows) ride along.
//!
//! Cost of a column 4 n l multiply-adds for n columns before it.

use crate::control::Par;
use crate::simd::blas::{axpy, dot};

/// Elements of a vector that a task updates.
const CHUNK: usize = 4096;

/// Share of a squared norm below which what is left is made orthogonal again.
const AGAIN: f64 = 0.01;

/// Q as n vectors of l numbers, L as lines, and the basis functions on further rows.
pub(super) struct Basis {
    rows: usize,
    others: usize,
    vectors: Vec<f64>,
    riders: Vec<f64>,
    lines: Vec<Vec<f64>>,
}

/// A column outside the span: `direction` is its normalised rest.
pub(super) struct Outside {
    pub(super) line: Vec<f64>,
    pub(super) pivot: f64,
    pub(super) direction: Vec<f64>,
}

impl Basis {
    pub(super) fn new(rows: usize, others: usize) -> Self {
        Self { rows, others, vectors: Vec::new(), riders: Vec::new(), lines: Vec::new() }
    }

    /// Numbers of a vector.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of vectors.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The n vectors, one after the other.
    pub(super) fn vectors(&self) -> &[f64] {
        &self.vectors
    }

    /// Q'v.
    pub(super) fn products(&self, v: &[f64], par: Par) -> Vec<f64> {
        par.map(self.len(), |j| dot(&self.vectors[j * self.rows..(j + 1) * self.rows], v))
    }

    /// out += Q c
    pub(super) fn add(&self, c: &[f64], out: &mut [f64], par: Par) {
        let (vectors, rows) = (&self.vectors, self.rows);
        par.for_each_chunk(out, CHUNK, |chunk, out| {
            let from = chunk * CHUNK;
            for (j, &c) in c.iter().enumerate() {
                axpy(c, &vectors[j * rows + from..j * rows + from + out.len()], out);
            }
        });
    }

    /// Splits a column; `None` where its squared distance from the span is at most `inside` of its squared norm.
    pub(super) fn split(&self, mut column: Vec<f64>, inside: f64, par: Par) -> Option<Outside> {
        let own = dot(&column, &column);
        let mut line = vec![0.0; self.len()];
        let mut squared = own;
        for pass in 0..2 {
            // What rounding leaves of a first pass matters where most of the column is gone.
            if pass == 1 && squared > AGAIN * own {
                break;
            }
            let mut part = self.products(&column, par);
            axpy(1.0, &part, &mut line);
            for v in &mut part {
                *v = -*v;
            }
            self.add(&part, &mut column, par);
            squared = dot(&column, &column);
        }
        if !(squared > inside * own) {
            return None;
        }
        let pivot = squared.sqrt();
        for v in &mut column {
            *v /= pivot;
        }
        Some(Outside { line, pivot, direction: column })
    }

    /// Takes a split column; `rider` holds its function on the further rows.
    pub(super) fn push(&mut self, outside: Outside, mut rider: Vec<f64>) {
        let Outside { mut line, pivot, direction } = outside;
        for (j, &c) in line.iter().enumerate() {
            axpy(-c, &self.riders[j * self.others..(j + 1) * self.others], &mut rider);
        }
        for v in &mut rider {
            *v /= pivot;
        }
        self.riders.extend(rider);
        self.vectors.extend(direction);
        line.push(pivot);
        self.lines.push(line);
    }

    /// Forgets the last column.
    pub(super) fn pop(&mut self) {
        self.lines.pop();
        self.vectors.truncate(self.lines.len() * self.rows);
        self.riders.truncate(self.lines.len() * self.others);
    }

    /// The last vector, and the last basis function on the further rows.
    pub(super) fn last(&self) -> (&[f64], &[f64]) {
        let n = self.len().saturating_sub(1);
        (&self.vectors[n * self.rows..], &self.riders[n * self.others..])
    }

    /// L, (n, n) row-major.
    pub(super) fn factor(&self) -> Vec<f64> {
        let n = self.len();
        let mut factor = vec![0.0; n * n];
        for (to, line) in factor.chunks_exact_mut(n.max(1)).zip(&self.lines) {
            to[..line.len()].copy_from_slice(line);
        }
        factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_orthonormal_on_columns_that_are_almost_equal() {
        let (l, n) = (60, 12);
        let mut basis = Basis::new(l, 3);
        let columns: Vec<Vec<f64>> = (0..n)
            .map(|j| (0..l).map(|i| (-0.001 * (i as f64 - f64::from(j)).powi(2)).exp()).collect())
            .collect();
        let mut taken = Vec::new();
        for column in &columns {
            if let Some(outside) = basis.split(column.clone(), 1e-20, Par::Sequential) {
                basis.push(outside, column[..3].to_vec());
                taken.push(column.clone());
            }
        }
        assert!(basis.len() >= 6);
        for j in 0..basis.len() {
            let products = basis.products(&basis.vectors()[j * l..(j + 1) * l], Par::Sequential);
            for (k, v) in products.iter().enumerate() {
                assert!((v - f64::from(u8::from(k == j))).abs() < 1e-14);
            }
            // The riders are the same rows of the same combinations.
            assert!((basis.riders[j * 3] - basis.vectors[j * l]).abs() < 1e-3);
        }
        let factor = basis.factor();
        for (t, column) in taken.iter().enumerate() {
            let mut again = vec![0.0; l];
            basis.add(&factor[t * basis.len()..(t + 1) * basis.len()], &mut again, Par::Sequential);
            assert!(again.iter().zip(column).all(|(a, b)| (a - b).abs() < 1e-13));
        }
        assert!(basis.split(taken[0].clone(), 1e-10, Par::Sequential).is_none());
    }
}
