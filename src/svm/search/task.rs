//! The machines of a fit, their rows, and their problem for every C.

use super::super::classifier::{self, Classification, ClassifierLoss, check_task};
use super::super::fit::MachineLayout;
use super::super::problem::DualProblem;
use super::super::single::{Regression, RegressionLoss, check_regression};
use super::grid::Fold;
use crate::error::{Error, Result};
use crate::kernels::CoefficientSum;
use crate::multiclass::CodeMatrix;
use std::borrow::Cow;

/// The task that a search fits at every point of its grid; `sample_c` are weights of the rows, which C multiplies. Starts are
/// ignored.
#[derive(Debug, Clone, Copy)]
pub enum SearchTask<'a> {
    /// A classifier.
    Classes(Classification<'a>),
    /// A regression.
    Numbers(Regression<'a>),
}

impl<'a> SearchTask<'a> {
    /// Returns the same task with a shorter lifetime, without starts.
    pub(super) fn reborrow<'b>(&self) -> SearchTask<'b>
    where
        'a: 'b,
    {
        match *self {
            Self::Classes(Classification {
                labels, classes, sample_c, coding, loss, fit_intercept, ..
            }) => {
                let start = None;
                SearchTask::Classes(Classification {
                    labels,
                    classes,
                    sample_c,
                    coding,
                    loss,
                    fit_intercept,
                    start,
                })
            }
            Self::Numbers(Regression { targets, sample_c, loss, .. }) => {
                SearchTask::Numbers(Regression { targets, sample_c, loss, start: None })
            }
        }
    }

    /// Returns whether coefficients sum to zero.
    pub(super) fn sums(&self) -> CoefficientSum {
        match self {
            Self::Classes(task) if !task.fit_intercept => CoefficientSum::Any,
            _ => CoefficientSum::Zero,
        }
    }

    fn weights(&self) -> &[f64] {
        match self {
            Self::Classes(task) => task.sample_c,
            Self::Numbers(task) => task.sample_c,
        }
    }
}

/// The machines of all fits.
pub(super) struct Plan<'a> {
    task: SearchTask<'a>,
    code: Option<Cow<'a, CodeMatrix>>,
    /// All rows of the search.
    pub(super) layout: MachineLayout,
}

impl<'a> Plan<'a> {
    /// Returns the plan for a number of rows.
    ///
    /// # Errors
    /// Returns the errors of a fit to all rows, and [`Error::Param`] for the nu machines, whose parameter is not C.
    pub(super) fn new(task: SearchTask<'a>, rows: usize) -> Result<Self> {
        Error::check_len("upper bounds", rows, task.weights().len())?;
        match task {
            SearchTask::Classes(classes) => {
                if matches!(classes.loss, ClassifierLoss::Nu(_)) {
                    return Err(Error::param("loss", "nu", "one with a C to be searched for"));
                }
                let counts = check_task(rows, &classes)?;
                let code = classes.coding.matrix(classes.classes)?;
                let layout = classifier::layout(&classes, &counts, &code)?;
                Ok(Self { task, code: Some(code), layout })
            }
            SearchTask::Numbers(regression) => {
                if matches!(regression.loss, RegressionLoss::Nu(_)) {
                    return Err(Error::param("loss", "nu", "one with a C to be searched for"));
                }
                check_regression(rows, &regression)?;
                let layout = MachineLayout::one_class_block((0..rows).collect(), 1);
                Ok(Self { task, code: None, layout })
            }
        }
    }

    /// Returns the positions of the training rows of any fold, ascending.
    pub(super) fn trained(&self, folds: &[Fold<'_>]) -> Vec<usize> {
        let mut is_trained = vec![false; self.layout.order.len()];
        folds.iter().flat_map(|fold| fold.train).for_each(|&row| is_trained[row] = true);
        (0..self.layout.order.len()).filter(|&position| is_trained[self.layout.order[position]]).collect()
    }

    /// Returns the C of each row: its weight times `cost`.
    pub(super) fn weights(&self, cost: f64) -> Vec<f64> {
        self.task.weights().iter().map(|w| cost * w).collect()
    }

    /// Returns the problem of a machine over some rows with their C and their K_ii; `None` if they all have one label, or if
    /// there are none.
    pub(super) fn problem(
        &self,
        machine: usize,
        rows: &[usize],
        sample_c: &[f64],
        diagonal: Vec<f64>,
    ) -> Option<DualProblem> {
        match (&self.task, &self.code) {
            (SearchTask::Classes(task), Some(code)) => {
                let problem = classifier::problem(task, code, machine, (rows, sample_c), diagonal);
                let both = problem.upper.iter().any(|u| *u > 0.0) && problem.lower.iter().any(|l| *l < 0.0);
                both.then_some(problem)
            }
            (SearchTask::Numbers(Regression { targets, loss, .. }), _) => {
                let targets: Vec<f64> = rows.iter().map(|&row| targets[row]).collect();
                let problem = match *loss {
                    RegressionLoss::Epsilon(epsilon) => {
                        DualProblem::regression(&targets, sample_c, epsilon, diagonal)
                    }
                    RegressionLoss::Quantile(q) => DualProblem::quantile(&targets, sample_c, q, diagonal),
                    RegressionLoss::Nu(_) => return None,
                };
                (!rows.is_empty()).then_some(problem)
            }
            _ => None,
        }
    }
}
