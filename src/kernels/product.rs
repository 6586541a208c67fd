//! The fused product F = K(X, Z) B + 1 b': a tile of kernel values is multiplied by its coefficients while it is in
//! the first cache, so K is never stored. Every output shares every kernel value.
//!
//! Coefficients are packed panel by panel with their zero columns left out: in a one-vs-one model a vector serves
//! only the machines of its own class. Consecutive panels with the same live outputs form a group; sums are kept in
//! the precision of the rows within a group of at most 2,048 vectors and in double precision between groups.
//!
//! Expansions of the linear kernel are weights of the columns, one vector an output, where these are not more numbers than
//! the vectors (`weights`); the rest of this file is for the others.
//!
//! Models of many vectors in one to three columns and Gaussians are sums of which not every kernel value is computed
//! (`gauss`).
//!
//! Vectors that are multiples of one unit meet rows that are so too in integers (`bytes`), others in single precision.
//! Kernel values of at most 1 times coefficients as large as machines of C = 1e6 have are double precision from the
//! beginning: their sums would be off by a hundredth and more.
//! Rows that single precision does not do for, because they are far from the vectors or their outputs are not finite, are
//! computed again in double precision.
//!
//! Cost: n m kernel values and n times the non-zeros of B (n q of them with weights); memory one tile a thread.

use ndarray::Array2;

use super::frame::Frame;
use super::gauss::Fields;
use super::gram::indices;
use super::pack::Panels;
use super::tile::for_each_tile;
use super::weights::Weights;
use super::{Kernel, Precision};
use crate::context::Context;
use crate::data::{Rows, flat};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::memory::{self, TryCollect, TryToVec, get_or_try_init, try_vec};
use crate::simd::micro::{ApplyCoefficients, ApplyCoefficientsFew, panel_width};
use crate::simd::{Real, lanes};
use std::sync::OnceLock;

/// Roundings of kernel values in single precision, times coefficients, above which these are computed in double precision.
const MOST_ROUNDING: f64 = 1e-2;
/// What the memory of this file is for.
const MODEL: &str = "a packed model";
/// Kernel values times features of a thread between two checks of the monitor.
const WORK_PER_CHECK: usize = 200_000_000;
/// Rows computed together.
const BLOCK: usize = 96;
/// Multiply-adds that are worth a task: rows that cost little come in larger blocks.
const TASK: usize = 1 << 18;
/// Up to so many live outputs each costs one dot product a tile line; more go through a small matrix product.
const FEW: usize = 6;
/// Vectors summed in the precision of the rows before the sum is moved to double precision.
const GROUP_VECTORS: usize = 2048;

/// Consecutive panels with the same outputs.
struct Group {
    panels: std::ops::Range<usize>,
    outputs: Vec<usize>,
    /// Start of each panel's packed coefficients follows from this and the panel's place in the group.
    start: usize,
}

struct Packed<T> {
    panels: Panels<T>,
    groups: Vec<Group>,
    /// In units of each output: no coefficient is above 2, whatever its size was.
    coefficients: Vec<T>,
    units: Vec<f64>,
}

/// How kernel values are computed. What a way does not do for, rows far from the vectors or outputs that are not finite, is
/// computed again in the next.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Exactly in integers, for vectors and rows of multiples of one unit.
    Bytes,
    Single,
    Double,
}

/// An expansion made ready: vectors packed, norms known, coefficients laid out. Reusable and shareable.
pub struct Evaluator {
    kernel: Kernel,
    vectors: crate::data::OwnedRows,
    /// (m, q) row after row.
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    /// Whether coefficients are too large for kernel values in single precision.
    is_large: bool,
    /// For the linear kernel; with the units of the outputs, as in [`Packed`].
    weights: OnceLock<Option<(Weights, Vec<f64>)>>,
    /// For Gaussians in few columns.
    fields: OnceLock<Option<Fields>>,
    /// Vectors of multiples of a unit.
    bytes: OnceLock<Option<Packed<f32>>>,
    single: OnceLock<Packed<f32>>,
    double: OnceLock<Packed<f64>>,
}

impl Evaluator {
    /// Takes a copy of the expansion; packing waits for the first rows, whose precision it follows.
    ///
    /// # Errors
    /// As [`ExpansionView::new`].
    pub fn new(expansion: &ExpansionView<'_>) -> Result<Self> {
        let ExpansionView { kernel, vectors, coefficients, intercepts } = *expansion;
        ExpansionView::new(kernel, vectors, coefficients, intercepts)?;
        kernel.check_rows("vectors", vectors)?;
        let all: Vec<usize> = (0..vectors.rows()).try_collect_vec()?;
        let q = intercepts.len();
        let is_large = kernel.constant_diagonal().is_some()
            && (0..q).any(|j| {
                let squares: f64 = expansion.flat().iter().skip(j).step_by(q).map(|c| c * c).sum();
                0.5 * f64::from(f32::EPSILON) * squares.sqrt() > MOST_ROUNDING
            });
        Ok(Self {
            kernel,
            vectors: vectors.gather(&all)?,
            coefficients: memory::try_to_vec(MODEL, expansion.flat())?,
            intercepts: intercepts.try_to_vec()?,
            is_large,
            weights: OnceLock::new(),
            fields: OnceLock::new(),
            bytes: OnceLock::new(),
            single: OnceLock::new(),
            double: OnceLock::new(),
        })
    }

    /// The first way for such rows.
    fn way(&self, x: Rows<'_>) -> Way {
        if x.is_f64() || self.is_large { Way::Double } else { Way::Bytes }
    }

    /// Number of outputs q.
    pub fn outputs(&self) -> usize {
        self.intercepts.len()
    }

    /// Kernel values that one row costs.
    pub fn len(&self) -> usize {
        self.vectors.view().rows()
    }

    /// Whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// F, (n, q): in single precision for rows of bytes or single precision, unless coefficients are large; else in double.
    ///
    /// # Errors
    /// [`Error::Shape`] where the rows have another number of columns than the vectors (or, for a precomputed
    /// kernel, fewer than the largest index), [`Error::Param`] for rows outside the kernel's domain, [`Error::Stopped`].
    pub fn evaluate(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.evaluate_in(x, self.way(x), ctx)
    }

    /// F computed in double precision whatever the rows hold.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    pub fn evaluate_double(&self, x: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.evaluate_in(x, Way::Double, ctx)
    }

    fn evaluate_in(&self, x: Rows<'_>, way: Way, ctx: Context<'_>) -> Result<Array2<f64>> {
        if self.is_empty() || x.rows() == 0 || x.cols() != self.vectors.view().cols() {
            return self.evaluate_pairs(x, way, ctx);
        }
        let make = || Fields::new(&self.kernel, self.vectors.view(), &self.coefficients, ctx);
        let Some(fields) = get_or_try_init(&self.fields, make)? else {
            return self.evaluate_pairs(x, way, ctx);
        };
        self.kernel.check_rows("X", x)?;
        let mut out = self.start(x)?;
        self.run(x, fields.work(), &mut out, ctx, |list, out| fields.add(x, list, out))?;
        let out = self.again(x, way, out, ctx)?;
        Ok(Array2::from_shape_vec((x.rows(), self.outputs()), out).expect("a line of outputs a row"))
    }

    /// The intercepts, once for every row.
    fn start(&self, x: Rows<'_>) -> Result<Vec<f64>> {
        let mut out = memory::try_with_capacity("the outputs", x.rows().saturating_mul(self.outputs()))?;
        (0..x.rows()).for_each(|_| out.extend_from_slice(&self.intercepts));
        Ok(out)
    }

    /// As [`Evaluator::evaluate_in`], by a kernel value for every vector.
    fn evaluate_pairs(&self, x: Rows<'_>, way: Way, ctx: Context<'_>) -> Result<Array2<f64>> {
        let out = self.add_vectors(x, way, self.start(x)?, ctx)?;
        Ok(Array2::from_shape_vec((x.rows(), self.outputs()), out).expect("a line of outputs a row"))
    }

    /// Computes the rows whose outputs are not all numbers again.
    fn again(&self, x: Rows<'_>, way: Way, mut out: Vec<f64>, ctx: Context<'_>) -> Result<Vec<f64>> {
        let q = self.outputs();
        let again: Vec<usize> = (0..x.rows())
            .filter(|i| out[i * q..(i + 1) * q].iter().any(|f| !f.is_finite()))
            .try_collect_vec()?;
        if !again.is_empty() {
            let rows = x.gather(&again)?;
            let values = flat(self.evaluate_pairs(rows.view(), way, ctx)?);
            for (&i, values) in again.iter().zip(values.chunks_exact(q)) {
                out[i * q..(i + 1) * q].copy_from_slice(values);
            }
        }
        self.finite(x, out)
    }

    fn add_vectors(&self, x: Rows<'_>, way: Way, mut out: Vec<f64>, ctx: Context<'_>) -> Result<Vec<f64>> {
        if self.is_empty() || x.rows() == 0 {
            return Ok(out);
        }
        if matches!(self.kernel, Kernel::Precomputed) {
            return self.precomputed(x, out);
        }
        Error::check_len("columns of X", self.vectors.view().cols(), x.cols())?;
        self.kernel.check_rows("X", x)?;
        if self.kernel == Kernel::Linear
            && let Some((weights, units)) = get_or_try_init(&self.weights, || self.collapse(ctx))?
        {
            let work = self.outputs().saturating_mul(x.cols().max(8));
            self.run(x, work, &mut out, ctx, |list, out| weights.add(x, list, units, out))?;
            return self.finite(x, out);
        }
        let next = match way {
            Way::Bytes => {
                let packed = get_or_try_init(&self.bytes, || {
                    let frame = self.frame()?.with_bytes(self.vectors.view(), ctx);
                    frame.unit().map(|_| self.pack(frame, ctx)).transpose()
                })?;
                if let Some(packed) = packed {
                    self.run_packed(packed, x, &mut out, ctx)?;
                } else {
                    return self.add_vectors(x, Way::Single, out, ctx);
                }
                Way::Single
            }
            Way::Single => {
                let packed = get_or_try_init(&self.single, || self.pack(self.frame()?, ctx))?;
                if !packed.panels.is_single() {
                    return self.add_vectors(x, Way::Double, out, ctx);
                }
                self.run_packed(packed, x, &mut out, ctx)?;
                Way::Double
            }
            Way::Double => {
                let packed = get_or_try_init(&self.double, || self.pack(self.frame()?, ctx))?;
                self.run_packed(packed, x, &mut out, ctx)?;
                return self.finite(x, out);
            }
        };
        self.again(x, next, out, ctx)
    }

    /// Outputs that are all numbers.
    fn finite(&self, x: Rows<'_>, out: Vec<f64>) -> Result<Vec<f64>> {
        let Some(at) = out.iter().position(|f| !f.is_finite()) else { return Ok(out) };
        Frame::of(&self.kernel, self.vectors.view())?.reach(x).check("X", Precision::Double)?;
        let row = at / self.outputs();
        let rule = "such that kernel values times coefficients stay within double precision: scale the rows";
        Err(Error::param("X", format!("row {row}"), rule))
    }

    fn precomputed(&self, x: Rows<'_>, mut out: Vec<f64>) -> Result<Vec<f64>> {
        let (vectors, q) = (self.vectors.view(), self.outputs());
        let indices = indices(vectors, x.cols())?;
        let mut values = try_vec![0.0; x.cols()]?;
        for (i, out) in out.chunks_exact_mut(q).enumerate() {
            values.fill(0.0);
            x.for_each_in_row(i, |k, v| values[k] = v);
            for (&index, coefficients) in indices.iter().zip(self.coefficients.chunks_exact(q)) {
                for (out, c) in out.iter_mut().zip(coefficients) {
                    *out += c * values[index];
                }
            }
        }
        self.finite(x, out)
    }

    /// The weights of the columns, in units of each output; `None` where they are not worth it.
    fn collapse(&self, ctx: Context<'_>) -> Result<Option<(Weights, Vec<f64>)>> {
        let (q, units) = (self.outputs(), self.units());
        let mut coefficients = memory::try_to_vec(MODEL, &self.coefficients)?;
        for line in coefficients.chunks_exact_mut(q) {
            line.iter_mut().zip(&units).for_each(|(c, unit)| *c /= unit);
        }
        let weights = Weights::new(self.vectors.view(), &coefficients, q, ctx)?;
        Ok(weights.map(|weights| (weights, units)))
    }

    fn units(&self) -> Vec<f64> {
        let q = self.outputs();
        (0..q).map(|j| unit(self.coefficients.iter().skip(j).step_by(q))).collect() // small: one number per output
    }

    fn frame(&self) -> Result<Frame> {
        Frame::of(&self.kernel, self.vectors.view())
    }

    fn pack<T: Real>(&self, frame: Frame, ctx: Context<'_>) -> Result<Packed<T>> {
        let (vectors, q) = (self.vectors.view(), self.outputs());
        let (m, width) = (vectors.rows(), panel_width::<T>());
        let panels = Panels::pack(vectors, &(0..m).try_collect_vec()?, &frame.into(), ctx)?;
        let units = self.units();
        let (mut groups, mut coefficients): (Vec<Group>, Vec<T>) = (Vec::new(), Vec::new());
        for p in 0..panels.count() {
            let rows = p * width..m.min((p + 1) * width);
            let of_panel = &self.coefficients[rows.start * q..rows.end * q];
            let outputs: Vec<usize> = (0..q)
                .filter(|&j| of_panel.iter().skip(j).step_by(q).any(|&c| c != 0.0))
                .try_collect_vec()?;
            match groups.last_mut() {
                Some(group) if group.outputs == outputs && group.panels.len() * width < GROUP_VECTORS => {
                    group.panels.end = p + 1;
                }
                _ => groups.push(Group {
                    panels: p..p + 1,
                    outputs: outputs.clone(),
                    start: coefficients.len(),
                }),
            }
            let value =
                |c: usize, j: usize| of_panel.get(c * q + j).map_or(T::ZERO, |&v| T::from_f64(v / units[j]));
            memory::try_reserve(
                MODEL,
                &mut coefficients,
                outputs.len().next_multiple_of(lanes::<T>()) * width,
            )?;
            if outputs.len() <= FEW {
                for &j in &outputs {
                    coefficients.extend((0..width).map(|c| value(c, j)));
                }
            } else {
                for part in outputs.chunks(lanes::<T>()) {
                    for c in 0..width {
                        coefficients.extend(part.iter().map(|&j| value(c, j)));
                        coefficients.extend((part.len()..lanes::<T>()).map(|_| T::ZERO));
                    }
                }
            }
        }
        Ok(Packed { panels, groups, coefficients, units })
    }

    fn run_packed<T: Real>(
        &self,
        packed: &Packed<T>,
        x: Rows<'_>,
        out: &mut [f64],
        ctx: Context<'_>,
    ) -> Result<()> {
        let work = self.len().saturating_mul(x.cols().max(8));
        self.run(x, work, out, ctx, |list, out| self.block(packed, x, list, out))
    }

    /// Calls `of_rows(rows, their outputs)` for blocks of rows, each of which costs `work` multiply-adds.
    fn run(
        &self,
        x: Rows<'_>,
        work: usize,
        out: &mut [f64],
        ctx: Context<'_>,
        of_rows: impl Fn(&[usize], &mut [f64]) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let (n, q) = (x.rows(), self.outputs());
        // Equal tasks, at most a block each, so that the last one does not keep the others waiting.
        let block = BLOCK.max(TASK / work.max(1));
        let tasks = n.div_ceil(block).next_multiple_of(ctx.threads()).min(n);
        let rows_per_task = n.div_ceil(tasks);
        // Tasks between two checks of the monitor, some for each thread.
        let work = rows_per_task.saturating_mul(work);
        let turn = (WORK_PER_CHECK / work.max(1)).max(1).saturating_mul(4 * ctx.threads());
        for (round, out) in out.chunks_mut((turn.saturating_mul(rows_per_task * q)).max(1)).enumerate() {
            ctx.check("outputs", round * turn * rows_per_task, n)?;
            ctx.try_for_each_chunk(out, rows_per_task * q, |task, out| {
                let first = (round * turn + task) * rows_per_task;
                let list: Vec<usize> = (first..first + out.len() / q).try_collect_vec()?;
                of_rows(&list, out)
            })?;
        }
        Ok(())
    }

    /// Adds the vectors' part to the outputs of a few rows.
    fn block<T: Real>(&self, packed: &Packed<T>, x: Rows<'_>, list: &[usize], out: &mut [f64]) -> Result<()> {
        let (q, width, lanes) = (self.outputs(), packed.panels.width(), lanes::<T>());
        let block = packed.panels.block(x, list)?;
        if (0..list.len()).all(|i| !packed.panels.is_near(&block, i)) {
            out.fill(f64::NAN);
            return Ok(());
        }
        let mut sums: Vec<T> = Vec::new();
        for group in &packed.groups {
            let live = group.outputs.len();
            if live == 0 {
                continue;
            }
            let few = live <= FEW;
            // Columns of `sums`: one vector an output, or one number an output padded to whole vectors.
            let (stride, per_panel) = if few {
                (live * lanes, live * width)
            } else {
                (live.next_multiple_of(lanes), live.next_multiple_of(lanes) * width)
            };
            sums.clear();
            sums.resize(list.len() * stride, T::ZERO);
            for_each_tile(&block, &packed.panels, group.panels.clone(), BLOCK, |row, rows, p, tile| {
                let start = group.start + (p - group.panels.start) * per_panel;
                let coefficients = &packed.coefficients[start..start + per_panel];
                let out = &mut sums[row * stride..(row + rows) * stride];
                if few {
                    ApplyCoefficientsFew { tile, rows, coefficients, outputs: live, out }.compute();
                } else {
                    ApplyCoefficients { tile, rows, coefficients, groups: stride / lanes, out }.compute();
                }
            })?;
            for (sums, out) in sums.chunks_exact(stride).zip(out.chunks_exact_mut(q)) {
                for (k, &output) in group.outputs.iter().enumerate() {
                    let sum: f64 = if few {
                        sums[k * lanes..(k + 1) * lanes].iter().map(|v| v.to_f64()).sum()
                    } else {
                        sums[k].to_f64()
                    };
                    out[output] += packed.units[output] * sum;
                }
            }
        }
        for (i, out) in out.chunks_exact_mut(q).enumerate() {
            if !packed.panels.is_near(&block, i) {
                out.fill(f64::NAN);
            }
        }
        Ok(())
    }
}

/// A power of two near the largest of some numbers: dividing by it changes no digit.
fn unit<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let largest = values.fold(0.0_f64, |largest, v| largest.max(v.abs()));
    if largest > 0.0 { largest.log2().floor().clamp(-1000.0, 1000.0).exp2() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{OwnedRows, matrix};
    use crate::kernels::{KernelRows, gram};

    #[test]
    fn fused_equals_stored_for_every_number_of_outputs() {
        for (n, m, d, q) in [
            (1, 50, 5, 1),
            (130, 301, 7, 1),
            (97, 100, 2, 5),
            (200, 65, 11, 10),
            (50, 200, 4, 45),
            (5, 0, 3, 2),
        ] {
            let x: Vec<f64> = (0..n * d).map(|i| (i as f64 * 0.37).sin()).collect();
            let z: Vec<f64> = (0..m * d).map(|i| (i as f64 * 0.71).cos()).collect();
            // Blocks of zeros, as a one-vs-one model has.
            let b: Vec<f64> = (0..m * q)
                .map(|i| if (i / q / 40 + i % q) % 3 == 0 { 0.0 } else { (i as f64 * 0.13).sin() })
                .collect();
            let intercepts: Vec<f64> = (0..q).map(|j| j as f64 - 1.5).collect();
            let z_rows = Rows::from_shape((m, d), &z).unwrap();
            let x_rows = Rows::from_shape((n, d), &x).unwrap();
            let kernel = Kernel::Rbf { gamma: 0.8 };
            let k = gram(&kernel, x_rows, z_rows, Context::SEQUENTIAL).unwrap();
            let evaluator = Evaluator::new(
                &ExpansionView::new(kernel, z_rows, matrix((m, q), &b).unwrap(), &intercepts).unwrap(),
            )
            .unwrap();
            let x32: Vec<f32> = x.iter().map(|&v| v as f32).collect();
            let single: Rows<'_> = Rows::from_shape((n, d), &x32).unwrap();
            for (rows, tolerance) in [(x_rows, 1e-12), (single, 2e-5)] {
                let f = evaluator.evaluate(rows, Context::default()).unwrap();
                for i in 0..n {
                    for j in 0..q {
                        let expected: f64 =
                            intercepts[j] + (0..m).map(|c| k[[i, c]] * b[c * q + j]).sum::<f64>();
                        assert!((f[[i, j]] - expected).abs() < tolerance, "{} {expected}", f[[i, j]]);
                    }
                }
            }
        }
    }

    /// Rows of pixels meet vectors of pixels in integers, on machines that have the instruction; a row among them that is
    /// none is computed as it would be alone.
    #[test]
    fn pixels_and_other_rows_go_together() {
        let (n, m, d, q) = (101, 70, 67, 3);
        let pixel = |i: usize| (i * 7919 % 256) as f32 / 255.0;
        let z: Vec<f32> = (0..m * d).map(pixel).collect();
        let mut x: Vec<f32> = (0..n * d).map(|i| pixel(i + 31)).collect();
        for row in [0, 40, 100] {
            x[row * d + 5] += 0.001;
        }
        let b: Vec<f64> = (0..m * q).map(|i| (i as f64 * 0.13).sin()).collect();
        let (z_rows, intercepts) = (Rows::from_shape((m, d), &z).unwrap(), vec![0.5; q]);
        for kernel in [
            Kernel::Rbf { gamma: 0.05 },
            Kernel::Polynomial { degree: 3, gamma: 0.02, coef0: 1.0 },
            Kernel::Sigmoid { gamma: 0.01, coef0: -0.5 },
        ] {
            let view = ExpansionView::new(kernel, z_rows, matrix((m, q), &b).unwrap(), &intercepts).unwrap();
            let evaluator = Evaluator::new(&view).unwrap();
            let f = evaluator.evaluate(Rows::from_shape((n, d), &x).unwrap(), Context::default()).unwrap();
            let exact =
                evaluator.evaluate_double(Rows::from_shape((n, d), &x).unwrap(), Context::default()).unwrap();
            let largest = exact.iter().fold(1.0_f64, |largest, v| largest.max(v.abs()));
            for i in 0..n {
                let alone = Rows::from_shape((1, d), &x[i * d..(i + 1) * d]).unwrap();
                let alone = evaluator.evaluate(alone, Context::SEQUENTIAL).unwrap();
                for j in 0..q {
                    assert!((f[[i, j]] - exact[[i, j]]).abs() < 2e-6 * largest, "{kernel:?} {i} {j}");
                    assert_eq!(f[[i, j]], alone[[0, j]]);
                }
            }
        }
    }

    /// Dense rows that are mostly zeros have the values that they have as sparse ones, to the last bit, with a column that is
    /// far from zero in all rows among them; fuller rows that meet such vectors are no exception.
    #[test]
    fn rows_of_zeros_are_the_same_in_either_layout() {
        let (n, m, d) = (45, 70, 96);
        let dense = |rows: usize, every: usize| -> Vec<f64> {
            let number = |i: usize, j: usize| match (j, (i * 31 + j * 17) % every) {
                (0, _) => 1000.0 + (i % 7) as f64,
                (_, 0) => ((i * d + j) as f64 * 0.37).sin().abs(),
                _ => 0.0,
            };
            (0..rows * d).map(|at| number(at / d, at % d)).collect()
        };
        let sparse = |dense: &[f64]| {
            let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in dense.chunks_exact(d) {
                for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                    indices.push(j as i64);
                    values.push(v);
                }
                indptr.push(indices.len() as i64);
            }
            OwnedRows::CsrF64 { indptr, indices, values, cols: d }
        };
        let z = dense(m, 11);
        let (z_rows, z_sparse) = (Rows::from_shape((m, d), &z).unwrap(), sparse(&z));
        let b: Vec<f64> = (0..m * 2).map(|i| (i as f64 * 0.13).sin()).collect();
        let order: Vec<usize> = (0..m).collect();
        for kernel in [
            Kernel::Linear,
            Kernel::Polynomial { degree: 3, gamma: 1e-4, coef0: 1.0 },
            Kernel::Rbf { gamma: 0.1 },
            Kernel::Laplacian { gamma: 0.1 },
            Kernel::ChiSquared { gamma: 0.1 },
        ] {
            for precision in [Precision::Single, Precision::Double] {
                let values = |rows: Rows<'_>| {
                    let source =
                        KernelRows::new(kernel, rows, &order, precision, Context::default()).unwrap();
                    let mut values = vec![0.0_f64; m * m];
                    source
                        .compute(
                            &order,
                            &mut values.chunks_exact_mut(m).collect::<Vec<_>>(),
                            Context::default(),
                        )
                        .unwrap();
                    values
                };
                assert_eq!(values(z_rows), values(z_sparse.view()), "{kernel:?}");
            }
            // Weights of the columns are summed in an order of their own.
            for every in if kernel == Kernel::Linear { vec![] } else { vec![11, 2] } {
                let x = dense(n, every);
                let (x_rows, x_sparse) = (Rows::from_shape((n, d), &x).unwrap(), sparse(&x));
                let outputs = |x: Rows<'_>, z: Rows<'_>| {
                    let view =
                        ExpansionView::new(kernel, z, matrix((m, 2), &b).unwrap(), &[0.5, 0.0]).unwrap();
                    Evaluator::new(&view).unwrap().evaluate(x, Context::default()).unwrap()
                };
                let found = outputs(x_rows, z_rows);
                assert_eq!(found, outputs(x_sparse.view(), z_rows), "{kernel:?}");
                assert_eq!(found, outputs(x_rows, z_sparse.view()), "{kernel:?}");
            }
        }
    }
}
