//! Support vector regression: epsilon-SVR and nu-SVR (Chang and Lin 2011; see `problem` for the duals).

use super::params::SvmParams;
use super::problem::DualProblem;
use super::single::{MachineModel, fit_single};
use super::start::Start;
use super::training::{Training, check_nu};
use crate::control::{Monitor, Par};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::KernelFunction;

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
    monitor: &dyn Monitor,
    par: Par,
) -> Result<MachineModel> {
    let training = Training { kernel: kernel.into(), rows: rows.reborrow(), params, monitor, par };
    let &Regression { targets, upper, loss, start } = task;
    training.check(upper)?;
    let n = rows.rows();
    Error::check_len("targets", n, targets.len())?;
    if let Some(row) = targets.iter().position(|y| !y.is_finite()) {
        return Err(Error::NotFinite { what: "y", row });
    }
    match loss {
        RegressionLoss::Epsilon(epsilon) => {
            if !(epsilon >= 0.0 && epsilon.is_finite()) {
                return Err(Error::param("epsilon", epsilon, "finite and not negative"));
            }
            let build = |diagonal| DualProblem::regression(targets, upper, epsilon, diagonal);
            fit_single(&training, (0..n).collect(), start, build)
        }
        RegressionLoss::Nu(nu) => {
            check_nu(nu)?;
            let build = |diagonal: Vec<f64>| DualProblem::nu_regression(targets, upper, nu, diagonal);
            fit_single(&training, (0..n).chain(0..n).collect(), start, build)
        }
    }
}
