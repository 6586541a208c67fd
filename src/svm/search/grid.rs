//! The search space: kernels, costs and folds; and the callback that receives the results.

use crate::context::StopReason;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::KernelFunction;
use ndarray::{Array2, ArrayView2};

/// Rows to learn from, and held-out rows.
#[derive(Debug, Clone, Copy)]
pub struct Fold<'a> {
    /// Rows of the fit.
    pub train: &'a [usize],
    /// Upper bounds of these rows for C = 1: their weights.
    pub weights: &'a [f64],
    /// Rows whose outputs are asked for.
    pub test: &'a [usize],
}

/// What is searched.
#[derive(Clone, Copy)]
pub struct Grid<'a> {
    /// One side of the grid.
    pub kernels: &'a [KernelFunction<'a>],
    /// The other side: C, rising, which the rows' own upper bounds are multiplied by.
    pub costs: &'a [f64],
    /// (kernels, costs): which points are asked for.
    pub wanted: ArrayView2<'a, bool>,
    /// Where each point is tried.
    pub folds: &'a [Fold<'a>],
}

/// A fit of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Index of the kernel.
    pub kernel: usize,
    /// Index of C.
    pub cost: usize,
    /// Index of the fold.
    pub fold: usize,
    /// Processor time of its steps, roughly.
    pub seconds: f64,
    /// Steps of all its machines.
    pub iterations: u64,
    /// Support vectors of all its machines.
    pub support: usize,
    /// Why the machine that came least far stopped.
    pub stop: StopReason,
}

/// Receives the outputs of every fit.
pub trait ResultCallback: Sync {
    /// Outputs (test rows of the fold, machines), not numbers for a machine whose rows in the fold are all alike. Called
    /// from any thread, one fit after the other of a chain.
    fn call(&self, point: Point, outputs: Array2<f64>);
}

/// Checks a grid beside its rows.
pub(super) fn check(rows: Rows<'_>, grid: &Grid<'_>) -> Result<()> {
    let &Grid { kernels, costs, wanted, folds } = grid;
    Error::check_len("rows of the points that are wanted, one a kernel", kernels.len(), wanted.nrows())?;
    Error::check_len("columns of the points that are wanted, one for each C", costs.len(), wanted.ncols())?;
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
