//! The program of a selection (section 3.2): min 1/2 p'Qp - w'p over p in {0, 1}, sum p <= C, or relaxed over 0 <= p <= 1.

use crate::simd::blas::dot;
use ndarray::ArrayView2;

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
    pub(super) fn slopes(&self, p: &[f64]) -> Vec<f64> {
        let m = p.len();
        assert!(self.q.dim() == (m, m) && self.w.len() == m, "the sizes of a program agree");
        (0..p.len()).map(|i| dot(self.row(i), p) - self.w[i]).collect()
    }

    /// 1/2 p'Qp - w'p
    pub(super) fn objective(&self, p: &[f64]) -> f64 {
        let chosen = (0..p.len()).filter(|&i| p[i] != 0.0);
        chosen.map(|i| p[i] * (0.5 * dot(self.row(i), p) - self.w[i])).sum()
    }
}
