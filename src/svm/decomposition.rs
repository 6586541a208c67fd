//! The outer tier (thesis 2.4; Osuna, Freund, Girosi 1997): blocks of the worst violators, kernel rows fetched in
//! batches, the block solved in the inner tier, and all gradients brought up to date by one product.
//!
//! Machines that share training rows go in step: in a round every unfinished machine chooses its block, the kernel
//! rows that any of them lacks are computed once, the blocks are solved in parallel, the gradients are updated. Rows
//! are cut into *segments* of columns (the classes of a one-vs-one problem), so that the row of x against its own
//! class serves every machine of that class.
//!
//! Invariant between rounds: gradients are exact for the coefficients (sums in double precision of the same
//! single-precision kernel values), coefficients are feasible. A stop between rounds leaves a usable machine.
//!
//! Cost of a round: (missing rows) x (columns) kernel values, two scans of the block a pair step, and (changed
//! coefficients) x (columns) multiply-adds, which are bound by memory: hence few, large rounds.

use super::params::{SvcParams, Tuning};
use super::problem::DualProblem;
use super::subproblem::{Subproblem, Variable};
use super::working_set::WorkingSet;
use crate::cache::{Arenas, RowCache};
use crate::control::{Monitor, Par, Progress, StopReason};
use crate::kernels::KernelRows;
use crate::simd::blas::add_rows;
use std::ops::{ControlFlow, Range};

/// Multiply-adds between two looks at the monitor while rows are computed, and scanned entries while a block is
/// solved: a few tenths of a second each.
const ROW_WORK: usize = 10_000_000_000;
const SCAN_WORK: usize = 200_000_000;
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
    pub(super) iterations: u64,
    pub(super) rounds: u64,
    pub(super) stop: Option<StopReason>,
    /// Training row of each variable.
    rows: Vec<usize>,
    parts: Vec<Part>,
    set: WorkingSet,
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
        let size = if problem.len() <= tuning.whole { problem.len() } else { tuning.block };
        let set = WorkingSet::new(problem.len(), size.min(room(&parts, all)));
        Self {
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

    /// First variable and positions of each part.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        self.parts.iter().map(|part| (part.first, part.positions.clone()))
    }

    fn part_of(&self, variable: usize) -> &Part {
        &self.parts[self.parts.partition_point(|part| part.first <= variable) - 1]
    }

    fn position(&self, variable: usize) -> usize {
        let part = self.part_of(variable);
        part.positions.start + variable - part.first
    }

    /// Sets aside the variables that no pair can move at present: at a bound, and pulled towards it by more than the
    /// whole violation (thesis 2.4.2). Kernel values are then computed against the others only; taking the variables
    /// back costs one product, so it is worth it when more than a third leaves.
    fn shrink(&mut self, segments: &[Segment<'a>], par: Par) {
        if self.parts.iter().any(|part| segments[part.segment].cache.is_some()) {
            return;
        }
        let (up, low) = self.problem.extremes();
        let f = &self.problem.gradient;
        let active: Vec<usize> = (0..self.problem.len())
            .filter(|&i| {
                (self.problem.can_rise(i) && f[i] <= low) || (self.problem.can_fall(i) && f[i] >= up)
            })
            .collect();
        if 3 * active.len() > 2 * self.problem.len() {
            return;
        }
        let rows: Vec<usize> = active.iter().map(|&v| self.rows[v]).collect();
        let source = segments[self.parts[0].segment].source.with_columns(&rows, par);
        let mut place = vec![None; self.problem.len()];
        for (k, &v) in active.iter().enumerate() {
            place[v] = Some(k);
        }
        self.set = self.set.renumbered(|v| place[v], active.len());
        let small = self.problem.select(&active);
        self.outer.push(Outer {
            problem: std::mem::replace(&mut self.problem, small),
            rows: std::mem::replace(&mut self.rows, rows),
            source: self.source.replace(source),
            active,
        });
    }

    /// Undoes the last shrinking, with exact gradients; whether there was one.
    fn unshrink(&mut self, par: Par) -> bool {
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
        self.set = self.set.renumbered(|k| Some(active[k]), problem.len());
        (self.problem, self.rows, self.source) = (problem, rows, source);
        true
    }
}

/// Solves all machines to the tolerance, or until the monitor or `max_iterations` (pair steps a machine) stops them.
/// `depth` is the number of features a kernel value costs.
#[allow(clippy::too_many_arguments)]
pub(super) fn solve<'a>(
    machines: &mut [Machine<'a>],
    segments: &mut [Segment<'a>],
    order: &[usize],
    depth: usize,
    params: &SvcParams,
    monitor: &dyn Monitor,
    par: Par,
) {
    let &SvcParams { tolerance, max_iterations, shrinking, .. } = params;
    let memory = Arenas::default();
    'rounds: loop {
        let mut worst = 0.0_f64;
        for machine in machines.iter_mut().filter(|m| m.stop.is_none()) {
            let mut violation = machine.problem.violation();
            while violation <= tolerance && machine.unshrink(par) {
                violation = machine.problem.violation();
            }
            if violation <= tolerance {
                machine.stop = Some(StopReason::Converged);
            } else if max_iterations.is_some_and(|max| machine.iterations >= max) {
                machine.stop = Some(StopReason::MaxIterations);
            } else {
                worst = worst.max(violation);
            }
        }
        let unfinished: Vec<usize> = (0..machines.len()).filter(|&m| machines[m].stop.is_none()).collect();
        let tick = |machines: &[Machine<'_>]| {
            monitor.tick(&Progress {
                phase: "fit",
                done: (machines.len() - unfinished.len()) as u64,
                total: Some(machines.len() as u64),
                gap: worst,
                steps: machines.iter().map(|m| m.iterations).sum(),
            })
        };
        if unfinished.is_empty() {
            break;
        }
        let mut waiting = unfinished.as_slice();
        while !waiting.is_empty() {
            let stopped = match tick(machines) {
                ControlFlow::Break(reason) => Some(reason),
                ControlFlow::Continue(()) => {
                    let (group, wanted) = group(waiting, machines, segments);
                    waiting = &waiting[group.len()..];
                    let fetched = fetch(segments, &wanted, order, depth, par, || tick(machines));
                    match fetched {
                        ControlFlow::Break(reason) => Some(reason),
                        ControlFlow::Continue(()) => {
                            let mut group: Vec<&mut Machine<'a>> = machines
                                .iter_mut()
                                .enumerate()
                                .filter(|(m, _)| group.contains(m))
                                .map(|(_, machine)| machine)
                                .collect();
                            let segments = &*segments;
                            par.for_each_chunk(&mut group, 1, |_, machine| {
                                machine[0].round(segments, &memory, tolerance, max_iterations, par);
                                if shrinking {
                                    machine[0].shrink(segments, par);
                                }
                            });
                            None
                        }
                    }
                }
            };
            if let Some(reason) = stopped {
                for &m in &unfinished {
                    machines[m].stop.get_or_insert(reason);
                }
                break 'rounds;
            }
        }
    }
    for machine in machines {
        while machine.unshrink(par) {}
    }
}

/// As many of the waiting machines as the caches can serve at once, at least one, with their blocks chosen, and the
/// positions whose rows each segment must hold.
fn group<'w>(
    waiting: &'w [usize],
    machines: &mut [Machine<'_>],
    segments: &[Segment<'_>],
) -> (&'w [usize], Vec<Vec<usize>>) {
    let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); segments.len()];
    let mut count = 0;
    for &m in waiting {
        let machine = &mut machines[m];
        let room = |wanted: &[Vec<usize>]| {
            machine
                .parts
                .iter()
                .filter_map(|part| Some((part.segment, segments[part.segment].cache.as_ref()?)))
                .map(|(segment, cache)| cache.capacity() - wanted[segment].len())
                .min()
                .unwrap_or(usize::MAX)
        };
        if count > 0 && room(&wanted) < machine.set.size {
            break;
        }
        let (up, low) = machine.problem.extremes();
        let mut set = std::mem::replace(&mut machine.set, WorkingSet::new(0, 0));
        set.choose(&machine.problem, up, low);
        machine.set = set;
        for part in machine.parts.iter().filter(|part| segments[part.segment].cache.is_some()) {
            let positions: Vec<usize> = machine.set.members.iter().map(|&v| machine.position(v)).collect();
            let rows = &mut wanted[part.segment];
            rows.extend_from_slice(&positions);
            rows.sort_unstable();
            rows.dedup();
        }
        count += 1;
    }
    (&waiting[..count], wanted)
}

/// Computes the rows that are wanted and missing, in batches between which the monitor is asked.
fn fetch(
    segments: &mut [Segment<'_>],
    wanted: &[Vec<usize>],
    order: &[usize],
    depth: usize,
    par: Par,
    tick: impl Fn() -> ControlFlow<StopReason>,
) -> ControlFlow<StopReason> {
    for (segment, wanted) in segments.iter_mut().zip(wanted) {
        let Some(cache) = &mut segment.cache else { continue };
        let mut missing = cache.claim(wanted);
        let batch = (ROW_WORK / (segment.positions.len() * depth.max(16)).max(1)).max(96);
        while !missing.is_empty() {
            let rest = missing.split_off(batch.min(missing.len()));
            let rows: Vec<usize> = missing.iter().map(|&position| order[position]).collect();
            segment.source.compute(&rows, &mut cache.slots_mut(&missing), par);
            missing = rest;
            if !missing.is_empty()
                && let ControlFlow::Break(reason) = tick()
            {
                cache.forget(&missing);
                return ControlFlow::Break(reason);
            }
        }
    }
    ControlFlow::Continue(())
}

impl Machine<'_> {
    /// One round: solves the chosen block and brings the gradients up to date.
    fn round(
        &mut self,
        segments: &[Segment<'_>],
        memory: &Arenas,
        tolerance: f64,
        max_iterations: Option<u64>,
        par: Par,
    ) {
        let left = max_iterations.map_or(u64::MAX, |max| max - self.iterations);
        let members = &self.set.members;
        let mut block = self.block(segments, memory, par);
        let (up, low) = self.problem.extremes();
        let whole = members.len() == self.problem.len();
        let wanted = if whole { tolerance } else { (0.1 * (low - up)).max(0.5 * tolerance) };
        let most = ((SCAN_WORK / members.len().max(1)) as u64).max(1000).min(left);
        let steps = block.solve(wanted, most);
        self.iterations += steps;
        self.rounds += 1;
        if steps == 0 {
            self.stop = Some(StopReason::Stalled);
            block.release(memory);
            return;
        }
        let (mut changed, mut changes) = (Vec::new(), Vec::new());
        for (k, &v) in members.iter().enumerate() {
            let change = block.beta[k] - self.problem.beta[v];
            if change != 0.0 {
                changed.push(v);
                changes.push(change);
                self.problem.beta[v] = block.beta[k];
            }
        }
        if whole {
            for (k, &v) in members.iter().enumerate() {
                self.problem.gradient[v] = block.gradient[k];
            }
        }
        block.release(memory);
        if !whole {
            self.update_gradient(segments, &changed, &changes, par);
        }
        self.resize_block(segments);
    }

    /// The block's variables with their kernel values: gathered from cached rows, or computed.
    fn block(&self, segments: &[Segment<'_>], memory: &Arenas, par: Par) -> Subproblem {
        let problem = &self.problem;
        let members = &self.set.members;
        let variables = members.iter().map(|&v| Variable {
            beta: problem.beta[v],
            lower: problem.lower[v],
            upper: problem.upper[v],
            gradient: problem.gradient[v],
            diagonal: problem.diagonal[v],
        });
        Subproblem::new(variables, memory, |kernel, stride| {
            let used = &segments[self.parts[0].segment];
            if used.cache.is_none() {
                let rows: Vec<usize> = members.iter().map(|&v| self.rows[v]).collect();
                let mut lines: Vec<&mut [f32]> =
                    kernel.chunks_exact_mut(stride).map(|line| &mut line[..rows.len()]).collect();
                used.source.with_columns(&rows, par).compute(&rows, &mut lines, par);
                return;
            }
            // Where in a row of its segment each member's column stands.
            let columns: Vec<(usize, usize)> = members
                .iter()
                .map(|&v| {
                    let part = self.part_of(v);
                    (part.segment, v - part.first)
                })
                .collect();
            par.for_each_chunk(kernel, 64 * stride, |chunk, lines| {
                for (i, line) in lines.chunks_exact_mut(stride).enumerate() {
                    let position = self.position(members[chunk * 64 + i]);
                    let rows: Vec<(usize, &[f32])> =
                        self.parts.iter().map(|p| (p.segment, segments[p.segment].row(position))).collect();
                    for (value, &(segment, column)) in line.iter_mut().zip(&columns) {
                        let row = if rows[0].0 == segment { rows[0].1 } else { rows[1].1 };
                        *value = row[column];
                    }
                }
            });
        })
    }

    /// f += K(:, changed) changes.
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

    /// A block must be larger than the number of unbounded variables, or rounds undo each other (thesis 2.6.3).
    fn resize_block(&mut self, segments: &[Segment<'_>]) {
        let unbounded = (0..self.problem.len()).filter(|&i| self.problem.is_unbounded(i)).count();
        let wanted = (2 * unbounded).next_power_of_two().min(self.tuning.largest_block);
        self.set.size = self.set.size.max(wanted).min(room(&self.parts, segments));
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
