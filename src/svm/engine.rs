//! The engine of every fit: machines are solved with kernel values in single precision and, where rounding hides their optimum,
//! in double precision.
//!
//! There are two solvers: rounds of the outer tier (`decomposition::Rounds`), of one fit and of the large machines of a search, and
//! one block for each small machine of a search (`search::block`). A solver says whether its solution needs double precision, and
//! what it continues from there.
//!
//! Invariant: a solved engine has the solution in the precision that it needs, and keeps the precision for later problems of the
//! same machines: rounding errors grow with the coefficients.

use crate::error::Result;

/// Machines that are solved together.
pub(super) trait Solve {
    /// Solves the present problems.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) if the machines are not usable after a stop.
    fn solve(&mut self) -> Result<()>;
}

/// Machines with kernel values in single precision.
pub(super) trait SinglePrecision: Solve {
    /// The same machines with kernel values in double precision.
    type Double: Solve;

    /// Returns whether rounding hides the optimum of a machine that was solved.
    fn needs_double(&mut self) -> Result<bool>;

    /// Returns the machines with kernel values in double precision, at the point that they continue from.
    fn into_double(self) -> Result<Self::Double>;
}

/// A solver in the precision that its machines need.
pub(super) enum Engine<S: SinglePrecision> {
    Single(S),
    Double(S::Double),
}

impl<S: SinglePrecision> Engine<S> {
    /// Solves the present problems in the precision that they need.
    ///
    /// # Errors
    /// The errors of the solvers.
    pub(super) fn solve(self) -> Result<Self> {
        let mut double = match self {
            Self::Single(mut single) => {
                single.solve()?;
                if !single.needs_double()? {
                    return Ok(Self::Single(single));
                }
                single.into_double()?
            }
            Self::Double(double) => double,
        };
        double.solve()?;
        Ok(Self::Double(double))
    }
}
