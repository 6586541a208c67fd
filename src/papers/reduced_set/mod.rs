//! Selections of vectors by a penalty on their coefficients: methods of [`Reducer::Matrix`](crate::reduced_set::Reducer::Matrix).
//!
//! | file | selects | source |
//! |---|---|---|
//! | `l0` | the fewest vectors that preserve w, up to a change set by gamma | TR-132, alg. 3.4 and 3.5 |
//! | `l1` | the penalized path, also of an SVM trained again on its own vectors | TR-132, eq. 4 and 5; compressed SVM, eq. 6 to 9 |
//! | `lasso` | | the exact l1 path of one output; Efron, Hastie, Johnstone and Tibshirani, 2004 |
//! | `groups` | | the solutions of outputs that share their vectors |
//! | `newton` | | the Newton step of `groups` |

mod groups;
mod l0;
mod l1;
mod lasso;
mod newton;

use crate::error::{Error, Result};
use crate::reduced_set::{Method, Order, Problem};

pub use l0::LEVELS;

/// The norm of the coefficients of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Norm {
    /// |b|_1: each output chooses its own vectors.
    Each,
    /// max |b|: all outputs share their vectors.
    #[default]
    Joint,
}

/// The zero norm. Without gamma, vectors enter as gamma decreases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZeroNorm {
    /// The norm, which decides if outputs share their vectors.
    pub norm: Norm,
    /// Weight of the change of w; 0 allows none.
    pub gamma: Option<f64>,
    /// Number of values of gamma of a path, by default [`LEVELS`].
    pub levels: usize,
}

/// The l1 path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct L1 {
    /// The norm, which decides if outputs share their vectors.
    pub norm: Norm,
    /// Uses the weights 1 / (sum_j |alpha_ij|) instead of 1, so that vectors with small coefficients are removed first.
    pub inverse_weights: bool,
    /// The vectors of the solution at this lambda instead of the path.
    pub penalty: Option<f64>,
    /// Computes the best coefficients of every size instead of keeping the penalized ones.
    pub refit: bool,
}

/// The l1 path of compressed SVM, eq. 9; the labels are the signs of the coefficients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lars {
    /// The norm, which decides if outputs share their vectors.
    pub norm: Norm,
    /// Weight of the squared losses relative to ||w||^2; `None` takes twice the largest |coefficient|.
    pub cost: Option<f64>,
    /// The vectors of the solution at this lambda instead of the path.
    pub penalty: Option<f64>,
    /// Computes the best coefficients of every size instead of keeping the penalized ones.
    pub refit: bool,
}

impl Method for ZeroNorm {
    fn check(&self) -> Result<()> {
        Error::check_not_negative("gamma", self.gamma.unwrap_or(0.0))
    }

    fn order(&self, problem: &Problem<'_, '_>) -> Result<Order> {
        // The first passes over chunks need fewer levels of gamma than the last.
        let levels = if problem.is_draft { (self.levels / 4).max(1) } else { self.levels };
        l0::order(problem, self.norm, self.gamma, levels)
    }

    fn numbers(&self, m: u64, _: u64, _: u64) -> u64 {
        4 * m * m
    }

    fn default_chunk(&self) -> usize {
        1024
    }
}

impl Method for L1 {
    fn check(&self) -> Result<()> {
        Error::check_not_negative("penalty", self.penalty.unwrap_or(0.0))
    }

    fn order(&self, problem: &Problem<'_, '_>) -> Result<Order> {
        l1::order(problem, self.norm, self.inverse_weights, self.penalty, !self.refit)
    }

    fn numbers(&self, m: u64, q: u64, max_vectors: u64) -> u64 {
        m * (m + 3 * q) + numbers_of_coefficients(q, max_vectors, self.refit)
    }

    fn keeps_coefficients(&self) -> bool {
        !self.refit
    }
}

impl Method for Lars {
    fn check(&self) -> Result<()> {
        let cost = self.cost.unwrap_or(1.0);
        let holds = cost > 0.0 && cost.is_finite();
        Error::check_param(holds, "cost", cost, "finite and positive")?;
        Error::check_not_negative("penalty", self.penalty.unwrap_or(0.0))
    }

    fn order(&self, problem: &Problem<'_, '_>) -> Result<Order> {
        l1::lars_order(problem, self.norm, self.cost, self.penalty, !self.refit)
    }

    fn numbers(&self, m: u64, q: u64, max_vectors: u64) -> u64 {
        m * (2 * m + 3 * q) + numbers_of_coefficients(q, max_vectors, self.refit)
    }

    fn default_chunk(&self) -> usize {
        2048
    }

    fn keeps_coefficients(&self) -> bool {
        !self.refit
    }
}

/// Returns the size of the factors of the active vectors, and of the coefficients of every size if they are kept.
fn numbers_of_coefficients(q: u64, max_vectors: u64, refit: bool) -> u64 {
    max_vectors * max_vectors / 2 * if refit { 1 } else { q + 2 }
}
