//! Many right-hand sides of large symmetric systems: solutions with a factor, products with the matrix.
//!
//! Columns are packed in panels, so that an entry of the matrix serves a register tile of them. A solution uses the
//! factor block by block: triangles of [`SMALL_COLUMNS`] inside blocks of [`BLOCK_COLUMNS`], the rest by products over
//! threads.
//!
//! Invariant: every entry is summed in an order that depends on the sizes alone, so the results do not depend on the number
//! of threads. Cost: n^2 multiply-adds for a column; the lower triangle is read once for each panel.

use super::dense::{BLOCK_COLUMNS, ROWS_PER_TASK, SMALL_COLUMNS, Square};
use crate::context::Context;
use crate::error::Result;
use crate::memory::{self};
use crate::simd::Real;
use crate::simd::micro::panel_width;
use crate::simd::panel::{Layout, backward, forward, subtract_product};

/// Purpose of the memory, for error messages.
const COLUMNS: &str = "right-hand sides";
/// Phase reported to the monitor.
const PHASE: &str = "solution";
/// Number of groups of rows of a symmetric product.
const ROW_GROUPS: usize = 16;

/// Packs right-hand sides into panels: (n, q) row-major in lines of [`panel_width`] columns, panel after panel.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(crate) fn to_panels<T: Real>(b: &[f64], n: usize, q: usize) -> Result<Vec<T>> {
    let width = panel_width::<T>();
    let mut panels: Vec<T> = memory::try_zeros(COLUMNS, q.div_ceil(width) * n * width)?;
    for (i, line) in b.chunks_exact(q).enumerate() {
        for (j, &v) in line.iter().enumerate() {
            panels[(j / width * n + i) * width + j % width] = T::from_f64(v);
        }
    }
    Ok(panels)
}

pub(crate) fn from_panels<T: Real>(panels: &[T], b: &mut [f64], n: usize, q: usize) {
    let width = panel_width::<T>();
    for (i, line) in b.chunks_exact_mut(q).enumerate() {
        for (j, v) in line.iter_mut().enumerate() {
            *v = panels[(j / width * n + i) * width + j % width].to_f64();
        }
    }
}

/// Solves L L' X = B in place for panels of right-hand sides in any precision.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped), checked before each panel.
pub(crate) fn solve<A: Real, T: Real>(l: &Square<A>, panels: &mut [T], ctx: Context<'_>) -> Result<()> {
    solve_lower(l, panels, ctx)?;
    solve_transposed(l, panels, ctx)
}

/// Solves L X = B in place.
///
/// # Errors
/// See [`solve`].
pub(crate) fn solve_lower<A: Real, T: Real>(l: &Square<A>, panels: &mut [T], ctx: Context<'_>) -> Result<()> {
    let width = panel_width::<T>();
    let (n, stride, values) = (l.len(), l.stride(), l.values());
    if n == 0 {
        return Ok(());
    }
    let count = panels.len() / (n * width);
    for (panel, x) in panels.chunks_exact_mut(n * width).enumerate() {
        ctx.check(PHASE, panel, count)?;
        for from in (0..n).step_by(BLOCK_COLUMNS) {
            let to = n.min(from + BLOCK_COLUMNS);
            let (above, below) = x.split_at_mut(to * width);
            for first in (from..to).step_by(SMALL_COLUMNS) {
                let end = to.min(first + SMALL_COLUMNS);
                let (mine, below) = above[first * width..].split_at_mut((end - first) * width);
                forward(&values[first * stride + first..], stride, end - first, mine);
                let at = Layout { start: end * stride + first, row: stride, step: 1 };
                subtract_product(values, at, (to - end, end - first), mine, below, width);
            }
            let mine = &above[from * width..];
            ctx.for_each_chunk(below, 2 * ROWS_PER_TASK * width, |task, out| {
                let at =
                    Layout { start: (to + 2 * task * ROWS_PER_TASK) * stride + from, row: stride, step: 1 };
                subtract_product(values, at, (out.len() / width, to - from), mine, out, width);
            });
        }
    }
    Ok(())
}

/// Solves L' X = B in place.
///
/// # Errors
/// See [`solve`].
pub(crate) fn solve_transposed<A: Real, T: Real>(
    l: &Square<A>,
    panels: &mut [T],
    ctx: Context<'_>,
) -> Result<()> {
    let width = panel_width::<T>();
    let (n, stride, values) = (l.len(), l.stride(), l.values());
    if n == 0 {
        return Ok(());
    }
    let count = panels.len() / (n * width);
    for (panel, x) in panels.chunks_exact_mut(n * width).enumerate() {
        ctx.check(PHASE, panel, count)?;
        for from in (0..n).step_by(BLOCK_COLUMNS).rev() {
            let to = n.min(from + BLOCK_COLUMNS);
            let (above, below) = x.split_at_mut(from * width);
            for first in (from..to).step_by(SMALL_COLUMNS).rev() {
                let end = to.min(first + SMALL_COLUMNS);
                let (left, mine) = below.split_at_mut((first - from) * width);
                let mine = &mut mine[..(end - first) * width];
                backward(&values[first * stride + first..], stride, end - first, mine);
                let at = Layout { start: first * stride + from, row: 1, step: stride };
                subtract_product(values, at, (first - from, end - first), mine, left, width);
            }
            let mine = &below[..(to - from) * width];
            ctx.for_each_chunk(above, 2 * ROWS_PER_TASK * width, |task, out| {
                let at = Layout { start: from * stride + 2 * task * ROWS_PER_TASK, row: 1, step: stride };
                subtract_product(values, at, (out.len() / width, to - from), mine, out, width);
            });
        }
    }
    Ok(())
}

/// Computes out = (A + D) X for the symmetric matrix whose lower triangle is given and a diagonal, X and out panels.
///
/// Every entry of A is read from memory once and used for both of its places. Each group of rows adds to its own sums,
/// which are added in order.
pub(crate) fn multiply<A: Real, T: Real>(
    a: &Square<A>,
    diagonal: impl Fn(usize) -> f64 + Sync,
    x: &[T],
    out: &mut [T],
    ctx: Context<'_>,
) -> Result<()> {
    let width = panel_width::<T>();
    let (n, stride, values) = (a.len(), a.stride(), a.values());
    if n == 0 {
        return Ok(());
    }
    let panels = x.len() / (n * width);
    // Groups of equal area: each ends at a multiple of the rows of a block.
    let end = |group: usize| {
        let share = ((group as f64 + 1.0) / ROW_GROUPS as f64).sqrt() * n as f64;
        if group + 1 == ROW_GROUPS { n } else { (share as usize).next_multiple_of(ROWS_PER_TASK).min(n) }
    };
    let mut sums: Vec<Vec<T>> = (0..ROW_GROUPS).map(|_| Vec::new()).collect();
    ctx.try_for_each_chunk(&mut sums, 1, |group, sums| {
        let (from, to) = (if group == 0 { 0 } else { end(group - 1) }, end(group));
        if from == to {
            return Ok(());
        }
        let sums = &mut sums[0];
        memory::try_resize(COLUMNS, sums, panels * to * width, T::ZERO)?;
        let mut triangle = vec![A::ZERO; ROWS_PER_TASK * ROWS_PER_TASK];
        for first in (from..to).step_by(ROWS_PER_TASK) {
            let count = ROWS_PER_TASK.min(to - first);
            for left in (0..first).step_by(BLOCK_COLUMNS) {
                let depth = BLOCK_COLUMNS.min(first - left);
                let start = first * stride + left;
                for (x, sums) in x.chunks_exact(n * width).zip(sums.chunks_exact_mut(to * width)) {
                    let rows = Layout { start, row: stride, step: 1 };
                    let (near, far) = (&x[left * width..], &x[first * width..]);
                    subtract_product(values, rows, (count, depth), near, &mut sums[first * width..], width);
                    let columns = Layout { start, row: 1, step: stride };
                    subtract_product(values, columns, (depth, count), far, &mut sums[left * width..], width);
                }
            }
            for i in 0..count {
                for j in 0..=i {
                    let value = values[(first + i) * stride + first + j];
                    triangle[i * ROWS_PER_TASK + j] = value;
                    triangle[j * ROWS_PER_TASK + i] = value;
                }
            }
            let at = Layout { start: 0, row: ROWS_PER_TASK, step: 1 };
            for (x, sums) in x.chunks_exact(n * width).zip(sums.chunks_exact_mut(to * width)) {
                let (x, sums) = (&x[first * width..], &mut sums[first * width..]);
                subtract_product(&triangle, at, (count, count), x, sums, width);
            }
        }
        Ok(())
    })?;
    for (p, (x, out)) in x.chunks_exact(n * width).zip(out.chunks_exact_mut(n * width)).enumerate() {
        ctx.for_each_chunk(out, ROWS_PER_TASK * width, |task, out| {
            let first = task * ROWS_PER_TASK;
            for (i, (out, x)) in
                (first..).zip(out.chunks_exact_mut(width).zip(x[first * width..].chunks_exact(width)))
            {
                let shift = diagonal(i);
                for (out, x) in out.iter_mut().zip(x) {
                    *out = T::from_f64(shift * x.to_f64());
                }
            }
            for (group, sums) in sums.iter().enumerate().filter(|(_, sums)| !sums.is_empty()) {
                let to = end(group);
                if first < to {
                    let lines = &sums[(p * to + first) * width..(p + 1) * to * width];
                    for (out, sum) in out.iter_mut().zip(lines) {
                        *out = T::from_f64(out.to_f64() - sum.to_f64());
                    }
                }
            }
        });
    }
    Ok(())
}
