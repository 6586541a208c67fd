//! Solves the machines of a fit together, in the precision that they need.
//!
//! 1. **Columns**: rows are packed in one order and divided into class blocks (see `columns`).
//! 2. **Starting point**: zero, the coefficients of an earlier fit, or for large machines the solution on a subsample.
//! 3. **Rounds** (see `decomposition`) with kernel values in single precision.
//! 4. **Precision** (see `engine`): machines whose optimum rounding hides continue from their coefficients with values in double
//!    precision (see `rounding`).
//!
//! Certificate and expansion follow from the finished machines (`Machine::outcome`, `classifier`, `single`, `quantile`).
//!
//! Cost: that of the rounds; twice the packing if a machine needs double precision.

use super::columns::{Effort, KernelColumns};
use super::decomposition::Rounds;
use super::engine::{Engine, SinglePrecision};
use super::machine::Machine;
use super::precision::KernelValue;
use super::problem::DualProblem;
use super::start::Start;
use super::training::Training;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory;
use ndarray::ArrayView2;
use std::sync::Arc;

/// The order of the training rows and the parts of it that each machine is fitted to.
pub(super) struct MachineLayout {
    /// Training rows by position.
    pub(super) order: Vec<usize>,
    /// Number of positions of each class block.
    pub(super) sizes: Vec<usize>,
    /// Class blocks of each machine, ascending.
    pub(super) of_machine: Vec<Vec<usize>>,
}

impl MachineLayout {
    /// Returns the layout of `machines` machines, each over all rows of `order`.
    pub(super) fn one_class_block(order: Vec<usize>, machines: usize) -> Self {
        let sizes = vec![order.len()]; // small: one class block
        let of_machine = (0..machines).map(|_| vec![0]).collect(); // small: one class block
        Self { order, sizes, of_machine }
    }

    /// Returns the number of variables of the largest machine.
    pub(super) fn machine_size(&self) -> usize {
        let size = |class_blocks: &Vec<usize>| class_blocks.iter().map(|&b| self.sizes[b]).sum::<usize>();
        self.of_machine.iter().map(size).max().unwrap_or(0)
    }
}

/// Machines that were solved, and the rows that they were solved over.
pub(super) struct Solved<'a> {
    /// The finished machines.
    pub(super) machines: Vec<Machine<'a>>,
    /// Training rows by position.
    pub(super) order: Vec<usize>,
    /// The cost of all machines together.
    pub(super) effort: Effort,
    source: KernelRows<'a>,
}

impl<'a> Solved<'a> {
    fn new<K: KernelValue>(rounds: Rounds<'_, 'a, K>) -> Self {
        let Rounds { machines, columns, earlier_effort, .. } = rounds;
        let effort = earlier_effort.and(columns.effort());
        let (order, source) = columns.into_source();
        Self { machines, order, effort, source }
    }

    /// Returns the kernel values of the rows.
    pub(super) fn source(&self) -> &KernelRows<'a> {
        &self.source
    }

    /// Returns what must be subtracted from the intercepts, (q,): kernel values may be those of rows about a center.
    /// Coefficients (m, q) are those of the listed training rows.
    pub(super) fn intercept_correction(&self, rows: &[usize], coefficients: ArrayView2<'_, f64>) -> Vec<f64> {
        let flat = coefficients.to_slice().expect("a new array is row-major");
        self.source.rows().intercept_correction(rows, flat, coefficients.ncols())
    }
}

/// Solves the machines of a layout, from the coefficients of `start` if it is given.
///
/// `problem(j, rows, diagonal)` builds the dual problem of machine j over some training rows with their K_ii.
///
/// # Errors
/// Returns the errors of `problem`, [`Error::Param`](crate::Error::Param) for a start that does not fit the rows,
/// [`Error::Memory`](crate::Error::Memory).
pub(super) fn fit_machines<'a>(
    training: &Training<'a>,
    layout: MachineLayout,
    start: Option<Start<'_>>,
    problem: impl Fn(usize, &[usize], Vec<f64>) -> DualProblem + Sync,
) -> Result<Solved<'a>> {
    let mut rounds = first_rounds(training, layout, start, problem)?;
    let q = rounds.machines.len();
    let starts_in_double = |machine: &Machine<'_>| {
        let _vectors = machine.reserve_vectors(q, training.ctx)?;
        machine.starts_in_double(&rounds.columns, training)
    };
    let needs_double = start.is_some()
        && training.ctx.try_map(q, |j| starts_in_double(&rounds.machines[j]))?.contains(&true);
    let engine = if needs_double {
        // If rounding hides the optimum of one machine, it nearly hides that of the others.
        Engine::Double(rounds.continue_in_double(|_| true)?)
    } else {
        rounds.start_from_subsamples()?;
        Engine::Single(rounds)
    };
    Ok(match engine.solve()? {
        Engine::Single(rounds) => Solved::new(rounds),
        Engine::Double(rounds) => Solved::new(rounds),
    })
}

/// Returns the machines of a layout at their start, with kernel values in single precision.
fn first_rounds<'t, 'a>(
    training: &'t Training<'a>,
    layout: MachineLayout,
    start: Option<Start<'_>>,
    problem: impl Fn(usize, &[usize], Vec<f64>) -> DualProblem + Sync,
) -> Result<Rounds<'t, 'a, f32>> {
    let (machine_size, q, n) = (layout.machine_size(), layout.of_machine.len(), training.rows.rows.rows());
    let MachineLayout { order, sizes, of_machine } = layout;
    let columns = KernelColumns::<f32>::new(training, training.values(), order, &sizes, machine_size)?;
    let machines = training.ctx.try_map(q, |j| {
        let class_blocks = &of_machine[j];
        let _vectors = memory::reserve_part(
            q.min(training.ctx.threads()),
            class_blocks.iter().map(|&b| sizes[b]).sum(),
        )?;
        let (rows, diagonal) = columns.variables(class_blocks);
        let mut problem = problem(j, &rows, diagonal);
        let mut is_exact = false;
        if let Some(start) = start {
            let beta = start.of_machine(n, j, q, &rows)?;
            problem.project(&beta);
            let products = start.products_of_machine(n, j, q, &rows, &columns)?;
            if let Some(products) = products.filter(|_| problem.beta == beta) {
                problem.set_outputs(&products);
                is_exact = true;
            }
        }
        Machine::new(problem, is_exact, class_blocks, &columns, training)
    })?;
    let (memory, earlier_effort) = (Arc::default(), Effort::default());
    Ok(Rounds { machines, columns, training, memory, earlier_effort })
}

impl<'t, 'a> Rounds<'t, 'a, f32> {
    /// Returns the same machines with kernel values in double precision, where those that need them continue from their
    /// coefficients.
    fn continue_in_double(self, needs_double: impl Fn(&Machine<'a>) -> bool) -> Result<Rounds<'t, 'a, f64>> {
        let Self { mut machines, columns, training, .. } = self;
        let earlier_effort = columns.effort();
        let machine_size = machines.iter().map(|machine| machine.problem().len()).max().unwrap_or(0);
        let columns = columns.in_double(training, machine_size)?;
        for machine in machines.iter_mut().filter(|machine| needs_double(machine)) {
            machine.change_precision(&columns, training)?;
        }
        Ok(Rounds { machines, columns, training, memory: Arc::default(), earlier_effort })
    }
}

impl<'t, 'a> SinglePrecision for Rounds<'t, 'a, f32> {
    type Double = Rounds<'t, 'a, f64>;

    fn needs_double(&mut self) -> Result<bool> {
        Ok(self.machines.iter().any(|machine| machine.needs_double(self.training)))
    }

    fn into_double(self) -> Result<Self::Double> {
        let training = self.training;
        self.continue_in_double(|machine| machine.needs_double(training))
    }
}
