//! The search as a whole: which kernels are at work together, and their chains.
//!
//! Cost: see the module. Matrices of a few kernels are there at the same time, so that chains of one are not left alone at
//! the end, and memory is used again for the next.

use super::super::columns::depth;
use super::super::matrix::KernelMatrix;
use super::super::params::SvmParams;
use super::super::training::Training;
use super::chain::{Chain, WHOLE};
use super::grid::{Grid, ResultCallback, check};
use super::task::{Plan, SearchTask};
use super::work::{Prepared, SearchProgress, Work};
use crate::context::{Context, StopReason};
use crate::data::Rows;
use crate::error::Result;
use crate::memory::{Arenas, TryCollect, try_with_capacity};
use std::sync::atomic::AtomicUsize;

/// Bytes of kernel matrices at the same time, where one alone does not take more.
const TOGETHER: usize = 1 << 28;

/// Fits every point of the grid that is wanted on every fold, and passes the outputs for the held-out rows to the
/// callback. Returns why it stopped early, if it did: the callback has then received a part of the fits.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) and [`Error::Param`](crate::Error::Param) as those of single fits, and for costs
/// that do not rise or folds that name rows beyond the last.
pub fn search(
    rows: Rows<'_>,
    searched: &SearchTask<'_>,
    grid: &Grid<'_>,
    params: &SvmParams,
    callback: &dyn ResultCallback,
    ctx: Context<'_>,
) -> Result<Option<StopReason>> {
    check(rows, grid)?;
    let asked = (0..grid.kernels.len()).filter(|&k| grid.wanted.row(k).iter().any(|wanted| *wanted));
    let asked: Vec<usize> = asked.try_collect_vec()?;
    let total = grid.wanted.iter().filter(|wanted| **wanted).count() * grid.folds.len();
    let progress = SearchProgress { monitor: ctx.monitor(), done: AtomicUsize::new(0), total };
    let plan = Plan::new(searched.reborrow(), rows.rows())?;
    let sums = searched.sums();
    // The views of a grid do not shorten their lifetimes by themselves.
    let &Grid { kernels, costs, wanted, folds } = grid;
    let grid = Grid { kernels, costs, wanted: wanted.reborrow(), folds };
    let memory = Arenas::default();
    let learned = plan.learned(folds)?;
    let work = Work {
        rows: rows.reborrow(),
        params,
        plan: &plan,
        learned,
        grid,
        callback,
        progress: &progress,
        sums,
        ctx: ctx.with_monitor(&progress),
        memory,
    };
    let room = work.matrices();
    StopReason::from_result(asked.chunks(room.max(1)).try_for_each(|window| work.run(window, room > 0)))
}

impl Work<'_> {
    /// How many kernel matrices there is room for at the same time; 0 where not even one is worth it: the large machines of
    /// a single fold ask for few of its values.
    fn matrices(&self) -> usize {
        if self.grid.folds.len() == 1 && self.plan.largest() > WHOLE {
            return 0;
        }
        let one = KernelMatrix::<f32>::bytes(self.learned.len(), self.rows.rows()).max(1);
        if one > self.params.cache_bytes {
            return 0;
        }
        (self.params.cache_bytes.min(TOGETHER) / one).clamp(1, self.grid.kernels.len().max(1))
    }

    /// The chains of some kernels.
    fn run(&self, kernels: &[usize], with_matrices: bool) -> Result<()> {
        let &Self { params, ctx, sums, .. } = self;
        let memory = &self.memory;
        let largest = self.grid.costs.last().copied().unwrap_or(1.0);
        let weights = self.plan.weights(largest)?;
        let mut prepared = try_with_capacity("kernel matrices of the search", kernels.len())?;
        for &k in kernels {
            let kernel = self.grid.kernels[k];
            let training = Training::new(kernel, self.rows, &weights, sums, params, ctx)?;
            let matrix = if with_matrices {
                let order = &self.plan.order;
                let source = training.rows.kernel_rows(order, training.rows.precision(), ctx)?;
                let depth = depth(kernel, self.rows);
                Some(KernelMatrix::compute(&source, order, &self.learned, depth, memory, ctx)?)
            } else {
                None
            };
            prepared.push(Prepared { index: k, values: training.values(), rows: training.rows, matrix });
        }
        let chains = kernels.len() * self.grid.folds.len();
        let mut chains: Vec<usize> = (0..chains).try_collect_vec()?;
        ctx.try_for_each_chunk(&mut chains, 1, |_, chain| {
            let (kernel, fold) = (chain[0] / self.grid.folds.len(), chain[0] % self.grid.folds.len());
            Chain::new(self, &prepared[kernel], fold, memory)?.run()
        })?;
        for matrix in prepared.into_iter().filter_map(|prepared| prepared.matrix) {
            matrix.finish(memory);
        }
        Ok(())
    }
}
