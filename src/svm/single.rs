//! Machines of one output, and the regressions among them, epsilon-SVR and nu-SVR (Chang and Lin 2011); see `problem` for the
//! duals, and `one_class` for the other one.

use super::certificate::Certificate;
use super::columns::Effort;
use super::fit::{MachineLayout, Solved, fit_machines};
use super::machine::Outcome;
use super::params::SvmParams;
use super::problem::DualProblem;
use super::start::Start;
use super::training::{Training, check_nu};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, KernelFunction};
use ndarray::Array2;

/// A fitted machine of one output as indices into its training rows.
#[derive(Debug, Clone)]
pub struct MachineModel {
    /// Training rows that are support vectors, ascending.
    pub support: Vec<usize>,
    /// Coefficients B, (m, 1).
    pub coefficients: Array2<f64>,
    /// Intercept b, which is added to the sum over the support vectors.
    pub intercept: f64,
    /// Offset rho of the nu machines: the margin of nu-SVC, minus epsilon of nu-SVR; 0 for the others.
    pub rho: f64,
    /// Bounds on the optimum, the gap between them, and the counts of the fit.
    pub certificate: Certificate,
    /// The cost of the fit.
    pub effort: Effort,
}

/// Solves one machine over the rows named by `order` (each once, or twice for nu-SVR, whose halves are added), its
/// problem built from their K_ii.
pub(super) fn solve_single<'a>(
    training: &Training<'a>,
    order: Vec<usize>,
    start: Option<Start<'_>>,
    build: impl Fn(Vec<f64>) -> DualProblem + Sync,
) -> Result<Solved<'a>> {
    let layout = MachineLayout::one_class_block(order, 1);
    fit_machines(training, layout, start, |_, _, diagonal| build(diagonal))
}

/// Returns the model of the one machine that was solved, with coefficients for `n` rows.
pub(super) fn model_of(solved: &Solved<'_>, n: usize) -> Result<MachineModel> {
    let machine = &solved.machines[0];
    let &Outcome { intercept, rho, certificate, .. } = machine.outcome()?;
    let mut beta = vec![0.0; n];
    for (&row, b) in solved.order.iter().zip(&machine.problem().beta) {
        beta[row] += b;
    }
    let support: Vec<usize> = (0..beta.len()).filter(|&row| beta[row] != 0.0).collect();
    let coefficients = Array2::from_shape_fn((support.len(), 1), |(i, _)| beta[support[i]]);
    let intercept = intercept - solved.intercept_correction(&support, coefficients.view())[0];
    Ok(MachineModel { support, coefficients, intercept, rho, certificate, effort: solved.effort })
}

/// The loss of a regression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RegressionLoss {
    /// max(0, |y - f(x)| - epsilon).
    Epsilon(f64),
    /// max(0, |y - f(x)| - epsilon), with an epsilon such that at most a share nu of the rows lies outside the tube, and at
    /// least that share on its edge or outside.
    Nu(f64),
    /// q max(0, y - f(x)) + (1 - q) max(0, f(x) - y): about a share q of the targets lies below f (see
    /// [`fit_quantiles`](super::fit_quantiles) for several q at once).
    Quantile(f64),
}

/// Targets, weights and loss of a regression.
#[derive(Debug, Clone, Copy)]
pub struct Regression<'a> {
    /// Target y of each row.
    pub targets: &'a [f64],
    /// C of each row.
    pub sample_c: &'a [f64],
    /// The loss of an error, in units of the targets.
    pub loss: RegressionLoss,
    /// Coefficients to start from.
    pub start: Option<Start<'a>>,
}

/// Fits a support vector regression. `rho` of the model is minus the epsilon found by nu-SVR.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Param`] for inputs that contradict each other or their rules.
pub fn fit_regression<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'_>,
    task: &Regression<'_>,
    params: &SvmParams,
    ctx: Context<'_>,
) -> Result<MachineModel> {
    let &Regression { targets, sample_c, loss, start } = task;
    let training = Training::new(kernel.into(), rows, sample_c, CoefficientSum::Zero, params, ctx)?;
    let n = rows.rows();
    check_regression(n, task)?;
    let solved = match loss {
        RegressionLoss::Epsilon(epsilon) => {
            let build = |diagonal| DualProblem::regression(targets, sample_c, epsilon, diagonal);
            solve_single(&training, (0..n).collect(), start, build)
        }
        RegressionLoss::Quantile(q) => {
            let build = |diagonal| DualProblem::quantile(targets, sample_c, q, diagonal);
            solve_single(&training, (0..n).collect(), start, build)
        }
        RegressionLoss::Nu(nu) => {
            let build = |diagonal| DualProblem::nu_regression(targets, sample_c, nu, diagonal);
            solve_single(&training, (0..n).chain(0..n).collect(), start, build)
        }
    }?;
    model_of(&solved, n)
}

/// Checks targets and loss.
pub(super) fn check_regression(rows: usize, task: &Regression<'_>) -> Result<()> {
    check_targets(rows, task.targets)?;
    match task.loss {
        RegressionLoss::Epsilon(epsilon) if !(epsilon >= 0.0 && epsilon.is_finite()) => {
            Err(Error::param("epsilon", epsilon, "finite and not negative"))
        }
        RegressionLoss::Epsilon(_) => Ok(()),
        RegressionLoss::Nu(nu) => check_nu(nu),
        RegressionLoss::Quantile(q) => check_quantile(q),
    }
}

/// Checks that a quantile is in (0, 1).
pub(super) fn check_quantile(q: f64) -> Result<()> {
    if q > 0.0 && q < 1.0 { Ok(()) } else { Err(Error::param("quantile", q, "in (0, 1)")) }
}

/// Checks that each row has a finite target.
pub(super) fn check_targets(rows: usize, targets: &[f64]) -> Result<()> {
    Error::check_len("targets", rows, targets.len())?;
    match targets.iter().position(|y| !y.is_finite()) {
        Some(row) => Err(Error::NotFinite { what: "y", row }),
        None => Ok(()),
    }
}
