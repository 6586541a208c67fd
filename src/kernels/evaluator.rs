//! Expansions made ready for prediction: F = K(X, Z) B + 1 b'.
//!
//! Outputs are computed in passes ([`Pass`]), the fastest first. A pass leaves NaN where it does not suffice, because a row
//! is far from the vectors or outside a format, or because sums overflow; the next pass computes these rows again. Rows that
//! are not finite after the last pass are an error.
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
//! Vectors are packed at the first pass that needs them, once for each precision. Other coefficients for the same vectors
//! leave them packed ([`Evaluator::set_coefficients`]).
//!
//! Invariant: an output depends on its row alone, not on the other rows nor on the number of threads.

mod single_precision;

use super::bytes::Unit;
use super::gram::indices;
use super::overflow_check::Magnitudes;
use super::pack::Panels;
use super::product::{MAX_BLOCK_ROWS, PackedCoefficients, units};
use super::standardization::Standardization;
use super::weights::Weights;
use super::{Kernel, Precision};
use crate::context::Context;
use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::fast_gauss::FastGaussTransform;
use crate::memory::{self, TryCollect, TryToVec, try_vec};
use crate::once::OnceCell;
use crate::simd::Real;
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

/// Context reported when the allocation of a model fails.
const MODEL: &str = "a packed model";
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
}

/// Vectors packed for the passes that read kernel values.
#[derive(Default)]
struct PackedVectors {
    standardization: OnceCell<Arc<Standardization>>,
    /// `None` if the vectors are not multiples of one unit.
    bytes: OnceCell<Option<Panels<f32>>>,
    single: OnceCell<Panels<f32>>,
    double: OnceCell<Panels<f64>>,
}

/// The part of an expansion that can be exchanged without packing its vectors again.
struct Coefficients {
    /// (m, q), row-major.
    values: Vec<f64>,
    intercepts: Vec<f64>,
    /// True if the errors of outputs in single precision are too large.
    needs_double: OnceCell<bool>,
    /// For the linear kernel; with the units of the outputs.
    weights: OnceCell<Option<(Weights, Vec<f64>)>>,
    /// For Gaussians in few columns.
    fast_gauss: OnceCell<Option<FastGaussTransform>>,
    single: OnceCell<PackedCoefficients<f32>>,
    double: OnceCell<PackedCoefficients<f64>>,
}

impl Coefficients {
    fn new(expansion: &ExpansionView<'_>) -> Result<Self> {
        Ok(Self {
            values: memory::try_to_vec(MODEL, expansion.flat())?,
            intercepts: expansion.intercepts.try_to_vec()?,
            needs_double: OnceCell::default(),
            weights: OnceCell::default(),
            fast_gauss: OnceCell::default(),
            single: OnceCell::default(),
            double: OnceCell::default(),
        })
    }

    /// Computes the weights of the columns, in units of each output; `None` if they are not worth it.
    fn collapse(&self, vectors: Rows<'_>, ctx: Context<'_>) -> Result<Option<(Weights, Vec<f64>)>> {
        let q = self.intercepts.len();
        let (units, mut scaled) = (units(&self.values, q), memory::try_to_vec(MODEL, &self.values)?);
        for line in scaled.chunks_exact_mut(q) {
            line.iter_mut().zip(&units).for_each(|(c, unit)| *c /= unit);
        }
        Ok(Weights::new(vectors, &scaled, q, ctx)?.map(|weights| (weights, units)))
    }
}

/// An expansion prepared for prediction. Reusable and shareable.
pub struct Evaluator {
    kernel: Kernel,
    vectors: OwnedRows,
    packed: PackedVectors,
    coefficients: Coefficients,
}

impl Evaluator {
    /// Copies the expansion. Vectors are packed when the first rows are evaluated, whose precision they follow.
    ///
    /// # Errors
    /// See [`ExpansionView::new`].
    pub fn new(expansion: &ExpansionView<'_>) -> Result<Self> {
        let ExpansionView { kernel, vectors, coefficients, intercepts } = *expansion;
        let expansion = ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
        kernel.check_rows("vectors", vectors)?;
        let all: Vec<usize> = (0..vectors.rows()).try_collect_vec()?;
        Ok(Self {
            kernel,
            vectors: vectors.gather(&all)?,
            packed: PackedVectors::default(),
            coefficients: Coefficients::new(&expansion)?,
        })
    }

    /// Replaces coefficients (m, q) and intercepts (q,), and keeps the packed vectors.
    ///
    /// # Errors
    /// See [`ExpansionView::new`]; the expansion is unchanged after an error.
    pub fn set_coefficients(&mut self, coefficients: ArrayView2<'_, f64>, intercepts: &[f64]) -> Result<()> {
        let view = ExpansionView::new(self.kernel, self.vectors.view(), coefficients, intercepts)?;
        self.coefficients = Coefficients::new(&view)?;
        Ok(())
    }

    /// Number of outputs q.
    pub fn outputs(&self) -> usize {
        self.coefficients.intercepts.len()
    }

    /// Number of vectors m, the kernel values of one row.
    pub fn len(&self) -> usize {
        self.vectors.view().rows()
    }

    /// Returns whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Computes F, (n, q): in single precision for rows of bytes or single precision, unless its errors are too large; else
    /// in double precision.
    ///
    /// # Errors
    /// [`Error::Shape`] where the rows have another number of columns than the vectors (or, for a precomputed
    /// kernel, fewer than the largest index), [`Error::Param`] for rows outside the kernel's domain, [`Error::Stopped`].
    pub fn evaluate(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        let in_double = x.is_f64() || self.needs_double(ctx)?;
        self.evaluate_in(x, if in_double { Precision::Double } else { Precision::Single }, ctx)
    }

    /// Computes F in double precision whatever the rows hold.
    ///
    /// # Errors
    /// See [`Evaluator::evaluate`].
    pub fn evaluate_double(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.evaluate_in(x, Precision::Double, ctx)
    }

    pub(super) fn evaluate_in(&self, x: Rows<'_>, kind: Precision, ctx: Context<'_>) -> Result<Array2<f64>> {
        let (n, q) = (x.rows(), self.outputs());
        let mut out = memory::try_with_capacity("the outputs", n.saturating_mul(q))?;
        (0..n).for_each(|_| out.extend_from_slice(&self.coefficients.intercepts));
        if !self.is_empty() && n > 0 {
            let mut left = None;
            for &pass in self.passes(x, kind, ctx)? {
                if self.run(pass, x, left.as_deref(), &mut out, ctx)? {
                    left = non_finite_rows(&out, q)?;
                    if left.is_none() {
                        break;
                    }
                }
            }
            if let Some(rows) = left {
                return Err(self.non_finite(x, rows[0]));
            }
        }
        Ok(Array2::from_shape_vec((n, q), out).expect("a line of outputs a row"))
    }

    /// Returns the passes for rows, in their order.
    fn passes(&self, x: Rows<'_>, precision: Precision, ctx: Context<'_>) -> Result<&'static [Pass]> {
        const SINGLE: [Pass; 4] = [Pass::FastGauss, Pass::Bytes, Pass::Single, Pass::Double];
        const DOUBLE: [Pass; 2] = [Pass::FastGauss, Pass::Double];
        if self.kernel == Kernel::Precomputed {
            return Ok(&[Pass::Precomputed]);
        }
        Error::check_len("columns of X", self.vectors.view().cols(), x.cols())?;
        self.kernel.check_rows("X", x)?;
        if self.weights(ctx)?.is_some() {
            return Ok(&[Pass::Weights]);
        }
        Ok(if precision == Precision::Single { &SINGLE } else { &DOUBLE })
    }

    /// Runs a pass for some rows, or all; false if it does not apply to this expansion.
    fn run(
        &self,
        pass: Pass,
        x: Rows<'_>,
        rows: Option<&[usize]>,
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<bool> {
        let (vectors, coefficients, packed) = (self.vectors.view(), &self.coefficients, &self.packed);
        match pass {
            Pass::Precomputed => self.add_columns(x, out)?,
            Pass::Weights => {
                let Some((weights, units)) = self.weights(ctx)? else { return Ok(false) };
                let work = self.outputs().saturating_mul(x.cols().max(8));
                self.for_rows(x.rows(), rows, work, out, ctx, |list, out| weights.add(x, list, units, out))?;
            }
            Pass::FastGauss => {
                let make = || FastGaussTransform::new(&self.kernel, vectors, &coefficients.values, ctx);
                let Some(sums) = coefficients.fast_gauss.get_or_try_init(make)? else { return Ok(false) };
                self.for_rows(x.rows(), rows, sums.work(), out, ctx, |list, out| sums.add(x, list, out))?;
            }
            Pass::Bytes => {
                let make = || {
                    let unit = Unit::find(&self.kernel, vectors, ctx);
                    unit.map(|unit| self.pack(Some(unit), ctx)).transpose()
                };
                let Some(panels) = packed.bytes.get_or_try_init(make)? else { return Ok(false) };
                self.add_products(panels, &coefficients.single, x, rows, out, ctx)?;
            }
            Pass::Single => {
                let panels = packed.single.get_or_try_init(|| self.pack(None, ctx))?;
                if !panels.is_single() {
                    return Ok(false);
                }
                self.add_products(panels, &coefficients.single, x, rows, out, ctx)?;
            }
            Pass::Double => {
                let panels = packed.double.get_or_try_init(|| self.pack(None, ctx))?;
                self.add_products(panels, &coefficients.double, x, rows, out, ctx)?;
            }
        }
        Ok(true)
    }

    /// Returns the weights of the columns; `None` for other kernels than the linear one, and if they are not worth it.
    fn weights(&self, ctx: Context<'_>) -> Result<Option<&(Weights, Vec<f64>)>> {
        if self.kernel != Kernel::Linear {
            return Ok(None);
        }
        let make = || self.coefficients.collapse(self.vectors.view(), ctx);
        Ok(self.coefficients.weights.get_or_try_init(make)?.as_ref())
    }

    /// Adds products of kernel values and coefficients to the outputs of some rows, or of all.
    fn add_products<T: Real>(
        &self,
        panels: &Panels<T>,
        coefficients: &OnceCell<PackedCoefficients<T>>,
        x: Rows<'_>,
        rows: Option<&[usize]>,
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<()> {
        let pack = || PackedCoefficients::new(&self.coefficients.values, self.outputs());
        let coefficients = coefficients.get_or_try_init(pack)?;
        // One output costs hardly more than the kernel value.
        let work = self.len().saturating_mul(x.cols().max(8) + self.outputs() - 1);
        self.for_rows(x.rows(), rows, work, out, ctx, |list, out| {
            coefficients.add_product(panels, x, list, out)
        })
    }

    fn standardization(&self) -> Result<&Arc<Standardization>> {
        let make = || Ok(Arc::new(Standardization::new(&self.kernel, self.vectors.view())));
        self.packed.standardization.get_or_try_init(make)
    }

    /// Packs all vectors, as bytes if a unit is given.
    fn pack<T: Real>(&self, unit: Option<Unit>, ctx: Context<'_>) -> Result<Panels<T>> {
        let all: Vec<usize> = (0..self.len()).try_collect_vec()?;
        Panels::pack(self.vectors.view(), &all, self.standardization()?, unit, ctx)
    }

    /// Adds the columns of precomputed rows times the coefficients.
    fn add_columns(&self, x: Rows<'_>, out: &mut [f64]) -> Result<()> {
        let q = self.outputs();
        let indices = indices(self.vectors.view(), x.cols())?;
        let mut values = try_vec![0.0; x.cols()]?;
        for (i, out) in out.chunks_exact_mut(q).enumerate() {
            values.fill(0.0);
            x.for_each_in_row(i, |k, v| values[k] = v);
            for (&index, coefficients) in indices.iter().zip(self.coefficients.values.chunks_exact(q)) {
                for (out, c) in out.iter_mut().zip(coefficients) {
                    *out += c * values[index];
                }
            }
        }
        Ok(())
    }

    /// Calls `add(rows, their outputs)` for blocks of some of the `n` rows, or of all; a row costs `work` multiply-adds.
    /// The outputs of some rows start from the intercepts again.
    fn for_rows(
        &self,
        n: usize,
        rows: Option<&[usize]>,
        work: usize,
        out: &mut [f64],
        ctx: Context<'_>,
        add: impl Fn(&[usize], &mut [f64]) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let (q, intercepts) = (self.outputs(), &self.coefficients.intercepts);
        let Some(rows) = rows else {
            return for_blocks(n, q, work, out, ctx, |range, out| add(&range.try_collect_vec()?, out));
        };
        let mut values = memory::try_with_capacity("the outputs", rows.len() * q)?;
        for _ in rows {
            values.extend_from_slice(intercepts);
        }
        for_blocks(rows.len(), q, work, &mut values, ctx, |range, out| add(&rows[range], out))?;
        for (&row, values) in rows.iter().zip(values.chunks_exact(q)) {
            out[row * q..(row + 1) * q].copy_from_slice(values);
        }
        Ok(())
    }

    /// Returns the error of a row whose outputs leave double precision.
    fn non_finite(&self, x: Rows<'_>, row: usize) -> Error {
        let rule = "such that kernel values times coefficients stay within double precision: scale the rows";
        let overflow = self.standardization().and_then(|standardization| {
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

/// Returns the rows whose outputs (n, q) are not all finite; `None` if there are none.
fn non_finite_rows(out: &[f64], q: usize) -> Result<Option<Vec<usize>>> {
    if out.iter().all(|f| f.is_finite()) {
        return Ok(None);
    }
    let lines = out.chunks_exact(q).enumerate();
    let rows = lines.filter(|(_, line)| line.iter().any(|f| !f.is_finite())).map(|(i, _)| i);
    rows.try_collect_vec().map(Some)
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
