//! Large symmetric positive definite systems: blocked Cholesky factorization.
//!
//! The matrix is a [`Square`] of lines of which only the lower triangle is used. A = L L' is computed block column by block
//! column (right-looking): the block on the diagonal, the rows below it by substitution, then the rest by the register tiles
//! of `simd::panel`. `columns` solves with the factor, and `inverse` inverts it.
//!
//! Invariant: every entry is summed in an order that depends on the sizes alone, so the results do not depend on the number
//! of threads. Cost: n^3 / 6 multiply-adds.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::{self, Arena, HEADROOM};
use crate::simd::Real;
use crate::simd::micro::panel_width;
use crate::simd::panel::{Layout, forward, subtract_product, update_rows};

/// Purpose of the memory, for error messages.
const MATRIX: &str = "a system of equations";
/// Number of columns of a block: a panel of this depth fits the first cache.
pub(super) const BLOCK_COLUMNS: usize = 256;
/// Number of columns that are substituted without a register tile.
pub(super) const SMALL_COLUMNS: usize = 64;
/// Number of rows of a task.
pub(super) const ROWS_PER_TASK: usize = 96;
/// Number of multiply-adds between two checks of the monitor.
pub(super) const WORK_PER_CHECK: usize = 2_000_000_000;

/// An (n, n) matrix in lines that are a whole number of panels long.
pub(crate) struct Square<T> {
    values: Arena<T>,
    n: usize,
    stride: usize,
}

impl<T: Real> Square<T> {
    /// Returns a matrix of zeros.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn new(n: usize) -> Result<Self> {
        let width = panel_width::<T>();
        let mut stride = n.next_multiple_of(width).max(width);
        // Lines a multiple of 4 kB apart would fall into the same few lines of the first cache.
        if (stride * size_of::<T>()).is_multiple_of(2048) {
            stride += width;
        }
        Ok(Self { values: Arena::new(MATRIX, n.saturating_mul(stride))?, n, stride })
    }

    /// Returns the number of bytes of a matrix of n rows.
    pub(crate) fn bytes(n: usize) -> usize {
        n.saturating_mul(n + 2 * panel_width::<T>()).saturating_mul(size_of::<T>())
    }

    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// Returns the distance between two lines.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Returns all lines with their padding, one after the other.
    pub(crate) fn values(&self) -> &[T] {
        self.values.values()
    }

    /// Returns all lines with their padding, one after the other.
    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        self.values.values_mut()
    }

    pub(crate) fn diagonal(&self) -> impl ExactSizeIterator<Item = f64> {
        self.values().iter().step_by(self.stride + 1).take(self.n).map(|v| v.to_f64())
    }

    /// Adds `shift(i)` to entry i of the diagonal.
    pub(crate) fn shift(&mut self, shift: impl Fn(usize) -> f64) {
        let (n, step) = (self.n, self.stride + 1);
        for (i, v) in self.values_mut().iter_mut().step_by(step).take(n).enumerate() {
            *v = T::from_f64(v.to_f64() + shift(i));
        }
    }

    /// Returns the lower triangle rounded to another precision, with `shift(i)` added to entry i of the diagonal.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn shifted<U: Real>(
        &self,
        shift: impl Fn(usize) -> f64 + Sync,
        ctx: Context<'_>,
    ) -> Result<Square<U>> {
        let mut out = Square::<U>::new(self.n)?;
        let (stride, from, values) = (out.stride, self.stride, self.values());
        ctx.for_each_chunk(out.values_mut(), ROWS_PER_TASK * stride, |task, lines| {
            for (i, line) in (task * ROWS_PER_TASK..).zip(lines.chunks_exact_mut(stride)) {
                for (out, value) in line.iter_mut().zip(&values[i * from..=i * from + i]) {
                    *out = U::from_f64(value.to_f64());
                }
                line[i] = U::from_f64(values[i * from + i].to_f64() + shift(i));
            }
        });
        Ok(out)
    }
}

/// Replaces the lower triangle by L and overwrites the upper one.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] at the first pivot that is not positive, [`Error::Stopped`].
pub(crate) fn factor<T: Real>(a: &mut Square<T>, ctx: Context<'_>) -> Result<()> {
    let (n, stride) = (a.n, a.stride);
    let largest = a.diagonal().fold(f64::NEG_INFINITY, |max, v| if v > max || v.is_nan() { v } else { max });
    let values = a.values.values_mut();
    let mut panels = Vec::new();
    for from in (0..n).step_by(BLOCK_COLUMNS) {
        ctx.check("factor", from, n)?;
        let to = n.min(from + BLOCK_COLUMNS);
        let (done, below) = values.split_at_mut(to * stride);
        factor_block(&mut done[from * stride..], stride, from, to - from)
            .map_err(|(index, pivot)| Error::NotPositiveDefinite { index, pivot, largest })?;
        if to == n {
            break;
        }
        let block = BlockFactor::new(&done[from * stride..], stride, from, to - from);
        ctx.for_each_chunk(below, ROWS_PER_TASK * stride, |_, rows| block.substitute(rows, stride, from));
        pack(below, stride, n - to, from, to - from, &mut panels, ctx)?;
        let (width, depth) = (panel_width::<T>(), to - from);
        let at_once = (WORK_PER_CHECK / (depth * (n - to)))
            .next_multiple_of(ROWS_PER_TASK)
            .max(ROWS_PER_TASK * ctx.threads());
        for (group, below) in below.chunks_mut(at_once * stride).enumerate() {
            ctx.check("factor", from, n)?;
            ctx.for_each_chunk(below, ROWS_PER_TASK * stride, |task, rows| {
                let count = rows.len() / stride;
                let last = group * at_once + task * ROWS_PER_TASK + count;
                for (p, panel) in panels.chunks_exact(depth * width).enumerate().take(last.div_ceil(width)) {
                    update_rows(rows, stride, 0..count, from, depth, panel, to + p * width);
                }
            });
        }
    }
    Ok(())
}

/// Packs rows as the columns of panels: line k of panel p holds column `from + k` of `width` rows, followed by zeros.
pub(super) fn pack<T: Real>(
    rows: &[T],
    stride: usize,
    count: usize,
    from: usize,
    depth: usize,
    panels: &mut Vec<T>,
    ctx: Context<'_>,
) -> Result<()> {
    let width = panel_width::<T>();
    let size = depth * width;
    panels.clear();
    memory::try_resize(MATRIX, panels, count.div_ceil(width) * size, T::ZERO)?;
    pack_into(rows, stride, count, from, depth, panels, ctx);
    Ok(())
}

/// Packs as [`pack`], for at most a block of rows and columns, whose memory is always available.
fn pack_block<T: Real>(
    rows: &[T],
    stride: usize,
    count: usize,
    from: usize,
    depth: usize,
    panels: &mut Vec<T>,
) {
    panels.clear();
    // small: a block
    panels.resize(count.next_multiple_of(panel_width::<T>()) * depth, T::ZERO);
    pack_into(rows, stride, count, from, depth, panels, Context::SEQUENTIAL);
}

/// Packs as [`pack`], into zeros.
fn pack_into<T: Real>(
    rows: &[T],
    stride: usize,
    count: usize,
    from: usize,
    depth: usize,
    panels: &mut [T],
    ctx: Context<'_>,
) {
    let width = panel_width::<T>();
    let size = depth * width;
    if size > 0 {
        ctx.for_each_chunk(panels, size, |p, panel| {
            for j in 0..width.min(count - p * width) {
                let line = &rows[(p * width + j) * stride + from..][..depth];
                for (out, &v) in panel.chunks_exact_mut(width).zip(line) {
                    out[j] = v;
                }
            }
        });
    }
}

/// Factors the block of columns `first..first + size` of its own rows. The error is the first pivot that is not positive.
fn factor_block<T: Real>(
    rows: &mut [T],
    stride: usize,
    first: usize,
    size: usize,
) -> Result<(), (usize, f64)> {
    let width = panel_width::<T>();
    let mut panels = Vec::new();
    for s in (0..size).step_by(SMALL_COLUMNS) {
        let (end, at) = (size.min(s + SMALL_COLUMNS), first + s);
        for i in s..end {
            let (above, line) = rows.split_at_mut(i * stride);
            for j in s..i {
                let other = &above[j * stride + at..=j * stride + first + j];
                let sum = dot(&line[at..first + j], &other[..j - s]);
                line[first + j] = T::from_f64((line[first + j].to_f64() - sum) / other[j - s].to_f64());
            }
            let part = &line[at..first + i];
            let pivot = line[first + i].to_f64() - dot(part, part);
            if !(pivot > 0.0 && T::from_f64(pivot) > T::ZERO) {
                return Err((first + i, pivot));
            }
            line[first + i] = T::from_f64(pivot.sqrt());
        }
        if end == size {
            break;
        }
        let (done, below) = rows.split_at_mut(end * stride);
        let small = BlockFactor::new(&done[s * stride..], stride, at, end - s);
        let below = &mut below[..(size - end) * stride];
        small.substitute(below, stride, at);
        pack_block(below, stride, size - end, at, end - s, &mut panels);
        for (p, panel) in panels.chunks_exact((end - s) * width).enumerate() {
            update_rows(below, stride, 0..size - end, at, end - s, panel, first + end + p * width);
        }
    }
    Ok(())
}

fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    crate::simd::blas::dot(a, b).to_f64()
}

/// A factored block on the diagonal, ready to substitute rows: X L' = B.
pub(super) struct BlockFactor<T> {
    size: usize,
    /// For each small part: its rows left of it as panels, and its triangle in lines of `SMALL_COLUMNS`.
    parts: Vec<(Vec<T>, Vec<T>)>,
}

impl<T: Real> BlockFactor<T> {
    /// Packs the columns `first..first + size` of the rows.
    pub(super) fn new(rows: &[T], stride: usize, first: usize, size: usize) -> Self {
        let parts = (0..size).step_by(SMALL_COLUMNS).map(|s| {
            let (count, mut panels) = ((size - s).min(SMALL_COLUMNS), Vec::new());
            pack_block(&rows[s * stride..], stride, count, first, s, &mut panels);
            let mut triangle = vec![T::ZERO; SMALL_COLUMNS * SMALL_COLUMNS];
            for i in 0..count {
                let line = &rows[(s + i) * stride + first + s..][..=i];
                triangle[i * SMALL_COLUMNS..=i * SMALL_COLUMNS + i].copy_from_slice(line);
            }
            (panels, triangle)
        });
        Self { size, parts: parts.collect() }
    }

    /// Replaces the columns `first..first + size` of all rows by X.
    pub(super) fn substitute(&self, rows: &mut [T], stride: usize, first: usize) {
        let width = panel_width::<T>();
        let count = rows.len() / stride;
        let mut panel = vec![T::ZERO; SMALL_COLUMNS * width];
        for (s, (panels, triangle)) in (0..self.size).step_by(SMALL_COLUMNS).zip(&self.parts) {
            let n = (self.size - s).min(SMALL_COLUMNS);
            if s > 0 {
                for (p, panel) in panels.chunks_exact(s * width).enumerate() {
                    update_rows(rows, stride, 0..count, first, s, panel, first + s + p * width);
                }
            }
            for group in (0..count).step_by(width) {
                let here = width.min(count - group);
                for j in 0..here {
                    let line = &rows[(group + j) * stride + first + s..][..n];
                    for (out, &v) in panel.chunks_exact_mut(width).zip(line) {
                        out[j] = v;
                    }
                }
                forward(triangle, SMALL_COLUMNS, n, &mut panel);
                for j in 0..here {
                    let line = &mut rows[(group + j) * stride + first + s..][..n];
                    for (v, out) in line.iter_mut().zip(panel.chunks_exact(width)) {
                        *v = out[j];
                    }
                }
            }
        }
    }
}

/// A packed factor that solves X L' = B for many blocks of rows B.
pub(crate) struct RowSolver<T> {
    n: usize,
    /// For each block of columns: its first column, its rows left of it as panels of depth at most `BLOCK_COLUMNS`, and its own
    /// factor.
    blocks: Vec<(usize, Vec<Vec<T>>, BlockFactor<T>)>,
}

impl<T: Real> RowSolver<T> {
    /// Copies the lower triangle.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn new(l: &Square<T>, ctx: Context<'_>) -> Result<Self> {
        let (n, stride, values) = (l.n, l.stride, l.values());
        let blocks = (0..n).step_by(BLOCK_COLUMNS).map(|from| {
            let size = (n - from).min(BLOCK_COLUMNS);
            let below = &values[from * stride..];
            let left = (0..from).step_by(BLOCK_COLUMNS).map(|depth| {
                let mut panels = Vec::new();
                pack(below, stride, size, depth, BLOCK_COLUMNS, &mut panels, ctx)?;
                Ok(panels)
            });
            memory::check_available(MATRIX, HEADROOM)?;
            Ok((from, left.collect::<Result<Vec<_>>>()?, BlockFactor::new(below, stride, from, size)))
        });
        Ok(Self { n, blocks: blocks.collect::<Result<Vec<_>>>()? })
    }

    /// Replaces every line of `stride` numbers by X; a line must be as long as whole panels.
    pub(crate) fn substitute(&self, rows: &mut [T], stride: usize) {
        let (width, count) = (panel_width::<T>(), rows.len() / stride);
        assert!(stride >= self.n.next_multiple_of(width));
        for (from, left, block) in &self.blocks {
            for (depth, panels) in (0..*from).step_by(BLOCK_COLUMNS).zip(left) {
                for (p, panel) in panels.chunks_exact(BLOCK_COLUMNS * width).enumerate() {
                    update_rows(rows, stride, 0..count, depth, BLOCK_COLUMNS, panel, from + p * width);
                }
            }
            block.substitute(rows, stride, *from);
        }
    }
}

/// Subtracts K'K from A, for the lower triangle of A (m, m), K in lines of `stride` numbers.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn subtract_gram<A: Real, T: Real>(
    a: &mut Square<T>,
    k: &[A],
    stride: usize,
    ctx: Context<'_>,
) -> Result<()> {
    let (m, lines, width) = (a.n, a.stride, panel_width::<T>());
    for k in k.chunks(BLOCK_COLUMNS * stride) {
        let depth = k.len() / stride;
        let size = depth * width;
        let mut panels: Vec<T> = memory::try_zeros(MATRIX, m.div_ceil(width) * size)?;
        ctx.for_each_chunk(&mut panels, size, |p, panel| {
            for (out, line) in panel.chunks_exact_mut(width).zip(k.chunks_exact(stride)) {
                for (out, v) in out.iter_mut().zip(&line[p * width..m.min((p + 1) * width)]) {
                    *out = T::from_f64(v.to_f64());
                }
            }
        });
        ctx.for_each_chunk(a.values_mut(), ROWS_PER_TASK / 2 * lines, |task, rows| {
            let (first, count) = (task * ROWS_PER_TASK / 2, rows.len() / lines);
            for (p, panel) in panels.chunks_exact(size).enumerate().take((first + count).div_ceil(width)) {
                let at = Layout { start: first, row: 1, step: stride };
                subtract_product(k, at, (count, depth), panel, &mut rows[p * width..], lines);
            }
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::columns::{from_panels, multiply, solve, to_panels};
    use super::super::inverse::inverse_diagonal;
    use super::*;

    /// exp(-|i - j| / 20) + noise on the diagonal: positive definite, far from diagonal.
    fn example<T: Real>(n: usize) -> Square<T> {
        let mut a = Square::new(n).unwrap();
        let stride = a.stride();
        for i in 0..n {
            for j in 0..=i {
                let v = (-((i - j) as f64) / 20.0).exp() + if i == j { 0.1 } else { 0.0 };
                a.values_mut()[i * stride + j] = T::from_f64(v);
            }
        }
        a
    }

    #[test]
    fn factor_solution_and_inverse_at_every_size() {
        for n in [1, 2, 31, 64, 65, 200, 256, 257, 530] {
            let a = example::<f64>(n);
            let mut l = a.shifted::<f64>(|_| 0.25, Context::default()).unwrap();
            factor(&mut l, Context::default()).unwrap();
            let q = 19;
            let x: Vec<f64> = (0..n * q).map(|i| (i as f64 * 0.31).sin()).collect();
            let panels = to_panels::<f64>(&x, n, q).unwrap();
            let mut b = vec![0.0; panels.len()];
            multiply(&a, |_| 0.25, &panels, &mut b, Context::default()).unwrap();
            solve(&l, &mut b, Context::default()).unwrap();
            assert!(b.iter().zip(&panels).all(|(b, x)| (b - x).abs() < 1e-10), "{n}");
            let mut back = vec![0.0; n * q];
            from_panels(&b, &mut back, n, q);
            assert!(back.iter().zip(&x).all(|(b, x)| (b - x).abs() < 1e-10));
            let diagonal = inverse_diagonal(&mut l, Context::default()).unwrap();
            for i in (0..n).step_by(n / 7 + 1) {
                let mut unit = vec![0.0; n];
                unit[i] = 1.0;
                let mut e = to_panels::<f64>(&unit, n, 1).unwrap();
                solve(&l, &mut e, Context::SEQUENTIAL).unwrap();
                from_panels(&e, &mut unit, n, 1);
                assert!((unit[i] - diagonal[i]).abs() < 1e-10, "{n} {i} {} {}", unit[i], diagonal[i]);
            }
        }
    }

    #[test]
    fn gram_and_row_solutions() {
        for (n, m) in [(3_usize, 1_usize), (300, 70), (700, 300)] {
            let width = panel_width::<f64>();
            let stride = m.next_multiple_of(width) + 1;
            let k: Vec<f64> =
                (0..n * stride).map(|i| (i as f64 * 0.7 + (i * i) as f64 * 1e-3).sin()).collect();
            let mut a = Square::<f64>::new(m).unwrap();
            subtract_gram(&mut a, &k, stride, Context::default()).unwrap();
            let lines = a.stride();
            for (i, j) in [(0, 0), (m - 1, 0), (m - 1, m - 1), (m / 2, m / 3)] {
                let sum: f64 = (0..n).map(|t| k[t * stride + i] * k[t * stride + j]).sum();
                assert!((a.values()[i * lines + j] + sum).abs() < 1e-9);
            }
            let mut l = example::<f64>(m).shifted::<f64>(|_| 0.0, Context::SEQUENTIAL).unwrap();
            factor(&mut l, Context::default()).unwrap();
            let mut x = k.clone();
            RowSolver::new(&l, Context::default()).unwrap().substitute(&mut x, stride);
            for t in [0, n / 2, n - 1] {
                for i in 0..m {
                    let line = &l.values()[i * lines..=i * lines + i];
                    let sum: f64 = line.iter().zip(&x[t * stride..]).map(|(l, x)| l * x).sum();
                    assert!((sum - k[t * stride + i]).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let factored = |ctx: Context<'_>| {
            let mut l = example::<f32>(700);
            factor(&mut l, ctx).unwrap();
            let diagonal = inverse_diagonal(&mut l, ctx).unwrap();
            (l.values().to_vec(), diagonal)
        };
        assert_eq!(factored(Context::SEQUENTIAL), factored(Context::default()));
    }

    #[test]
    fn the_pivot_is_named() {
        let mut a = example::<f64>(300);
        let stride = a.stride();
        a.values_mut()[270 * stride + 270] = -1.0;
        let refused = factor(&mut a, Context::SEQUENTIAL);
        assert!(matches!(refused, Err(Error::NotPositiveDefinite { index: 270, .. })));
    }
}
