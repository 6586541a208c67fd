//! The outer tier (Osuna, Freund, Girosi 1997; Rifkin 2002, 2.4): blocks of the largest violators, solved in the inner tier.
//!
//! A round has five steps:
//!
//! 1. **check**: machines whose violation is within the tolerance end;
//! 2. **select**: every other machine selects its working set;
//! 3. **fetch**: the kernel rows that any of the working sets lacks are computed once;
//! 4. **solve**: the blocks are solved, machines in parallel;
//! 5. **update**: the changes of a block's coefficients update all gradients of its machine.
//!
//! Machines that share training rows make their rounds together. Columns are divided into *class blocks*, so that the row
//! of x against its own class serves every machine of that class. If the caches are too small for the blocks of all
//! machines, steps 3 to 5 are done for one group of machines after another. If kernel values are not stored, nothing is
//! shared, and many machines are solved independently of each other.
//!
//! A stop leaves usable machines: coefficients are feasible, and gradients exact except for variables that were set aside
//! and that there was no time to restore (see `shrinking`).

use super::columns::{ClassBlock, Effort, KernelColumns};
use super::engine::Solve;
use super::machine::Machine;
use super::precision::{KernelValue, exceeds_single_precision};
use super::sharing::SharedBlocks;
use super::stall::NEGLIGIBLE_ROUNDINGS;
use super::training::Training;
use crate::context::{MAX_THREADS_AWAKE, Progress, StopReason};
use crate::error::Result;
use crate::kernels::Precision;
use crate::memory::Arenas;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of times that gradients are recomputed in double precision and rounds continue from them.
const MAX_GRADIENT_REFRESHES: usize = 3;
/// Number of machines per thread from which on each machine is solved on one thread.
const MIN_MACHINES_PER_THREAD: usize = 4;

/// Machines that make their rounds together, with kernel values of one precision.
pub(super) struct Rounds<'t, 'a, K> {
    pub(super) machines: Vec<Machine<'a>>,
    pub(super) columns: KernelColumns<'a, K>,
    pub(super) training: &'t Training<'a>,
    /// Memory of the blocks.
    pub(super) memory: Arc<Arenas<K>>,
    /// The cost of the same machines in another precision, before.
    pub(super) earlier_effort: Effort,
}

impl<K: KernelValue> Solve for Rounds<'_, '_, K> {
    /// Makes rounds until every machine is solved to the tolerance, or the monitor or `max_iterations` (SMO steps of a machine)
    /// stops it. In double precision gradients are recomputed at the end, and rounds continue if that shows a violation.
    fn solve(&mut self) -> Result<()> {
        let Self { machines, columns, training, memory, .. } = self;
        for refreshes_left in (0..=MAX_GRADIENT_REFRESHES).rev() {
            if !columns.are_stored() && machines.len() >= MIN_MACHINES_PER_THREAD * training.ctx.threads() {
                solve_independently(machines, columns, training, memory)?;
            } else {
                solve_together(machines, columns, training, memory)?;
            }
            for machine in machines.iter_mut() {
                machine.refresh(refreshes_left > 0, columns, training)?;
            }
            if !machines.iter().any(Machine::is_running) {
                break;
            }
        }
        Ok(())
    }
}

/// Makes rounds of all machines together.
fn solve_together<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    columns: &mut KernelColumns<'a, K>,
    training: &Training<'a>,
    memory: &Arenas<K>,
) -> Result<()> {
    let mut shared = SharedBlocks::new(machines, columns.class_blocks.len())?;
    // Machines of which no two have the same two class blocks share few rows: solved a few at a time, they need few rows
    // at once, whose memory is used again.
    let max_running = if columns.class_blocks.len() > 1 && columns.are_stored() && !shared.has_shared_pair() {
        4.max(2 * training.ctx.threads())
    } else {
        usize::MAX
    };
    loop {
        let checked = check_all(machines, &mut shared, columns, training);
        let running: Vec<usize> =
            (0..machines.len()).filter(|&m| machines[m].is_running()).take(max_running).collect();
        if running.is_empty() {
            break;
        }
        // Between the parallel loops of a round there are SMO steps of some hundred microseconds.
        let ended = training.ctx.with_threads_awake(MAX_THREADS_AWAKE, || {
            checked.and_then(|()| round(machines, &running, columns, training, memory))
        });
        if let Some(reason) = StopReason::from_result(ended)? {
            for machine in machines.iter_mut() {
                machine.end(reason);
            }
        }
    }
    let columns = &*columns;
    finish_all(machines, columns, training)
}

/// Finishes machines that have ended, in parallel.
fn finish_all<K: KernelValue>(
    machines: &mut [Machine<'_>],
    columns: &KernelColumns<'_, K>,
    training: &Training<'_>,
) -> Result<()> {
    let count = machines.len();
    training.ctx.try_for_each_chunk(machines, 1, |_, machine| {
        let _vectors = machine[0].reserve_vectors(count, training.ctx)?;
        machine[0].finish(columns, training)
    })
}

/// Solves machines that share no kernel rows, each from its first round to its last on one thread: its blocks stay in
/// the caches of a processor, and no machine waits for another. A round does not depend on the number of threads.
fn solve_independently<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    columns: &KernelColumns<'a, K>,
    training: &Training<'a>,
    memory: &Arenas<K>,
) -> Result<()> {
    let sequential = Training { ctx: training.ctx.sequential(), ..training.reborrow() };
    let (count, done) = (machines.len(), AtomicUsize::new(0));
    let tick = || training.ctx.check("fit", done.load(Ordering::Relaxed), count);
    let solved = training.ctx.try_for_each_chunk(machines, 1, |_, machine| {
        let machine = &mut machine[0];
        let _vectors = machine.reserve_vectors(count, training.ctx)?;
        while machine.is_running() {
            tick()?;
            check(machine, columns, &sequential)?;
            if machine.is_running() {
                machine.select(sequential.ctx);
                solve_and_update(machine, columns, memory, &sequential, tick)?;
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
        machine.finish(columns, &sequential)
    });
    let Some(reason) = StopReason::from_result(solved)? else { return Ok(()) };
    training.ctx.try_for_each_chunk(machines, 1, |_, machine| {
        let _vectors = machine[0].reserve_vectors(count, training.ctx)?;
        machine[0].end(reason);
        machine[0].finish(columns, &sequential)
    })
}

/// Step 1 for all running machines; kernel rows that only ended machines need are removed.
fn check_all<K: KernelValue>(
    machines: &mut [Machine<'_>],
    shared: &mut SharedBlocks,
    columns: &mut KernelColumns<'_, K>,
    training: &Training<'_>,
) -> Result<()> {
    for machine in machines.iter_mut().filter(|machine| machine.is_running()) {
        check(machine, columns, training)?;
        if machine.reason() == Some(StopReason::Converged) {
            shared.remove(machine);
            machine.forget_rows(&mut columns.class_blocks, |a, b| shared.count(a, b) == 0);
        }
    }
    Ok(())
}

/// Step 1: ends the machine if it is solved or out of steps. A machine that has set variables aside is solved only if, with
/// these restored, the violation is still within the tolerance. If the gap is a large share of the objective there, the
/// machine continues with a smaller tolerance.
fn check<K: KernelValue>(
    machine: &mut Machine<'_>,
    columns: &KernelColumns<'_, K>,
    training: &Training<'_>,
) -> Result<()> {
    // A violation within the rounding of the gradients cannot be reduced.
    let floor = NEGLIGIBLE_ROUNDINGS * machine.gradient_rounding;
    while machine.kkt.largest() <= machine.tolerance.max(floor) && machine.is_shrunk() {
        machine.unshrink(columns, training)?;
    }
    let violation = machine.kkt.largest();
    if let Some(reason) = end_of::<K>(machine, violation, floor, training) {
        machine.end(reason);
    } else if machine.needs_interior_point(training) {
        // Its solution is verified by kernel values in double precision.
        if K::PRECISION == Precision::Double {
            machine.unshrink_all(columns, training)?;
            let rounding = machine.run_interior_point(columns, training)?;
            // Steps whose violation is rounding alone lead nowhere.
            let violation = machine.kkt.largest();
            if violation <= machine.tolerance || violation > rounding {
                return check(machine, columns, training);
            }
        }
        machine.end(StopReason::Stalled);
    } else {
        machine.tighten_tolerance(violation);
    }
    Ok(())
}

/// Returns the reason to end a machine with a violation, if there is one; `floor` is the rounding of its gradients.
fn end_of<K: KernelValue>(
    machine: &Machine<'_>,
    violation: f64,
    floor: f64,
    training: &Training<'_>,
) -> Option<StopReason> {
    let &Training { params, accuracy, .. } = training;
    // If the violation is not a number, the outcome is an error that names the cause.
    if violation.is_nan() {
        Some(StopReason::Stalled)
    } else if violation <= machine.tolerance && machine.has_small_gap(accuracy) {
        Some(StopReason::Converged)
    } else if violation <= floor
        || machine.has_irreducible_gap(violation)
        || machine.has_costly_gap(violation)
    {
        Some(StopReason::Stalled)
    } else if params.max_iterations.is_some_and(|max| machine.iterations >= max) {
        Some(StopReason::MaxIterations)
    } else if exceeds_single_precision::<K>(machine.kkt.squared_norm, machine.max_rounding(accuracy)) {
        Some(StopReason::Stalled)
    } else {
        None
    }
}

/// Steps 2 to 5 for the running machines.
fn round<'a, K: KernelValue>(
    machines: &mut [Machine<'a>],
    running: &[usize],
    columns: &mut KernelColumns<'a, K>,
    training: &Training<'a>,
    memory: &Arenas<K>,
) -> Result<()> {
    let ended = |machines: &[Machine<'_>]| machines.iter().filter(|m| !m.is_running()).count();
    let (done, count) = (ended(machines), machines.len());
    let worst = (machines.iter().filter(|m| m.is_running())).map(|m| m.kkt.largest()).fold(0.0, f64::max);
    let tick = |machines: &[Machine<'_>]| {
        training.ctx.tick(&Progress {
            gap: worst,
            steps: machines.iter().map(|m| m.iterations).sum(),
            ..Progress::new("fit", ended(machines), count)
        })
    };
    let mut selecting = listed(machines, running);
    training.ctx.try_for_each_chunk(&mut selecting, 1, |_, machine| {
        let _vectors = machine[0].reserve_vectors(running.len(), training.ctx)?;
        machine[0].select(training.ctx);
        Ok(())
    })?;
    let mut remaining = running;
    while !remaining.is_empty() {
        tick(machines)?;
        let (group, positions) = next_group(remaining, machines, &columns.class_blocks);
        remaining = &remaining[group.len()..];
        columns.fetch(&positions, training.ctx, || tick(machines))?;
        let mut group = listed(machines, group);
        let columns = &*columns;
        let tick = || training.ctx.check("fit", done, count);
        let group_size = group.len();
        training.ctx.try_for_each_chunk(&mut group, 1, |_, machine| {
            // The machines before this one may have taken long.
            tick()?;
            let _vectors = machine[0].reserve_vectors(group_size, training.ctx)?;
            solve_and_update(machine[0], columns, memory, training, tick)
        })?;
    }
    Ok(())
}

/// Returns the machines with the given numbers, which are ascending.
fn listed<'m, 'a>(machines: &'m mut [Machine<'a>], numbers: &[usize]) -> Vec<&'m mut Machine<'a>> {
    let machines = machines.iter_mut().enumerate();
    machines.filter(|(m, _)| numbers.binary_search(m).is_ok()).map(|(_, machine)| machine).collect()
}

/// Returns the first machines whose working sets the caches can hold at once, at least one, and the positions whose rows
/// each class block must hold.
fn next_group<'w, K: KernelValue>(
    remaining: &'w [usize],
    machines: &[Machine<'_>],
    class_blocks: &[ClassBlock<'_, K>],
) -> (&'w [usize], Vec<Vec<usize>>) {
    let mut positions: Vec<Vec<usize>> = vec![Vec::new(); class_blocks.len()]; // small: one list per class
    let mut count = 0;
    for &m in remaining {
        let machine = &machines[m];
        let caches = || machine.class_blocks().filter_map(|b| Some((b, class_blocks[b].cache()?)));
        let capacity = caches().map(|(b, cache)| cache.capacity() - positions[b].len()).min();
        if count > 0 && capacity.is_some_and(|capacity| capacity < machine.working_set.size) {
            break;
        }
        let cached: Vec<usize> = caches().map(|(b, _)| b).collect();
        for class_block in cached {
            let rows = &mut positions[class_block];
            rows.extend(machine.selected_positions());
            rows.sort_unstable();
            rows.dedup();
        }
        count += 1;
    }
    (&remaining[..count], positions)
}

/// Steps 4 and 5 for one machine.
fn solve_and_update<'a, K: KernelValue>(
    machine: &mut Machine<'a>,
    columns: &KernelColumns<'a, K>,
    memory: &Arenas<K>,
    training: &Training<'a>,
    tick: impl Fn() -> Result<()>,
) -> Result<()> {
    let solution = machine.solve_block(columns, memory, training, tick)?;
    let may_shrink = solution.end.steps > 0
        && training.params.shrinking
        && !columns.are_stored()
        && !machine.has_whole_block();
    machine.update(solution, columns, training)?;
    if may_shrink { machine.shrink(columns, training.ctx) } else { Ok(()) }
}
