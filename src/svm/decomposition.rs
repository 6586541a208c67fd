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
//! 2 to 5 are done for some machines after the others. Where kernel values are computed again and not kept, nothing is
//! shared: many machines then go their own ways.
//!
//! A stop leaves usable machines: coefficients are feasible, gradients exact, but those of variables that were set aside
//! and that there was no time to take back (see `shrinking`).

use super::columns::{Columns, Segment};
use super::machine::Machine;
use super::precision::{KernelValue, is_hopeless};
use super::sharing::Sharing;
use super::stall::BELOW_DOUBT;
use super::training::Training;
use crate::context::{Progress, StopReason};
use crate::error::Result;
use crate::memory::{Arenas, TryCollect, TryGrow};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Times that gradients are computed at once in double precision and rounds go on from them.
const RENEWALS: usize = 3;
/// Machines a thread from which on each is solved on one thread.
const CROWD: usize = 4;

/// Solves all machines to the tolerance, or until the monitor or `max_iterations` (pair steps a machine) stops them.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(super) fn solve<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    columns: &mut Columns<'a, K>,
    training: &Training<'a>,
) -> Result<()> {
    solve_in(machines, columns, training, &Arenas::default())
}

/// As [`solve`], with the blocks' memory from elsewhere.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(super) fn solve_in<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    columns: &mut Columns<'a, K>,
    training: &Training<'a>,
    memory: &Arenas<K>,
) -> Result<()> {
    for left in (0..=RENEWALS).rev() {
        solve_once(machines, columns, training, memory)?;
        let mut again = false;
        for machine in machines.iter_mut() {
            again |= machine.renew(left > 0, columns, training)?;
        }
        if !again {
            break;
        }
    }
    Ok(())
}

/// As [`solve_in`], as far as the gradients of the rounds tell.
fn solve_once<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    columns: &mut Columns<'a, K>,
    training: &Training<'a>,
    memory: &Arenas<K>,
) -> Result<()> {
    if !columns.are_kept() && machines.len() >= CROWD * training.ctx.threads() {
        return solve_apart(machines, columns, training, memory);
    }
    let mut sharing = Sharing::new(machines, columns.segments.len())?;
    // Machines of which no two see the same two segments need little of what the others need: a few at a time keep
    // the live rows few, and the memory they take is used again.
    let window = if columns.segments.len() > 1 && columns.are_kept() && sharing.is_single() {
        4.max(2 * training.ctx.threads())
    } else {
        usize::MAX
    };
    loop {
        let mut checked = Ok(());
        let mut worst = 0.0_f64;
        for machine in machines.iter_mut().filter(|m| m.stop.is_none()) {
            checked = check(machine, columns, training);
            if checked.is_err() {
                break;
            }
            match machine.stop {
                Some(StopReason::Converged) => {
                    sharing.leave(machine);
                    machine.forget_rows(&mut columns.segments, |a, b| sharing.count(a, b) == 0);
                }
                Some(_) => {}
                None => worst = worst.max(machine.survey.violation()),
            }
        }
        let unfinished: Vec<usize> =
            (0..machines.len()).filter(|&m| machines[m].stop.is_none()).take(window).try_collect_vec()?;
        if unfinished.is_empty() {
            break;
        }
        let ended = checked.and_then(|()| round(machines, &unfinished, columns, training, memory, worst));
        if let Some(reason) = StopReason::from_result(ended)? {
            for machine in machines.iter_mut() {
                machine.stop.get_or_insert(reason);
            }
        }
    }
    for machine in machines {
        machine.finish(columns, training)?;
    }
    Ok(())
}

/// Solves machines that share no kernel rows, each from its first round to its last on one thread: its blocks stay in
/// the caches of a processor, and no machine waits for another. A round does not depend on the threads, so no bit does.
fn solve_apart<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    columns: &Columns<'a, K>,
    training: &Training<'a>,
    memory: &Arenas<K>,
) -> Result<()> {
    let alone =
        Training { rows: training.rows.clone(), params: training.params, ctx: training.ctx.sequential() };
    let (count, done) = (machines.len(), AtomicUsize::new(0));
    let tick = || training.ctx.check("fit", done.load(Ordering::Relaxed), count);
    let solved = training.ctx.try_for_each_chunk(machines, 1, |_, machine| {
        let machine = &mut machine[0];
        while machine.stop.is_none() {
            tick()?;
            check(machine, columns, &alone)?;
            if machine.stop.is_none() {
                drop(machine.select_block()?);
                advance(machine, columns, memory, &alone, tick)?;
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
        machine.finish(columns, &alone)
    });
    let Some(reason) = StopReason::from_result(solved)? else { return Ok(()) };
    training.ctx.try_for_each_chunk(machines, 1, |_, machine| {
        machine[0].stop.get_or_insert(reason);
        machine[0].finish(columns, &alone)
    })
}

/// Ends the machine if it is done or out of steps. One that has set variables aside is done only when they are back and
/// still nothing is violated.
fn check<K: KernelValue>(
    machine: &mut Machine<'_>,
    columns: &Columns<'_, K>,
    training: &Training<'_>,
) -> Result<()> {
    let (tolerance, max_iterations) = (training.params.tolerance, training.params.max_iterations);
    // A smaller violation than the rounding of the gradients cannot be told from none.
    let least = BELOW_DOUBT * machine.gradient_rounding;
    let mut gap = machine.survey.violation();
    while gap <= tolerance.max(least) {
        if !machine.unshrink(columns, training)? {
            break;
        }
        gap = machine.survey.violation();
    }
    machine.stop = if gap.is_nan() {
        // The outcome is an error that names the cause.
        Some(StopReason::Stalled)
    } else if gap <= tolerance {
        Some(StopReason::Converged)
    } else if gap <= least {
        Some(StopReason::Stalled)
    } else if max_iterations.is_some_and(|max| machine.iterations >= max) {
        Some(StopReason::MaxIterations)
    } else if is_hopeless::<K>(&machine.problem().beta, &machine.problem().diagonal, tolerance) {
        Some(StopReason::Stalled)
    } else {
        None
    };
    Ok(())
}

/// Solves the chosen block of a machine, and moves it.
fn advance<'a, K: KernelValue>(
    machine: &mut Machine<'a>,
    columns: &Columns<'a, K>,
    memory: &Arenas<K>,
    training: &Training<'a>,
    tick: impl Fn() -> Result<()>,
) -> Result<()> {
    let Some(moves) = machine.solve_block(columns, memory, training, tick)? else { return Ok(()) };
    machine.update_gradients(moves, columns, training)?;
    if training.params.shrinking && !columns.are_kept() {
        machine.shrink(columns, training.ctx)?;
    }
    Ok(())
}

/// One block of each of the unfinished machines.
fn round<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    unfinished: &[usize],
    columns: &mut Columns<'a, K>,
    training: &Training<'a>,
    memory: &Arenas<K>,
    worst: f64,
) -> Result<()> {
    let tick = |machines: &[Machine<'_>]| {
        training.ctx.tick(&Progress {
            gap: worst,
            steps: machines.iter().map(|m| m.iterations).sum(),
            ..Progress::new("fit", machines.iter().filter(|m| m.stop.is_some()).count(), machines.len())
        })
    };
    let (done, count) = (machines.iter().filter(|m| m.stop.is_some()).count(), machines.len());
    let mut waiting = unfinished;
    while !waiting.is_empty() {
        tick(machines)?;
        let (group, wanted) = select(waiting, machines, &columns.segments)?;
        waiting = &waiting[group.len()..];
        columns.fetch(&wanted, training.ctx, || tick(machines))?;
        let chosen = machines.iter_mut().enumerate().filter(|(m, _)| group.contains(m));
        let mut group: Vec<&mut Machine<'a>> = chosen.map(|(_, machine)| machine).try_collect_vec()?;
        let columns = &*columns;
        let tick = || training.ctx.check("fit", done, count);
        training.ctx.try_for_each_chunk(&mut group, 1, |_, machine| {
            // The machines before it may have taken long.
            tick()?;
            advance(machine[0], columns, memory, training, tick)
        })?;
    }
    Ok(())
}

/// As many of the waiting machines as the caches can serve at once, at least one, with their blocks chosen, and the
/// positions whose rows each segment must hold.
fn select<'w, K: KernelValue>(
    waiting: &'w [usize],
    machines: &mut [Machine<'_>],
    segments: &[Segment<'_, K>],
) -> Result<(&'w [usize], Vec<Vec<usize>>)> {
    let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); segments.len()]; // small: one list per class
    let mut count = 0;
    for &m in waiting {
        let machine = &mut machines[m];
        let caches = || machine.segments().filter_map(|s| Some((s, segments[s].cache.as_ref()?)));
        let room = caches().map(|(s, cache)| cache.capacity() - wanted[s].len()).min();
        if count > 0 && room.is_some_and(|room| room < machine.set.size) {
            break;
        }
        let cached: Vec<usize> = caches().map(|(s, _)| s).try_collect_vec()?;
        let positions = machine.select_block()?;
        for segment in cached {
            let rows = &mut wanted[segment];
            rows.try_extend(positions.clone())?;
            rows.sort_unstable();
            rows.dedup();
        }
        count += 1;
    }
    Ok((&waiting[..count], wanted))
}
