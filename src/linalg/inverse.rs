//! The inverse of a large symmetric positive definite matrix, from its Cholesky factor.
//!
//! With M = L^-1, the inverse is M' M. [`invert_factor`] keeps M' in the upper triangle of the factor; its products are
//! summed block by block of the inner dimension, by the register tiles of `simd::panel`, into the lower triangle of the
//! result, which is then mirrored.
//!
//! Invariant: every entry is summed in an order that depends on the sizes alone, so the results do not depend on the number
//! of threads. Cost: n^3 / 6 multiply-adds for M and as many for M' M; memory for the result, and [`BLOCK_COLUMNS`] numbers
//! for each row.

use super::dense::{BLOCK_COLUMNS, BlockFactor, ROWS_PER_TASK, Square, WORK_PER_CHECK, pack};
use crate::context::Context;
use crate::error::Result;
use crate::memory::{self};
use crate::simd::Real;
use crate::simd::micro::panel_width;
use crate::simd::panel::{Layout, subtract_product, update_rows};
use ndarray::Array2;

/// Context reported when an allocation fails.
const INVERSE: &str = "the inverse";

/// Returns (L L')^-1, (n, n), exactly symmetric. The contents of `l` are lost.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory), [`Error::Stopped`](crate::Error::Stopped).
pub(crate) fn inverse(mut l: Square<f64>, ctx: Context<'_>) -> Result<Array2<f64>> {
    let (n, stride, width) = (l.len(), l.stride(), panel_width::<f64>());
    let mut inverse = memory::try_zero_matrix(INVERSE, (n, n))?;
    let lower = inverse.as_slice_mut().expect("row-major");
    let mut panels = memory::try_zeros(INVERSE, BLOCK_COLUMNS.min(n) * n.next_multiple_of(width))?;
    invert_factor(&mut l, ctx)?;
    complete_diagonal_blocks(&mut l);
    let upper = l.values();
    for from in (0..n).step_by(BLOCK_COLUMNS) {
        ctx.check("inverse", from, n)?;
        // Rows below `to` of M' have numbers in these columns.
        let to = n.min(from + BLOCK_COLUMNS);
        let depth = to - from;
        let panels = &mut panels[..depth * to.next_multiple_of(width)];
        ctx.for_each_chunk(panels, depth * width, |p, panel| {
            pack_negated(upper, stride, (from, to), p, panel);
        });
        ctx.for_each_chunk(&mut lower[..to * n], ROWS_PER_TASK * n, |task, lines| {
            let (first, count) = (task * ROWS_PER_TASK, lines.len() / n);
            let rows = Layout { start: first * stride + from, row: stride, step: 1 };
            for (p, panel) in
                panels.chunks_exact(depth * width).enumerate().take((first + count).div_ceil(width))
            {
                let column = p * width;
                if column + width <= n {
                    subtract_product(upper, rows, (count, depth), panel, &mut lines[column..], n);
                } else {
                    // The last panel is wider than the rest of a line.
                    let mut tile = vec![0.0; count * width];
                    subtract_product(upper, rows, (count, depth), panel, &mut tile, width);
                    for (line, tile) in lines.chunks_exact_mut(n).zip(tile.chunks_exact(width)) {
                        line[column..].iter_mut().zip(tile).for_each(|(sum, part)| *sum += part);
                    }
                }
            }
        });
    }
    mirror(lower, n, ctx);
    Ok(inverse)
}

/// Makes the blocks on the diagonal those of M', of which [`invert_factor`] leaves the diagonal and zeros out.
fn complete_diagonal_blocks(l: &mut Square<f64>) {
    let (n, stride) = (l.len(), l.stride());
    for (i, line) in l.values_mut().chunks_exact_mut(stride).take(n).enumerate() {
        line[i / BLOCK_COLUMNS * BLOCK_COLUMNS..i].fill(0.0);
        line[i] = 1.0 / line[i];
    }
}

/// Packs the columns `from..to` of the rows of panel `p`, with the opposite sign.
fn pack_negated(rows: &[f64], stride: usize, (from, to): (usize, usize), p: usize, panel: &mut [f64]) {
    let width = panel_width::<f64>();
    let first = p * width;
    panel.fill(0.0);
    for j in 0..width.min(to - first) {
        let line = &rows[(first + j) * stride + from..][..to - from];
        for (out, &v) in panel.chunks_exact_mut(width).zip(line) {
            out[j] = -v;
        }
    }
}

/// Copies the lower triangle of an (n, n) matrix into the upper one.
fn mirror(values: &mut [f64], n: usize, ctx: Context<'_>) {
    for from in (0..n).step_by(BLOCK_COLUMNS) {
        let to = n.min(from + BLOCK_COLUMNS);
        let (above, below) = values.split_at_mut(from * n);
        ctx.for_each_chunk(above, ROWS_PER_TASK * n, |task, lines| {
            for (j, line) in (task * ROWS_PER_TASK..).zip(lines.chunks_exact_mut(n)) {
                for (i, out) in line[from..to].iter_mut().enumerate() {
                    *out = below[i * n + j];
                }
            }
        });
        for i in 0..to - from {
            for j in 0..i {
                below[j * n + from + i] = below[i * n + from + j];
            }
        }
    }
}

/// Returns the diagonal of (L L')^-1, after [`invert_factor`].
///
/// # Errors
/// [`Error::Memory`], [`Error::Stopped`].
pub(crate) fn inverse_diagonal<T: Real>(l: &mut Square<T>, ctx: Context<'_>) -> Result<Vec<f64>> {
    invert_factor(l, ctx)?;
    let (n, stride, values) = (l.len(), l.stride(), l.values());
    let mut diagonal = vec![0.0; n];
    ctx.for_each_chunk(&mut diagonal, ROWS_PER_TASK, |task, diagonal| {
        for (i, out) in (task * ROWS_PER_TASK..).zip(diagonal) {
            let line = &values[i * stride..i * stride + n];
            let pivot = line[i].to_f64();
            *out = 1.0 / (pivot * pivot) + line[i + 1..].iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>();
        }
    });
    Ok(diagonal)
}

/// Writes M' = L^-T without its diagonal, which is one over that of L, above the diagonal of `l`.
///
/// # Errors
/// [`Error::Memory`], [`Error::Stopped`].
fn invert_factor<T: Real>(l: &mut Square<T>, ctx: Context<'_>) -> Result<()> {
    let (n, stride, width) = (l.len(), l.stride(), panel_width::<T>());
    let values = l.values_mut();
    let mut panels = Vec::new();
    for from in (0..n).step_by(BLOCK_COLUMNS) {
        let (to, size) = (n.min(from + BLOCK_COLUMNS), n.min(from + BLOCK_COLUMNS) - from);
        let (above, below) = values.split_at_mut(from * stride);
        let below = &mut below[..size * stride];
        let block = BlockFactor::new(below, stride, from, size);
        // Depth in parts, so that rows and panels stay in the caches.
        let depths: Vec<usize> = (0..from).step_by(BLOCK_COLUMNS).collect();
        panels.resize(depths.len(), Vec::new());
        for (&depth, panels) in depths.iter().zip(&mut panels) {
            pack(below, stride, size, depth, BLOCK_COLUMNS, panels, ctx)?;
        }
        let at_once = (WORK_PER_CHECK / (size * from.max(1)))
            .next_multiple_of(ROWS_PER_TASK)
            .max(ROWS_PER_TASK * ctx.threads());
        for (group, above) in above.chunks_mut(at_once * stride).enumerate() {
            ctx.check("inverse", from, n)?;
            ctx.for_each_chunk(above, ROWS_PER_TASK * stride, |task, rows| {
                let (first, count) = (group * at_once + task * ROWS_PER_TASK, rows.len() / stride);
                for line in rows.chunks_exact_mut(stride) {
                    line[from..to.next_multiple_of(width).min(stride)].fill(T::ZERO);
                }
                for (&depth, panels) in depths.iter().zip(&panels) {
                    subtract_inverse(rows, stride, first, depth, panels, from);
                }
                debug_assert!(count <= ROWS_PER_TASK);
                block.substitute(rows, stride, from);
            });
        }
        // The block's own inverse.
        let mut identity = Square::<T>::new(size)?;
        let lines = identity.stride();
        identity.shift(|_| 1.0);
        block.substitute(identity.values_mut(), lines, 0);
        for i in 0..size {
            let line = &identity.values()[i * lines + i + 1..i * lines + size];
            below[i * stride + from + i + 1..i * stride + to].copy_from_slice(line);
        }
    }
    Ok(())
}

/// Subtracts from the columns from `to` the product of the rows' columns `depth..depth + BLOCK_COLUMNS` of M' and panels.
///
/// Left of the diagonal the rows hold L, where M' is zero; on it M' is one over L.
fn subtract_inverse<T: Real>(
    rows: &mut [T],
    stride: usize,
    first: usize,
    depth: usize,
    panels: &[T],
    to: usize,
) {
    let (count, width) = (rows.len() / stride, panel_width::<T>());
    if depth + BLOCK_COLUMNS <= first {
        return;
    }
    if depth >= first + count {
        for (p, panel) in panels.chunks_exact(BLOCK_COLUMNS * width).enumerate() {
            update_rows(rows, stride, 0..count, depth, BLOCK_COLUMNS, panel, to + p * width);
        }
        return;
    }
    let mut part = vec![T::ZERO; count * BLOCK_COLUMNS];
    for i in 0..count {
        for k in depth.max(first + i)..depth + BLOCK_COLUMNS {
            let value = rows[i * stride + k];
            part[i * BLOCK_COLUMNS + k - depth] =
                if k == first + i { T::from_f64(1.0 / value.to_f64()) } else { value };
        }
    }
    for (p, panel) in panels.chunks_exact(BLOCK_COLUMNS * width).enumerate() {
        let at = Layout { start: 0, row: BLOCK_COLUMNS, step: 1 };
        subtract_product(&part, at, (count, BLOCK_COLUMNS), panel, &mut rows[to + p * width..], stride);
    }
}

#[cfg(test)]
mod tests {
    use super::super::dense::factor;
    use super::*;

    /// exp(-|i - j| / 20) + noise on the diagonal: positive definite, far from diagonal.
    fn entry(i: usize, j: usize) -> f64 {
        (-(i.abs_diff(j) as f64) / 20.0).exp() + if i == j { 0.1 } else { 0.0 }
    }

    fn inverse_of_example(n: usize, ctx: Context<'_>) -> Array2<f64> {
        let mut a = Square::new(n).unwrap();
        let stride = a.stride();
        for i in 0..n {
            for j in 0..=i {
                a.values_mut()[i * stride + j] = entry(i, j);
            }
        }
        factor(&mut a, ctx).unwrap();
        inverse(a, ctx).unwrap()
    }

    #[test]
    fn the_product_with_the_matrix_is_the_identity() {
        for n in [1, 2, 31, 64, 95, 97, 256, 257, 530] {
            let inverse = inverse_of_example(n, Context::default());
            let product = Array2::from_shape_fn((n, n), |(i, j)| entry(i, j)).dot(&inverse);
            for ((i, j), v) in product.indexed_iter() {
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((v - expected).abs() < 1e-11, "{n} {i} {j} {v}");
                assert_eq!(inverse[[i, j]].to_bits(), inverse[[j, i]].to_bits());
            }
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        assert_eq!(inverse_of_example(700, Context::SEQUENTIAL), inverse_of_example(700, Context::default()));
    }
}
