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

use super::problem::DualProblem;
use super::subproblem::{Subproblem, Variable};
use super::working_set::WorkingSet;
use crate::cache::RowCache;
use crate::control::{Monitor, Par, Progress, StopReason};
use crate::kernels::KernelRows;
use std::ops::{ControlFlow, Range};

/// Block size to begin with, and the most it grows to as unbounded variables are found.
const BLOCK: usize = 1024;
const LARGEST_BLOCK: usize = 8192;
/// A machine of at most so many variables is one block.
const WHOLE: usize = 2048;
/// Multiply-adds between two looks at the monitor while rows are computed, and scanned entries while a block is
/// solved: a few tenths of a second each.
const ROW_WORK: usize = 10_000_000_000;
const SCAN_WORK: usize = 200_000_000;
/// Columns of one gradient task: its part of the gradient stays in the first cache.
const CHUNK: usize = 4096;

/// A range of columns with its packed rows and its cache. Rows and columns are positions in the training order.
pub(super) struct Segment<'a> {
    pub(super) positions: Range<usize>,
    pub(super) source: KernelRows<'a>,
    pub(super) cache: RowCache,
}

/// A machine: its variables are the positions of its segments, one segment after the other.
pub(super) struct Machine {
    pub(super) problem: DualProblem,
    parts: Vec<Part>,
    pub(super) iterations: u64,
    pub(super) rounds: u64,
    pub(super) stop: Option<StopReason>,
    set: WorkingSet,
}

/// Variables `first..first + positions.len()` of a machine are the positions of one segment.
struct Part {
    segment: usize,
    first: usize,
    positions: Range<usize>,
}

impl Machine {
    /// A machine over the given segments.
    pub(super) fn new(problem: DualProblem, segments: &[usize], all: &[Segment<'_>]) -> Self {
        let mut first = 0;
        let parts = segments
            .iter()
            .map(|&segment| {
                let positions = all[segment].positions.clone();
                first += positions.len();
                Part { segment, first: first - positions.len(), positions }
            })
            .collect();
        assert_eq!(first, problem.len());
        let room = segments.iter().map(|&s| all[s].cache.capacity()).min().unwrap_or(usize::MAX);
        let size = if problem.len() <= WHOLE { problem.len() } else { BLOCK };
        let set = WorkingSet::new(problem.len(), size.min(room));
        Self { problem, parts, iterations: 0, rounds: 0, stop: None, set }
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
}

/// Solves all machines to the tolerance, or until the monitor or `max_iterations` (pair steps a machine) stops them.
/// `depth` is the number of features a kernel value costs.
pub(super) fn solve(
    machines: &mut [Machine],
    segments: &mut [Segment<'_>],
    order: &[usize],
    depth: usize,
    tolerance: f64,
    max_iterations: Option<u64>,
    monitor: &dyn Monitor,
    par: Par,
) {
    loop {
        let mut worst = 0.0_f64;
        for machine in machines.iter_mut().filter(|m| m.stop.is_none()) {
            let (up, low) = machine.problem.extremes();
            if low - up <= tolerance {
                machine.stop = Some(StopReason::Converged);
            } else if max_iterations.is_some_and(|max| machine.iterations >= max) {
                machine.stop = Some(StopReason::MaxIterations);
            } else {
                worst = worst.max(low - up);
            }
        }
        let unfinished: Vec<usize> = (0..machines.len()).filter(|&m| machines[m].stop.is_none()).collect();
        let tick = |machines: &[Machine]| {
            monitor.tick(&Progress {
                phase: "fit",
                done: (machines.len() - unfinished.len()) as u64,
                total: Some(machines.len() as u64),
                gap: worst,
                steps: machines.iter().map(|m| m.iterations).sum(),
            })
        };
        if unfinished.is_empty() {
            return;
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
                            round(machines, group, segments, tolerance, max_iterations, par);
                            None
                        }
                    }
                }
            };
            if let Some(reason) = stopped {
                for &m in &unfinished {
                    machines[m].stop.get_or_insert(reason);
                }
                return;
            }
        }
    }
}

/// As many of the waiting machines as the caches can serve at once, at least one, with their blocks chosen, and the
/// positions whose rows each segment must hold.
fn group<'w>(
    waiting: &'w [usize],
    machines: &mut [Machine],
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
                .map(|part| segments[part.segment].cache.capacity() - wanted[part.segment].len())
                .min()
                .unwrap_or(0)
        };
        if count > 0 && room(&wanted) < machine.set.size {
            break;
        }
        let (up, low) = machine.problem.extremes();
        let mut set = std::mem::replace(&mut machine.set, WorkingSet::new(0, 0));
        set.choose(&machine.problem, up, low);
        machine.set = set;
        let positions: Vec<usize> = machine.set.members.iter().map(|&v| machine.position(v)).collect();
        for part in &machine.parts {
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
        let mut missing = segment.cache.claim(wanted);
        let batch = (ROW_WORK / (segment.positions.len() * depth.max(16)).max(1)).max(96);
        while !missing.is_empty() {
            let rest = missing.split_off(batch.min(missing.len()));
            let rows: Vec<usize> = missing.iter().map(|&position| order[position]).collect();
            segment.source.compute(&rows, &mut segment.cache.slots_mut(&missing), par);
            missing = rest;
            if !missing.is_empty()
                && let ControlFlow::Break(reason) = tick()
            {
                segment.cache.forget(&missing);
                return ControlFlow::Break(reason);
            }
        }
    }
    ControlFlow::Continue(())
}

/// Solves the blocks of a group whose rows are present, and updates its machines.
fn round(
    machines: &mut [Machine],
    group: &[usize],
    segments: &[Segment<'_>],
    tolerance: f64,
    max_iterations: Option<u64>,
    par: Par,
) {
    let ends = par.map(group.len(), |g| {
        let machine = &machines[group[g]];
        let left = max_iterations.map_or(u64::MAX, |max| max - machine.iterations);
        solve_block(machine, segments, tolerance, left, par)
    });
    // Gradients of all machines as one list of tasks, so that one large machine also uses every thread.
    let mut is_member = vec![None; machines.len()];
    for (g, &m) in group.iter().enumerate() {
        is_member[m] = Some(g);
    }
    let mut tasks = Vec::new();
    for (m, machine) in machines.iter_mut().enumerate() {
        let Some(g) = is_member[m] else { continue };
        let changes = &ends[g].changes;
        machine.iterations += ends[g].steps;
        machine.rounds += 1;
        for &(variable, _, value) in changes {
            machine.problem.beta[variable] = value;
        }
        if ends[g].steps == 0 {
            machine.stop = Some(StopReason::Stalled);
        }
        let positions: Vec<usize> = changes.iter().map(|&(v, _, _)| machine.position(v)).collect();
        let mut gradient = machine.problem.gradient.as_mut_slice();
        for part in &machine.parts {
            let (mine, rest) = gradient.split_at_mut(part.positions.len());
            gradient = rest;
            for (c, chunk) in mine.chunks_mut(CHUNK).enumerate() {
                tasks.push((g, part.segment, c * CHUNK, positions.clone(), chunk));
            }
        }
    }
    par.for_each_chunk(&mut tasks, 1, |_, task| {
        let (g, segment, from, positions, chunk) = &mut task[0];
        let weights: Vec<f64> = ends[*g].changes.iter().map(|&(_, change, _)| change).collect();
        let rows: Vec<&[f32]> = positions.iter().map(|&p| segments[*segment].cache.row(p)).collect();
        crate::simd::blas::add_rows(&weights, &rows, *from, chunk);
    });
    drop(tasks);
    for &m in group {
        machines[m].resize_block(segments);
    }
}

struct BlockEnd {
    steps: u64,
    /// Variable, change, new value.
    changes: Vec<(usize, f64, f64)>,
}

fn solve_block(machine: &Machine, segments: &[Segment<'_>], tolerance: f64, left: u64, par: Par) -> BlockEnd {
    let problem = &machine.problem;
    let members = &machine.set.members;
    let variables = members.iter().map(|&v| Variable {
        beta: problem.beta[v],
        lower: problem.lower[v],
        upper: problem.upper[v],
        gradient: problem.gradient[v],
        diagonal: problem.diagonal[v],
    });
    // Where in a row of its segment each member's column stands.
    let columns: Vec<(usize, usize)> = members
        .iter()
        .map(|&v| {
            let part = machine.part_of(v);
            (part.segment, v - part.first)
        })
        .collect();
    let mut block = Subproblem::new(variables, |kernel, stride| {
        par.for_each_chunk(kernel, 64 * stride, |chunk, lines| {
            for (i, line) in lines.chunks_exact_mut(stride).enumerate() {
                let position = machine.position(members[chunk * 64 + i]);
                let rows: Vec<(usize, &[f32])> =
                    machine.parts.iter().map(|p| (p.segment, segments[p.segment].cache.row(position))).collect();
                for (value, &(segment, column)) in line.iter_mut().zip(&columns) {
                    let row = if rows[0].0 == segment { rows[0].1 } else { rows[1].1 };
                    *value = row[column];
                }
            }
        });
    });
    let (up, low) = problem.extremes();
    let whole = members.len() == problem.len();
    let wanted = if whole { tolerance } else { (0.1 * (low - up)).max(0.5 * tolerance) };
    let most = ((SCAN_WORK / members.len().max(1)) as u64).max(1000).min(left);
    let steps = block.solve(wanted, most);
    let changes = members
        .iter()
        .enumerate()
        .filter(|&(k, &v)| block.beta[k] != problem.beta[v])
        .map(|(k, &v)| (v, block.beta[k] - problem.beta[v], block.beta[k]))
        .collect();
    BlockEnd { steps, changes }
}

impl Machine {
    /// A block must be larger than the number of unbounded variables, or rounds undo each other (thesis 2.6.3).
    fn resize_block(&mut self, segments: &[Segment<'_>]) {
        let unbounded = (0..self.problem.len()).filter(|&i| self.problem.is_unbounded(i)).count();
        let room = self.parts.iter().map(|p| segments[p.segment].cache.capacity()).min().unwrap_or(usize::MAX);
        let wanted = (2 * unbounded).next_power_of_two().min(LARGEST_BLOCK);
        self.set.size = self.set.size.max(wanted).min(room).min(self.problem.len());
    }
}
