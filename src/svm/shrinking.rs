//! Shrinking (thesis 2.4.2): a machine sets variables aside that no pair can move at present, those at a bound that are
//! pulled towards it by more than the whole violation, and takes them back when the others are settled.
//!
//! Kernel values are then computed against the active variables only. Taking the others back costs one product, with the
//! columns packed anew, so it is worth it when more than a seventh leaves. It may be done several times, one in another.
//!
//! Invariant: gradients of the active variables are exact; those of the others are as they were when they left, and exact
//! again when they are back.

use super::problem::{DualProblem, Survey};
use crate::control::Par;
use crate::kernels::KernelRows;

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
        par: Par,
    ) -> Option<Vec<Option<usize>>> {
        let problem = &self.problem;
        let active: Vec<usize> = (0..problem.len())
            .filter(|&i| {
                let (up, low) = survey.extremes[usize::from(problem.group[i])];
                problem.rise(i) <= low || problem.fall(i) >= up
            })
            .collect();
        if active.len() as f64 > WORTH_SHRINKING * problem.len() as f64 {
            return None;
        }
        let rows: Vec<usize> = active.iter().map(|&v| self.rows[v]).collect();
        let mut number = vec![None; problem.len()];
        for (k, &v) in active.iter().enumerate() {
            number[v] = Some(k);
        }
        let small = problem.select(&active);
        self.outer.push(Outer {
            problem: std::mem::replace(&mut self.problem, small),
            source: self.source.replace(all.with_columns(&rows, par)),
            rows: std::mem::replace(&mut self.rows, rows),
            active,
        });
        Some(number)
    }

    /// Undoes the last shrinking, with exact gradients; the old numbers of the active variables, if there was one.
    pub(super) fn unshrink(&mut self, par: Par) -> Option<Vec<usize>> {
        let Outer { mut problem, rows, source, active } = self.outer.pop()?;
        let (mut changed, mut changes) = (Vec::new(), Vec::new());
        let mut inactive = vec![true; problem.len()];
        for (k, &v) in active.iter().enumerate() {
            inactive[v] = false;
            let change = self.problem.beta[k] - problem.beta[v];
            if change != 0.0 {
                changed.push(rows[v]);
                changes.push(change);
                problem.beta[v] = self.problem.beta[k];
            }
            problem.gradient[v] = self.problem.gradient[k];
        }
        let inactive: Vec<usize> = (0..problem.len()).filter(|&v| inactive[v]).collect();
        if let Some(small) = &self.source {
            let columns: Vec<usize> = inactive.iter().map(|&v| rows[v]).collect();
            let mut missing = vec![0.0; columns.len()];
            small.with_columns(&columns, par).add_product(&changed, &changes, &mut missing, par);
            for (&v, change) in inactive.iter().zip(missing) {
                problem.gradient[v] += change;
            }
        }
        (self.problem, self.rows, self.source) = (problem, rows, source);
        Some(active)
    }
}
