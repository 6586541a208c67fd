//! A row vector times a row-major matrix.

use crate::simd::blas::axpy;

/// line (n,) times a (n, q).
pub(super) fn row_times(line: &[f64], a: &[f64], q: usize) -> Vec<f64> {
    let mut out = vec![0.0; q];
    for (&l, row) in line.iter().zip(a.chunks_exact(q)) {
        axpy(l, row, &mut out);
    }
    out
}
