//! The end of a machine: the variables that were set aside, the effect of rounding, the change of precision, the certificate.
//!
//! Cost: a product of all outputs if variables are set aside, and for a change of precision; for the measure see `rounding`.

use super::super::certificate::Rounding;
use super::super::columns::KernelColumns;
use super::super::intercept::intercept;
use super::super::interior_point::InteriorPoint;
use super::super::precision::{Accuracy, KernelValue, exceeds_single_precision, restart_coefficients};
use super::super::problem::DualProblem;
use super::super::rounding::MeasuredRounding;
use super::super::training::Training;
use super::super::working_set::WorkingSet;
use super::state::{Gradients, Outcome, State};
use super::{Machine, cache_capacity};
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::Precision;

impl Machine<'_> {
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

    /// Finishes a machine that has ended: takes back the variables that were set aside, with gradients if there is time, measures
    /// the rounding, and certifies the coefficients. Other machines stay as they are.
    pub(in crate::svm) fn finish<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let State::Ended(reason) = self.state else { return Ok(()) };
        if StopReason::from_result(self.unshrink_all(columns, training))?.is_some() {
            return self.finish_shrunk(reason, columns, training.ctx);
        }
        let mut rounding = Rounding::default();
        if self.must_measure(training.accuracy) {
            rounding = self.measure_rounding(self.problem(), columns, training.ctx)?;
            self.measured = Some(MeasuredRounding::new(&rounding, self.kkt.squared_norm));
        }
        self.state = State::Finished(self.certified(self.problem(), &rounding, reason));
        Ok(())
    }

    /// Takes the variables that were set aside back without their gradients. The certificate then has the dual objective
    /// of these coefficients, and primal objective and violation of the last ones whose gradients were exact: the
    /// optimum lies between the objectives in any case.
    fn finish_shrunk<K: KernelValue>(
        &mut self,
        reason: StopReason,
        columns: &KernelColumns<'_, K>,
        ctx: Context<'_>,
    ) -> Result<()> {
        let levels = intercept(self.problem());
        let (exact, gain) = self.variables.restore_without_gradients();
        let rounding = self.measure_rounding(&exact, columns, ctx)?;
        let size = |problem: &DualProblem| problem.beta.iter().map(|b| b.abs()).sum::<f64>();
        let gain = gain - rounding.output * (size(&exact) + size(self.problem()));
        let certificate = self.certified(&exact, &rounding, reason).certificate;
        self.finish_without_gradients(levels, certificate.dual + gain, &certificate, &rounding);
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
        let State::Finished(Outcome { certificate, .. }) = &self.state else { return false };
        let is_needed = match certificate.stop {
            StopReason::Converged => !self.has_small_gap(accuracy),
            // The machine may have ended early, although its values happen to be exact.
            StopReason::Stalled => {
                exceeds_single_precision::<f32>(squares(), max_rounding)
                    || self.interior_point == InteriorPoint::Due
            }
            _ => return false,
        };
        !self.is_double && self.is_exact() && (is_needed || certificate.rounding > max_rounding)
    }

    /// Returns the coefficients from which the machine continues in another precision.
    pub(in crate::svm) fn restart_coefficients(&self) -> Vec<f64> {
        let has_stalled = self.reason() == Some(StopReason::Stalled);
        if has_stalled { restart_coefficients(self.problem()) } else { self.problem().beta.clone() }
    }

    /// Continues from the present coefficients with kernel values of the same columns in another precision.
    pub(in crate::svm) fn change_precision<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let size = self.tuning.first_block(self.problem().len()).max(self.working_set.size);
        self.working_set = WorkingSet::new(size.min(cache_capacity(&self.parts, columns)));
        let beta = self.restart_coefficients();
        self.resume();
        self.is_double = K::PRECISION == Precision::Double;
        if let Some(reason) = StopReason::from_result(self.start_at(beta, columns, training))? {
            self.end(reason);
        }
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
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).collect();
        let sizes: Vec<f64> = used.iter().map(|&v| problem.beta[v].abs()).collect();
        let scaled: Vec<f64> = used.iter().zip(&sizes).map(|(&v, size)| size * scales[v]).collect();
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

    /// Recomputes the gradients of a machine that has finished in double precision, which removes the rounding errors of the
    /// updates, and bounds the errors that remain. The machine runs again if they do not solve it and if it `may_resume`.
    pub(in crate::svm) fn refresh<K: KernelValue>(
        &mut self,
        may_resume: bool,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let State::Finished(Outcome { certificate, gradients: Gradients::Updated, .. }) = &self.state else {
            return Ok(());
        };
        let reason = certificate.stop;
        if !self.is_double || !matches!(reason, StopReason::Converged | StopReason::Stalled) {
            return Ok(());
        }
        let beta = self.problem().beta.clone();
        let few_columns = self.in_few_columns(training)?;
        let rounding = if let Some(rows) = &few_columns {
            self.start_by_weights(beta, rows, training.ctx)
        } else {
            if StopReason::from_result(self.start_at(beta, columns, training))?.is_some() {
                return Ok(());
            }
            self.bound_rounding(columns, training)?
        };
        let mut outcome = self.certified(self.problem(), &rounding, reason);
        (outcome.gradients, self.state) = (Gradients::Computed, State::Finished(outcome));
        let (tolerance, violation) = (training.params.tolerance, self.kkt.largest());
        let is_solved = violation <= tolerance && self.has_small_gap(training.accuracy);
        let is_rounding = few_columns.is_some() && violation <= rounding.output;
        if may_resume && !is_solved && !is_rounding {
            self.resume();
            return Ok(());
        }
        // Outputs may be so large that the tolerance is below their last digit.
        let is_small = outcome.certificate.gap <= tolerance * outcome.certificate.primal.abs();
        let is_certain = is_solved
            && (rounding.output <= tolerance || is_small)
            && (!training.accuracy.is_certified || self.relative_gap() <= 1.0);
        outcome.certificate.stop = if is_certain { StopReason::Converged } else { StopReason::Stalled };
        self.state = State::Finished(outcome);
        Ok(())
    }
}
