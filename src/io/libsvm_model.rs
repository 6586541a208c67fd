//! LIBSVM's model files, read and written (Chang & Lin, "LIBSVM: a library for support vector machines", 2011).
//!
//! A file holds a header and one line a support vector. For k classes there is one output for each pair a < b,
//! pairs counted row by row: (0,1), (0,2), ..., (1,2), ...; output p is
//!
//! ```text
//! f_p(x) = sum_i B[i, p] k(x, z_i) - rho_p,     f_p(x) > 0 votes for class a, else for class b
//! ```
//!
//! The text does not hold B but, for a vector listed under class c, its k-1 coefficients in the pairs that involve
//! c. A vector of a compressed model may have weight in every pair, so it is listed under several classes, each
//! coefficient once. Fewest classes for a vector is a vertex cover of its non-zero pairs; taking the class with
//! the most pairs left is within one or two of it and keeps a model that LIBSVM trained as it was.
//! Reading keeps what the file says: a vector listed twice stays twice.

mod read;
mod write;

pub use read::{read, read_from};
pub use write::{write, write_to};

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::memory::TryCollect;
use crate::probability::Sigmoid;

/// The problem that a LIBSVM model solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SvmType {
    /// Classification with C.
    CSvc,
    /// Classification with nu.
    NuSvc,
    /// The support of a distribution; f(x) > 0 inside.
    OneClass,
    /// Regression with epsilon.
    EpsilonSvr,
    /// Regression with nu.
    NuSvr,
}

impl SvmType {
    /// The types in the order of their numbers for `-s`.
    pub const ALL: [Self; 5] = [Self::CSvc, Self::NuSvc, Self::OneClass, Self::EpsilonSvr, Self::NuSvr];

    /// Returns the name on the line `svm_type` of a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::CSvc => "c_svc",
            Self::NuSvc => "nu_svc",
            Self::OneClass => "one_class",
            Self::EpsilonSvr => "epsilon_svr",
            Self::NuSvr => "nu_svr",
        }
    }

    /// Returns true if the model votes among labels.
    pub fn is_classifier(self) -> bool {
        matches!(self, Self::CSvc | Self::NuSvc)
    }
}

/// The lines `probA` and `probB` of a LIBSVM model file.
///
/// A classifier has one number of both for each pair of classes: p(a) = 1 / (1 + exp(probA f + probB)). A regression has one
/// `probA`, the scale of the Laplace distribution of its errors.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ProbabilityParams {
    /// The numbers of `probA`.
    pub prob_a: Vec<f64>,
    /// The numbers of `probB`.
    pub prob_b: Vec<f64>,
}

impl ProbabilityParams {
    /// Returns the numbers of `probA` and `probB`.
    pub fn new(prob_a: Vec<f64>, prob_b: Vec<f64>) -> Self {
        Self { prob_a, prob_b }
    }

    /// The parameters of a classifier's sigmoids, one for each pair of classes.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn of_sigmoids(sigmoids: &[Sigmoid]) -> Result<Self> {
        Ok(Self {
            prob_a: sigmoids.iter().map(|s| s.a).collect(),
            prob_b: sigmoids.iter().map(|s| s.b).collect(),
        })
    }

    /// Returns the sigmoids of a classifier, one for each pair of classes.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn sigmoids(&self) -> Result<Vec<Sigmoid>> {
        self.prob_a.iter().zip(&self.prob_b).map(|(&a, &b)| Sigmoid { a, b }).try_collect_vec()
    }

    /// Returns true if the file has no such lines.
    pub fn is_empty(&self) -> bool {
        self.prob_a.is_empty() && self.prob_b.is_empty()
    }

    /// Checks the numbers of values against a model's; `k` is 0 for a model that is no classifier.
    fn check(&self, k: usize) -> Result<(), String> {
        let expected = if k == 0 { (1, 0) } else { (pairs(k).unwrap_or(0), pairs(k).unwrap_or(0)) };
        let lengths = (self.prob_a.len(), self.prob_b.len());
        if self.is_empty() || lengths == expected {
            return Ok(());
        }
        Err(format!(
            "probA and probB have {} and {} values, expected {} and {}",
            lengths.0, lengths.1, expected.0, expected.1
        ))
    }
}

/// The contents of a LIBSVM model file.
#[derive(Debug, Clone, PartialEq)]
pub struct LibsvmModel {
    /// The problem it solved.
    pub svm_type: SvmType,
    /// One output for each pair of classes, or a single one. The vectors are CSR, or for the precomputed kernel
    /// dense (m, 1) with the training row counted from 0.
    pub expansion: KernelExpansion,
    /// (k,), the label of each class; empty if the model is no classifier.
    pub labels: Vec<i32>,
    /// (k,), the number of vectors that each class lists; empty if the model is no classifier.
    pub class_counts: Vec<usize>,
    /// Columns count from 0 in the file, since the index 0 occurs; never for the precomputed kernel.
    pub zero_based: bool,
    /// The probability parameters of `svm-train -b 1`; empty without.
    pub probability: ProbabilityParams,
}

/// Output of the pair a < b among k classes.
fn pair(k: usize, a: usize, b: usize) -> usize {
    a * (2 * k - a - 1) / 2 + b - a - 1
}

/// k (k - 1) / 2.
fn pairs(k: usize) -> Option<usize> {
    k.checked_mul(k.checked_sub(1)?).map(|twice| twice / 2)
}

fn repeated(labels: &[i32]) -> Option<i32> {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}

/// The training rows that the vectors of a precomputed kernel name, counted from 0.
pub(super) fn training_rows(vectors: Rows<'_>) -> Result<Vec<usize>> {
    Error::check_len("columns of the vectors of a precomputed kernel", 1, vectors.cols())?;
    (0..vectors.rows())
        .map(|row| {
            let mut index = 0.0;
            vectors.for_each_in_row(row, |_, value| index = value);
            if index < 0.0 || index.trunc() != index || index > f64::from(i32::MAX - 1) {
                let rule = format!("the index of a training row (vector {row})");
                return Err(Error::param("vectors", index, rule));
            }
            Ok(index as usize)
        })
        .collect()
}
