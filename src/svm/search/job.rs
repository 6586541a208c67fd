//! The search as a whole: kernels and their chains.
//!
//! Cost: see the module. The matrices of a few kernels are in memory at the same time, so that no thread waits for the last
//! chain of a kernel; their memory is used again for the next ones.

use super::super::columns::{depth, is_cached};
use super::super::kernel_matrix::KernelMatrix;
use super::super::params::SvmParams;
use super::super::precision::Accuracy;
use super::super::training::Training;
use super::chain::Chain;
use super::fits::MAX_ONE_BLOCK;
use super::grid::{Grid, ResultCallback, check};
use super::task::{Plan, SearchTask};
use super::work::{Prepared, SearchProgress, Work};
use crate::context::{Context, StopReason};
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{Precision, packed_bytes};
use crate::memory;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Maximum number of rows of a panel of packed rows.
const MAX_PANEL_WIDTH: usize = 32;
/// Maximum bytes of kernel matrices at the same time, unless a single one is larger.
const MAX_MATRIX_BYTES: usize = 1 << 28;

/// Fits every point of the grid on every fold, and passes the outputs for the held-out rows to the
/// callback. Returns why it stopped early, if it did: the callback has then received a part of the fits.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) and [`Error::Param`](crate::Error::Param) as those of single fits, and for costs
/// that are not ascending or folds that name rows beyond the last.
pub fn search(
    rows: Rows<'_>,
    task: &SearchTask<'_>,
    grid: &Grid<'_>,
    params: &SvmParams,
    callback: &dyn ResultCallback,
    ctx: Context<'_>,
) -> Result<Option<StopReason>> {
    check(rows, grid)?;
    let fitted_kernels =
        (0..grid.kernels.len()).filter(|&k| grid.points.row(k).iter().any(|is_fitted| *is_fitted));
    let fitted_kernels: Vec<usize> = fitted_kernels.collect();
    let total = grid.points.iter().filter(|is_fitted| **is_fitted).count() * grid.folds.len();
    let progress = SearchProgress { monitor: ctx.monitor(), done: AtomicUsize::new(0), total };
    let plan = Plan::new(task.reborrow(), rows.rows())?;
    let sums = task.sums();
    // Lifetimes of ndarray's views are invariant.
    let &Grid { kernels, costs, points, folds } = grid;
    let grid = Grid { kernels, costs, points: points.reborrow(), folds };
    let trained = plan.trained(folds);
    let chains_at_once = chains_at_once(rows, &plan, &grid, params, ctx)?;
    let work = Work {
        rows: rows.reborrow(),
        params,
        plan: &plan,
        trained,
        grid,
        callback,
        progress: &progress,
        sums,
        ctx: ctx.with_monitor(&progress),
        chains_at_once,
        memory: Arc::default(),
    };
    let matrices = work.matrices();
    let together = if matrices > 0 { matrices } else { fitted_kernels.len().max(1) };
    let run = |kernels: &[usize]| work.run(kernels, matrices > 0);
    StopReason::from_result(fitted_kernels.chunks(together).try_for_each(run))
}

/// Returns the number of chains that run at the same time: one a thread, unless their caches are too small for the largest
/// working sets then. A working set that a cache bounds would make the results depend on the number of threads.
fn chains_at_once(
    rows: Rows<'_>,
    plan: &Plan<'_>,
    grid: &Grid<'_>,
    params: &SvmParams,
    ctx: Context<'_>,
) -> Result<usize> {
    let n = grid.folds.iter().map(|fold| fold.train.len()).max().unwrap_or(0);
    let mut needed = 0;
    for &kernel in grid.kernels {
        if is_cached(depth(kernel, rows), plan.layout.machine_size(), params) {
            // Each class block has a panel that is not full; packed rows of CSR are estimated.
            let packed =
                packed_bytes(kernel, rows, n + MAX_PANEL_WIDTH * plan.layout.sizes.len(), Precision::Double)?;
            let largest_block = params.tuning.max_block.min(n).saturating_mul(n * size_of::<f64>());
            needed = needed.max(packed.saturating_add(packed / 4).saturating_add(largest_block));
        }
    }
    Ok((params.cache_bytes / needed.max(1)).clamp(1, ctx.threads().max(1)))
}

impl Work<'_> {
    /// Returns the number of kernel matrices in memory at the same time; 0 if one matrix exceeds the memory, or if there are
    /// large machines and a single fold, which needs few of its values.
    fn matrices(&self) -> usize {
        if self.grid.folds.len() == 1 && self.plan.layout.machine_size() > MAX_ONE_BLOCK {
            return 0;
        }
        let matrix_bytes = KernelMatrix::<f32>::bytes(self.trained.len(), self.rows.rows()).max(1);
        if matrix_bytes > self.params.cache_bytes {
            return 0;
        }
        (self.params.cache_bytes.min(MAX_MATRIX_BYTES) / matrix_bytes)
            .clamp(1, self.grid.kernels.len().max(1))
    }

    /// Runs the chains of some kernels.
    fn run(&self, kernels: &[usize], with_matrices: bool) -> Result<()> {
        let &Self { params, ctx, sums, .. } = self;
        let memory = &self.memory;
        let largest = self.grid.costs.last().copied().unwrap_or(1.0);
        let weights = self.plan.weights(largest);
        let mut prepared = Vec::with_capacity(kernels.len());
        for &k in kernels {
            let kernel = self.grid.kernels[k];
            let accuracy = Accuracy::of_scores(params.tolerance);
            let training =
                Training { accuracy, ..Training::new(kernel, self.rows, &weights, sums, params, ctx)? };
            let matrix = if with_matrices {
                let order = &self.plan.layout.order;
                let source = training.rows.kernel_rows(order, training.rows.precision(), ctx)?;
                let depth = depth(kernel, self.rows);
                Some(KernelMatrix::compute(&source, order, &self.trained, depth, memory, ctx)?)
            } else {
                None
            };
            prepared.push(Prepared { index: k, training, matrix });
        }
        let n_chains = kernels.len() * self.grid.folds.len();
        let mut chains: Vec<usize> = (0..n_chains).collect();
        let have_caches = !with_matrices && self.plan.layout.machine_size() > MAX_ONE_BLOCK;
        let is_limited = have_caches && self.chains_at_once < ctx.threads();
        let together = if is_limited { self.chains_at_once } else { chains.len().max(1) };
        for chains in chains.chunks_mut(together) {
            ctx.try_for_each_chunk(chains, 1, |_, chain| {
                let (kernel, fold) = (chain[0] / self.grid.folds.len(), chain[0] % self.grid.folds.len());
                let _vectors = memory::reserve_part(n_chains.min(ctx.threads()), self.rows.rows())?;
                Chain::new(self, &prepared[kernel], fold).run()
            })?;
        }
        for matrix in prepared.into_iter().filter_map(|prepared| prepared.matrix) {
            matrix.release(memory);
        }
        Ok(())
    }
}
