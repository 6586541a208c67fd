//! The machines of one fold and one kernel along C.
//!
//! Machines of a few thousand variables are one block each, whose kernel values are gathered once for all C: their pair
//! steps read nothing else. Larger ones go through the rounds of the outer tier, each from where it was.
//!
//! Where kernel values in single precision do not do for a C (see `precision`), that fit and those of larger C are in double
//! precision; kernel values are then computed again.
//!
//! Invariant: a fit is judged only when all its machines have come to their end. Cost: that of the fits, less what their
//! starts save.

use super::super::certificate::Rounding;
use super::super::columns::Columns;
use super::super::decomposition::solve_in;
use super::super::intercept::intercept;
use super::super::machine::Machine;
use super::super::matrix::KernelMatrix;
use super::super::params::SvmParams;
use super::super::precision::{KernelValue, is_hopeless, restart};
use super::super::problem::DualProblem;
use super::super::subproblem::{Goal, Subproblem};
use super::super::training::Training;
use super::grid::Point;
use super::held_out::{HeldOut, Values};
use super::work::{FoldResult, Prepared, Work};
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::{KernelRows, Precision};
use crate::memory::{self, Arenas, TryCollect, TryToVec, try_vec, try_zero_matrix};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Most variables of a machine that is one block.
pub(super) const WHOLE: usize = 1500;

/// A fold with a kernel.
pub(super) struct Chain<'c, 'w> {
    work: &'c Work<'w>,
    prepared: &'c Prepared<'w>,
    fold: usize,
    memory: &'c Arenas,
    /// Indices of the C that are wanted, rising.
    costs: Vec<usize>,
    /// Positions that take part in the fit, by segment.
    train: Vec<Vec<usize>>,
    /// Positions that are held out.
    test: Vec<usize>,
    /// Upper bounds by row for C = 1.
    weights: Vec<f64>,
}

/// Which of several reasons tells most.
fn worse(a: StopReason, b: StopReason) -> StopReason {
    if a == StopReason::Converged { b } else { a }
}

impl<'c, 'w> Chain<'c, 'w> {
    pub(super) fn new(
        work: &'c Work<'w>,
        prepared: &'c Prepared<'w>,
        fold: usize,
        memory: &'c Arenas,
    ) -> Result<Self> {
        let (plan, rows) = (work.plan, &work.grid.folds[fold]);
        let mut position = try_vec![0; plan.order.len()]?;
        for (place, &row) in plan.order.iter().enumerate() {
            position[row] = place;
        }
        let mut in_fit = memory::try_filled("rows of a fold", position.len(), false)?;
        let mut weights = memory::try_filled("weights of a fold", position.len(), 0.0)?;
        for (&row, &weight) in rows.train.iter().zip(rows.weights) {
            in_fit[position[row]] = true;
            weights[row] = weight;
        }
        let mut end = 0;
        let train = plan.sizes.iter().map(|&size| {
            end += size;
            (end - size..end).filter(|&place| in_fit[place]).try_collect_vec()
        });
        let wanted = work.grid.wanted.row(prepared.index);
        Ok(Self {
            work,
            prepared,
            fold,
            memory,
            costs: (0..wanted.len()).filter(|&c| wanted[c]).try_collect_vec()?,
            train: train.try_collect_results()?,
            test: rows.test.iter().map(|&row| position[row]).try_collect_vec()?,
            weights,
        })
    }

    /// Fits and judges.
    pub(super) fn run(&self) -> Result<()> {
        let (small, large): (Vec<usize>, Vec<usize>) =
            (0..self.machines()).partition(|&j| self.size(j) <= WHOLE);
        let rows = &self.prepared.rows;
        let source = rows.kernel_rows(&[], rows.precision(), Context::SEQUENTIAL)?;
        let matrix = self.prepared.matrix.as_ref();
        let of_small = if small.is_empty() {
            Vec::new()
        } else {
            let held_out = self.held_out(matrix, &source)?;
            let values = Values { matrix, source: &source, held_out: &held_out, memory: self.memory };
            self.work.ctx.map(small.len(), |k| {
                let mut results = Vec::new();
                let ended = self.along(small[k], &values, &mut results, None);
                (results, ended)
            })?
        };
        let mut results: Vec<Vec<FoldResult>> = (0..self.machines()).map(|_| Vec::new()).try_collect_vec()?;
        let mut stopped = None;
        for (j, (of_machine, ended)) in small.into_iter().zip(of_small) {
            results[j] = of_machine;
            stopped = stopped.or(StopReason::from_result(ended)?);
        }
        if stopped.is_none() && !large.is_empty() {
            return self.run_machines(&large, matrix, &source, self.memory, results, 0);
        }
        (0..self.costs.len()).try_for_each(|place| self.report(place, &results))?;
        stopped.map_or(Ok(()), |reason| Err(Error::Stopped(reason)))
    }

    fn machines(&self) -> usize {
        self.work.plan.of_machine.len()
    }

    /// Number of rows that a machine is fitted to.
    fn size(&self, machine: usize) -> usize {
        self.work.plan.of_machine[machine].iter().map(|&s| self.train[s].len()).sum()
    }

    /// Positions of the rows that a machine is fitted to.
    fn members(&self, machine: usize) -> Result<Vec<usize>> {
        self.work.plan.of_machine[machine]
            .iter()
            .flat_map(|&s| self.train[s].iter().copied())
            .try_collect_vec()
    }

    fn rows_of(&self, positions: &[usize]) -> Result<Vec<usize>> {
        positions.iter().map(|&place| self.work.plan.order[place]).try_collect_vec()
    }

    /// Upper bounds of some rows for the C of an index.
    fn upper(&self, rows: &[usize], cost: usize) -> Result<Vec<f64>> {
        let cost = self.work.grid.costs[cost];
        rows.iter().map(|&row| cost * self.weights[row]).try_collect_vec()
    }

    fn held_out<'s, K: KernelValue>(
        &self,
        matrix: Option<&KernelMatrix<K>>,
        source: &KernelRows<'s>,
    ) -> Result<HeldOut<'s, K>> {
        match matrix {
            Some(matrix) => {
                let train: Vec<usize> = self.train.iter().flatten().copied().try_collect_vec()?;
                HeldOut::gather(matrix, self.work.plan.order.len(), &train, &self.test)
            }
            None => HeldOut::computed(source, &self.rows_of(&self.test)?, self.work.ctx),
        }
    }

    /// The ratio of the C at this place of the chain to the one before.
    fn ratio(&self, place: usize) -> f64 {
        let costs = self.work.grid.costs;
        costs[self.costs[place]] / costs[self.costs[place - 1]]
    }

    /// Passes the results for the C at a place of the chain to the callback, once there are those of all machines.
    fn report(&self, place: usize, results: &[Vec<FoldResult>]) -> Result<()> {
        let cost = self.costs[place];
        let of_place: Vec<&FoldResult> =
            results.iter().filter_map(|results| results.get(place)).try_collect_vec()?;
        if of_place.len() < self.machines() {
            return Ok(());
        }
        let mut outputs = try_zero_matrix("a matrix of results", (self.test.len(), of_place.len()))?;
        for (j, result) in of_place.iter().enumerate() {
            outputs.column_mut(j).iter_mut().zip(&result.outputs).for_each(|(to, from)| *to = *from);
        }
        let point = Point {
            kernel: self.prepared.index,
            cost,
            fold: self.fold,
            seconds: of_place.iter().map(|result| result.seconds).sum(),
            iterations: of_place.iter().map(|result| result.iterations).sum(),
            support: of_place.iter().map(|result| result.support).sum(),
            stop: of_place.iter().fold(StopReason::Converged, |stop, result| worse(stop, result.stop)),
        };
        self.work.progress.done.fetch_add(1, Ordering::Relaxed);
        self.work.callback.call(point, outputs);
        Ok(())
    }

    /// Fits a small machine for one C after another and appends its results: from the first C without one, which starts
    /// from the coefficients `start_at`.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which there are the results up to the last C that was completed.
    fn along<K: KernelValue>(
        &self,
        machine: usize,
        values: &Values<'_, '_, K>,
        results: &mut Vec<FoldResult>,
        mut start_at: Option<Vec<f64>>,
    ) -> Result<()> {
        let &Values { source, held_out, memory, .. } = values;
        let (plan, params) = (self.work.plan, self.work.params);
        let positions = self.members(machine)?;
        let rows = self.rows_of(&positions)?;
        let diagonal = source.diagonal(&rows)?;
        let members: Vec<usize> = (0..rows.len()).try_collect_vec()?;
        let mut block: Option<Subproblem<K>> = None;
        let mut last: Option<DualProblem> = None;
        let check = || self.work.ctx.check("search", 0, 0);
        for (place, &cost) in self.costs.iter().enumerate().skip(results.len()) {
            // Hundreds of machines may each be too short for a check.
            check()?;
            let start = Instant::now();
            let Some(mut problem) =
                plan.problem(machine, &rows, &self.upper(&rows, cost)?, diagonal.try_to_vec()?)?
            else {
                results.push(FoldResult::missing(self.test.len())?);
                continue;
            };
            if let Some(beta) = start_at.take() {
                let used: Vec<usize> = (0..rows.len()).filter(|&v| beta[v] != 0.0).try_collect_vec()?;
                let of: Vec<usize> = used.iter().map(|&v| rows[v]).try_collect_vec()?;
                let weights: Vec<f64> = used.iter().map(|&v| beta[v]).try_collect_vec()?;
                let mut products = try_vec![0.0; rows.len()]?;
                let columns = source.with_columns(&rows, Context::SEQUENTIAL)?;
                columns.add_product(&of, &weights, &mut products, Context::SEQUENTIAL)?;
                problem.start_from(&beta, Some(&products));
            } else if let Some(last) = &last {
                if last.is_settled() && results[place - 1].stop == StopReason::Converged {
                    let FoldResult { ref outputs, support, stop, .. } = results[place - 1];
                    let outputs = outputs.try_to_vec()?;
                    results.push(FoldResult { outputs, seconds: 0.0, iterations: 0, support, stop });
                    continue;
                }
                problem.follow(last, self.ratio(place))?;
            }
            let block = match &mut block {
                Some(block) => {
                    block.renew(&problem, &members);
                    block
                }
                None => block.insert(Subproblem::new(
                    &problem,
                    &members,
                    &params.tuning,
                    memory,
                    |kernel, stride, slots| values.fill(&positions, &rows, kernel, stride, slots),
                )?),
            };
            let max_steps = params.max_iterations.unwrap_or(u64::MAX);
            let goal = Goal { tolerance: params.tolerance, max_steps };
            let (steps, stopped) = block.solve_watched(goal, self.work.ctx, check)?;
            if let Some(reason @ (StopReason::Interrupted | StopReason::MaxTime)) = stopped {
                return Err(Error::Stopped(reason));
            }
            (problem.beta, problem.gradient) = block.state();
            if K::PRECISION == Precision::Single && steps < max_steps {
                let values = &self.prepared.values;
                let rounding = Rounding::measured(&problem, &rows, values, source, Context::SEQUENTIAL)?;
                let is_early = stopped == Some(StopReason::Stalled)
                    && is_hopeless::<K>(&problem.beta, &problem.diagonal, params.tolerance);
                if is_early || rounding.needs_double(params.tolerance) {
                    let source = source.in_double(&[], Context::SEQUENTIAL)?;
                    let held_out = self.held_out(None, &source)?;
                    let memory = &Arenas::default();
                    let values = Values::<f64> { matrix: None, source: &source, held_out: &held_out, memory };
                    let beta = if is_early { restart(&problem)? } else { problem.beta };
                    return self.along(machine, &values, results, Some(beta));
                }
            }
            let used: Vec<usize> = (0..rows.len()).filter(|&v| problem.beta[v] != 0.0).try_collect_vec()?;
            let of = |values: &[usize]| used.iter().map(|&v| values[v]).try_collect_vec();
            let coefficients: Vec<f64> = used.iter().map(|&v| problem.beta[v]).try_collect_vec()?;
            let (b, _) = intercept(&problem);
            let outputs =
                held_out.outputs(&of(&positions)?, &of(&rows)?, &coefficients, b, Context::SEQUENTIAL)?;
            let ended = if problem.survey().violation() <= params.tolerance {
                StopReason::Converged
            } else if steps >= max_steps {
                StopReason::MaxIterations
            } else {
                StopReason::Stalled
            };
            results.push(FoldResult {
                outputs,
                seconds: start.elapsed().as_secs_f64(),
                iterations: steps,
                support: used.len(),
                stop: stopped.unwrap_or(ended),
            });
            last = Some(problem);
        }
        if let Some(block) = block {
            block.finish(memory);
        }
        Ok(())
    }

    /// Large machines, all of a fit in step, from a place of the chain on, with the results of the small ones.
    fn run_machines<K: KernelValue>(
        &self,
        large: &[usize],
        matrix: Option<&KernelMatrix<K>>,
        source: &KernelRows<'_>,
        memory: &Arenas<K>,
        mut results: Vec<Vec<FoldResult>>,
        from: usize,
    ) -> Result<()> {
        let &Work { params, plan, ctx, .. } = self.work;
        // As many chains as there are threads have caches at the same time.
        let params = &SvmParams { cache_bytes: params.cache_bytes / ctx.threads().max(1), ..params.clone() };
        let training = Training { rows: self.prepared.rows.reborrow(), params, ctx };
        let values = training.values();
        let values = if K::PRECISION == Precision::Double { values.in_double() } else { values };
        let (order, sizes): (Vec<usize>, Vec<usize>) = match matrix {
            Some(_) => (plan.order.try_to_vec()?, plan.sizes.try_to_vec()?),
            None => (
                self.rows_of(&self.train.iter().flatten().copied().try_collect_vec()?)?,
                self.train.iter().map(Vec::len).try_collect_vec()?,
            ),
        };
        let machine_size = large.iter().map(|&j| self.size(j)).max().unwrap_or(0);
        let mut columns = match matrix {
            Some(matrix) => Columns::<K>::of_matrix(&training, values, order, &sizes, matrix)?,
            None => Columns::<K>::new(&training, values, order, &sizes, machine_size)?,
        };
        let mut seats: Vec<Seat> = Vec::new();
        let mut machines: Vec<Machine<'_>> = Vec::new();
        for &j in large {
            let Some(seat) = Seat::new(j, self, matrix.is_some(), &columns)? else { continue };
            if let Some(problem) = seat.problem(self, self.costs[from])? {
                machines.push(Machine::new(problem, false, &plan.of_machine[j], &columns, &training)?);
                seats.push(seat);
            }
        }
        let held_out = if matrix.is_some() && seats.iter().all(|seat| seat.sees_all) {
            None
        } else {
            Some(self.held_out(matrix, source)?)
        };
        for (place, &cost) in self.costs.iter().enumerate().skip(from) {
            let start = Instant::now();
            if place > from {
                for (machine, seat) in machines.iter_mut().zip(&seats) {
                    let settled =
                        machine.stop == Some(StopReason::Converged) && machine.problem().is_settled();
                    if settled {
                        continue;
                    }
                    if let Some(mut problem) = seat.problem(self, cost)? {
                        problem.follow(machine.problem(), self.ratio(place))?;
                        machine.go_on(problem);
                    }
                }
            }
            solve_in(&mut machines, &mut columns, &training, memory)?;
            for machine in &machines {
                if let Some(reason @ (StopReason::Interrupted | StopReason::MaxTime)) = machine.stop {
                    return Err(Error::Stopped(reason));
                }
            }
            let needs_double = |machine: &Machine<'_>| machine.needs_double(params.tolerance);
            if K::PRECISION == Precision::Single && machines.iter().any(needs_double) {
                let source = source.in_double(&[], ctx)?;
                let memory = &Arenas::default();
                return self.run_machines::<f64>(large, None, &source, memory, results, place);
            }
            for &j in large {
                results[j].push(FoldResult::missing(self.test.len())?);
            }
            for (machine, seat) in machines.iter().zip(&seats) {
                let (b, _, certificate) = machine.outcome()?;
                results[seat.machine][place] = FoldResult {
                    outputs: match &held_out {
                        None => {
                            let problem = machine.problem();
                            self.test
                                .iter()
                                .map(|&v| problem.gradient[v] - problem.linear[v] + b)
                                .try_collect_vec()?
                        }
                        Some(held_out) => seat.outputs(held_out, machine.problem(), &columns, b, ctx)?,
                    },
                    seconds: start.elapsed().as_secs_f64() / machines.len() as f64,
                    iterations: certificate.iterations,
                    support: certificate.support,
                    stop: certificate.stop,
                };
            }
            self.report(place, &results)?;
        }
        Ok(())
    }
}

/// Where the variables of a machine stand among the columns.
struct Seat {
    machine: usize,
    /// Its variables: positions of its segments in the columns.
    positions: Vec<usize>,
    /// Which of its variables can move.
    free: Vec<usize>,
    /// Training rows of these.
    rows: Vec<usize>,
    /// K_ii of all variables.
    diagonal: Vec<f64>,
    /// Whether all columns are variables.
    sees_all: bool,
}

impl Seat {
    fn new<K: KernelValue>(
        machine: usize,
        chain: &Chain<'_, '_>,
        has_matrix: bool,
        columns: &Columns<'_, K>,
    ) -> Result<Option<Self>> {
        let of_machine = &chain.work.plan.of_machine[machine];
        let ranges: Vec<Range<usize>> =
            of_machine.iter().map(|&s| columns.segments[s].positions.clone()).try_collect_vec()?;
        let positions: Vec<usize> = ranges.into_iter().flatten().try_collect_vec()?;
        let free = if has_matrix {
            let members = chain.members(machine)?;
            let mut members = members.iter().peekable();
            (0..positions.len())
                .filter(|&v| members.next_if(|m| **m == positions[v]).is_some())
                .try_collect_vec()?
        } else {
            (0..positions.len()).try_collect_vec()?
        };
        let rows = free.iter().map(|&v| columns.order[positions[v]]).try_collect_vec()?;
        let diagonal = positions.iter().map(|&position| columns.diagonal[position]).try_collect_vec()?;
        let sees_all = positions.len() == columns.order.len();
        Ok((!free.is_empty()).then_some(Self { machine, positions, free, rows, diagonal, sees_all }))
    }

    /// The machine's problem for a C; none where its rows are all alike.
    fn problem(&self, chain: &Chain<'_, '_>, cost: usize) -> Result<Option<DualProblem>> {
        let diagonal = self.free.iter().map(|&v| self.diagonal[v]).try_collect_vec()?;
        let upper = chain.upper(&self.rows, cost)?;
        let problem = chain.work.plan.problem(self.machine, &self.rows, &upper, diagonal)?;
        match problem {
            Some(problem) if self.free.len() < self.positions.len() => {
                problem.spread(&self.free, self.diagonal.try_to_vec()?).map(Some)
            }
            all => Ok(all),
        }
    }

    fn outputs<K: KernelValue>(
        &self,
        held_out: &HeldOut<'_, K>,
        problem: &DualProblem,
        columns: &Columns<'_, K>,
        b: f64,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).try_collect_vec()?;
        let positions: Vec<usize> = used.iter().map(|&v| self.positions[v]).try_collect_vec()?;
        let rows: Vec<usize> = positions.iter().map(|&position| columns.order[position]).try_collect_vec()?;
        let coefficients: Vec<f64> = used.iter().map(|&v| problem.beta[v]).try_collect_vec()?;
        held_out.outputs(&positions, &rows, &coefficients, b, ctx)
    }
}
