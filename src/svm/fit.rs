//! What the fits of the family share: packed columns and their caches, starts, certificates.

use super::bias;
use super::certificate::certify;
use super::decomposition::solve;
use super::machine::{Machine, Segment};
use super::params::{Certificate, Effort, SvmParams};
use super::problem::DualProblem;
use crate::cache::RowCache;
use crate::control::{Monitor, Par, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, KernelFunction, KernelRows, Precision};
use std::ops::Range;
use std::time::Instant;

/// Coefficients to start from, of a machine or of all machines of a classifier.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Training rows with a coefficient.
    pub support: &'a [usize],
    /// (support, q) row-major, as in the model.
    pub coefficients: &'a [f64],
}

impl Start<'_> {
    /// Coefficients by training row of one of `q` machines, clipped to nothing yet.
    pub(super) fn of_machine(&self, rows: usize, machine: usize, q: usize) -> Result<Vec<f64>> {
        Error::check_len("coefficients to start from", self.support.len() * q, self.coefficients.len())?;
        let mut beta = vec![0.0; rows];
        for (&row, coefficients) in self.support.iter().zip(self.coefficients.chunks_exact(q)) {
            let coefficient = coefficients[machine];
            if row >= rows || !coefficient.is_finite() {
                return Err(Error::param(
                    "start",
                    format!("row {row}: {coefficient}"),
                    format!("finite, for rows below {rows}"),
                ));
            }
            beta[row] = coefficient;
        }
        Ok(beta)
    }
}

/// A fitted machine of one output as indices into its training rows.
#[derive(Debug, Clone)]
pub struct MachineModel {
    /// Training rows that are support vectors, rising.
    pub support: Vec<usize>,
    /// B, (m, 1).
    pub coefficients: Vec<f64>,
    /// b.
    pub intercept: f64,
    /// rho of the nu machines: the margin of nu-SVC, minus epsilon of nu-SVR; else 0.
    pub rho: f64,
    /// The certificate.
    pub certificate: Certificate,
    /// What it cost.
    pub effort: Effort,
}

/// The columns of all machines, packed, and how the rows behind them are ordered.
pub(super) struct Columns<'a> {
    pub(super) segments: Vec<Segment<'a>>,
    pub(super) order: Vec<usize>,
    /// K_ii by position.
    pub(super) diagonal: Vec<f64>,
    depth: usize,
    start: Instant,
}

impl<'a> Columns<'a> {
    /// Packs the rows in the given order, cut into the given ranges; the largest machine has `machine_size` variables.
    pub(super) fn new(
        kernel: KernelFunction<'a>,
        rows: Rows<'a>,
        order: Vec<usize>,
        ranges: Vec<Range<usize>>,
        machine_size: usize,
        params: &SvmParams,
        par: Par,
    ) -> Self {
        let start = Instant::now();
        let precision = precision(kernel, rows);
        let mut segments: Vec<Segment<'_>> = ranges
            .into_iter()
            .map(|positions| {
                let source = KernelRows::new(kernel, rows, &order[positions.clone()], precision, par);
                Segment { positions, source, cache: None }
            })
            .collect();
        let depth = depth(kernel, rows);
        if depth > params.tuning.cheap && machine_size > params.tuning.whole {
            // Every segment's cache holds the same number of rows, in what the packed rows leave of the budget.
            let packed: usize = segments.iter().map(|s| s.source.bytes()).sum();
            let per_column = params.cache_bytes.saturating_sub(packed) / order.len().max(1);
            for segment in &mut segments {
                let len = segment.positions.len();
                segment.cache = Some(RowCache::new(order.len(), len, per_column * len));
            }
        }
        let diagonal = segments[0].source.diagonal(&order);
        Self { segments, order, diagonal, depth, start }
    }

    /// Solves the machines.
    pub(super) fn solve(
        &mut self,
        machines: &mut [Machine<'a>],
        params: &SvmParams,
        monitor: &dyn Monitor,
        par: Par,
    ) {
        solve(machines, &mut self.segments, &self.order, self.depth, params, monitor, par);
    }

    /// What everything so far cost.
    pub(super) fn effort(&self) -> Effort {
        let caches = || self.segments.iter().filter_map(|s| s.cache.as_ref());
        Effort {
            kernel_values: self.segments.iter().map(|s| s.source.values_computed()).sum(),
            cache_hits: caches().map(|cache| cache.hits).sum(),
            cache_misses: caches().map(|cache| cache.misses).sum(),
            seconds: self.start.elapsed().as_secs_f64(),
        }
    }
}

/// Intercept, rho and certificate of a machine that has been solved.
pub(super) fn finish(machine: &Machine<'_>) -> (f64, f64, Certificate) {
    let (b, rho) = bias::intercept(&machine.problem);
    let stop = machine.stop.unwrap_or(StopReason::Stalled);
    (b, rho, certify(&machine.problem, (b, rho), machine.iterations, machine.rounds, stop))
}

/// Fits one machine over the rows named by `order` (each once, or twice for nu-SVR, whose halves are added).
#[allow(clippy::too_many_arguments)]
pub(super) fn single(
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    order: Vec<usize>,
    build: impl FnOnce(&[f64]) -> Result<DualProblem>,
    start: Option<Start<'_>>,
    params: &SvmParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<MachineModel> {
    let n = order.len();
    let mut columns = Columns::new(kernel, rows, order, vec![0..n], n, params, par);
    let mut problem = build(&columns.diagonal)?;
    if let Some(start) = start {
        let beta = start.of_machine(rows.rows(), 0, 1)?;
        problem.start_from(&columns.order.iter().map(|&row| beta[row]).collect::<Vec<f64>>());
    }
    let cold = problem.beta.iter().all(|b| *b == 0.0);
    let mut machine = Machine::new(problem, &[0], &columns.segments, &columns.order, params.tuning);
    if !cold {
        machine.renew_gradient(&columns.segments, par);
    }
    let mut machines = [machine];
    columns.solve(&mut machines, params, monitor, par);
    let [machine] = machines;
    let (intercept, rho, certificate) = finish(&machine);
    let mut beta = vec![0.0; rows.rows()];
    for (position, b) in machine.problem.beta.iter().enumerate() {
        beta[columns.order[position]] += b;
    }
    let support: Vec<usize> = (0..beta.len()).filter(|&row| beta[row] != 0.0).collect();
    let coefficients = support.iter().map(|&row| beta[row]).collect();
    Ok(MachineModel { support, coefficients, intercept, rho, certificate, effort: columns.effort() })
}

/// Kernels without a bound may be large against their differences, as LIBSVM's doubles expect.
pub(super) fn precision(kernel: KernelFunction<'_>, rows: Rows<'_>) -> Precision {
    let bounded = kernel.built_in().constant_diagonal().is_some();
    if bounded || !rows.is_f64() { Precision::Single } else { Precision::Double }
}

/// What a value of a function of the caller's is taken to cost, in features: always worth a cache.
const FUNCTION_DEPTH: usize = 1 << 12;

/// Features that a kernel value really touches, an estimate.
pub(super) fn depth(kernel: KernelFunction<'_>, rows: Rows<'_>) -> usize {
    match kernel {
        KernelFunction::BuiltIn(Kernel::Precomputed) => return 0,
        KernelFunction::Blocks(_) => return FUNCTION_DEPTH,
        KernelFunction::BuiltIn(_) => {}
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

/// Checks what every fit relies on; `weights` are the rows' C or weights.
pub(super) fn check(
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    weights: &[f64],
    params: &SvmParams,
) -> Result<()> {
    params.check()?;
    if let KernelFunction::BuiltIn(kernel) = kernel {
        kernel.check()?;
        kernel.check_rows("X", rows)?;
    }
    let n = rows.rows();
    if n == 0 {
        return Err(Error::param("X", "no rows", "at least one row"));
    }
    Error::check_len("upper bounds", n, weights.len())?;
    if matches!(kernel, KernelFunction::BuiltIn(Kernel::Precomputed)) {
        Error::check_len("columns of precomputed X", n, rows.cols())?;
    }
    match weights.iter().find(|c| !(c.is_finite() && **c > 0.0)) {
        Some(c) => Err(Error::param("C", c, "positive and finite for every row")),
        None => Ok(()),
    }
}

/// nu of the nu machines.
pub(super) fn check_nu(nu: f64) -> Result<()> {
    if nu > 0.0 && nu <= 1.0 { Ok(()) } else { Err(Error::param("nu", nu, "in (0, 1]")) }
}
