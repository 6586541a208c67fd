//! A machine: its problem, its working set, its columns, and the steps of a round that concern it alone.
//!
//! The block of the working set is solved, and all gradients are updated by one product f += K(:, changed) changes. If a
//! kernel value is cheap, the product is computed without storing kernel values; otherwise its rows come from a cache.
//! Machines without a cache may shrink (see `shrinking`).
//!
//! Invariant between rounds: gradients are exact for the coefficients (sums in double precision of the same
//! single-precision kernel values), coefficients are feasible.
//!
//! Cost of a round: two scans of the block per SMO step, and (changed coefficients) x (columns) kernel values. A stop within
//! a block keeps the steps made; a stop in a nested block or in the update of the gradients undoes the round.
//!
//! | file | holds |
//! |---|---|
//! | `state`, `outcome` | running, ended, finished: intercept and certificate of a finished machine |
//! | `start` | the coefficients that a machine continues from |
//! | `block` | the solution of the block of its working set |
//! | `update` | the update of coefficients and gradients, stalls, shrinking |
//! | `gap` | whether the gap is small enough |
//! | `finish` | the effect of rounding, the change of precision, the certificate |

mod block;
mod finish;
mod gap;
mod outcome;
mod start;
mod state;
mod update;

use super::active_set::StepBudget;
use super::columns::{ClassBlock, KernelColumns};
use super::interior_point::InteriorPoint;
use super::params::Tuning;
use super::precision::KernelValue;
use super::problem::{DualProblem, KktViolation};
use super::rounding::MeasuredRounding;
use super::shrinking::Variables;
use super::stall::StallDetector;
use super::training::Training;
use super::working_set::WorkingSet;
use crate::cache::RowCache;
use crate::context::{Context, Interruption};
use crate::error::{Error, Result};
use crate::kernels::Precision;
use crate::memory::{self, Reservation};
use state::State;
use std::ops::Range;

pub(super) use state::Outcome;

/// Number of steps per variable after which a block ends, and a machine that gains too little.
const MAX_STEPS_PER_VARIABLE: u64 = 20_000;

/// A machine. Its variables are the positions of its class blocks, one class block after the other; while the machine is
/// shrunk, the active ones among them.
pub(super) struct Machine<'a> {
    variables: Variables<'a>,
    /// Violation of the optimality conditions at the present coefficients.
    pub(super) kkt: KktViolation,
    pub(super) iterations: u64,
    rounds: u64,
    state: State,
    parts: Vec<MachineColumns>,
    pub(super) working_set: WorkingSet,
    tuning: Tuning,
    /// Maximum violation at present: less than `max_tolerance` if that left a large gap.
    pub(super) tolerance: f64,
    /// Maximum violation by the parameters.
    max_tolerance: f64,
    newton_budget: StepBudget,
    stall: StallDetector,
    /// Multiply-adds of the rounds since the start or the last run of the interior-point method.
    work: u64,
    interior_point: InteriorPoint,
    /// Gain in the dual objective for each multiply-add of the last round.
    gain_rate: f64,
    /// The error that one rounding adds to a gradient, as of the last round.
    pub(super) gradient_rounding: f64,
    /// The last error that was measured in single precision; later problems of the same machine may need no measurement.
    measured: Option<MeasuredRounding>,
    /// True if gradients are those of kernel values in double precision.
    is_double: bool,
}

/// The columns of one class block in a machine: variables `first..first + positions.len()`.
struct MachineColumns {
    class_block: usize,
    first: usize,
    positions: Range<usize>,
}

impl Machine<'_> {
    /// Creates a machine over the given class blocks; `is_exact` says that the problem's gradients are those of its
    /// coefficients.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the user interrupts the computation of the gradients, [`Error::Param`] if its time runs out.
    pub(super) fn new<K: KernelValue>(
        problem: DualProblem,
        is_exact: bool,
        class_blocks: &[usize],
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Self> {
        let mut first = 0;
        let parts: Vec<MachineColumns> = class_blocks
            .iter()
            .map(|&class_block| {
                let positions = columns.class_blocks[class_block].positions.clone();
                first += positions.len();
                MachineColumns { class_block, first: first - positions.len(), positions }
            })
            .collect();
        assert_eq!(first, problem.len());
        let rows = parts.iter().flat_map(|part| columns.order[part.positions.clone()].iter().copied());
        let variables = Variables::new(problem, rows.collect());
        let (problem, tuning) = (&variables.problem, training.params.tuning);
        let is_exact = is_exact || problem.beta.iter().all(|b| *b == 0.0);
        let mut machine = Self {
            kkt: problem.kkt_violation(training.ctx),
            iterations: 0,
            rounds: 0,
            state: State::Running,
            working_set: WorkingSet::new(
                tuning.first_block(problem.len()).min(cache_capacity(&parts, columns)),
            ),
            parts,
            tuning,
            tolerance: training.params.tolerance,
            max_tolerance: training.params.tolerance,
            newton_budget: StepBudget::newton(tuning.newton_steps),
            stall: StallDetector::new(),
            work: 0,
            interior_point: InteriorPoint::Possible,
            gain_rate: f64::INFINITY,
            gradient_rounding: 0.0,
            measured: None,
            is_double: K::PRECISION == Precision::Double,
            variables,
        };
        if !is_exact {
            let beta = machine.problem().beta.clone();
            machine.start_at(beta, columns, training).map_err(|error| match error {
                Error::Stopped(Interruption::MaxTime) => {
                    let rule = "long enough for the gradients of the coefficients that the fit starts from";
                    Error::param("max_time", "over before the first round", rule)
                }
                error => error,
            })?;
        }
        Ok(machine)
    }

    /// Replaces the problem by another one of the same variables, whose gradients belong to its coefficients; only for
    /// machines that do not shrink.
    pub(super) fn set_problem(&mut self, problem: DualProblem, ctx: Context<'_>) {
        self.kkt = problem.kkt_violation(ctx);
        self.variables.problem = problem;
        (self.iterations, self.rounds, self.tolerance) = (0, 0, self.max_tolerance);
        (self.work, self.interior_point) = (0, InteriorPoint::Possible);
        self.resume();
    }

    /// Adds the iterations and rounds of a machine whose solution this one starts from.
    pub(super) fn add_work_of(&mut self, other: &Self) {
        self.iterations += other.iterations;
        self.rounds += other.rounds;
    }

    /// Returns the problem: that of the active variables while the machine is shrunk.
    pub(super) fn problem(&self) -> &DualProblem {
        &self.variables.problem
    }

    /// Returns whether variables are set aside.
    pub(super) fn is_shrunk(&self) -> bool {
        self.variables.are_shrunk()
    }

    /// Returns the class blocks of the machine's columns.
    pub(super) fn class_blocks(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.class_block)
    }

    /// Removes kernel rows from the caches: those of the rows of one class block against the columns of another, for pairs
    /// of class blocks that `is_unused` names.
    pub(super) fn forget_rows<K: KernelValue>(
        &self,
        class_blocks: &mut [ClassBlock<'_, K>],
        is_unused: impl Fn(usize, usize) -> bool,
    ) {
        for part in &self.parts {
            let Some(cache) = class_blocks[part.class_block].cache_mut() else { continue };
            for other in &self.parts {
                if other.class_block != part.class_block && is_unused(part.class_block, other.class_block) {
                    cache.forget(other.positions.clone());
                }
            }
        }
    }

    /// Returns the first variable and the positions of each class block.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        self.parts.iter().map(|part| (part.first, part.positions.clone()))
    }

    /// Returns the index of the part that contains a variable of a machine that is not shrunk.
    fn part_of(&self, variable: usize) -> usize {
        self.parts.partition_point(|part| part.first <= variable) - 1
    }

    /// Returns the position of a variable of a machine that is not shrunk.
    fn position(&self, variable: usize) -> usize {
        let part = &self.parts[self.part_of(variable)];
        part.positions.start + variable - part.first
    }

    /// Reserves memory for the vectors of a step, if it is taken for several of `machines` at the same time.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(super) fn reserve_vectors(&self, machines: usize, ctx: Context<'_>) -> Result<Reservation> {
        memory::reserve_part(machines.min(ctx.threads()), self.problem().len())
    }

    /// Returns the training rows of some variables.
    pub(super) fn rows_of(&self, variables: &[usize]) -> Vec<usize> {
        variables.iter().map(|&v| self.variables.rows[v]).collect()
    }

    /// Returns whether the working set has all variables.
    pub(super) fn has_whole_block(&self) -> bool {
        self.working_set.members.len() == self.problem().len()
    }

    /// Selects the next working set.
    pub(super) fn select(&mut self, ctx: Context<'_>) {
        self.working_set.select(&self.variables.problem, &self.kkt.maximal_pairs, ctx);
    }

    /// Returns the positions of the members of the working set, for machines whose kernel rows are cached.
    pub(super) fn selected_positions(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.working_set.members.iter().map(|&v| self.position(v))
    }
}

/// Returns the maximum number of variables of a block whose rows fit the caches.
fn cache_capacity<K: KernelValue>(parts: &[MachineColumns], columns: &KernelColumns<'_, K>) -> usize {
    parts
        .iter()
        .filter_map(|part| columns.class_blocks[part.class_block].cache())
        .map(RowCache::<K>::capacity)
        .min()
        .unwrap_or(usize::MAX)
}
