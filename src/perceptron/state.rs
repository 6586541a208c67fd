//! Everything that the rest of a stream depends on: what is saved between two pieces.

use super::params::PerceptronParams;
use super::update::outputs;
use crate::data::OwnedRows;
use crate::error::{Error, Result};
use ndarray::Array2;

/// Everything that the rest of the stream depends on. Before the first row it has no vectors, and the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct PerceptronState {
    /// The pool, m vectors.
    pub vectors: OwnedRows,
    /// B, (m, q).
    pub coefficients: Array2<f64>,
    /// Rows seen before each vector came, (m,).
    pub born: Vec<u64>,
    /// What the policy keeps for pairs of vectors, (m, m), else (0, 0): Gram matrix or its inverse.
    pub matrix: Array2<f64>,
    /// What the policy keeps for each vector, (m, q), else (0, q): outputs at the vectors.
    pub scores: Array2<f64>,
    /// The Forgetron's sum of deviations.
    pub deviation: f64,
    /// State of the random generator; the seed at the beginning.
    pub random: u64,
    /// Rows seen.
    pub seen: u64,
    /// Mistakes made.
    pub mistakes: u64,
}

impl PerceptronState {
    pub(super) fn check(&self, params: &PerceptronParams) -> Result<()> {
        let (m, q) = (self.vectors.view().rows(), outputs(params.classes));
        Error::check_len("born of the state (one for each vector)", m, self.born.len())?;
        let rule = format!("at least {m}, the number of vectors that the model has already");
        Error::check_param(params.has_room_for(m), "budget", params.budget, rule)?;
        let pairs = if params.policy.keeps_pairs() { m } else { 0 };
        let scored = if params.policy.keeps_scores() { m } else { 0 };
        for (what, expected, found) in [
            ("coefficients of the state", (m, q), self.coefficients.dim()),
            ("matrix of the state", (pairs, pairs), self.matrix.dim()),
            ("scores of the state", (scored, q), self.scores.dim()),
        ] {
            Error::check_shape(what, expected, found)?;
        }
        Ok(())
    }
}
