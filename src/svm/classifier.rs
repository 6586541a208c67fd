//! Binary, one-vs-one and one-vs-rest classifiers over one set of kernel rows and one pool of support vectors.
//!
//! Rows are put in the order of their classes. One-vs-rest machines all see every column: one segment. One-vs-one
//! machines see the columns of two classes: a segment for each class, so that k(x, own class) is computed once for
//! all machines of x's class (thesis 4.5).

use super::fit::{Columns, Start, check, check_nu, finish};
use super::leave_one_out::{LeaveOneOut, leave_one_out};
use super::machine::Machine;
use super::params::{Certificate, Effort, SvmParams};
use super::problem::DualProblem;
use crate::control::{Monitor, Par};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::KernelFunction;

/// How several classes are told apart by binary machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// A machine for every pair (a, b), a < b: positive votes for a.
    OneVsOne,
    /// A machine for every class against all others.
    OneVsRest,
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
    pub coding: Coding,
    /// The loss.
    pub loss: ClassifierLoss,
    /// Whether machines have an intercept.
    pub fit_intercept: bool,
    /// Coefficients to start from.
    pub start: Option<Start<'a>>,
}

/// A fitted classifier as indices into its training rows.
#[derive(Debug, Clone)]
pub struct SvcModel {
    /// Training rows that are support vectors of any machine, by class, then by index.
    pub support: Vec<usize>,
    /// Support vectors of each class.
    pub class_counts: Vec<usize>,
    /// B, (m, q) row-major: q is 1 for two classes (positive for the second), k(k-1)/2 for one-vs-one, k for
    /// one-vs-rest.
    pub coefficients: Vec<f64>,
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
    rows: Rows<'a>,
    task: &Classification<'_>,
    params: &SvmParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<SvcModel> {
    let &Classification { labels, classes, upper, coding, .. } = task;
    let kernel = kernel.into();
    check(kernel, rows, upper, params)?;
    let counts = check_task(rows.rows(), task)?;
    let n = rows.rows();
    let order = by_class(labels, &counts);
    let one_vs_one = coding == Coding::OneVsOne && classes > 2;
    let (ranges, machine_size) = if one_vs_one {
        let mut end = 0;
        let ranges = counts.iter().map(|&count| {
            end += count;
            end - count..end
        });
        let mut largest = counts.clone();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        (ranges.collect(), largest[0] + largest[1])
    } else {
        (vec![0..n], n)
    };
    let mut columns = Columns::new(kernel, rows, order, ranges, machine_size, params, par);

    // The segments and the positive class of each machine.
    let machines_of: Vec<(Vec<usize>, usize)> = if classes == 2 {
        vec![(vec![0], 1)]
    } else if one_vs_one {
        (0..classes).flat_map(|a| (a + 1..classes).map(move |b| (vec![a, b], a))).collect()
    } else {
        (0..classes).map(|j| (vec![0], j)).collect()
    };
    let q = machines_of.len();
    let mut machines = Vec::with_capacity(q);
    for (j, (segments, positive)) in machines_of.iter().enumerate() {
        let positions: Vec<usize> =
            segments.iter().flat_map(|&s| columns.segments[s].positions.clone()).collect();
        let of_rows =
            |values: &[f64]| -> Vec<f64> { positions.iter().map(|&p| values[columns.order[p]]).collect() };
        let signs: Vec<bool> = positions.iter().map(|&p| labels[columns.order[p]] == *positive).collect();
        let diagonal = positions.iter().map(|&p| columns.diagonal[p]).collect();
        let mut problem = match task.loss {
            ClassifierLoss::Hinge => DualProblem::hinge(&signs, &of_rows(upper), diagonal),
            ClassifierLoss::SquaredHinge => DualProblem::squared_hinge(&signs, &of_rows(upper), diagonal),
            ClassifierLoss::Nu(nu) => DualProblem::nu_classification(&signs, &of_rows(upper), nu, diagonal)?,
        };
        problem.anchored = !task.fit_intercept;
        if let Some(start) = task.start {
            problem.start_from(&of_rows(&start.of_machine(n, j, q)?));
        }
        let cold = problem.beta.iter().all(|b| *b == 0.0);
        let mut machine = Machine::new(problem, segments, &columns.segments, &columns.order, params.tuning);
        if !cold {
            machine.renew_gradient(&columns.segments, par);
        }
        machines.push(machine);
    }
    columns.solve(&mut machines, params, monitor, par);
    Ok(collect(&machines, &columns, kernel, task))
}

fn check_task(rows: usize, task: &Classification<'_>) -> Result<Vec<usize>> {
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

/// Rows in the order of their classes.
fn by_class(labels: &[usize], counts: &[usize]) -> Vec<usize> {
    let mut next: Vec<usize> = counts
        .iter()
        .scan(0, |sum, c| {
            *sum += c;
            Some(*sum - c)
        })
        .collect();
    let mut order = vec![0; labels.len()];
    for (row, &label) in labels.iter().enumerate() {
        order[next[label]] = row;
        next[label] += 1;
    }
    order
}

fn collect(
    machines: &[Machine<'_>],
    columns: &Columns<'_>,
    kernel: KernelFunction<'_>,
    task: &Classification<'_>,
) -> SvcModel {
    let (q, order) = (machines.len(), &columns.order);
    let mut coefficient_of = vec![Vec::new(); order.len()];
    let (mut intercepts, mut certificates) = (Vec::with_capacity(q), Vec::with_capacity(q));
    let is_nu = matches!(task.loss, ClassifierLoss::Nu(_));
    let mut estimates = Vec::new();
    for (j, machine) in machines.iter().enumerate() {
        let (b, rho, certificate) = finish(machine);
        if !is_nu {
            estimates.push(leave_one_out(&machine.problem, kernel, b, certificate.violation));
        }
        // nu-SVC finds f up to its margin rho; divided by it, the margin is 1 as everywhere else.
        let scale = if is_nu && rho > 0.0 { 1.0 / rho } else { 1.0 };
        for (first, positions) in machine.parts() {
            for (offset, position) in positions.enumerate() {
                let beta = machine.problem.beta[first + offset];
                if beta != 0.0 {
                    coefficient_of[position].push((j, scale * beta));
                }
            }
        }
        intercepts.push(scale * b);
        certificates.push(certificate);
    }
    let (mut support, mut coefficients, mut class_counts) = (Vec::new(), Vec::new(), vec![0; task.classes]);
    for (position, entries) in coefficient_of.iter().enumerate().filter(|(_, entries)| !entries.is_empty()) {
        support.push(order[position]);
        class_counts[task.labels[order[position]]] += 1;
        let line = coefficients.len();
        coefficients.resize(line + q, 0.0);
        for &(j, beta) in entries {
            coefficients[line + j] = beta;
        }
    }
    SvcModel {
        support,
        class_counts,
        coefficients,
        intercepts,
        certificates,
        leave_one_out: estimates,
        effort: columns.effort(),
    }
}
