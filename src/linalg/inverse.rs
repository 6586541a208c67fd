//! The inverse of a large symmetric positive definite matrix, from its Cholesky factor.
//!
//! With M = L^-1, the inverse is M' M. [`invert_factor`] keeps M' in the upper triangle of the factor; its products are
//! summed block by block of the inner dimension, by the register tiles of `simd::panel`, into the lower triangle of the
//! result, which is then mirrored.
//!
//! Every entry is summed in an order that depends on the sizes alone, so threads cannot change a result. Cost n^3 / 6
//! multiply-adds for M and as many for M' M; memory for the result, and [`BLOCK`] numbers for each row.

use super::dense::{BLOCK, ROWS, Square, invert_factor};
use crate::context::Context;
use crate::error::Result;
use crate::memory;
use crate::simd::micro::panel_width;
use crate::simd::panel::{Layout, subtract_product};
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
    let mut panels = memory::try_zeros(INVERSE, BLOCK.min(n) * n.next_multiple_of(width))?;
    invert_factor(&mut l, ctx)?;
    complete_diagonal_blocks(&mut l);
    let upper = l.values();
    for from in (0..n).step_by(BLOCK) {
        ctx.check("inverse", from, n)?;
        // Rows below `to` of M' have numbers in these columns.
        let to = n.min(from + BLOCK);
        let depth = to - from;
        let panels = &mut panels[..depth * to.next_multiple_of(width)];
        ctx.for_each_chunk(panels, depth * width, |p, panel| {
            pack_negated(upper, stride, (from, to), p, panel);
        });
        ctx.for_each_chunk(&mut lower[..to * n], ROWS * n, |task, lines| {
            let (first, count) = (task * ROWS, lines.len() / n);
            let rows = Layout { start: first * stride + from, row: stride, step: 1 };
            for (p, panel) in
                panels.chunks_exact(depth * width).enumerate().take((first + count).div_ceil(width))
            {
                let column = p * width;
                if column + width <= n {
                    subtract_product(upper, rows, (count, depth), panel, &mut lines[column..], n);
                } else {
                    // The last panel is wider than the rest of a line.
                    let mut tile = vec![0.0; count * width]; // small: a block
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
        line[i / BLOCK * BLOCK..i].fill(0.0);
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
    for from in (0..n).step_by(BLOCK) {
        let to = n.min(from + BLOCK);
        let (above, own) = values.split_at_mut(from * n);
        ctx.for_each_chunk(above, ROWS * n, |task, lines| {
            for (j, line) in (task * ROWS..).zip(lines.chunks_exact_mut(n)) {
                for (i, out) in line[from..to].iter_mut().enumerate() {
                    *out = own[i * n + j];
                }
            }
        });
        for i in 0..to - from {
            for j in 0..i {
                own[j * n + from + i] = own[i * n + from + j];
            }
        }
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
