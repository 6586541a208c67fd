//! Products of the columns of kernel values: the matrices of the programs and of the fits in leaves.

use crate::control::Par;
use crate::error::Result;
use crate::perceptron::watch::Watch;
use crate::simd::blas::dot;
use ndarray::Array2;

/// The lower triangle of the products of m columns, one after the other, each times `weight(j, k)`: (m, m).
pub(super) fn lower_products(
    columns: &[f64],
    m: usize,
    weight: impl Fn(usize, usize) -> f64 + Sync,
    watch: &mut Watch<'_>,
    par: Par,
) -> Result<Array2<f64>> {
    let n = columns.len() / m.max(1);
    let column = |j: usize| &columns[j * n..(j + 1) * n];
    let mut out = Array2::zeros((m, m));
    let flat = out.as_slice_mut().expect("a new array is row-major");
    watch.stretches(m, (n * m) as u64, |lines, _| {
        par.for_each_chunk(&mut flat[lines.start * m..lines.end * m], m, |j, line| {
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
