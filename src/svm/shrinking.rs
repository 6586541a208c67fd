//! Shrinking (thesis 2.4.2): a machine sets variables aside that no pair can move at present, those at a bound that are
//! pulled towards it by more than the whole violation, and takes them back when the others are settled.
//!
//! Kernel values are then computed against the active variables only. Taking the others back costs one product, with the
//! columns packed anew, so it is worth it when more than a seventh leaves. It may be done several times, one in another.
//!
//! Invariant: gradients of the active variables are exact; those of the others are as they were when they left, and exact
//! again when they are back. Only a stop that leaves no time for the product takes them back with the gradients they
//! left with: the model keeps its coefficients, and its certificate the bounds that hold for them without those gradients
//! (see [`Variables::settle`]).

use super::problem::{DualProblem, Survey};
use super::training::Training;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{TryCollect, TryGrow, try_vec};

/// Share of the variables that must stay for a machine to shrink no further.
const WORTH_SHRINKING: f64 = 0.85;

/// The variables of a machine: all of them, or while it is shrunk the active ones.
pub(super) struct Variables<'a> {
    pub(super) problem: DualProblem,
    /// Training row of each variable.
    pub(super) rows: Vec<usize>,
    /// Kernel values against the active variables of a shrunk machine.
    pub(super) source: Option<KernelRows<'a>>,
    /// What there was before variables were set aside, once for every time.
    outer: Vec<Outer<'a>>,
}

/// The variables before some of them were set aside.
struct Outer<'a> {
    problem: DualProblem,
    rows: Vec<usize>,
    source: Option<KernelRows<'a>>,
    /// Which of them stayed, rising.
    active: Vec<usize>,
}

impl<'a> Variables<'a> {
    /// All variables.
    pub(super) fn new(problem: DualProblem, rows: Vec<usize>) -> Self {
        Self { problem, rows, source: None, outer: Vec::new() }
    }

    /// Sets variables aside where it is worth it; the new number of each variable that stays. `all` gives kernel values
    /// against all of them.
    pub(super) fn shrink(
        &mut self,
        survey: &Survey,
        all: &KernelRows<'a>,
        ctx: Context<'_>,
    ) -> Result<Option<Vec<Option<usize>>>> {
        let problem = &self.problem;
        let active: Vec<usize> = (0..problem.len())
            .filter(|&i| {
                let (up, low) = survey.extremes[usize::from(problem.group[i])];
                problem.rise(i) <= low || problem.fall(i) >= up
            })
            .try_collect_vec()?;
        if active.len() as f64 > WORTH_SHRINKING * problem.len() as f64 {
            return Ok(None);
        }
        let rows: Vec<usize> = active.iter().map(|&v| self.rows[v]).try_collect_vec()?;
        let mut number = try_vec![None; problem.len()]?;
        for (k, &v) in active.iter().enumerate() {
            number[v] = Some(k);
        }
        let source = all.with_columns(&rows, ctx)?;
        let small = problem.select(&active)?;
        self.outer.push(Outer {
            problem: std::mem::replace(&mut self.problem, small),
            source: self.source.replace(source),
            rows: std::mem::replace(&mut self.rows, rows),
            active,
        });
        Ok(Some(number))
    }

    /// Undoes the last shrinking, with exact gradients; the old numbers of the active variables, if there was one.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped), after which nothing is changed.
    pub(super) fn unshrink(&mut self, depth: usize, training: &Training<'_>) -> Result<Option<Vec<usize>>> {
        let Some(Outer { problem, rows, active, .. }) = self.outer.last() else {
            return Ok(None);
        };
        let (mut changed, mut changes) = (Vec::new(), Vec::new());
        let mut inactive = try_vec![true; problem.len()]?;
        for (k, &v) in active.iter().enumerate() {
            inactive[v] = false;
            let change = self.problem.beta[k] - problem.beta[v];
            if change != 0.0 {
                changed.try_push(rows[v])?;
                changes.try_push(change)?;
            }
        }
        let inactive: Vec<usize> = (0..problem.len()).filter(|&v| inactive[v]).try_collect_vec()?;
        let mut missing = try_vec![0.0; inactive.len()]?;
        if let Some(small) = &self.source {
            let columns: Vec<usize> = inactive.iter().map(|&v| rows[v]).try_collect_vec()?;
            let source = small.with_columns(&columns, training.ctx)?;
            training.add_product(&source, depth, (&changed, &changes), &mut missing)?;
        }
        let active = self.merge();
        for (&v, change) in inactive.iter().zip(missing) {
            self.problem.gradient[v] += change;
        }
        Ok(active)
    }

    /// Takes all variables back without their gradients. Returns the problem as it was when the first of them left, whose
    /// gradients are exact, and what the dual objective has gained since: every change is one of variables that were
    /// active, so the gradients of these before and after give it exactly.
    pub(super) fn settle(&mut self) -> Result<Option<(DualProblem, f64)>> {
        let Some(first) = self.outer.first() else { return Ok(None) };
        let before = first.problem.select(&(0..first.problem.len()).try_collect_vec()?)?;
        let mut gain = 0.0;
        for (level, Outer { problem, active, .. }) in self.outer.iter().enumerate() {
            let inner = self.outer.get(level + 1).map_or(&self.problem, |next| &next.problem);
            for (k, &v) in active.iter().enumerate() {
                let (from, to) = (problem.beta[v], inner.beta[k]);
                gain -= 0.5 * (to - from) * (inner.gradient[k] + problem.gradient[v]);
                gain -= problem.kink * (to.abs() - from.abs());
            }
        }
        while self.merge().is_some() {}
        Ok(Some((before, gain)))
    }

    /// The variables of the last shrinking with what the active ones have come to; the latter's old numbers.
    fn merge(&mut self) -> Option<Vec<usize>> {
        let Outer { mut problem, rows, source, active } = self.outer.pop()?;
        for (k, &v) in active.iter().enumerate() {
            problem.beta[v] = self.problem.beta[k];
            problem.gradient[v] = self.problem.gradient[k];
        }
        (self.problem, self.rows, self.source) = (problem, rows, source);
        Some(active)
    }
}
