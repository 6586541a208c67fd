//! What is learned: the machines of a fit, which rows they see, and their problem for every C.

use super::super::classifier::{self, Classification, ClassifierLoss, Segments, by_class, check_task};
use super::super::problem::DualProblem;
use super::super::single::{Regression, RegressionLoss, check_regression};
use super::grid::Fold;
use crate::error::{Error, Result};
use crate::kernels::CoefficientSum;
use crate::memory::{TryCollect, try_vec};
use crate::multiclass::CodeMatrix;
use std::borrow::Cow;

/// What a search fits at every point of its grid; upper bounds are weights of the rows, which C multiplies. Starts are
/// not looked at.
#[derive(Debug, Clone, Copy)]
pub enum SearchTask<'a> {
    /// A classifier.
    Classes(Classification<'a>),
    /// A regression.
    Numbers(Regression<'a>),
}

impl<'a> SearchTask<'a> {
    /// The same for a shorter time, without starts.
    pub(super) fn reborrow<'b>(&self) -> SearchTask<'b>
    where
        'a: 'b,
    {
        match *self {
            Self::Classes(Classification { labels, classes, upper, coding, loss, fit_intercept, .. }) => {
                let start = None;
                SearchTask::Classes(Classification {
                    labels,
                    classes,
                    upper,
                    coding,
                    loss,
                    fit_intercept,
                    start,
                })
            }
            Self::Numbers(Regression { targets, upper, loss, .. }) => {
                SearchTask::Numbers(Regression { targets, upper, loss, start: None })
            }
        }
    }

    /// Whether coefficients sum to zero.
    pub(super) fn sums(&self) -> CoefficientSum {
        match self {
            Self::Classes(task) if !task.fit_intercept => CoefficientSum::Any,
            _ => CoefficientSum::Zero,
        }
    }

    fn weights(&self) -> &[f64] {
        match self {
            Self::Classes(task) => task.upper,
            Self::Numbers(task) => task.upper,
        }
    }
}

/// The machines of every fit.
pub(super) struct Plan<'a> {
    searched: SearchTask<'a>,
    code: Option<Cow<'a, CodeMatrix>>,
    /// Training row at each position; the rows of a segment are consecutive.
    pub(super) order: Vec<usize>,
    /// Positions of each segment.
    pub(super) sizes: Vec<usize>,
    /// Segments of each machine, rising.
    pub(super) of_machine: Vec<Vec<usize>>,
}

impl<'a> Plan<'a> {
    /// The plan for so many rows.
    ///
    /// # Errors
    /// Those of a fit to all rows, and [`Error::Param`] for the nu machines, whose parameter is not C.
    pub(super) fn new(searched: SearchTask<'a>, rows: usize) -> Result<Self> {
        Error::check_len("upper bounds", rows, searched.weights().len())?;
        match searched {
            SearchTask::Classes(task) => {
                if matches!(task.loss, ClassifierLoss::Nu(_)) {
                    return Err(Error::param("loss", "nu", "one with a C to be searched for"));
                }
                let counts = check_task(rows, &task)?;
                let code = task.coding.matrix(task.classes)?;
                let segments = Segments::of(&code)?;
                let order = by_class(task.labels, &counts, &segments)?;
                let size = |of: &Vec<usize>| of.iter().map(|&class| counts[class]).sum();
                let sizes = segments.classes.iter().map(size).try_collect_vec()?;
                let (code, of_machine) = (Some(code), segments.of_machine);
                Ok(Self { searched, code, order, sizes, of_machine })
            }
            SearchTask::Numbers(task) => {
                if matches!(task.loss, RegressionLoss::Nu(_)) {
                    return Err(Error::param("loss", "nu", "one with a C to be searched for"));
                }
                check_regression(rows, &task)?;
                let (order, sizes) = ((0..rows).try_collect_vec()?, vec![rows]);
                let of_machine = vec![vec![0]];
                Ok(Self { searched, code: None, order, sizes, of_machine })
            }
        }
    }

    /// Rows of the classes of the machine that has most.
    pub(super) fn largest(&self) -> usize {
        let rows = |machine: &Vec<usize>| machine.iter().map(|&segment| self.sizes[segment]).sum();
        self.of_machine.iter().map(rows).max().unwrap_or(0)
    }

    /// Positions of the rows that some fold learns from, rising.
    pub(super) fn learned(&self, folds: &[Fold<'_>]) -> Result<Vec<usize>> {
        let mut is_learned = try_vec![false; self.order.len()]?;
        folds.iter().flat_map(|fold| fold.train).for_each(|&row| is_learned[row] = true);
        (0..self.order.len()).filter(|&position| is_learned[self.order[position]]).try_collect_vec()
    }

    /// The rows' upper bounds for a C, where a fold has none of its own.
    pub(super) fn weights(&self, cost: f64) -> Result<Vec<f64>> {
        self.searched.weights().iter().map(|w| cost * w).try_collect_vec()
    }

    /// The problem of a machine over some rows with their upper bounds, and their K_ii; `None` where they are all on one
    /// side, or there are none.
    pub(super) fn problem(
        &self,
        machine: usize,
        rows: &[usize],
        upper: &[f64],
        diagonal: Vec<f64>,
    ) -> Result<Option<DualProblem>> {
        match (&self.searched, &self.code) {
            (SearchTask::Classes(task), Some(code)) => {
                let problem = classifier::problem(task, code, machine, (rows, upper), diagonal)?;
                let both = problem.upper.iter().any(|u| *u > 0.0) && problem.lower.iter().any(|l| *l < 0.0);
                Ok(both.then_some(problem))
            }
            (SearchTask::Numbers(Regression { targets, loss, .. }), _) => {
                let targets: Vec<f64> = rows.iter().map(|&row| targets[row]).try_collect_vec()?;
                let problem = match *loss {
                    RegressionLoss::Epsilon(epsilon) => {
                        DualProblem::regression(&targets, upper, epsilon, diagonal)
                    }
                    RegressionLoss::Quantile(q) => DualProblem::quantile(&targets, upper, q, diagonal),
                    RegressionLoss::Nu(_) => return Ok(None),
                }?;
                Ok((!rows.is_empty()).then_some(problem))
            }
            _ => Ok(None),
        }
    }
}
