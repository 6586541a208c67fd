//! An orthonormal basis Q of the chosen columns, D_S = Q L', grown by one column at a time.
//!
//! Classical Gram and Schmidt, twice where rounding left too much of the span in the rest: so Q stays orthogonal whatever
//! the condition of D_S, and residuals are orthogonal to the chosen columns. The products Q'd of a column are known before
//! from its being a candidate; taking Q Q'd away and looking at what is left of the span is one pass over Q, by stretches
//! of rows that stay in the cache. The validation rows get the same combinations.
//!
//! Cost of a column 2 n l multiply-adds for n columns before it, 3 n l where it is done twice.

use crate::control::Par;
use crate::error::Result;
use crate::memory::more_room;
use crate::simd::blas::{add_rows, axpy, dot};
use crate::simd::inner::row_products;
use ndarray::Array2;

/// A function whose squared distance from the span is below this share of its squared norm counts as inside it.
pub(super) const INSIDE: f64 = 1e-10;
/// Numbers of Q that stay in a core's cache: 512 kB.
const CACHED: usize = 1 << 16;
/// Fewest and most numbers of a vector in a stretch.
const STRETCH: (usize, usize) = (128, 4096);

/// Share of the squared norm of a rest that may lie in the span.
const AGAIN: f64 = 1e-28;

/// Q as n vectors of l numbers, L as lines, and the basis functions on the validation rows.
pub(super) struct Basis {
    rows: usize,
    validation_rows: usize,
    vectors: Vec<f64>,
    validation: Vec<f64>,
    lines: Vec<Vec<f64>>,
}

/// A column outside the span: `direction` is its normalised rest.
pub(super) struct Outside {
    pub(super) line: Vec<f64>,
    pub(super) pivot: f64,
    pub(super) direction: Vec<f64>,
}

impl Basis {
    pub(super) fn new(rows: usize, validation_rows: usize) -> Self {
        Self { rows, validation_rows, vectors: Vec::new(), validation: Vec::new(), lines: Vec::new() }
    }

    /// Number of vectors.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The n vectors, one after the other.
    pub(super) fn vectors(&self) -> &[f64] {
        &self.vectors
    }

    fn stretch(&self) -> usize {
        let (least, most) = STRETCH;
        (CACHED / self.len().max(1)).next_multiple_of(64).clamp(least, most)
    }

    /// Q'v.
    pub(super) fn products(&self, v: &[f64], par: Par) -> Vec<f64> {
        par.map(self.len(), |j| dot(&self.vectors[j * self.rows..(j + 1) * self.rows], v))
    }

    /// out += Q c
    pub(super) fn add(&self, c: &[f64], out: &mut [f64], par: Par) {
        let lines: Vec<&[f64]> = self.vectors.chunks_exact(self.rows).take(c.len()).collect();
        let stretch = self.stretch();
        par.for_each_chunk(out, stretch, |chunk, out| add_rows(c, &lines, chunk * stretch, out));
    }

    /// out += Q c, what `then` makes of it, and Q'out, in one pass over Q. `then` gets the number of a stretch's first row.
    pub(super) fn there_and_back(
        &self,
        c: &[f64],
        out: &mut [f64],
        then: impl Fn(usize, &mut [f64]) + Sync + Send,
        par: Par,
    ) -> Vec<f64> {
        let (rows, stretch) = (self.rows, self.stretch());
        let lines: Vec<&[f64]> = self.vectors.chunks_exact(rows).collect();
        let start: &[f64] = out;
        let done = par.map(rows.div_ceil(stretch), |chunk| {
            let (from, to) = (chunk * stretch, rows.min((chunk + 1) * stretch));
            let mut part = start[from..to].to_vec();
            add_rows(c, &lines, from, &mut part);
            then(from, &mut part);
            let lines: Vec<&[f64]> = lines.iter().map(|line| &line[from..to]).collect();
            let mut products = vec![0.0; lines.len()];
            row_products(&lines, &part, to - from, &mut products);
            (part, products)
        });
        let mut products = vec![0.0; self.len()];
        for ((part, some), out) in done.iter().zip(out.chunks_mut(stretch)) {
            out.copy_from_slice(part);
            axpy(1.0, some, &mut products);
        }
        products
    }

    /// Splits a column with products `line` = Q'd, which may be inexact; `None` where its squared distance from the span is
    /// at most `inside` of its squared norm.
    pub(super) fn split(
        &self,
        mut column: Vec<f64>,
        mut line: Vec<f64>,
        inside: f64,
        par: Par,
    ) -> Option<Outside> {
        let own = dot(&column, &column);
        let minus = |c: &[f64]| c.iter().map(|v| -v).collect::<Vec<_>>();
        let left = self.there_and_back(&minus(&line), &mut column, |_, _| {}, par);
        let mut squared = dot(&column, &column);
        if dot(&left, &left) > AGAIN * squared {
            self.add(&minus(&left), &mut column, par);
            axpy(1.0, &left, &mut line);
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

    /// Takes a split column; `validation` holds its function on the validation rows.
    pub(super) fn push(&mut self, outside: Outside, mut validation: Vec<f64>) -> Result<()> {
        let Outside { mut line, pivot, direction } = outside;
        let n = self.validation_rows;
        for (j, &c) in line.iter().enumerate() {
            axpy(-c, &self.validation[j * n..(j + 1) * n], &mut validation);
        }
        more_room("the basis of a pursuit", &mut self.vectors, direction.len())?;
        more_room("the basis of a pursuit", &mut self.validation, validation.len())?;
        self.validation.extend(validation.iter().map(|v| v / pivot));
        self.vectors.extend(direction);
        line.push(pivot);
        self.lines.push(line);
        Ok(())
    }

    /// Forgets the last column.
    pub(super) fn pop(&mut self) {
        self.lines.pop();
        self.vectors.truncate(self.lines.len() * self.rows);
        self.validation.truncate(self.lines.len() * self.validation_rows);
    }

    /// The last vector, and the last basis function on the validation rows.
    pub(super) fn last(&self) -> (&[f64], &[f64]) {
        let n = self.len().saturating_sub(1);
        (&self.vectors[n * self.rows..], &self.validation[n * self.validation_rows..])
    }

    /// L, (n, n).
    pub(super) fn factor(&self) -> Array2<f64> {
        let n = self.len();
        Array2::from_shape_fn((n, n), |(i, j)| self.lines[i].get(j).copied().unwrap_or(0.0))
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
            let line = basis.products(column, Par::Sequential);
            if let Some(outside) = basis.split(column.clone(), line, 1e-20, Par::Sequential) {
                basis.push(outside, column[..3].to_vec()).unwrap();
                taken.push(column.clone());
            }
        }
        assert!(basis.len() >= 6);
        for j in 0..basis.len() {
            let products = basis.products(&basis.vectors()[j * l..(j + 1) * l], Par::Sequential);
            for (k, v) in products.iter().enumerate() {
                assert!((v - f64::from(u8::from(k == j))).abs() < 1e-14);
            }
            // Validation rows get the same combinations.
            assert!((basis.validation[j * 3] - basis.vectors[j * l]).abs() < 1e-3);
        }
        let factor = basis.factor();
        for (t, column) in taken.iter().enumerate() {
            let mut again = vec![0.0; l];
            basis.add(&factor.row(t).to_vec(), &mut again, Par::Sequential);
            assert!(again.iter().zip(column).all(|(a, b)| (a - b).abs() < 1e-13));
        }
        // Products that are known to six digits do.
        let line: Vec<f64> =
            basis.products(&taken[0], Par::Sequential).iter().map(|v| v * (1.0 + 1e-6)).collect();
        assert!(basis.split(taken[0].clone(), line, 1e-10, Par::Sequential).is_none());
    }
}
