//! The one-class machine: where most of the rows lie (Schoelkopf et al. 2001; see `problem` for the dual).

use super::params::SvmParams;
use super::problem::DualProblem;
use super::single::{MachineModel, fit_single};
use super::start::Start;
use super::training::{Training, check_nu};
use crate::control::{Monitor, Par};
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::KernelFunction;

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
/// [`Error::Shape`](crate::Error::Shape) and [`Error::Param`](crate::Error::Param) for inputs outside their rules.
pub fn fit_one_class<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'_>,
    task: &OneClass<'_>,
    params: &SvmParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<MachineModel> {
    let training = Training { kernel: kernel.into(), rows: rows.reborrow(), params, monitor, par };
    training.check(task.weights)?;
    check_nu(task.nu)?;
    let build = |diagonal| DualProblem::one_class(task.weights, task.nu, diagonal);
    fit_single(&training, (0..rows.rows()).collect(), task.start, build)
}
