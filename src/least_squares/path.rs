//! Many alphas over one kernel matrix, and the best of them by leave-one-out error.
//!
//! K is computed once; each alpha costs a factor and its inverse (`exact`). With a spectrum an alpha costs two passes over the
//! eigenvectors (`spectral`), and K is computed only if the spectrum does not answer one. A decomposition takes as long as 7 of
//! the former for 1,000 rows, and cannot be interrupted.
//!
//! A factorization of few rows leaves most threads without work, so several alphas are factored at the same time. Each has its own
//! matrix: up to `ALPHAS_AT_ONCE` of at most `MAX_ROWS_AT_ONCE` rows, 128 MiB together.

use super::centre::about_centre;
use super::exact::{self, factored};
use super::problem::{Problem, check_alpha, kernel_matrix};
use super::solution::Solution;
use super::spectral::{Spectral, Spectrum};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::{KernelFunction, diagonal};
use std::cmp::Ordering;

/// Maximum number of alphas that are factored at the same time.
const ALPHAS_AT_ONCE: usize = 4;
/// Maximum number of rows for which several are: a factorization of more rows occupies all threads.
const MAX_ROWS_AT_ONCE: usize = 2048;

/// Maximum difference of errors that count as equal, relative to the larger one.
const ROUNDING_OF_ERRORS: f64 = 1e-10;

/// Returns the number of alphas that are factored at the same time.
fn alphas_at_once(n: usize, alphas: usize) -> usize {
    if n <= MAX_ROWS_AT_ONCE { ALPHAS_AT_ONCE.min(alphas) } else { 1 }
}

/// Returns the bytes that [`solve_path`] takes without a spectrum in addition to the rows: K, and a factor for each alpha.
pub fn path_bytes(n: usize, alphas: usize) -> usize {
    exact::bytes(n, false, true).saturating_mul(1 + alphas_at_once(n, alphas))
}

/// One point of a path.
#[derive(Debug, Clone, Copy)]
pub struct PathPoint {
    /// The weight of the penalty.
    pub alpha: f64,
    /// Mean squared leave-one-out error over all outputs.
    pub squared_error: f64,
    /// Share of rows whose leave-one-out values have another sign, or another largest output, than their targets.
    pub error_rate: f64,
    /// Mean of the outputs' generalized cross-validation scores.
    pub gcv: f64,
}

/// Solves for several alphas and keeps the solution with the least leave-one-out error, by rate or squared; the larger
/// alpha wins a tie, also of errors that differ by rounding. An alpha whose system is not positive definite has errors that
/// are not numbers. Groups need factors: a spectrum is not used then. A spectrum is that of the rows as they are: for the linear kernel with an intercept, which is then not
/// computed about a center, their mean should be near zero.
///
/// # Errors
/// The errors of [`solve`](super::solve), [`Error::NotPositiveDefinite`] where no alpha has a solution.
pub fn solve_path(
    problem: &Problem<'_>,
    alphas: &[f64],
    by_rate: bool,
    spectrum: Option<Spectrum<'_>>,
    ctx: Context<'_>,
) -> Result<(Vec<PathPoint>, usize, Solution)> {
    problem.checked()?;
    for &alpha in alphas {
        check_alpha(alpha)?;
    }
    let spectrum = spectrum.filter(|_| problem.groups.is_none());
    let solve = |problem: &Problem<'_>| solve_path_given(problem, alphas, by_rate, spectrum, ctx);
    if spectrum.is_some() {
        return solve(problem);
    }
    about_centre(problem, solve, |(_, _, solution)| (solution.coefficients.view(), &mut solution.intercepts))
}

/// Returns the path for the rows as they are.
fn solve_path_given(
    problem: &Problem<'_>,
    alphas: &[f64],
    by_rate: bool,
    spectrum: Option<Spectrum<'_>>,
    ctx: Context<'_>,
) -> Result<(Vec<PathPoint>, usize, Solution)> {
    let spectral = spectrum.map(|spectrum| Spectral::new(spectrum, problem)).transpose()?;
    let mut k = None;
    let diagonal = match problem.kernel {
        // The matrix is needed for an alpha that the spectrum does not answer.
        KernelFunction::BuiltIn(kernel) if spectral.is_some() => diagonal(&kernel, problem.rows),
        _ => {
            k.insert(kernel_matrix::<f64>(problem.kernel, problem.rows, ctx)?).diagonal().collect::<Vec<_>>()
        }
    };
    let mut best: Option<(usize, Solution, (f64, f64))> = None;
    let (mut points, mut refused) = (Vec::with_capacity(alphas.len()), None);
    // One at a time from a spectrum, whose own loop is parallel and may need K for an alpha. Two threads share a factorization
    // with little loss.
    let at_once = if spectral.is_none() { alphas_at_once(diagonal.len(), alphas.len()) } else { 1 };
    let at_once = at_once.min(ctx.threads() / 2).max(1);
    for (group, grouped) in alphas.chunks(at_once).enumerate() {
        ctx.check("path", group * at_once, alphas.len())?;
        let known = match &spectral {
            Some(spectral) => spectral.solve(problem, grouped[0], &diagonal, ctx)?,
            None => None,
        };
        let solutions = if let Some(solution) = known {
            vec![Ok(solution)]
        } else {
            if k.is_none() {
                k = Some(kernel_matrix::<f64>(problem.kernel, problem.rows, ctx)?);
            }
            let k = k.as_ref().expect("it was computed");
            ctx.map(grouped.len(), |i| {
                let shifted = k.shifted::<f64>(|row| problem.shift(grouped[i], row), ctx)?;
                factored(problem, grouped[i], shifted, diagonal.clone(), true, ctx)
            })
        };
        for (i, (&alpha, solution)) in grouped.iter().zip(solutions).enumerate() {
            let solution = match solution {
                Err(error @ Error::NotPositiveDefinite { .. }) => {
                    let nan = f64::NAN;
                    points.push(PathPoint { alpha, squared_error: nan, error_rate: nan, gcv: nan });
                    refused = Some(error);
                    continue;
                }
                other => other?,
            };
            let Some(estimate) = &solution.leave_one_out else { continue };
            let (squared_error, error_rate) = estimate.errors(problem);
            let gcv = estimate.gcv.iter().sum::<f64>() / problem.outputs() as f64;
            points.push(PathPoint { alpha, squared_error, error_rate, gcv });
            let score = if by_rate { (error_rate, squared_error) } else { (squared_error, 0.0) };
            let better = best.as_ref().is_none_or(|(at, _, least)| match compared(score, *least) {
                Ordering::Equal => alpha > alphas[*at],
                order => order.is_lt() || least.0.is_nan(),
            });
            if better {
                best = Some((group * at_once + i, solution, score));
            }
        }
    }
    match (best, refused) {
        (Some((place, solution, _)), _) => Ok((points, place, solution)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::param("alphas", "[]", "at least one number")),
    }
}

/// Compares scores by their first numbers, or by the second ones where these are equal but for rounding.
fn compared(a: (f64, f64), b: (f64, f64)) -> Ordering {
    let of = |a: f64, b: f64| {
        if (a - b).abs() <= ROUNDING_OF_ERRORS * a.abs().max(b.abs()) {
            Ordering::Equal
        } else {
            a.partial_cmp(&b).unwrap_or(Ordering::Greater)
        }
    };
    of(a.0, b.0).then_with(|| of(a.1, b.1))
}
