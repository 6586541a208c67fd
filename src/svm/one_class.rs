//! The one-class machine: where most of the rows lie (Schoelkopf et al. 2001; see `problem` for the dual).

use super::fit::{MachineModel, Start, check, check_nu, single};
use super::params::SvmParams;
use super::problem::DualProblem;
use crate::control::{Monitor, Par};
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::KernelFunction;

/// Fits a one-class machine: f(x) = sum b_i k(x, x_i) + b is negative for at most a share `nu` of the weight of the
/// rows. Coefficients add up to nu times the weights' sum, as LIBSVM's do.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) and [`Error::Param`](crate::Error::Param) for inputs outside their rules.
#[allow(clippy::too_many_arguments)]
pub fn fit_one_class<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'a>,
    weights: &[f64],
    nu: f64,
    start: Option<Start<'_>>,
    params: &SvmParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<MachineModel> {
    let kernel = kernel.into();
    check(kernel, rows, weights, params)?;
    check_nu(nu)?;
    let build = |diagonal: &[f64]| Ok(DualProblem::one_class(weights, nu, diagonal.to_vec()));
    single(kernel, rows, (0..rows.rows()).collect(), build, start, params, monitor, par)
}
