//! (K + alpha I) c = y by Cholesky factorisation, all outputs at once (Rifkin 2002, equation 3.9).
//!
//! With an intercept: c = G (y - b 1), b = 1'G y / 1'G 1, so that the coefficients sum to zero.
//!
//! Cost n^2 d for K and n^3 / 3 for the factor, as much again for leave-one-out values; memory n^2 numbers.

use super::{LeaveOneOut, Problem, check_alpha};
use crate::control::{Monitor, Par};
use crate::error::Result;
use crate::kernels::{Kernel, KernelFunction, KernelRows, Precision, gram_symmetric};
use crate::linalg::cholesky;

/// How the system is solved.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whether leave-one-out values are wanted.
    pub leave_one_out: bool,
}

/// Coefficients, and what is known about them.
#[derive(Debug, Clone)]
pub struct Solution {
    /// c, (n, q) row-major.
    pub coefficients: Vec<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// Where asked for.
    pub leave_one_out: Option<LeaveOneOut>,
    /// k(x_i, x_i), (n,).
    pub diagonal: Vec<f64>,
}

/// Solves the problem for one alpha.
///
/// # Errors
/// [`Error::NotPositiveDefinite`](crate::Error::NotPositiveDefinite) where K + alpha I has a pivot that is not
/// positive.
pub fn solve(
    problem: &Problem<'_>,
    alpha: f64,
    options: Options,
    _monitor: &dyn Monitor,
    par: Par,
) -> Result<Solution> {
    problem.check()?;
    check_alpha(alpha)?;
    let (n, q) = (problem.rows.rows(), problem.outputs);
    let mut k = gram(problem, par)?;
    let diagonal: Vec<f64> = (0..n).map(|i| k[i * n + i]).collect();
    for i in 0..n {
        k[i * n + i] += alpha;
    }
    cholesky::factor(&mut k, n)?;
    let mut coefficients = problem.targets.to_vec();
    cholesky::solve(&k, n, &mut coefficients, q);
    let mut intercepts = vec![0.0; q];
    let mut bordered = None;
    if problem.fit_intercept {
        let mut ones = vec![1.0; n];
        cholesky::solve(&k, n, &mut ones, 1);
        let total: f64 = ones.iter().sum();
        for (j, b) in intercepts.iter_mut().enumerate() {
            *b = coefficients.iter().skip(j).step_by(q).sum::<f64>() / total;
        }
        for (c, one) in coefficients.chunks_exact_mut(q).zip(&ones) {
            for (c, b) in c.iter_mut().zip(&intercepts) {
                *c -= b * one;
            }
        }
        bordered = Some((ones, total));
    }
    let leave_one_out = options.leave_one_out.then(|| {
        let mut inverse: Vec<f64> = vec![0.0; n * n];
        for i in 0..n {
            inverse[i * n + i] = 1.0;
        }
        cholesky::solve(&k, n, &mut inverse, n);
        let mut diagonal: Vec<f64> = (0..n).map(|i| inverse[i * n + i]).collect();
        if let Some((ones, total)) = &bordered {
            for (g, one) in diagonal.iter_mut().zip(ones) {
                *g -= one * one / total;
            }
        }
        LeaveOneOut::new(problem.targets, &coefficients, diagonal, q)
    });
    Ok(Solution { coefficients, intercepts, leave_one_out, diagonal })
}

/// K of the training rows.
fn gram(problem: &Problem<'_>, par: Par) -> Result<Vec<f64>> {
    let n = problem.rows.rows();
    match problem.kernel {
        KernelFunction::BuiltIn(kernel) if kernel != Kernel::Precomputed => {
            gram_symmetric(&kernel, problem.rows, par)
        }
        kernel => {
            let all: Vec<usize> = (0..n).collect();
            let source = KernelRows::new(kernel, problem.rows, &all, Precision::Double, par);
            let mut k = vec![0.0; n * n];
            let mut lines: Vec<&mut [f64]> = k.chunks_exact_mut(n).collect();
            source.compute(&all, &mut lines, par);
            Ok(k)
        }
    }
}
