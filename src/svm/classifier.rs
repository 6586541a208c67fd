//! Binary, one-vs-one and one-vs-rest classifiers over one set of kernel rows and one pool of support vectors.
//!
//! Rows are put in the order of their classes. One-vs-rest machines all see every column: one segment. One-vs-one
//! machines see the columns of two classes: a segment for each class, so that k(x, own class) is computed once for
//! all machines of x's class (thesis 4.5).

use super::decomposition::{Machine, Segment, solve};
use super::params::{Certificate, Effort, SvcParams};
use super::problem::DualProblem;
use super::{bias, certificate};
use crate::cache::RowCache;
use crate::control::{Monitor, Par, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, KernelRows, Precision};
use std::time::Instant;

/// How several classes are told apart by binary machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// A machine for every pair (a, b), a < b: positive votes for a.
    OneVsOne,
    /// A machine for every class against all others.
    OneVsRest,
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
    /// What all machines cost together.
    pub effort: Effort,
}

/// Fits a support vector classifier. `labels` are class indices below `classes`, `upper` is C for each row.
///
/// A machine that the monitor or `max_iterations` stopped says so in its certificate; the model is usable.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Param`] for inputs that contradict each other, fewer than two classes, a class
/// without rows, a bound that is not positive and finite, or rows outside the kernel's domain.
#[allow(clippy::too_many_arguments)]
pub fn fit_classifier(
    kernel: Kernel,
    rows: Rows<'_>,
    labels: &[usize],
    classes: usize,
    upper: &[f64],
    coding: Coding,
    params: &SvcParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<SvcModel> {
    let start = Instant::now();
    let n = rows.rows();
    let counts = check(kernel, rows, labels, classes, upper, params)?;
    let order = by_class(labels, &counts);
    let class_starts: Vec<usize> = std::iter::once(0)
        .chain(counts.iter().scan(0, |sum, c| {
            *sum += c;
            Some(*sum)
        }))
        .collect();

    let one_vs_one = coding == Coding::OneVsOne && classes > 2;
    let ranges: Vec<_> =
        if one_vs_one { class_starts.windows(2).map(|w| w[0]..w[1]).collect() } else { vec![0..n] };
    let mut segments: Vec<Segment<'_>> = ranges
        .into_iter()
        .map(|positions| {
            let source = KernelRows::new(kernel, rows, &order[positions.clone()], Precision::Single, par);
            Segment { positions, source, cache: None }
        })
        .collect();
    let depth = depth(kernel, rows);
    let mut largest = counts.clone();
    largest.sort_unstable();
    let machine_rows = if one_vs_one { largest[classes - 1] + largest[classes - 2] } else { n };
    if depth > params.tuning.cheap && machine_rows > params.tuning.whole {
        // Every segment's cache holds the same number of rows, in what the packed rows leave of the budget.
        let packed: usize = segments.iter().map(|s| s.source.bytes()).sum();
        let row_budget = params.cache_bytes.saturating_sub(packed) / n.max(1);
        for segment in &mut segments {
            let len = segment.positions.len();
            segment.cache = Some(RowCache::new(n, len, row_budget * len));
        }
    }

    let diagonal: Vec<f64> = order.iter().map(|&row| segments[0].source.diagonal(row)).collect();
    let machine = |positive: &dyn Fn(usize) -> bool, used: &[usize], segments: &[Segment<'_>]| {
        let positions: Vec<usize> = used.iter().flat_map(|&s| segments[s].positions.clone()).collect();
        let signs: Vec<bool> = positions.iter().map(|&p| positive(labels[order[p]])).collect();
        let bound: Vec<f64> = positions.iter().map(|&p| upper[order[p]]).collect();
        let diagonal = positions.iter().map(|&p| diagonal[p]).collect();
        Machine::new(
            DualProblem::classification(&signs, &bound, diagonal),
            used,
            segments,
            &order,
            params.tuning,
        )
    };
    let mut machines: Vec<Machine<'_>> = if classes == 2 {
        vec![machine(&|c| c == 1, &[0], &segments)]
    } else if one_vs_one {
        let pairs = (0..classes).flat_map(|a| (a + 1..classes).map(move |b| (a, b)));
        pairs.map(|(a, b)| machine(&|c| c == a, &[a, b], &segments)).collect()
    } else {
        (0..classes).map(|j| machine(&|c| c == j, &[0], &segments)).collect()
    };

    solve(&mut machines, &mut segments, &order, depth, params, monitor, par);
    Ok(collect(&machines, &segments, &order, labels, classes, start))
}

/// Features that a kernel value really touches, an estimate.
fn depth(kernel: Kernel, rows: Rows<'_>) -> usize {
    if kernel == Kernel::Precomputed {
        return 0;
    }
    if !rows.is_sparse() {
        return rows.cols();
    }
    let sample = rows.rows().clamp(1, 256);
    let mut stored = 0;
    for i in 0..sample.min(rows.rows()) {
        rows.for_each_in_row(i * rows.rows() / sample, |_, _| stored += 1);
    }
    // A sparse entry costs about as much as two dense ones.
    2 * stored / sample
}

fn check(
    kernel: Kernel,
    rows: Rows<'_>,
    labels: &[usize],
    classes: usize,
    upper: &[f64],
    params: &SvcParams,
) -> Result<Vec<usize>> {
    params.check()?;
    kernel.check()?;
    kernel.check_rows("X", rows)?;
    let n = rows.rows();
    Error::check_len("labels", n, labels.len())?;
    Error::check_len("upper bounds", n, upper.len())?;
    if kernel == Kernel::Precomputed {
        Error::check_len("columns of precomputed X", n, rows.cols())?;
    }
    if classes < 2 {
        return Err(Error::param("classes", classes, "at least 2"));
    }
    if let Some(c) = upper.iter().find(|c| !(c.is_finite() && **c > 0.0)) {
        return Err(Error::param("C", c, "positive and finite for every row"));
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
    segments: &[Segment<'_>],
    order: &[usize],
    labels: &[usize],
    classes: usize,
    start: Instant,
) -> SvcModel {
    let q = machines.len();
    let mut coefficient_of = vec![Vec::new(); order.len()];
    let (mut intercepts, mut certificates) = (Vec::with_capacity(q), Vec::with_capacity(q));
    for (j, machine) in machines.iter().enumerate() {
        let problem = &machine.problem;
        for part in machine.parts() {
            for (offset, position) in part.1.enumerate() {
                let beta = problem.beta[part.0 + offset];
                if beta != 0.0 {
                    coefficient_of[position].push((j, beta));
                }
            }
        }
        let b = bias::intercept(problem);
        intercepts.push(b);
        certificates.push(certificate::classification(
            problem,
            b,
            machine.iterations,
            machine.rounds,
            machine.stop.unwrap_or(StopReason::Stalled),
        ));
    }
    let (mut support, mut coefficients, mut class_counts) = (Vec::new(), Vec::new(), vec![0; classes]);
    for (position, entries) in coefficient_of.iter().enumerate().filter(|(_, entries)| !entries.is_empty()) {
        support.push(order[position]);
        class_counts[labels[order[position]]] += 1;
        let line = coefficients.len();
        coefficients.resize(line + q, 0.0);
        for &(j, beta) in entries {
            coefficients[line + j] = beta;
        }
    }
    let effort = Effort {
        kernel_values: segments.iter().map(|s| s.source.values_computed()).sum(),
        cache_hits: segments.iter().filter_map(|s| Some(s.cache.as_ref()?.hits)).sum(),
        cache_misses: segments.iter().filter_map(|s| Some(s.cache.as_ref()?.misses)).sum(),
        seconds: start.elapsed().as_secs_f64(),
    };
    SvcModel { support, class_counts, coefficients, intercepts, certificates, effort }
}
