//! Which vectors a leaf of a converted expansion keeps: forward selection by orthogonal least squares on the leaf's rows.
//!
//! Of the candidates' columns K_j the one is taken that explains most of the residual of all outputs together,
//! argmax_j sum_c (w_j'r_c)^2 / |w_j|^2 with w_j = K_j less its projection on the columns taken before. With e the
//! direction of the column taken, |w_j|^2 falls by (e'K_j)^2 and w_j'r_c by (e'K_j)(e'r_c): columns are read once for each
//! vector taken and never written.
//!
//! Invariant: `basis` is orthonormal and spans the columns taken. Cost: O(n m) for each, n rows and m candidates.

use crate::control::Par;
use crate::simd::blas::{axpy, dot};

/// Squared lengths below this part of the first one are rounding: such columns are spanned.
const SPANNED: f64 = 1e-10;

/// Indices of at most `most` columns; `columns` is (m, n), `targets` (q, n), both row-major.
pub(super) fn forward(columns: &[f64], targets: &[f64], n: usize, most: usize, par: Par) -> Vec<usize> {
    let m = columns.len() / n;
    let column = |j: usize| &columns[j * n..(j + 1) * n];
    let first = par.map(m, |j| dot(column(j), column(j)));
    let mut lengths = first.clone();
    let mut products: Vec<Vec<f64>> =
        targets.chunks_exact(n).map(|target| par.map(m, |j| dot(column(j), target))).collect();
    let (mut basis, mut taken): (Vec<Vec<f64>>, Vec<usize>) = (Vec::new(), Vec::with_capacity(most));
    while taken.len() < most {
        let gain = |j: usize| products.iter().map(|p| p[j] * p[j]).sum::<f64>() / lengths[j];
        let open = (0..m).filter(|&j| lengths[j] > SPANNED * first[j] && !taken.contains(&j));
        let Some(best) = open.max_by(|&a, &b| gain(a).total_cmp(&gain(b)).then(b.cmp(&a))) else { break };
        let mut along = column(best).to_vec();
        // Twice is enough (Kahan and Parlett): once would leave what cancellation left.
        for _ in 0..2 {
            for e in &basis {
                axpy(-dot(e, &along), e, &mut along);
            }
        }
        let length = dot(&along, &along).sqrt();
        if !(length * length > SPANNED * first[best]) {
            lengths[best] = 0.0;
            continue;
        }
        taken.push(best);
        for v in &mut along {
            *v /= length;
        }
        let parts = par.map(m, |j| dot(column(j), &along));
        for (length, part) in lengths.iter_mut().zip(&parts) {
            *length -= part * part;
        }
        for (products, target) in products.iter_mut().zip(targets.chunks_exact(n)) {
            axpy(-dot(&along, target), &parts, products);
        }
        basis.push(along);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn finds_the_columns_that_made_the_targets() {
        let mut random = Random::new(4);
        let (m, n) = (30, 50);
        let columns: Vec<f64> = (0..m * n).map(|_| random.normal()).collect();
        let mut targets = vec![0.0; 2 * n];
        for (c, j, weight) in [(0, 3, 2.0), (0, 17, -1.5), (1, 17, 1.0), (1, 29, 2.5)] {
            axpy(weight, &columns[j * n..(j + 1) * n], &mut targets[c * n..(c + 1) * n]);
        }
        let mut taken = forward(&columns, &targets, n, 3, Par::Sequential);
        taken.sort_unstable();
        assert_eq!(taken, [3, 17, 29]);
        // A column that is there twice is taken once.
        let twice = [&columns[..n], &columns[..n]].concat();
        assert_eq!(forward(&twice, &columns[..n], n, 2, Par::Sequential).len(), 1);
    }
}
