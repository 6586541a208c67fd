//! Solves the machines of a task together, in the precision that they need.
//!
//! Machines over the same rows share kernel values: rows are put in one order and cut into segments (see `columns`), and
//! each machine sees the segments that it is given. All machines are solved with kernel values in single precision. Those
//! whose optimum rounding hides continue with values in double precision (see `rounding`).
//!
//! Cost: that of the rounds (see `decomposition`); twice the packing where a machine needs double precision.

use super::columns::{Columns, Effort};
use super::decomposition::solve;
use super::machine::Machine;
use super::precision::KernelValue;
use super::problem::DualProblem;
use super::scale;
use super::start::Start;
use super::training::Training;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{TryCollect, try_vec, try_with_capacity};
use ndarray::ArrayView2;

/// The order of the training rows and the parts of it that each machine is fitted to.
pub(super) struct Layout {
    /// Training rows by position.
    pub(super) order: Vec<usize>,
    /// Number of positions of each segment.
    pub(super) sizes: Vec<usize>,
    /// Segments of each machine, rising.
    pub(super) of_machine: Vec<Vec<usize>>,
}

impl Layout {
    /// `machines` machines, each over all rows of `order`.
    pub(super) fn one_segment(order: Vec<usize>, machines: usize) -> Result<Self> {
        let sizes = vec![order.len()]; // small: one segment
        let of_machine = (0..machines).map(|_| vec![0]).try_collect_vec()?; // small: one segment
        Ok(Self { order, sizes, of_machine })
    }

    /// The number of variables of the largest machine.
    fn machine_size(&self) -> usize {
        let size = |segments: &Vec<usize>| segments.iter().map(|&s| self.sizes[s]).sum::<usize>();
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
    fn new<K: KernelValue>(machines: Vec<Machine<'a>>, columns: Columns<'a, K>, before: Effort) -> Self {
        let effort = before.and(columns.effort());
        let (order, source) = columns.into_source();
        Self { machines, order, effort, source }
    }

    /// Returns what intercepts are too large by, (q,): kernel values may be those of rows about a centre. Coefficients
    /// (m, q) are those of the listed training rows.
    pub(super) fn intercept_correction(
        &self,
        rows: &[usize],
        coefficients: ArrayView2<'_, f64>,
    ) -> Result<Vec<f64>> {
        let flat = coefficients.to_slice().expect("a new array is row-major");
        self.source.rows().intercept_correction(rows, flat, coefficients.ncols())
    }
}

/// Solves the machines of a layout, from the coefficients of `start` where it is given.
///
/// `problem(j, rows, diagonal)` builds the dual problem of machine j over some training rows with their K_ii.
///
/// # Errors
/// Those of `problem`, [`Error::Param`](crate::Error::Param) for a start that does not fit the rows,
/// [`Error::Memory`](crate::Error::Memory).
pub(super) fn fit_machines<'a>(
    training: &Training<'a>,
    layout: Layout,
    start: Option<Start<'_>>,
    problem: impl Fn(usize, &[usize], Vec<f64>) -> Result<DualProblem>,
) -> Result<Solved<'a>> {
    let (machine_size, q, n) = (layout.machine_size(), layout.of_machine.len(), training.rows.rows.rows());
    let Layout { order, sizes, of_machine } = layout;
    let mut columns = Columns::<f32>::new(training, training.values(), order, &sizes, machine_size)?;
    let mut machines = try_with_capacity("the machines", q)?;
    for (j, segments) in of_machine.iter().enumerate() {
        let positions = || segments.iter().flat_map(|&s| columns.segments[s].positions.clone());
        let rows: Vec<usize> = positions().map(|position| columns.order[position]).try_collect_vec()?;
        let diagonal = positions().map(|position| columns.diagonal[position]).try_collect_vec()?;
        let mut problem = problem(j, &rows, diagonal)?;
        let mut exact = false;
        if let Some(start) = start {
            let products = start.products_of_machine(n, j, q, &rows, &columns)?;
            exact = problem.start_from(&start.of_machine(n, j, q, &rows)?, products.as_deref());
        }
        machines.push(Machine::new(problem, exact, segments, &columns, training)?);
    }
    let mut in_double = try_vec![false; q]?;
    if start.is_some() {
        for (machine, in_double) in machines.iter().zip(&mut in_double) {
            *in_double = machine.begins_in_double(&columns, training)?;
        }
    }
    if in_double.contains(&true) {
        // What hides the optimum of one machine is not far from hiding that of the others.
        in_double.fill(true);
    } else {
        scale::start(&mut machines, &columns, training)?;
        solve(&mut machines, &mut columns, training)?;
        let tolerance = training.params.tolerance;
        in_double = machines.iter().map(|machine| machine.needs_double(tolerance)).try_collect_vec()?;
        if !in_double.contains(&true) {
            return Ok(Solved::new(machines, columns, Effort::default()));
        }
    }
    let effort = columns.effort();
    let mut columns = columns.in_double(training, &sizes, machine_size)?;
    for (machine, _) in machines.iter_mut().zip(&in_double).filter(|(_, in_double)| **in_double) {
        machine.go_on_with(&columns, training)?;
    }
    solve(&mut machines, &mut columns, training)?;
    Ok(Solved::new(machines, columns, effort))
}
