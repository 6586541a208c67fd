//! Kernel quantile regression: one machine for each quantile, all on shared kernel rows (Koenker and Bassett 1978; Takeuchi,
//! Le, Sears, Smola 2006).
//!
//! For a quantile q in (0, 1) the function f minimizes
//!
//! ```text
//! 1/2 ||w||^2 + sum C_i (q max(0, y_i - f(x_i)) + (1 - q) max(0, f(x_i) - y_i))
//! ```
//!
//! so that about a share q of the targets lies below f: the bounds of the dual are [-(1 - q) C_i, q C_i] (see `problem`).
//! Machines share kernel rows but not coefficients, so functions of two quantiles may cross if rows are few.
//!
//! Cost: that of the rounds; kernel rows are computed once for all quantiles.

use super::certificate::Certificate;
use super::columns::Effort;
use super::fit::{MachineLayout, fit_machines};
use super::machine::Outcome;
use super::params::SvmParams;
use super::problem::DualProblem;
use super::single::{check_quantile, check_targets};
use super::start::Start;
use super::training::Training;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, KernelFunction};
use crate::memory::try_zero_matrix;
use ndarray::Array2;

/// Targets, weights and quantiles of a quantile regression.
#[derive(Debug, Clone, Copy)]
pub struct QuantileRegression<'a> {
    /// y, one per row.
    pub targets: &'a [f64],
    /// C of each row.
    pub sample_c: &'a [f64],
    /// Levels tau in (0, 1): a machine for each, below whose output a share tau of the targets lies.
    pub quantiles: &'a [f64],
    /// Coefficients to start from.
    pub start: Option<Start<'a>>,
}

/// A fitted quantile regression as indices into its training rows.
#[derive(Debug, Clone)]
pub struct QuantileModel {
    /// Training rows that are support vectors of any machine, ascending.
    pub support: Vec<usize>,
    /// B, (m, q), a column for each quantile.
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// One certificate for each quantile.
    pub certificates: Vec<Certificate>,
    /// The cost of all machines together.
    pub effort: Effort,
}

/// Fits a function for each of the quantiles.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Param`] for inputs that contradict each other or their rules.
pub fn fit_quantiles<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'_>,
    task: &QuantileRegression<'_>,
    params: &SvmParams,
    ctx: Context<'_>,
) -> Result<QuantileModel> {
    let &QuantileRegression { targets, sample_c, quantiles, start } = task;
    let training = Training::new(kernel.into(), rows, sample_c, CoefficientSum::Zero, params, ctx)?;
    check_targets(rows.rows(), targets)?;
    Error::check_param(!quantiles.is_empty(), "quantile", "an empty list", "at least one number")?;
    quantiles.iter().try_for_each(|&q| check_quantile(q))?;
    let layout = MachineLayout::one_class_block((0..rows.rows()).collect(), quantiles.len());
    let solved = fit_machines(&training, layout, start, |j, _, diagonal| {
        DualProblem::quantile(targets, sample_c, quantiles[j], diagonal)
    })?;
    let is_support = |row: &usize| solved.machines.iter().any(|machine| machine.problem().beta[*row] != 0.0);
    let support: Vec<usize> = (0..rows.rows()).filter(is_support).collect();
    let mut coefficients = try_zero_matrix("the coefficients", (support.len(), quantiles.len()))?;
    let mut intercepts = Vec::with_capacity(quantiles.len());
    let mut certificates = Vec::with_capacity(quantiles.len());
    for (machine, mut column) in solved.machines.iter().zip(coefficients.columns_mut()) {
        let &Outcome { intercept, certificate, .. } = machine.outcome()?;
        for (entry, &row) in column.iter_mut().zip(&support) {
            *entry = machine.problem().beta[row];
        }
        intercepts.push(intercept);
        certificates.push(certificate);
    }
    let corrections = solved.intercept_correction(&support, coefficients.view());
    for (b, correction) in intercepts.iter_mut().zip(corrections) {
        *b -= correction;
    }
    Ok(QuantileModel { support, coefficients, intercepts, certificates, effort: solved.effort })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernel;
    use ndarray::{Array2, array};

    #[test]
    fn a_constant_function_is_the_quantile_of_the_targets() {
        // All rows are the same, so that f is a constant: any quantile of the targets minimizes the loss.
        let rows = Array2::<f64>::zeros((9, 2));
        let targets = [5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0];
        let sample_c = [10.0; 9];
        let quantiles = [0.25, 0.5, 0.9];
        let task =
            QuantileRegression { targets: &targets, sample_c: &sample_c, quantiles: &quantiles, start: None };
        let params = SvmParams { tolerance: 1e-8, ..SvmParams::default() };
        let kernel = Kernel::Rbf { gamma: 1.0 };
        let view = rows.view().try_into().unwrap();
        let model = fit_quantiles(kernel, view, &task, &params, Context::default()).unwrap();
        let at_zero = |j: usize| model.intercepts[j] + model.coefficients.column(j).sum();
        for (j, expected) in [3.0, 5.0, 9.0].into_iter().enumerate() {
            assert!((at_zero(j) - expected).abs() < 1e-6, "{j}: {}", at_zero(j));
        }
        for certificate in &model.certificates {
            assert!(certificate.gap < 1e-4 && certificate.violation <= 1e-8, "{certificate:?}");
        }
    }

    #[test]
    fn quantiles_outside_their_range_are_refused() {
        let rows = array![[0.0], [1.0]];
        for quantiles in [&[0.0][..], &[1.0], &[f64::NAN], &[]] {
            let task =
                QuantileRegression { targets: &[0.0, 1.0], sample_c: &[1.0; 2], quantiles, start: None };
            let view = rows.view().try_into().unwrap();
            let fitted =
                fit_quantiles(Kernel::Linear, view, &task, &SvmParams::default(), Context::default());
            assert!(fitted.unwrap_err().to_string().contains("quantile"));
        }
    }
}
