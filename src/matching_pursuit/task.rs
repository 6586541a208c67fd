//! The learning task, and the parameters of a pursuit: variants, sizes, stopping, storage.
//!
//! Both are checked once, before the dictionary is evaluated, so that the steps need no checks. Cost: a pass over the targets and
//! the weights.

use super::loss::Loss;
use super::source::{Functions, RowSet};
use crate::error::{Error, Result};
use crate::memory::try_vec;
use ndarray::ArrayView2;
use std::ops::Range;

/// Maximum number of bytes of a stored dictionary, unless the caller sets it; above it, each step evaluates a sample.
pub const DEFAULT_DICTIONARY_BYTES: usize = 2_000_000_000;
/// Largest magnitudes of targets with squared loss.
const TARGETS: Range<f64> = 1e-130..1e140;

/// The validation rows, which decide on early stopping.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// (n, q).
    pub targets: ArrayView2<'a, f64>,
    /// If true, targets are classes: the sign of one output, the largest of several.
    pub classes: bool,
    /// Weights of the rows, (n,), not negative and not all zero.
    pub weights: Option<&'a [f64]>,
}

impl Validation<'_> {
    /// Returns the weight of a row.
    pub(super) fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |w| w[row])
    }

    /// The sum of the weights.
    pub(super) fn total_weight(&self) -> f64 {
        self.weights.map_or(self.targets.nrows() as f64, |w| w.iter().sum())
    }
}

/// A learning task.
pub struct Task<'a> {
    /// The dictionary, part by part; candidates are numbered through all parts.
    pub functions: &'a [&'a dyn Functions],
    /// (l, q).
    pub targets: ArrayView2<'a, f64>,
    /// (l,), positive.
    pub weights: Option<&'a [f64]>,
    /// If true, the constant function is in the basis from the start.
    pub constant: bool,
    /// The loss of an output, summed over the outputs.
    pub loss: &'a dyn Loss,
    /// If true, the loss is squared error, whose best coefficients are known.
    pub squared: bool,
    /// The rows of early stopping.
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

    /// Returns zero outputs of the validation rows, (q, n).
    pub(super) fn validation_zeros(&self) -> Result<Vec<f64>> {
        try_vec![0.0; self.validation_rows() * self.outputs()]
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
        if self.squared {
            let largest = self.targets.iter().fold(0.0_f64, |largest, y| largest.max(y.abs()));
            Error::check_param(
                largest == 0.0 || TARGETS.contains(&largest),
                "targets",
                format!("numbers up to {largest:e}"),
                format!(
                    "scaled to between {:e} and {:e}, whose squares can be summed",
                    TARGETS.start, TARGETS.end
                ),
            )?;
        }
        if let Some(validation) = &self.validation {
            Error::check_len("outputs of the validation targets", q, validation.targets.ncols())?;
            if let Some(weights) = validation.weights {
                let rows = validation.targets.nrows();
                Error::check_len("validation weights (one for each row)", rows, weights.len())?;
                if let Some(w) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
                    return Err(Error::param("validation weights", w, "finite and not negative"));
                }
                let total: f64 = weights.iter().sum();
                Error::check_param(total > 0.0, "validation weights", total, "not all zero")?;
            }
        }
        for part in self.functions {
            Error::check_len("training rows of a part of the dictionary", l, part.rows(RowSet::Training))?;
            let (rows, actual) = (self.validation_rows(), part.rows(RowSet::Validation));
            Error::check_len("validation rows of a part of the dictionary", rows, actual)?;
        }
        Ok(())
    }
}

/// The rule that chooses functions and updates coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Only the newest coefficient changes.
    Basic,
    /// All coefficients are the best after every step; the function is chosen before (orthogonal matching pursuit).
    BackFitting,
    /// All coefficients are the best, and the function is the one that then leaves the least loss.
    PreFitting,
}

/// Parameters of a pursuit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MatchingParams {
    /// The rule that chooses functions and updates coefficients.
    pub variant: Variant,
    /// Maximum number of functions.
    pub functions: usize,
    /// Maximum number of steps; a step may choose a function again unless all coefficients are the best ones.
    pub max_iterations: Option<usize>,
    /// Steps between two full back-fittings of a loss that is not squared error, at least 1.
    pub every: usize,
    /// Ends the pursuit when the norm of the residual is at most this share of the targets' norm.
    pub tolerance: f64,
    /// Ends the pursuit after this number of steps without a better validation measure.
    pub patience: Option<usize>,
    /// The measure that `patience` refers to.
    pub measure: Measure,
    /// The storage of the dictionary.
    pub storage: Storage,
    /// The number of candidates drawn at each step; `None` for all functions.
    pub sample: Option<usize>,
    /// Seed of the draws.
    pub seed: u64,
}

/// The precision and the memory of stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Single instead of double precision: half the memory. Chosen columns are computed again in double.
    pub single: bool,
    /// Bytes that the values may take.
    pub budget: usize,
}

/// The measure of early stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The weighted mean loss of the validation rows.
    Loss,
    /// The weighted share of wrong classes of the validation rows.
    Error,
}

impl MatchingParams {
    /// Returns the parameters of a back-fitting pursuit of at most `functions` functions, with values in double precision in at
    /// most 2 GB.
    pub fn new(functions: usize) -> Self {
        Self {
            variant: Variant::BackFitting,
            functions,
            max_iterations: None,
            every: 1,
            tolerance: 0.0,
            patience: None,
            measure: Measure::Loss,
            storage: Storage { single: false, budget: DEFAULT_DICTIONARY_BYTES },
            sample: None,
            seed: 0,
        }
    }

    pub(super) fn check(&self, task: &Task<'_>) -> Result<()> {
        Error::check_param(self.functions > 0, "functions", 0, "at least 1")?;
        Error::check_param(self.every > 0, "every", 0, "at least 1")?;
        let known = task.squared || self.variant != Variant::PreFitting;
        Error::check_param(known, "variant", "prefit", "backfit or basic for a loss that is not squared")?;
        Error::check_param(self.sample != Some(0), "sample", 0, "at least 1")?;
        let share = (0.0..1.0).contains(&self.tolerance);
        Error::check_param(share, "tolerance", self.tolerance, "in [0, 1)")
    }
}
