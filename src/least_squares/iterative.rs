//! (K + alpha I) c = y by conjugate gradients, K never stored (Rifkin 2002, appendix C).
//!
//! All outputs share every kernel value of a product. The preconditioner is the matrix of a low rank approximation,
//! P = F F' + alpha I with F = K_lm L_mm^-T for points drawn at random, inverted by Woodbury's formula:
//!
//! ```text
//! P^-1 r = (r - F (F'F + alpha I)^-1 F' r) / alpha
//! ```
//!
//! It removes the largest eigenvalues of K, on which the number of iterations depends. Cost n^2 d an
//! iteration; memory n m numbers for the preconditioner. Where rows have weights, K is S K S and F is S F: see
//! `iteration`.
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::least_squares::iterative::{RandomPoints, solve};
//! use svmarrow::least_squares::{Problem, Stopping, exact};
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
//! let points = RandomPoints { count: 10, seed: 0 };
//! let found = solve(&problem, 0.1, Stopping::new(1e-10), points, Context::default())?;
//! let same = exact::solve(&problem, 0.1, false, Context::default())?;
//! assert!((found.coefficients - same.coefficients).iter().all(|difference| difference.abs() < 1e-6));
//! # Ok::<(), svmarrow::Error>(())
//! ```

use super::centre::about_centre;
use super::iteration::{Stopping, WeightRoots, conjugate_gradients};
use super::problem::{Problem, kernel_matrix, rows_at_once};
use crate::context::{Budget, Context, Interruption, Stop};
use crate::data::{Rows, flat, matrix};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, Kernel, KernelFunction, PackedVectors, diagonal};
use crate::linalg::columns;
use crate::linalg::dense::{self, RowSolver, Square, subtract_gram};
use crate::memory::{self, try_vec};
use crate::random::Random;
use crate::simd::micro::panel_width;
use crate::simd::panel::{Layout, subtract_product};
use ndarray::Array2;

/// Kernel values times features between two checks of the monitor.
const WORK_PER_CHECK: usize = 1_000_000_000;

/// The points of the preconditioner.
#[derive(Debug, Clone, Copy)]
pub struct RandomPoints {
    /// The number of points; 0 for no preconditioner.
    pub count: usize,
    /// Seed of the draw.
    pub seed: u64,
}

/// Coefficients and their residual.
#[derive(Debug, Clone)]
pub struct IterativeSolution {
    /// c, (n, q).
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// k(x_i, x_i), (n,), of the rows less their center for the linear kernel with an intercept.
    pub diagonal: Vec<f64>,
    /// The end of the iteration: products with the system's matrix, and the largest relative residual as the gap.
    pub stop: Stop,
}

/// Solves the problem for one alpha above zero.
///
/// # Errors
/// [`Error::Param`] for kernels that are not computed from rows, [`Error::Stopped`] before there are coefficients.
pub fn solve(
    problem: &Problem<'_>,
    alpha: f64,
    stopping: Stopping,
    points: RandomPoints,
    ctx: Context<'_>,
) -> Result<IterativeSolution> {
    problem.check_iterative(alpha)?;
    let KernelFunction::BuiltIn(kernel) = problem.kernel else {
        return Err(Error::param("kernel", "a function", "a built-in kernel for conjugate gradients"));
    };
    if matches!(kernel, Kernel::Precomputed) {
        return Err(Error::param("kernel", "precomputed", "computed from rows for conjugate gradients"));
    }
    let solve = |problem: &Problem<'_>| solve_given(problem, kernel, alpha, stopping, points, ctx);
    about_centre(problem, solve, |solution| (solution.coefficients.view(), &mut solution.intercepts))
}

/// Returns the solution for the rows as they are.
fn solve_given(
    problem: &Problem<'_>,
    kernel: Kernel,
    alpha: f64,
    stopping: Stopping,
    points: RandomPoints,
    ctx: Context<'_>,
) -> Result<IterativeSolution> {
    let (rows, roots) = (problem.rows, WeightRoots::new(problem));
    let budget = Budget::new(ctx.monitor(), None, stopping.max_time);
    let ctx = ctx.with_monitor(&budget);
    let preconditioner = match Preconditioner::new(kernel, (rows, &roots), alpha, points, ctx) {
        // The iteration will end at its first check.
        Err(Error::Stopped(Interruption::MaxTime)) => Preconditioner::none(alpha),
        other => other?,
    };
    let mut product = Product { kernel, rows: rows.reborrow(), roots: &roots, alpha, ctx, evaluator: None };
    let (coefficients, intercepts, stop) = conjugate_gradients(
        problem,
        alpha,
        &roots,
        stopping,
        |p, out, q| product.apply(p, out, q),
        |r, out, q| preconditioner.apply(r, out, q, ctx),
        ctx,
    )?;
    Ok(IterativeSolution { coefficients, intercepts, diagonal: diagonal(&kernel, rows), stop })
}

/// Computes (S K S + alpha I) P in the precision of the rows, one block of rows at a time.
struct Product<'a> {
    kernel: Kernel,
    rows: Rows<'a>,
    roots: &'a WeightRoots,
    alpha: f64,
    ctx: Context<'a>,
    /// The rows, packed at the first product.
    evaluator: Option<Evaluator>,
}

impl Product<'_> {
    fn apply(&mut self, p: &[f64], out: &mut [f64], q: usize) -> Result<()> {
        let (n, d) = (self.rows.rows(), self.rows.cols());
        let zeros = vec![0.0; q];
        let scaled = self.roots.scaled(p, q)?;
        let coefficients = matrix((n, q), &scaled)?;
        let evaluator = match &mut self.evaluator {
            Some(evaluator) => {
                evaluator.set_coefficients(coefficients, &zeros)?;
                evaluator
            }
            None => self.evaluator.insert(Evaluator::new(&ExpansionView::new(
                self.kernel,
                self.rows,
                coefficients,
                &zeros,
            )?)?),
        };
        let block = (WORK_PER_CHECK / (n * (d + 16))).clamp(96, 16384);
        for from in (0..n).step_by(block) {
            let to = n.min(from + block);
            self.ctx.check("product", from, n)?;
            let mut values = flat(evaluator.evaluate(self.rows.slice(from..to), self.ctx.silent())?);
            self.roots.scale(from, &mut values, q);
            for ((out, v), p) in out[from * q..to * q].iter_mut().zip(values).zip(&p[from * q..to * q]) {
                *out = v + self.alpha * p;
            }
        }
        Ok(())
    }
}

/// F, and the factor of F'F + alpha I.
struct Preconditioner {
    alpha: f64,
    features: Vec<f64>,
    stride: usize,
    factor: Option<Square<f64>>,
}

impl Preconditioner {
    /// Returns the preconditioner that leaves residuals unchanged.
    fn none(alpha: f64) -> Self {
        Self { alpha, features: Vec::new(), stride: 0, factor: None }
    }

    fn new(
        kernel: Kernel,
        (rows, roots): (Rows<'_>, &WeightRoots),
        alpha: f64,
        drawn: RandomPoints,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (n, m) = (rows.rows(), drawn.count.min(rows.rows()));
        if m == 0 {
            return Ok(Self::none(alpha));
        }
        let mut chosen = Random::new(drawn.seed).sample(n, m);
        chosen.sort_unstable();
        let points = rows.gather(&chosen)?;
        let kernel_values = kernel_matrix::<f64>(kernel.into(), points.view(), ctx)?;
        // The shift makes dependent points harmless; it changes the preconditioner alone.
        let trace: f64 = kernel_values.diagonal().sum();
        let mut shifted = kernel_values.shifted::<f64>(|_| 1e-10 * trace, ctx)?;
        match dense::factor(&mut shifted, ctx) {
            // A kernel that is not positive definite has no preconditioner.
            Err(Error::NotPositiveDefinite { .. }) => return Ok(Self::none(alpha)),
            other => other?,
        }
        let solver = RowSolver::new(&shifted, ctx)?;
        let cross = PackedVectors::<f64>::new(kernel, points.view(), ctx)?;
        let stride = cross.stride();
        let mut features = memory::try_zeros("the preconditioner", n.saturating_mul(stride))?;
        let mut inner = Square::<f64>::new(m)?;
        let count = rows_at_once(m, 4096);
        for (block, lines) in features.chunks_mut(count * stride).enumerate() {
            ctx.check("precondition", block * count, n)?;
            cross.fill(rows, block * count, lines, ctx)?;
            ctx.for_each_chunk(lines, 96 * stride, |_, lines| solver.substitute(lines, stride));
            roots.scale(block * count, lines, stride);
            subtract_gram(&mut inner, lines, stride, ctx)?;
        }
        for v in inner.values_mut().iter_mut() {
            *v = -*v;
        }
        inner.shift(|_| alpha);
        dense::factor(&mut inner, ctx)?;
        Ok(Self { alpha, features, stride, factor: Some(inner) })
    }

    fn apply(&self, r: &[f64], out: &mut [f64], q: usize, ctx: Context<'_>) -> Result<()> {
        let Some(factor) = &self.factor else {
            out.copy_from_slice(r);
            return Ok(());
        };
        let (n, m, width) = (r.len() / q, factor.len(), panel_width::<f64>());
        let mut panels = columns::to_panels::<f64>(r, n, q)?;
        let mut inner = try_vec![0.0; panels.len() / n * m]?;
        for (r, t) in panels.chunks_exact(n * width).zip(inner.chunks_exact_mut(m * width)) {
            ctx.for_each_chunk(t, 48 * width, |task, t| {
                let at = Layout { start: task * 48, row: 1, step: self.stride };
                subtract_product(&self.features, at, (t.len() / width, n), r, t, width);
            });
        }
        columns::solve(factor, &mut inner, ctx)?;
        // F'r came out with the other sign.
        for v in &mut inner {
            *v = -*v;
        }
        for (r, t) in panels.chunks_exact_mut(n * width).zip(inner.chunks_exact(m * width)) {
            ctx.for_each_chunk(r, 192 * width, |task, r| {
                let at = Layout { start: task * 192 * self.stride, row: self.stride, step: 1 };
                subtract_product(&self.features, at, (r.len() / width, m), t, r, width);
            });
        }
        columns::from_panels(&panels, out, n, q);
        for v in out {
            *v /= self.alpha;
        }
        Ok(())
    }
}
