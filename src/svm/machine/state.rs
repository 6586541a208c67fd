//! The states of a machine.
//!
//! A *running* machine makes rounds. One that has *ended* has a reason, and may still have set variables aside. A *finished*
//! machine has all its variables, an intercept and a certificate, and keeps them until it resumes: only a finished machine has
//! an outcome.
//!
//! ```text
//! Running --end--> Ended --finish--> Finished --resume--> Running
//! ```

use super::super::certificate::Certificate;
use crate::context::StopReason;

/// The state of a machine.
pub(super) enum State {
    /// Rounds reduce the violation.
    Running,
    /// Rounds have ended for a reason.
    Ended(StopReason),
    /// The certificate is known.
    Finished(Outcome),
}

/// Intercept and certificate of a finished machine; the certificate has the reason of its end.
#[derive(Clone, Copy)]
pub(in crate::svm) struct Outcome {
    pub(in crate::svm) intercept: f64,
    pub(in crate::svm) rho: f64,
    pub(in crate::svm) certificate: Certificate,
    pub(super) gradients: Gradients,
}

/// The gradients of a finished machine.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Gradients {
    /// Those of other coefficients: a stop left no time for them.
    Outdated,
    /// Those of the coefficients, but for the rounding of kernel values and updates.
    Updated,
    /// Computed at once in double precision; the certificate has the worst case of their rounding.
    Computed,
}
