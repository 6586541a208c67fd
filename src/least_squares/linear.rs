//! Linear least squares on many, mostly sparse, columns by conjugate gradients (Rifkin 2002, section 3.6):
//!
//! ```text
//! (X X' + alpha I) c = y,     w = X'c
//! ```
//!
//! X X' is never formed: a product is X (X' p), for all outputs in one pass over the entries each way. With an intercept
//! the ones are one more right-hand side.
//!
//! Cost twice the stored entries times the outputs an iteration; memory a second copy of the entries, by columns, and d q.

use super::exact::Bordered;
use super::iterative::Options;
use super::{Problem, check_alpha};
use crate::control::{Budget, Monitor, Par, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::linalg::conjugate::{self, Tolerance};
use crate::simd::blas::axpy;

/// Rows or columns of a task.
const ROWS: usize = 256;

/// The weights of the features, and how the iteration ended.
#[derive(Debug, Clone)]
pub struct Weights {
    /// w, (d, q) row-major.
    pub weights: Vec<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// Products with X X'.
    pub products: u64,
    /// The largest relative residual, computed from the solution.
    pub residual: f64,
    /// Why the iteration ended.
    pub reason: StopReason,
}

/// Solves the problem for the linear kernel; `options.points` is not used.
///
/// # Errors
/// [`Error::Param`] for alpha = 0.
pub fn solve(
    problem: &Problem<'_>,
    alpha: f64,
    options: Options,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Weights> {
    problem.check()?;
    problem.refuse_weights()?;
    check_alpha(alpha)?;
    if alpha == 0.0 {
        return Err(Error::param("alpha", alpha, "above 0 for conjugate gradients"));
    }
    let (rows, b) = (problem.rows, Bordered::targets(problem));
    let q = b.columns;
    let mut values = vec![0.0; b.values.len()];
    let columns = Columns::new(rows);
    let tolerance = Tolerance { relative: options.tolerance, backward: 0.0 };
    let outcome = conjugate::solve(
        &b.values,
        &mut values,
        q,
        tolerance,
        options.max_products,
        |p, out| {
            let inner = columns.product(p, q, par);
            par.for_each_chunk(out, ROWS * q, |task, out| {
                for (i, out) in (task * ROWS..).zip(out.chunks_exact_mut(q)) {
                    for (out, p) in out.iter_mut().zip(&p[i * q..(i + 1) * q]) {
                        *out = alpha * p;
                    }
                    rows.for_each_in_row(i, |k, v| {
                        axpy(v, &inner[k * q..(k + 1) * q], out);
                    });
                }
            });
            Ok(())
        },
        |r, out| {
            out.copy_from_slice(r);
            Ok(())
        },
        &Budget::new(monitor, None, options.max_time),
    )?;
    let (coefficients, intercepts, _) = Bordered { values, ..b }.split(problem);
    Ok(Weights {
        weights: columns.product(&coefficients, problem.outputs, par),
        intercepts,
        products: outcome.products,
        residual: outcome.residuals.iter().copied().fold(0.0, f64::max),
        reason: outcome.reason,
    })
}

/// The stored entries column after column, so that X'p is a sum for each column alone.
struct Columns {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl Columns {
    fn new(x: Rows<'_>) -> Self {
        let (n, d) = (x.rows(), x.cols());
        let mut starts = vec![0; d + 1];
        for i in 0..n {
            x.for_each_in_row(i, |k, v| starts[k + 1] += usize::from(v != 0.0));
        }
        for k in 0..d {
            starts[k + 1] += starts[k];
        }
        let mut next = starts.clone();
        let (mut rows, mut values) = (vec![0; starts[d]], vec![0.0; starts[d]]);
        for i in 0..n {
            x.for_each_in_row(i, |k, v| {
                if v != 0.0 {
                    rows[next[k]] = i as u32;
                    values[next[k]] = v;
                    next[k] += 1;
                }
            });
        }
        Self { starts, rows, values }
    }

    /// X'P, (d, q).
    fn product(&self, p: &[f64], q: usize, par: Par) -> Vec<f64> {
        let mut sums = vec![0.0; (self.starts.len() - 1) * q];
        par.for_each_chunk(&mut sums, ROWS * q, |task, sums| {
            for (k, sums) in (task * ROWS..).zip(sums.chunks_exact_mut(q)) {
                for entry in self.starts[k]..self.starts[k + 1] {
                    let i = self.rows[entry] as usize;
                    axpy(self.values[entry], &p[i * q..(i + 1) * q], sums);
                }
            }
        });
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Silent;
    use crate::data::Rows;
    use crate::kernels::Kernel;

    #[test]
    fn the_weights_solve_the_normal_equations() {
        let (n, d, q, alpha) = (40, 7, 2, 0.3);
        let data: Vec<f64> =
            (0..n * d).map(|i| if i % 3 == 0 { 0.0 } else { (i as f64 * 0.77).sin() }).collect();
        let targets: Vec<f64> = (0..n * q).map(|i| (i as f64 * 0.31).cos()).collect();
        let rows: Rows<'_> = Rows::from_shape((n, d), &data).unwrap();
        let kernel = Kernel::Linear.into();
        let problem =
            Problem { kernel, rows, targets: &targets, outputs: q, fit_intercept: false, weights: None };
        let options = Options { tolerance: 1e-12, max_products: 500, max_time: None, points: 0, seed: 0 };
        let solved = solve(&problem, alpha, options, &Silent, Par::Threads).unwrap();
        for k in 0..d {
            for j in 0..q {
                let mut sum = alpha * solved.weights[k * q + j];
                for i in 0..n {
                    let f: f64 = (0..d).map(|c| data[i * d + c] * solved.weights[c * q + j]).sum();
                    sum += data[i * d + k] * (f - targets[i * q + j]);
                }
                assert!(sum.abs() < 1e-9, "{sum}");
            }
        }
    }
}
