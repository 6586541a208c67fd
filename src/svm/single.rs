//! The members of the family that are one machine of one output: support vector regression, epsilon-SVR and nu-SVR
//! (Chang and Lin 2011), and the one-class machine, which finds where most of the rows lie (Schoelkopf et al. 2001); see
//! `problem` for the duals.

use super::certificate::Certificate;
use super::columns::{Columns, Effort};
use super::decomposition::solve;
use super::machine::Machine;
use super::params::SvmParams;
use super::precision::{KernelValue, Values};
use super::problem::DualProblem;
use super::scale;
use super::start::Start;
use super::training::{Training, check_nu};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{KernelFunction, Sums};
use crate::memory::{TryCollect, TryToVec, try_matrix, try_vec};
use ndarray::Array2;

/// A fitted machine of one output as indices into its training rows.
#[derive(Debug, Clone)]
pub struct MachineModel {
    /// Training rows that are support vectors, rising.
    pub support: Vec<usize>,
    /// B, (m, 1).
    pub coefficients: Array2<f64>,
    /// b.
    pub intercept: f64,
    /// rho of the nu machines: the margin of nu-SVC, minus epsilon of nu-SVR; else 0.
    pub rho: f64,
    /// The certificate.
    pub certificate: Certificate,
    /// What it cost.
    pub effort: Effort,
}

/// Fits one machine over the rows named by `order` (each once, or twice for nu-SVR, whose halves are added), its
/// problem built from their K_ii.
fn fit_single(
    training: &Training<'_>,
    values: Values,
    order: Vec<usize>,
    start: Option<Start<'_>>,
    build: impl FnOnce(Vec<f64>) -> Result<DualProblem>,
) -> Result<MachineModel> {
    let n = order.len();
    let mut columns = Columns::<f32>::new(training, values, order, &[n], n)?;
    let mut problem = build(columns.diagonal.try_to_vec()?)?;
    let mut exact = false;
    if let Some(start) = start {
        let (rows, order) = (training.rows.rows(), &columns.order);
        let products = start.products_of_machine(rows, 0, 1, order, &columns)?;
        exact = problem.start_from(&start.of_machine(rows, 0, 1, order)?, products.as_deref());
    }
    let mut machines = [Machine::new(problem, exact, &[0], &columns, training)?];
    if !(start.is_some() && machines[0].begins_in_double(&columns, training)?) {
        scale::start(&mut machines, &columns, training)?;
        solve(&mut machines, &mut columns, training)?;
        if !machines[0].needs_double(training.params.tolerance) {
            return outcome(&machines[0], &columns, Effort::default(), training);
        }
    }
    let effort = columns.effort();
    let mut columns = columns.in_double(training, &[n], n)?;
    machines[0].go_on_with(&columns, training)?;
    solve(&mut machines, &mut columns, training)?;
    outcome(&machines[0], &columns, effort, training)
}

/// The model of a solved machine; `before` is what was spent before these columns.
fn outcome<K: KernelValue>(
    machine: &Machine<'_>,
    columns: &Columns<'_, K>,
    before: Effort,
    training: &Training<'_>,
) -> Result<MachineModel> {
    let (intercept, rho, certificate) = machine.outcome()?;
    let mut beta = try_vec![0.0; training.rows.rows()]?;
    for (&row, b) in columns.order.iter().zip(&machine.problem().beta) {
        beta[row] += b;
    }
    let support: Vec<usize> = (0..beta.len()).filter(|&row| beta[row] != 0.0).try_collect_vec()?;
    let coefficients = try_matrix((support.len(), 1), |(i, _)| beta[support[i]])?;
    let intercept = intercept - columns.excess(&support, coefficients.view())?[0];
    Ok(MachineModel {
        support,
        coefficients,
        intercept,
        rho,
        certificate,
        effort: before.and(columns.effort()),
    })
}

/// How far off an output may be for nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RegressionLoss {
    /// max(0, |y - f(x)| - epsilon).
    Epsilon(f64),
    /// epsilon is found so that at most a share nu of the rows lies outside it, and at least that share on its edge or
    /// outside.
    Nu(f64),
}

/// What a regression is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct Regression<'a> {
    /// y, one a row.
    pub targets: &'a [f64],
    /// C of each row.
    pub upper: &'a [f64],
    /// The loss.
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
    let (kernel, sums) = (kernel.into(), Sums::Zero);
    let training = Training { kernel, rows: rows.reborrow(), params, ctx, sums };
    let &Regression { targets, upper, loss, start } = task;
    let values = training.check(upper)?;
    let n = rows.rows();
    check_regression(n, task)?;
    match loss {
        RegressionLoss::Epsilon(epsilon) => {
            let build = |diagonal| DualProblem::regression(targets, upper, epsilon, diagonal);
            fit_single(&training, values, (0..n).try_collect_vec()?, start, build)
        }
        RegressionLoss::Nu(nu) => {
            let build = |diagonal| DualProblem::nu_regression(targets, upper, nu, diagonal);
            fit_single(&training, values, (0..n).chain(0..n).try_collect_vec()?, start, build)
        }
    }
}

/// Checks targets and loss.
pub(super) fn check_regression(rows: usize, task: &Regression<'_>) -> Result<()> {
    Error::check_len("targets", rows, task.targets.len())?;
    if let Some(row) = task.targets.iter().position(|y| !y.is_finite()) {
        return Err(Error::NotFinite { what: "y", row });
    }
    match task.loss {
        RegressionLoss::Epsilon(epsilon) if !(epsilon >= 0.0 && epsilon.is_finite()) => {
            Err(Error::param("epsilon", epsilon, "finite and not negative"))
        }
        RegressionLoss::Epsilon(_) => Ok(()),
        RegressionLoss::Nu(nu) => check_nu(nu),
    }
}

/// What a one-class machine is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct OneClass<'a> {
    /// Weight of each row.
    pub weights: &'a [f64],
    /// Share of the rows' weight that may lie outside.
    pub nu: f64,
    /// Coefficients to start from.
    pub start: Option<Start<'a>>,
}

/// Fits a one-class machine: f(x) = sum b_i k(x, x_i) + b is negative for at most a share `nu` of the weight of the
/// rows. Coefficients add up to nu times the weights' sum, as LIBSVM's do.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Param`] for inputs outside their rules.
pub fn fit_one_class<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'_>,
    task: &OneClass<'_>,
    params: &SvmParams,
    ctx: Context<'_>,
) -> Result<MachineModel> {
    let (kernel, sums) = (kernel.into(), Sums::Any);
    let training = Training { kernel, rows: rows.reborrow(), params, ctx, sums };
    let values = training.check(task.weights)?;
    check_nu(task.nu)?;
    let build = |diagonal| DualProblem::one_class(task.weights, task.nu, diagonal);
    fit_single(&training, values, (0..rows.rows()).try_collect_vec()?, task.start, build)
}
