//! (K + alpha W^-1) c = y by Cholesky factorization, all outputs at once (Rifkin 2002, equation 3.9).
//!
//! W holds the weights of the rows, I without them. An intercept borders the system (see `intercept`).
//!
//! Without leave-one-out values the factor is computed in single precision, at half the cost, and serves as
//! preconditioner of a few conjugate gradient steps with K, which end at the accuracy of a factor in double precision. A
//! system too close to singular for that is factored in double precision after all, so a pivot that is refused is
//! refused in double precision. K is computed in the precision of the rows, for leave-one-out values in double.
//!
//! Cost n^2 d for K and n^3 / 3 for the factor, as much again for leave-one-out values; memory n^2 numbers, a third as
//! many more in single precision for the factor that is refined.
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::least_squares::{Problem, exact};
//!
//! let x = Array2::from_shape_fn((40, 1), |(i, _)| 0.1 * i as f64);
//! let y = x.mapv(f64::sin);
//! let kernel = Kernel::Rbf { gamma: 1.0 };
//! let problem = Problem {
//!     kernel: kernel.into(),
//!     rows: Rows::try_from(&x)?,
//!     targets: y.view(),
//!     fit_intercept: false,
//!     weights: None,
//!     groups: None,
//! };
//! let solution = exact::solve(&problem, 0.1, false, Context::default())?;
//! assert_eq!(solution.coefficients.dim(), (40, 1));
//! # Ok::<(), svmarrow::Error>(())
//! ```

use super::centre::about_centre;
use super::intercept::right_hand_sides;
use super::problem::{Problem, check_alpha, kernel_matrix};
use super::solution::{InverseDiagonal, Solution};
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::linalg::columns;
use crate::linalg::conjugate::{self, Limits};
use crate::linalg::dense::{self, Square};
use crate::linalg::inverse::{inverse, inverse_diagonal};
use crate::memory::{self, TryCollect};
use crate::simd::Real;
use ndarray::Array2;

/// Minimum number of rows for which a factor in single precision is refined.
const MIN_REFINED_ROWS: usize = 1000;
/// Minimum number of rows per output for which refining costs less than a factor in double precision.
const MIN_ROWS_PER_OUTPUT: usize = 120;
/// Maximum number of products with K; beyond it, a factor in double precision is cheaper.
const MAX_REFINEMENT_PRODUCTS: u64 = 24;
/// Reason for which the arrays of this file are slices.
const ROW_MAJOR: &str = "made row-major";

/// Returns the number of bytes that [`bordered_inverse`] takes in addition to the rows.
pub fn inverse_bytes(n: usize) -> usize {
    Square::<f64>::bytes(n).saturating_add(n.saturating_mul(n + 512).saturating_mul(size_of::<f64>()))
}

/// Returns the bytes that [`solve`] takes in addition to the rows.
pub fn bytes(n: usize, single: bool, leave_one_out: bool) -> usize {
    match (leave_one_out || n < MIN_REFINED_ROWS, single) {
        (true, _) => Square::<f64>::bytes(n),
        (false, true) => 2 * Square::<f32>::bytes(n),
        (false, false) => Square::<f32>::bytes(n) + Square::<f64>::bytes(n),
    }
}

/// Solves the problem for one alpha, with leave-one-out values if `leave_one_out` is true.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] where K + alpha I has a pivot that is not positive, [`Error::Stopped`].
pub fn solve(problem: &Problem<'_>, alpha: f64, leave_one_out: bool, ctx: Context<'_>) -> Result<Solution> {
    problem.checked()?;
    check_alpha(alpha)?;
    let solve = |problem: &Problem<'_>| solve_given(problem, alpha, leave_one_out, ctx);
    about_centre(problem, solve, |solution| (solution.coefficients.view(), &mut solution.intercepts))
}

/// Returns the solution for the rows as they are.
fn solve_given(problem: &Problem<'_>, alpha: f64, leave_one_out: bool, ctx: Context<'_>) -> Result<Solution> {
    let reach = problem.checked()?;
    let is_refinable =
        problem.rows.rows() >= MIN_REFINED_ROWS.max(MIN_ROWS_PER_OUTPUT * problem.targets.ncols());
    if !leave_one_out && is_refinable {
        let refined = if problem.rows.is_f64() || !reach.is_single() {
            refined::<f64>(problem, alpha, ctx)?
        } else {
            refined::<f32>(problem, alpha, ctx)?
        };
        if let Some(solution) = refined {
            return Ok(solution);
        }
    }
    let mut k = kernel_matrix::<f64>(problem.kernel, problem.rows, ctx)?;
    let diagonal = k.diagonal().collect::<Vec<_>>();
    k.shift(|i| problem.shift(alpha, i));
    factored(problem, alpha, k, diagonal, leave_one_out, ctx)
}

/// Returns the solution with A = K + alpha I, whose values are lost.
pub(super) fn factored(
    problem: &Problem<'_>,
    alpha: f64,
    mut k: Square<f64>,
    diagonal: Vec<f64>,
    leave_one_out: bool,
    ctx: Context<'_>,
) -> Result<Solution> {
    dense::factor(&mut k, ctx)?;
    let mut solved = right_hand_sides(problem)?;
    let (n, q) = solved.dim();
    let values = solved.as_slice_mut().expect(ROW_MAJOR);
    let mut panels = columns::to_panels::<f64>(values, n, q)?;
    columns::solve(&k, &mut panels, ctx)?;
    columns::from_panels(&panels, values, n, q);
    let inverse = leave_one_out.then(|| inverse_diagonal(&mut k, ctx)).transpose()?;
    let inverse = inverse.map(|diagonal| InverseDiagonal { diagonal, factor: Some(&k) });
    Solution::new(problem, alpha, solved, diagonal, inverse, ctx)
}

/// The inverse of the matrix of the system, and what an intercept adds to it.
pub struct BorderedInverse {
    /// The first n rows and columns of the inverse of the bordered matrix, (n, n): G - G 1 1' G / (1' G 1) with an
    /// intercept, G = (K + alpha W^-1)^-1 without.
    pub inverse: Array2<f64>,
    /// Its last row, G 1 / (1' G 1), (n,): the intercepts for unit targets. Zeros without an intercept.
    pub intercepts: Vec<f64>,
}

/// Computes the inverse of the matrix of the system, which does not depend on the values of the targets.
///
/// Cost n^3 multiply-adds in all; memory 2 n^2 numbers.
///
/// # Errors
/// The errors of [`solve`].
pub fn bordered_inverse(problem: &Problem<'_>, alpha: f64, ctx: Context<'_>) -> Result<BorderedInverse> {
    problem.checked()?;
    check_alpha(alpha)?;
    let solve = |problem: &Problem<'_>| inverse_given(problem, alpha, ctx);
    about_centre(problem, solve, |solution| (solution.inverse.view(), &mut solution.intercepts))
}

/// Returns the inverse for the rows as they are.
fn inverse_given(problem: &Problem<'_>, alpha: f64, ctx: Context<'_>) -> Result<BorderedInverse> {
    let n = problem.rows.rows();
    let mut k = kernel_matrix::<f64>(problem.kernel, problem.rows, ctx)?;
    k.shift(|i| problem.shift(alpha, i));
    dense::factor(&mut k, ctx)?;
    let mut intercepts = vec![0.0; n];
    if problem.fit_intercept {
        let mut panels = columns::to_panels::<f64>(&vec![1.0; n], n, 1)?;
        columns::solve(&k, &mut panels, ctx)?;
        columns::from_panels(&panels, &mut intercepts, n, 1);
    }
    let mut inverse = inverse(k, ctx)?;
    if problem.fit_intercept {
        let total: f64 = intercepts.iter().sum();
        let ones = &intercepts;
        ctx.for_each_chunk(inverse.as_slice_mut().expect(ROW_MAJOR), n, |i, line| {
            // Symmetric to the last bit: the product first.
            line.iter_mut().zip(ones).for_each(|(value, entry)| *value -= entry * ones[i] / total);
        });
        for entry in &mut intercepts {
            *entry /= total;
        }
    }
    problem.check_solution(alpha, inverse.iter().chain(&intercepts))?;
    Ok(BorderedInverse { inverse, intercepts })
}

/// Refines the solution of a factor in single precision; returns `None` if that does not reach the accuracy.
fn refined<T: Real>(problem: &Problem<'_>, alpha: f64, ctx: Context<'_>) -> Result<Option<Solution>> {
    let k = kernel_matrix::<T>(problem.kernel, problem.rows, ctx)?;
    let mut l = k.shifted::<f32>(|i| problem.shift(alpha, i), ctx)?;
    match dense::factor(&mut l, ctx) {
        Err(Error::NotPositiveDefinite { .. }) => return Ok(None),
        other => other?,
    }
    let right = right_hand_sides(problem)?;
    let (n, q) = right.dim();
    let mut solved = memory::try_zero_matrix("the solution", (n, q))?;
    let apply = |p: &[f64], out: &mut [f64]| {
        let panels = columns::to_panels::<f64>(p, n, q)?;
        let mut product: Vec<f64> = memory::try_zeros("the solution", panels.len())?;
        columns::multiply(&k, |i| problem.shift(alpha, i), &panels, &mut product, ctx)?;
        columns::from_panels(&product, out, n, q);
        Ok(())
    };
    let precondition = |r: &[f64], out: &mut [f64]| {
        // Residuals shrink far below what single precision holds beside its largest numbers: solve for unit ones.
        let mut size = vec![0.0_f64; q];
        for line in r.chunks_exact(q) {
            size.iter_mut().zip(line).for_each(|(size, r)| *size = size.max(r.abs()));
        }
        let scaled = r.iter().enumerate().map(|(i, r)| if size[i % q] > 0.0 { r / size[i % q] } else { 0.0 });
        let mut panels = columns::to_panels::<f32>(&scaled.try_collect_vec()?, n, q)?;
        columns::solve(&l, &mut panels, ctx)?;
        columns::from_panels(&panels, out, n, q);
        out.iter_mut().enumerate().for_each(|(i, v)| *v *= size[i % q]);
        Ok(())
    };
    // The rounding of a sum of n products: a residual computed in double precision is hardly smaller, and a few times
    // that is what a factor in double precision leaves.
    let rounding = 2.0 * f64::EPSILON * (n as f64).sqrt();
    let limits = Limits {
        relative: 8.0 * rounding,
        absolute: 0.0,
        backward: rounding,
        max_iterations: MAX_REFINEMENT_PRODUCTS,
    };
    let (right, values) = (right.as_slice().expect(ROW_MAJOR), solved.as_slice_mut().expect(ROW_MAJOR));
    let outcome = conjugate::solve(right, values, q, limits, apply, precondition, ctx)?;
    if let Some(interruption) = outcome.stop.reason.interruption() {
        return Err(Error::Stopped(interruption));
    }
    match outcome.stop.reason {
        StopReason::Converged => {}
        // What rounding alone leaves is what a factor in double precision leaves, too.
        _ if outcome.residuals.iter().all(|r| *r <= 16.0 * rounding) => {}
        _ => return Ok(None),
    }
    Solution::new(problem, alpha, solved, k.diagonal().collect(), None, ctx).map(Some)
}
