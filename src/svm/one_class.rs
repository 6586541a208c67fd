//! The one-class machine, which estimates the support of the distribution of the rows (Schoelkopf et al. 2001).
//!
//! Its coefficients add up to S = nu W, with W the sum of the weights, and outputs are of that size. If S is below 1 the
//! machine is solved in units of a power of two near S: tolerance, rounding and stalls are then relative to the outputs, and
//! coefficients keep their bits.
//!
//! The offset is such that rows below their upper bound lie inside (see `intercept`), so that at most a share nu of the weight
//! lies outside, converged or not. This holds for the outputs of predictions, whose rounding differs from that of training: rows
//! near the margin are evaluated as predictions do it, and the offset is lowered below their outputs. If that adds a large share
//! of the objective to the gap, the machine is solved again with a lower tolerance; where the gap stays, because the objective is
//! next to nothing, the fit has stalled.
//!
//! Cost: that of the fit, and the outputs of the rows near the margin in two precisions.

use super::certificate::relative_gap;
use super::fit::Solved;
use super::params::SvmParams;
use super::problem::DualProblem;
use super::single::{MachineModel, model_of, solve_single};
use super::start::Start;
use super::training::{Training, check_nu};
use crate::context::{Context, StopReason};
use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{CoefficientSum, Evaluator, Kernel, KernelFunction};

/// Maximum difference of an output between ways to sum it, a fast Gauss transform among them, relative to the lengths of the
/// terms.
const MAX_SUM_ERROR: f64 = 1e-10;
/// The same for kernel values in single precision.
const MAX_SINGLE_ERROR: f64 = 2e-6;
/// Maximum effect of single precision on rows in double precision that is accounted for, relative to the lengths of the terms.
const MAX_SINGLE_SHIFT: f64 = 1e-4;
/// Maximum rounding of rows to single precision, relative to the largest range of a column; rows that it moves farther are other
/// samples.
const MAX_ROW_ROUNDING: f64 = 1e-2;
/// Maximum number of fits of a machine whose gap the offset makes large.
const MAX_FITS: usize = 3;
/// Minimum ratio of the tolerances of two such fits.
const MIN_TOLERANCE_RATIO: f64 = 1e-3;
/// Violations by which the offset of a machine may move where a lower tolerance is tried.
const REDUCIBLE_VIOLATIONS: f64 = 4.0;
/// Roundings of an output within which a row is near the margin.
const MARGIN_ROUNDINGS: f64 = 8.0;

/// Weights and nu of a one-class machine.
#[derive(Debug, Clone, Copy)]
pub struct OneClass<'a> {
    /// Weights of the rows, (n,): nu bounds the share of their sum that lies outside.
    pub weights: &'a [f64],
    /// Maximum share of the rows' weight outside.
    pub nu: f64,
    /// Coefficients to start from.
    pub start: Option<Start<'a>>,
}

/// Fits a one-class machine: f(x) = sum b_i k(x, x_i) + b is negative for at most a share `nu` of the weight of the
/// rows. Coefficients add up to nu times the weights' sum, as LIBSVM's do. If that sum is below 1, the tolerance is relative to
/// it.
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
    let (kernel, mut params) = (kernel.into(), params.clone());
    let (mut model, mut gap) = fit_inside(kernel, rows.reborrow(), task, &params, ctx)?;
    for _ in 1..MAX_FITS {
        let certificate = model.certificate;
        if certificate.stop != StopReason::Converged || gap.relative <= 1.0 || !gap.is_reducible {
            break;
        }
        params.tolerance *= (0.5 / gap.relative).max(MIN_TOLERANCE_RATIO);
        params.max_iterations = params.max_iterations.map(|max| max.saturating_sub(certificate.iterations));
        // Not from this solution: machines of the sigmoid kernel, which has no feature space, end at a worse one then.
        (model, gap) = fit_inside(kernel, rows.reborrow(), task, &params, ctx)?;
        model.certificate.iterations += certificate.iterations;
        model.certificate.rounds += certificate.rounds;
    }
    if model.certificate.stop == StopReason::Converged && gap.relative > 1.0 {
        model.certificate.stop = StopReason::Stalled;
    }
    Ok(model)
}

/// The gap of a machine with its final offset.
struct MarginGap {
    /// Relative to the largest one of a solved machine.
    relative: f64,
    /// True if a lower tolerance reduces it, because the offset has moved by at most [`REDUCIBLE_VIOLATIONS`] violations.
    is_reducible: bool,
}

/// Fits a machine whose offset keeps the margin inside.
fn fit_inside(
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    task: &OneClass<'_>,
    params: &SvmParams,
    ctx: Context<'_>,
) -> Result<(MachineModel, MarginGap)> {
    let training = Training::new(kernel, rows, task.weights, CoefficientSum::Any, params, ctx)?;
    check_nu(task.nu)?;
    let total = task.nu * task.weights.iter().sum::<f64>();
    let unit = unit_of(total);
    let weights: Vec<f64> = task.weights.iter().map(|w| (w / unit).min(f64::MAX)).collect();
    let build = |diagonal| DualProblem::one_class(&weights, total / unit, diagonal);
    let solved = solve_single(&training, (0..training.rows.rows.rows()).collect(), task.start, build)?;
    let mut model = model_of(&solved, training.rows.rows.rows())?;
    let mut certificate = model.certificate;
    model.coefficients *= unit;
    model.intercept *= unit;
    model.certificate = certificate.scaled(unit);
    let shift = Margin { solved: &solved, training: &training, unit }.shift(&model)?;
    model.intercept += shift;
    // The primal objective changes by at most the sum of the coefficients times the change of the offset.
    model.certificate.primal += shift * total;
    model.certificate.gap += shift * total;
    let change = shift * total / (unit * unit);
    certificate.primal += change;
    certificate.gap += change;
    let gap = MarginGap {
        relative: relative_gap(solved.machines[0].problem(), &certificate),
        is_reducible: shift / unit <= REDUCIBLE_VIOLATIONS * certificate.violation,
    };
    Ok((model, gap))
}

/// Returns the unit of coefficients with a sum: the largest power of two up to it, at most 1.
fn unit_of(sum: f64) -> f64 {
    let exponent_bits = sum.max(f64::MIN_POSITIVE).to_bits() & f64::INFINITY.to_bits();
    f64::from_bits(exponent_bits).min(1.0)
}

/// Rounds numbers in double precision to the digits of single precision (Veltkamp 1968), whatever their scale.
fn with_single_digits(rows: OwnedRows) -> OwnedRows {
    let round = |v: f64| {
        let scaled = v * f64::from((1 << 29) + 1);
        if scaled.is_finite() { scaled - (scaled - v) } else { v }
    };
    match rows {
        OwnedRows::DenseF64(values) => OwnedRows::DenseF64(values.mapv_into(round)),
        OwnedRows::CsrF64 { indptr, indices, mut values, cols } => {
            for v in &mut values {
                *v = round(*v);
            }
            OwnedRows::CsrF64 { indptr, indices, values, cols }
        }
        rows => rows,
    }
}

/// Returns whether rounding to single precision keeps the differences between rows. Columns of sparse rows contain zeros.
fn keeps_differences(rows: Rows<'_>) -> bool {
    if rows.is_sparse() {
        return true;
    }
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); rows.cols()];
    for row in 0..rows.rows() {
        rows.for_each_in_row(row, |k, v| ranges[k] = (ranges[k].0.min(v), ranges[k].1.max(v)));
    }
    let largest = ranges.iter().fold(0.0, |largest: f64, (low, high)| largest.max(low.abs()).max(high.abs()));
    let range = ranges.iter().fold(0.0, |widest: f64, (low, high)| widest.max(high - low));
    0.5 * f64::from(f32::EPSILON) * largest <= MAX_ROW_ROUNDING * range
}

/// The rows near the margin of a solved machine.
struct Margin<'s, 'a> {
    solved: &'s Solved<'a>,
    training: &'s Training<'a>,
    /// Unit of the machine's coefficients.
    unit: f64,
}

impl Margin<'_, '_> {
    /// Returns the number by which the intercept of the model must rise so that every row below its upper bound lies inside in
    /// all predictions.
    fn shift(&self, model: &MachineModel) -> Result<f64> {
        let machine = &self.solved.machines[0];
        let problem = machine.problem();
        let lowest = problem.kkt_violation(Context::SEQUENTIAL).maximal_pairs[0].0;
        // All rows are at their bounds, or a stop left no time for the gradients.
        if !(lowest.is_finite() && machine.is_exact()) {
            return Ok(0.0);
        }
        let window = machine.tolerance.max(MARGIN_ROUNDINGS * model.certificate.rounding / self.unit);
        let shift = |window: f64| {
            let is_near =
                |&v: &usize| problem.beta[v] < problem.upper[v] && problem.gradient[v] <= lowest + window;
            self.shift_of(model, &(0..problem.len()).filter(is_near).collect::<Vec<_>>())
        };
        let computed = match shift(window) {
            // Rounding may exceed the window.
            Ok((_, spread)) if spread > 0.5 * window * self.unit => shift(f64::INFINITY),
            computed => computed,
        };
        match computed {
            Ok((shift, _)) => Ok(shift),
            Err(Error::Stopped(_)) => Ok(window * self.unit),
            Err(error) => Err(error),
        }
    }

    /// Returns the number by which the intercept must rise for some variables, and the largest difference between their outputs
    /// in training and in predictions of both precisions.
    fn shift_of(&self, model: &MachineModel, variables: &[usize]) -> Result<(f64, f64)> {
        let machine = &self.solved.machines[0];
        let problem = machine.problem();
        let rows: Vec<usize> = variables.iter().map(|&v| self.solved.order[v]).collect();
        let (double, single) = self.outputs(model, &rows)?;
        let length = variables.iter().map(|&v| problem.diagonal[v].abs().sqrt()).fold(0.0, f64::max);
        let lengths = problem.beta.iter().zip(&problem.diagonal).map(|(b, d)| b * d.abs().sqrt());
        let size = self.unit * length * lengths.sum::<f64>();
        // Rows in double precision that single precision moves farther are other samples.
        let max_shift = if self.training.rows.rows.is_f64() {
            (MAX_SINGLE_SHIFT * size).max(self.unit * self.training.params.tolerance)
        } else {
            f64::INFINITY
        };
        let (mut lowest, mut spread) = (f64::INFINITY, 0.0_f64);
        for (k, &v) in variables.iter().enumerate() {
            let training = self.unit * problem.gradient[v] + model.intercept;
            let single = single.as_ref().map_or(double[k], |single| single[k]);
            let single = single.clamp(double[k] - max_shift, double[k] + max_shift);
            lowest = lowest.min(training).min(double[k]).min(single);
            spread = spread.max((single - double[k]).abs()).max((training - double[k]).abs());
        }
        // Weights of dense columns are in double precision.
        let rows = &self.training.rows;
        let is_linear =
            matches!(rows.kernel, KernelFunction::BuiltIn(Kernel::Linear)) && !rows.rows.is_sparse();
        let error = if is_linear { MAX_SUM_ERROR } else { MAX_SINGLE_ERROR };
        Ok(((2.0 * spread + error * size - lowest).max(0.0), spread))
    }

    /// Returns the outputs of rows in double precision, and those that predictions of rows in single precision compute.
    fn outputs(&self, model: &MachineModel, rows: &[usize]) -> Result<(Vec<f64>, Option<Vec<f64>>)> {
        let (prepared, ctx) = (&self.training.rows, self.training.ctx);
        let KernelFunction::BuiltIn(kernel) = prepared.kernel else { return self.block_outputs(model, rows) };
        if kernel == Kernel::Precomputed {
            return self.block_outputs(model, rows);
        }
        let vectors = prepared.rows.gather(&model.support)?;
        let intercepts = [model.intercept];
        let view = ExpansionView::new(kernel, vectors.view(), model.coefficients.view(), &intercepts)?;
        let evaluator = Evaluator::new(&view)?;
        let samples = prepared.rows.gather(rows)?;
        let double = evaluator.evaluate_double(samples.view(), ctx)?.into_raw_vec_and_offset().0;
        if !samples.view().is_f64() {
            let single = evaluator.evaluate(samples.view(), ctx)?.into_raw_vec_and_offset().0;
            return Ok((double, Some(single)));
        }
        if !keeps_differences(prepared.rows.reborrow()) {
            return Ok((double, None));
        }
        // Evaluated in double precision, so that the offset does not depend on the scale of the rows.
        let samples = with_single_digits(samples);
        let single = evaluator.evaluate_double(samples.view(), ctx)?.into_raw_vec_and_offset().0;
        Ok((double, Some(single)))
    }

    /// Returns the outputs of rows in double precision for kernel values that are given.
    fn block_outputs(&self, model: &MachineModel, rows: &[usize]) -> Result<(Vec<f64>, Option<Vec<f64>>)> {
        let mut outputs = vec![model.intercept; rows.len()];
        let source = self.solved.source().in_double(rows, self.training.ctx)?;
        let coefficients: Vec<f64> = model.coefficients.iter().copied().collect();
        source.add_product(&model.support, &coefficients, &mut outputs, self.training.ctx)?;
        Ok((outputs, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::OwnedRows;
    use ndarray::Array2;

    const KERNEL: Kernel = Kernel::Rbf { gamma: 2.0 };

    fn rows(n: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, 2), |(i, j)| ((i * (j + 3)) as f64 * 0.618).sin() + (i as f64 * 0.37).cos())
    }

    fn fit(x: Rows<'_>, weights: &[f64], nu: f64) -> MachineModel {
        let task = OneClass { weights, nu, start: None };
        fit_one_class(KERNEL, x, &task, &SvmParams::default(), Context::SEQUENTIAL).unwrap()
    }

    #[test]
    fn units_are_powers_of_two_up_to_the_sum() {
        for (sum, unit) in [(3.0, 1.0), (1.0, 1.0), (0.75, 0.5), (1.9 * 0.125, 0.125)] {
            assert_eq!(unit_of(sum), unit);
        }
        assert_eq!(unit_of(1e-320), f64::MIN_POSITIVE);
    }

    #[test]
    fn smaller_weights_give_the_same_bits_in_another_unit() {
        let x = rows(90);
        let x = Rows::try_from(&x).unwrap();
        for nu in [1e-9, 1e-3, 0.0105] {
            let small = fit(x, &[0.5_f64.powi(30); 90], nu);
            let model = fit(x, &[1.0; 90], nu);
            assert_eq!(model.certificate.stop, crate::context::StopReason::Converged);
            assert_eq!(model.coefficients.mapv(|c| c * 0.5_f64.powi(30)), small.coefficients);
            assert!((model.intercept * 0.5_f64.powi(30) / small.intercept - 1.0).abs() < 1e-6);
            assert_eq!(model.certificate.violation * 0.5_f64.powi(30), small.certificate.violation);
            assert!((model.coefficients.sum() / (90.0 * nu) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn an_offset_that_moves_far_does_not_leave_a_large_gap() {
        // Small kernel values, and a kernel without a feature space: the objective is small against the tolerance.
        let value =
            |(i, j)| if (i * 5 + j * 3) % 4 < 1 { 0.0 } else { ((i * 7 + j * 31) as f64 * 0.618).sin() };
        let x = Array2::from_shape_fn((60, 3), value);
        let task = OneClass { weights: &[1.0; 60], nu: 0.01, start: None };
        let params = SvmParams { tolerance: 0.1, ..SvmParams::default() };
        let kernel = Kernel::Sigmoid { gamma: 0.1, coef0: 0.0 };
        let fit = |params: &SvmParams| {
            let rows = Rows::try_from(&x).unwrap();
            fit_one_class(kernel, rows, &task, params, Context::SEQUENTIAL).unwrap().certificate
        };
        let rows = Rows::try_from(&x).unwrap();
        let (once, gap) = fit_inside(kernel.into(), rows, &task, &params, Context::SEQUENTIAL).unwrap();
        assert!(gap.relative > 1.0 && gap.is_reducible, "{} {}", gap.relative, gap.is_reducible);
        let certificate = fit(&params);
        assert_eq!(certificate.stop, StopReason::Converged);
        assert!(certificate.gap <= 0.1 * certificate.primal.abs(), "{certificate:?}");
        // All fits count, and share the steps that are allowed.
        assert!(certificate.iterations > once.certificate.iterations, "{certificate:?}");
        let limited = SvmParams { max_iterations: Some(once.certificate.iterations + 1), ..params };
        assert_eq!(fit(&limited).stop, StopReason::MaxIterations);
    }

    #[test]
    fn the_weight_outside_is_at_most_nu_in_both_precisions() {
        let x = rows(200);
        let single: OwnedRows = x.mapv(|v| v as f32).into();
        let double: OwnedRows = x.into();
        let weights: Vec<f64> = (0..200).map(|i| 0.5 + f64::from(i % 7)).collect();
        let total: f64 = weights.iter().sum();
        for nu in [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9] {
            for trained in [&single, &double] {
                let model = fit(trained.view(), &weights, nu);
                let vectors = trained.view().gather(&model.support).unwrap();
                let intercepts = [model.intercept];
                let view = ExpansionView::new(KERNEL, vectors.view(), model.coefficients.view(), &intercepts)
                    .unwrap();
                let evaluator = Evaluator::new(&view).unwrap();
                for samples in [&single, &double] {
                    let outputs = evaluator.evaluate(samples.view(), Context::SEQUENTIAL).unwrap();
                    let outside: f64 =
                        outputs.iter().zip(&weights).filter(|(f, _)| **f < 0.0).map(|(_, w)| w).sum();
                    assert!(outside <= nu * total * (1.0 + 1e-12), "{nu}: {}", outside / total);
                }
                assert!(model.certificate.gap <= 0.1 * model.certificate.primal.abs());
            }
        }
    }
}
