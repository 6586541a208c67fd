//! The Cholesky factor of a symmetric matrix that gains and loses rows: A = L L', kept row by row.
//!
//! Appending a row of A takes one forward substitution. After a row is removed, Givens rotations of neighboring columns
//! restore the triangle (Golub and Van Loan 2013, 6.5.4).
//!
//! Invariant: L L' is the matrix of the rows present; a row, once appended, changes only when one before it is removed.
//!
//! Cost, with m rows: m^2 / 2 multiply-adds for an appended row and for each substitution, 2 (m - k)^2 for removing row k;
//! m^2 / 2 numbers.

use super::cholesky;
use crate::error::Result;
use crate::memory::try_with_capacity;
use crate::simd::blas::dot;

/// Purpose of the memory, for error messages.
const FACTOR: &str = "a Cholesky factor";

/// The lower triangle L of A = L L'.
#[derive(Default)]
pub(crate) struct GrowingCholesky {
    /// Row k has k + 1 entries, the diagonal last.
    rows: Vec<Vec<f64>>,
}

impl GrowingCholesky {
    /// Appends a row of A: its entries against the present rows, and its diagonal entry.
    ///
    /// Returns false and changes nothing if the new squared pivot is at most `min_pivot` times the diagonal entry: the row
    /// then depends linearly on the others, or A is not positive definite.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn append(&mut self, entries: &[f64], diagonal: f64, min_pivot: f64) -> Result<bool> {
        let mut row = try_with_capacity(FACTOR, entries.len() + 1)?;
        row.extend_from_slice(entries);
        self.substitute_forward(&mut row);
        let pivot = diagonal - dot(&row, &row);
        let is_independent = pivot > min_pivot * diagonal;
        if is_independent {
            row.push(pivot.sqrt());
            self.rows.push(row);
        }
        Ok(is_independent)
    }

    /// Removes row and column k of A; later rows move up by one.
    pub(crate) fn remove(&mut self, k: usize) {
        self.rows.remove(k);
        // Row i now has one entry to the right of the diagonal.
        for i in k..self.rows.len() {
            let (a, b) = (self.rows[i][i], self.rows[i][i + 1]);
            // The same on every platform, which that of C libraries is not.
            let length = libm::hypot(a, b);
            let (cosine, sine) = (a / length, b / length);
            for row in &mut self.rows[i..] {
                let (x, y) = (row[i], row[i + 1]);
                row[i] = cosine * x + sine * y;
                row[i + 1] = cosine * y - sine * x;
            }
            self.rows[i].truncate(i + 1);
        }
    }

    /// Solves L x = b in place.
    pub(crate) fn substitute_forward(&self, b: &mut [f64]) {
        cholesky::substitute_forward(|k| &self.rows[k], &mut b[..self.len()]);
    }

    /// Solves L' x = b in place.
    pub(crate) fn substitute_backward(&self, b: &mut [f64]) {
        cholesky::substitute_backward(|k| &self.rows[k], &mut b[..self.len()]);
    }

    /// Solves L L' x = b in place.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        self.substitute_forward(b);
        self.substitute_backward(b);
    }

    /// Returns the factor with the given rows, row k of k + 1 entries.
    pub(crate) fn from_rows(rows: Vec<Vec<f64>>) -> Self {
        debug_assert!(rows.iter().enumerate().all(|(k, row)| row.len() == k + 1));
        Self { rows }
    }

    pub(crate) fn into_rows(self) -> Vec<Vec<f64>> {
        self.rows
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Appends a row whose entries have been substituted: `row` is L^-1 a, and `pivot` the square of its diagonal entry.
    pub(crate) fn append_substituted(&mut self, row: &[f64], pivot: f64) {
        debug_assert_eq!(row.len(), self.len());
        let mut appended = Vec::with_capacity(row.len() + 1);
        appended.extend_from_slice(row);
        appended.push(pivot.sqrt());
        self.rows.push(appended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_factor_is_that_of_the_rows_present(n in 1..40_usize, seed in 0..1000_u64) {
            let mut random = Random::new(seed);
            let x: Vec<[f64; 3]> = (0..n).map(|_| std::array::from_fn(|_| random.normal())).collect();
            let entry = |i: usize, j: usize| {
                let squared: f64 = x[i].iter().zip(&x[j]).map(|(a, b)| (a - b).powi(2)).sum();
                (-squared).exp() + if i == j { 1e-3 } else { 0.0 }
            };
            let (mut factor, mut present) = (GrowingCholesky::default(), Vec::new());
            for i in 0..n {
                let entries: Vec<f64> = present.iter().map(|&j| entry(i, j)).collect();
                prop_assert!(factor.append(&entries, entry(i, i), 0.0).unwrap());
                present.push(i);
                if random.uniform() < 0.4 {
                    let k = (random.uniform() * present.len() as f64) as usize;
                    factor.remove(k);
                    present.remove(k);
                }
            }
            prop_assert_eq!(factor.len(), present.len());
            let expected: Vec<f64> = present.iter().map(|_| random.normal()).collect();
            let product = |i: usize| present.iter().zip(&expected).map(|(&j, w)| entry(i, j) * w).sum();
            let mut b: Vec<f64> = present.iter().map(|&i| product(i)).collect();
            factor.solve(&mut b);
            prop_assert!(b.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-8), "{b:?} {expected:?}");
            let rows = factor.into_rows();
            let mut again = GrowingCholesky::default();
            for row in &rows {
                let (diagonal, before) = row.split_last().unwrap();
                again.append_substituted(before, diagonal * diagonal);
            }
            let mut c: Vec<f64> = present.iter().map(|&i| product(i)).collect();
            again.solve(&mut c);
            prop_assert!(b.iter().zip(&c).all(|(b, c)| (b - c).abs() < 1e-8), "{b:?} {c:?}");
        }
    }

    #[test]
    fn a_dependent_row_is_refused() {
        let mut factor = GrowingCholesky::from_rows(vec![vec![2.0]]);
        assert!(!factor.append(&[4.0], 4.0, 0.0).unwrap());
        assert!(!factor.append(&[2.0], 4.0, 0.8).unwrap());
        assert!(!factor.append(&[f64::NAN], 4.0, 0.0).unwrap());
        assert!(factor.append(&[2.0], 4.0, 0.0).unwrap());
        let mut b = [8.0, 10.0];
        factor.solve(&mut b);
        assert!((b[0] - 1.0).abs() < 1e-12 && (b[1] - 2.0).abs() < 1e-12);
    }
}
