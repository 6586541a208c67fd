//! A kernel by its name and parameters, as expansions and files hold it; `kernels` computes its values.

use crate::data::Rows;
use crate::error::{Error, Result};

/// The smoothness nu of a Matérn kernel. A Gaussian process with the kernel has nu - 1/2 derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Smoothness {
    /// nu = 1/2: exp(-a)
    Half,
    /// nu = 3/2: (1 + a) exp(-a)
    ThreeHalves,
    /// nu = 5/2: (1 + a + a^2 / 3) exp(-a)
    FiveHalves,
}

impl Smoothness {
    /// Returns a / ||x - z|| = sqrt(2 nu) gamma.
    pub(crate) fn rate(self, gamma: f64) -> f64 {
        gamma
            * match self {
                Self::Half => 1.0,
                Self::ThreeHalves => 3_f64.sqrt(),
                Self::FiveHalves => 5_f64.sqrt(),
            }
    }
}

/// A kernel with its parameters.
///
/// `gamma` is scikit-learn's: the RBF kernel is exp(-gamma ||x - z||^2). For Matérn kernels it is 1 / `length_scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Kernel {
    /// x'z
    Linear,
    /// (gamma x'z + coef0)^degree
    Polynomial {
        /// Exponent.
        degree: u32,
        /// Scale of the inner product.
        gamma: f64,
        /// Added to the scaled inner product.
        coef0: f64,
    },
    /// exp(-gamma ||x - z||^2)
    Rbf {
        /// Inverse squared width, positive.
        gamma: f64,
    },
    /// tanh(gamma x'z + coef0); not positive definite in general.
    Sigmoid {
        /// Scale of the inner product.
        gamma: f64,
        /// Added to the scaled inner product.
        coef0: f64,
    },
    /// exp(-gamma ||x - z||_1)
    Laplacian {
        /// Inverse width, positive.
        gamma: f64,
    },
    /// exp(-gamma sum_k (x_k - z_k)^2 / (x_k + z_k)) for rows without negative values, 0/0 read as 0.
    ChiSquared {
        /// Inverse width, positive.
        gamma: f64,
    },
    /// A function of a = sqrt(2 nu) gamma ||x - z||, see [`Smoothness`] (Rasmussen and Williams, Gaussian Processes for
    /// Machine Learning, 2006, eq. 4.14 to 4.17).
    Matern {
        /// nu.
        smoothness: Smoothness,
        /// Inverse length scale, positive.
        gamma: f64,
    },
    /// Rows already are kernel values: a row x holds k(x, t) for every training row t, and a "vector" z is a row
    /// of one number, the index of its training row.
    Precomputed,
}

impl Kernel {
    /// scikit-learn's name; Matérn kernels are named by their smoothness.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Polynomial { .. } => "poly",
            Self::Rbf { .. } => "rbf",
            Self::Sigmoid { .. } => "sigmoid",
            Self::Laplacian { .. } => "laplacian",
            Self::ChiSquared { .. } => "chi2",
            Self::Matern { smoothness: Smoothness::Half, .. } => "matern12",
            Self::Matern { smoothness: Smoothness::ThreeHalves, .. } => "matern32",
            Self::Matern { smoothness: Smoothness::FiveHalves, .. } => "matern52",
            Self::Precomputed => "precomputed",
        }
    }

    /// From its [`name`](Self::name) and parameters; parameters that the kernel does not have are ignored.
    pub fn from_name(name: &str, gamma: f64, coef0: f64, degree: u32) -> Result<Self> {
        let kernel = match name {
            "linear" => Self::Linear,
            "poly" => Self::Polynomial { degree, gamma, coef0 },
            "rbf" => Self::Rbf { gamma },
            "sigmoid" => Self::Sigmoid { gamma, coef0 },
            "laplacian" => Self::Laplacian { gamma },
            "chi2" => Self::ChiSquared { gamma },
            "matern12" => Self::Matern { smoothness: Smoothness::Half, gamma },
            "matern32" => Self::Matern { smoothness: Smoothness::ThreeHalves, gamma },
            "matern52" => Self::Matern { smoothness: Smoothness::FiveHalves, gamma },
            "precomputed" => Self::Precomputed,
            _ => {
                return Err(Error::param(
                    "kernel",
                    format!("{name:?}"),
                    "one of linear, poly, rbf, sigmoid, laplacian, chi2, matern12, matern32, matern52, precomputed",
                ));
            }
        };
        kernel.check()?;
        Ok(kernel)
    }

    /// Checks the parameters against their rules.
    pub fn check(&self) -> Result<()> {
        let gamma = match *self {
            Self::Linear | Self::Precomputed => return Ok(()),
            Self::Polynomial { gamma, coef0, .. } | Self::Sigmoid { gamma, coef0 } => {
                if !coef0.is_finite() {
                    return Err(Error::param("coef0", coef0, "finite"));
                }
                gamma
            }
            Self::Rbf { gamma }
            | Self::Laplacian { gamma }
            | Self::ChiSquared { gamma }
            | Self::Matern { gamma, .. } => gamma,
        };
        if !gamma.is_finite() || gamma < 0.0 {
            return Err(Error::param("gamma", gamma, "finite and not negative"));
        }
        Ok(())
    }

    /// Checks that the rows are in the kernel's domain.
    pub fn check_rows(&self, what: &'static str, rows: Rows<'_>) -> Result<()> {
        if matches!(self, Self::ChiSquared { .. }) {
            for row in 0..rows.rows() {
                let mut negative = None;
                rows.for_each_in_row(row, |_, v| {
                    if v < 0.0 {
                        negative = Some(v);
                    }
                });
                if let Some(value) = negative {
                    return Err(Error::param(
                        what,
                        value,
                        format!("free of negative values for the chi2 kernel (row {row})"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// gamma of the kernels that have one.
    pub(crate) fn gamma(&self) -> Option<f64> {
        match *self {
            Self::Polynomial { gamma, .. }
            | Self::Rbf { gamma }
            | Self::Sigmoid { gamma, .. }
            | Self::Laplacian { gamma }
            | Self::ChiSquared { gamma }
            | Self::Matern { gamma, .. } => Some(gamma),
            Self::Linear | Self::Precomputed => None,
        }
    }

    /// The kernel with another gamma, where it has one.
    pub(crate) fn with_gamma(mut self, new: f64) -> Self {
        match &mut self {
            Self::Polynomial { gamma, .. }
            | Self::Rbf { gamma }
            | Self::Sigmoid { gamma, .. }
            | Self::Laplacian { gamma }
            | Self::ChiSquared { gamma }
            | Self::Matern { gamma, .. } => *gamma = new,
            Self::Linear | Self::Precomputed => {}
        }
        self
    }

    /// k(x, x) where it does not depend on x.
    pub fn constant_diagonal(&self) -> Option<f64> {
        match self {
            Self::Rbf { .. } | Self::Laplacian { .. } | Self::ChiSquared { .. } | Self::Matern { .. } => {
                Some(1.0)
            }
            _ => None,
        }
    }
}
