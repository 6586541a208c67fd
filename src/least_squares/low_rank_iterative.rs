//! The low-rank system of `low_rank` by preconditioned conjugate gradients (Rudi, Carratino and Rosasco 2017, "FALKON"; Meanti,
//! Carratino, Rosasco and Rudi 2020):
//!
//! ```text
//! (K_ml W K_lm + alpha (K_mm + jitter I)) c = K_ml W y
//! ```
//!
//! With K_mm + jitter I = L L' and F = K_lm L^-T the system is A b = F'W y, A = F'WF + alpha I, b = L' c. The preconditioner is the
//! same matrix for s = 4 m of the rows: M = F_s' D F_s + alpha I = R R', D the weights of the rows scaled to those of all rows. The
//! iteration is that of R^-1 A R^-T g = R^-1 F'W y with b = R^-T g. An intercept that is not penalized takes the weighted means out
//! of the columns of F and F_s, and out of y.
//!
//! The bound: the rows of the sample are among all rows, so that A >= share M, share the least ratio of a row's weight and its
//! weight in D: s / n for equal weights. Let f be the outputs of an iterate with the residual r of the last system, and f* those of
//! the solution. Then
//!
//! ```text
//! sum_i w_i (f - f*)(x_i)^2 + alpha ||f - f*||^2 = r'(R^-1 A R^-T)^-1 r <= ||r||^2 / share
//! ```
//!
//! so that ||r|| <= tolerance share^1/2 ||y|| bounds the difference of the outputs on the training rows by `tolerance` times the
//! length of the targets, both weighted. The iteration ends there, with a residual that is computed from the solution.
//!
//! M from the m points instead of 4 m rows (FALKON) is cheaper, but with m eigenvalues that count it leaves a condition number in
//! the hundreds, where 4 m rows leave 9 (the law of Marchenko and Pastur), and it needs points that are drawn at random.
//!
//! The jitter makes the factor exist. It is at least the rounding error of K_mm, and otherwise a small share of alpha m / n, below
//! which eigenvalues of K_mm do not count: directions of smaller eigenvalues would turn rounding errors of the products into
//! large coefficients. In single precision it is also the size of the errors of all rows together. Where a kernel has fewer
//! dimensions than points and alpha is small, rounding may leave the bound at some 1e-5, while outputs differ by 1e-12.
//!
//! Cost: a pass costs n m (d + 2 q) multiply-adds, and three or four passes gain a decimal digit; 4 m^3 for the preconditioner. The
//! direct solution costs n m^2 / 2. Memory: 2.5 m^2 numbers and a block of kernel values for each thread.
//!
//! ```
//! use ndarray::{Array2, s};
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::least_squares::Stopping;
//! use svmarrow::least_squares::low_rank::Piece;
//! use svmarrow::least_squares::low_rank_iterative::{Points, solve};
//!
//! let x = Array2::from_shape_fn((40, 1), |(i, _)| 0.1 * i as f64);
//! let y = x.mapv(f64::sin);
//! let points = Points { kernel: Kernel::Rbf { gamma: 1.0 }, vectors: x.slice(s![..;5, ..]).try_into()? };
//! let piece = Piece { rows: Rows::try_from(&x)?, targets: y.view(), weights: None };
//! let solution = solve(points, piece, 0.1, false, Stopping::new(1e-6), Context::default())?;
//! assert_eq!(solution.coefficients.dim(), (8, 1));
//! assert!(solution.stop.gap <= 1e-6);
//! # Ok::<(), svmarrow::Error>(())
//! ```

use super::iteration::Stopping;
use super::low_rank::{Piece, check_piece};
use super::normal_product::KernelProducts;
use super::problem::{check_alpha, kernel_matrix, rows_at_once};
use crate::context::{Budget, Context, Interruption, Stop, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, PackedVectors, diagonal};
use crate::linalg::columns;
use crate::linalg::conjugate::{self, Limits};
use crate::linalg::dense::{self, RowSolver, Square, subtract_gram};
use crate::memory::{self, try_matrix};
use crate::random::Random;
use crate::simd::Real;
use crate::simd::blas::Stored;
use ndarray::Array2;

/// Context reported when an allocation fails.
const ITERATION: &str = "conjugate gradients";
/// Jitter in units of the sum of k(z, z), the rounding error of a factorization.
const MIN_JITTER: f64 = 1e-15;
/// Maximum jitter in the same units, beyond which the kernel is not positive definite.
const MAX_JITTER: f64 = 1e-9;
/// Jitter in units of alpha m / n, at most `MAX_CHOSEN_JITTER` times the sum of k(z, z).
const JITTER_SHARE: f64 = 1e-9;
const MAX_CHOSEN_JITTER: f64 = 1e-11;
/// Minimum shift of the preconditioner in units of m times its trace, so that its factor exists.
const MIN_SHIFT: f64 = 1e-15;
/// Maximum rounding error of m^1/2 kernel values in single precision, in units of alpha m / n: the jitter that belongs to it is then at
/// most a millionth of the eigenvalues that count.
const MAX_SINGLE_ERROR: f64 = 1e-3;
/// Number of rows of the preconditioner for each point, and their seed.
const ROWS_PER_POINT: usize = 4;
const SEED: u64 = 0;
/// Maximum number of rows of the preconditioner whose features are in memory at the same time.
const MAX_BLOCK_ROWS: usize = 1024;

/// The m points with coefficients, and their kernel.
#[derive(Clone, Copy)]
pub struct Points<'a> {
    /// The kernel, computed between the points and the rows.
    pub kernel: Kernel,
    /// The points z, (m, d).
    pub vectors: Rows<'a>,
}

/// The solution of the iteration.
#[derive(Debug, Clone)]
pub struct LowRankSolution {
    /// c, (m, q).
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// The number added to the diagonal of K_mm.
    pub jitter: f64,
    /// The end of the iteration: products with the matrix, and as the gap the bound of the differences between the outputs on
    /// the training rows and those of the exact solution, their root mean square relative to that of the targets.
    pub stop: Stop,
}

/// Solves the system for an alpha above zero.
///
/// # Errors
/// The errors of [`Sums::add`](super::low_rank::Sums::add); [`Error::NotPositiveDefinite`] for kernels that are not positive
/// definite.
pub fn solve(
    points: Points<'_>,
    piece: Piece<'_>,
    alpha: f64,
    fit_intercept: bool,
    stopping: Stopping,
    ctx: Context<'_>,
) -> Result<LowRankSolution> {
    let Points { kernel, vectors } = points;
    check_alpha(alpha)?;
    Error::check_param(alpha > 0.0, "alpha", alpha, "above 0 for conjugate gradients")?;
    Error::check_param(piece.rows.rows() > 0, "rows", 0, "at least 1 before a solution is asked for")?;
    let is_single = check_piece(kernel, vectors, piece)?;
    let budget = Budget::new(ctx.monitor(), None, stopping.max_time);
    let ctx = ctx.with_monitor(&budget);
    let targets = ScaledTargets::new(piece, fit_intercept);
    let (m, rounding) = (vectors.rows() as f64, f64::from(f32::EPSILON));
    let largest = diagonal(&kernel, vectors).into_iter().fold(0.0, f64::max);
    // Rounding errors of single precision act as a penalty: sums over all rows of their squares, in units of alpha.
    let error = rounding * largest;
    let is_single = is_single && error * m.sqrt() <= MAX_SINGLE_ERROR * alpha * m / targets.weight;
    let noise = if is_single { targets.weight * error * error / alpha } else { 0.0 };
    let system = match System::new(points, &targets, (alpha, noise), fit_intercept, ctx) {
        Err(Error::Stopped(Interruption::MaxTime)) => return targets.constant(vectors.rows()),
        other => other?,
    };
    if is_single {
        solve_with::<f32>(points, &targets, &system, stopping, ctx)
    } else {
        solve_with::<f64>(points, &targets, &system, stopping, ctx)
    }
}

/// Targets in units of their lengths, and weights.
struct ScaledTargets<'a> {
    piece: Piece<'a>,
    /// Means of the targets; 0 without an intercept.
    means: Vec<f64>,
    /// The weighted root of the sum of squares of targets less their mean, 1 where that is zero.
    lengths: Vec<f64>,
    /// The weight of all rows.
    weight: f64,
}

impl<'a> ScaledTargets<'a> {
    fn new(piece: Piece<'a>, fit_intercept: bool) -> Self {
        let row_weight = |i: usize| piece.weights.map_or(1.0, |weights| weights[i]);
        let (n, q) = piece.targets.dim();
        let weight: f64 = (0..n).map(row_weight).sum();
        let (mut means, mut lengths) = (vec![0.0; q], vec![1.0; q]);
        for (j, column) in piece.targets.columns().into_iter().enumerate() {
            if fit_intercept {
                means[j] = column.iter().enumerate().map(|(i, y)| row_weight(i) / weight * y).sum();
            }
            let largest = column.iter().fold(0.0_f64, |largest, y| largest.max((y - means[j]).abs()));
            if largest > 0.0 {
                let square = |(i, y): (usize, &f64)| row_weight(i) * ((y - means[j]) / largest).powi(2);
                lengths[j] = largest * column.iter().enumerate().map(square).sum::<f64>().sqrt();
            }
        }
        Self { piece, means, lengths, weight }
    }

    fn row_weight(&self, i: usize) -> f64 {
        self.piece.weights.map_or(1.0, |weights| weights[i])
    }

    /// Returns the constant outputs of an iteration without a step: the outputs of the solution are at most as long as the targets.
    fn constant(&self, m: usize) -> Result<LowRankSolution> {
        let coefficients = memory::try_zero_matrix(ITERATION, (m, self.means.len()))?;
        let stop = Stop { reason: StopReason::MaxTime, iterations: 0, gap: 1.0 };
        Ok(LowRankSolution { coefficients, intercepts: self.means.clone(), jitter: 0.0, stop })
    }
}

/// L and R.
struct System {
    factor: Square<f64>,
    preconditioner: Square<f64>,
    /// A >= share M.
    share: f64,
    alpha: f64,
    jitter: f64,
    fit_intercept: bool,
}

impl System {
    fn new(
        points: Points<'_>,
        targets: &ScaledTargets<'_>,
        (alpha, noise): (f64, f64),
        fit_intercept: bool,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let m = points.vectors.rows();
        points.vectors.check_finite("vectors")?;
        let kernel_values = kernel_matrix::<f64>(points.kernel.into(), points.vectors, ctx)?;
        let largest = kernel_values.diagonal().fold(0.0, f64::max);
        let scale = m as f64 * largest;
        let chosen = (JITTER_SHARE * alpha * m as f64 / targets.weight).min(MAX_CHOSEN_JITTER * scale);
        // Where all kernel values are zero, so are the coefficients.
        let mut jitter = if largest == 0.0 { 1.0 } else { chosen.max(noise).max(MIN_JITTER * scale) };
        let factor = loop {
            let mut factor = kernel_values.shifted::<f64>(|_| jitter, ctx)?;
            match dense::factor(&mut factor, ctx) {
                Ok(()) => break factor,
                Err(Error::NotPositiveDefinite { .. }) if jitter < MAX_JITTER * scale => jitter *= 10.0,
                Err(error) => return Err(error),
            }
        };
        drop(kernel_values);
        let (preconditioner, share) = preconditioner(points, &factor, targets, (alpha, fit_intercept), ctx)?;
        Ok(Self { factor, preconditioner, share, alpha, jitter, fit_intercept })
    }

    /// Replaces G (m, q) by B = R^-T G, and returns C = L^-T B.
    fn coefficients(&self, values: &mut [f64], q: usize, ctx: Context<'_>) -> Result<Vec<f64>> {
        let m = self.factor.len();
        let mut panels = columns::to_panels::<f64>(values, m, q)?;
        columns::solve_transposed(&self.preconditioner, &mut panels, ctx)?;
        columns::from_panels(&panels, values, m, q);
        columns::solve_transposed(&self.factor, &mut panels, ctx)?;
        let mut coefficients = memory::try_zeros(ITERATION, m * q)?;
        columns::from_panels(&panels, &mut coefficients, m, q);
        Ok(coefficients)
    }

    /// Writes R^-1 (L^-1 V + alpha B), (m, q); V without B is a right-hand side.
    fn project(
        &self,
        v: &[f64],
        b: Option<&[f64]>,
        out: &mut [f64],
        q: usize,
        ctx: Context<'_>,
    ) -> Result<()> {
        let m = self.factor.len();
        let mut panels = columns::to_panels::<f64>(v, m, q)?;
        columns::solve_lower(&self.factor, &mut panels, ctx)?;
        if let Some(b) = b {
            let b = columns::to_panels::<f64>(b, m, q)?;
            panels.iter_mut().zip(&b).for_each(|(v, b)| *v += self.alpha * b);
        }
        columns::solve_lower(&self.preconditioner, &mut panels, ctx)?;
        columns::from_panels(&panels, out, m, q);
        Ok(())
    }
}

/// Returns rows drawn in proportion to their weights, a row from each of `count` equal shares of the weight, in order; the weight of
/// each in the sample; and the least ratio of its weight and that in the sample.
fn weighted_sample(targets: &ScaledTargets<'_>, count: usize) -> (Vec<usize>, Vec<f64>, f64) {
    let n = targets.piece.rows.rows();
    if count >= n {
        return ((0..n).collect(), (0..n).map(|i| targets.row_weight(i)).collect(), 1.0);
    }
    let (mut random, unit) = (Random::new(SEED), targets.weight / count as f64);
    let (mut rows, mut weights): (Vec<usize>, Vec<f64>) = (Vec::new(), Vec::new());
    let (mut row, mut end) = (0, targets.row_weight(0));
    for k in 0..count {
        let place = (k as f64 + random.uniform()) * unit;
        while end <= place && row + 1 < n {
            row += 1;
            end += targets.row_weight(row);
        }
        if rows.last() == Some(&row) {
            weights[rows.len() - 1] += unit;
        } else {
            rows.push(row);
            weights.push(unit);
        }
    }
    let ratios = rows.iter().zip(&weights).map(|(&i, weight)| targets.row_weight(i) / weight);
    let share = ratios.fold(1.0, f64::min);
    (rows, weights, share)
}

/// Returns the factor of F_s' D F_s + alpha I, with an intercept about the mean of the rows, and the share.
fn preconditioner(
    points: Points<'_>,
    factor: &Square<f64>,
    targets: &ScaledTargets<'_>,
    (alpha, fit_intercept): (f64, bool),
    ctx: Context<'_>,
) -> Result<(Square<f64>, f64)> {
    let m = factor.len();
    let (list, weights, share) = weighted_sample(targets, ROWS_PER_POINT * m);
    let sample = targets.piece.rows.gather(&list)?;
    let solver = RowSolver::new(factor, ctx)?;
    let cross = PackedVectors::<f64>::new(points.kernel, points.vectors, ctx)?;
    cross.check(sample.view())?;
    let (stride, at_once) = (cross.stride(), rows_at_once(m, MAX_BLOCK_ROWS));
    let mut out = Square::<f64>::new(m)?;
    let mut features: Vec<f64> = memory::try_zeros(ITERATION, at_once.min(list.len()) * stride)?;
    let mut sums = vec![0.0; stride];
    for from in (0..list.len()).step_by(at_once) {
        ctx.check("precondition", from, list.len())?;
        let count = (list.len() - from).min(at_once);
        let features = &mut features[..count * stride];
        cross.fill(sample.view(), from, features, ctx)?;
        ctx.for_each_chunk(features, 96 * stride, |_, lines| solver.substitute(lines, stride));
        for (line, weight) in features.chunks_exact_mut(stride).zip(&weights[from..]) {
            let root = weight.sqrt();
            for (v, sum) in line.iter_mut().zip(&mut sums) {
                *v *= root;
                *sum += root * *v;
            }
        }
        subtract_gram(&mut out, features, stride, ctx)?;
    }
    let lines = out.stride();
    let total: f64 = weights.iter().sum();
    for (i, line) in out.values_mut().chunks_exact_mut(lines).take(m).enumerate() {
        for (v, sum) in line.iter_mut().zip(&sums[..=i]) {
            let of_mean = if fit_intercept { sums[i] * sum / total } else { 0.0 };
            *v = -*v - of_mean;
        }
    }
    let trace: f64 = out.diagonal().sum();
    let shift = alpha.max(MIN_SHIFT * m as f64 * trace);
    out.shift(|_| shift);
    dense::factor(&mut out, ctx)?;
    Ok((out, share.min(alpha / shift)))
}

fn solve_with<T: Real + Stored>(
    points: Points<'_>,
    targets: &ScaledTargets<'_>,
    system: &System,
    stopping: Stopping,
    ctx: Context<'_>,
) -> Result<LowRankSolution> {
    let (m, q) = (points.vectors.rows(), targets.means.len());
    let packed = PackedVectors::<T>::new(points.kernel, points.vectors, ctx)?;
    packed.check(targets.piece.rows)?;
    let products = KernelProducts { vectors: packed, rows: targets.piece.rows, m };
    let (mut right, means) = match right_hand_sides(&products, targets, system, ctx) {
        Err(Error::Stopped(Interruption::MaxTime)) => return targets.constant(m),
        other => other?,
    };
    let values = std::mem::take(&mut right);
    right = memory::try_zeros(ITERATION, m * q)?;
    system.project(&values, None, &mut right, q, ctx.silent())?;
    let mut solved: Vec<f64> = memory::try_zeros(ITERATION, m * q)?;
    let outcome = conjugate::solve(
        &right,
        &mut solved,
        q,
        Limits {
            relative: 0.0,
            absolute: stopping.tolerance * system.share.sqrt(),
            backward: 0.0,
            max_iterations: stopping.max_iterations,
        },
        |g, out| {
            let mut b = memory::try_to_vec(ITERATION, g)?;
            let c = system.coefficients(&mut b, q, ctx)?;
            let shifts = weighted_sums(&means, &c, q);
            let row = |i: usize, line: &mut [f64]| {
                let w = targets.row_weight(i);
                line.iter_mut().zip(&shifts).for_each(|(v, shift)| *v = w * (*v - shift));
            };
            let product = products.normal_product(Some(&c), q, row, ctx)?;
            system.project(&product, Some(&b), out, q, ctx)
        },
        |r, out| {
            out.copy_from_slice(r);
            Ok(())
        },
        ctx,
    )?;
    let mut residual = 0.0_f64;
    for (j, relative) in outcome.residuals.iter().enumerate() {
        let length = right.iter().skip(j).step_by(q).map(|v| v * v).sum::<f64>().sqrt();
        residual = residual.max(relative * length / system.share.sqrt());
    }
    // The model is that of the last step even if the time has run out.
    let solved = system.coefficients(&mut solved, q, ctx.silent())?;
    let coefficients = try_matrix((m, q), |(i, j)| solved[i * q + j] * targets.lengths[j])?;
    let mut intercepts = targets.means.clone();
    if system.fit_intercept {
        let shifts = weighted_sums(&means, &solved, q);
        intercepts
            .iter_mut()
            .zip(shifts.iter().zip(&targets.lengths))
            .for_each(|(b, (shift, length))| *b -= shift * length);
    }
    if !coefficients.iter().chain(&intercepts).all(|v| v.is_finite()) {
        let rule =
            "such that the solution stays within double precision: scale X or the targets, or raise alpha";
        return Err(Error::param("alpha", format!("{:e}", system.alpha), rule));
    }
    let stop = Stop { gap: residual, ..outcome.stop };
    Ok(LowRankSolution { coefficients, intercepts, jitter: system.jitter, stop })
}

/// Returns K_ml W Y for scaled targets (m, q), and the means of the kernel columns (m,), zeros without an intercept.
fn right_hand_sides<T: Real + Stored>(
    products: &KernelProducts<'_, T>,
    targets: &ScaledTargets<'_>,
    system: &System,
    ctx: Context<'_>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (m, q) = (products.m, targets.means.len());
    // W 1 is one more column.
    let columns = q + usize::from(system.fit_intercept);
    let row = |i: usize, line: &mut [f64]| {
        let w = targets.row_weight(i);
        for (j, v) in line.iter_mut().enumerate() {
            *v = if j < q {
                w * ((targets.piece.targets[[i, j]] - targets.means[j]) / targets.lengths[j])
            } else {
                w
            };
        }
    };
    let sums = products.normal_product(None, columns, row, ctx)?;
    let mut right = memory::try_zeros(ITERATION, m * q)?;
    let mut means = memory::try_zeros(ITERATION, m)?;
    for ((sums, right), mean) in sums.chunks_exact(columns).zip(right.chunks_exact_mut(q)).zip(&mut means) {
        right.copy_from_slice(&sums[..q]);
        *mean = sums.get(q).map_or(0.0, |sum| sum / targets.weight);
    }
    Ok((right, means))
}

/// Returns the sums of the columns of C (m, q), weighted.
fn weighted_sums(weights: &[f64], c: &[f64], q: usize) -> Vec<f64> {
    crate::simd::blas::row_times(weights, c, q)
}

#[cfg(test)]
mod tests {
    use super::super::low_rank::{Sums, System as DirectSystem};
    use super::*;
    use crate::data::to_csr;
    use crate::expansion::ExpansionView;
    use crate::kernels::Evaluator;

    const N: usize = 400;

    fn outputs(kernel: Kernel, vectors: Rows<'_>, c: &Array2<f64>, b: &[f64], rows: Rows<'_>) -> Array2<f64> {
        let view = ExpansionView::new(kernel, vectors, c.view(), b).unwrap();
        Evaluator::new(&view).unwrap().evaluate(rows, Context::SEQUENTIAL).unwrap()
    }

    #[test]
    fn outputs_are_within_the_bound_of_those_of_the_direct_solution() {
        let x = Array2::from_shape_fn((N, 3), |(i, k)| ((i * (k + 3)) as f64 * 0.37).sin() * 2.0);
        let y = Array2::from_shape_fn((N, 6), |(i, j)| (x[[i, 0]] * j as f64).cos() + x[[i, 1]] + 2.0);
        let weights: Vec<f64> = (0..N).map(|i| 0.5 + (i % 4) as f64).collect();
        let points: Vec<usize> = (0..40).map(|i| 9 * i).collect();
        let rows = Rows::try_from(&x).unwrap();
        let sparse = to_csr(rows, 3, |k| k);
        let vectors = rows.gather(&points).unwrap();
        let ctx = Context::default();
        let kernels = [
            Kernel::Linear,
            Kernel::Rbf { gamma: 0.4 },
            Kernel::Polynomial { degree: 2, gamma: 0.2, coef0: 1.0 },
        ];
        for kernel in kernels {
            for (fit_intercept, alpha) in [(false, 1e-3), (true, 1e-3), (false, 1.0), (true, 50.0)] {
                for (rows, weights) in [(rows, None), (sparse.view(), Some(&weights[..]))] {
                    let piece = Piece { rows, targets: y.view(), weights };
                    let mut sums = Sums::new(40, 6).unwrap();
                    sums.add(kernel, vectors.view(), piece, ctx).unwrap();
                    let direct =
                        DirectSystem::new(kernel, vectors.view(), &sums, alpha, fit_intercept, ctx).unwrap();
                    let (c, b) = direct.solve(&sums, ctx).unwrap();
                    let expected = outputs(kernel, vectors.view(), &c, &b, rows);
                    let points = Points { kernel, vectors: vectors.view() };
                    for tolerance in [1e-2, 1e-6] {
                        let stopping = Stopping::new(tolerance);
                        let solution = solve(points, piece, alpha, fit_intercept, stopping, ctx).unwrap();
                        // Rounding outside the span of linear and polynomial kernels may end the iteration earlier.
                        assert!(solution.stop.gap <= tolerance.max(1e-4), "{:?}", solution.stop);
                        let values = outputs(
                            kernel,
                            vectors.view(),
                            &solution.coefficients,
                            &solution.intercepts,
                            rows,
                        );
                        let difference = (&values - &expected).mapv(|v| v * v).sum();
                        let size = y.mapv(|v| v * v).sum();
                        assert!((difference / size).sqrt() < 3.0 * tolerance, "{kernel:?} {alpha}");
                        let sequential =
                            solve(points, piece, alpha, fit_intercept, stopping, Context::SEQUENTIAL)
                                .unwrap();
                        assert_eq!(sequential.coefficients, solution.coefficients);
                    }
                }
            }
        }
    }

    #[test]
    fn single_precision_is_used_where_it_suffices() {
        let x = Array2::from_shape_fn((N, 3), |(i, k)| (((i * (k + 3)) as f32) * 0.37).sin());
        let y = Array2::from_shape_fn((N, 1), |(i, _)| f64::from(x[[i, 0]]));
        let rows = Rows::try_from(&x).unwrap();
        let points = Points { kernel: Kernel::Rbf { gamma: 0.4 }, vectors: rows.slice(0..60) };
        let piece = Piece { rows, targets: y.view(), weights: None };
        let mut jitters = Vec::new();
        // With hardly any penalty, rounding errors of single precision would be a larger one.
        for alpha in [1e-7, 1.0] {
            let solution =
                solve(points, piece, alpha, false, Stopping::new(1e-5), Context::default()).unwrap();
            jitters.push(solution.jitter);
            assert!(solution.stop.gap <= 1e-5, "{:?}", solution.stop);
        }
        assert!(jitters[0] < jitters[1]);
    }
}
