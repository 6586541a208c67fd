//! The changes of a machine's state, and the outcome of a finished one.
//!
//! Cost: O(n) for a certificate.

use super::super::certificate::{Certificate, Rounding, certify};
use super::super::intercept::intercept;
use super::super::problem::DualProblem;
use super::super::stall::StallDetector;
use super::super::training::overflow_error;
use super::Machine;
use super::state::{Gradients, Outcome, State};
use crate::context::StopReason;
use crate::error::Result;

impl Machine<'_> {
    /// Returns the reason for which rounds have ended; `None` while the machine is running.
    pub(in crate::svm) fn reason(&self) -> Option<StopReason> {
        match &self.state {
            State::Running => None,
            State::Ended(reason) => Some(*reason),
            State::Finished(outcome) => Some(outcome.certificate.stop),
        }
    }

    /// Returns whether the machine makes rounds.
    pub(in crate::svm) fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    /// Ends the rounds of a running machine; a machine that has ended keeps its reason.
    pub(in crate::svm) fn end(&mut self, reason: StopReason) {
        if self.is_running() {
            self.state = State::Ended(reason);
        }
    }

    /// Runs the machine again, from its coefficients.
    pub(super) fn resume(&mut self) {
        (self.state, self.stall, self.gradient_rounding) = (State::Running, StallDetector::new(), 0.0);
    }

    /// Returns whether gradients are those of the coefficients.
    pub(in crate::svm) fn is_exact(&self) -> bool {
        !matches!(self.state, State::Finished(Outcome { gradients: Gradients::Outdated, .. }))
    }

    /// Returns intercept and certificate of a finished machine.
    ///
    /// # Errors
    /// [`Error::Param`](crate::Error::Param) if they are not finite.
    pub(in crate::svm) fn outcome(&self) -> Result<&Outcome> {
        let State::Finished(outcome) = &self.state else { panic!("only a finished machine has an outcome") };
        let problem = self.problem();
        let &Outcome {
            intercept, rho, certificate: Certificate { dual, primal, gap, violation, .. }, ..
        } = outcome;
        let numbers = [intercept, rho, dual, primal, gap, violation];
        if numbers.iter().chain(&problem.beta).all(|v| v.is_finite()) {
            return Ok(outcome);
        }
        let bounds = problem.upper.iter().chain(&problem.lower).filter(|c| c.is_finite()).map(|c| c.abs());
        // Squared losses have a ridge of 1 / (2 C) in place of bounds.
        let of_ridge = problem.ridge.iter().filter(|ridge| **ridge > 0.0).map(|ridge| 0.5 / ridge);
        Err(overflow_error(bounds.chain(of_ridge).fold(0.0, f64::max)))
    }

    /// Returns the outcome of the coefficients and gradients of a problem.
    pub(super) fn certified(
        &self,
        problem: &DualProblem,
        rounding: &Rounding,
        reason: StopReason,
    ) -> Outcome {
        let (intercept, rho) = intercept(problem);
        let (iterations, rounds) = (self.iterations, self.rounds);
        let certificate = certify(problem, (intercept, rho), rounding, iterations, rounds, reason);
        Outcome { intercept, rho, certificate, gradients: Gradients::Updated }
    }

    /// Finishes a machine at zero with feasible coefficients without gradients, whose intercept and dual objective are given.
    pub(in crate::svm) fn finish_at(
        &mut self,
        beta: Vec<f64>,
        intercept: f64,
        dual: f64,
        reason: StopReason,
    ) {
        let at_zero = self.certified(self.problem(), &Rounding::default(), reason);
        self.variables.problem.beta = beta;
        self.finish_without_gradients((intercept, 0.0), dual, &at_zero.certificate, &Rounding::default());
    }

    /// Finishes a machine with the dual objective of its coefficients, and primal objective and violation of the last ones whose
    /// gradients were exact.
    pub(super) fn finish_without_gradients(
        &mut self,
        (intercept, rho): (f64, f64),
        dual: f64,
        exact: &Certificate,
        rounding: &Rounding,
    ) {
        let &Certificate { primal, violation, .. } = exact;
        let counts = self.certified(self.problem(), rounding, exact.stop).certificate;
        let certificate = Certificate { dual, primal, gap: primal - dual, violation, ..counts };
        self.state = State::Finished(Outcome { intercept, rho, certificate, gradients: Gradients::Outdated });
    }
}
