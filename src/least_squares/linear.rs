//! Linear least squares on many, mostly sparse, columns by conjugate gradients (Rifkin 2002, section 3.6):
//!
//! ```text
//! (X X' + alpha I) c = y,     w = X'c
//! ```
//!
//! X X' is never formed: a product is X (X' p), for all outputs in one pass over the entries each way. With an intercept
//! the ones are one more right-hand side.
//!
//! Cost twice the stored entries times the outputs an iteration; memory d q for each of a fixed number of parts, whose
//! sums do not depend on the threads.

use super::exact::Bordered;
use super::iterative::Options;
use super::{Problem, check_alpha};
use crate::control::{Budget, Monitor, Par, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::linalg::conjugate::{self, Tolerance};

/// Parts of the rows whose sums X'p are made side by side.
const PARTS: usize = 8;
/// Rows of a task.
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
    check_alpha(alpha)?;
    if alpha == 0.0 {
        return Err(Error::param("alpha", alpha, "above 0 for conjugate gradients"));
    }
    let (rows, b) = (problem.rows, Bordered::targets(problem));
    let q = b.columns;
    let mut values = vec![0.0; b.values.len()];
    let tolerance = Tolerance { relative: options.tolerance, backward: 0.0 };
    let outcome = conjugate::solve(
        &b.values,
        &mut values,
        q,
        tolerance,
        options.max_products,
        |p, out| {
            let inner = transposed(rows, p, q, par);
            par.for_each_chunk(out, ROWS * q, |task, out| {
                for (i, out) in (task * ROWS..).zip(out.chunks_exact_mut(q)) {
                    for (out, p) in out.iter_mut().zip(&p[i * q..(i + 1) * q]) {
                        *out = alpha * p;
                    }
                    rows.for_each_in_row(i, |k, v| {
                        for (out, t) in out.iter_mut().zip(&inner[k * q..(k + 1) * q]) {
                            *out += v * t;
                        }
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
        weights: transposed(rows, &coefficients, problem.outputs, par),
        intercepts,
        products: outcome.products,
        residual: outcome.residuals.iter().copied().fold(0.0, f64::max),
        reason: outcome.reason,
    })
}

/// X'P, (d, q): the weights of a solution c.
pub fn transposed(rows: Rows<'_>, p: &[f64], q: usize, par: Par) -> Vec<f64> {
    let (n, d) = (rows.rows(), rows.cols());
    let part = n.div_ceil(PARTS).max(1);
    let sums = par.map(n.div_ceil(part), |task| {
        let mut sums = vec![0.0; d * q];
        for i in task * part..n.min((task + 1) * part) {
            let p = &p[i * q..(i + 1) * q];
            rows.for_each_in_row(i, |k, v| {
                for (sum, p) in sums[k * q..(k + 1) * q].iter_mut().zip(p) {
                    *sum += v * p;
                }
            });
        }
        sums
    });
    let mut sums = sums.into_iter();
    let mut total = sums.next().unwrap_or_else(|| vec![0.0; d * q]);
    for part in sums {
        total.iter_mut().zip(part).for_each(|(total, v)| *total += v);
    }
    total
}
