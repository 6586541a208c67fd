//! The search space: kernels, costs and folds; and the callback that receives the results.

use crate::context::StopReason;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::KernelFunction;
use ndarray::{Array2, ArrayView2};

/// Training rows and held-out rows.
#[derive(Debug, Clone, Copy)]
pub struct Fold<'a> {
    /// Indices of the training rows.
    pub train: &'a [usize],
    /// Weights of these rows, which C multiplies.
    pub weights: &'a [f64],
    /// Held-out rows, whose outputs are computed.
    pub test: &'a [usize],
}

/// The grid of kernels, costs and folds.
#[derive(Clone, Copy)]
pub struct Grid<'a> {
    /// The kernels of the grid; all points of one share its kernel values.
    pub kernels: &'a [KernelFunction<'a>],
    /// Values of C, ascending, which the weights of the rows multiply.
    pub costs: &'a [f64],
    /// Points to fit, (kernels, costs).
    pub points: ArrayView2<'a, bool>,
    /// The folds on which each point is fitted.
    pub folds: &'a [Fold<'a>],
}

/// A point of the grid on a fold, and the cost of its fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Index of the kernel.
    pub kernel: usize,
    /// Index of C.
    pub cost: usize,
    /// Index of the fold.
    pub fold: usize,
    /// Approximate processor time.
    pub seconds: f64,
    /// Number of steps of all machines.
    pub iterations: u64,
    /// Number of support vectors of all machines.
    pub support: usize,
    /// Reason why the machines stopped: that of one that has not converged, if there is one.
    pub stop: StopReason,
}

/// Receives the outputs of every fit.
pub trait ResultCallback: Sync {
    /// Receives outputs (test rows of the fold, machines), NaN for a machine whose training rows all have one label. Called
    /// from any thread, for the fits of a chain in order.
    fn call(&self, point: Point, outputs: Array2<f64>);
}

/// Checks a grid against the rows.
pub(super) fn check(rows: Rows<'_>, grid: &Grid<'_>) -> Result<()> {
    let &Grid { kernels, costs, points, folds } = grid;
    Error::check_len("rows of the points, one for each kernel", kernels.len(), points.nrows())?;
    Error::check_len("columns of the points, one for each C", costs.len(), points.ncols())?;
    if !costs.is_sorted_by(|a, b| a < b) {
        return Err(Error::param("Cs", format!("{costs:?}"), "rising"));
    }
    for fold in folds {
        Error::check_len(
            "weights of a fold, one for each training row",
            fold.train.len(),
            fold.weights.len(),
        )?;
        if let Some(weight) = fold.weights.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            return Err(Error::param("weights", weight, "positive and finite for every training row"));
        }
    }
    let named = || folds.iter().flat_map(|fold| fold.train.iter().chain(fold.test));
    match named().find(|row| **row >= rows.rows()) {
        Some(row) => Err(Error::param("cv", format!("row {row}"), format!("below {}", rows.rows()))),
        None => Ok(()),
    }
}
