//! Shrinking (Rifkin 2002, 2.4.2): a machine sets variables aside that no pair can move at present, those at a bound whose
//! derivative is beyond the maximal violating pair, and takes them back when the others are solved.
//!
//! Kernel values are then computed against the active variables only. Taking the others back costs one product and packing
//! their columns again, so variables are set aside only if they are more than a seventh. Shrinking may be nested.
//!
//! Invariant: gradients of the active variables are exact; those of the others are unchanged until they are taken back, and
//! exact again then. Only a stop that leaves no time for the product takes them back with old gradients: the model keeps its
//! coefficients, and its certificate the bounds that hold without those gradients (see
//! [`Variables::restore_without_gradients`]).

use super::problem::{DualProblem, KktViolation};
use super::training::Training;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;

/// Maximum share of active variables at which a machine shrinks.
const MAX_ACTIVE_SHARE: f64 = 0.85;

/// The variables of a machine: all of them, or the active ones while it is shrunk.
pub(super) struct Variables<'a> {
    pub(super) problem: DualProblem,
    /// Training row of each variable.
    pub(super) rows: Vec<usize>,
    /// Kernel values against the active variables of a shrunk machine.
    pub(super) source: Option<KernelRows<'a>>,
    /// The variables before each shrinking, the first one first.
    outer: Vec<Unshrunk<'a>>,
}

/// The variables before some of them were set aside.
struct Unshrunk<'a> {
    problem: DualProblem,
    rows: Vec<usize>,
    source: Option<KernelRows<'a>>,
    /// The ones that remained active, ascending.
    active: Vec<usize>,
}

impl<'a> Variables<'a> {
    /// Returns the variables of a machine that is not shrunk.
    pub(super) fn new(problem: DualProblem, rows: Vec<usize>) -> Self {
        Self { problem, rows, source: None, outer: Vec::new() }
    }

    /// Sets variables aside if they are enough; returns the new number of each variable that remains active. `all` gives
    /// kernel values against all variables.
    pub(super) fn shrink(
        &mut self,
        kkt: &KktViolation,
        all: &KernelRows<'a>,
        ctx: Context<'_>,
    ) -> Result<Option<Vec<Option<usize>>>> {
        let problem = &self.problem;
        let active = problem.filter(ctx, |i| {
            let (up, low) = kkt.maximal_pairs[usize::from(problem.group[i])];
            problem.up_derivative(i) <= low || problem.down_derivative(i) >= up
        });
        if active.len() as f64 > MAX_ACTIVE_SHARE * problem.len() as f64 {
            return Ok(None);
        }
        let rows: Vec<usize> = active.iter().map(|&v| self.rows[v]).collect();
        let mut number = vec![None; problem.len()];
        for (k, &v) in active.iter().enumerate() {
            number[v] = Some(k);
        }
        let source = all.with_columns(&rows, ctx)?;
        let small = problem.select(&active, ctx);
        self.outer.push(Unshrunk {
            problem: std::mem::replace(&mut self.problem, small),
            source: self.source.replace(source),
            rows: std::mem::replace(&mut self.rows, rows),
            active,
        });
        Ok(Some(number))
    }

    /// Undoes the last shrinking, with exact gradients; returns the old numbers of the active variables, if there was one.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped), after which nothing is changed.
    pub(super) fn unshrink(&mut self, depth: usize, training: &Training<'_>) -> Result<Option<Vec<usize>>> {
        let Some(Unshrunk { problem, rows, active, .. }) = self.outer.last() else {
            return Ok(None);
        };
        let (mut changed, mut changes) = (Vec::new(), Vec::new());
        let mut inactive = vec![true; problem.len()];
        for (k, &v) in active.iter().enumerate() {
            inactive[v] = false;
            let change = self.problem.beta[k] - problem.beta[v];
            if change != 0.0 {
                changed.push(rows[v]);
                changes.push(change);
            }
        }
        let inactive: Vec<usize> = (0..problem.len()).filter(|&v| inactive[v]).collect();
        let mut missing = vec![0.0; inactive.len()];
        if let Some(small) = &self.source {
            let columns: Vec<usize> = inactive.iter().map(|&v| rows[v]).collect();
            let source = small.with_columns(&columns, training.ctx)?;
            training.add_product(&source, depth, (&changed, &changes), &mut missing)?;
        }
        let active = self.merge();
        for (&v, change) in inactive.iter().zip(missing) {
            self.problem.gradient[v] += change;
        }
        Ok(active)
    }

    /// Returns whether variables are set aside.
    pub(super) fn are_shrunk(&self) -> bool {
        !self.outer.is_empty()
    }

    /// Takes all variables back without their gradients. Returns the problem before the first shrinking, whose gradients are
    /// exact, and the gain in the dual objective since then: only active variables have changed, so their gradients before
    /// and after give it exactly.
    pub(super) fn restore_without_gradients(&mut self) -> (DualProblem, f64) {
        let first = self.outer.first().map_or(&self.problem, |first| &first.problem);
        let before = first.select(&(0..first.len()).collect::<Vec<_>>(), Context::SEQUENTIAL);
        let mut gain = 0.0;
        for (level, Unshrunk { problem, active, .. }) in self.outer.iter().enumerate() {
            let inner = self.outer.get(level + 1).map_or(&self.problem, |next| &next.problem);
            for (k, &v) in active.iter().enumerate() {
                let (from, to) = (problem.beta[v], inner.beta[k]);
                gain -= 0.5 * (to - from) * (inner.gradient[k] + problem.gradient[v]);
                gain -= problem.epsilon * (to.abs() - from.abs());
            }
        }
        while self.merge().is_some() {}
        (before, gain)
    }

    /// Takes back the variables of the last shrinking, with the new values of the active ones; returns their old numbers.
    fn merge(&mut self) -> Option<Vec<usize>> {
        let Unshrunk { mut problem, rows, source, active } = self.outer.pop()?;
        for (k, &v) in active.iter().enumerate() {
            problem.beta[v] = self.problem.beta[k];
            problem.gradient[v] = self.problem.gradient[k];
        }
        (self.problem, self.rows, self.source) = (problem, rows, source);
        Some(active)
    }
}
