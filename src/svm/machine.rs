//! A machine: its problem, its block, its columns, and a round of the outer tier.
//!
//! A round solves the block and brings all gradients up to date by one product f += K(:, changed) change. Where a
//! kernel value costs little, the product is computed afresh and nothing is stored; where it costs more than to store
//! it and to read it back, rows come from a cache. A machine may set variables aside (shrink) and take them back.
//!
//! Invariant between rounds: gradients are exact for the coefficients (sums in double precision of the same
//! single-precision kernel values), coefficients are feasible.
//!
//! Cost of a round: two scans of the block a pair step, and (changed coefficients) x (columns) kernel values or
//! multiply-adds; hence few, large rounds.

use super::middle;
use super::params::Tuning;
use super::problem::{DualProblem, Survey};
use super::subproblem::{Subproblem, computed};
use super::working_set::WorkingSet;
use crate::cache::{Arenas, RowCache};
use crate::control::{Par, StopReason};
use crate::kernels::KernelRows;
use crate::simd::blas::add_rows;
use std::ops::Range;

/// Entries scanned in one block before control goes back: a few tenths of a second.
const SCAN_WORK: usize = 200_000_000;
/// Share of the machine's violation that a block is solved to.
const SHARE: f64 = 0.1;
/// The same for a block that is solved by blocks of its own.
const NESTED_SHARE: f64 = 0.2;
/// Share of the variables that must stay for a machine to shrink no further.
const WORTH_SHRINKING: f64 = 0.85;
/// Columns of one gradient task: its part of the gradient stays in the first cache.
const CHUNK: usize = 4096;

/// A range of columns with its packed rows, and a cache of kernel rows where a kernel value costs more than to store
/// and to read it. Rows and columns are positions in the training order.
pub(super) struct Segment<'a> {
    pub(super) positions: Range<usize>,
    pub(super) source: KernelRows<'a>,
    pub(super) cache: Option<RowCache>,
}

impl Segment<'_> {
    /// A cached row.
    fn row(&self, position: usize) -> &[f32] {
        self.cache.as_ref().map_or(&[], |cache| cache.row(position))
    }
}

/// A machine. Its variables are the positions of its segments, one segment after the other; while it is shrunk they
/// are the active ones among those.
pub(super) struct Machine<'a> {
    pub(super) problem: DualProblem,
    /// Of the present coefficients and gradients.
    pub(super) survey: Survey,
    pub(super) iterations: u64,
    pub(super) rounds: u64,
    pub(super) stop: Option<StopReason>,
    /// Training row of each variable.
    rows: Vec<usize>,
    parts: Vec<Part>,
    pub(super) set: WorkingSet,
    /// Kernel values against the active variables of a shrunk machine.
    source: Option<KernelRows<'a>>,
    /// What the machine was before it shrank, once for every time.
    outer: Vec<Outer<'a>>,
    tuning: Tuning,
}

/// Variables `first..first + positions.len()` of a machine are the positions of one segment.
struct Part {
    segment: usize,
    first: usize,
    positions: Range<usize>,
}

/// A machine before it shrank.
struct Outer<'a> {
    problem: DualProblem,
    rows: Vec<usize>,
    source: Option<KernelRows<'a>>,
    /// Which of its variables stayed, rising.
    active: Vec<usize>,
}

impl<'a> Machine<'a> {
    /// A machine over the given segments.
    pub(super) fn new(
        problem: DualProblem,
        segments: &[usize],
        all: &[Segment<'_>],
        order: &[usize],
        tuning: Tuning,
    ) -> Self {
        let mut first = 0;
        let parts: Vec<Part> = segments
            .iter()
            .map(|&segment| {
                let positions = all[segment].positions.clone();
                first += positions.len();
                Part { segment, first: first - positions.len(), positions }
            })
            .collect();
        assert_eq!(first, problem.len());
        let rows = parts.iter().flat_map(|part| order[part.positions.clone()].iter().copied()).collect();
        let set = WorkingSet::new(tuning.first_block(problem.len()).min(room(&parts, all)));
        Self {
            survey: problem.survey(),
            problem,
            iterations: 0,
            rounds: 0,
            stop: None,
            rows,
            parts,
            set,
            source: None,
            outer: Vec::new(),
            tuning,
        }
    }

    /// Gradients for coefficients that do not start at zero, without storing a kernel value.
    pub(super) fn renew_gradient(&mut self, segments: &[Segment<'_>], par: Par) {
        let problem = &mut self.problem;
        let used: Vec<usize> = (0..problem.len()).filter(|&v| problem.beta[v] != 0.0).collect();
        let rows: Vec<usize> = used.iter().map(|&v| self.rows[v]).collect();
        let values: Vec<f64> = used.iter().map(|&v| problem.beta[v]).collect();
        problem.gradient.copy_from_slice(&problem.linear);
        for (&v, &value) in used.iter().zip(&values) {
            problem.gradient[v] += problem.ridge[v] * value;
        }
        for part in &self.parts {
            let gradient = &mut problem.gradient[part.first..part.first + part.positions.len()];
            segments[part.segment].source.add_product(&rows, &values, gradient, par);
        }
        self.survey = problem.survey();
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
    pub(super) fn position(&self, variable: usize) -> usize {
        let part = &self.parts[self.part_of(variable)];
        part.positions.start + variable - part.first
    }

    /// Sets aside the variables that no pair can move at present: at a bound, and pulled towards it by more than the
    /// whole violation (thesis 2.4.2). Kernel values are then computed against the others only; taking the variables
    /// back costs one product and the columns have to be packed anew, so it is worth it when more than a seventh leaves.
    pub(super) fn shrink(&mut self, segments: &[Segment<'a>], par: Par) {
        if self.parts.iter().any(|part| segments[part.segment].cache.is_some()) {
            return;
        }
        let problem = &self.problem;
        let extremes = &self.survey.extremes;
        let active: Vec<usize> = (0..problem.len())
            .filter(|&i| {
                let (up, low) = extremes[usize::from(problem.group[i])];
                problem.rise(i) <= low || problem.fall(i) >= up
            })
            .collect();
        if active.len() as f64 > WORTH_SHRINKING * self.problem.len() as f64 {
            return;
        }
        let rows: Vec<usize> = active.iter().map(|&v| self.rows[v]).collect();
        let source = segments[self.parts[0].segment].source.with_columns(&rows, par);
        let mut place = vec![None; self.problem.len()];
        for (k, &v) in active.iter().enumerate() {
            place[v] = Some(k);
        }
        self.set = self.set.renumbered(|v| place[v]);
        let small = self.problem.select(&active);
        self.outer.push(Outer {
            problem: std::mem::replace(&mut self.problem, small),
            rows: std::mem::replace(&mut self.rows, rows),
            source: self.source.replace(source),
            active,
        });
    }

    /// Undoes the last shrinking, with exact gradients; whether there was one.
    pub(super) fn unshrink(&mut self, par: Par) -> bool {
        let Some(Outer { mut problem, rows, source, active }) = self.outer.pop() else { return false };
        let (mut changed, mut changes) = (Vec::new(), Vec::new());
        let mut inactive = vec![true; problem.len()];
        for (k, &v) in active.iter().enumerate() {
            inactive[v] = false;
            let change = self.problem.beta[k] - problem.beta[v];
            if change != 0.0 {
                changed.push(rows[v]);
                changes.push(change);
                problem.beta[v] = self.problem.beta[k];
            }
            problem.gradient[v] = self.problem.gradient[k];
        }
        let inactive: Vec<usize> = (0..problem.len()).filter(|&v| inactive[v]).collect();
        if let Some(small) = &self.source {
            let columns: Vec<usize> = inactive.iter().map(|&v| rows[v]).collect();
            let mut missing = vec![0.0; columns.len()];
            small.with_columns(&columns, par).add_product(&changed, &changes, &mut missing, par);
            for (&v, change) in inactive.iter().zip(missing) {
                problem.gradient[v] += change;
            }
        }
        self.set = self.set.renumbered(|k| Some(active[k]));
        (self.problem, self.rows, self.source) = (problem, rows, source);
        self.survey = self.problem.survey();
        true
    }
}

impl Machine<'_> {
    /// One round: solves the chosen block and brings the gradients up to date.
    pub(super) fn round(
        &mut self,
        segments: &[Segment<'_>],
        memory: &Arenas,
        tolerance: f64,
        max_iterations: Option<u64>,
        par: Par,
    ) {
        let left = max_iterations.map_or(u64::MAX, |max| max - self.iterations);
        let members = &self.set.members;
        let gap = self.survey.violation();
        let most = ((SCAN_WORK / members.len().max(1)) as u64).max(1000).min(left);
        let whole = members.len() == self.problem.len();
        let source = &segments[self.parts[0].segment];
        let (beta, gradient, steps) = if source.cache.is_none() && members.len() > self.tuning.nested {
            let rows: Vec<usize> = members.iter().map(|&v| self.rows[v]).collect();
            let wanted = (NESTED_SHARE * gap).max(0.5 * tolerance);
            let problem = self.problem.select(members);
            let size = self.tuning.nested;
            let (beta, steps) =
                middle::solve(problem, &rows, &source.source, size, memory, wanted, most, par);
            (beta, None, steps)
        } else {
            let mut block = self.block(segments, memory, par);
            let wanted = if whole { tolerance } else { (SHARE * gap).max(0.5 * tolerance) };
            let steps = block.solve(wanted, most);
            let (beta, gradient) = block.finish(memory);
            (beta, whole.then_some(gradient), steps)
        };
        self.iterations += steps;
        self.rounds += 1;
        if steps == 0 {
            self.stop = Some(StopReason::Stalled);
            return;
        }
        let (changed, changes) = self.problem.move_to(members, &beta);
        if let Some(gradient) = gradient {
            for (&v, gradient) in members.iter().zip(gradient) {
                self.problem.gradient[v] = gradient;
            }
        } else {
            self.update_gradient(segments, &changed, &changes, par);
        }
        self.survey = self.problem.survey();
        // A block must be larger than the number of unbounded variables, or rounds undo each other (thesis 2.6.3).
        let wanted = (2 * self.survey.unbounded).next_power_of_two().min(self.tuning.largest_block);
        self.set.size = self.set.size.max(wanted).min(room(&self.parts, segments));
    }

    /// The block's variables with their kernel values: gathered from cached rows, or computed.
    fn block(&self, segments: &[Segment<'_>], memory: &Arenas, par: Par) -> Subproblem {
        let members = &self.set.members;
        Subproblem::new(&self.problem, members, memory, |kernel, stride, slots| {
            let used = &segments[self.parts[0].segment];
            if used.cache.is_none() {
                let rows: Vec<usize> = members.iter().map(|&v| self.rows[v]).collect();
                computed(&used.source, &rows, kernel, stride, slots, par);
                return;
            }
            // For each part: the slots of the members that lie in it, and where in a row of its segment they stand.
            let mut columns: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.parts.len()];
            let mut member_of = vec![None; stride];
            for (&v, &slot) in members.iter().zip(slots) {
                let part = self.part_of(v);
                columns[part].push((slot as u32, (v - self.parts[part].first) as u32));
                member_of[slot] = Some(v);
            }
            par.for_each_chunk(kernel, 64 * stride, |chunk, lines| {
                for (i, line) in lines.chunks_exact_mut(stride).enumerate() {
                    let Some(member) = member_of[chunk * 64 + i] else { continue };
                    let position = self.position(member);
                    for (part, columns) in self.parts.iter().zip(&columns) {
                        let row = segments[part.segment].row(position);
                        for &(slot, column) in columns {
                            line[slot as usize] = row[column as usize];
                        }
                    }
                }
            });
        })
    }

    /// f += K(:, changed) changes, the ridge already added.
    fn update_gradient(&mut self, segments: &[Segment<'_>], changed: &[usize], changes: &[f64], par: Par) {
        let rows: Vec<usize> = changed.iter().map(|&v| self.rows[v]).collect();
        if let Some(source) = &self.source {
            source.add_product(&rows, changes, &mut self.problem.gradient, par);
            return;
        }
        let positions: Vec<usize> = changed.iter().map(|&v| self.position(v)).collect();
        for part in &self.parts {
            let segment = &segments[part.segment];
            let gradient = &mut self.problem.gradient[part.first..part.first + part.positions.len()];
            if segment.cache.is_none() {
                segment.source.add_product(&rows, changes, gradient, par);
            } else {
                let rows: Vec<&[f32]> = positions.iter().map(|&position| segment.row(position)).collect();
                par.for_each_chunk(gradient, CHUNK, |chunk, gradient| {
                    add_rows(changes, &rows, chunk * CHUNK, gradient);
                });
            }
        }
    }
}

/// Most variables of a block that the caches of its segments can serve.
fn room(parts: &[Part], segments: &[Segment<'_>]) -> usize {
    parts
        .iter()
        .filter_map(|part| segments[part.segment].cache.as_ref())
        .map(RowCache::capacity)
        .min()
        .unwrap_or(usize::MAX)
}
