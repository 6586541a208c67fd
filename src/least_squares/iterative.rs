//! (K + alpha I) c = y by conjugate gradients, K never stored (Rifkin 2002, appendix C).
//!
//! All outputs share every kernel value of a product. The preconditioner is the matrix of a low rank approximation,
//! P = F F' + alpha I with F = K_lm L_mm^-T for points drawn at random, inverted by Woodbury's formula:
//!
//! ```text
//! P^-1 r = (r - F (F'F + alpha I)^-1 F' r) / alpha
//! ```
//!
//! It takes the largest eigenvalues of K out of the way, on which the number of iterations depends. Cost n^2 d an
//! iteration; memory n m numbers for the preconditioner.

use std::time::Duration;

use super::exact::Bordered;
use super::{Problem, check_alpha};
use crate::control::{Budget, Monitor, Par, StopReason};
use crate::data::{Rows, matrix};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{CrossKernel, Evaluator, Kernel, KernelFunction, diagonal, gram_lower};
use crate::linalg::columns;
use crate::linalg::conjugate::{self, Tolerance};
use crate::linalg::dense::{self, RowSolver, Square, subtract_gram};
use crate::random::Random;
use crate::simd::micro::panel_width;
use crate::simd::panel::{Layout, subtract_product};

/// Kernel values times features between two looks at the monitor.
const TICK: usize = 4_000_000_000;

/// When to stop, and how to start.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// ||y - (K + alpha I) c|| / ||y|| of every output.
    pub tolerance: f64,
    /// Most products with K.
    pub max_products: u64,
    /// Time after which no further product is begun, but for the one that tells the residual.
    pub max_time: Option<Duration>,
    /// Points of the preconditioner; 0 for none.
    pub points: usize,
    /// Seed of the points.
    pub seed: u64,
}

/// Coefficients, and how far they are from solving the system.
#[derive(Debug, Clone)]
pub struct Solution {
    /// c, (n, q) row-major.
    pub coefficients: Vec<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// k(x_i, x_i), (n,).
    pub diagonal: Vec<f64>,
    /// Products with K.
    pub products: u64,
    /// The largest relative residual of the systems solved, computed from the solution.
    pub residual: f64,
    /// Why the iteration ended.
    pub reason: StopReason,
}

/// Solves the problem for one alpha above zero.
///
/// # Errors
/// [`Error::Param`] for kernels that are not computed from rows, [`Error::Cancelled`] before there are coefficients.
pub fn solve(
    problem: &Problem<'_>,
    alpha: f64,
    options: Options,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Solution> {
    problem.check()?;
    problem.refuse_weights()?;
    check_alpha(alpha)?;
    let KernelFunction::BuiltIn(kernel) = problem.kernel else {
        return Err(Error::param("kernel", "a function", "a built-in kernel for conjugate gradients"));
    };
    if matches!(kernel, Kernel::Precomputed) {
        return Err(Error::param("kernel", "precomputed", "computed from rows for conjugate gradients"));
    }
    if alpha == 0.0 {
        return Err(Error::param("alpha", alpha, "above 0 for conjugate gradients"));
    }
    let b = Bordered::targets(problem);
    let (n, q) = (problem.rows.rows(), b.columns);
    let preconditioner = Preconditioner::new(kernel, problem.rows, alpha, options, monitor, par)?;
    let mut values = vec![0.0; n * q];
    let product = Product { kernel, rows: problem.rows.reborrow(), alpha, outputs: q, monitor, par };
    let tolerance = Tolerance { relative: options.tolerance, backward: 0.0 };
    let outcome = conjugate::solve(
        &b.values,
        &mut values,
        q,
        tolerance,
        options.max_products,
        |p, out| product.apply(p, out),
        |r, out| {
            preconditioner.apply(r, out, q, par);
            Ok(())
        },
        &Budget::new(monitor, None, options.max_time),
    )?;
    let (coefficients, intercepts, _) = Bordered { values, ..b }.split(problem);
    Ok(Solution {
        coefficients,
        intercepts,
        diagonal: diagonal(&kernel, problem.rows),
        products: outcome.products,
        residual: outcome.residuals.iter().copied().fold(0.0, f64::max),
        reason: outcome.reason,
    })
}

/// (K + alpha I) P in the precision of the rows, a block of rows after the other.
struct Product<'a> {
    kernel: Kernel,
    rows: Rows<'a>,
    alpha: f64,
    outputs: usize,
    monitor: &'a dyn Monitor,
    par: Par,
}

impl Product<'_> {
    fn apply(&self, p: &[f64], out: &mut [f64]) -> Result<()> {
        let (n, d, q) = (self.rows.rows(), self.rows.cols(), self.outputs);
        let zeros = vec![0.0; q];
        let evaluator =
            Evaluator::new(&ExpansionView::new(self.kernel, self.rows, matrix((n, q), p)?, &zeros)?)?;
        let block = (TICK / (n * (d + 16))).clamp(96, 16384);
        for from in (0..n).step_by(block) {
            let to = n.min(from + block);
            self.monitor.go_on("product", from, n)?;
            let rows = self.rows.gather(&(from..to).collect::<Vec<_>>());
            let values = evaluator.evaluate(rows.view(), self.par)?;
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
    fn new(
        kernel: Kernel,
        rows: Rows<'_>,
        alpha: f64,
        options: Options,
        monitor: &dyn Monitor,
        par: Par,
    ) -> Result<Self> {
        let (n, m) = (rows.rows(), options.points.min(rows.rows()));
        if m == 0 {
            return Ok(Self { alpha, features: Vec::new(), stride: 0, factor: None });
        }
        let mut chosen = Random::new(options.seed).sample(n, m);
        chosen.sort_unstable();
        let points = rows.gather(&chosen);
        let mut own = Square::<f64>::new(m);
        let stride = own.stride();
        gram_lower(kernel.into(), points.view(), own.values_mut(), stride, monitor, par)?;
        // Points that depend on each other: what is lost is lost for the preconditioner alone.
        let trace: f64 = (0..m).map(|i| own.values()[i * stride + i]).sum();
        let mut shifted = own.shifted::<f64>(|_| 1e-10 * trace, par);
        match dense::factor(&mut shifted, monitor, par) {
            // A kernel that is not positive definite gets none.
            Err(Error::NotPositiveDefinite { .. }) => {
                return Ok(Self { alpha, features: Vec::new(), stride: 0, factor: None });
            }
            other => other?,
        }
        let solver = RowSolver::new(&shifted, par);
        let cross = CrossKernel::<f64>::new(kernel, points.view(), par)?;
        let stride = cross.stride();
        let mut features = vec![0.0; n * stride];
        let mut inner = Square::<f64>::new(m);
        for (block, lines) in features.chunks_mut(4096 * stride).enumerate() {
            monitor.go_on("precondition", block * 4096, n)?;
            cross.fill(rows, block * 4096, lines, par)?;
            par.for_each_chunk(lines, 96 * stride, |_, lines| solver.substitute(lines, stride));
            subtract_gram(&mut inner, lines, stride, par);
        }
        let lines = inner.stride();
        for v in inner.values_mut().iter_mut() {
            *v = -*v;
        }
        for i in 0..m {
            inner.values_mut()[i * lines + i] += alpha;
        }
        dense::factor(&mut inner, monitor, par)?;
        Ok(Self { alpha, features, stride, factor: Some(inner) })
    }

    fn apply(&self, r: &[f64], out: &mut [f64], q: usize, par: Par) {
        let Some(factor) = &self.factor else {
            out.copy_from_slice(r);
            return;
        };
        let (n, m, width) = (r.len() / q, factor.len(), panel_width::<f64>());
        let mut panels = columns::to_panels::<f64>(r, n, q);
        let mut inner = vec![0.0; panels.len() / n * m];
        for (r, t) in panels.chunks_exact(n * width).zip(inner.chunks_exact_mut(m * width)) {
            par.for_each_chunk(t, 48 * width, |task, t| {
                let at = Layout { start: task * 48, row: 1, step: self.stride };
                subtract_product(&self.features, at, (t.len() / width, n), r, t, width);
            });
        }
        columns::solve(factor, &mut inner, par);
        // F'r came out with the other sign.
        for v in &mut inner {
            *v = -*v;
        }
        for (r, t) in panels.chunks_exact_mut(n * width).zip(inner.chunks_exact(m * width)) {
            par.for_each_chunk(r, 192 * width, |task, r| {
                let at = Layout { start: task * 192 * self.stride, row: self.stride, step: 1 };
                subtract_product(&self.features, at, (r.len() / width, m), t, r, width);
            });
        }
        columns::from_panels(&panels, out, n, q);
        for v in out {
            *v /= self.alpha;
        }
    }
}
