//! Solves the machines of a task together, in the precision that they need.
//!
//! 1. **Columns**: rows are packed in one order and divided into class blocks (see `columns`).
//! 2. **Starting point**: zero, the coefficients of an earlier fit, or for large machines the solution on a subsample.
//! 3. **Rounds** (see `decomposition`) with kernel values in single precision.
//! 4. **Precision**: machines whose optimum rounding hides continue with values in double precision (see `rounding`).
//!
//! Certificate and expansion follow from the solved machines (`Machine::outcome`, `classifier`, `single`, `quantile`).
//!
//! Cost: that of the rounds; twice the packing if a machine needs double precision.

use super::columns::{Effort, KernelColumns};
use super::decomposition::solve;
use super::machine::Machine;
use super::precision::KernelValue;
use super::problem::DualProblem;
use super::start::Start;
use super::subsample_start;
use super::training::Training;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{Arenas, TryCollect, try_vec};
use ndarray::ArrayView2;

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
    pub(super) fn one_class_block(order: Vec<usize>, machines: usize) -> Result<Self> {
        let sizes = vec![order.len()]; // small: one class block
        let of_machine = (0..machines).map(|_| vec![0]).try_collect_vec()?; // small: one class block
        Ok(Self { order, sizes, of_machine })
    }

    /// Returns the number of variables of the largest machine.
    pub(super) fn machine_size(&self) -> usize {
        let size = |class_blocks: &Vec<usize>| class_blocks.iter().map(|&b| self.sizes[b]).sum::<usize>();
        self.of_machine.iter().map(size).max().unwrap_or(self.order.len())
    }
}

/// Machines that were solved, and the rows that they were solved over.
pub(super) struct Solved<'a> {
    pub(super) machines: Vec<Machine<'a>>,
    /// Training rows by position.
    pub(super) order: Vec<usize>,
    /// The cost of all machines together.
    pub(super) effort: Effort,
    source: KernelRows<'a>,
}

impl<'a> Solved<'a> {
    fn new<K: KernelValue>(
        machines: Vec<Machine<'a>>,
        columns: KernelColumns<'a, K>,
        before: Effort,
    ) -> Self {
        let effort = before.and(columns.effort());
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
    problem: impl Fn(usize, &[usize], Vec<f64>) -> Result<DualProblem> + Sync,
) -> Result<Solved<'a>> {
    let (machine_size, q, n) = (layout.machine_size(), layout.of_machine.len(), training.rows.rows.rows());
    let MachineLayout { order, sizes, of_machine } = layout;
    let mut columns = KernelColumns::<f32>::new(training, training.values(), order, &sizes, machine_size)?;
    let mut machines = training.ctx.try_map(q, |j| {
        let class_blocks = &of_machine[j];
        let positions = || class_blocks.iter().flat_map(|&b| columns.class_blocks[b].positions.clone());
        let rows: Vec<usize> = positions().map(|position| columns.order[position]).try_collect_vec()?;
        let diagonal = positions().map(|position| columns.diagonal[position]).try_collect_vec()?;
        let mut problem = problem(j, &rows, diagonal)?;
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
    let mut needs_double = try_vec![false; q]?;
    if start.is_some() {
        needs_double = training.ctx.try_map(q, |j| machines[j].starts_in_double(&columns, training))?;
    }
    if needs_double.contains(&true) {
        // If rounding hides the optimum of one machine, it nearly hides that of the others.
        needs_double.fill(true);
    } else {
        let memory = Arenas::default();
        for machine in &mut machines {
            start_from_subsamples(machine, &columns, training, &memory)?;
        }
        solve(&mut machines, &mut columns, training, &memory)?;
        needs_double = machines.iter().map(|machine| machine.needs_double(training)).try_collect_vec()?;
        if !needs_double.contains(&true) {
            return Ok(Solved::new(machines, columns, Effort::default()));
        }
    }
    let effort = columns.effort();
    let mut columns = columns.in_double(training, &sizes, machine_size)?;
    for (machine, _) in machines.iter_mut().zip(&needs_double).filter(|(_, is_needed)| **is_needed) {
        machine.change_precision(&columns, training)?;
    }
    solve(&mut machines, &mut columns, training, &Arenas::default())?;
    Ok(Solved::new(machines, columns, effort))
}

/// Solves the subsamples of a large machine from the smallest to the largest, each started from the one before, and starts
/// the machine from the last.
fn start_from_subsamples<'a>(
    machine: &mut Machine<'a>,
    columns: &KernelColumns<'a, f32>,
    training: &Training<'a>,
    memory: &Arenas,
) -> Result<()> {
    let mut levels = subsample_start::levels(machine, columns, training)?;
    while let Some(mut level) = levels.pop() {
        solve(std::slice::from_mut(&mut level.machine), &mut level.columns, training, memory)?;
        let is_started = if let Some(larger) = levels.last_mut() {
            larger.machine.add_work_of(&level.machine);
            level.start(&mut larger.machine, &larger.columns, training)?
        } else {
            machine.add_work_of(&level.machine);
            level.start(machine, columns, training)?
        };
        if !is_started {
            if !levels.is_empty() {
                machine.add_work_of(&level.machine);
            }
            break;
        }
    }
    Ok(())
}
