//! Kernel matrices: K(X, Z) as a whole in double precision, and values of packed vectors Z for rows X that come in blocks.
//!
//! Problem: factorizations and selections read kernel values many times, so they store them. Blocks of rows are multiplied with
//! packed panels of Z by the register tiles of `tile`; the threads divide the rows, or the vectors if there is one row.
//!
//! Invariant: a value depends on its row and its vector alone. [`gram_symmetric`] is exactly symmetric and has the diagonal of the
//! formula without a rounded distance; [`gram_lower`] has the same values.
//!
//! Cost: n m kernel values of d multiply-adds, half of them for the lower triangle; memory n m numbers and the packed Z.

use ndarray::Array2;

use crate::memory;

use super::overflow_check::Magnitudes;
use super::pack::Panels;
use super::pair::pair_with_itself;
use super::standardization::Standardization;
use super::tile::for_each_tile;
use super::{Kernel, KernelFunction, KernelRows, Precision};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::linalg::copy_upper_to_lower;
use crate::simd::Real;
use std::ops::Range;

/// Context reported when the allocation of a kernel matrix fails.
const MATRIX: &str = "a kernel matrix";
/// Number of rows of a task.
const BLOCK_ROWS: usize = 96;
/// Kernel values times features of a block of rows between two checks of the monitor.
const WORK_PER_CHECK: usize = 10_000_000;
/// Number of vectors of a task that has a single row.
const SINGLE_ROW_VECTORS: usize = 1024;

/// Returns K(X, Z), (n, m), computed in double precision whatever the rows hold.
///
/// # Errors
/// [`Error::Shape`] if the columns disagree, [`Error::Param`] if rows are outside the kernel's domain,
/// [`Error::NotFinite`], [`Error::Stopped`].
pub fn gram(kernel: &Kernel, x: Rows<'_>, z: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
    kernel.check()?;
    let (n, m) = (x.rows(), z.rows());
    let mut out = memory::try_zero_matrix(MATRIX, (n, m))?;
    if n == 0 || m == 0 {
        return Ok(out);
    }
    if matches!(kernel, Kernel::Precomputed) {
        let columns = indices(z, x.cols())?;
        x.for_each_dense(0..n, |i, values| {
            out.row_mut(i).iter_mut().zip(&columns).for_each(|(out, &column)| *out = values[column]);
        })?;
        return Ok(out);
    }
    Error::check_len("columns of the rows", z.cols(), x.cols())?;
    let columns = PackedVectors::new(*kernel, z, ctx)?;
    columns.check(x)?;
    let values = out.as_slice_mut().expect("a new array is row-major");
    let all: Vec<usize> = (0..n).collect();
    let at_once = (WORK_PER_CHECK / m.saturating_mul(x.cols().max(8)).max(1))
        .max(1)
        .saturating_mul(BLOCK_ROWS * ctx.threads());
    for (turn, (list, values)) in
        all.chunks(at_once).zip(values.chunks_mut(at_once.saturating_mul(m))).enumerate()
    {
        ctx.check("kernel", turn * at_once, n)?;
        columns.values_by(x, list, values, ctx)?;
    }
    Ok(out)
}

/// Returns the columns of precomputed X whose indices the vectors hold.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Param`] if a vector is not the index of a column.
pub(super) fn indices(vectors: Rows<'_>, columns: usize) -> Result<Vec<usize>> {
    Error::check_len("columns of precomputed vectors, an index each", 1, vectors.cols())?;
    let mut list = vec![0; vectors.rows()];
    for (i, index) in list.iter_mut().enumerate() {
        let mut value = 0.0;
        vectors.for_each_in_row(i, |_, v| value = v);
        if !(value >= 0.0 && value.fract() == 0.0 && value < columns as f64) {
            let rule = format!("an index of one of the {columns} columns of precomputed X");
            return Err(Error::param("vectors", value, rule));
        }
        *index = value as usize;
    }
    Ok(list)
}

/// Vectors Z, packed once for kernel values K(x, Z) of any rows.
pub(crate) struct PackedVectors<T> {
    kernel: Kernel,
    panels: Panels<T>,
    len: usize,
    features: usize,
}

impl<T: Real> PackedVectors<T> {
    const PRECISION: Precision =
        if size_of::<T>() == size_of::<f32>() { Precision::Single } else { Precision::Double };

    /// Packs the rows of Z.
    ///
    /// # Errors
    /// [`Error::Param`] if Z is outside the kernel's domain, or the kernel is precomputed.
    pub(crate) fn new(kernel: Kernel, z: Rows<'_>, ctx: Context<'_>) -> Result<Self> {
        kernel.check()?;
        if kernel == Kernel::Precomputed {
            return Err(Error::param("kernel", "precomputed", "a function of two vectors"));
        }
        kernel.check_rows("Z", z)?;
        let packed = Self::packed(kernel, z, ctx)?;
        packed.check_magnitudes("Z", z)?;
        Ok(packed)
    }

    /// Packs the rows of Z without a check of their domain and magnitudes.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn packed(kernel: Kernel, z: Rows<'_>, ctx: Context<'_>) -> Result<Self> {
        let panels = pack_all(&kernel, z, ctx)?;
        Ok(Self { kernel, panels, len: z.rows(), features: z.cols() })
    }

    /// Checks that rows can be evaluated.
    pub(crate) fn check(&self, x: Rows<'_>) -> Result<()> {
        self.check_width(x)?;
        self.kernel.check_rows("X", x)?;
        self.check_magnitudes("X", x)
    }

    fn check_magnitudes(&self, what: &'static str, rows: Rows<'_>) -> Result<()> {
        let magnitudes = Magnitudes::of_standardized(
            what,
            self.kernel.into(),
            self.panels.standardization(),
            rows,
            Context::SEQUENTIAL,
        )?;
        magnitudes.check_overflow(what, Self::PRECISION)
    }

    /// Checks that rows have as many columns as Z.
    fn check_width(&self, x: Rows<'_>) -> Result<()> {
        Error::check_len("columns of the rows", self.features, x.cols())
    }

    /// Returns the length of a line as factorizations read it: the number of vectors, rounded up to whole panels.
    pub(crate) fn stride(&self) -> usize {
        self.len.next_multiple_of(self.panels.width())
    }

    /// Writes k(x_i, z_j) for the rows from `first`, one line of [`PackedVectors::stride`] values each, zeros behind the
    /// last vector. The rows may be outside the kernel's domain.
    pub(crate) fn fill(&self, x: Rows<'_>, first: usize, out: &mut [T], ctx: Context<'_>) -> Result<()> {
        self.check_width(x)?;
        let stride = self.stride();
        ctx.try_for_each_chunk(out, (BLOCK_ROWS / 2 * stride).max(1), |task, out| {
            let from = first + task * (BLOCK_ROWS / 2);
            let rows: Vec<usize> = (from..from + out.len() / stride).collect();
            self.values(x, &rows, out, stride)?;
            for line in out.chunks_exact_mut(stride) {
                line[self.len..].fill(T::ZERO);
            }
            Ok(())
        })
    }

    /// Writes the kernel values of the listed rows of X, those of the i-th to `out[i * stride..]`.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn values(&self, x: Rows<'_>, list: &[usize], out: &mut [T], stride: usize) -> Result<()> {
        self.values_in(x, list, 0..self.panels.count(), out, stride)
    }

    /// Writes the kernel values of the listed rows of X. Several threads share the rows, or the vectors of a single row.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn values_by(
        &self,
        x: Rows<'_>,
        list: &[usize],
        out: &mut [T],
        ctx: Context<'_>,
    ) -> Result<()> {
        let m = self.len;
        if let &[_] = list {
            let group = SINGLE_ROW_VECTORS.div_ceil(self.panels.width());
            ctx.try_for_each_chunk(out, group * self.panels.width(), |task, out| {
                let range = task * group..self.panels.count().min((task + 1) * group);
                self.values_in(x, list, range, out, m)
            })
        } else {
            ctx.try_for_each_chunk(out, (BLOCK_ROWS * m).max(1), |task, out| {
                self.values(x, &list[task * BLOCK_ROWS..][..out.len() / m], out, m)
            })
        }
    }

    /// Writes kernel values as [`PackedVectors::values`], with the vectors of some panels.
    fn values_in(
        &self,
        x: Rows<'_>,
        list: &[usize],
        range: Range<usize>,
        out: &mut [T],
        stride: usize,
    ) -> Result<()> {
        let panels = &self.panels;
        let (start, end) = (range.start * panels.width(), self.len.min(range.end * panels.width()));
        let block = panels.block(x, list)?;
        for_each_tile(&block, panels, range, BLOCK_ROWS, |first, count, p, tile| {
            let from = p * panels.width() - start;
            let to = (end - start).min(from + panels.width());
            for (i, line) in tile.chunks_exact(panels.width()).take(count).enumerate() {
                let at = (first + i) * stride;
                out[at + from..at + to].copy_from_slice(&line[..to - from]);
            }
        })
    }
}

/// Packs all rows for a kernel.
fn pack_all<T: Real>(kernel: &Kernel, rows: Rows<'_>, ctx: Context<'_>) -> Result<Panels<T>> {
    let standardization = Standardization::new(kernel, rows)?.into();
    Panels::pack(rows, &(0..rows.rows()).collect::<Vec<_>>(), &standardization, None, ctx)
}

/// Returns K(Z, Z) with an exact diagonal and exact symmetry, (m, m).
///
/// # Errors
/// See [`gram`].
pub fn gram_symmetric(kernel: &Kernel, z: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
    let mut out = gram(kernel, z, z, ctx)?;
    out.diag_mut().iter_mut().zip(diagonal(kernel, z)).for_each(|(entry, value)| *entry = value);
    copy_upper_to_lower(out.as_slice_mut().expect("a new array is row-major"), z.rows());
    Ok(out)
}

/// Writes the lower triangle of K(X, X) in lines of `stride`, computed and written in `T`, the diagonal exactly.
///
/// The values are those of [`gram`] at a quarter to a half of its cost, without a second matrix.
///
/// # Errors
/// See [`gram`].
pub(crate) fn gram_lower<T: Real>(
    kernel: KernelFunction<'_>,
    x: Rows<'_>,
    out: &mut [T],
    stride: usize,
    ctx: Context<'_>,
) -> Result<()> {
    let n = x.rows();
    let tick = |done: usize| ctx.check("kernel", done, n);
    let step = BLOCK_ROWS
        * (4 * ctx.threads())
            .max((1 << 28) / n.saturating_mul(BLOCK_ROWS).saturating_mul(x.cols()).max(1))
            .max(1);
    let kernel = match kernel {
        KernelFunction::BuiltIn(kernel) if kernel != Kernel::Precomputed => kernel,
        source => {
            let rows = KernelRows::new(source, x, &[], Precision::Double, ctx)?;
            for (group, lines) in out.chunks_mut(BLOCK_ROWS * stride).enumerate() {
                tick(group * BLOCK_ROWS)?;
                let (first, count) = (group * BLOCK_ROWS, lines.len() / stride);
                // The columns up to the diagonal: a user-defined function may be expensive.
                let columns: Vec<usize> = (0..first + count).collect();
                let list = &columns[first..];
                let mut values: Vec<f64> = memory::try_zeros(MATRIX, count * columns.len())?;
                let mut parts: Vec<&mut [f64]> = values.chunks_exact_mut(columns.len()).collect();
                rows.with_columns(&columns, ctx)?.compute(list, &mut parts, ctx)?;
                for ((i, line), values) in
                    list.iter().zip(lines.chunks_exact_mut(stride)).zip(values.chunks_exact(columns.len()))
                {
                    for (out, &v) in line.iter_mut().zip(&values[..=*i]) {
                        *out = T::from_f64(v);
                    }
                }
            }
            // A function that was stopped leaves zeros.
            return tick(n);
        }
    };
    kernel.check()?;
    kernel.check_rows("X", x)?;
    let panels = pack_all::<T>(&kernel, x, ctx)?;
    let width = panels.width();
    for (group, lines) in out.chunks_mut(step * stride).enumerate() {
        tick(group * step)?;
        ctx.try_for_each_chunk(lines, BLOCK_ROWS * stride, |task, lines| {
            let first = group * step + task * BLOCK_ROWS;
            let rows: Vec<usize> = (first..first + lines.len() / stride).collect();
            let block = panels.block(x, &rows)?;
            let range = 0..(first + rows.len()).div_ceil(width);
            for_each_tile(&block, &panels, range, BLOCK_ROWS, |row, count, p, tile| {
                let (from, to) = (p * width, stride.min((p + 1) * width));
                for (i, line) in tile.chunks_exact(width).take(count).enumerate() {
                    lines[(row + i) * stride + from..(row + i) * stride + to]
                        .copy_from_slice(&line[..to - from]);
                }
            })?;
            for (&i, line) in rows.iter().zip(lines.chunks_exact_mut(stride)) {
                line[i] = T::from_f64(pair_with_itself(&kernel, x, i));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// k(z_i, z_i) for every row.
pub fn diagonal(kernel: &Kernel, z: Rows<'_>) -> Vec<f64> {
    (0..z.rows()).map(|i| pair_with_itself(kernel, z, i)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Smoothness, pair};
    use super::*;
    use crate::data::to_csr;

    fn kernels() -> Vec<Kernel> {
        vec![
            Kernel::Linear,
            Kernel::Polynomial { degree: 3, gamma: 0.3, coef0: 0.5 },
            Kernel::Rbf { gamma: 0.4 },
            Kernel::Sigmoid { gamma: 0.2, coef0: -0.1 },
            Kernel::Laplacian { gamma: 0.3 },
            Kernel::ChiSquared { gamma: 0.5 },
            Kernel::Matern { smoothness: Smoothness::Half, gamma: 0.3 },
            Kernel::Matern { smoothness: Smoothness::ThreeHalves, gamma: 0.3 },
            Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma: 0.3 },
        ]
    }

    #[test]
    fn tiles_equal_pairs_dense_and_sparse() {
        for (n, m, d) in [(1, 1, 1), (7, 33, 3), (101, 70, 20), (13, 5, 64), (3, 2, 0)] {
            let value = |i: usize, salt: usize| {
                let v = ((i * 37 + salt) % 11) as f64 * 0.17;
                if (i * 7 + salt).is_multiple_of(3) { 0.0 } else { v }
            };
            let x: Vec<f64> = (0..n * d).map(|i| value(i, 1)).collect();
            let z: Vec<f64> = (0..m * d).map(|i| value(i, 5)).collect();
            let (x, z): (Rows<'_>, Rows<'_>) =
                (Rows::from_shape((n, d), &x).unwrap(), Rows::from_shape((m, d), &z).unwrap());
            let (xs, zs) = (to_csr(x, d, |k| k), to_csr(z, d, |k| k));
            let (xs, zs) = (xs.view(), zs.view());
            for kernel in kernels() {
                for (x, z) in [(x, z), (xs, zs), (x, zs), (xs, z)] {
                    for ctx in [Context::SEQUENTIAL, Context::default()] {
                        let k = gram(&kernel, x, z, ctx).unwrap();
                        for i in 0..n {
                            for j in 0..m {
                                let expected = pair(&kernel, x, i, z, j);
                                assert!(
                                    (k[[i, j]] - expected).abs() < 1e-12,
                                    "{kernel:?} {i} {j}: {} {expected}",
                                    k[[i, j]]
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_diagonal_has_the_degree_of_the_tiles() {
        // Equal rows have equal values on and off the diagonal; the last degrees are beyond those of `powi`.
        for degree in [1, 2, 7, i32::MAX as u32, 1 << 31, u32::MAX] {
            for (coef0, sign) in
                [(1.0 + 1e-10, 1.0), (-1.0 - 1e-10, if degree % 2 == 0 { 1.0 } else { -1.0 })]
            {
                let kernel = Kernel::Polynomial { degree, gamma: 1.0, coef0 };
                let rows = Rows::from_shape((2, 3), &[0.0; 6]).unwrap();
                let k = gram_symmetric(&kernel, rows, Context::SEQUENTIAL).unwrap();
                let expected = sign * (f64::from(degree) * 1e-10_f64.ln_1p()).exp();
                for value in [k[[0, 0]], k[[0, 1]], pair(&kernel, rows, 0, rows, 1)] {
                    assert!((value - expected).abs() < 1e-5, "{degree} {coef0}: {value} {expected}");
                }
            }
        }
    }

    #[test]
    fn far_from_the_origin_distances_survive_single_precision() {
        let x: Vec<f64> = (0..40).map(|i| 1e6 + f64::from(i % 7) * 0.125).collect();
        let rows: Rows<'_> = Rows::from_shape((10, 4), &x).unwrap();
        let kernel = Kernel::Rbf { gamma: 1.0 };
        let order: Vec<usize> = (0..10).collect();
        let source = KernelRows::new(kernel, rows, &order, Precision::Single, Context::SEQUENTIAL).unwrap();
        let mut row = vec![0.0_f32; 10];
        source.compute(&[3], &mut [&mut row], Context::SEQUENTIAL).unwrap();
        for j in 0..10 {
            assert!((f64::from(row[j]) - pair(&kernel, rows, 3, rows, j)).abs() < 1e-6);
        }
    }
}
