//! A machine: its problem, its block, its columns, and its part of a round.
//!
//! The block is solved, and all gradients are brought up to date by one product f += K(:, changed) change. Where a
//! kernel value costs little, the product is computed afresh and nothing is stored; where it costs more than to store
//! it and to read it back, rows come from a cache. Machines without a cache may shrink (see `shrinking`).
//!
//! Invariant between rounds: gradients are exact for the coefficients (sums in double precision of the same
//! single-precision kernel values), coefficients are feasible.
//!
//! Cost of a round: two scans of the block a pair step, and (changed coefficients) x (columns) kernel values or
//! multiply-adds; hence few, large rounds.

use super::certificate::{Certificate, certify};
use super::columns::{Columns, Segment};
use super::intercept::intercept;
use super::nested;
use super::params::Tuning;
use super::problem::{DualProblem, Survey};
use super::shrinking::Variables;
use super::subproblem::{Goal, Subproblem, write_block};
use super::training::Training;
use super::working_set::WorkingSet;
use crate::cache::RowCache;
use crate::control::{Par, StopReason};
use crate::memory::Arenas;
use crate::simd::blas::add_rows;
use std::ops::Range;

/// Entries scanned in one block before control goes back: a few tenths of a second.
const SCAN_WORK: usize = 200_000_000;
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
    /// The gradients of the members, where they are all variables of the machine.
    gradients: Option<Vec<f64>>,
}

impl<'a> Machine<'a> {
    /// A machine over the given segments.
    pub(super) fn new(
        problem: DualProblem,
        segments: &[usize],
        columns: &Columns<'_>,
        training: &Training<'_>,
    ) -> Self {
        let mut first = 0;
        let parts: Vec<Part> = segments
            .iter()
            .map(|&segment| {
                let positions = columns.segments[segment].positions.clone();
                first += positions.len();
                Part { segment, first: first - positions.len(), positions }
            })
            .collect();
        assert_eq!(first, problem.len());
        let rows = parts.iter().flat_map(|part| columns.order[part.positions.clone()].iter().copied());
        let variables = Variables::new(problem, rows.collect());
        let (problem, tuning) = (&variables.problem, training.params.tuning);
        let set = WorkingSet::new(tuning.first_block(problem.len()).min(room(&parts, columns)));
        let (survey, cold) = (problem.survey(), problem.beta.iter().all(|b| *b == 0.0));
        let mut machine =
            Self { variables, survey, iterations: 0, rounds: 0, stop: None, parts, set, tuning };
        if !cold {
            machine.renew_gradients(columns, training.par);
        }
        machine
    }

    /// Gradients for coefficients that do not start at zero, without storing a kernel value.
    fn renew_gradients(&mut self, columns: &Columns<'_>, par: Par) {
        let Variables { problem, rows, .. } = &mut self.variables;
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).collect();
        let rows: Vec<usize> = used.iter().map(|&v| rows[v]).collect();
        let values: Vec<f64> = used.iter().map(|&v| problem.beta[v]).collect();
        problem.gradient.copy_from_slice(&problem.linear);
        for (&v, &value) in used.iter().zip(&values) {
            problem.gradient[v] += problem.ridge[v] * value;
        }
        for part in &self.parts {
            let gradient = &mut problem.gradient[part.first..part.first + part.positions.len()];
            columns.segments[part.segment].source.add_product(&rows, &values, gradient, par);
        }
        self.survey = problem.survey();
    }

    /// The problem: that of the active variables while the machine is shrunk.
    pub(super) fn problem(&self) -> &DualProblem {
        &self.variables.problem
    }

    /// Intercept, rho and certificate of a machine that has been solved.
    pub(super) fn outcome(&self) -> (f64, f64, Certificate) {
        let (b, rho) = intercept(self.problem());
        let stop = self.stop.unwrap_or(StopReason::Stalled);
        (b, rho, certify(self.problem(), (b, rho), self.iterations, self.rounds, stop))
    }

    /// Segments of the machine's columns.
    pub(super) fn segments(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.segment)
    }

    /// Lets go of the rows that no other machine will use: those of one of its segments against the columns of another
    /// for pairs of segments that `is_last` names.
    pub(super) fn forget_rows(&self, segments: &mut [Segment<'_>], is_last: impl Fn(usize, usize) -> bool) {
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
    fn rows_of(&self, variables: &[usize]) -> Vec<usize> {
        variables.iter().map(|&v| self.variables.rows[v]).collect()
    }

    /// Chooses the next block; the positions of its members where kernel rows are cached.
    pub(super) fn select_block(&mut self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.set.choose(&self.variables.problem, &self.survey.extremes);
        self.set.members.iter().map(|&v| self.position(v))
    }

    /// Solves the chosen block and moves its variables; `None` where no step could be made.
    pub(super) fn solve_block(
        &mut self,
        columns: &Columns<'_>,
        memory: &Arenas,
        training: &Training<'_>,
    ) -> Option<Moves> {
        let (tolerance, par) = (training.params.tolerance, training.par);
        let left = training.params.max_iterations.map_or(u64::MAX, |max| max - self.iterations);
        let members = &self.set.members;
        let max_steps = ((SCAN_WORK / members.len().max(1)) as u64).max(1000).min(left);
        let is_whole = members.len() == self.problem().len();
        let share_of_gap = |share: f64| (share * self.survey.violation()).max(0.5 * tolerance);
        let (beta, gradients, steps) = if !columns.are_cached() && members.len() > self.tuning.nested {
            let source = &columns.segments[self.parts[0].segment].source;
            let goal = Goal { tolerance: share_of_gap(NESTED_SHARE), max_steps };
            let problem = self.problem().select(members);
            let (beta, steps) =
                nested::solve(problem, &self.rows_of(members), source, self.tuning.nested, memory, goal, par);
            (beta, None, steps)
        } else {
            let mut block = self.block(columns, memory, par);
            let tolerance = if is_whole { tolerance } else { share_of_gap(SHARE) };
            let steps = block.solve(Goal { tolerance, max_steps });
            let (beta, gradients) = block.finish(memory);
            (beta, is_whole.then_some(gradients), steps)
        };
        self.iterations += steps;
        self.rounds += 1;
        if steps == 0 {
            self.stop = Some(StopReason::Stalled);
            return None;
        }
        let (changed, changes) = self.variables.problem.move_to(members, &beta);
        Some(Moves { changed, changes, gradients })
    }

    /// The block's variables with their kernel values: gathered from cached rows, or computed.
    fn block(&self, columns: &Columns<'_>, memory: &Arenas, par: Par) -> Subproblem {
        let members = &self.set.members;
        Subproblem::new(self.problem(), members, memory, |kernel, stride, slots| {
            if !columns.are_cached() {
                let source = &columns.segments[self.parts[0].segment].source;
                write_block(source, &self.rows_of(members), kernel, stride, slots, par);
                return;
            }
            let segments = &columns.segments;
            // For each part: the slots of the members that lie in it, and where in a row of its segment they stand.
            let mut places: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.parts.len()];
            let mut member_of = vec![None; stride];
            for (&v, &slot) in members.iter().zip(slots) {
                let part = self.part_of(v);
                places[part].push((slot as u32, (v - self.parts[part].first) as u32));
                member_of[slot] = Some(v);
            }
            par.for_each_chunk(kernel, 64 * stride, |chunk, lines| {
                for (i, line) in lines.chunks_exact_mut(stride).enumerate() {
                    let Some(member) = member_of[chunk * 64 + i] else { continue };
                    let position = self.position(member);
                    for (part, places) in self.parts.iter().zip(&places) {
                        let row = segments[part.segment].row(position);
                        for &(slot, column) in places {
                            line[slot as usize] = row[column as usize];
                        }
                    }
                }
            });
        })
    }

    /// f += K(:, changed) changes, the ridge already added; then one look at all variables.
    pub(super) fn update_gradients(&mut self, moves: Moves, columns: &Columns<'_>, par: Par) {
        let Moves { changed, changes, gradients } = moves;
        let rows = self.rows_of(&changed);
        if let Some(gradients) = gradients {
            for (&v, gradient) in self.set.members.iter().zip(gradients) {
                self.variables.problem.gradient[v] = gradient;
            }
        } else if let Some(source) = &self.variables.source {
            source.add_product(&rows, &changes, &mut self.variables.problem.gradient, par);
        } else {
            let positions: Vec<usize> = changed.iter().map(|&v| self.position(v)).collect();
            for part in &self.parts {
                let segment = &columns.segments[part.segment];
                let range = part.first..part.first + part.positions.len();
                let gradient = &mut self.variables.problem.gradient[range];
                if segment.cache.is_none() {
                    segment.source.add_product(&rows, &changes, gradient, par);
                } else {
                    let rows: Vec<&[f32]> = positions.iter().map(|&position| segment.row(position)).collect();
                    par.for_each_chunk(gradient, CHUNK, |chunk, gradient| {
                        add_rows(&changes, &rows, chunk * CHUNK, gradient);
                    });
                }
            }
        }
        self.survey = self.problem().survey();
        // A block must be larger than the number of unbounded variables, or rounds undo each other (thesis 2.6.3).
        let wanted = (2 * self.survey.unbounded).next_power_of_two().min(self.tuning.largest_block);
        self.set.size = self.set.size.max(wanted).min(room(&self.parts, columns));
    }

    /// Sets variables aside that no pair can move at present, where kernel values are not cached.
    pub(super) fn shrink(&mut self, columns: &Columns<'a>, par: Par) {
        let all = &columns.segments[self.parts[0].segment].source;
        if let Some(number) = self.variables.shrink(&self.survey, all, par) {
            self.set = self.set.renumbered(|v| number[v]);
        }
    }

    /// Undoes the last shrinking; whether there was one.
    pub(super) fn unshrink(&mut self, par: Par) -> bool {
        let Some(active) = self.variables.unshrink(par) else { return false };
        self.set = self.set.renumbered(|k| Some(active[k]));
        self.survey = self.problem().survey();
        true
    }
}

/// Most variables of a block that the caches of its segments can serve.
fn room(parts: &[Part], columns: &Columns<'_>) -> usize {
    parts
        .iter()
        .filter_map(|part| columns.segments[part.segment].cache.as_ref())
        .map(RowCache::capacity)
        .min()
        .unwrap_or(usize::MAX)
}
