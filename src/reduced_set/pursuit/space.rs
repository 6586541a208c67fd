//! The space in which a pursuit measures its residual, one of two: the inner products of candidates and target.
//!
//! ```text
//! the feature space       <phi(p), phi(s)> = k(p, s)                            <w_j, phi(p)> = f_j(p)
//! predictions on rows X   <phi(p), phi(s)> = 1/n sum_i k(x_i, p) k(x_i, s)      <w_j, phi(p)> = 1/n sum_i f_j(x_i) k(x_i, p)
//! ```
//!
//! with f_j the target without its intercept. The second is the empirical estimate of E (f - f^)^2 (Weston and Bakir,
//! TR-132, the text before eq. 11); its matrix is positive semidefinite for every kernel. No array of n times the
//! number of candidates is needed: a column of it is an expansion over X, evaluated at the candidates. If the kernel values
//! of the candidates on X fit in memory, a column is their product with one of their rows.
//!
//! Invariant: the image of a candidate is its kernel values on X over sqrt(n), so that inner products of images are those of
//! predictions.
//!
//! Cost: m^2 kernel values for the norms in the feature space, m n in that of predictions; for a column, 1 or n kernel
//! values for each candidate.

use crate::context::Context;
use crate::data::{Rows, copy_columns, copy_flat, flat, gather, matrix};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, Kernel, KernelRows, Precision, diagonal, gram};
use crate::memory::{TryCollect, try_with_capacity, try_zeros};
use crate::simd::blas::{dot, row_times};
use ndarray::s;
use std::ops::Range;

/// Number of multiplications between two checks of the monitor.
const WORK_PER_CHECK: usize = 100_000_000;

/// The residual that a pursuit minimizes.
#[derive(Debug, Clone, Copy, Default)]
pub enum Criterion<'a> {
    /// ||w - w^||^2.
    #[default]
    Norm,
    /// The mean squared difference of the outputs on these rows.
    Predictions(Rows<'a>),
}

impl<'a> Criterion<'a> {
    /// Shortens the lifetime.
    pub(super) fn reborrow<'b>(self) -> Criterion<'b>
    where
        'a: 'b,
    {
        match self {
            Self::Norm => Criterion::Norm,
            Self::Predictions(rows) => Criterion::Predictions(rows.reborrow()),
        }
    }
}

/// The inner products of a space.
enum Products<'a> {
    Features(Box<KernelRows<'a>>),
    Predictions {
        rows: Rows<'a>,
        /// k(x_i, p) / sqrt(n), (candidates, n), if they fit in memory.
        images: Option<Vec<f64>>,
        /// f_j(x_i) / sqrt(n), (n, q).
        outputs: Vec<f64>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SpaceOptions {
    /// True if steps consider all candidates.
    pub(super) complete: bool,
    /// Maximum number of kernel values that are kept.
    pub(super) max_kept_values: usize,
    /// See `PursuitParams`.
    pub(super) norm_bound: Option<f64>,
}

/// Norms of a target and its inner products with the candidates.
pub(in crate::reduced_set) struct TargetProducts {
    /// ||w_j||^2, (q,), or one bound of their sum.
    norms: Vec<f64>,
    /// <w_j, phi(p)>, (candidates, q).
    targets: Vec<f64>,
}

impl TargetProducts {
    /// Computes them for the given candidates, or for the vectors of the target; a bound replaces the norm.
    pub(in crate::reduced_set) fn new(
        target: &ExpansionView<'_>,
        candidates: Option<Rows<'_>>,
        norm_bound: Option<f64>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let zero = vec![0.0; target.outputs()];
        let evaluator = Evaluator::new(&ExpansionView { intercepts: &zero, ..target.reborrow() })?;
        if let (Some(pool), Some(bound)) = (candidates, norm_bound) {
            return Ok(Self { norms: vec![bound], targets: in_blocks(&evaluator, pool, ctx)? });
        }
        let of_vectors = in_blocks(&evaluator, target.vectors, ctx)?;
        let norms = squared_norms(&target.kernel, &of_vectors, target.flat(), target.outputs())?;
        let targets = match candidates {
            Some(pool) => in_blocks(&evaluator, pool, ctx)?,
            None => of_vectors,
        };
        Ok(Self { norms, targets })
    }

    /// Returns those of some candidates.
    pub(in crate::reduced_set) fn of(&self, places: &[usize], outputs: usize) -> Result<Self> {
        let targets = matrix((self.targets.len() / outputs, outputs), &self.targets)?;
        Ok(Self { norms: self.norms.clone(), targets: flat(gather(&targets, places)?) })
    }

    /// Returns sum_j ||w_j||^2.
    pub(in crate::reduced_set) fn squared_norm(&self) -> f64 {
        self.norms.iter().sum()
    }

    /// Returns <w_j, phi(p)> of the candidate at a place, (q,).
    pub(in crate::reduced_set) fn target(&self, place: usize, outputs: usize) -> &[f64] {
        &self.targets[place * outputs..(place + 1) * outputs]
    }
}

/// Candidates and target in their space.
pub(in crate::reduced_set) struct Space<'a> {
    kernel: Kernel,
    pool: Rows<'a>,
    outputs: usize,
    products: Products<'a>,
    /// ||phi(p)||^2 of every candidate.
    pub(super) squared_norms: Vec<f64>,
    /// <w_j, phi(p)>, (candidates, q).
    pub(super) targets: Vec<f64>,
    /// ||w_j||^2, (q,), or one bound of their sum.
    pub(super) norms: Vec<f64>,
}

impl<'a> Space<'a> {
    /// Prepares the candidates: the given rows, or the vectors of the target.
    pub(super) fn new(
        target: &ExpansionView<'a>,
        candidates: Option<Rows<'a>>,
        criterion: Criterion<'a>,
        options: SpaceOptions,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (kernel, q) = (target.kernel, target.outputs());
        let pool = candidates.unwrap_or(target.vectors);
        match criterion {
            Criterion::Norm => {
                let of_target = TargetProducts::new(target, candidates, options.norm_bound, ctx)?;
                Ok(Self::of_features(kernel, pool, of_target, q, ctx)?)
            }
            Criterion::Predictions(rows) => {
                let zero = vec![0.0; q];
                let evaluator = Evaluator::new(&ExpansionView { intercepts: &zero, ..target.reborrow() })?;
                let rule = "at least one row to compare predictions on";
                Error::check_param(rows.rows() > 0, "rows", 0, rule)?;
                let what = "columns of the rows to compare predictions on";
                Error::check_len(what, target.vectors.cols(), rows.cols())?;
                let mut outputs = in_blocks(&evaluator, rows, ctx)?;
                let share = 1.0 / rows.rows() as f64;
                let mut norms = vec![0.0; q];
                for line in outputs.chunks_exact(q) {
                    for (norm, v) in norms.iter_mut().zip(line) {
                        *norm += share * v * v;
                    }
                }
                let n = rows.rows();
                for v in &mut outputs {
                    *v *= share.sqrt();
                }
                let (mut squared_norms, mut targets, mut images) = (Vec::new(), Vec::new(), None);
                if options.complete && n * pool.rows() <= options.max_kept_values {
                    let values = images_of(&kernel, pool, rows, ctx)?;
                    squared_norms = values.chunks_exact(n).map(|line| dot(line, line)).collect();
                    let mut counter = ctx.counter("inner products", pool.rows());
                    for line in values.chunks_exact(n) {
                        counter.charge((n * q) as u64)?;
                        targets.extend(row_times(line, &outputs, q));
                    }
                    images = Some(values);
                } else if options.complete {
                    let scaled: Vec<f64> = outputs.iter().map(|v| v * share.sqrt()).try_collect_vec()?;
                    let adjoint = ExpansionView::new(kernel, rows, matrix((n, q), &scaled)?, &zero)?;
                    targets = in_blocks(&Evaluator::new(&adjoint)?, pool, ctx)?;
                    squared_norms = mean_squares(&kernel, pool, rows, ctx)?;
                }
                let products = Products::Predictions { rows, images, outputs };
                Ok(Self { kernel, pool, outputs: q, products, squared_norms, targets, norms })
            }
        }
    }

    /// Returns the feature space of the candidates.
    pub(in crate::reduced_set) fn of_features(
        kernel: Kernel,
        pool: Rows<'a>,
        of_target: TargetProducts,
        outputs: usize,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let squared_norms = diagonal(&kernel, pool);
        if let Some(&negative) = squared_norms.iter().find(|&&v| v < 0.0) {
            return Err(indefinite(&kernel, negative));
        }
        let all: Vec<usize> = (0..pool.rows()).collect();
        let source = KernelRows::new(kernel, pool, &all, Precision::Double, ctx)?;
        let TargetProducts { norms, targets } = of_target;
        Ok(Self {
            kernel,
            pool,
            outputs,
            products: Products::Features(Box::new(source)),
            squared_norms,
            targets,
            norms,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.pool.rows()
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the error of a space whose matrix is not positive semidefinite.
    pub(super) fn indefinite(&self, evidence: f64) -> Error {
        indefinite(&self.kernel, evidence)
    }

    /// Returns <phi(p), phi(s)> of all candidates p, a column for every s in `list`.
    pub(super) fn columns(&self, list: &[usize], ctx: Context<'_>) -> Result<Vec<Vec<f64>>> {
        let count = self.len();
        match &self.products {
            Products::Features(source) => {
                let n_columns = list.len();
                let columns = list.iter().map(|_| try_zeros("columns of a kernel matrix", count));
                let mut columns = columns.collect::<Result<Vec<_>>>()?;
                let mut slices: Vec<&mut [f64]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
                let at_once = (8 * WORK_PER_CHECK / (count * self.pool.cols().max(1)).max(1))
                    .clamp(1, list.len().max(1));
                for (group, slices) in slices.chunks_mut(at_once).enumerate() {
                    let list = &list[group * at_once..][..slices.len()];
                    ctx.check("kernel values", group * at_once, n_columns)?;
                    source.compute(list, slices, ctx)?;
                }
                Ok(columns)
            }
            Products::Predictions { rows, images: Some(images), .. } => {
                products_of(images, rows.rows(), list, ctx)
            }
            Products::Predictions { rows, .. } => {
                let few = self.pool.gather(list)?;
                let mut values = for_blocks(*rows, list.len() * rows.cols().max(1), ctx, |block| {
                    gram(&self.kernel, block, few.view(), ctx.silent()).map(flat)
                })?;
                let share = 1.0 / rows.rows() as f64;
                for v in &mut values {
                    *v *= share;
                }
                let (zero, values) = (vec![0.0; list.len()], matrix((rows.rows(), list.len()), &values)?);
                let expansion = ExpansionView::new(self.kernel, *rows, values, &zero)?;
                let lines = in_blocks(&Evaluator::new(&expansion)?, self.pool, ctx)?;
                copy_columns(matrix((count, list.len()), &lines)?)
            }
        }
    }

    /// Returns f_j(x_i) / sqrt(n) of some outputs, (n, outputs); empty in the feature space.
    pub(super) fn residual(&self, of: Range<usize>) -> Result<Vec<f64>> {
        match &self.products {
            Products::Features(_) => Ok(Vec::new()),
            Products::Predictions { outputs, .. } => columns_of(outputs, self.outputs, of),
        }
    }

    /// Returns the images of a few candidates, (list, n); empty in the feature space.
    pub(super) fn images(&self, list: &[usize], ctx: Context<'_>) -> Result<Vec<f64>> {
        let Products::Predictions { rows, .. } = &self.products else { return Ok(Vec::new()) };
        images_of(&self.kernel, self.pool.gather(list)?.view(), *rows, ctx)
    }

    /// Returns k between a few candidates and those taken, (list, taken).
    pub(super) fn kernel(&self, list: &[usize], taken: &[usize], ctx: Context<'_>) -> Result<Vec<f64>> {
        gram(&self.kernel, self.pool.gather(list)?.view(), self.pool.gather(taken)?.view(), ctx.silent())
            .map(flat)
    }
}

/// Refuses a precomputed kernel.
pub(in crate::reduced_set) fn check_kernel(kernel: &Kernel) -> Result<()> {
    let rule = "a function of two vectors to be reduced";
    Error::check_param(*kernel != Kernel::Precomputed, "kernel", "precomputed", rule)
}

/// Returns the error of an indefinite kernel.
pub(in crate::reduced_set) fn indefinite(kernel: &Kernel, evidence: f64) -> Error {
    Error::Indefinite { kernel: kernel.name(), evidence }
}

/// Returns alpha_j' K alpha_j for every output.
fn squared_norms(kernel: &Kernel, of_vectors: &[f64], coefficients: &[f64], q: usize) -> Result<Vec<f64>> {
    let (mut norms, mut sizes) = (vec![0.0; q], vec![0.0; q]);
    for (values, alpha) in of_vectors.chunks_exact(q).zip(coefficients.chunks_exact(q)) {
        for j in 0..q {
            let part = values[j] * alpha[j];
            norms[j] += part;
            sizes[j] += part.abs();
        }
    }
    for (norm, size) in norms.iter_mut().zip(sizes) {
        if *norm < -1e-9 * size {
            return Err(indefinite(kernel, *norm));
        }
        *norm = norm.max(0.0);
    }
    Ok(norms)
}

/// Evaluates an expansion at rows, block by block.
fn in_blocks(evaluator: &Evaluator, rows: Rows<'_>, ctx: Context<'_>) -> Result<Vec<f64>> {
    let work = evaluator.len().max(1) * (rows.cols() + evaluator.outputs());
    for_blocks(rows, work, ctx, |block| evaluator.evaluate_double(block, ctx.silent()).map(flat))
}

/// Returns 1/n sum_i k(x_i, p)^2 for every candidate p.
fn mean_squares(kernel: &Kernel, pool: Rows<'_>, rows: Rows<'_>, ctx: Context<'_>) -> Result<Vec<f64>> {
    let n = rows.rows();
    // A block of kernel values stays below 32 MiB.
    let work = (n * rows.cols().max(1)).max(WORK_PER_CHECK / (1 + (1 << 22) / n));
    for_blocks(pool, work, ctx, |block| {
        let values = gram(kernel, block, rows, ctx.silent())?;
        Ok(flat(values).chunks_exact(n).map(|line| dot(line, line) / n as f64).collect())
    })
}

/// Returns k(x_i, p) / sqrt(n) of every candidate, (candidates, n).
fn images_of(kernel: &Kernel, pool: Rows<'_>, rows: Rows<'_>, ctx: Context<'_>) -> Result<Vec<f64>> {
    let share = 1.0 / (rows.rows() as f64).sqrt();
    let mut values = for_blocks(pool, rows.rows() * rows.cols().max(1), ctx, |block| {
        gram(kernel, block, rows, ctx.silent()).map(flat)
    })?;
    for v in &mut values {
        *v *= share;
    }
    Ok(values)
}

/// Returns the products of all lines (count, n) with those in `list`, a column for each of the latter.
fn products_of(images: &[f64], n: usize, list: &[usize], ctx: Context<'_>) -> Result<Vec<Vec<f64>>> {
    // Lines and parts of lines that fit the second cache together.
    const LINES: usize = 16;
    const PART: usize = 1024;
    let (count, columns) = (images.len() / n, list.len());
    let mut out = try_zeros("products of predictions", count * columns)?;
    let at_once =
        (8 * WORK_PER_CHECK / (n * columns).max(1)).next_multiple_of(LINES).max(LINES * ctx.threads());
    for (group, out) in out.chunks_mut(at_once * columns).enumerate() {
        ctx.check("inner products", group * at_once, count)?;
        ctx.for_each_chunk(out, LINES * columns, |task, out| {
            for from in (0..n).step_by(PART) {
                let to = n.min(from + PART);
                for (c, &s) in list.iter().enumerate() {
                    let right = &images[s * n + from..s * n + to];
                    for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                        let p = group * at_once + task * LINES + i;
                        out[c] += dot(&images[p * n + from..p * n + to], right);
                    }
                }
            }
        });
    }
    copy_columns(matrix((count, columns), &out)?)
}

/// Copies some columns of a row-major matrix (n, q).
pub(super) fn columns_of(values: &[f64], q: usize, columns: Range<usize>) -> Result<Vec<f64>> {
    copy_flat(matrix((values.len() / q, q), values)?.slice(s![.., columns]))
}

/// Concatenates the results of `evaluate` for blocks of rows; a row takes `work` multiplications.
pub(in crate::reduced_set) fn for_blocks(
    rows: Rows<'_>,
    work: usize,
    ctx: Context<'_>,
    evaluate: impl Fn(Rows<'_>) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let n = rows.rows();
    let size = (WORK_PER_CHECK / work.max(1)).clamp(1, n.max(1)).max(n.min(16));
    if size >= n {
        return evaluate(rows);
    }
    let mut out = Vec::new();
    for start in (0..n).step_by(size) {
        ctx.check("inner products", start, n)?;
        let block = rows.slice(start..n.min(start + size));
        let values = evaluate(block)?;
        if start == 0 {
            out = try_with_capacity("values at all rows", values.len() / block.rows() * n)?;
        }
        out.extend(values);
    }
    Ok(out)
}
