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
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::least_squares::linear::solve;
//! use svmarrow::least_squares::{Problem, Stopping};
//!
//! let x = Array2::from_shape_fn((40, 1), |(i, _)| 0.1 * i as f64);
//! let y = x.mapv(|x| 3.0 * x);
//! let kernel = Kernel::Linear;
//! let problem = Problem {
//!     kernel: kernel.into(),
//!     rows: Rows::try_from(&x)?,
//!     targets: y.view(),
//!     fit_intercept: false,
//!     weights: None,
//!     groups: None,
//! };
//! let found = solve(&problem, 1e-6, Stopping::new(1e-10), Context::default())?;
//! assert!((found.weights[[0, 0]] - 3.0).abs() < 1e-3);
//! # Ok::<(), svmarrow::Error>(())
//! ```

use super::centre::CentredRows;
use super::iteration::{Stopping, WeightRoots, conjugate_gradients};
use super::problem::Problem;
use crate::context::{Budget, Context, Stop};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, KernelFunction};
use crate::memory;
use crate::simd::blas::axpy;
use ndarray::Array2;

/// Context reported when the allocation of the second copy fails.
const BY_COLUMN: &str = "the entries by their columns";
/// Rows or columns of a task.
const LINES_PER_TASK: usize = 256;
/// Multiply-adds between two checks of the monitor: a few tenths of a second.
const WORK_PER_CHECK: usize = 100_000_000;

/// The weights of the features, and the outcome of the iteration.
#[derive(Debug, Clone)]
pub struct LinearSolution {
    /// w, (d, q).
    pub weights: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// The end of the iteration: products with the system's matrix, and the largest relative residual as the gap.
    pub stop: Stop,
}

/// Solves the problem, whose kernel is the linear one.
///
/// # Errors
/// [`Error::Param`] for alpha = 0 and for another kernel.
pub fn solve(
    problem: &Problem<'_>,
    alpha: f64,
    stopping: Stopping,
    ctx: Context<'_>,
) -> Result<LinearSolution> {
    problem.check_iterative(alpha)?;
    if !matches!(problem.kernel, KernelFunction::BuiltIn(Kernel::Linear)) {
        return Err(Error::param("kernel", problem.kernel.built_in().name(), "linear"));
    }
    let Some(centred) = CentredRows::of(problem)? else { return solve_given(problem, alpha, stopping, ctx) };
    let mut solution = solve_given(&centred.problem(problem), alpha, stopping, ctx)?;
    centred.move_back(solution.weights.view(), &mut solution.intercepts);
    Ok(solution)
}

/// Returns the solution for the rows as they are.
fn solve_given(
    problem: &Problem<'_>,
    alpha: f64,
    stopping: Stopping,
    ctx: Context<'_>,
) -> Result<LinearSolution> {
    let (rows, roots, columns) =
        (problem.rows, WeightRoots::new(problem), EntriesByColumn::new(problem.rows)?);
    let budget = Budget::new(ctx.monitor(), None, stopping.max_time);
    let timed = ctx.with_monitor(&budget);
    let rows_product = |first: usize, p: &[f64], inner: &[f64], out: &mut [f64], q: usize| {
        ctx.for_each_chunk(out, LINES_PER_TASK * q, |task, out| {
            let first = first + task * LINES_PER_TASK;
            for (i, out) in (first..).zip(out.chunks_exact_mut(q)) {
                let alpha = alpha / roots.root(i);
                for (out, p) in out.iter_mut().zip(&p[i * q..(i + 1) * q]) {
                    *out = alpha * p;
                }
                rows.for_each_in_row(i, |k, v| axpy(v, &inner[k * q..(k + 1) * q], out));
            }
            roots.scale(first, out, q);
        });
    };
    let apply = |p: &[f64], out: &mut [f64], q: usize| {
        let inner = columns.product(&roots.scaled(p, q)?, q, timed)?;
        let at_once = columns.lines_at_once(rows.rows(), q);
        for (part, out) in out.chunks_mut(at_once * q).enumerate() {
            timed.check("product", part * at_once, rows.rows())?;
            rows_product(part * at_once, p, &inner, out, q);
        }
        Ok(())
    };
    let precondition = |r: &[f64], out: &mut [f64], _| {
        out.copy_from_slice(r);
        Ok(())
    };
    let (coefficients, intercepts, stop) =
        conjugate_gradients(problem, alpha, &roots, stopping, apply, precondition, timed)?;
    let q = problem.outputs();
    let weights = columns.product(&coefficients.into_raw_vec_and_offset().0, q, ctx.silent())?;
    let weights = Array2::from_shape_vec((rows.cols(), q), weights).expect("a line for each feature");
    Ok(LinearSolution { weights, intercepts, stop })
}

/// The stored entries by column, so that X'p is one sum for each column.
struct EntriesByColumn {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl EntriesByColumn {
    fn new(x: Rows<'_>) -> Result<Self> {
        let (n, d) = (x.rows(), x.cols());
        let mut starts: Vec<usize> = memory::try_zeros(BY_COLUMN, d.saturating_add(1))?;
        for i in 0..n {
            x.for_each_in_row(i, |k, v| starts[k + 1] += usize::from(v != 0.0));
        }
        for k in 0..d {
            starts[k + 1] += starts[k];
        }
        let mut next = memory::try_to_vec(BY_COLUMN, &starts)?;
        let (mut rows, mut values) = memory::try_entries::<u32, f64>(BY_COLUMN, starts[d])?;
        rows.resize(starts[d], 0);
        values.resize(starts[d], 0.0);
        for i in 0..n {
            x.for_each_in_row(i, |k, v| {
                if v != 0.0 {
                    rows[next[k]] = i as u32;
                    values[next[k]] = v;
                    next[k] += 1;
                }
            });
        }
        Ok(Self { starts, rows, values })
    }

    /// Rows or columns, `count` in all, whose entries are visited between two checks of the monitor.
    fn lines_at_once(&self, count: usize, q: usize) -> usize {
        let work = (self.values.len() * q).max(1).div_ceil(count.max(1));
        (WORK_PER_CHECK / work / LINES_PER_TASK).max(1) * LINES_PER_TASK
    }

    /// X'P, (d, q).
    fn product(&self, p: &[f64], q: usize, ctx: Context<'_>) -> Result<Vec<f64>> {
        let d = self.starts.len() - 1;
        let mut sums = memory::try_zeros("the weights of the features", d.saturating_mul(q))?;
        let at_once = self.lines_at_once(d, q);
        for (part, sums) in sums.chunks_mut(at_once * q).enumerate() {
            ctx.check("product", part * at_once, d)?;
            self.add_columns(part * at_once, p, sums, q, ctx);
        }
        Ok(sums)
    }

    /// X'P of some columns from `first` on.
    fn add_columns(&self, first: usize, p: &[f64], sums: &mut [f64], q: usize, ctx: Context<'_>) {
        ctx.for_each_chunk(sums, LINES_PER_TASK * q, |task, sums| {
            for (k, sums) in (first + task * LINES_PER_TASK..).zip(sums.chunks_exact_mut(q)) {
                for entry in self.starts[k]..self.starts[k + 1] {
                    let i = self.rows[entry] as usize;
                    axpy(self.values[entry], &p[i * q..(i + 1) * q], sums);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;

    #[test]
    fn the_weights_solve_the_normal_equations() {
        let (n, d, q, alpha) = (40, 7, 2, 0.3);
        let data: Vec<f64> =
            (0..n * d).map(|i| if i % 3 == 0 { 0.0 } else { (i as f64 * 0.77).sin() }).collect();
        let targets = Array2::from_shape_fn((n, q), |(i, j)| ((i * q + j) as f64 * 0.31).cos());
        let rows: Rows<'_> = Rows::from_shape((n, d), &data).unwrap();
        let kernel = Kernel::Linear.into();
        let problem = Problem {
            kernel,
            rows,
            targets: targets.view(),
            fit_intercept: false,
            weights: None,
            groups: None,
        };
        let stopping = Stopping { tolerance: 1e-12, max_iterations: 500, max_time: None };
        let solved = solve(&problem, alpha, stopping, Context::default()).unwrap();
        for k in 0..d {
            for j in 0..q {
                let mut sum = alpha * solved.weights[[k, j]];
                for i in 0..n {
                    let f: f64 = (0..d).map(|c| data[i * d + c] * solved.weights[[c, j]]).sum();
                    sum += data[i * d + k] * (f - targets[[i, j]]);
                }
                assert!(sum.abs() < 1e-9, "{sum}");
            }
        }
    }
}
