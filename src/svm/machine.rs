//! A machine: its problem, its block, its columns, and its part of a round.
//!
//! The block is solved, and all gradients are brought up to date by one product f += K(:, changed) change. Where a
//! kernel value costs little, the product is computed afresh and nothing is stored; where it costs more than to store
//! it and to read it back, rows come from a cache. Machines without a cache may shrink (see `shrinking`).
//!
//! Invariant between rounds: gradients are exact for the coefficients (sums in double precision of the same
//! single-precision kernel values), coefficients are feasible.
//!
//! Cost of a round: two scans of the block a pair step, and (changed coefficients) x (columns) kernel values. A stop within a
//! block keeps the steps made; one while a block of blocks is solved or gradients are updated takes the round back.

mod end;

use super::certificate::{Certificate, Rounding};
use super::columns::{Columns, Segment};
use super::nested::{self, Solved};
use super::newton::Patience;
use super::params::Tuning;
use super::precision::KernelValue;
use super::problem::{DualProblem, Survey};
use super::shrinking::Variables;
use super::stall::{BELOW_DOUBT, Change, IN_DOUBT, Stall, rise, rounding};
use super::subproblem::{Goal, Subproblem, write_block};
use super::training::Training;
use super::working_set::WorkingSet;
use crate::cache::RowCache;
use crate::context::{Context, StopReason};
use crate::error::{Error, Result};
use crate::kernels::Precision;
use crate::memory::{Arenas, TryCollect, TryToVec, try_vec};
use crate::simd::blas::add_rows;
use crate::simd::gather::Indices;
use std::ops::Range;

/// Entries scanned in one block before control goes back: a few tenths of a second.
const SCAN_WORK: usize = 200_000_000;
/// Rounds without progress after which a machine has stalled.
const PATIENCE: u32 = 50;
/// Share of the machine's violation that a block is solved to.
const SHARE: f64 = 0.1;
/// The same for a block that is solved by blocks of its own.
const NESTED_SHARE: f64 = 0.2;
/// Columns of one gradient task: its part of the gradient stays in the first cache.
const CHUNK: usize = 4096;

/// A machine. Its variables are the positions of its segments, one segment after the other; while it is shrunk they
/// are the active ones among those.
pub(super) struct Machine<'a> {
    variables: Variables<'a>,
    /// Of the present coefficients and gradients.
    pub(super) survey: Survey,
    pub(super) iterations: u64,
    rounds: u64,
    pub(super) stop: Option<StopReason>,
    parts: Vec<Part>,
    pub(super) set: WorkingSet,
    tuning: Tuning,
    patience: Patience,
    stall: Stall,
    /// The error that one rounding adds to a gradient, as of the last round.
    pub(super) gradient_rounding: f64,
    /// How far rounding may have moved the outputs, once the machine has come to its end.
    rounding: Option<Rounding>,
    /// Whether it is proved, not measured.
    is_proved: bool,
    /// Whether gradients are of kernel values in double precision.
    is_double: bool,
    /// b, rho and certificate of a machine that was stopped before it had exact gradients.
    settled: Option<(f64, f64, Certificate)>,
}

/// Variables `first..first + positions.len()` of a machine are the positions of one segment.
struct Part {
    segment: usize,
    first: usize,
    positions: Range<usize>,
}

/// How a solved block has moved its variables.
pub(super) struct Moves {
    changed: Vec<usize>,
    changes: Vec<f64>,
    /// Coefficients and gradients before.
    before: (Vec<f64>, Vec<f64>),
    /// The gradients of the members, where they are all variables of the machine.
    gradients: Option<Vec<f64>>,
    /// What its steps promise to raise the objective by (see `stall`).
    promised: f64,
    /// Why the block was left before it was solved.
    stopped: Option<StopReason>,
}

impl<'a> Machine<'a> {
    /// A machine over the given segments; `exact` where the problem's gradients are those of its coefficients.
    pub(super) fn new<K: KernelValue>(
        problem: DualProblem,
        exact: bool,
        segments: &[usize],
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Self> {
        let mut first = 0;
        let parts: Vec<Part> = segments
            .iter()
            .map(|&segment| {
                let positions = columns.segments[segment].positions.clone();
                first += positions.len();
                Part { segment, first: first - positions.len(), positions }
            })
            .try_collect_vec()?;
        assert_eq!(first, problem.len());
        let rows = parts.iter().flat_map(|part| columns.order[part.positions.clone()].iter().copied());
        let variables = Variables::new(problem, rows.try_collect_vec()?);
        let (problem, tuning) = (&variables.problem, training.params.tuning);
        let set = WorkingSet::new(tuning.first_block(problem.len()).min(room(&parts, columns)));
        let (survey, exact) = (problem.survey(), exact || problem.beta.iter().all(|b| *b == 0.0));
        let mut machine = Self {
            variables,
            survey,
            iterations: 0,
            rounds: 0,
            stop: None,
            parts,
            set,
            tuning,
            patience: if tuning.direct { Patience::new() } else { Patience::endless() },
            stall: Stall::new(),
            gradient_rounding: 0.0,
            rounding: None,
            is_proved: false,
            is_double: K::PRECISION == Precision::Double,
            settled: None,
        };
        if !exact {
            machine.renew_gradients(columns, training)?;
        }
        Ok(machine)
    }

    /// Goes on with another problem of the same variables, whose coefficients have their gradients; only for machines that
    /// do not shrink.
    pub(super) fn go_on(&mut self, problem: DualProblem) {
        self.survey = problem.survey();
        self.variables.problem = problem;
        (self.iterations, self.rounds) = (0, 0);
        self.resume();
    }

    /// Clears how the machine ended, so that rounds can go on from its coefficients.
    fn resume(&mut self) {
        (self.stop, self.stall, self.gradient_rounding) = (None, Stall::new(), 0.0);
        (self.rounding, self.is_proved) = (None, false);
    }

    /// Gradients for coefficients that do not start at zero, without storing a kernel value.
    ///
    /// # Errors
    /// [`Error::Stopped`] where the user interrupts, [`Error::Param`] where the time is over: nothing has been done yet.
    fn renew_gradients<K: KernelValue>(
        &mut self,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        match self.start_at(self.problem().beta.try_to_vec()?, columns, training) {
            Err(Error::Stopped(StopReason::MaxTime)) => {
                let rule = "long enough for the gradients of the coefficients that the fit starts from";
                Err(Error::param("max_time", "over before the first round", rule))
            }
            started => started,
        }
    }

    /// Gives a machine that is not shrunk other feasible coefficients with their gradients.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which nothing is changed.
    pub(super) fn start_at<K: KernelValue>(
        &mut self,
        beta: Vec<f64>,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let used: Vec<usize> = (0..beta.len()).filter(|&v| beta[v] != 0.0).try_collect_vec()?;
        let values: Vec<f64> = used.iter().map(|&v| beta[v]).try_collect_vec()?;
        let outputs = self.outputs((&used, &values), columns, training)?;
        let problem = &mut self.variables.problem;
        for (v, output) in outputs.into_iter().enumerate() {
            problem.gradient[v] = output + problem.linear[v] + problem.ridge[v] * beta[v];
        }
        problem.beta = beta;
        self.survey = problem.survey();
        Ok(())
    }

    /// sum k(x, x_v) values_v over some variables for the rows of all, in a machine that is not shrunk.
    pub(super) fn outputs<K: KernelValue>(
        &self,
        (variables, values): (&[usize], &[f64]),
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Vec<f64>> {
        let rows = self.rows_of(variables)?;
        let mut outputs = try_vec![0.0; self.problem().len()]?;
        for part in &self.parts {
            let outputs = &mut outputs[part.first..part.first + part.positions.len()];
            let source = &columns.segments[part.segment].source;
            training.add_product(source, columns.depth(), (&rows, values), outputs)?;
        }
        Ok(outputs)
    }

    /// Counts the work of a machine that this one starts from.
    pub(super) fn count(&mut self, other: &Self) {
        self.iterations += other.iterations;
        self.rounds += other.rounds;
    }

    /// The problem: that of the active variables while the machine is shrunk.
    pub(super) fn problem(&self) -> &DualProblem {
        &self.variables.problem
    }

    /// Whether gradients are those of the coefficients.
    pub(super) fn is_exact(&self) -> bool {
        self.settled.is_none()
    }

    /// Segments of the machine's columns.
    pub(super) fn segments(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.segment)
    }

    /// Lets go of the rows that no other machine will use: those of one of its segments against the columns of another
    /// for pairs of segments that `is_last` names.
    pub(super) fn forget_rows<K: KernelValue>(
        &self,
        segments: &mut [Segment<'_, K>],
        is_last: impl Fn(usize, usize) -> bool,
    ) {
        for part in &self.parts {
            let Some(cache) = &mut segments[part.segment].cache else { continue };
            for other in &self.parts {
                if other.segment != part.segment && is_last(part.segment, other.segment) {
                    cache.forget(other.positions.clone());
                }
            }
        }
    }

    /// First variable and positions of each part.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        self.parts.iter().map(|part| (part.first, part.positions.clone()))
    }

    /// Index of the part that a variable of a machine that is not shrunk belongs to.
    fn part_of(&self, variable: usize) -> usize {
        self.parts.partition_point(|part| part.first <= variable) - 1
    }

    /// The position of a variable of a machine that is not shrunk.
    fn position(&self, variable: usize) -> usize {
        let part = &self.parts[self.part_of(variable)];
        part.positions.start + variable - part.first
    }

    /// Training rows of some variables.
    pub(super) fn rows_of(&self, variables: &[usize]) -> Result<Vec<usize>> {
        variables.iter().map(|&v| self.variables.rows[v]).try_collect_vec()
    }

    /// Chooses the next block; the positions of its members where kernel rows are cached.
    pub(super) fn select_block(&mut self) -> Result<impl Iterator<Item = usize> + Clone + '_> {
        self.set.choose(&self.variables.problem, &self.survey.extremes)?;
        Ok(self.set.members.iter().map(|&v| self.position(v)))
    }

    /// Solves the chosen block and moves its variables; `None` where no step could be made. An error of `check` ends
    /// it, or becomes a part of the result where steps have been made.
    pub(super) fn solve_block<K: KernelValue>(
        &mut self,
        columns: &Columns<'_, K>,
        memory: &Arenas<K>,
        training: &Training<'_>,
        check: impl Fn() -> Result<()>,
    ) -> Result<Option<Moves>> {
        let (tolerance, ctx) =
            (training.params.tolerance.max(BELOW_DOUBT * self.gradient_rounding), training.ctx);
        let left = training.params.max_iterations.map_or(u64::MAX, |max| max - self.iterations);
        let members = &self.set.members;
        let max_steps = ((SCAN_WORK / members.len().max(1)) as u64).max(1000).min(left);
        let is_whole = members.len() == self.problem().len();
        let share_of_gap = |share: f64| (share * self.survey.violation()).max(0.5 * tolerance);
        let (Solved { beta, steps, promised }, gradients, stopped) =
            if !columns.are_kept() && members.len() > self.tuning.nested {
                let source = &columns.segments[self.parts[0].segment].source;
                let goal = Goal { tolerance: share_of_gap(NESTED_SHARE), max_steps };
                let problem = self.problem().select(members)?;
                let solved = nested::solve(
                    problem,
                    (&self.rows_of(members)?, source),
                    &self.tuning,
                    memory,
                    (goal, &mut self.patience),
                    ctx,
                    check,
                )?;
                (solved, None, None)
            } else {
                let mut block = self.block(columns, memory, ctx)?;
                let tolerance = if is_whole { tolerance } else { share_of_gap(SHARE) };
                let (steps, stopped) = block.solve_watched(Goal { tolerance, max_steps }, ctx, check)?;
                let promised = block.promised;
                let (beta, gradients) = block.finish(memory);
                (Solved { beta, steps, promised }, is_whole.then_some(gradients), stopped)
            };
        self.iterations += steps;
        self.rounds += 1;
        if steps == 0 {
            self.stop = Some(StopReason::Stalled);
            return Ok(None);
        }
        let before = (self.problem().beta.try_to_vec()?, self.problem().gradient.try_to_vec()?);
        let (changed, changes) = self.variables.problem.move_to(members, &beta);
        Ok(Some(Moves { changed, changes, before, gradients, promised, stopped }))
    }

    /// The block's variables with their kernel values: gathered from cached rows, or computed.
    fn block<K: KernelValue>(
        &self,
        columns: &Columns<'_, K>,
        memory: &Arenas<K>,
        ctx: Context<'_>,
    ) -> Result<Subproblem<K>> {
        let members = &self.set.members;
        Subproblem::new(self.problem(), members, &self.tuning, memory, |kernel, stride, slots| {
            if !columns.are_kept() {
                let source = &columns.segments[self.parts[0].segment].source;
                return write_block(source, &self.rows_of(members)?, kernel, stride, slots, ctx);
            }
            let segments = &columns.segments;
            // Runs of members in one part at consecutive slots: part, first slot, columns in a row of the part's segment.
            let mut runs: Vec<(usize, usize, Vec<usize>)> = Vec::new();
            let mut member_of = try_vec![None; stride]?;
            for (&v, &slot) in members.iter().zip(slots) {
                let part = self.part_of(v);
                let column = v - self.parts[part].first;
                match runs.last_mut() {
                    Some((of, first, columns)) if *of == part && *first + columns.len() == slot => {
                        columns.push(column);
                    }
                    _ => runs.push((part, slot, vec![column])),
                }
                member_of[slot] = Some(v);
            }
            let runs = runs.iter().map(|(part, first, columns)| {
                Ok((self.parts[*part].segment, *first, Indices::new(columns)?))
            });
            let runs: Vec<(usize, usize, Indices)> = runs.try_collect_results()?;
            ctx.for_each_chunk(kernel, 64 * stride, |chunk, lines| {
                for (i, line) in lines.chunks_exact_mut(stride).enumerate() {
                    let Some(member) = member_of[chunk * 64 + i] else { continue };
                    let position = self.position(member);
                    for (segment, first, columns) in &runs {
                        let out = &mut line[*first..][..columns.len()];
                        columns.gather(segments[*segment].row(position), out);
                    }
                }
            });
            Ok(())
        })
    }

    /// Adds K(:, changed) changes to the gradients, the ridge already added, and looks for the largest violation.
    ///
    /// # Errors
    /// [`Error::Stopped`]. Where the gradients are not complete, the moves are undone.
    pub(super) fn update_gradients<K: KernelValue>(
        &mut self,
        moves: Moves,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let Moves { changed, changes, before, gradients, promised, stopped: left } = moves;
        if let Err(error) = self.add_changes((&changed, &changes), gradients, columns, training) {
            let problem = &mut self.variables.problem;
            (problem.beta, problem.gradient) = before;
            return Err(error);
        }
        self.survey = self.problem().survey();
        let problem = &self.variables.problem;
        let moved = changed.iter().map(|&v| Change {
            from: before.0[v],
            to: problem.beta[v],
            gradient: f64::midpoint(before.1[v], problem.gradient[v]),
            group: problem.group[v],
        });
        let risen = rise(moved, problem.kink, problem.anchored);
        self.gradient_rounding = rounding(&problem.gradient, &problem.beta, &problem.diagonal);
        let (violation, doubt) = (self.survey.violation(), IN_DOUBT * self.gradient_rounding);
        let idle = self.stall.idle_after(risen, promised, violation, doubt);
        // The block of a large machine may have been the wrong one.
        let patience = if left != Some(StopReason::Stalled) {
            PATIENCE
        } else if self.set.members.len() < problem.len() {
            PATIENCE / 10
        } else {
            0
        };
        if idle >= patience {
            self.stop = Some(StopReason::Stalled);
        }
        // A block must be larger than the number of unbounded variables, or rounds undo each other (thesis 2.6.3).
        let wanted = (self.survey.unbounded * 7 / 4).next_multiple_of(64).min(self.tuning.largest_block);
        self.set.size = self.set.size.max(wanted).min(room(&self.parts, columns));
        match left {
            Some(reason) if reason != StopReason::Stalled => Err(Error::Stopped(reason)),
            _ => Ok(()),
        }
    }

    /// Adds the products of the changes of some variables to all gradients; `gradients` are those of the block's members
    /// where these are all variables.
    fn add_changes<K: KernelValue>(
        &mut self,
        (changed, changes): (&[usize], &[f64]),
        gradients: Option<Vec<f64>>,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let (ctx, depth) = (training.ctx, columns.depth());
        let rows = self.rows_of(changed)?;
        if let Some(gradients) = gradients {
            for (&v, gradient) in self.set.members.iter().zip(gradients) {
                self.variables.problem.gradient[v] = gradient;
            }
        } else if let Some(source) = &self.variables.source {
            let gradient = &mut self.variables.problem.gradient;
            training.add_product(source, depth, (&rows, changes), gradient)?;
        } else {
            let positions: Vec<usize> = changed.iter().map(|&v| self.position(v)).try_collect_vec()?;
            for part in &self.parts {
                let segment = &columns.segments[part.segment];
                let range = part.first..part.first + part.positions.len();
                let gradient = &mut self.variables.problem.gradient[range];
                if segment.is_kept() {
                    let rows: Vec<&[K]> =
                        positions.iter().map(|&position| segment.row(position)).try_collect_vec()?;
                    ctx.for_each_chunk(gradient, CHUNK, |chunk, gradient| {
                        add_rows(changes, &rows, chunk * CHUNK, gradient);
                    });
                } else {
                    training.add_product(&segment.source, depth, (&rows, changes), gradient)?;
                }
            }
        }
        Ok(())
    }

    /// Sets variables aside that no pair can move at present, where kernel values are not cached.
    pub(super) fn shrink<K: KernelValue>(
        &mut self,
        columns: &Columns<'a, K>,
        ctx: Context<'_>,
    ) -> Result<()> {
        let all = &columns.segments[self.parts[0].segment].source;
        if let Some(number) = self.variables.shrink(&self.survey, all, ctx)? {
            self.set = self.set.renumbered(|v| number[v]);
        }
        Ok(())
    }

    /// Undoes the last shrinking and returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which nothing is changed.
    pub(super) fn unshrink<K: KernelValue>(
        &mut self,
        columns: &Columns<'_, K>,
        training: &Training<'_>,
    ) -> Result<bool> {
        let Some(active) = self.variables.unshrink(columns.depth(), training)? else { return Ok(false) };
        self.set = self.set.renumbered(|k| Some(active[k]));
        self.survey = self.problem().survey();
        Ok(true)
    }
}

/// Most variables of a block that the caches of its segments can serve.
fn room<K: KernelValue>(parts: &[Part], columns: &Columns<'_, K>) -> usize {
    parts
        .iter()
        .filter_map(|part| columns.segments[part.segment].cache.as_ref())
        .map(RowCache::<K>::capacity)
        .min()
        .unwrap_or(usize::MAX)
}
