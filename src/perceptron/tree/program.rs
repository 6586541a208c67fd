//! The program of a selection (section 3.2): min 1/2 p'Qp - w'p over p in {0, 1}, sum p <= C, or relaxed over 0 <= p <= 1;
//! and the products of columns of kernel values that its matrix, and those of the fits in leaves, consist of.

use crate::context::WorkCounter;
use crate::error::Result;
use crate::memory::{TryCollect, try_zero_matrix};
use crate::simd::blas::dot;
use ndarray::{Array2, ArrayView2};

/// A program of m variables.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Q, (m, m), symmetric, positive semidefinite.
    pub q: ArrayView2<'a, f64>,
    /// w, (m,).
    pub w: &'a [f64],
    /// C, positive.
    pub most: f64,
}

impl Program<'_> {
    /// A row of Q.
    pub(super) fn row(&self, i: usize) -> &[f64] {
        self.q.row(i).to_slice().expect("the matrix of a program is row-major")
    }

    /// The largest entry of w, in size.
    pub(super) fn scale(&self) -> f64 {
        self.w.iter().fold(0.0, |largest, w| largest.max(w.abs()))
    }

    /// Qp - w
    pub(super) fn slopes(&self, p: &[f64]) -> Result<Vec<f64>> {
        let m = p.len();
        assert!(self.q.dim() == (m, m) && self.w.len() == m, "the sizes of a program agree");
        (0..p.len()).map(|i| dot(self.row(i), p) - self.w[i]).try_collect_vec()
    }

    /// 1/2 p'Qp - w'p
    pub(super) fn objective(&self, p: &[f64]) -> f64 {
        let chosen = (0..p.len()).filter(|&i| p[i] != 0.0);
        chosen.map(|i| p[i] * (0.5 * dot(self.row(i), p) - self.w[i])).sum()
    }
}

/// The lower triangle of the products of m columns, one after the other, each times `weight(j, k)`: (m, m).
pub(super) fn lower_products(
    columns: &[f64],
    m: usize,
    weight: impl Fn(usize, usize) -> f64 + Sync,
    counter: &mut WorkCounter<'_>,
) -> Result<Array2<f64>> {
    let n = columns.len() / m.max(1);
    let column = |j: usize| &columns[j * n..(j + 1) * n];
    let mut out = try_zero_matrix("the program of a split", (m, m))?;
    let flat = out.as_slice_mut().expect("a new array is row-major");
    let ctx = counter.context();
    counter.for_each_batch(m, (n * m) as u64, |lines, _| {
        ctx.for_each_chunk(&mut flat[lines.start * m..lines.end * m], m, |j, line| {
            let j = lines.start + j;
            for (k, value) in line.iter_mut().enumerate().take(j + 1) {
                let weight = weight(j, k);
                if weight != 0.0 {
                    *value = weight * dot(column(j), column(k));
                }
            }
        });
        Ok(())
    })?;
    Ok(out)
}
