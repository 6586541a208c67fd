//! The end of a machine: whether its gap is small, the effect of rounding, whether it continues in double precision, and its
//! certificate.

use super::super::certificate::{Certificate, Rounding, certify, relative_gap};
use super::super::columns::KernelColumns;
use super::super::intercept::intercept;
use super::super::interior_point::InteriorPoint;
use super::super::precision::{Accuracy, KernelValue, exceeds_single_precision, restart_coefficients};
use super::super::problem::DualProblem;
use super::super::rounding::MeasuredRounding;
use super::super::stall::UNCERTAIN_ROUNDINGS;
use super::super::training::{Training, overflow_error};
use super::super::working_set::WorkingSet;
use super::{MAX_STEPS_PER_VARIABLE, Machine, cache_capacity};
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::Precision;
use crate::memory::{TryCollect, TryToVec};

/// Minimum and maximum of the next tolerance of a machine with a large gap, relative to its violation.
const MIN_TOLERANCE_RATIO: f64 = 0.1;
const MAX_TOLERANCE_RATIO: f64 = 0.5;
/// Maximum violation of a machine that ends with a large gap, relative to the spread of the targets.
const MAX_SPREAD_SHARE: f64 = 1e-3;
/// Multiple of `MAX_STEPS_PER_VARIABLE` that ends a machine whose violation is only within the tolerance of the fit.
const MAX_STEP_RATIO: u64 = 5;

impl Machine<'_> {
    /// Returns the maximum error of an output by rounding, which falls with the tolerance.
    pub(in crate::svm) fn max_rounding(&self, accuracy: Accuracy) -> f64 {
        accuracy.max_rounding * (self.tolerance / self.max_tolerance)
    }

    /// Returns whether the gap is a small share of the objective, with the rounding that is known, if the fit is certified.
    /// Without a violation nothing can be gained.
    pub(in crate::svm) fn has_small_gap(&self, accuracy: Accuracy) -> bool {
        !accuracy.is_certified || self.kkt.largest() <= 0.0 || self.relative_gap() <= 1.0
    }

    /// Returns the gap relative to the largest one of a solved machine.
    pub(in crate::svm) fn relative_gap(&self) -> f64 {
        let certificate = self.final_outcome.map_or_else(|| self.certified(self.problem()).2, |last| last.2);
        relative_gap(self.problem(), &certificate)
    }

    /// Returns whether the violation is within the tolerance and so small that gains may be rounding.
    pub(in crate::svm) fn has_irreducible_gap(&self, violation: f64) -> bool {
        violation <= self.tolerance && violation <= UNCERTAIN_ROUNDINGS * self.kkt.rounding()
    }

    /// Returns whether the gap is not worth more steps, after many. An objective that is next to nothing, as that of tiny targets
    /// is, leaves a gap that is a large share of it at every violation that can be reached: one within the tolerance of the fit
    /// suffices if it is small against the spread of the targets, and after more steps in any case. Where the interior-point method
    /// has not found the solution, kernel values have too few digits for steps to find it.
    pub(in crate::svm) fn has_costly_gap(&self, violation: f64) -> bool {
        let linear = &self.problem().linear;
        let per_variable = self.iterations / linear.len().max(1) as u64;
        if per_variable < MAX_STEPS_PER_VARIABLE {
            return false;
        }
        if self.interior_point == InteriorPoint::Done {
            return true;
        }
        if per_variable >= MAX_STEP_RATIO * MAX_STEPS_PER_VARIABLE {
            return violation <= self.max_tolerance;
        }
        let least = linear.iter().fold(f64::INFINITY, |least, s| least.min(*s));
        let spread = linear.iter().fold(f64::NEG_INFINITY, |largest, s| largest.max(*s)) - least;
        violation <= self.max_tolerance.min(MAX_SPREAD_SHARE * spread)
    }

    /// Lowers a tolerance that left too large a gap, if the violation is within it. All bounds that count as infinite give the same
    /// tolerance, so that they have the same solution.
    pub(in crate::svm) fn tighten_tolerance(&mut self, violation: f64) {
        if violation <= self.tolerance {
            let least = UNCERTAIN_ROUNDINGS * self.kkt.rounding();
            let problem = self.problem();
            self.tolerance = if !problem.keeps_margin_inside && problem.has_infinite_bounds() {
                least
            } else {
                let share = (0.5 / self.relative_gap()).clamp(MIN_TOLERANCE_RATIO, MAX_TOLERANCE_RATIO);
                least.max(share * violation)
            };
        }
    }

    /// Returns intercept, rho and certificate of a machine that has ended.
    ///
    /// # Errors
    /// [`Error::Param`] if they are not finite.
    pub(in crate::svm) fn outcome(&self) -> Result<(f64, f64, Certificate)> {
        let problem = self.problem();
        let known = self.inexact_outcome.or(self.final_outcome);
        let (b, rho, certificate) = known.unwrap_or_else(|| self.certified(problem));
        let numbers = [b, rho, certificate.dual, certificate.primal, certificate.gap, certificate.violation];
        if numbers.iter().chain(&problem.beta).all(|v| v.is_finite()) {
            return Ok((b, rho, certificate));
        }
        let bounds = problem.upper.iter().chain(&problem.lower).filter(|c| c.is_finite()).map(|c| c.abs());
        // Squared losses have a ridge of 1 / (2 C) in place of bounds.
        let of_ridge = problem.ridge.iter().filter(|ridge| **ridge > 0.0).map(|ridge| 0.5 / ridge);
        Err(overflow_error(bounds.chain(of_ridge).fold(0.0, f64::max)))
    }

    /// Returns intercept, rho and certificate for the coefficients and gradients of a problem.
    fn certified(&self, problem: &DualProblem) -> (f64, f64, Certificate) {
        let stop = self.stop.unwrap_or(StopReason::Stalled);
        let (b, rho) = intercept(problem);
        let rounding = self.rounding.unwrap_or_default();
        (b, rho, certify(problem, (b, rho), &rounding, self.iterations, self.rounds, stop))
    }

    /// Ends a machine at zero with feasible coefficients without gradients, whose intercept and dual objective are given.
    pub(in crate::svm) fn stop_at(&mut self, beta: Vec<f64>, b: f64, dual: f64, reason: StopReason) {
        self.stop = Some(reason);
        let (.., at_zero) = self.certified(self.problem());
        self.variables.problem.beta = beta;
        self.set_inexact_outcome((b, 0.0), dual, &at_zero);
    }

    /// Takes the variables that were set aside back without their gradients. The certificate then has the dual objective
    /// of these coefficients, and primal objective and violation of the last ones whose gradients were exact: the
    /// optimum lies between the objectives in any case.
    fn restore_without_gradients<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        ctx: Context<'_>,
    ) -> Result<()> {
        let levels = intercept(self.problem());
        let Some((before, gain)) = self.variables.restore_without_gradients()? else { return Ok(()) };
        let rounding = self.measure_rounding(&before, columns, ctx)?;
        let size = |problem: &DualProblem| problem.beta.iter().map(|b| b.abs()).sum::<f64>();
        let gain = gain - rounding.output * (size(&before) + size(self.problem()));
        self.rounding = Some(rounding);
        let (.., last) = self.certified(&before);
        self.set_inexact_outcome(levels, last.dual + gain, &last);
        Ok(())
    }

    /// Sets the outcome of coefficients without gradients: primal objective and violation are those of `exact`.
    fn set_inexact_outcome(&mut self, (b, rho): (f64, f64), dual: f64, exact: &Certificate) {
        let (.., counts) = self.certified(self.problem());
        let &Certificate { primal, violation, .. } = exact;
        let certificate = Certificate { dual, primal, gap: primal - dual, violation, ..counts };
        self.inexact_outcome = Some((b, rho, certificate));
    }

    /// Measures how far rounding has moved the gradients of a problem of all variables.
    fn measure_rounding<K: KernelValue>(
        &self,
        problem: &DualProblem,
        columns: &KernelColumns<'_, K>,
        ctx: Context<'_>,
    ) -> Result<Rounding> {
        let source = &columns.class_blocks[self.parts[0].class_block].source;
        Rounding::measure(problem, &self.variables.rows, &columns.values, source, ctx)
    }

    /// Takes back the variables that were set aside, with gradients if there is time, and measures the rounding.
    pub(in crate::svm) fn finish<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        StopReason::from_result((|| {
            while self.unshrink(columns, training)? {}
            Ok(())
        })())?;
        self.restore_without_gradients(columns, training.ctx)?;
        if self.rounding.is_none() && self.is_exact() && self.must_measure(training.accuracy) {
            let rounding = self.measure_rounding(self.problem(), columns, training.ctx)?;
            self.measured = Some(MeasuredRounding::new(&rounding, self.kkt.squared_norm));
            self.rounding = Some(rounding);
            self.final_outcome = Some(self.certified(self.problem()));
        }
        Ok(())
    }

    /// Returns whether the effect of rounding is needed for a certificate, or may be too large and is unknown.
    fn must_measure(&self, accuracy: Accuracy) -> bool {
        let is_small = |measured: MeasuredRounding| {
            !self.is_double && !measured.may_exceed(self.kkt.squared_norm, accuracy.max_rounding)
        };
        accuracy.is_certified || !self.measured.is_some_and(is_small)
    }

    /// Returns whether the coefficients at the start already need double precision.
    pub(in crate::svm) fn starts_in_double<K: KernelValue>(
        &self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<bool> {
        let rounding = self.measure_rounding(self.problem(), columns, training.ctx)?;
        Ok(rounding.output > training.accuracy.max_rounding)
    }

    /// Returns whether rounding of single precision hides the optimum of a machine that has ended.
    pub(in crate::svm) fn needs_double(&self, training: &Training<'_>) -> bool {
        let accuracy = training.accuracy;
        let squares = || self.problem().kkt_violation(Context::SEQUENTIAL).squared_norm;
        let max_rounding = self.max_rounding(accuracy);
        let is_needed = match self.stop {
            Some(StopReason::Converged) => !self.has_small_gap(accuracy),
            // The machine may have ended early, although its values happen to be exact.
            Some(StopReason::Stalled) => {
                exceeds_single_precision::<f32>(squares(), max_rounding)
                    || self.interior_point == InteriorPoint::Due
            }
            _ => return false,
        };
        !self.is_double
            && self.is_exact()
            && (is_needed || self.rounding.is_some_and(|rounding| rounding.output > max_rounding))
    }

    /// Continues from the present coefficients with kernel values of the same columns in another precision.
    pub(in crate::svm) fn change_precision<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let size = self.tuning.first_block(self.problem().len()).max(self.working_set.size);
        self.working_set = WorkingSet::new(size.min(cache_capacity(&self.parts, columns)));
        let has_stalled = self.stop == Some(StopReason::Stalled);
        let beta = if has_stalled {
            restart_coefficients(self.problem())?
        } else {
            self.problem().beta.try_to_vec()?
        };
        self.resume();
        self.is_double = K::PRECISION == Precision::Double;
        self.stop = StopReason::from_result(self.start_at(beta, columns, training))?;
        Ok(())
    }

    /// Bounds the rounding error of double precision by the kernel values.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    fn bound_by_values<K: KernelValue>(
        &self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Option<Rounding>> {
        let problem = self.problem();
        let source = &columns.class_blocks[self.parts[0].class_block].source;
        let scales = source.rows().rounding_scales(&self.variables.rows, training.ctx);
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).try_collect_vec()?;
        let sizes: Vec<f64> = used.iter().map(|&v| problem.beta[v].abs()).try_collect_vec()?;
        let scaled: Vec<f64> =
            used.iter().zip(&sizes).map(|(&v, size)| size * scales[v]).try_collect_vec()?;
        let products = self.outputs((&used, &sizes), columns, training)?;
        let scaled = self.outputs((&used, &scaled), columns, training)?;
        Ok(Rounding::bound_by_values(problem, &columns.values, &scales, (&products, &scaled)))
    }

    /// Bounds the rounding error of gradients that were computed at once, in double precision.
    fn bound_rounding<K: KernelValue>(
        &self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Rounding> {
        let worst = Rounding::bound(self.problem(), &columns.values);
        if worst.output <= training.accuracy.max_rounding {
            return Ok(worst);
        }
        match self.bound_by_values(columns, training) {
            Ok(bound) => Ok(bound.unwrap_or(worst)),
            // The worst case holds too.
            Err(Error::Stopped(_)) => Ok(worst),
            Err(error) => Err(error),
        }
    }

    /// Recomputes the gradients of a machine that has ended in double precision, which removes the rounding errors of the
    /// updates, and bounds the errors that remain. Returns whether the machine continues, which it does only if `may_continue`.
    pub(in crate::svm) fn refresh<K: KernelValue>(
        &mut self,
        may_continue: bool,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<bool> {
        let has_ended = matches!(self.stop, Some(StopReason::Converged | StopReason::Stalled));
        if !has_ended || !self.is_exact() || self.is_rounding_bounded || !self.is_double {
            return Ok(false);
        }
        self.final_outcome = None;
        let beta = self.problem().beta.try_to_vec()?;
        let few_columns = self.in_few_columns(training)?;
        let rounding = if let Some(rows) = &few_columns {
            self.start_by_weights(beta, rows, training.ctx)?
        } else {
            if StopReason::from_result(self.start_at(beta, columns, training))?.is_some() {
                return Ok(false);
            }
            self.bound_rounding(columns, training)?
        };
        let tolerance = training.params.tolerance;
        self.rounding = Some(rounding);
        let is_solved = self.kkt.largest() <= tolerance && self.has_small_gap(training.accuracy);
        let is_rounding = few_columns.is_some() && self.kkt.largest() <= rounding.output;
        if may_continue && !is_solved && !is_rounding {
            self.resume();
            return Ok(true);
        }
        self.is_rounding_bounded = true;
        // Outputs may be so large that the tolerance is below their last digit.
        let (.., Certificate { primal, gap, .. }) = self.certified(self.problem());
        let is_certain = is_solved
            && (rounding.output <= tolerance || gap <= tolerance * primal.abs())
            && (!training.accuracy.is_certified || self.relative_gap() <= 1.0);
        self.stop = Some(if is_certain { StopReason::Converged } else { StopReason::Stalled });
        Ok(false)
    }
}
