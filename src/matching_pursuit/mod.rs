//! Kernel matching pursuit: f(x) = sum_n a_n g_n(x) with few functions g_n out of a dictionary, chosen one after the
//! other so that a loss on the training rows falls (Vincent and Bengio, Kernel Matching Pursuit, Machine Learning 48,
//! 2002). Not a reduction of a machine but a learner: only the functions' values on the training rows matter, so kernels
//! need be neither symmetric nor positive definite, and functions need be no kernels.
//!
//! | file | holds |
//! |---|---|
//! | `source` | where the functions' values come from: kernels around points, given columns, the caller |
//! | `dictionary` | the values on the training rows, kept or drawn anew at each step |
//! | `basis` | an orthonormal basis of the chosen functions |
//! | `orthogonal` | squared loss with back-fitting or pre-fitting (fig. 3) |
//! | `state` | what such a pursuit has fitted so far |
//! | `field` | all functions as candidates, looked at together every few steps |
//! | `descent` | any loss: basic pursuit (fig. 1) and back-fitting every few steps (fig. 4) |
//! | `backfit` | all coefficients at their best for any loss |
//! | `loss` | losses, and the search along one function |
//! | `curve` | losses along the path, early stopping |
//!
//! Several outputs choose their functions together (Weston and Bakir, TR-132, eq. 13). Row weights w are folded into the
//! values: with s = sqrt(w), the dictionary holds s d and the targets are s y.

mod backfit;
mod basis;
mod curve;
mod descent;
mod dictionary;
mod field;
mod loss;
mod orthogonal;
mod source;
mod state;

pub use curve::{Measure, Validation};
pub use dictionary::Storage;
pub use loss::{BuiltIn, Derivative, Loss};
pub use source::{Columns, Functions, KernelFunctions, RowSet};

use crate::control::{Monitor, Par, Stop};
use crate::error::{Error, Result};

/// How functions are chosen and coefficients kept up to date.
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
pub struct MatchingParams {
    /// The variant.
    pub variant: Variant,
    /// Most functions.
    pub functions: usize,
    /// Most steps; a step may choose a function again unless all coefficients are the best ones.
    pub steps: Option<usize>,
    /// Steps between two full back-fittings of a loss that is not squared error, at least 1.
    pub every: usize,
    /// End when the norm of the residual is at most this share of the targets' norm.
    pub tolerance: f64,
    /// End after so many steps without a better validation measure.
    pub patience: Option<usize>,
    /// The measure that patience is about.
    pub measure: Measure,
    /// How the dictionary is kept.
    pub storage: Storage,
    /// Draw so many candidates at each step instead of looking at all.
    pub sample: Option<usize>,
    /// Seed of the draws.
    pub seed: u64,
}

/// What is to be learnt.
pub struct Task<'a> {
    /// The dictionary, part by part; candidates are numbered through all parts.
    pub functions: &'a [&'a dyn Functions],
    /// (l, q) row-major.
    pub targets: &'a [f64],
    /// q.
    pub outputs: usize,
    /// (l,), positive.
    pub weights: Option<&'a [f64]>,
    /// Whether the constant function is in the basis from the start.
    pub constant: bool,
    /// The loss.
    pub loss: &'a dyn Loss,
    /// Whether the loss is squared error, so that the best coefficients are known.
    pub squared: bool,
    /// Rows on which the losses are watched.
    pub validation: Option<Validation<'a>>,
}

impl Task<'_> {
    /// Number of training rows l.
    pub fn rows(&self) -> usize {
        self.targets.len() / self.outputs.max(1)
    }

    fn check(&self, params: &MatchingParams) -> Result<()> {
        let (l, q) = (self.rows(), self.outputs);
        if q == 0 || l == 0 {
            return Err(Error::param("targets", "[]", "at least one row and one output"));
        }
        Error::check_len("targets (rows times outputs)", l * q, self.targets.len())?;
        if let Some(at) = self.targets.iter().position(|y| !y.is_finite()) {
            return Err(Error::NotFinite { what: "targets", row: at / q });
        }
        if let Some(weights) = self.weights {
            Error::check_len("weights (one for each row)", l, weights.len())?;
            if let Some(w) = weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
                return Err(Error::param("weights", w, "positive and finite"));
            }
        }
        for part in self.functions {
            Error::check_len("training rows of a part of the dictionary", l, part.rows(RowSet::Training))?;
            let validation = self.validation.as_ref().map_or(0, |v| v.targets.len() / q);
            Error::check_len(
                "validation rows of a part of the dictionary",
                validation,
                part.rows(RowSet::Validation),
            )?;
        }
        if params.functions == 0 {
            return Err(Error::param("functions", 0, "at least 1"));
        }
        if params.every == 0 {
            return Err(Error::param("every", 0, "at least 1"));
        }
        if params.variant == Variant::PreFitting && !self.squared {
            return Err(Error::param("variant", "prefit", "backfit or basic for a loss that is not squared"));
        }
        if params.sample == Some(0) {
            return Err(Error::param("sample", 0, "at least 1"));
        }
        if !(params.tolerance >= 0.0 && params.tolerance < 1.0) {
            return Err(Error::param("tolerance", params.tolerance, "in [0, 1)"));
        }
        Ok(())
    }
}

/// Coefficients of every size.
#[derive(Debug, Clone)]
pub enum Coefficients {
    /// Those of the first t functions of the basis solve L_t' A = G_t; see `path::path_coefficients`.
    Factor {
        /// L, (m, m) row-major, lower triangular.
        factor: Vec<f64>,
        /// G, (m, q).
        projections: Vec<f64>,
    },
    /// Those after every step from none on, one after the other: (1 or 0 for the constant + size, q) each.
    Steps(Vec<f64>),
}

/// A finished pursuit.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Candidates in the order in which they joined the basis, after the constant where it is there from the start.
    pub order: Vec<usize>,
    /// For every step from none on: the number of candidates in the basis.
    pub sizes: Vec<usize>,
    /// Coefficients.
    pub coefficients: Coefficients,
    /// For every step: mean loss of the training rows, all outputs together.
    pub training_loss: Vec<f64>,
    /// The same of the validation rows; empty without.
    pub validation_loss: Vec<f64>,
    /// Share of the validation rows whose class is wrong; empty where targets are not classes.
    pub validation_error: Vec<f64>,
    /// Why the pursuit ended.
    pub stop: Stop,
}

impl Fit {
    fn nothing(stop: Stop) -> Self {
        Self {
            order: Vec::new(),
            sizes: Vec::new(),
            coefficients: Coefficients::Factor { factor: Vec::new(), projections: Vec::new() },
            training_loss: Vec::new(),
            validation_loss: Vec::new(),
            validation_error: Vec::new(),
            stop,
        }
    }
}

/// Runs a pursuit.
///
/// Cost O(functions x candidates x rows); memory of the dictionary as its storage says, beside that
/// functions x rows numbers.
///
/// # Errors
/// [`Error::Param`], [`Error::Shape`] and [`Error::NotFinite`] for what does not fit; whatever a part of the dictionary
/// fails with.
pub fn matching_pursuit(
    task: &Task<'_>,
    params: &MatchingParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Fit> {
    task.check(params)?;
    if task.squared && params.variant != Variant::Basic {
        orthogonal::fit(task, params, monitor, par)
    } else {
        descent::fit(task, params, monitor, par)
    }
}
