//! What is to be learnt.

use super::loss::Loss;
use super::source::{Functions, RowSet};
use crate::error::{Error, Result};
use ndarray::ArrayView2;

/// Rows beside the training rows, on which the losses are looked at.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// (n, q).
    pub targets: ArrayView2<'a, f64>,
    /// Whether targets are classes: the sign of one output, the largest of several.
    pub classes: bool,
}

/// What is to be learnt.
pub struct Task<'a> {
    /// The dictionary, part by part; candidates are numbered through all parts.
    pub functions: &'a [&'a dyn Functions],
    /// (l, q).
    pub targets: ArrayView2<'a, f64>,
    /// (l,), positive.
    pub weights: Option<&'a [f64]>,
    /// Whether the constant function is in the basis from the start.
    pub constant: bool,
    /// The loss.
    pub loss: &'a dyn Loss,
    /// Whether the loss is squared error, so that the best coefficients are known.
    pub squared: bool,
    /// Rows on which the losses are looked at.
    pub validation: Option<Validation<'a>>,
}

impl Task<'_> {
    /// Number of training rows l.
    pub fn rows(&self) -> usize {
        self.targets.nrows()
    }

    /// Number of outputs q.
    pub fn outputs(&self) -> usize {
        self.targets.ncols()
    }

    /// Number of validation rows n.
    pub(super) fn validation_rows(&self) -> usize {
        self.validation.map_or(0, |v| v.targets.nrows())
    }

    /// The sum of the weights.
    pub(super) fn total_weight(&self) -> f64 {
        self.weights.map_or(self.rows() as f64, |w| w.iter().sum())
    }

    pub(super) fn check(&self) -> Result<()> {
        let (l, q) = self.targets.dim();
        Error::check_param(q * l > 0, "targets", "[]", "at least one row and one output")?;
        if let Some(row) = self.targets.rows().into_iter().position(|y| y.iter().any(|y| !y.is_finite())) {
            return Err(Error::NotFinite { what: "targets", row });
        }
        if let Some(weights) = self.weights {
            Error::check_len("weights (one for each row)", l, weights.len())?;
            if let Some(w) = weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
                return Err(Error::param("weights", w, "positive and finite"));
            }
        }
        if let Some(validation) = &self.validation {
            Error::check_len("outputs of the validation targets", q, validation.targets.ncols())?;
        }
        for part in self.functions {
            Error::check_len("training rows of a part of the dictionary", l, part.rows(RowSet::Training))?;
            let (rows, found) = (self.validation_rows(), part.rows(RowSet::Validation));
            Error::check_len("validation rows of a part of the dictionary", rows, found)?;
        }
        Ok(())
    }
}
