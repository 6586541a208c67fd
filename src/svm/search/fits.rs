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

use super::super::engine::{Engine, SinglePrecision};
use super::super::params::SvmParams;
use super::super::training::Training;
use super::block::Block;
use super::chain::{Chain, ChainSolver, ChainValues};
use super::grid::Point;
use super::large::LargeMachines;
use super::work::{FoldResult, Work};
use crate::context::{Interruption, StopReason};
use crate::error::{Error, Result};
use crate::memory::try_zero_matrix;
use crate::platform::Stopwatch;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of rows of a machine that is solved as one block.
pub(super) const MAX_ONE_BLOCK: usize = 1500;

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

impl<'w> Chain<'_, 'w> {
    /// Fits all machines and reports their results: small machines in parallel, then large ones.
    pub(super) fn run(&self) -> Result<()> {
        let machines = self.work.plan.layout.of_machine.len();
        let (small, large): (Vec<usize>, Vec<usize>) =
            (0..machines).partition(|&j| self.size(j) <= MAX_ONE_BLOCK);
        let ctx = self.work.ctx;
        let values = Arc::new(self.values()?);
        let mut results: Vec<Vec<FoldResult>> = (0..machines).map(|_| Vec::new()).collect();
        let fitted = ctx.map(small.len(), |i| {
            let mut results = Vec::new();
            let ended = self.fit_small(small[i], &values, &mut results);
            (results, ended)
        });
        let mut interruption = None;
        for (j, (of_machine, ended)) in small.into_iter().zip(fitted) {
            results[j] = of_machine;
            interruption = interruption.or(Interruption::from_result(ended)?);
        }
        if interruption.is_none() && !large.is_empty() {
            return self.fit_large(&large, values, results);
        }
        (0..self.costs.len()).try_for_each(|k| self.report(k, &results))?;
        interruption.map_or(Ok(()), |interruption| Err(Error::Stopped(interruption)))
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

    /// Passes the results for the k-th C of the chain to the callback, if all machines have one.
    fn report(&self, k: usize, results: &[Vec<FoldResult>]) -> Result<()> {
        let fitted: Vec<&FoldResult> = results.iter().filter_map(|results| results.get(k)).collect();
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

#[cfg(test)]
mod tests {
    use super::super::super::classifier::Classification;
    use super::super::super::engine::Solve;
    use super::super::grid::{Fold, Grid, ResultCallback};
    use super::super::task::{Plan, SearchTask};
    use super::super::work::{Prepared, SearchProgress};
    use super::*;
    use crate::context::{Context, Silent};
    use crate::data::Rows;
    use crate::kernels::Kernel;
    use ndarray::{Array2, arr2};
    use std::sync::atomic::AtomicUsize;

    struct Nothing;

    impl ResultCallback for Nothing {
        fn call(&self, _: Point, _: Array2<f64>) {}
    }

    /// Passes the chain of a fold with C = 10 to `run`, 30 of 40 rows.
    fn with_chain(run: impl FnOnce(&Chain<'_, '_>, &Training<'_>)) {
        let (n, trained) = (40, 30);
        let x: Vec<f64> = (0..2 * n).map(|i| ((i * i * 37) % 101) as f64 / 50.0).collect();
        let labels: Vec<usize> = (0..n).map(|i| usize::from((i * 7) % 5 < 2)).collect();
        let (weights, order): (Vec<f64>, Vec<usize>) = (vec![1.0; n], (0..n).collect());
        let folds =
            [Fold { train: &order[..trained], weights: &weights[..trained], test: &order[trained..] }];
        let (kernels, points) = ([Kernel::Rbf { gamma: 0.5 }.into()], arr2(&[[true]]));
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
            trained: plan.trained(&folds),
            grid: Grid { kernels: &kernels, costs: &[10.0], points: points.view(), folds: &folds },
            callback: &Nothing,
            progress: &progress,
            sums: task.sums(),
            ctx,
            chains_at_once: 1,
            memory: Arc::default(),
        };
        run(&Chain::new(&work, &prepared, 0), &prepared.training);
    }

    fn assert_close(from_zero: &[f64], from_start: &[f64]) {
        for (from_zero, from_start) in from_zero.iter().zip(from_start) {
            assert!((from_zero - from_start).abs() < 1e-4, "{from_zero} {from_start}");
        }
    }

    /// Coefficients of single precision, from which a fit continues in double precision, may not sum to zero.
    #[test]
    fn a_start_that_is_projected_has_the_gradient_of_the_projection() {
        with_chain(|chain, _| {
            let values = Arc::new(chain.values_in_double(&chain.values().unwrap().source).unwrap());
            let outputs = |start: Option<Vec<f64>>| {
                let mut block = Block::new(chain, 0, Arc::clone(&values), 0, start).unwrap().unwrap();
                block.solve().unwrap();
                let (_, result) = block.results(0.0).unwrap().remove(0);
                assert_eq!(result.stop, StopReason::Converged);
                result.outputs
            };
            let members = chain.rows_of(&chain.members(0));
            let diagonal = values.source.diagonal(&members);
            let problem = chain.problem(0, 0, &members, &diagonal).unwrap();
            let unbalanced =
                problem.upper.iter().map(|upper| if *upper > 0.0 { 1.0 } else { -0.5 }).collect();
            assert_close(&outputs(None), &outputs(Some(unbalanced)));
        });
    }

    #[test]
    fn large_machines_continue_in_double_precision_from_their_coefficients() {
        with_chain(|chain, training| {
            let training = &training.reborrow();
            let result = |machines: &mut dyn ChainSolver| {
                let (_, result) = machines.results(0.0).unwrap().remove(0);
                assert_eq!(result.stop, StopReason::Converged);
                result
            };
            let values = Arc::new(chain.values().unwrap());
            let in_double = Arc::new(chain.values_in_double(&values.source).unwrap());
            let mut from_zero = LargeMachines::new(chain, &[0], in_double, training, 0).unwrap();
            from_zero.solve().unwrap();
            let mut single = LargeMachines::new(chain, &[0], values, training, 0).unwrap();
            single.solve().unwrap();
            let mut continued = single.into_double().unwrap();
            continued.solve().unwrap();
            let (from_zero, continued) = (result(&mut from_zero), result(&mut continued));
            assert_close(&from_zero.outputs, &continued.outputs);
            assert!(continued.iterations < from_zero.iterations, "{}", continued.iterations);
        });
    }
}
