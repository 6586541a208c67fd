//! Coefficients that a machine continues from: those of an earlier fit or of another precision, with gradients from kernel
//! values, and in few columns those of the interior-point method, with gradients from weights.

use super::super::certificate::Rounding;
use super::super::columns::KernelColumns;
use super::super::few_columns::{FewColumns, unless_memory_is_short};
use super::super::interior_point::{self, InteriorPoint, work_before};
use super::super::precision::KernelValue;
use super::super::stall::StallDetector;
use super::super::training::Training;
use super::Machine;
use crate::context::Context;
use crate::error::Result;
use crate::memory::{TryCollect, try_vec};

impl Machine<'_> {
    /// Sets feasible coefficients and computes their gradients, in a machine that is not shrunk.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which nothing is changed.
    pub(in crate::svm) fn start_at<K: KernelValue>(
        &mut self,
        beta: Vec<f64>,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<()> {
        let used: Vec<usize> = (0..beta.len()).filter(|&v| beta[v] != 0.0).try_collect_vec()?;
        let values: Vec<f64> = used.iter().map(|&v| beta[v]).try_collect_vec()?;
        let outputs = self.outputs((&used, &values), columns, training)?;
        let problem = &mut self.variables.problem;
        for (v, output) in outputs.into_iter().enumerate() {
            problem.gradient[v] = output + problem.linear[v] + problem.ridge[v] * beta[v];
        }
        problem.beta = beta;
        self.kkt = problem.kkt_violation(training.ctx);
        Ok(())
    }

    /// Returns sum k(x, x_v) values_v over some variables for the rows of all, in a machine that is not shrunk.
    pub(in crate::svm) fn outputs<K: KernelValue>(
        &self,
        (variables, values): (&[usize], &[f64]),
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Vec<f64>> {
        let rows = self.rows_of(variables)?;
        let mut outputs = try_vec![0.0; self.problem().len()]?;
        for part in &self.parts {
            let outputs = &mut outputs[part.first..part.first + part.positions.len()];
            let source = &columns.class_blocks[part.class_block].source;
            training.add_product(source, columns.depth(), (&rows, values), outputs)?;
        }
        Ok(outputs)
    }

    /// Returns the work of rounds after which the interior-point method is due, if it applies to the machine.
    pub(super) fn work_before_interior_point(&self, training: &Training<'_>) -> u64 {
        let n = self.parts.iter().map(|part| part.positions.len()).sum();
        match (self.interior_point, FewColumns::count_in(&training.rows, n, training.params.cache_bytes)) {
            (InteriorPoint::Possible, Some(d)) => work_before(n, d).saturating_sub(self.work),
            (InteriorPoint::Due, _) => 0,
            _ => u64::MAX,
        }
    }

    /// Returns whether the rounds have cost as much as the interior-point method would; it is due until it has run.
    #[must_use]
    pub(in crate::svm) fn needs_interior_point(&mut self, training: &Training<'_>) -> bool {
        if self.work_before_interior_point(training) == 0 {
            self.interior_point = InteriorPoint::Due;
        }
        self.interior_point == InteriorPoint::Due
    }

    /// Continues from the solution of the interior-point method, if it has found a better one, in a machine that is not shrunk.
    /// Returns the maximum rounding error of its outputs; 0 without a solution.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which the machine has the coefficients from before.
    pub(in crate::svm) fn run_interior_point(&mut self, training: &Training<'_>) -> Result<f64> {
        self.interior_point = InteriorPoint::Done;
        let Some(rows) = self.in_few_columns(training)? else { return Ok(0.0) };
        let solution = unless_memory_is_short(interior_point::solve(self.problem(), &rows, training.ctx))?;
        let Some(solution) = solution else { return Ok(0.0) };
        let rounding = self.start_by_weights(solution, &rows, training.ctx)?;
        self.stall = StallDetector::new();
        Ok(rounding.output)
    }

    /// Returns the rows of all variables in few columns, if these give the kernel values.
    pub(super) fn in_few_columns(&self, training: &Training<'_>) -> Result<Option<FewColumns>> {
        let (rows, max_bytes) = (&self.variables.rows, training.params.cache_bytes);
        unless_memory_is_short(FewColumns::of(&training.rows, rows, max_bytes, training.ctx))
    }

    /// Sets feasible coefficients and computes their gradients from the weights of few columns, in a machine that is not
    /// shrunk. Returns the maximum rounding errors.
    pub(super) fn start_by_weights(
        &mut self,
        beta: Vec<f64>,
        rows: &FewColumns,
        ctx: Context<'_>,
    ) -> Result<Rounding> {
        let problem = &mut self.variables.problem;
        let before = std::mem::replace(&mut problem.beta, beta);
        let rounding = rows.set_gradients(problem, ctx);
        if rounding.is_err() {
            problem.beta = before;
        }
        self.kkt = problem.kkt_violation(ctx);
        rounding
    }
}
