//! A finished pursuit.

use super::curve::Curve;
use crate::control::Stop;
use ndarray::Array2;

/// Coefficients of every size.
#[derive(Debug, Clone)]
pub enum Coefficients {
    /// Those of the first t functions of the basis solve L_t' A = G_t; see [`path_coefficients`](crate::path::path_coefficients).
    Factor {
        /// L, (m, m), lower triangular.
        factor: Array2<f64>,
        /// G, (m, q).
        projections: Array2<f64>,
    },
    /// Those after every step from none on, one after the other: (1 or 0 for the constant + size, q) each.
    Steps(Array2<f64>),
}

/// A finished pursuit.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Candidates in the order in which they joined the basis, after the constant where it is there from the start.
    pub order: Vec<usize>,
    /// Coefficients.
    pub coefficients: Coefficients,
    /// Sizes and losses.
    pub curve: Curve,
    /// Why the pursuit ended.
    pub stop: Stop,
}

impl Fit {
    /// A pursuit that was stopped before its first step.
    pub(super) fn nothing(outputs: usize, stop: Stop) -> Self {
        let (factor, projections) = (Array2::zeros((0, 0)), Array2::zeros((0, outputs)));
        let coefficients = Coefficients::Factor { factor, projections };
        Self { order: Vec::new(), coefficients, curve: Curve::default(), stop }
    }
}
