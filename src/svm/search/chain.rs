//! The fits of one fold and one kernel along increasing C.
//!
//! Machines of at most [`MAX_ONE_BLOCK`] rows are one block each, whose kernel values are gathered once for all C. Larger
//! ones are solved in the rounds of the outer tier, each from its last solution.
//!
//! Held-out outputs are only scored, so their errors by rounding may be as large as the tolerance. If they are too large for a
//! C (see `precision`), that fit and those of larger C are made in double precision; kernel values are then computed again.
//! Errors grow with the coefficients, and are measured again only where they may have become too large.
//!
//! Invariant: the results of a fit are reported once all its machines have ended. Cost: that of the fits, reduced by their
//! starting points.

use super::super::certificate::Rounding;
use super::super::columns::KernelColumns;
use super::super::decomposition::solve;
use super::super::few_columns::{FewColumns, unless_memory_is_short};
use super::super::intercept::intercept;
use super::super::interior_point;
use super::super::kernel_matrix::KernelMatrix;
use super::super::machine::Machine;
use super::super::params::SvmParams;
use super::super::precision::{KernelValue, exceeds_single_precision, restart_coefficients};
use super::super::problem::DualProblem;
use super::super::rounding::MeasuredRounding;
use super::super::subproblem::{Goal, Subproblem, write_block};
use super::super::training::Training;
use super::grid::Point;
use super::held_out::HeldOut;
use super::work::{FoldResult, Prepared, Work};
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::{KernelRows, Precision};
use crate::memory::{self, Arenas, TryCollect, TryToVec, try_vec, try_zero_matrix};
use crate::platform::Stopwatch;
use crate::simd::gather::Indices;
use std::sync::atomic::Ordering;

/// Maximum number of rows of a machine that is solved as one block.
pub(super) const MAX_ONE_BLOCK: usize = 1500;

/// The fits of a fold with a kernel.
pub(super) struct Chain<'c, 'w> {
    work: &'c Work<'w>,
    prepared: &'c Prepared<'w>,
    fold: usize,
    memory: &'c Arenas,
    /// Indices of the values of C to fit, ascending.
    costs: Vec<usize>,
    /// Positions of the training rows, by class block.
    train: Vec<Vec<usize>>,
    /// Positions of the held-out rows.
    test: Vec<usize>,
    /// Weight of each row.
    weights: Vec<f64>,
}

/// Kernel values of the machines of a chain, in one precision.
struct ChainValues<'a, 's, K> {
    matrix: Option<&'a KernelMatrix<K>>,
    source: &'a KernelRows<'s>,
    held_out: &'a HeldOut<'s, K>,
    memory: &'a Arenas<K>,
}

impl<'c, 'w> Chain<'c, 'w> {
    pub(super) fn new(
        work: &'c Work<'w>,
        prepared: &'c Prepared<'w>,
        fold: usize,
        memory: &'c Arenas,
    ) -> Result<Self> {
        let (plan, rows) = (work.plan, &work.grid.folds[fold]);
        let mut position_of = try_vec![0; plan.order.len()]?;
        for (position, &row) in plan.order.iter().enumerate() {
            position_of[row] = position;
        }
        let mut is_trained = memory::try_filled("rows of a fold", position_of.len(), false)?;
        let mut weights = memory::try_filled("weights of a fold", position_of.len(), 0.0)?;
        for (&row, &weight) in rows.train.iter().zip(rows.weights) {
            is_trained[position_of[row]] = true;
            weights[row] = weight;
        }
        let mut end = 0;
        let train = plan.sizes.iter().map(|&size| {
            end += size;
            (end - size..end).filter(|&position| is_trained[position]).try_collect_vec()
        });
        let wanted = work.grid.wanted.row(prepared.index);
        Ok(Self {
            work,
            prepared,
            fold,
            memory,
            costs: (0..wanted.len()).filter(|&c| wanted[c]).try_collect_vec()?,
            train: train.try_collect_results()?,
            test: rows.test.iter().map(|&row| position_of[row]).try_collect_vec()?,
            weights,
        })
    }

    /// Fits all machines and reports their results: small machines in parallel, then large ones.
    pub(super) fn run(&self) -> Result<()> {
        let machines = self.work.plan.of_machine.len();
        let (small, large): (Vec<usize>, Vec<usize>) =
            (0..machines).partition(|&j| self.size(j) <= MAX_ONE_BLOCK);
        let ctx = self.work.ctx;
        let rows = &self.prepared.rows;
        let source = rows.kernel_rows(&[], rows.precision(), Context::SEQUENTIAL)?;
        let matrix = self.prepared.matrix.as_ref();
        let mut results: Vec<Vec<FoldResult>> = (0..machines).map(|_| Vec::new()).try_collect_vec()?;
        let mut stop = None;
        let held_out = &self.held_out(matrix, &source)?;
        let values = ChainValues { matrix, source: &source, held_out, memory: self.memory };
        if !small.is_empty() {
            let fitted = ctx.map(small.len(), |k| {
                let mut results = Vec::new();
                let ended = self.fit_as_block(small[k], &values, &mut results, None);
                (results, ended)
            });
            for (j, (of_machine, ended)) in small.into_iter().zip(fitted) {
                results[j] = of_machine;
                stop = stop.or(StopReason::from_result(ended)?);
            }
        }
        if stop.is_none() && !large.is_empty() {
            return self.fit_in_rounds(&large, &values, results, 0);
        }
        (0..self.costs.len()).try_for_each(|k| self.report(k, &results))?;
        stop.map_or(Ok(()), |reason| Err(Error::Stopped(reason)))
    }

    /// Returns the number of training rows of a machine.
    fn size(&self, machine: usize) -> usize {
        self.work.plan.of_machine[machine].iter().map(|&b| self.train[b].len()).sum()
    }

    /// Returns the positions of the training rows of a machine.
    fn members(&self, machine: usize) -> Result<Vec<usize>> {
        let class_blocks = &self.work.plan.of_machine[machine];
        class_blocks.iter().flat_map(|&b| self.train[b].iter().copied()).try_collect_vec()
    }

    fn rows_of(&self, positions: &[usize]) -> Result<Vec<usize>> {
        positions.iter().map(|&position| self.work.plan.order[position]).try_collect_vec()
    }

    /// Returns the problem of a machine over its training rows, with their K_ii, for the k-th C of the chain.
    fn problem(
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

    /// Returns the held-out rows, with values from the matrix, or computed when they are needed.
    fn held_out<'s, K: KernelValue>(
        &self,
        matrix: Option<&KernelMatrix<K>>,
        source: &KernelRows<'s>,
    ) -> Result<HeldOut<'s, K>> {
        let Some(matrix) = matrix else {
            return HeldOut::computed(source, &self.rows_of(&self.test)?, self.work.ctx);
        };
        let train: Vec<usize> = self.train.iter().flatten().copied().try_collect_vec()?;
        HeldOut::gather(matrix, &self.work.plan.order, &train, &self.test)
    }

    /// Returns the ratio of the k-th C of the chain to the one before.
    fn ratio(&self, k: usize) -> f64 {
        let costs = self.work.grid.costs;
        costs[self.costs[k]] / costs[self.costs[k - 1]]
    }

    /// Passes the results for the k-th C of the chain to the callback, if all machines have one.
    fn report(&self, k: usize, results: &[Vec<FoldResult>]) -> Result<()> {
        let fitted: Vec<&FoldResult> =
            results.iter().filter_map(|results| results.get(k)).try_collect_vec()?;
        if fitted.len() < self.work.plan.of_machine.len() {
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

    /// Fits a machine as one block for one C after another and appends its results, beginning with the first C without one,
    /// whose fit starts from the coefficients `start`.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which `results` has those of the completed fits.
    fn fit_as_block<K: KernelValue>(
        &self,
        machine: usize,
        values: &ChainValues<'_, '_, K>,
        results: &mut Vec<FoldResult>,
        mut start: Option<Vec<f64>>,
    ) -> Result<()> {
        let &ChainValues { matrix, source, held_out, memory } = values;
        let (params, max_rounding) = (self.work.params, self.work.accuracy.max_rounding);
        let positions = self.members(machine)?;
        let rows = self.rows_of(&positions)?;
        let diagonal = source.diagonal(&rows);
        let members: Vec<usize> = (0..rows.len()).try_collect_vec()?;
        let (mut block, mut last): (Option<Subproblem<K>>, Option<DualProblem>) = (None, None);
        let check = || self.work.ctx.check("search", 0, 0);
        let mut measured: Option<MeasuredRounding> = None;
        for k in results.len()..self.costs.len() {
            // Each of hundreds of machines may be too short for a check.
            check()?;
            let clock = Stopwatch::start();
            let Some(mut problem) = self.problem(machine, k, &rows, &diagonal)? else {
                results.push(FoldResult::missing(self.test.len())?);
                continue;
            };
            if let Some(beta) = start.take() {
                problem.project(&beta);
                let (used, weights) = nonzero(&problem.beta, &rows)?;
                let mut products = try_vec![0.0; rows.len()]?;
                let columns = source.with_columns(&rows, Context::SEQUENTIAL)?;
                columns.add_product(&used, &weights, &mut products, Context::SEQUENTIAL)?;
                problem.set_outputs(&products);
            } else if let Some(last) = &last {
                if last.is_solved_for_larger_c() && results[k - 1].stop == StopReason::Converged {
                    let FoldResult { ref outputs, support, stop, .. } = results[k - 1];
                    let outputs = outputs.try_to_vec()?;
                    results.push(FoldResult { outputs, seconds: 0.0, iterations: 0, support, stop });
                    continue;
                }
                problem.start_from_smaller_c(last, self.ratio(k))?;
            }
            let block = match &mut block {
                Some(block) => {
                    block.set_problem(&problem, &members);
                    block
                }
                None => block.insert(Subproblem::new(
                    &problem,
                    &members,
                    &params.tuning,
                    memory,
                    |kernel, stride, slots| match matrix {
                        Some(matrix) => {
                            gather_block(matrix, &positions, (kernel, stride, slots));
                            Ok(())
                        }
                        None => write_block(source, &rows, kernel, stride, slots, Context::SEQUENTIAL, check),
                    },
                )?),
            };
            let max_steps = params.max_iterations.unwrap_or(u64::MAX);
            let goal = Goal { tolerance: params.tolerance, max_steps, max_rounding };
            let (steps, stop) = self.solve_block(block, &mut problem, (&rows, source), goal, check)?;
            if let Some(reason @ (StopReason::Interrupted | StopReason::MaxTime)) = stop {
                return Err(Error::Stopped(reason));
            }
            (problem.beta, problem.gradient) = block.state();
            let kkt = problem.kkt_violation(Context::SEQUENTIAL);
            if K::PRECISION == Precision::Single && steps < max_steps {
                let is_early = stop == Some(StopReason::Stalled)
                    && exceeds_single_precision::<K>(kkt.squared_norm, max_rounding);
                let mut needs_double = is_early;
                if measured.is_none_or(|at| at.may_exceed(kkt.squared_norm, max_rounding)) {
                    let values = &self.prepared.values;
                    let rounding = Rounding::measure(&problem, &rows, values, source, Context::SEQUENTIAL)?;
                    measured = Some(MeasuredRounding::new(&rounding, kkt.squared_norm));
                    needs_double |= rounding.output > max_rounding;
                }
                if needs_double {
                    let source = &source.in_double(&[], Context::SEQUENTIAL)?;
                    let (held_out, memory) = (&self.held_out(None, source)?, &Arenas::default());
                    let values = ChainValues::<f64> { matrix: None, source, held_out, memory };
                    let beta = if is_early { restart_coefficients(&problem)? } else { problem.beta };
                    return self.fit_as_block(machine, &values, results, Some(beta));
                }
            }
            let (used, coefficients) = nonzero(&problem.beta, &rows)?;
            let (b, _) = intercept(&problem);
            let outputs = held_out.outputs(&used, &coefficients, b, Context::SEQUENTIAL)?;
            let ended = if kkt.largest() <= params.tolerance {
                StopReason::Converged
            } else if steps >= max_steps {
                StopReason::MaxIterations
            } else {
                StopReason::Stalled
            };
            results.push(FoldResult {
                outputs,
                seconds: clock.seconds(),
                iterations: steps,
                support: used.len(),
                stop: stop.unwrap_or(ended),
            });
            last = Some(problem);
        }
        if let Some(block) = block {
            memory.put(block.kernel);
        }
        Ok(())
    }

    /// Solves a machine as one block. In few columns the interior-point method takes over once SMO steps have cost as much.
    fn solve_block<K: KernelValue>(
        &self,
        block: &mut Subproblem<K>,
        problem: &mut DualProblem,
        (rows, source): (&[usize], &KernelRows<'_>),
        goal: Goal,
        check: impl Fn() -> Result<()>,
    ) -> Result<(u64, Option<StopReason>)> {
        let n = rows.len().max(1);
        let max_bytes = self.work.params.cache_bytes;
        let before = FewColumns::count_in(source.rows(), n, max_bytes)
            .map_or(u64::MAX, |d| interior_point::work_before(n, d) / n as u64);
        let first = Goal { max_steps: goal.max_steps.min(before), ..goal };
        let (steps, stop) = block.solve_monitored(first, self.work.ctx, &check)?;
        if stop.is_some() || steps < before || steps >= goal.max_steps {
            return Ok((steps, stop));
        }
        let ctx = self.work.ctx.sequential();
        if let Some(in_columns) = unless_memory_is_short(FewColumns::of(source.rows(), rows, max_bytes, ctx))?
        {
            (problem.beta, problem.gradient) = block.state();
            if let Some(solution) = unless_memory_is_short(interior_point::solve(problem, &in_columns, ctx))?
            {
                problem.beta = solution;
                in_columns.set_gradients(problem, ctx)?;
                let members: Vec<usize> = (0..rows.len()).try_collect_vec()?;
                block.set_problem(problem, &members);
            }
        }
        let remaining = Goal { max_steps: goal.max_steps - steps, ..goal };
        let (more, stop) = block.solve_monitored(remaining, self.work.ctx, check)?;
        Ok((steps + more, stop))
    }

    /// Fits large machines in rounds, all machines of a fit together, beginning with the C of index `from`; `results` has
    /// those of the small machines.
    fn fit_in_rounds<K: KernelValue>(
        &self,
        large: &[usize],
        chain_values: &ChainValues<'_, '_, K>,
        mut results: Vec<Vec<FoldResult>>,
        from: usize,
    ) -> Result<()> {
        let &ChainValues { matrix, source, held_out, memory } = chain_values;
        let &Work { params, plan, ctx, ref grid, .. } = self.work;
        // Chains that leave a kernel matrix for double precision may all run at the same time.
        let chains = if self.prepared.matrix.is_some() { grid.folds.len() } else { 1 };
        let cache_bytes = params.cache_bytes / self.work.chains_at_once.max(chains);
        let params = &SvmParams { cache_bytes, ..params.clone() };
        let accuracy = self.work.accuracy;
        let training = Training { rows: self.prepared.rows.reborrow(), params, accuracy, ctx };
        let values = training.values();
        let values = if K::PRECISION == Precision::Double { values.in_double() } else { values };
        let mut columns = if let Some(matrix) = matrix {
            KernelColumns::of_matrix(&training, values, plan.order.try_to_vec()?, &plan.sizes, matrix)?
        } else {
            let order = self.rows_of(&self.train.iter().flatten().copied().try_collect_vec()?)?;
            let sizes: Vec<usize> = self.train.iter().map(Vec::len).try_collect_vec()?;
            let machine_size = large.iter().map(|&j| self.size(j)).max().unwrap_or(0);
            KernelColumns::<K>::new(&training, values, order, &sizes, machine_size)?
        };
        let mut fitted: Vec<LargeMachine> = Vec::new();
        let mut machines: Vec<Machine<'_>> = Vec::new();
        for &j in large {
            let of_machine = LargeMachine::new(j, self, matrix.is_some(), &columns)?;
            if let Some(problem) = of_machine.problem(self, from)? {
                machines.push(Machine::new(problem, false, &plan.of_machine[j], &columns, &training)?);
                fitted.push(of_machine);
            }
        }
        for k in from..self.costs.len() {
            let clock = Stopwatch::start();
            if k > from {
                for (machine, of_machine) in machines.iter_mut().zip(&fitted) {
                    let is_solved = machine.stop == Some(StopReason::Converged)
                        && machine.problem().is_solved_for_larger_c();
                    if is_solved {
                        continue;
                    }
                    if let Some(mut problem) = of_machine.problem(self, k)? {
                        problem.start_from_smaller_c(machine.problem(), self.ratio(k))?;
                        machine.set_problem(problem, training.ctx);
                    }
                }
            }
            solve(&mut machines, &mut columns, &training, memory)?;
            for machine in &machines {
                if let Some(reason @ (StopReason::Interrupted | StopReason::MaxTime)) = machine.stop {
                    return Err(Error::Stopped(reason));
                }
            }
            let needs_double = |machine: &Machine<'_>| machine.needs_double(&training);
            if K::PRECISION == Precision::Single && machines.iter().any(needs_double) {
                let source = &source.in_double(&[], ctx)?;
                let (held_out, memory) = (&self.held_out(None, source)?, &Arenas::default());
                let values = ChainValues::<f64> { matrix: None, source, held_out, memory };
                return self.fit_in_rounds(large, &values, results, k);
            }
            for &j in large {
                results[j].push(FoldResult::missing(self.test.len())?);
            }
            for (machine, of_machine) in machines.iter().zip(&fitted) {
                let (b, _, certificate) = machine.outcome()?;
                let (used, coefficients) = nonzero(&machine.problem().beta, &of_machine.rows)?;
                results[of_machine.index][k] = FoldResult {
                    outputs: held_out.outputs(&used, &coefficients, b, ctx)?,
                    seconds: clock.seconds() / machines.len() as f64,
                    iterations: certificate.iterations,
                    support: certificate.support,
                    stop: certificate.stop,
                };
            }
            self.report(k, &results)?;
        }
        Ok(())
    }
}

/// The variables of a machine that is solved in rounds.
struct LargeMachine {
    index: usize,
    /// Rows of all variables.
    rows: Vec<usize>,
    /// K_ii of all variables.
    diagonal: Vec<f64>,
    /// Variables that are training rows; the others cannot move.
    trained: Vec<usize>,
}

impl LargeMachine {
    /// Returns the variables of a machine: the positions of its class blocks, all of which are training rows unless
    /// `has_held_out`.
    fn new<K: KernelValue>(
        index: usize,
        chain: &Chain<'_, '_>,
        has_held_out: bool,
        columns: &KernelColumns<'_, K>,
    ) -> Result<Self> {
        let class_blocks = &chain.work.plan.of_machine[index];
        let positions = || class_blocks.iter().flat_map(|&b| columns.class_blocks[b].positions.clone());
        let rows: Vec<usize> = positions().map(|position| columns.order[position]).try_collect_vec()?;
        let diagonal = positions().map(|position| columns.diagonal[position]).try_collect_vec()?;
        let is_trained = |&v: &usize| !has_held_out || chain.weights[rows[v]] > 0.0;
        let trained = (0..rows.len()).filter(is_trained).try_collect_vec()?;
        Ok(Self { index, rows, diagonal, trained })
    }

    /// Returns the problem for the k-th C of the chain; `None` if the training rows have one label.
    fn problem(&self, chain: &Chain<'_, '_>, k: usize) -> Result<Option<DualProblem>> {
        let of_trained = |values: &[usize]| self.trained.iter().map(|&v| values[v]).try_collect_vec();
        let diagonal: Vec<f64> = self.trained.iter().map(|&v| self.diagonal[v]).try_collect_vec()?;
        let problem = chain.problem(self.index, k, &of_trained(&self.rows)?, &diagonal)?;
        match problem {
            Some(problem) if self.trained.len() < self.rows.len() => {
                problem.embedded(&self.trained, self.diagonal.try_to_vec()?).map(Some)
            }
            problem => Ok(problem),
        }
    }
}

/// Returns the rows with a nonzero coefficient, and these coefficients.
fn nonzero(beta: &[f64], rows: &[usize]) -> Result<(Vec<usize>, Vec<f64>)> {
    let used = || beta.iter().zip(rows).filter(|(b, _)| **b != 0.0);
    Ok((used().map(|(_, &row)| row).try_collect_vec()?, used().map(|(&b, _)| b).try_collect_vec()?))
}

/// Gathers the kernel values of a block's members, at the given positions, from the matrix of all rows.
fn gather_block<K: KernelValue>(
    matrix: &KernelMatrix<K>,
    positions: &[usize],
    (kernel, stride, slots): (&mut [K], usize, &[usize]),
) {
    let columns = Indices::new(positions);
    for (&position, &slot) in positions.iter().zip(slots) {
        // A search has no problems with two groups: slots are consecutive.
        columns.gather(matrix.row(position), &mut kernel[slot * stride + slots[0]..][..positions.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::classifier::Classification;
    use super::super::super::precision::Accuracy;
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
        let prepared = Prepared { index: 0, values: training.values(), rows: training.rows, matrix: None };
        let work = Work {
            rows,
            params: &params,
            plan: &plan,
            trained: plan.trained(&folds).unwrap(),
            grid: Grid { kernels: &kernels, costs: &[10.0], wanted: wanted.view(), folds: &folds },
            callback: &Nothing,
            progress: &progress,
            sums: task.sums(),
            accuracy: Accuracy::of_scores(params.tolerance),
            ctx,
            chains_at_once: 1,
            memory: Arenas::default(),
        };
        let arenas = Arenas::default();
        let chain = Chain::new(&work, &prepared, 0, &arenas).unwrap();
        let source = prepared.rows.kernel_rows(&[], Precision::Double, ctx).unwrap();
        let held_out = chain.held_out::<f64>(None, &source).unwrap();
        let memory = Arenas::default();
        let values =
            ChainValues::<f64> { matrix: None, source: &source, held_out: &held_out, memory: &memory };
        let outputs = |start: Option<Vec<f64>>| {
            let mut results = Vec::new();
            chain.fit_as_block(0, &values, &mut results, start).unwrap();
            assert_eq!(results[0].stop, StopReason::Converged);
            results.remove(0).outputs
        };
        let members = chain.rows_of(&chain.members(0).unwrap()).unwrap();
        let problem = chain.problem(0, 0, &members, &source.diagonal(&members)).unwrap().unwrap();
        let unbalanced = problem.upper.iter().map(|upper| if *upper > 0.0 { 1.0 } else { -0.5 }).collect();
        for (from_zero, from_start) in outputs(None).iter().zip(outputs(Some(unbalanced))) {
            assert!((from_zero - from_start).abs() < 1e-4, "{from_zero} {from_start}");
        }
    }
}
