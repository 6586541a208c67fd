//! The outer tier (thesis 2.4; Osuna, Freund, Girosi 1997): blocks of the worst violators, solved in the inner tier.
//!
//! Machines that share training rows go in step: in a round every unfinished machine chooses its block, the kernel
//! rows that any of them lacks are computed once, the blocks are solved in parallel, the gradients are updated. Rows
//! are cut into *segments* of columns (the classes of a one-vs-one problem), so that the row of x against its own
//! class serves every machine of that class. Rows against columns that no unfinished machine sees any more are let go.
//!
//! A stop between rounds leaves usable machines: coefficients are feasible, gradients exact.

use super::machine::{Machine, Segment};
use super::params::SvmParams;
use crate::cache::Arenas;
use crate::control::{Monitor, Par, Progress, StopReason};
use std::ops::ControlFlow;

/// Multiply-adds between two looks at the monitor while rows are computed: a few tenths of a second.
const ROW_WORK: usize = 10_000_000_000;

/// Solves all machines to the tolerance, or until the monitor or `max_iterations` (pair steps a machine) stops them.
/// `depth` is the number of features a kernel value costs.
#[allow(clippy::too_many_arguments)]
pub(super) fn solve<'a>(
    machines: &mut [Machine<'a>],
    segments: &mut [Segment<'a>],
    order: &[usize],
    depth: usize,
    params: &SvmParams,
    monitor: &dyn Monitor,
    par: Par,
) {
    let &SvmParams { tolerance, max_iterations, shrinking, .. } = params;
    let memory = Arenas::default();
    let mut sharing = Sharing::new(machines, segments.len());
    // Machines of which no two see the same two segments need little of what the others need: a few at a time keep
    // the live rows few, and the memory they take is used again.
    let window = if segments.len() > 1 && segments[0].cache.is_some() && sharing.is_single() {
        4.max(2 * par.threads())
    } else {
        usize::MAX
    };
    'rounds: loop {
        let mut worst = 0.0_f64;
        for machine in machines.iter_mut().filter(|m| m.stop.is_none()) {
            let mut gap = machine.survey.violation();
            while gap <= tolerance && machine.unshrink(par) {
                gap = machine.survey.violation();
            }
            if gap <= tolerance {
                machine.stop = Some(StopReason::Converged);
                sharing.leave(machine);
                machine.forget_rows(segments, |a, b| sharing.count(a, b) == 0);
            } else if max_iterations.is_some_and(|max| machine.iterations >= max) {
                machine.stop = Some(StopReason::MaxIterations);
            } else {
                worst = worst.max(gap);
            }
        }
        let unfinished: Vec<usize> =
            (0..machines.len()).filter(|&m| machines[m].stop.is_none()).take(window).collect();
        let tick = |machines: &[Machine<'_>]| {
            monitor.tick(&Progress {
                phase: "fit",
                done: machines.iter().filter(|m| m.stop.is_some()).count() as u64,
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
                for machine in machines.iter_mut() {
                    machine.stop.get_or_insert(reason);
                }
                break 'rounds;
            }
        }
    }
    for machine in machines {
        while machine.unshrink(par) {}
    }
}

/// How many unfinished machines see both of two segments.
struct Sharing {
    segments: usize,
    counts: Vec<u32>,
}

impl Sharing {
    fn new(machines: &[Machine<'_>], segments: usize) -> Self {
        let mut sharing = Self { segments, counts: vec![0; segments * segments] };
        for machine in machines {
            sharing.add(machine, 1);
        }
        sharing
    }

    fn add(&mut self, machine: &Machine<'_>, change: i32) {
        for a in machine.segments() {
            for b in machine.segments() {
                let count = &mut self.counts[a * self.segments + b];
                *count = count.saturating_add_signed(change);
            }
        }
    }

    fn leave(&mut self, machine: &Machine<'_>) {
        self.add(machine, -1);
    }

    fn count(&self, a: usize, b: usize) -> u32 {
        self.counts[a * self.segments + b]
    }

    /// Whether no two machines see the same two segments.
    fn is_single(&self) -> bool {
        (0..self.segments).all(|a| (0..a).all(|b| self.count(a, b) <= 1))
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
        let caches = || machine.segments().filter_map(|s| Some((s, segments[s].cache.as_ref()?)));
        let room = caches().map(|(s, cache)| cache.capacity() - wanted[s].len()).min();
        if count > 0 && room.is_some_and(|room| room < machine.set.size) {
            break;
        }
        let cached: Vec<usize> = caches().map(|(s, _)| s).collect();
        machine.set.choose(&machine.problem, &machine.survey.extremes);
        for segment in cached {
            let rows = &mut wanted[segment];
            rows.extend(machine.set.members.iter().map(|&v| machine.position(v)));
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
                cache.forget(missing);
                return ControlFlow::Break(reason);
            }
        }
    }
    ControlFlow::Continue(())
}
