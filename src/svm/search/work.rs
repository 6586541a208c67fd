//! The data shared by all chains of a search, by those of a kernel, and their results.

use super::super::kernel_matrix::KernelMatrix;
use super::super::params::SvmParams;
use super::super::training::Training;
use super::grid::{Grid, ResultCallback};
use super::task::Plan;
use crate::context::{Context, Interruption, Monitor, Progress, StopReason};
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::CoefficientSum;
use crate::memory::{Arenas, try_vec};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The data shared by all chains.
pub(super) struct Work<'w> {
    pub(super) rows: Rows<'w>,
    pub(super) params: &'w SvmParams,
    pub(super) plan: &'w Plan<'w>,
    /// Positions of the training rows of any fold, ascending.
    pub(super) trained: Vec<usize>,
    pub(super) grid: Grid<'w>,
    pub(super) callback: &'w dyn ResultCallback,
    pub(super) progress: &'w SearchProgress<'w>,
    pub(super) sums: CoefficientSum,
    /// The context whose monitor is `progress`.
    pub(super) ctx: Context<'w>,
    /// Number of chains that run at the same time, among which the memory of the caches is divided.
    pub(super) chains_at_once: usize,
    /// Memory of matrices and blocks, used again: the first touch of a page costs as much as its values.
    pub(super) memory: Arc<Arenas>,
}

/// A kernel of the grid, ready for its chains.
pub(super) struct Prepared<'w> {
    pub(super) index: usize,
    /// The rows, with the accuracy of the held-out outputs.
    pub(super) training: Training<'w>,
    pub(super) matrix: Option<KernelMatrix<f32>>,
}

/// The outputs of a machine for the held-out rows of a fold at one C, and the cost of its fit.
#[derive(Clone)]
pub(super) struct FoldResult {
    pub(super) outputs: Vec<f64>,
    pub(super) seconds: f64,
    pub(super) iterations: u64,
    pub(super) support: usize,
    pub(super) stop: StopReason,
}

impl FoldResult {
    /// Returns the result of a machine that does not exist in this fold.
    pub(super) fn missing(count: usize) -> Result<Self> {
        let outputs = try_vec![f64::NAN; count]?;
        Ok(Self { outputs, seconds: 0.0, iterations: 0, support: 0, stop: StopReason::Converged })
    }
}

/// Reports the number of completed fits in place of the progress of the solvers.
pub(super) struct SearchProgress<'w> {
    pub(super) monitor: &'w dyn Monitor,
    /// Number of completed fits.
    pub(super) done: AtomicUsize,
    pub(super) total: usize,
}

impl Monitor for SearchProgress<'_> {
    fn tick(&self, progress: &Progress) -> ControlFlow<Interruption> {
        let done = self.done.load(Ordering::Relaxed);
        self.monitor.tick(&Progress { steps: progress.steps, ..Progress::new("search", done, self.total) })
    }
}
