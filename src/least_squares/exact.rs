//! (K + alpha W^-1) c = y by Cholesky factorisation, all outputs at once (Rifkin 2002, equation 3.9).
//!
//! W holds the weights of the rows, I without them. With an intercept: c = G (y - b 1), b = 1'G y / 1'G 1, so that the
//! coefficients sum to zero.
//!
//! Where no leave-one-out values are wanted, the factor is computed in single precision, at half the cost, and serves as
//! preconditioner of a few conjugate gradient steps with K, which end at the accuracy of a factor in double precision. A
//! system too close to singular for that is factored in double precision after all, so a pivot that is refused is
//! refused in double precision. K is computed in the precision of the rows, for leave-one-out values in double.
//!
//! Cost n^2 d for K and n^3 / 3 for the factor, as much again for leave-one-out values; memory n^2 numbers, a third as
//! many more in single precision for the factor that is refined.

use super::spectral::{Spectral, Spectrum};
use super::{LeaveOneOut, Problem, check_alpha};
use crate::control::{Monitor, Par};
use crate::error::{Error, Result};
use crate::kernels::gram_lower;
use crate::linalg::columns;
use crate::linalg::conjugate::{self, Tolerance};
use crate::linalg::dense::{self, Square};
use crate::simd::Real;

/// Rows below which a factor in double precision is cheap enough.
const SMALL: usize = 1000;
/// Most products with K before a factor in double precision is the better way.
const REFINEMENTS: u64 = 24;

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

/// Bytes that [`solve`] takes beside the rows.
pub fn bytes(n: usize, single: bool, options: Options) -> usize {
    match (options.leave_one_out || n < SMALL, single) {
        (true, _) => Square::<f64>::bytes(n),
        (false, true) => 2 * Square::<f32>::bytes(n),
        (false, false) => Square::<f32>::bytes(n) + Square::<f64>::bytes(n),
    }
}

/// Solves the problem for one alpha.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] where K + alpha I has a pivot that is not positive, [`Error::Cancelled`].
pub fn solve(
    problem: &Problem<'_>,
    alpha: f64,
    options: Options,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Solution> {
    problem.check()?;
    check_alpha(alpha)?;
    if !options.leave_one_out && problem.rows.rows() >= SMALL {
        let refined = if problem.rows.is_f64() {
            refined::<f64>(problem, alpha, monitor, par)?
        } else {
            refined::<f32>(problem, alpha, monitor, par)?
        };
        if let Some(solution) = refined {
            return Ok(solution);
        }
    }
    let (mut k, diagonal) = kernel_matrix::<f64>(problem, monitor, par)?;
    let (n, stride) = (k.len(), k.stride());
    for i in 0..n {
        k.values_mut()[i * stride + i] += problem.shift(alpha, i);
    }
    factored(problem, k, diagonal, options, monitor, par)
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
    /// Mean of the outputs' generalised cross-validation scores.
    pub gcv: f64,
}

/// Solves for several alphas and keeps the solution with the least leave-one-out error, by rate or squared; the larger
/// alpha wins a tie. An alpha whose system is not positive definite has errors that are not numbers.
///
/// K is computed once; each alpha costs a factor and its inverse, or two passes over the eigenvectors where a spectrum is
/// given. A decomposition takes as long as 7 of the former for 1,000 rows, and cannot be interrupted.
///
/// # Errors
/// As [`solve`], [`Error::NotPositiveDefinite`] where no alpha has a solution.
pub fn solve_path(
    problem: &Problem<'_>,
    alphas: &[f64],
    by_rate: bool,
    spectrum: Option<Spectrum<'_>>,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<(Vec<PathPoint>, usize, Solution)> {
    problem.check()?;
    for &alpha in alphas {
        check_alpha(alpha)?;
    }
    let (k, diagonal) = kernel_matrix::<f64>(problem, monitor, par)?;
    let spectral = spectrum.map(|spectrum| Spectral::new(spectrum, problem)).transpose()?;
    let options = Options { leave_one_out: true };
    let mut best: Option<(usize, Solution, (f64, f64))> = None;
    let (mut points, mut refused) = (Vec::with_capacity(alphas.len()), None);
    for (place, &alpha) in alphas.iter().enumerate() {
        let nothing = PathPoint { alpha, squared_error: f64::NAN, error_rate: f64::NAN, gcv: f64::NAN };
        monitor.go_on("path", place, alphas.len())?;
        let known = spectral.as_ref().and_then(|spectral| spectral.solve(problem, alpha, &diagonal, par));
        let solution = known.map_or_else(
            || {
                let shifted = k.shifted::<f64>(|i| problem.shift(alpha, i), par);
                factored(problem, shifted, diagonal.clone(), options, monitor, par)
            },
            Ok,
        );
        let solution = match solution {
            Err(error @ Error::NotPositiveDefinite { .. }) => {
                points.push(nothing);
                refused = Some(error);
                continue;
            }
            other => other?,
        };
        let Some(estimate) = &solution.leave_one_out else { continue };
        let (squared_error, error_rate) = estimate.errors(problem);
        let gcv = estimate.gcv.iter().sum::<f64>() / problem.outputs as f64;
        points.push(PathPoint { alpha, squared_error, error_rate, gcv });
        let score = if by_rate { (error_rate, squared_error) } else { (squared_error, 0.0) };
        let better = best.as_ref().is_none_or(|(at, _, least)| {
            score < *least || (score == *least && alpha > alphas[*at]) || least.0.is_nan()
        });
        if better {
            best = Some((place, solution, score));
        }
    }
    match (best, refused) {
        (Some((place, solution, _)), _) => Ok((points, place, solution)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::param("alphas", "[]", "at least one number")),
    }
}

/// The solution with A = K + alpha I, which is lost.
fn factored(
    problem: &Problem<'_>,
    mut k: Square<f64>,
    diagonal: Vec<f64>,
    options: Options,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Solution> {
    dense::factor(&mut k, monitor, par)?;
    let solved = Bordered::targets(problem);
    let n = problem.rows.rows();
    let mut panels = columns::to_panels::<f64>(&solved.values, n, solved.columns);
    columns::solve(&k, &mut panels, par);
    let mut values = vec![0.0; solved.values.len()];
    columns::from_panels(&panels, &mut values, n, solved.columns);
    let inverse =
        if options.leave_one_out { Some(dense::inverse_diagonal(&mut k, monitor, par)?) } else { None };
    Ok(Bordered { values, ..solved }.solution(problem, diagonal, inverse))
}

/// The lower triangle of K, and its diagonal in double precision.
pub(super) fn kernel_matrix<T: Real>(
    problem: &Problem<'_>,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<(Square<T>, Vec<f64>)> {
    let n = problem.rows.rows();
    let mut k = Square::<T>::new(n);
    let stride = k.stride();
    gram_lower(problem.kernel, problem.rows, k.values_mut(), stride, monitor, par)?;
    let diagonal = (0..n).map(|i| k.values()[i * stride + i].to_f64()).collect();
    Ok((k, diagonal))
}

/// A factor in single precision, refined; `None` where that does not reach the accuracy.
fn refined<T: Real>(
    problem: &Problem<'_>,
    alpha: f64,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Option<Solution>> {
    let (k, diagonal) = kernel_matrix::<T>(problem, monitor, par)?;
    let mut l = k.shifted::<f32>(|i| problem.shift(alpha, i), par);
    match dense::factor(&mut l, monitor, par) {
        Err(Error::NotPositiveDefinite { .. }) => return Ok(None),
        other => other?,
    }
    let b = Bordered::targets(problem);
    let (n, q) = (problem.rows.rows(), b.columns);
    let mut values = vec![0.0; n * q];
    let apply = |p: &[f64], out: &mut [f64]| {
        let panels = columns::to_panels::<f64>(p, n, q);
        let mut product = vec![0.0; panels.len()];
        columns::multiply(&k, |i| problem.shift(alpha, i), &panels, &mut product, par);
        columns::from_panels(&product, out, n, q);
        Ok(())
    };
    let precondition = |r: &[f64], out: &mut [f64]| {
        // Residuals shrink far below what single precision holds beside its largest numbers: solve for unit ones.
        let mut size = vec![0.0_f64; q];
        for line in r.chunks_exact(q) {
            size.iter_mut().zip(line).for_each(|(size, r)| *size = size.max(r.abs()));
        }
        let scaled: Vec<f64> = r
            .iter()
            .enumerate()
            .map(|(i, r)| if size[i % q] > 0.0 { r / size[i % q] } else { 0.0 })
            .collect();
        let mut panels = columns::to_panels::<f32>(&scaled, n, q);
        columns::solve(&l, &mut panels, par);
        columns::from_panels(&panels, out, n, q);
        out.iter_mut().enumerate().for_each(|(i, v)| *v *= size[i % q]);
        Ok(())
    };
    // The rounding of a sum of n products: a residual computed in double precision is hardly smaller, and a few times
    // that is what a factor in double precision leaves.
    let rounding = 2.0 * f64::EPSILON * (n as f64).sqrt();
    let tolerance = Tolerance { relative: 8.0 * rounding, backward: rounding };
    let outcome =
        conjugate::solve(&b.values, &mut values, q, tolerance, REFINEMENTS, apply, precondition, monitor)?;
    match outcome.reason {
        crate::control::StopReason::Converged => {}
        crate::control::StopReason::Interrupted | crate::control::StopReason::MaxTime => {
            return Err(Error::Cancelled);
        }
        // What rounding alone leaves is what a factor in double precision leaves, too.
        _ if outcome.residuals.iter().all(|r| *r <= 16.0 * rounding) => {}
        _ => return Ok(None),
    }
    Ok(Some(Bordered { values, ..b }.solution(problem, diagonal, None)))
}

/// Targets, with a column of ones where an intercept is wanted; their solutions after them.
pub(super) struct Bordered {
    pub(super) values: Vec<f64>,
    pub(super) columns: usize,
}

impl Bordered {
    pub(super) fn targets(problem: &Problem<'_>) -> Self {
        let q = problem.outputs;
        if !problem.fit_intercept {
            return Self { values: problem.targets.to_vec(), columns: q };
        }
        let mut values = Vec::with_capacity(problem.rows.rows() * (q + 1));
        for line in problem.targets.chunks_exact(q) {
            values.extend_from_slice(line);
            values.push(1.0);
        }
        Self { values, columns: q + 1 }
    }

    /// From G (Y, 1) the solution, with leave-one-out values where the diagonal of G is given.
    pub(super) fn solution(
        self,
        problem: &Problem<'_>,
        diagonal: Vec<f64>,
        inverse: Option<Vec<f64>>,
    ) -> Solution {
        let (coefficients, intercepts, ones) = self.split(problem);
        let leave_one_out = inverse.map(|mut inverse| {
            if let Some(ones) = ones {
                let total: f64 = ones.iter().sum();
                inverse.iter_mut().zip(&ones).for_each(|(g, one)| *g -= one * one / total);
            }
            LeaveOneOut::new(problem.targets, &coefficients, inverse, problem.outputs, problem.weights)
        });
        Solution { coefficients, intercepts, leave_one_out, diagonal }
    }

    /// From G (Y, 1): coefficients, intercepts, and G 1 where there is an intercept.
    pub(super) fn split(self, problem: &Problem<'_>) -> (Vec<f64>, Vec<f64>, Option<Vec<f64>>) {
        let q = problem.outputs;
        if !problem.fit_intercept {
            return (self.values, vec![0.0; q], None);
        }
        let ones: Vec<f64> = self.values.iter().skip(q).step_by(q + 1).copied().collect();
        let total: f64 = ones.iter().sum();
        let intercepts: Vec<f64> =
            (0..q).map(|j| self.values.iter().skip(j).step_by(q + 1).sum::<f64>() / total).collect();
        let mut coefficients = Vec::with_capacity(ones.len() * q);
        for (line, one) in self.values.chunks_exact(q + 1).zip(&ones) {
            coefficients.extend(line[..q].iter().zip(&intercepts).map(|(g, b)| g - b * one));
        }
        (coefficients, intercepts, Some(ones))
    }
}
