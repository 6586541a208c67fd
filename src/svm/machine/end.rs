//! The end of a machine: what rounding has done to it, whether it continues in double precision, and its certificate.

use super::super::certificate::{Certificate, Rounding, certify};
use super::super::columns::Columns;
use super::super::intercept::intercept;
use super::super::precision::{KernelValue, is_hopeless, restart};
use super::super::problem::DualProblem;
use super::super::training::{Training, beyond};
use super::super::working_set::WorkingSet;
use super::{Machine, room};
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::Precision;
use crate::memory::{TryCollect, TryToVec};

impl Machine<'_> {
    /// Intercept, rho and certificate of a machine that has been solved.
    ///
    /// # Errors
    /// [`Error::Param`] where they are not numbers: nothing vouches for such a machine.
    pub(in crate::svm) fn outcome(&self) -> Result<(f64, f64, Certificate)> {
        let problem = self.problem();
        let (b, rho, certificate) = self.settled.unwrap_or_else(|| self.certified(problem));
        let numbers = [b, rho, certificate.dual, certificate.primal, certificate.gap, certificate.violation];
        if numbers.iter().chain(&problem.beta).all(|v| v.is_finite()) {
            return Ok((b, rho, certificate));
        }
        let bounds = problem.upper.iter().chain(&problem.lower).filter(|c| c.is_finite());
        Err(beyond(bounds.fold(0.0, |largest, c| largest.max(c.abs()))))
    }

    fn certified(&self, problem: &DualProblem) -> (f64, f64, Certificate) {
        let stop = self.stop.unwrap_or(StopReason::Stalled);
        let (b, rho) = intercept(problem);
        let rounding = self.rounding.unwrap_or_default();
        (b, rho, certify(problem, (b, rho), &rounding, self.iterations, self.rounds, stop))
    }

    /// Ends a machine at zero with feasible coefficients whose gradients nobody knows: `b` and `dual` are theirs.
    pub(in crate::svm) fn settle_for(&mut self, beta: Vec<f64>, b: f64, dual: f64, reason: StopReason) {
        self.stop = Some(reason);
        let (.., zero) = self.certified(self.problem());
        self.variables.problem.beta = beta;
        let (.., counts) = self.certified(self.problem());
        let Certificate { primal, violation, .. } = zero;
        self.settled = Some((b, 0.0, Certificate { dual, primal, gap: primal - dual, violation, ..counts }));
    }

    /// Takes the variables that were set aside back without their gradients. The certificate then has the dual objective
    /// of these coefficients, and primal objective and violation of the last ones whose gradients were exact: the
    /// optimum lies between the objectives as always.
    fn settle<K: KernelValue>(&mut self, columns: &Columns<'_, K>, ctx: Context<'_>) -> Result<()> {
        let (b, rho) = intercept(self.problem());
        let Some((before, gain)) = self.variables.settle()? else { return Ok(()) };
        let rounding = self.measure(&before, columns, ctx)?;
        let size = |problem: &DualProblem| problem.beta.iter().map(|b| b.abs()).sum::<f64>();
        let gain = gain - rounding.output * (size(&before) + size(self.problem()));
        self.rounding = Some(rounding);
        let (.., last) = self.certified(&before);
        let (.., counts) = self.certified(self.problem());
        let Certificate { primal, violation, .. } = last;
        let dual = last.dual + gain;
        let certificate = Certificate { dual, primal, gap: primal - dual, violation, ..counts };
        self.settled = Some((b, rho, certificate));
        Ok(())
    }

    /// What rounding has done to the gradients of a problem of all variables.
    fn measure<K: KernelValue>(
        &self,
        problem: &DualProblem,
        columns: &Columns<'_, K>,
        ctx: Context<'_>,
    ) -> Result<Rounding> {
        let source = &columns.segments[self.parts[0].segment].source;
        Rounding::measured(problem, &self.variables.rows, &columns.values, source, ctx)
    }

    /// Takes back what is set aside, with gradients where there is time, and sees what rounding has done.
    pub(in crate::svm) fn finish<K: KernelValue>(
        &mut self,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        // Where a stop leaves no time for the gradients, `settle` does without them.
        StopReason::from_result((|| {
            while self.unshrink(columns, training)? {}
            Ok(())
        })())?;
        self.settle(columns, training.ctx)?;
        if self.rounding.is_none() && self.settled.is_none() {
            self.rounding = Some(self.measure(self.problem(), columns, training.ctx)?);
        }
        Ok(())
    }

    /// Whether rounding hides the optimum in single precision from the coefficients that a machine begins with.
    pub(in crate::svm) fn begins_in_double<K: KernelValue>(
        &self,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<bool> {
        let rounding = self.measure(self.problem(), columns, training.ctx)?;
        Ok(rounding.needs_double(training.params.tolerance))
    }

    /// Returns whether the machine ended where rounding hides the optimum from kernel values of single precision.
    pub(in crate::svm) fn needs_double(&self, tolerance: f64) -> bool {
        let DualProblem { beta, diagonal, .. } = self.problem();
        let needed = match self.stop {
            Some(StopReason::Converged) => false,
            // It may have ended early, where its values happen to be exact.
            Some(StopReason::Stalled) => is_hopeless::<f32>(beta, diagonal, tolerance),
            _ => return false,
        };
        !self.is_double
            && self.settled.is_none()
            && (needed || self.rounding.is_some_and(|rounding| rounding.needs_double(tolerance)))
    }

    /// Goes on from the present coefficients with the kernel values of other columns in the same order.
    pub(in crate::svm) fn go_on_with<K: KernelValue>(
        &mut self,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let size = self.tuning.first_block(self.problem().len()).max(self.set.size);
        self.set = WorkingSet::new(size.min(room(&self.parts, columns)));
        let has_stalled = self.stop == Some(StopReason::Stalled);
        let beta = if has_stalled { restart(self.problem())? } else { self.problem().beta.try_to_vec()? };
        self.resume();
        self.is_double = K::PRECISION == Precision::Double;
        self.stop = StopReason::from_result(self.start_at(beta, columns, training))?;
        Ok(())
    }

    /// Computes the rounding error of double precision from kernel values.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    fn prove_by_values<K: KernelValue>(
        &self,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Option<Rounding>> {
        let problem = self.problem();
        let scales =
            columns.segments[self.parts[0].segment].source.rows().rounding_scales(&self.variables.rows)?;
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).try_collect_vec()?;
        let sizes: Vec<f64> = used.iter().map(|&v| problem.beta[v].abs()).try_collect_vec()?;
        let scaled: Vec<f64> =
            used.iter().zip(&sizes).map(|(&v, size)| size * scales[v]).try_collect_vec()?;
        let products = self.outputs((&used, &sizes), columns, training)?;
        let scaled = self.outputs((&used, &scaled), columns, training)?;
        Ok(Rounding::proved_by_values(problem, &columns.values, &scales, (&products, &scaled)))
    }

    /// In double precision: computes the gradients of a machine that has come to its end at once, which leaves no rounding
    /// of the way there, and proves what is left. Whether the machine should go on, which it does where it `may`.
    pub(in crate::svm) fn renew<K: KernelValue>(
        &mut self,
        may: bool,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<bool> {
        let ended = matches!(self.stop, Some(StopReason::Converged | StopReason::Stalled));
        if !ended || self.settled.is_some() || self.is_proved || !self.is_double {
            return Ok(false);
        }
        let renewed = self.start_at(self.problem().beta.try_to_vec()?, columns, training);
        if StopReason::from_result(renewed)?.is_some() {
            return Ok(false);
        }
        let tolerance = training.params.tolerance;
        let mut rounding = Rounding::proved(self.problem(), &columns.values);
        if rounding.needs_double(tolerance) {
            rounding = match self.prove_by_values(columns, training) {
                Ok(proved) => proved.unwrap_or(rounding),
                // The worst case holds too.
                Err(Error::Stopped(_)) => rounding,
                Err(error) => return Err(error),
            };
        }
        self.rounding = Some(rounding);
        let solved = self.survey.violation() <= tolerance;
        if may && !solved {
            self.resume();
            return Ok(true);
        }
        self.is_proved = true;
        // Outputs may be so large that the tolerance is below their last digit.
        let (.., Certificate { primal, gap, .. }) = self.certified(self.problem());
        let decided = solved && (rounding.output <= tolerance || gap <= tolerance * primal.abs());
        self.stop = Some(if decided { StopReason::Converged } else { StopReason::Stalled });
        Ok(false)
    }
}
