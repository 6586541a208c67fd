//! The large machines of a chain, which are solved in the rounds of the outer tier, all machines of a fit together.
//!
//! Kernel rows are those of the matrix of the search, in which held-out rows are variables that cannot move. Without a matrix, and
//! in double precision, they are computed for the training rows alone.
//!
//! Cost: that of the rounds, reduced by their starting points.

use super::super::columns::{Effort, KernelColumns};
use super::super::decomposition::Rounds;
use super::super::engine::{SinglePrecision, Solve};
use super::super::machine::{Machine, Outcome};
use super::super::precision::KernelValue;
use super::super::problem::DualProblem;
use super::super::training::Training;
use super::chain::{Chain, ChainSolver, ChainValues, nonzero};
use super::work::FoldResult;
use crate::context::StopReason;
use crate::error::{Error, Result};
use crate::kernels::Precision;
use std::sync::Arc;

/// The machines of a chain that are solved in rounds.
pub(super) struct LargeMachines<'c, 'w, K> {
    chain: &'c Chain<'c, 'w>,
    indices: &'c [usize],
    values: Arc<ChainValues<'c, 'w, K>>,
    rounds: Rounds<'c, 'c, K>,
    /// The variables of each machine.
    variables: Vec<MachineVariables>,
    /// Index of the present C.
    k: usize,
}

impl<'c, 'w, K: KernelValue> LargeMachines<'c, 'w, K> {
    /// Returns the machines with the given indices, at zero, with their problems for the k-th C of the chain. Those whose rows have
    /// one label are left out.
    pub(super) fn new(
        chain: &'c Chain<'c, 'w>,
        indices: &'c [usize],
        values: Arc<ChainValues<'c, 'w, K>>,
        training: &'c Training<'c>,
        k: usize,
    ) -> Result<Self> {
        let layout = &chain.work.plan.layout;
        let in_training = training.values();
        let precision = if K::PRECISION == Precision::Double { in_training.in_double() } else { in_training };
        let columns = if let Some(matrix) = values.matrix {
            KernelColumns::of_matrix(training, precision, layout.order.clone(), &layout.sizes, matrix)?
        } else {
            let order = chain.rows_of(&chain.train.iter().flatten().copied().collect::<Vec<_>>());
            let sizes: Vec<usize> = chain.train.iter().map(Vec::len).collect();
            let machine_size = indices.iter().map(|&j| chain.size(j)).max().unwrap_or(0);
            KernelColumns::<K>::new(training, precision, order, &sizes, machine_size)?
        };
        let (mut variables, mut machines) = (Vec::new(), Vec::new());
        for &j in indices {
            let of_machine = MachineVariables::new(j, chain, values.matrix.is_some(), &columns);
            if let Some(problem) = of_machine.problem(chain, k) {
                machines.push(Machine::new(problem, false, &layout.of_machine[j], &columns, training)?);
                variables.push(of_machine);
            }
        }
        let (memory, earlier_effort) = (Arc::clone(&values.memory), Effort::default());
        let rounds = Rounds { machines, columns, training, memory, earlier_effort };
        Ok(Self { chain, indices, values, rounds, variables, k })
    }
}

impl<K: KernelValue> Solve for LargeMachines<'_, '_, K> {
    fn solve(&mut self) -> Result<()> {
        self.rounds.solve()?;
        let mut reasons = self.rounds.machines.iter().filter_map(Machine::reason);
        let interruption = reasons.find_map(StopReason::interruption);
        interruption.map_or(Ok(()), |interruption| Err(Error::Stopped(interruption)))
    }
}

impl<'c, 'w> SinglePrecision for LargeMachines<'c, 'w, f32> {
    type Double = LargeMachines<'c, 'w, f64>;

    fn needs_double(&mut self) -> Result<bool> {
        self.rounds.needs_double()
    }

    /// Returns the machines at their coefficients. Without a matrix they have other variables, of the same rows.
    fn into_double(self) -> Result<Self::Double> {
        let Self { chain, indices, values, rounds: Rounds { training, machines, .. }, variables, k } = self;
        let coefficients_of = |(machine, of_machine): (&Machine<'_>, &MachineVariables)| {
            nonzero(&machine.restart_coefficients(), &of_machine.rows)
        };
        let solved: Vec<_> = machines.iter().zip(&variables).map(coefficients_of).collect();
        drop(machines);
        let values = Arc::new(chain.values_in_double(&values.source)?);
        let mut double = LargeMachines::new(chain, indices, values, training, k)?;
        let LargeMachines { rounds: Rounds { machines, columns, .. }, variables, .. } = &mut double;
        let mut by_row = vec![0.0; chain.work.plan.layout.order.len()];
        for ((machine, of_machine), (used, coefficients)) in machines.iter_mut().zip(variables).zip(&solved) {
            by_row.fill(0.0);
            used.iter().zip(coefficients).for_each(|(&row, &b)| by_row[row] = b);
            let beta = of_machine.rows.iter().map(|&row| by_row[row]).collect();
            machine.start_at(beta, columns, training)?;
        }
        Ok(double)
    }
}

impl<K: KernelValue> ChainSolver for LargeMachines<'_, '_, K> {
    fn set_cost(&mut self, k: usize) -> Result<()> {
        if k == self.k {
            return Ok(());
        }
        self.k = k;
        let Rounds { machines, training, .. } = &mut self.rounds;
        for (machine, variables) in machines.iter_mut().zip(&self.variables) {
            let is_solved =
                machine.reason() == Some(StopReason::Converged) && machine.problem().is_solved_for_larger_c();
            if !is_solved && let Some(mut problem) = variables.problem(self.chain, k) {
                problem.start_from_smaller_c(machine.problem(), self.chain.ratio(k));
                machine.set_problem(problem, training.ctx);
            }
        }
        Ok(())
    }

    fn results(&mut self, seconds: f64) -> Result<Vec<(usize, FoldResult)>> {
        let Rounds { machines, training, .. } = &self.rounds;
        let results = machines.iter().zip(&self.variables).map(|(machine, variables)| {
            let &Outcome { intercept, certificate, .. } = machine.outcome()?;
            let (used, coefficients) = nonzero(&machine.problem().beta, &variables.rows);
            let result = FoldResult {
                outputs: self.values.held_out.outputs(&used, &coefficients, intercept, training.ctx)?,
                seconds: seconds / machines.len() as f64,
                iterations: certificate.iterations,
                support: certificate.support,
                stop: certificate.stop,
            };
            Ok((variables.machine, result))
        });
        results.collect()
    }
}

/// The variables of a machine that is solved in rounds.
struct MachineVariables {
    machine: usize,
    /// Rows of all variables.
    rows: Vec<usize>,
    /// K_ii of all variables.
    diagonal: Vec<f64>,
    /// Variables that are training rows; the others cannot move.
    trained: Vec<usize>,
}

impl MachineVariables {
    /// Returns the variables of a machine: the positions of its class blocks, all of which are training rows unless
    /// `has_held_out`.
    fn new<K: KernelValue>(
        machine: usize,
        chain: &Chain<'_, '_>,
        has_held_out: bool,
        columns: &KernelColumns<'_, K>,
    ) -> Self {
        let (rows, diagonal) = columns.variables(&chain.work.plan.layout.of_machine[machine]);
        let is_trained = |&v: &usize| !has_held_out || chain.weights[rows[v]] > 0.0;
        let trained = (0..rows.len()).filter(is_trained).collect();
        Self { machine, rows, diagonal, trained }
    }

    /// Returns the problem for the k-th C of the chain; `None` if the training rows have one label.
    fn problem(&self, chain: &Chain<'_, '_>, k: usize) -> Option<DualProblem> {
        let rows: Vec<usize> = self.trained.iter().map(|&v| self.rows[v]).collect();
        let diagonal: Vec<f64> = self.trained.iter().map(|&v| self.diagonal[v]).collect();
        let problem = chain.problem(self.machine, k, &rows, &diagonal)?;
        let has_held_out = self.trained.len() < self.rows.len();
        Some(if has_held_out { problem.embedded(&self.trained, self.diagonal.clone()) } else { problem })
    }
}
