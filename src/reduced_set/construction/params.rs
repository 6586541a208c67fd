//! How vectors are moved, and on what.

use ndarray::ArrayView2;

use super::objective::Objective;
use crate::data::Rows;
use crate::error::{Error, Result};

/// Parameters of moving.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientParams {
    /// What is minimised.
    pub objective: Objective,
    /// Number of steps for each size.
    pub steps: usize,
    /// Rows of a step.
    pub batch: usize,
    /// Length of a first step in each feature of a vector, as a share of the features' root mean square deviation.
    pub vector_rate: f64,
    /// Length of a first step in each coefficient, as a share of the coefficients' root mean square.
    pub coefficient_rate: f64,
    /// Displacement of rows as a share of each feature's standard deviation.
    pub noise: f64,
    /// Largest share of the way that a displaced row is moved towards another row.
    pub mixing: f64,
    /// Places that each row is displaced to, besides its own.
    pub places: usize,
    /// Of the batches and displacements.
    pub seed: u64,
}

/// What the small expansion is moved on.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// The rows on which both expansions are compared.
    pub rows: Rows<'a>,
    /// What is known of them.
    pub answers: Option<Answers<'a>>,
}

/// What is known of the rows besides the machine's outputs.
#[derive(Debug, Clone, Copy)]
pub enum Answers<'a> {
    /// The class of each row, (n,).
    Classes(&'a [usize]),
    /// The numbers that the outputs should have, (n, q).
    Values(ArrayView2<'a, f64>),
}

impl GradientParams {
    pub(super) fn check(&self) -> Result<()> {
        let rule = |name, value: f64, holds: bool, rule: &str| {
            if holds { Ok(()) } else { Err(Error::param(name, value, rule)) }
        };
        rule("batch", self.batch as f64, self.batch >= 1, "at least 1")?;
        for (name, value) in [
            ("vector_rate", self.vector_rate),
            ("coefficient_rate", self.coefficient_rate),
            ("noise", self.noise),
        ] {
            rule(name, value, value.is_finite() && value >= 0.0, "finite and not negative")?;
        }
        rule("mixing", self.mixing, (0.0..=1.0).contains(&self.mixing), "in [0, 1]")?;
        let s = self.objective.sharpness;
        rule("sharpness", s, s.is_finite() && s > 0.0, "finite and positive")?;
        let w = self.objective.label_weight;
        rule("label_weight", w, (0.0..=1.0).contains(&w), "in [0, 1]")
    }

    /// The answers of n rows for q outputs.
    pub(super) fn check_answers(&self, examples: &Examples<'_>, q: usize) -> Result<()> {
        let n = examples.rows.rows();
        match examples.answers {
            Some(Answers::Classes(labels)) => {
                let classes = self.objective.coding.classes(q).unwrap_or(usize::MAX);
                Error::check_len("labels (one for each row)", n, labels.len())?;
                if let Some(label) = labels.iter().find(|&&label| label >= classes) {
                    return Err(Error::param(
                        "labels",
                        label,
                        format!("below {classes}, the number of classes"),
                    ));
                }
            }
            Some(Answers::Values(values)) => {
                Error::check_len("answers (one for each row)", n, values.nrows())?;
                Error::check_len("columns of the answers (one for each output)", q, values.ncols())?;
                if let Some(((row, _), _)) = values.indexed_iter().find(|(_, v)| !v.is_finite()) {
                    return Err(Error::NotFinite { what: "answers", row });
                }
                if self.objective.needs_labels() {
                    return Err(Error::param("labels", "numbers", "classes for a loss on labels"));
                }
            }
            None if self.objective.needs_labels() => {
                return Err(Error::param("labels", "None", "given for a loss on labels"));
            }
            None => {}
        }
        Ok(())
    }
}
