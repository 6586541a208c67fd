//! The outer tier (thesis 2.4; Osuna, Freund, Girosi 1997): blocks of the worst violators, solved in the inner tier.
//!
//! A round has five steps:
//!
//! 1. **check**: machines whose violation is within the tolerance are done;
//! 2. **select**: every other machine chooses its block;
//! 3. **fetch**: the kernel rows that any of the blocks lacks are computed once;
//! 4. **solve**: the blocks are solved, machines in parallel;
//! 5. **update**: the moves of a block's coefficients update all gradients of its machine.
//!
//! Machines that share training rows go in step. Rows are cut into *segments* of columns, so that the row of x against
//! its own class serves every machine of that class. Where the caches have no room for the blocks of all machines, steps
//! 2 to 5 are done for some machines after the others.
//!
//! A stop leaves usable machines: coefficients are feasible, gradients exact, but those of variables that were set aside
//! and that there was no time to take back (see `shrinking`).

use super::columns::{Columns, Segment};
use super::machine::Machine;
use super::sharing::Sharing;
use super::training::Training;
use crate::control::{Progress, StopReason};
use crate::error::Result;
use crate::memory::Arenas;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// Solves all machines to the tolerance, or until the monitor or `max_iterations` (pair steps a machine) stops them.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(super) fn solve<'a>(
    machines: &mut [Machine<'a>],
    columns: &mut Columns<'a>,
    training: &Training<'a>,
) -> Result<()> {
    solve_in(machines, columns, training, &Arenas::default())
}

/// As [`solve`], with the blocks' memory from elsewhere.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(super) fn solve_in<'a>(
    machines: &mut [Machine<'a>],
    columns: &mut Columns<'a>,
    training: &Training<'a>,
    memory: &Arenas,
) -> Result<()> {
    let mut sharing = Sharing::new(machines, columns.segments.len());
    // Machines of which no two see the same two segments need little of what the others need: a few at a time keep
    // the live rows few, and the memory they take is used again.
    let window = if columns.segments.len() > 1 && columns.are_kept() && sharing.is_single() {
        4.max(2 * training.par.threads())
    } else {
        usize::MAX
    };
    loop {
        let checked = check(machines, columns, &mut sharing, training)?;
        let unfinished: Vec<usize> =
            (0..machines.len()).filter(|&m| machines[m].stop.is_none()).take(window).collect();
        if unfinished.is_empty() {
            break;
        }
        let ended = match checked {
            ControlFlow::Break(reason) => ControlFlow::Break(reason),
            ControlFlow::Continue(worst) => round(machines, &unfinished, columns, training, memory, worst)?,
        };
        if let ControlFlow::Break(reason) = ended {
            for machine in machines.iter_mut() {
                machine.stop.get_or_insert(reason);
            }
        }
    }
    for machine in machines {
        while machine.unshrink(columns, training)? == ControlFlow::Continue(true) {}
        machine.settle();
    }
    Ok(())
}

/// Ends the machines that are done or out of steps; the largest violation of the others. A machine that has set variables
/// aside is done only when they are back and still nothing is violated.
fn check(
    machines: &mut [Machine<'_>],
    columns: &mut Columns<'_>,
    sharing: &mut Sharing,
    training: &Training<'_>,
) -> Result<ControlFlow<StopReason, f64>> {
    let (tolerance, max_iterations) = (training.params.tolerance, training.params.max_iterations);
    let mut worst = 0.0_f64;
    for machine in machines.iter_mut().filter(|m| m.stop.is_none()) {
        let mut gap = machine.survey.violation();
        while gap <= tolerance {
            match machine.unshrink(columns, training)? {
                ControlFlow::Break(reason) => return Ok(ControlFlow::Break(reason)),
                ControlFlow::Continue(false) => break,
                ControlFlow::Continue(true) => gap = machine.survey.violation(),
            }
        }
        if gap.is_nan() {
            // The outcome is an error that names the cause.
            machine.stop = Some(StopReason::Stalled);
        } else if gap <= tolerance {
            machine.stop = Some(StopReason::Converged);
            sharing.leave(machine);
            machine.forget_rows(&mut columns.segments, |a, b| sharing.count(a, b) == 0);
        } else if max_iterations.is_some_and(|max| machine.iterations >= max) {
            machine.stop = Some(StopReason::MaxIterations);
        } else {
            worst = worst.max(gap);
        }
    }
    Ok(ControlFlow::Continue(worst))
}

/// One block of each of the unfinished machines.
fn round<'a>(
    machines: &mut [Machine<'a>],
    unfinished: &[usize],
    columns: &mut Columns<'a>,
    training: &Training<'a>,
    memory: &Arenas,
    worst: f64,
) -> Result<ControlFlow<StopReason>> {
    let tick = |machines: &[Machine<'_>]| {
        training.monitor.tick(&Progress {
            gap: worst,
            steps: machines.iter().map(|m| m.iterations).sum(),
            ..Progress::of("fit", machines.iter().filter(|m| m.stop.is_some()).count(), machines.len())
        })
    };
    let (done, count) = (machines.iter().filter(|m| m.stop.is_some()).count(), machines.len());
    let mut waiting = unfinished;
    while !waiting.is_empty() {
        if let ControlFlow::Break(reason) = tick(machines) {
            return Ok(ControlFlow::Break(reason));
        }
        let (group, wanted) = select(waiting, machines, &columns.segments);
        waiting = &waiting[group.len()..];
        if let ControlFlow::Break(reason) = columns.fetch(&wanted, training.par, || tick(machines))? {
            return Ok(ControlFlow::Break(reason));
        }
        let chosen = machines.iter_mut().enumerate().filter(|(m, _)| group.contains(m));
        let mut group: Vec<&mut Machine<'a>> = chosen.map(|(_, machine)| machine).collect();
        let (columns, stopped) = (&*columns, OnceLock::new());
        let look = || training.monitor.look("fit", done, count);
        training.par.try_for_each_chunk(&mut group, 1, |_, machine| {
            let machine = &mut *machine[0];
            // The machines before it may have taken long.
            if let ControlFlow::Break(reason) = look() {
                stopped.get_or_init(|| reason);
                return Ok(());
            }
            let ended = match machine.solve_block(columns, memory, training, look)? {
                ControlFlow::Continue(None) => return Ok(()),
                ControlFlow::Continue(Some(moves)) => machine.update_gradients(moves, columns, training)?,
                ControlFlow::Break(reason) => ControlFlow::Break(reason),
            };
            if let ControlFlow::Break(reason) = ended {
                stopped.get_or_init(|| reason);
                return Ok(());
            }
            if training.params.shrinking && !columns.are_kept() {
                machine.shrink(columns, training.par)?;
            }
            Ok(())
        })?;
        if let Some(&reason) = stopped.get() {
            return Ok(ControlFlow::Break(reason));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// As many of the waiting machines as the caches can serve at once, at least one, with their blocks chosen, and the
/// positions whose rows each segment must hold.
fn select<'w>(
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
        let positions = machine.select_block();
        for segment in cached {
            let rows = &mut wanted[segment];
            rows.extend(positions.clone());
            rows.sort_unstable();
            rows.dedup();
        }
        count += 1;
    }
    (&waiting[..count], wanted)
}
