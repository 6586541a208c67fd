//! Expansions made ready for prediction: F = K(X, Z) B + 1 b'.
//!
//! Outputs are computed in passes ([`Pass`]), the fastest first. A pass does not cover rows that are far from the vectors or
//! outside a format, or whose sums overflow; the next pass computes these rows again. Rows that no pass covers are an error.
//!
//! | kernel | rows | passes |
//! |---|---|---|
//! | linear, with at most as many weights as the vectors hold numbers | all | weights of the columns (`weights`) |
//! | others | bytes, single precision | fast Gauss transform (`fast_gauss`), integers (`bytes`), single precision, double precision |
//! | others | double precision | fast Gauss transform, double precision |
//! | precomputed | all | columns of X |
//!
//! Expansions whose outputs would be off by more than a thousandth of their spread in single precision start in double
//! precision: see [`Evaluator::needs_double`].
//!
//! Vectors are packed at the first pass that needs them, once for each precision of the rows ([`packed`]). A
//! [`PackedExpansion`] does not hold the vectors themselves: their owner passes them to the calls that need them, the first
//! ones and those with rows that leave the precision. An [`Evaluator`] holds both. Other coefficients for the same vectors
//! leave them packed ([`Evaluator::set_coefficients`]).
//!
//! Invariant: an output depends on its row alone, not on the other rows nor on the number of threads.

mod packed;
mod single_precision;
mod with_vectors;

use super::gram::indices;
use super::overflow_check::Magnitudes;
use super::pack::Panels;
use super::product::{MAX_BLOCK_ROWS, PackedCoefficients};
use super::{Kernel, Precision};
use crate::context::Context;
use crate::data::{RowSet, Rows};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::fast_gauss::FastGaussTransform;
use crate::memory;
use crate::once::OnceCell;
use crate::simd::Real;
use ndarray::Array2;
use packed::{Coefficients, PackedVectors};
use std::sync::Arc;

pub use with_vectors::Evaluator;

/// Kernel values times features of a thread between two checks of the monitor.
const WORK_PER_CHECK: usize = 200_000_000;
/// Minimum number of multiply-adds of a task: rows that cost little come in larger blocks.
const MIN_TASK_WORK: usize = 1 << 18;

/// One way to compute outputs.
#[derive(Debug, Clone, Copy)]
enum Pass {
    /// Picks columns of precomputed rows.
    Precomputed,
    /// Multiplies rows by the weights of the columns.
    Weights,
    /// Sums Gaussians in few columns by polynomials.
    FastGauss,
    /// Computes kernel values exactly in integers, for vectors and rows of multiples of one unit.
    Bytes,
    /// Computes kernel values in single precision.
    Single,
    /// Computes kernel values in double precision.
    Double,
    /// Computes kernel values in double precision for rows that single precision does not cover.
    Rest,
}

/// The end of a pass.
enum PassResult {
    /// Outputs of all its rows but these are computed.
    Computed(Option<Vec<usize>>),
    /// The pass does not apply to the expansion.
    Inapplicable,
    /// The pass was not run, since it needs the vectors.
    NeedsVectors,
}

/// Outputs of which those of some rows are missing, since they need the vectors.
#[derive(Debug, Default)]
pub struct Partial {
    precision: Option<Precision>,
    /// Number of passes that were run.
    passes: usize,
    /// (n, q); empty before the first pass.
    out: Vec<f64>,
    /// The missing rows, ascending; all rows if `None`.
    missing: Option<Vec<usize>>,
}

impl Partial {
    /// No outputs yet, of an expansion that is to be evaluated in double precision whatever the rows hold.
    pub(crate) fn in_double() -> Self {
        Self { precision: Some(Precision::Double), ..Self::default() }
    }
}

/// The outputs of packed vectors: all of them, or those of some rows.
#[derive(Debug)]
pub enum Evaluation {
    /// F, (n, q).
    Complete(Array2<f64>),
    /// To be completed by [`PackedExpansion::complete`].
    Partial(Partial),
}

/// An expansion prepared for prediction, whose vectors belong to another object. Reusable and shareable.
pub struct PackedExpansion {
    kernel: Kernel,
    /// Number of vectors and of their columns.
    shape: (usize, usize),
    packed: PackedVectors,
    coefficients: Arc<Coefficients>,
}

impl PackedExpansion {
    /// Copies the coefficients. Vectors are packed when the first rows are evaluated, whose precision they follow.
    ///
    /// # Errors
    /// See [`ExpansionView::new`].
    pub fn new(expansion: &ExpansionView<'_>) -> Result<Self> {
        let ExpansionView { kernel, vectors, coefficients, intercepts } = *expansion;
        let expansion = ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
        kernel.check_rows("vectors", vectors)?;
        Ok(Self {
            kernel,
            shape: (vectors.rows(), vectors.cols()),
            packed: PackedVectors::default(),
            coefficients: Arc::new(Coefficients::new(&expansion)?),
        })
    }

    /// Returns the number of outputs q, the columns of the result.
    pub fn outputs(&self) -> usize {
        self.coefficients.intercepts.len()
    }

    /// Returns the number of vectors m, the kernel values of one row.
    pub fn len(&self) -> usize {
        self.shape.0
    }

    /// Returns whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether vectors were packed for rows like these, so that most of them can be evaluated without the vectors.
    pub fn is_packed_for(&self, x: Rows<'_>) -> bool {
        let Coefficients { weights, fast_gauss, needs_double, .. } = &*self.coefficients;
        matches!(weights.get(), Some(Some(_)))
            || matches!(fast_gauss.get(), Some(Some(_)))
            || if x.is_f64() { self.packed.double.get().is_some() } else { needs_double.get().is_some() }
    }

    /// Computes F, (n, q), as [`Evaluator::evaluate`], as far as it does not need the vectors.
    ///
    /// # Errors
    /// See [`Evaluator::evaluate`].
    pub fn evaluate_packed(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Evaluation> {
        self.run_passes(Partial::default(), None, x, ctx)
    }

    /// Computes the missing outputs of the same rows; all of them for the default. `vectors` are those of the expansion.
    ///
    /// # Errors
    /// See [`Evaluator::evaluate`]; [`Error::Shape`] for other vectors or rows.
    pub fn complete(
        &self,
        partial: Partial,
        vectors: Rows<'_>,
        x: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Array2<f64>> {
        Error::check_len("vectors", self.shape.0, vectors.rows())?;
        Error::check_len("columns of the vectors", self.shape.1, vectors.cols())?;
        if !partial.out.is_empty() {
            Error::check_len(
                "outputs of the rows",
                x.rows().saturating_mul(self.outputs()),
                partial.out.len(),
            )?;
        }
        match self.run_passes(partial, Some(vectors), x, ctx)? {
            Evaluation::Complete(outputs) => Ok(outputs),
            Evaluation::Partial(_) => unreachable!("every pass runs if there are vectors"),
        }
    }

    fn evaluate_in(
        &self,
        vectors: Rows<'_>,
        x: Rows<'_>,
        precision: Precision,
        ctx: Context<'_>,
    ) -> Result<Array2<f64>> {
        self.complete(Partial { precision: Some(precision), ..Partial::default() }, vectors, x, ctx)
    }

    /// Runs the passes for missing outputs until all are computed, or until one needs vectors that are not given.
    fn run_passes(
        &self,
        mut partial: Partial,
        vectors: Option<Rows<'_>>,
        x: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Evaluation> {
        let (n, q) = (x.rows(), self.outputs());
        let is_constant = self.is_empty() || n == 0;
        if partial.precision.is_none() && !is_constant {
            partial.precision = self.precision(vectors, x, ctx)?;
            if partial.precision.is_none() {
                return Ok(Evaluation::Partial(partial));
            }
        }
        if partial.out.is_empty() {
            partial.out = memory::try_with_capacity("the outputs", n.saturating_mul(q))?;
            (0..n).for_each(|_| partial.out.extend_from_slice(&self.coefficients.intercepts));
        }
        let passes = match partial.precision {
            Some(precision) if !is_constant => self.passes(vectors, x, precision, ctx)?,
            _ => Some(&[][..]),
        };
        let Some(passes) = passes else { return Ok(Evaluation::Partial(partial)) };
        let mut is_complete = is_constant;
        while let Some(&pass) = passes.get(partial.passes)
            && !is_complete
        {
            match self.run(pass, vectors, x, partial.missing.as_deref(), &mut partial.out, ctx)? {
                PassResult::Computed(missing) => {
                    is_complete = missing.is_none();
                    partial.missing = missing;
                }
                PassResult::Inapplicable => {}
                PassResult::NeedsVectors => return Ok(Evaluation::Partial(partial)),
            }
            partial.passes += 1;
        }
        if let Some(rows) = &partial.missing {
            let Some(vectors) = vectors else { return Ok(Evaluation::Partial(partial)) };
            return Err(self.non_finite(vectors, x, rows[0]));
        }
        let outputs = Array2::from_shape_vec((n, q), partial.out).expect("a line of outputs a row");
        Ok(Evaluation::Complete(outputs))
    }

    /// Returns the precision in which rows are evaluated; `None` if that is not known without the vectors.
    fn precision(
        &self,
        vectors: Option<Rows<'_>>,
        x: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Option<Precision>> {
        let needs_double = match (self.coefficients.needs_double.get(), vectors) {
            _ if x.is_f64() => true,
            (Some(&needs_double), _) => needs_double,
            (None, Some(vectors)) => self.needs_double(vectors, ctx)?,
            (None, None) => return Ok(None),
        };
        Ok(Some(if needs_double { Precision::Double } else { Precision::Single }))
    }

    /// Returns the passes for rows, in their order; `None` if they are not known without the vectors.
    fn passes(
        &self,
        vectors: Option<Rows<'_>>,
        x: Rows<'_>,
        precision: Precision,
        ctx: Context<'_>,
    ) -> Result<Option<&'static [Pass]>> {
        const SINGLE: [Pass; 4] = [Pass::FastGauss, Pass::Bytes, Pass::Single, Pass::Rest];
        const DOUBLE: [Pass; 2] = [Pass::FastGauss, Pass::Double];
        if self.kernel == Kernel::Precomputed {
            return Ok(Some(&[Pass::Precomputed]));
        }
        Error::check_len("columns of X", self.shape.1, x.cols())?;
        self.kernel.check_rows("X", x)?;
        if self.kernel == Kernel::Linear {
            let make = |vectors: Rows<'_>| self.coefficients.collapse(vectors, ctx);
            match known_or_made(&self.coefficients.weights, vectors, make)? {
                None => return Ok(None),
                Some(Some(_)) => return Ok(Some(&[Pass::Weights])),
                Some(None) => {}
            }
        }
        Ok(Some(if precision == Precision::Single { &SINGLE } else { &DOUBLE }))
    }

    /// Runs a pass for some rows, or all.
    fn run(
        &self,
        pass: Pass,
        vectors: Option<Rows<'_>>,
        x: Rows<'_>,
        rows: Option<&[usize]>,
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<PassResult> {
        let (kernel, coefficients, packed) = (&self.kernel, &*self.coefficients, &self.packed);
        let missing = match pass {
            Pass::Precomputed => {
                let Some(vectors) = vectors else { return Ok(PassResult::NeedsVectors) };
                self.add_columns(vectors, x, out)?
            }
            Pass::Weights => {
                let Some(Some((weights, units))) = coefficients.weights.get() else {
                    return Ok(PassResult::Inapplicable);
                };
                let work = self.outputs().saturating_mul(x.cols().max(8));
                self.for_rows(x.rows(), rows, work, out, ctx, |list, out, _| {
                    weights.add(x, list, units, out)
                })?
            }
            Pass::FastGauss => {
                let make =
                    |vectors: Rows<'_>| FastGaussTransform::new(kernel, vectors, &coefficients.values, ctx);
                match known_or_made(&coefficients.fast_gauss, vectors, make)? {
                    None => return Ok(PassResult::NeedsVectors),
                    Some(None) => return Ok(PassResult::Inapplicable),
                    Some(Some(sums)) => {
                        self.for_rows(x.rows(), rows, sums.work(), out, ctx, |list, out, uncovered| {
                            sums.add(x, list, out, uncovered)
                        })?
                    }
                }
            }
            Pass::Bytes | Pass::Single => {
                let panels = if let Pass::Bytes = pass {
                    known_or_made(&packed.bytes, vectors, |vectors| packed.pack_bytes(kernel, vectors, ctx))?
                } else {
                    known_or_made(&packed.single, vectors, |vectors| {
                        packed.pack_single(kernel, vectors, ctx)
                    })?
                };
                match panels {
                    None => return Ok(PassResult::NeedsVectors),
                    Some(None) => return Ok(PassResult::Inapplicable),
                    Some(Some(panels)) => {
                        self.add_products(panels, &coefficients.single, x, rows, out, ctx)?
                    }
                }
            }
            Pass::Double | Pass::Rest => {
                let panels = match (pass, vectors) {
                    (_, None) => packed.known_double(),
                    (Pass::Rest, Some(vectors)) => Some(packed.double_for_rest(kernel, vectors, ctx)?),
                    (_, Some(vectors)) => Some(packed.double(kernel, vectors, ctx)?),
                };
                let Some(panels) = panels else { return Ok(PassResult::NeedsVectors) };
                self.add_products(&panels, &coefficients.double, x, rows, out, ctx)?
            }
        };
        Ok(PassResult::Computed(missing))
    }

    /// Adds products of kernel values and coefficients to the outputs of some rows, or of all; returns the rows that the
    /// precision does not cover.
    fn add_products<T: Real>(
        &self,
        panels: &Panels<T>,
        coefficients: &OnceCell<PackedCoefficients<T>>,
        x: Rows<'_>,
        rows: Option<&[usize]>,
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<Option<Vec<usize>>> {
        let pack = || PackedCoefficients::new(&self.coefficients.values, self.outputs());
        let coefficients = coefficients.get_or_try_init(pack)?;
        // One output costs hardly more than the kernel value.
        let work = self.len().saturating_mul(x.cols().max(8) + self.outputs() - 1);
        self.for_rows(x.rows(), rows, work, out, ctx, |list, out, uncovered| {
            coefficients.add_product(panels, x, list, out, uncovered)
        })
    }

    /// Adds the columns of precomputed rows times the coefficients; returns the rows whose outputs are not finite.
    fn add_columns(&self, vectors: Rows<'_>, x: Rows<'_>, out: &mut [f64]) -> Result<Option<Vec<usize>>> {
        let q = self.outputs();
        let indices = indices(vectors, x.cols())?;
        let uncovered = RowSet::new(x.rows());
        x.for_each_dense(0..x.rows(), |i, values| {
            let out = &mut out[i * q..(i + 1) * q];
            for (&index, coefficients) in indices.iter().zip(self.coefficients.values.chunks_exact(q)) {
                for (out, c) in out.iter_mut().zip(coefficients) {
                    *out += c * values[index];
                }
            }
            if !out.iter().all(|f| f.is_finite()) {
                uncovered.insert(i);
            }
        })?;
        Ok(uncovered.into_rows())
    }

    /// Calls `add(rows, their outputs, the rows that are not covered)` for blocks of some of the `n` rows, or of all; a row
    /// costs `work` multiply-adds. The outputs of some rows start from the intercepts again. Returns the rows that are not
    /// covered or whose outputs are not finite.
    fn for_rows(
        &self,
        n: usize,
        rows: Option<&[usize]>,
        work: usize,
        out: &mut [f64],
        ctx: Context<'_>,
        add: impl Fn(&[usize], &mut [f64], &RowSet) -> Result<()> + Sync + Send,
    ) -> Result<Option<Vec<usize>>> {
        let (q, intercepts, uncovered) = (self.outputs(), &self.coefficients.intercepts, RowSet::new(n));
        let add = |list: &[usize], out: &mut [f64]| {
            add(list, out, &uncovered)?;
            if !out.iter().all(|f| f.is_finite()) {
                for (&row, out) in list.iter().zip(out.chunks_exact(q)) {
                    if !out.iter().all(|f| f.is_finite()) {
                        uncovered.insert(row);
                    }
                }
            }
            Ok(())
        };
        if let Some(rows) = rows {
            let mut values = memory::try_with_capacity("the outputs", rows.len() * q)?;
            for _ in rows {
                values.extend_from_slice(intercepts);
            }
            for_blocks(rows.len(), q, work, &mut values, ctx, |range, out| add(&rows[range], out))?;
            for (&row, values) in rows.iter().zip(values.chunks_exact(q)) {
                out[row * q..(row + 1) * q].copy_from_slice(values);
            }
        } else {
            for_blocks(n, q, work, out, ctx, |range, out| add(&range.collect::<Vec<_>>(), out))?;
        }
        Ok(uncovered.into_rows())
    }

    /// Returns the error of a row whose outputs leave double precision.
    fn non_finite(&self, vectors: Rows<'_>, x: Rows<'_>, row: usize) -> Error {
        let rule = "such that kernel values times coefficients stay within double precision: scale the rows";
        let overflow = self.packed.standardization(&self.kernel, vectors).and_then(|standardization| {
            let magnitudes = Magnitudes::of_standardized(
                "X",
                self.kernel.into(),
                standardization,
                x,
                Context::SEQUENTIAL,
            )?;
            magnitudes.check_overflow("X", Precision::Double)
        });
        overflow.err().unwrap_or_else(|| Error::param("X", format!("row {row}"), rule))
    }
}

/// Returns the value of a cell, which is made from the vectors if it is empty; `None` if it is empty and there are none.
fn known_or_made<'c, T>(
    cell: &'c OnceCell<T>,
    vectors: Option<Rows<'_>>,
    make: impl FnOnce(Rows<'_>) -> Result<T>,
) -> Result<Option<&'c T>> {
    match vectors {
        Some(vectors) => cell.get_or_try_init(|| make(vectors)).map(Some),
        None => Ok(cell.get()),
    }
}

/// Calls `add(positions, their outputs)` for blocks of `n` positions with `q` outputs each, which cost `work` multiply-adds.
fn for_blocks(
    n: usize,
    q: usize,
    work: usize,
    out: &mut [f64],
    ctx: Context<'_>,
    add: impl Fn(std::ops::Range<usize>, &mut [f64]) -> Result<()> + Sync + Send,
) -> Result<()> {
    // Equal tasks, at most a block each, so that the last one does not keep the others waiting.
    let block = MAX_BLOCK_ROWS.max(MIN_TASK_WORK / work.max(1));
    let tasks = n.div_ceil(block).next_multiple_of(ctx.threads()).min(n);
    let rows_per_task = n.div_ceil(tasks);
    // Tasks between two checks of the monitor, some for each thread.
    let work = rows_per_task.saturating_mul(work);
    let turn = (WORK_PER_CHECK / work.max(1)).max(1).saturating_mul(4 * ctx.threads());
    for (round, out) in out.chunks_mut((turn.saturating_mul(rows_per_task * q)).max(1)).enumerate() {
        ctx.check("outputs", round * turn * rows_per_task, n)?;
        ctx.try_for_each_chunk(out, rows_per_task * q, |task, out| {
            let first = (round * turn + task) * rows_per_task;
            add(first..first + out.len() / q, out)
        })?;
    }
    Ok(())
}
