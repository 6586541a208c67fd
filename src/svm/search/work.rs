//! What all chains of a search have in common, and what those of one kernel have.

use super::super::matrix::KernelMatrix;
use super::super::params::SvmParams;
use super::super::precision::Values;
use super::grid::{Grid, Judge};
use super::task::Plan;
use crate::control::{Monitor, Par, Progress, StopReason};
use crate::data::Rows;
use crate::kernels::{KernelFunction, Sums};
use crate::memory::Arenas;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all chains have in common.
pub(super) struct Work<'w> {
    pub(super) rows: Rows<'w>,
    pub(super) params: &'w SvmParams,
    pub(super) plan: &'w Plan<'w>,
    /// Positions of the rows that some fold learns from, rising.
    pub(super) learned: Vec<usize>,
    pub(super) grid: Grid<'w>,
    pub(super) judge: &'w dyn Judge,
    pub(super) told: &'w Told<'w>,
    pub(super) sums: Sums,
    pub(super) par: Par,
    /// Matrices are used again: the first touch of their pages costs as much as their values.
    pub(super) memory: Arenas,
}

/// A kernel of the grid, ready for its chains.
pub(super) struct Prepared<'w> {
    pub(super) index: usize,
    pub(super) kernel: KernelFunction<'w>,
    pub(super) values: Values,
    pub(super) matrix: Option<KernelMatrix<f32>>,
}

/// Tells how many fits are done, whatever a solver within has to tell.
pub(super) struct Told<'w> {
    pub(super) monitor: &'w dyn Monitor,
    pub(super) done: AtomicUsize,
    pub(super) total: usize,
    pub(super) stopped: OnceLock<StopReason>,
}

impl Monitor for Told<'_> {
    fn tick(&self, progress: &Progress) -> ControlFlow<StopReason> {
        let done = self.done.load(Ordering::Relaxed);
        let told = Progress { steps: progress.steps, ..Progress::of("search", done, self.total) };
        match self.stopped.get() {
            Some(&reason) => ControlFlow::Break(reason),
            None => self.monitor.tick(&told).map_break(|reason| *self.stopped.get_or_init(|| reason)),
        }
    }
}
