//! LARS-SVM (compressed SVM, eq. 6 to 9, with the C that the print drops): the l1 path of a squared hinge SVM that is
//! trained again on its own vectors. Equation 9 is a lasso, and its LARS steps are the points where the lasso's path gains
//! a vector: the problem of `l1` with
//!
//! ```text
//! H = C K K + K,      T = C K (y - b)
//! ```
//!
//! Cost: m^3 / 2 multiply-adds for H, and the path's.

use super::l1::Penalised;
use super::problem::{Norm, Order, Problem};
use crate::error::Result;
use crate::simd::blas::dot;

/// The order of the path for C = `cost`, or of the solution at `penalty`; labels are the signs of the coefficients.
pub(super) fn order(problem: &Problem<'_, '_>, norm: Norm, cost: f64, penalty: Option<f64>) -> Result<Order> {
    let (target, k) = (problem.target, problem.gram);
    let (m, q) = (target.len(), target.outputs());
    // y - b where the vector has a say in the output, the machine's own value where it has none.
    let mut wanted = problem.times(target.flat());
    for (wanted, alpha) in wanted.chunks_exact_mut(q).zip(target.flat().chunks_exact(q)) {
        for ((wanted, &alpha), b) in wanted.iter_mut().zip(alpha).zip(target.intercepts) {
            if alpha != 0.0 {
                *wanted = alpha.signum() - b;
            }
        }
    }
    let mut linear = problem.times(&wanted);
    for v in &mut linear {
        *v *= cost;
    }
    let mut quadratic = vec![0.0; m * m];
    problem.par.for_each_chunk(&mut quadratic, m, |i, line| {
        for (j, value) in line.iter_mut().enumerate() {
            *value = cost * dot(&k[i * m..(i + 1) * m], &k[j * m..(j + 1) * m]) + k[i * m + j];
        }
    });
    let weights = vec![1.0; m];
    Penalised { quadratic: &quadratic, linear: &linear, weights: &weights, outputs: q, norm }.order(
        problem.max_vectors,
        penalty,
        problem.monitor,
    )
}
