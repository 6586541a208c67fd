//! Parameters of constructed vectors, and the rows they are fitted to.
//!
//! Cost: a check reads each answer once.

use ndarray::ArrayView2;

use super::objective::Objective;
use crate::data::Rows;
use crate::error::{Error, Result};

/// Parameters of the optimization.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GradientParams {
    /// The loss between the outputs of both expansions.
    pub objective: Objective,
    /// Number of steps for each size.
    pub steps: usize,
    /// Number of rows of a step.
    pub batch: usize,
    /// Initial step length in each feature of a vector, as a share of the features' root mean square deviation.
    pub vector_rate: f64,
    /// Initial step length in each coefficient, as a share of the coefficients' root mean square.
    pub coefficient_rate: f64,
    /// Displacement of rows as a share of each feature's standard deviation.
    pub noise: f64,
    /// Maximum displacement of a row towards another row, as a share of their distance.
    pub mixing: f64,
    /// Number of displaced copies of each row.
    pub places: usize,
    /// Seed of the batches and displacements.
    pub seed: u64,
    /// Initial step length in the logarithms of the column scales; 0 keeps all scales at 1.
    pub scale_rate: f64,
    /// Ridge of the least squares fit of the first coefficients, as a share of the mean diagonal of its matrix.
    pub start_ridge: f64,
    /// Number of rows, the last ones, that no step uses: the result is the state with the smallest loss on them among the
    /// start and the ten tenths of the run. 0 returns the last state.
    pub held_out: usize,
}

/// The rows that the small expansion is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// The rows on which both expansions are compared.
    pub rows: Rows<'a>,
    /// Labels or values of the rows, if known.
    pub answers: Option<Answers<'a>>,
}

/// Labels or values of the rows.
#[derive(Debug, Clone, Copy)]
pub enum Answers<'a> {
    /// The class of each row, (n,).
    Classes(&'a [usize]),
    /// The numbers that the outputs should have, (n, q).
    Values(ArrayView2<'a, f64>),
    /// The outputs of a machine that is known by them alone, (n, q). The expansion gives the kernel and the number of
    /// outputs, and is never evaluated.
    Outputs(ArrayView2<'a, f64>),
}

impl GradientParams {
    /// Returns the parameters of `steps` steps for each size, each on 256 rows without displacement.
    pub fn new(objective: Objective, steps: usize) -> Self {
        Self {
            objective,
            steps,
            batch: 256,
            vector_rate: 0.1,
            coefficient_rate: 0.1,
            noise: 0.0,
            mixing: 0.0,
            places: 0,
            seed: 0,
            scale_rate: 0.0,
            start_ridge: 1e-6,
            held_out: 0,
        }
    }

    /// Checks every parameter against its rule.
    pub(super) fn check(&self) -> Result<()> {
        Error::check_param(self.batch > 0, "batch", self.batch, "at least 1")?;
        Error::check_not_negative("vector_rate", self.vector_rate)?;
        Error::check_not_negative("coefficient_rate", self.coefficient_rate)?;
        Error::check_not_negative("noise", self.noise)?;
        Error::check_not_negative("scale_rate", self.scale_rate)?;
        let ridge = self.start_ridge;
        Error::check_param(ridge.is_finite() && ridge > 0.0, "start_ridge", ridge, "finite and positive")?;
        let (s, w) = (self.objective.sharpness, self.objective.label_weight);
        Error::check_param(s.is_finite() && s > 0.0, "sharpness", s, "finite and positive")?;
        for (name, share) in [("mixing", self.mixing), ("label_weight", w)] {
            Error::check_param((0.0..=1.0).contains(&share), name, share, "in [0, 1]")?;
        }
        Ok(())
    }

    /// Checks the answers of the rows for q outputs.
    pub(super) fn check_answers(&self, examples: &Examples<'_>, q: usize) -> Result<()> {
        let n = examples.rows.rows();
        let rule = format!("less than {n}, the number of rows");
        Error::check_param(self.held_out < n, "held_out", self.held_out, rule)?;
        match examples.answers {
            Some(Answers::Classes(labels)) => {
                let classes = self.objective.coding.classes(q).unwrap_or(usize::MAX);
                Error::check_len("labels (one for each row)", n, labels.len())?;
                Error::check_below("labels", labels, classes, "the number of classes")
            }
            Some(Answers::Values(values) | Answers::Outputs(values)) => {
                Error::check_len("answers (one for each row)", n, values.nrows())?;
                Error::check_len("columns of the answers (one for each output)", q, values.ncols())?;
                if let Some(((row, _), _)) = values.indexed_iter().find(|(_, v)| !v.is_finite()) {
                    return Err(Error::NotFinite { what: "answers", row });
                }
                let enough = !self.objective.needs_labels();
                Error::check_param(enough, "labels", "numbers", "classes for a loss on labels")?;
                if matches!(examples.answers, Some(Answers::Outputs(_))) {
                    let rule = "0 for a machine that is known by its outputs on the rows";
                    Error::check_param(self.places == 0, "places", self.places, rule)?;
                }
                Ok(())
            }
            None => {
                let enough = !self.objective.needs_labels();
                Error::check_param(enough, "labels", "None", "given for a loss on labels")
            }
        }
    }
}
