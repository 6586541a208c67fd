//! The machines of any code over one set of kernel rows and one pool of support vectors.
//!
//! Rows are put in the order of their classes, and cut into segments of classes that always go together: those that
//! take part in the same machines. Where every machine sees all classes (one-vs-rest, a complete or dense code) that is
//! one segment. One-vs-one machines see the columns of two classes, those of a sparse code of about half: a segment
//! for each class, so that k(x, own class) is computed once for all machines of x's class (thesis 4.5).

use super::certificate::Certificate;
use super::columns::Effort;
use super::fit::{Layout, Solved, fit_machines};
use super::leave_one_out::{LeaveOneOut, leave_one_out};
use super::params::SvmParams;
use super::problem::DualProblem;
use super::start::Start;
use super::training::{Training, check_nu};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, KernelFunction};
use crate::memory::{self, TryCollect, try_vec, try_with_capacity};
use crate::multiclass::CodeMatrix;
use ndarray::Array2;
use std::borrow::Cow;
use std::collections::HashMap;

/// How several classes are told apart by binary machines.
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
    /// The matrix for so many classes.
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

/// What a misplaced row costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClassifierLoss {
    /// C_i max(0, 1 - y f).
    Hinge,
    /// C_i max(0, 1 - y f)^2.
    SquaredHinge,
    /// nu-SVC: the margin is found so that at most a share nu of the rows lies inside it; `upper` are row weights.
    Nu(f64),
}

/// What a classifier is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct Classification<'a> {
    /// Class of each row, below `classes`.
    pub labels: &'a [usize],
    /// Number of classes, at least 2.
    pub classes: usize,
    /// C of each row, or its weight for nu-SVC.
    pub upper: &'a [f64],
    /// How several classes are told apart.
    pub coding: Coding<'a>,
    /// The loss.
    pub loss: ClassifierLoss,
    /// Whether machines have an intercept.
    pub fit_intercept: bool,
    /// Coefficients to start from.
    pub start: Option<Start<'a>>,
}

impl<'a> Classification<'a> {
    /// One-vs-one machines with hinge loss and intercept, from nothing.
    pub fn new(labels: &'a [usize], classes: usize, upper: &'a [f64]) -> Self {
        let (coding, loss) = (Coding::OneVsOne, ClassifierLoss::Hinge);
        Self { labels, classes, upper, coding, loss, fit_intercept: true, start: None }
    }
}

/// A fitted classifier as indices into its training rows.
#[derive(Debug, Clone)]
pub struct SvcModel {
    /// Training rows that are support vectors of any machine, by class, then by index.
    pub support: Vec<usize>,
    /// Support vectors of each class.
    pub class_counts: Vec<usize>,
    /// B, (m, q), a column for each column of the code: 1 for two classes (positive for the second),
    /// k(k-1)/2 for one-vs-one, k for one-vs-rest.
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// One certificate a machine.
    pub certificates: Vec<Certificate>,
    /// Bounds for the leave-one-out errors, one a machine; none for nu-SVC, whose C depends on the rows.
    pub leave_one_out: Vec<LeaveOneOut>,
    /// What all machines cost together.
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
    let &Classification { labels, classes, upper, coding, .. } = task;
    let sum = if task.fit_intercept { CoefficientSum::Zero } else { CoefficientSum::Any };
    let training = Training::new(kernel.into(), rows, upper, sum, params, ctx)?;
    let counts = check_task(rows.rows(), task)?;
    let code = coding.matrix(classes)?;
    let segments = Segments::of(&code)?;
    let order = by_class(labels, &counts, &segments)?;
    let sizes = segments.classes.iter().map(|of| of.iter().map(|&class| counts[class]).sum());
    let layout = Layout { order, sizes: sizes.try_collect_vec()?, of_machine: segments.of_machine };
    let solved = fit_machines(&training, layout, task.start, |j, rows, diagonal| {
        let upper: Vec<f64> = rows.iter().map(|&row| upper[row]).try_collect_vec()?;
        problem(task, &code, j, (rows, &upper), diagonal)
    })?;
    collect(&solved, &training, task)
}

/// The problem of machine j over some rows with their upper bounds, and their K_ii.
pub(super) fn problem(
    task: &Classification<'_>,
    code: &CodeMatrix,
    j: usize,
    (rows, upper): (&[usize], &[f64]),
    diagonal: Vec<f64>,
) -> Result<DualProblem> {
    let signs: Vec<bool> = rows.iter().map(|&row| code.entry(task.labels[row], j) > 0).try_collect_vec()?;
    let mut problem = match task.loss {
        ClassifierLoss::Hinge => DualProblem::hinge(&signs, upper, diagonal),
        ClassifierLoss::SquaredHinge => DualProblem::squared_hinge(&signs, upper, diagonal),
        ClassifierLoss::Nu(nu) => DualProblem::nu_classification(&signs, upper, nu, diagonal),
    }?;
    problem.anchored = !task.fit_intercept;
    Ok(problem)
}

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
    let mut counts = try_vec![0; classes]?;
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

/// Classes that take part in the same machines.
pub(super) struct Segments {
    /// Classes of each segment, rising.
    pub(super) classes: Vec<Vec<usize>>,
    /// Segments of each machine, rising.
    pub(super) of_machine: Vec<Vec<usize>>,
}

impl Segments {
    pub(super) fn of(code: &CodeMatrix) -> Result<Self> {
        let takes_part = |class: usize| code.row(class).iter().map(|entry| *entry != 0);
        let mut classes: Vec<Vec<usize>> = Vec::new();
        let mut known = HashMap::new();
        for class in 0..code.classes() {
            let segment = *known.entry(takes_part(class).try_collect_vec()?).or_insert(classes.len());
            match classes.get_mut(segment) {
                Some(of) => of.push(class),
                None => classes.push(vec![class]),
            }
        }
        let of_machine = (0..code.columns())
            .map(|j| (0..classes.len()).filter(|&s| code.entry(classes[s][0], j) != 0).try_collect_vec())
            .try_collect_results()?;
        Ok(Self { classes, of_machine })
    }
}

/// Rows in the order of the segments, within them of their classes.
pub(super) fn by_class(labels: &[usize], counts: &[usize], segments: &Segments) -> Result<Vec<usize>> {
    let mut next = try_vec![0; counts.len()]?;
    let mut start = 0;
    for &class in segments.classes.iter().flatten() {
        next[class] = start;
        start += counts[class];
    }
    let mut order = try_vec![0; labels.len()]?;
    for (row, &label) in labels.iter().enumerate() {
        order[next[label]] = row;
        next[label] += 1;
    }
    Ok(order)
}

fn collect(solved: &Solved<'_>, training: &Training<'_>, task: &Classification<'_>) -> Result<SvcModel> {
    let Solved { machines, order, effort, .. } = solved;
    let q = machines.len();
    let mut is_used = try_vec![false; order.len()]?;
    for machine in machines {
        for (first, positions) in machine.parts() {
            for (beta, position) in machine.problem().beta[first..].iter().zip(positions) {
                is_used[position] |= *beta != 0.0;
            }
        }
    }
    let mut used: Vec<usize> = (0..order.len()).filter(|&position| is_used[position]).try_collect_vec()?;
    used.sort_unstable_by_key(|&position| (task.labels[order[position]], order[position]));
    let mut line_of = try_vec![0; order.len()]?;
    let mut class_counts = try_vec![0; task.classes]?;
    for (line, &position) in used.iter().enumerate() {
        line_of[position] = line;
        class_counts[task.labels[order[position]]] += 1;
    }
    let mut coefficients = memory::try_zero_matrix("the coefficients", (used.len(), q))?;
    let (mut intercepts, mut certificates) =
        (try_with_capacity("the intercepts", q)?, try_with_capacity("the certificates", q)?);
    let is_nu = matches!(task.loss, ClassifierLoss::Nu(_));
    let mut estimates = Vec::new();
    for (j, machine) in machines.iter().enumerate() {
        let (b, rho, certificate) = machine.outcome()?;
        if !is_nu {
            // Without exact gradients nothing is known of any row.
            let violation = if machine.is_exact() { certificate.violation } else { f64::INFINITY };
            estimates.push(leave_one_out(machine.problem(), training.rows.kernel, b, violation));
        }
        // nu-SVC finds f up to its margin rho; divided by it, the margin is 1 as everywhere else.
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
    let support: Vec<usize> = used.into_iter().map(|position| order[position]).try_collect_vec()?;
    for (b, excess) in intercepts.iter_mut().zip(solved.intercept_correction(&support, coefficients.view())?)
    {
        *b -= excess;
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
