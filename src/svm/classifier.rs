//! The machines of any code over one set of kernel rows and one pool of support vectors.
//!
//! Rows are sorted by class, and divided into class blocks: classes that take part in the same machines. If every machine
//! uses all classes (one-vs-rest, a complete or dense code), there is one class block. One-vs-one machines use the columns of
//! two classes, and those of a sparse code of about half: there is a class block for each class, so that k(x, own class) is
//! computed once for all machines of x's class (Rifkin 2002, 4.5).

use super::certificate::Certificate;
use super::columns::Effort;
use super::fit::{MachineLayout, Solved, fit_machines};
use super::leave_one_out::{LeaveOneOut, leave_one_out};
use super::machine::Outcome;
use super::params::SvmParams;
use super::problem::DualProblem;
use super::start::Start;
use super::training::{Training, check_nu};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, KernelFunction};
use crate::memory::{self, TryCollect};
use crate::multiclass::CodeMatrix;
use ndarray::Array2;
use std::borrow::Cow;
use std::collections::HashMap;

/// The decomposition of several classes into binary machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding<'a> {
    /// A machine for every pair (a, b), a < b: positive votes for a.
    OneVsOne,
    /// A machine for every class against all others.
    OneVsRest,
    /// A machine for every column.
    Code(&'a CodeMatrix),
}

impl<'a> Coding<'a> {
    /// Returns the matrix for a number of classes.
    pub(super) fn matrix(self, classes: usize) -> Result<Cow<'a, CodeMatrix>> {
        Ok(match self {
            Self::OneVsOne => Cow::Owned(CodeMatrix::one_vs_one(classes)?),
            Self::OneVsRest => Cow::Owned(CodeMatrix::one_vs_rest(classes)?),
            Self::Code(code) => {
                Error::check_len("rows of the code, one a class", classes, code.classes())?;
                Cow::Borrowed(code)
            }
        })
    }
}

/// The loss of a classifier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClassifierLoss {
    /// C_i max(0, 1 - y f).
    Hinge,
    /// C_i max(0, 1 - y f)^2.
    SquaredHinge,
    /// nu-SVC: the margin is such that at most a share nu of the rows lies inside it; `sample_c` are row weights.
    Nu(f64),
}

/// Labels, weights and options of a classifier.
#[derive(Debug, Clone, Copy)]
pub struct Classification<'a> {
    /// Class of each row, below `classes`.
    pub labels: &'a [usize],
    /// Number of classes, at least 2.
    pub classes: usize,
    /// C of each row, or its weight for nu-SVC.
    pub sample_c: &'a [f64],
    /// The decomposition into binary machines.
    pub coding: Coding<'a>,
    /// The loss of a margin y f.
    pub loss: ClassifierLoss,
    /// If false, b is 0, and the sum of the coefficients is free.
    pub fit_intercept: bool,
    /// Coefficients to start from.
    pub start: Option<Start<'a>>,
}

impl<'a> Classification<'a> {
    /// Returns one-vs-one machines with hinge loss and intercept, started at zero.
    pub fn new(labels: &'a [usize], classes: usize, sample_c: &'a [f64]) -> Self {
        let (coding, loss) = (Coding::OneVsOne, ClassifierLoss::Hinge);
        Self { labels, classes, sample_c, coding, loss, fit_intercept: true, start: None }
    }
}

/// A fitted classifier as indices into its training rows.
#[derive(Debug, Clone)]
pub struct SvcModel {
    /// Training rows that are support vectors of any machine, by class, then by index.
    pub support: Vec<usize>,
    /// Number of support vectors of each class.
    pub class_counts: Vec<usize>,
    /// B, (m, q), a column for each column of the code: 1 for two classes (positive for the second),
    /// k(k-1)/2 for one-vs-one, k for one-vs-rest.
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// Bounds on the optimum of each machine, in the order of the outputs.
    pub certificates: Vec<Certificate>,
    /// Bounds for the leave-one-out errors of each machine; none for nu-SVC, whose C depends on the rows.
    pub leave_one_out: Vec<LeaveOneOut>,
    /// The cost of all machines together.
    pub effort: Effort,
}

/// Fits a support vector classifier.
///
/// A machine that the monitor or `max_iterations` stopped says so in its certificate; the model is usable.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Param`] for inputs that contradict each other, fewer than two classes, a class
/// without rows, a bound that is not positive and finite, a nu that the classes cannot meet, or rows outside the
/// kernel's domain.
pub fn fit_classifier<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'_>,
    task: &Classification<'_>,
    params: &SvmParams,
    ctx: Context<'_>,
) -> Result<SvcModel> {
    let &Classification { classes, sample_c, coding, .. } = task;
    let sum = if task.fit_intercept { CoefficientSum::Zero } else { CoefficientSum::Any };
    let training = Training::new(kernel.into(), rows, sample_c, sum, params, ctx)?;
    let counts = check_task(rows.rows(), task)?;
    let code = coding.matrix(classes)?;
    if let ClassifierLoss::Nu(nu) = task.loss {
        check_nu_of_machines(nu, task, &code)?;
    }
    let layout = layout(task, &counts, &code)?;
    let solved = fit_machines(&training, layout, task.start, |j, rows, diagonal| {
        let sample_c: Vec<f64> = rows.iter().map(|&row| sample_c[row]).collect();
        problem(task, &code, j, (rows, &sample_c), diagonal)
    })?;
    collect(&solved, &training, task)
}

/// Returns the rows of all machines, sorted by class block.
pub(super) fn layout(
    task: &Classification<'_>,
    counts: &[usize],
    code: &CodeMatrix,
) -> Result<MachineLayout> {
    let ClassPartition { classes, of_machine } = ClassPartition::new(code)?;
    let order = by_class(task.labels, counts, &classes);
    let sizes = classes.iter().map(|block| block.iter().map(|&class| counts[class]).sum());
    Ok(MachineLayout { order, sizes: sizes.collect(), of_machine })
}

/// Returns the problem of machine j over some rows with their C and their K_ii.
pub(super) fn problem(
    task: &Classification<'_>,
    code: &CodeMatrix,
    j: usize,
    (rows, sample_c): (&[usize], &[f64]),
    diagonal: Vec<f64>,
) -> DualProblem {
    let signs: Vec<bool> = rows.iter().map(|&row| code.entry(task.labels[row], j) > 0).collect();
    let mut problem = match task.loss {
        ClassifierLoss::Hinge => DualProblem::hinge(&signs, sample_c, diagonal),
        ClassifierLoss::SquaredHinge => DualProblem::squared_hinge(&signs, sample_c, diagonal),
        ClassifierLoss::Nu(nu) => DualProblem::nu_classification(&signs, sample_c, nu, diagonal),
    };
    problem.has_equality = task.fit_intercept;
    problem
}

/// Checks labels and options; returns the number of rows of each class.
pub(super) fn check_task(rows: usize, task: &Classification<'_>) -> Result<Vec<usize>> {
    let &Classification { labels, classes, loss, fit_intercept, .. } = task;
    Error::check_len("labels", rows, labels.len())?;
    if classes < 2 {
        return Err(Error::param("classes", classes, "at least 2"));
    }
    if let ClassifierLoss::Nu(nu) = loss {
        check_nu(nu)?;
        if !fit_intercept {
            return Err(Error::param("fit_intercept", false, "true for nu-SVC"));
        }
    }
    let mut counts = vec![0; classes];
    for &label in labels {
        *counts.get_mut(label).ok_or_else(|| Error::param("labels", label, format!("below {classes}")))? += 1;
    }
    match counts.iter().position(|&c| c == 0) {
        Some(empty) => {
            Err(Error::param("labels", format!("none of class {empty}"), "of every class at least once"))
        }
        None => Ok(counts),
    }
}

/// Checks before any kernel value is computed that nu is feasible for every machine.
fn check_nu_of_machines(nu: f64, task: &Classification<'_>, code: &CodeMatrix) -> Result<()> {
    let mut class_totals = vec![0.0; task.classes];
    for (&label, weight) in task.labels.iter().zip(task.sample_c) {
        class_totals[label] += weight;
    }
    // Twice the share of the smaller side of machine j.
    let largest_nu = |j: usize| {
        let of_sign = |sign: i8| -> f64 {
            let entries = class_totals.iter().enumerate();
            entries.filter(|&(class, _)| code.entry(class, j) == sign).map(|(_, total)| total).sum()
        };
        let (first, second) = (of_sign(-1), of_sign(1));
        2.0 * first.min(second) / (first + second)
    };
    let max_nu = (0..code.columns()).map(largest_nu).fold(f64::INFINITY, f64::min);
    if max_nu < nu * (1.0 - 1e-12) {
        let rule = format!("at most {max_nu:.6}, twice the share of the smaller class of every machine");
        return Err(Error::param("nu", nu, rule));
    }
    Ok(())
}

/// The partition of the classes into those that take part in the same machines.
struct ClassPartition {
    /// Classes of each class block, ascending.
    classes: Vec<Vec<usize>>,
    /// Class blocks of each machine, ascending.
    of_machine: Vec<Vec<usize>>,
}

impl ClassPartition {
    /// Returns the partition of the classes of a code.
    fn new(code: &CodeMatrix) -> Result<Self> {
        let takes_part = |class: usize| code.row(class).iter().map(|entry| *entry != 0);
        let mut classes: Vec<Vec<usize>> = Vec::new();
        let mut block_of = HashMap::new();
        for class in 0..code.classes() {
            let class_block = *block_of.entry(takes_part(class).try_collect_vec()?).or_insert(classes.len());
            match classes.get_mut(class_block) {
                Some(of) => of.push(class),
                None => classes.push(vec![class]),
            }
        }
        let of_machine = (0..code.columns())
            .map(|j| (0..classes.len()).filter(|&s| code.entry(classes[s][0], j) != 0).try_collect_vec())
            .collect::<Result<_>>()?;
        Ok(Self { classes, of_machine })
    }
}

/// Returns the rows sorted by class block, within them by class.
fn by_class(labels: &[usize], counts: &[usize], class_blocks: &[Vec<usize>]) -> Vec<usize> {
    let mut next = vec![0; counts.len()];
    let mut start = 0;
    for &class in class_blocks.iter().flatten() {
        next[class] = start;
        start += counts[class];
    }
    let mut order = vec![0; labels.len()];
    for (row, &label) in labels.iter().enumerate() {
        order[next[label]] = row;
        next[label] += 1;
    }
    order
}

/// Pools the support vectors of all machines into one expansion.
fn collect(solved: &Solved<'_>, training: &Training<'_>, task: &Classification<'_>) -> Result<SvcModel> {
    let Solved { machines, order, effort, .. } = solved;
    let q = machines.len();
    let mut is_used = vec![false; order.len()];
    for machine in machines {
        for (first, positions) in machine.parts() {
            for (beta, position) in machine.problem().beta[first..].iter().zip(positions) {
                is_used[position] |= *beta != 0.0;
            }
        }
    }
    let mut used: Vec<usize> = (0..order.len()).filter(|&position| is_used[position]).collect();
    used.sort_unstable_by_key(|&position| (task.labels[order[position]], order[position]));
    let mut line_of = vec![0; order.len()];
    let mut class_counts = vec![0; task.classes];
    for (line, &position) in used.iter().enumerate() {
        line_of[position] = line;
        class_counts[task.labels[order[position]]] += 1;
    }
    let mut coefficients = memory::try_zero_matrix("the coefficients", (used.len(), q))?;
    let (mut intercepts, mut certificates) = (Vec::with_capacity(q), Vec::with_capacity(q));
    let is_nu = matches!(task.loss, ClassifierLoss::Nu(_));
    let outcomes = training.ctx.try_map(q, |j| {
        let machine = &machines[j];
        let &Outcome { intercept: b, rho, certificate, .. } = machine.outcome()?;
        // Without exact gradients the bounds hold for no row.
        let violation = if machine.is_exact() { certificate.violation } else { f64::INFINITY };
        let estimate = (!is_nu).then(|| leave_one_out(machine.problem(), training.rows.kernel, b, violation));
        Ok((b, rho, certificate, estimate))
    })?;
    let mut estimates = Vec::new();
    for (j, (machine, (b, rho, certificate, estimate))) in machines.iter().zip(outcomes).enumerate() {
        estimates.extend(estimate);
        // The solution of nu-SVC has margin rho; divided by rho, the margin is 1 as for the other losses.
        let scale = if is_nu && rho > 0.0 { 1.0 / rho } else { 1.0 };
        for (first, positions) in machine.parts() {
            for (&beta, position) in machine.problem().beta[first..].iter().zip(positions) {
                if beta != 0.0 {
                    coefficients[[line_of[position], j]] = scale * beta;
                }
            }
        }
        intercepts.push(scale * b);
        certificates.push(certificate);
    }
    let support: Vec<usize> = used.into_iter().map(|position| order[position]).collect();
    let corrections = solved.intercept_correction(&support, coefficients.view());
    for (b, correction) in intercepts.iter_mut().zip(corrections) {
        *b -= correction;
    }
    Ok(SvcModel {
        support,
        class_counts,
        coefficients,
        intercepts,
        certificates,
        leave_one_out: estimates,
        effort: *effort,
    })
}
