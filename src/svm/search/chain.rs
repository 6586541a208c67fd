//! The fits of one fold and one kernel along increasing C.
//!
//! Machines of at most [`MAX_ONE_BLOCK`] rows are one block each (`block`). Larger ones are solved in the rounds of the outer tier
//! (`large`). Both continue from their last solution.
//!
//! Held-out outputs are only scored, so their errors by rounding may be as large as the tolerance. If they are too large for a
//! C (see `engine` and `precision`), that fit and those of larger C are made in double precision; kernel values are then computed
//! again. Errors grow with the coefficients, and are measured again only where they may have become too large.
//!
//! Invariant: the results of a fit are reported once all its machines have ended. Cost: that of the fits, reduced by their
//! starting points.

use super::super::engine::{Engine, SinglePrecision, Solve};
use super::super::kernel_matrix::KernelMatrix;
use super::super::params::SvmParams;
use super::super::precision::KernelValue;
use super::super::problem::DualProblem;
use super::super::training::Training;
use super::block::Block;
use super::grid::Point;
use super::held_out::HeldOut;
use super::large::LargeMachines;
use super::work::{FoldResult, Prepared, Work};
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::KernelRows;
use crate::memory::{self, Arenas, TryCollect, TryToVec, try_vec, try_zero_matrix};
use crate::platform::Stopwatch;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of rows of a machine that is solved as one block.
pub(super) const MAX_ONE_BLOCK: usize = 1500;

/// The fits of a fold with a kernel.
pub(super) struct Chain<'c, 'w> {
    pub(super) work: &'c Work<'w>,
    pub(super) prepared: &'c Prepared<'w>,
    fold: usize,
    /// Indices of the values of C to fit, ascending.
    costs: Vec<usize>,
    /// Positions of the training rows, by class block.
    pub(super) train: Vec<Vec<usize>>,
    /// Positions of the held-out rows.
    test: Vec<usize>,
    /// Weight of each row.
    pub(super) weights: Vec<f64>,
}

/// Kernel values of the machines of a chain, in one precision.
pub(super) struct ChainValues<'c, 'w, K> {
    pub(super) matrix: Option<&'c KernelMatrix<K>>,
    pub(super) source: KernelRows<'w>,
    pub(super) held_out: HeldOut<'w, K>,
    pub(super) memory: Arc<Arenas<K>>,
}

/// Some machines of a chain, in one precision.
pub(super) trait ChainSolver: Solve {
    /// Sets the problems for the k-th C of the chain, at the best multiple of the solutions for the C before. The first problems
    /// are set already.
    fn set_cost(&mut self, k: usize) -> Result<()>;

    /// Returns the result of each machine that was solved, in the given time.
    fn results(&mut self, seconds: f64) -> Result<Vec<(usize, FoldResult)>>;
}

/// Returns the solver of an engine, whatever its precision.
fn solver_of<S>(engine: &mut Engine<S>) -> &mut dyn ChainSolver
where
    S: SinglePrecision + ChainSolver,
    S::Double: ChainSolver,
{
    match engine {
        Engine::Single(solver) => solver,
        Engine::Double(solver) => solver,
    }
}

impl<'c, 'w> Chain<'c, 'w> {
    pub(super) fn new(work: &'c Work<'w>, prepared: &'c Prepared<'w>, fold: usize) -> Result<Self> {
        let (layout, rows) = (&work.plan.layout, &work.grid.folds[fold]);
        let mut position_of = try_vec![0; layout.order.len()]?;
        for (position, &row) in layout.order.iter().enumerate() {
            position_of[row] = position;
        }
        let mut is_trained = memory::try_filled("rows of a fold", position_of.len(), false)?;
        let mut weights = memory::try_filled("weights of a fold", position_of.len(), 0.0)?;
        for (&row, &weight) in rows.train.iter().zip(rows.weights) {
            is_trained[position_of[row]] = true;
            weights[row] = weight;
        }
        let mut end = 0;
        let train = layout.sizes.iter().map(|&size| {
            end += size;
            (end - size..end).filter(|&position| is_trained[position]).try_collect_vec()
        });
        let points = work.grid.wanted.row(prepared.index);
        Ok(Self {
            work,
            prepared,
            fold,
            costs: (0..points.len()).filter(|&c| points[c]).try_collect_vec()?,
            train: train.try_collect_results()?,
            test: rows.test.iter().map(|&row| position_of[row]).try_collect_vec()?,
            weights,
        })
    }

    /// Fits all machines and reports their results: small machines in parallel, then large ones.
    pub(super) fn run(&self) -> Result<()> {
        let machines = self.work.plan.layout.of_machine.len();
        let (small, large): (Vec<usize>, Vec<usize>) =
            (0..machines).partition(|&j| self.size(j) <= MAX_ONE_BLOCK);
        let ctx = self.work.ctx;
        let values = Arc::new(self.values()?);
        let mut results: Vec<Vec<FoldResult>> = (0..machines).map(|_| Vec::new()).try_collect_vec()?;
        let fitted = ctx.map(small.len(), |i| {
            let mut results = Vec::new();
            let ended = self.fit_small(small[i], &values, &mut results);
            (results, ended)
        })?;
        let mut stop = None;
        for (j, (of_machine, ended)) in small.into_iter().zip(fitted) {
            results[j] = of_machine;
            stop = stop.or(StopReason::from_result(ended)?);
        }
        if stop.is_none() && !large.is_empty() {
            return self.fit_large(&large, values, results);
        }
        (0..self.costs.len()).try_for_each(|k| self.report(k, &results))?;
        stop.map_or(Ok(()), |reason| Err(Error::Stopped(reason)))
    }

    /// Fits a machine as one block and appends its results.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which `results` has those of the completed fits.
    fn fit_small(
        &self,
        machine: usize,
        values: &Arc<ChainValues<'_, 'w, f32>>,
        results: &mut Vec<FoldResult>,
    ) -> Result<()> {
        let Some(block) = Block::new(self, machine, Arc::clone(values), 0, None)? else {
            let missing = FoldResult::missing(self.test.len())?;
            results.resize(self.costs.len(), missing);
            return Ok(());
        };
        self.fit(block, |_, solved| {
            results.extend(solved.into_iter().map(|(_, result)| result));
            Ok(())
        })
    }

    /// Fits large machines in rounds, all machines of a fit together; `results` has those of the small machines.
    fn fit_large(
        &self,
        large: &[usize],
        values: Arc<ChainValues<'_, 'w, f32>>,
        mut results: Vec<Vec<FoldResult>>,
    ) -> Result<()> {
        let &Work { params, ref grid, .. } = self.work;
        // Chains that leave a kernel matrix for double precision may all run at the same time.
        let chains = if self.prepared.matrix.is_some() { grid.folds.len() } else { 1 };
        let cache_bytes = params.cache_bytes / self.work.chains_at_once.max(chains);
        let params = SvmParams { cache_bytes, ..params.clone() };
        let training = Training { params: &params, ..self.prepared.training.reborrow() };
        let machines = LargeMachines::new(self, large, values, &training, 0)?;
        self.fit(machines, |k, solved| {
            for &j in large {
                results[j].push(FoldResult::missing(self.test.len())?);
            }
            for (j, result) in solved {
                results[j][k] = result;
            }
            self.report(k, &results)
        })
    }

    /// Fits some machines for one C after another, and passes the results to `record`.
    fn fit<S>(
        &self,
        machines: S,
        mut record: impl FnMut(usize, Vec<(usize, FoldResult)>) -> Result<()>,
    ) -> Result<()>
    where
        S: SinglePrecision + ChainSolver,
        S::Double: ChainSolver,
    {
        let mut engine = Engine::Single(machines);
        for k in 0..self.costs.len() {
            // Each of hundreds of machines may be too short for a check.
            self.check()?;
            let clock = Stopwatch::start();
            solver_of(&mut engine).set_cost(k)?;
            engine = engine.solve()?;
            record(k, solver_of(&mut engine).results(clock.seconds())?)?;
        }
        Ok(())
    }

    /// Reports to the monitor.
    pub(super) fn check(&self) -> Result<()> {
        self.work.ctx.check("search", 0, 0)
    }

    /// Returns the number of training rows of a machine.
    pub(super) fn size(&self, machine: usize) -> usize {
        self.work.plan.layout.of_machine[machine].iter().map(|&b| self.train[b].len()).sum()
    }

    /// Returns the positions of the training rows of a machine.
    pub(super) fn members(&self, machine: usize) -> Result<Vec<usize>> {
        let class_blocks = &self.work.plan.layout.of_machine[machine];
        class_blocks.iter().flat_map(|&b| self.train[b].iter().copied()).try_collect_vec()
    }

    pub(super) fn rows_of(&self, positions: &[usize]) -> Result<Vec<usize>> {
        positions.iter().map(|&position| self.work.plan.layout.order[position]).try_collect_vec()
    }

    /// Returns the problem of a machine over its training rows, with their K_ii, for the k-th C of the chain.
    pub(super) fn problem(
        &self,
        machine: usize,
        k: usize,
        rows: &[usize],
        diagonal: &[f64],
    ) -> Result<Option<DualProblem>> {
        let cost = self.work.grid.costs[self.costs[k]];
        let sample_c: Vec<f64> = rows.iter().map(|&row| cost * self.weights[row]).try_collect_vec()?;
        self.work.plan.problem(machine, rows, &sample_c, diagonal.try_to_vec()?)
    }

    /// Returns the kernel values in single precision.
    fn values(&self) -> Result<ChainValues<'c, 'w, f32>> {
        let rows = &self.prepared.training.rows;
        let source = rows.kernel_rows(&[], rows.precision(), Context::SEQUENTIAL)?;
        let matrix = self.prepared.matrix.as_ref();
        let held_out = self.held_out(matrix, &source)?;
        Ok(ChainValues { matrix, source, held_out, memory: Arc::clone(&self.work.memory) })
    }

    /// Returns the kernel values of `source` in double precision.
    pub(super) fn values_in_double(&self, source: &KernelRows<'w>) -> Result<ChainValues<'c, 'w, f64>> {
        let source = source.in_double(&[], Context::SEQUENTIAL)?;
        let held_out = self.held_out(None, &source)?;
        Ok(ChainValues { matrix: None, source, held_out, memory: Arc::default() })
    }

    /// Returns the held-out rows, with values from the matrix, or computed when they are needed.
    fn held_out<K: KernelValue>(
        &self,
        matrix: Option<&KernelMatrix<K>>,
        source: &KernelRows<'w>,
    ) -> Result<HeldOut<'w, K>> {
        let Some(matrix) = matrix else {
            return HeldOut::computed(source, &self.rows_of(&self.test)?, self.work.ctx);
        };
        let train: Vec<usize> = self.train.iter().flatten().copied().try_collect_vec()?;
        HeldOut::gather(matrix, &self.work.plan.layout.order, &train, &self.test)
    }

    /// Returns the ratio of the k-th C of the chain to the one before.
    pub(super) fn ratio(&self, k: usize) -> f64 {
        let costs = self.work.grid.costs;
        costs[self.costs[k]] / costs[self.costs[k - 1]]
    }

    /// Passes the results for the k-th C of the chain to the callback, if all machines have one.
    fn report(&self, k: usize, results: &[Vec<FoldResult>]) -> Result<()> {
        let fitted: Vec<&FoldResult> =
            results.iter().filter_map(|results| results.get(k)).try_collect_vec()?;
        if fitted.len() < self.work.plan.layout.of_machine.len() {
            return Ok(());
        }
        let mut outputs = try_zero_matrix("a matrix of results", (self.test.len(), fitted.len()))?;
        for (j, result) in fitted.iter().enumerate() {
            outputs.column_mut(j).iter_mut().zip(&result.outputs).for_each(|(to, from)| *to = *from);
        }
        let worse = |a, b| if a == StopReason::Converged { b } else { a };
        let point = Point {
            kernel: self.prepared.index,
            cost: self.costs[k],
            fold: self.fold,
            seconds: fitted.iter().map(|result| result.seconds).sum(),
            iterations: fitted.iter().map(|result| result.iterations).sum(),
            support: fitted.iter().map(|result| result.support).sum(),
            stop: fitted.iter().fold(StopReason::Converged, |stop, result| worse(stop, result.stop)),
        };
        self.work.progress.done.fetch_add(1, Ordering::Relaxed);
        self.work.callback.call(point, outputs);
        Ok(())
    }
}

/// Returns the rows with a nonzero coefficient, and these coefficients.
pub(super) fn nonzero(beta: &[f64], rows: &[usize]) -> Result<(Vec<usize>, Vec<f64>)> {
    let used = || beta.iter().zip(rows).filter(|(b, _)| **b != 0.0);
    Ok((used().map(|(_, &row)| row).try_collect_vec()?, used().map(|(&b, _)| b).try_collect_vec()?))
}

#[cfg(test)]
mod tests {
    use super::super::super::classifier::Classification;
    use super::super::grid::{Fold, Grid, ResultCallback};
    use super::super::task::{Plan, SearchTask};
    use super::super::work::SearchProgress;
    use super::*;
    use crate::context::Silent;
    use crate::data::Rows;
    use crate::kernels::Kernel;
    use ndarray::{Array2, arr2};
    use std::sync::atomic::AtomicUsize;

    struct Nothing;

    impl ResultCallback for Nothing {
        fn call(&self, _: Point, _: Array2<f64>) {}
    }

    /// Coefficients of single precision, from which a fit continues in double precision, may not sum to zero.
    #[test]
    fn a_start_that_is_projected_has_the_gradient_of_the_projection() {
        let (n, trained) = (40, 30);
        let x: Vec<f64> = (0..2 * n).map(|i| ((i * i * 37) % 101) as f64 / 50.0).collect();
        let labels: Vec<usize> = (0..n).map(|i| usize::from((i * 7) % 5 < 2)).collect();
        let (weights, order): (Vec<f64>, Vec<usize>) = (vec![1.0; n], (0..n).collect());
        let folds =
            [Fold { train: &order[..trained], weights: &weights[..trained], test: &order[trained..] }];
        let (kernels, wanted) = ([Kernel::Rbf { gamma: 0.5 }.into()], arr2(&[[true]]));
        let rows = Rows::from_shape((n, 2), &x).unwrap();
        let params = SvmParams { tolerance: 1e-6, ..SvmParams::default() };
        let (task, ctx) =
            (SearchTask::Classes(Classification::new(&labels, 2, &weights)), Context::SEQUENTIAL);
        let plan = Plan::new(task.reborrow(), n).unwrap();
        let progress = SearchProgress { monitor: &Silent, done: AtomicUsize::new(0), total: 1 };
        let training = Training::new(kernels[0], rows, &weights, task.sums(), &params, ctx).unwrap();
        let prepared = Prepared { index: 0, training, matrix: None };
        let work = Work {
            rows,
            params: &params,
            plan: &plan,
            trained: plan.trained(&folds).unwrap(),
            grid: Grid { kernels: &kernels, costs: &[10.0], wanted: wanted.view(), folds: &folds },
            callback: &Nothing,
            progress: &progress,
            sums: task.sums(),
            ctx,
            chains_at_once: 1,
            memory: Arc::default(),
        };
        let chain = Chain::new(&work, &prepared, 0).unwrap();
        let values = Arc::new(chain.values_in_double(&chain.values().unwrap().source).unwrap());
        let outputs = |start: Option<Vec<f64>>| {
            let mut block = Block::new(&chain, 0, Arc::clone(&values), 0, start).unwrap().unwrap();
            block.solve().unwrap();
            let (_, result) = block.results(0.0).unwrap().remove(0);
            assert_eq!(result.stop, StopReason::Converged);
            result.outputs
        };
        let members = chain.rows_of(&chain.members(0).unwrap()).unwrap();
        let diagonal = values.source.diagonal(&members).unwrap();
        let problem = chain.problem(0, 0, &members, &diagonal).unwrap().unwrap();
        let unbalanced = problem.upper.iter().map(|upper| if *upper > 0.0 { 1.0 } else { -0.5 }).collect();
        for (from_zero, from_start) in outputs(None).iter().zip(outputs(Some(unbalanced))) {
            assert!((from_zero - from_start).abs() < 1e-4, "{from_zero} {from_start}");
        }
    }
}
