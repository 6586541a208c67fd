//! The register tile of the dense factorizations: C -= A B, a few rows of C against one panel of B.
//!
//! A panel holds [`panel_width`](super::micro::panel_width) columns of B, line after line, as in `micro`. A is read in
//! place with any two strides, so a factor serves as itself and as its transpose, and may be of lower precision than
//! the rest. Every entry of C is summed in the order of the depth in one accumulator, in all tiles.

use super::micro::panel_width;
use super::{Isa, Operation, Real, Vector, run};

/// Minimum depth at which lines of C are prefetched before the sums.
const MIN_PREFETCH_DEPTH: usize = 64;

/// The layout of A: entry (i, k) is at `start + i row + k step`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Position of the first entry.
    pub(crate) start: usize,
    /// Distance of neighboring rows.
    pub(crate) row: usize,
    /// Distance of neighboring entries along the depth.
    pub(crate) step: usize,
}

impl Layout {
    /// Returns the end of the entries that a product reads.
    fn end(&self, rows: usize, depth: usize) -> usize {
        self.start + (rows - 1) * self.row + (depth - 1) * self.step + 1
    }
}

/// Loads the cache line of an address, which may be any, ahead of its use.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is a hint, which reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
}

/// Invariant: every entry of A, of the panel and of C that the sizes name is inside an allocation, and those of C are
/// not accessed elsewhere and are not among those of A.
struct Tile<A, T> {
    a: *const A,
    row: usize,
    step: usize,
    rows: usize,
    depth: usize,
    panel: *const T,
    out: *mut T,
    out_row: usize,
}

impl<A: Real, T: Real> Tile<A, T> {
    #[inline(always)]
    unsafe fn rows<V: Vector<Elem = T>, const R: usize>(&self, done: usize) {
        // SAFETY: the invariant; done + R <= rows.
        unsafe {
            let out = self.out.add(done * self.out_row);
            if self.depth >= MIN_PREFETCH_DEPTH {
                for i in 0..R {
                    prefetch(out.add(i * self.out_row));
                    prefetch(out.add(i * self.out_row + V::LANES));
                }
            }
            let mut sums = [[V::zero(); 2]; R];
            let mut a = self.a.add(done * self.row);
            let mut b = self.panel;
            let mut first = 0;
            if V::MULTIPLIES_BY_LANE && self.step == 1 {
                // Lanes are entries along the depth.
                while first + V::LANES <= self.depth {
                    let mut values = [V::zero(); R];
                    for (i, values) in values.iter_mut().enumerate() {
                        *values = A::load::<V>(a.add(i * self.row));
                    }
                    for lane in 0..V::LANES {
                        let (b0, b1) = (V::load(b), V::load(b.add(V::LANES)));
                        b = b.add(2 * V::LANES);
                        for i in 0..R {
                            let value = values[i].broadcast(lane);
                            sums[i][0] = value.mul_add(b0, sums[i][0]);
                            sums[i][1] = value.mul_add(b1, sums[i][1]);
                        }
                    }
                    a = a.wrapping_add(V::LANES);
                    first += V::LANES;
                }
            } else if V::MULTIPLIES_BY_LANE && self.row == 1 && R.is_multiple_of(V::LANES) {
                // Lanes are entries of consecutive rows.
                while first < self.depth {
                    let (b0, b1) = (V::load(b), V::load(b.add(V::LANES)));
                    b = b.add(2 * V::LANES);
                    for part in (0..R).step_by(V::LANES) {
                        let values = A::load::<V>(a.add(part));
                        for lane in 0..V::LANES {
                            let (value, sum) = (values.broadcast(lane), &mut sums[part + lane]);
                            sum[0] = value.mul_add(b0, sum[0]);
                            sum[1] = value.mul_add(b1, sum[1]);
                        }
                    }
                    a = a.wrapping_add(self.step);
                    first += 1;
                }
            }
            for _ in first..self.depth {
                let (b0, b1) = (V::load(b), V::load(b.add(V::LANES)));
                b = b.add(2 * V::LANES);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let value = V::splat(T::from_f64((*a.add(i * self.row)).to_f64()));
                    sum[0] = value.mul_add(b0, sum[0]);
                    sum[1] = value.mul_add(b1, sum[1]);
                }
                a = a.wrapping_add(self.step);
            }
            for (i, sum) in sums.iter().enumerate() {
                let out = out.add(i * self.out_row);
                V::load(out).sub(sum[0]).store(out);
                V::load(out.add(V::LANES)).sub(sum[1]).store(out.add(V::LANES));
            }
        }
    }
}

impl<A: Real, T: Real> Operation for Tile<A, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        let mut done = 0;
        while done < self.rows {
            let left = self.rows - done;
            // SAFETY: the invariant; the tile ends at or before the last row.
            unsafe {
                if I::TILE_ROWS == 12 && left >= 12 {
                    self.rows::<T::Of<I>, 12>(done);
                    done += 12;
                } else if I::TILE_ROWS == 8 && left >= 8 {
                    self.rows::<T::Of<I>, 8>(done);
                    done += 8;
                } else if left >= 6 {
                    self.rows::<T::Of<I>, 6>(done);
                    done += 6;
                } else if left >= 2 {
                    self.rows::<T::Of<I>, 2>(done);
                    done += 2;
                } else {
                    self.rows::<T::Of<I>, 1>(done);
                    done += 1;
                }
            }
        }
    }
}

/// Subtracts sum_k a(i, k) panel[k, ..width] from out[i, ..width] for i below `rows`; lines of `out` are `out_row` apart.
pub(crate) fn subtract_product<A: Real, T: Real>(
    a: &[A],
    at: Layout,
    (rows, depth): (usize, usize),
    panel: &[T],
    out: &mut [T],
    out_row: usize,
) {
    let width = panel_width::<T>();
    if rows == 0 || depth == 0 {
        return;
    }
    assert!(at.end(rows, depth) <= a.len() && panel.len() >= depth * width);
    assert!(out.len() >= (rows - 1) * out_row + width && (out_row >= width || rows == 1));
    let (row, step) = (at.row, at.step);
    // SAFETY: the start is inside `a` by the assertion.
    let a = unsafe { a.as_ptr().add(at.start) };
    let (panel, out) = (panel.as_ptr(), out.as_mut_ptr());
    // SAFETY: both corners of both blocks are inside them by the assertions.
    unsafe { run(Tile { a, row, step, rows, depth, panel, out, out_row }) };
}

/// Subtracts a product as [`subtract_product`] for rows whose columns `from..from + depth` are A and `to..to + width` are C.
pub(crate) fn update_rows<T: Real>(
    block: &mut [T],
    stride: usize,
    rows: std::ops::Range<usize>,
    from: usize,
    depth: usize,
    panel: &[T],
    to: usize,
) {
    let width = panel_width::<T>();
    if rows.is_empty() || depth == 0 {
        return;
    }
    assert!(from + depth <= to || to + width <= from);
    assert!(from + depth <= stride && to + width <= stride && block.len() >= rows.end * stride);
    assert!(panel.len() >= depth * width);
    let start = block.as_mut_ptr();
    // SAFETY: both corners are inside the block and their columns are disjoint by the assertions.
    let (a, out) =
        unsafe { (start.add(rows.start * stride + from).cast_const(), start.add(rows.start * stride + to)) };
    let tile = Tile {
        a,
        row: stride,
        step: 1,
        rows: rows.len(),
        depth,
        panel: panel.as_ptr(),
        out,
        out_row: stride,
    };
    // SAFETY: as above, and the panel is long enough.
    unsafe { run(tile) };
}

/// Solves L X = B or, from the last line up, L' X = B for one panel of right-hand sides in place; L (n, n) is lower triangular
/// in lines of `stride`.
struct Substitution<'a, A, T, const TRANSPOSED: bool> {
    l: &'a [A],
    stride: usize,
    n: usize,
    x: &'a mut [T],
}

impl<A: Real, T, const TRANSPOSED: bool> Substitution<'_, A, T, TRANSPOSED> {
    #[inline(always)]
    unsafe fn entry(&self, i: usize, k: usize) -> f64 {
        let at = if TRANSPOSED { k * self.stride + i } else { i * self.stride + k };
        // SAFETY: `substitute` has checked the sizes; i and k are below n.
        unsafe { (*self.l.as_ptr().add(at)).to_f64() }
    }
}

impl<A: Real, T: Real, const TRANSPOSED: bool> Operation for Substitution<'_, A, T, TRANSPOSED> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        let lanes = <T::Of<I> as Vector>::LANES;
        let x = self.x.as_mut_ptr();
        // SAFETY: `substitute` has checked the sizes.
        unsafe {
            for done in 0..self.n {
                let i = if TRANSPOSED { self.n - 1 - done } else { done };
                let at = x.add(i * 2 * lanes);
                let (mut s0, mut s1) = (T::Of::<I>::load(at), T::Of::<I>::load(at.add(lanes)));
                for k in if TRANSPOSED { i + 1..self.n } else { 0..i } {
                    let value = T::Of::<I>::splat(T::from_f64(-self.entry(i, k)));
                    let b = x.add(k * 2 * lanes).cast_const();
                    s0 = value.mul_add(T::Of::<I>::load(b), s0);
                    s1 = value.mul_add(T::Of::<I>::load(b.add(lanes)), s1);
                }
                let pivot = T::Of::<I>::splat(T::from_f64(self.entry(i, i)));
                s0.div(pivot).store(at);
                s1.div(pivot).store(at.add(lanes));
            }
        }
    }
}

fn substitute<A: Real, T: Real, const TRANSPOSED: bool>(l: &[A], stride: usize, n: usize, x: &mut [T]) {
    assert!(n == 0 || l.len() >= (n - 1) * stride + n);
    assert!(x.len() >= n * panel_width::<T>());
    // SAFETY: triangle and right-hand sides are as long as the assertions say.
    unsafe { run(Substitution::<A, T, TRANSPOSED> { l, stride, n, x }) };
}

/// Solves L X = B for a panel B of `n` lines.
pub(crate) fn forward<A: Real, T: Real>(l: &[A], stride: usize, n: usize, x: &mut [T]) {
    substitute::<A, T, false>(l, stride, n, x);
}

/// Solves L' X = B for a panel B of `n` lines.
pub(crate) fn backward<A: Real, T: Real>(l: &[A], stride: usize, n: usize, x: &mut [T]) {
    substitute::<A, T, true>(l, stride, n, x);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, salt: f64) -> Vec<f64> {
        (0..count).map(|i| (i as f64 * 0.77 + salt + (i * i) as f64 * 0.013).sin()).collect()
    }

    #[test]
    fn products_equal_plain_loops() {
        let width = panel_width::<f64>();
        for (rows, depth) in [(1, 1), (2, 5), (13, 7), (37, 64), (12, 0)] {
            let (a, b) = (noise(rows * (depth + 3), 0.1), noise(depth * width, 0.7));
            let start = noise(rows * (width + 1), 0.3);
            let single: Vec<f32> = a.iter().map(|&v| v as f32).collect();
            for transposed in [false, true] {
                let at = if transposed {
                    Layout { start: 0, row: 1, step: rows }
                } else {
                    Layout { start: 1, row: depth + 3, step: 1 }
                };
                let mut out = start.clone();
                subtract_product(&a, at, (rows, depth), &b, &mut out, width + 1);
                let mut mixed = start.clone();
                subtract_product(&single, at, (rows, depth), &b, &mut mixed, width + 1);
                for i in 0..rows {
                    for j in 0..width {
                        let sum: f64 = (0..depth)
                            .map(|k| a[at.start + i * at.row + k * at.step] * b[k * width + j])
                            .sum();
                        let expected = start[i * (width + 1) + j] - sum;
                        assert!((out[i * (width + 1) + j] - expected).abs() < 1e-12);
                        assert!((mixed[i * (width + 1) + j] - expected).abs() < 1e-5);
                    }
                }
            }
        }
    }

    #[test]
    fn triangles_are_solved() {
        let (n, width) = (29, panel_width::<f64>());
        let mut l = noise(n * (n + 2), 0.2);
        for i in 0..n {
            l[i * (n + 2) + i] = 2.0 + i as f64;
        }
        let b = noise(n * width, 0.9);
        let (mut x, mut z) = (b.clone(), b.clone());
        forward(&l, n + 2, n, &mut x);
        backward(&l, n + 2, n, &mut z);
        for i in 0..n {
            for j in 0..width {
                let down: f64 = (0..=i).map(|k| l[i * (n + 2) + k] * x[k * width + j]).sum();
                let up: f64 = (i..n).map(|k| l[k * (n + 2) + i] * z[k * width + j]).sum();
                assert!((down - b[i * width + j]).abs() < 1e-10);
                assert!((up - b[i * width + j]).abs() < 1e-10);
            }
        }
    }
}
