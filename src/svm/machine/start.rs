//! Coefficients that a machine continues from: those of an earlier fit or of another precision, with gradients from kernel
//! values, and those of the interior-point method, in few columns with gradients from weights.

use super::super::certificate::Rounding;
use super::super::columns::KernelColumns;
use super::super::few_columns::{FewColumns, unless_memory_is_short};
use super::super::interior_point::{self, InteriorPoint, MAX_FACTORED, work_before, work_before_factor};
use super::super::precision::KernelValue;
use super::super::problem::DualProblem;
use super::super::stall::StallDetector;
use super::super::training::Training;
use super::Machine;
use crate::context::Context;
use crate::error::Result;
use crate::memory::try_with_capacity;

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
        let used: Vec<usize> = (0..beta.len()).filter(|&v| beta[v] != 0.0).collect();
        let values: Vec<f64> = used.iter().map(|&v| beta[v]).collect();
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
        let rows = self.rows_of(variables);
        let mut outputs = vec![0.0; self.problem().len()];
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
        let work = match self.interior_point {
            InteriorPoint::Possible => {
                let columns = FewColumns::count_in(&training.rows, n, training.params.cache_bytes);
                let factored = (n <= MAX_FACTORED).then(|| work_before_factor(n));
                columns.map(|d| work_before(n, d)).or(factored)
            }
            InteriorPoint::Due => Some(0),
            InteriorPoint::Done | InteriorPoint::Impossible => None,
        };
        work.map_or(u64::MAX, |work| work.saturating_sub(self.work))
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
    /// Returns the maximum rounding error of its outputs; 0 without a solution, and where kernel values verify it.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which the machine has the coefficients from before.
    pub(in crate::svm) fn run_interior_point<K: KernelValue>(
        &mut self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<f64> {
        self.interior_point = InteriorPoint::Done;
        let solve = |problem: &DualProblem, rows: &FewColumns| {
            unless_memory_is_short(interior_point::solve(problem, rows, training.ctx))
        };
        let mut output_error = 0.0;
        if let Some(rows) = self.in_few_columns(training)? {
            let Some(solution) = solve(self.problem(), &rows)? else { return Ok(0.0) };
            output_error = self.start_by_weights(solution, &rows, training.ctx).output;
        } else {
            let factor = unless_memory_is_short(self.factored(columns, training))?;
            let Some(factor) = factor else {
                self.interior_point = InteriorPoint::Impossible;
                return Ok(0.0);
            };
            let Some(solution) = solve(self.problem(), &factor)? else { return Ok(0.0) };
            let (beta, gradient) = (self.problem().beta.clone(), self.problem().gradient.clone());
            let objective = self.problem().objective();
            self.start_at(solution, columns, training)?;
            if !(self.problem().objective() < objective) {
                let problem = &mut self.variables.problem;
                (problem.beta, problem.gradient) = (beta, gradient);
                self.kkt = problem.kkt_violation(training.ctx);
            }
        }
        self.stall = StallDetector::new();
        Ok(output_error)
    }

    /// Returns the factor of the kernel values of all variables, if they have one of few columns.
    fn factored<K: KernelValue>(
        &self,
        columns: &KernelColumns<'_, K>,
        training: &Training<'_>,
    ) -> Result<Option<FewColumns>> {
        let n = self.problem().len();
        if n > MAX_FACTORED {
            return Ok(None);
        }
        let mut values = try_with_capacity("kernel values of a factor", n * n)?;
        for v in 0..n {
            values.extend(self.outputs((&[v], &[1.0]), columns, training)?);
        }
        FewColumns::of_values(&values, n, training.ctx)
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
    ) -> Rounding {
        let problem = &mut self.variables.problem;
        problem.beta = beta;
        let rounding = rows.set_gradients(problem, ctx);
        self.kkt = problem.kkt_violation(ctx);
        rounding
    }
}
