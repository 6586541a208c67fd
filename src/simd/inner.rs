//! Inner products of many long rows with a few vectors, A V', in single or double precision; the sums of segments are added in
//! double precision.
//!
//! A tile of some rows and four vectors shares its loads, and a segment of the vectors stays in the cache while it is
//! multiplied by all rows. Nothing is packed, since a row is read once.

use super::{Isa, Operation, Real, Vector, run};

/// Maximum number of elements that a tile sums in its own precision.
const SEGMENT_LENGTH: usize = 1024;
/// Number of bytes of the vectors that stay in a core's cache.
const CACHED_BYTES: usize = 1 << 19;

struct Products<'a, T> {
    rows: &'a [&'a [T]],
    vectors: &'a [T],
    length: usize,
    out: &'a mut [f64],
}

impl<T: Real> Products<'_, T> {
    /// out[row + r][column + c] += the products along `from..to`.
    #[inline(always)]
    unsafe fn tile<V: Vector<Elem = T>, const R: usize, const C: usize>(
        &mut self,
        row: usize,
        column: usize,
        (from, to): (usize, usize),
    ) {
        // SAFETY: `row_products` has checked that every row and vector has `length` numbers; to <= length, row + R and
        // column + C stay within the rows and vectors.
        unsafe {
            let mut sums = [[V::zero(); C]; R];
            let (mut rows, mut vectors) = ([std::ptr::null::<T>(); R], [std::ptr::null::<T>(); C]);
            for (r, start) in rows.iter_mut().enumerate() {
                *start = self.rows.get_unchecked(row + r).as_ptr();
            }
            for (c, start) in vectors.iter_mut().enumerate() {
                *start = self.vectors.as_ptr().add((column + c) * self.length);
            }
            let mut i = from;
            while i + V::LANES <= to {
                let mut x = [V::zero(); R];
                for r in 0..R {
                    x[r] = V::load(rows[r].add(i));
                }
                for c in 0..C {
                    let v = V::load(vectors[c].add(i));
                    for r in 0..R {
                        sums[r][c] = x[r].mul_add(v, sums[r][c]);
                    }
                }
                i += V::LANES;
            }
            let count = self.vectors.len() / self.length;
            // A loop of its own, which is unrolled: the sums stay in registers.
            let mut totals = [[0.0; C]; R];
            for r in 0..R {
                for c in 0..C {
                    totals[r][c] = sums[r][c].sum().to_f64();
                }
            }
            for r in 0..R {
                for c in 0..C {
                    let mut sum = totals[r][c];
                    for k in i..to {
                        let other = self.vectors[(column + c) * self.length + k];
                        sum += self.rows[row + r][k].to_f64() * other.to_f64();
                    }
                    self.out[(row + r) * count + column + c] += sum;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn columns<V: Vector<Elem = T>, const R: usize>(&mut self, row: usize, block: (usize, usize)) {
        let count = self.vectors.len() / self.length;
        for from in (block.0..block.1).step_by(SEGMENT_LENGTH) {
            let part = (from, block.1.min(from + SEGMENT_LENGTH));
            let mut column = 0;
            // SAFETY: as `tile`; the loops keep column + C within the vectors.
            unsafe {
                while column + 4 <= count {
                    self.tile::<V, R, 4>(row, column, part);
                    column += 4;
                }
                while column < count {
                    self.tile::<V, R, 1>(row, column, part);
                    column += 1;
                }
            }
        }
    }
}

impl<T: Real> Operation for Products<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(mut self) {
        let (rows, count) = (self.rows.len(), (self.vectors.len() / self.length).max(1));
        let block = (CACHED_BYTES / (count * size_of::<T>())).max(1).next_multiple_of(SEGMENT_LENGTH);
        for from in (0..self.length).step_by(block) {
            let part = (from, self.length.min(from + block));
            let mut row = 0;
            // SAFETY: as `tile`; the loops keep row + R within the rows.
            unsafe {
                if I::REGISTERS >= 32 {
                    // 24 sums, ten loads, in 32 registers.
                    while row + 6 <= rows {
                        self.columns::<T::Of<I>, 6>(row, part);
                        row += 6;
                    }
                }
                while row + 2 <= rows {
                    self.columns::<T::Of<I>, 2>(row, part);
                    row += 2;
                }
                while row < rows {
                    self.columns::<T::Of<I>, 1>(row, part);
                    row += 1;
                }
            }
        }
    }
}

/// Writes the products of `rows` with `vectors` (b, length) to `out` (rows, b).
pub(crate) fn row_products<T: Real>(rows: &[&[T]], vectors: &[T], length: usize, out: &mut [f64]) {
    out.fill(0.0);
    if length == 0 {
        return;
    }
    assert!(rows.iter().all(|row| row.len() == length));
    assert!(vectors.len().is_multiple_of(length) && out.len() == rows.len() * (vectors.len() / length));
    // SAFETY: rows, vectors and results are as long as the assertions say.
    unsafe { run(Products { rows, vectors, length, out }) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_may_be_more_vectors_than_a_block_holds() {
        let (count, length) = (CACHED_BYTES / size_of::<f32>() + 1, 3);
        let vectors: Vec<f32> = (0..count * length).map(|i| (i % 17) as f32).collect();
        let mut out = vec![0.0; count];
        row_products(&[&[1.0, 2.0, 4.0]], &vectors, length, &mut out);
        for (out, v) in out.iter().zip(vectors.chunks_exact(length)) {
            assert_eq!(*out, f64::from(v[0] + 2.0 * v[1] + 4.0 * v[2]));
        }
    }

    #[test]
    fn products_equal_plain_sums() {
        for (m, b, l) in [(1, 1, 1), (9, 7, 37), (4, 4, 1030), (6, 1, 2048), (3, 5, 0)] {
            let noise = |i: usize| (i as f64 * 0.7 + (i * i) as f64 * 0.01).sin();
            let a: Vec<f64> = (0..m * l).map(noise).collect();
            let single: Vec<f32> = a.iter().map(|&v| v as f32).collect();
            let v: Vec<f64> = (0..b * l).map(|i| noise(i + 5)).collect();
            let rows: Vec<&[f64]> = (0..m).map(|i| &a[i * l..(i + 1) * l]).collect();
            let narrow: Vec<&[f32]> = (0..m).map(|i| &single[i * l..(i + 1) * l]).collect();
            let (mut out, mut other) = (vec![1.0; m * b], vec![1.0; m * b]);
            row_products(&rows, &v, l, &mut out);
            let few: Vec<f32> = v.iter().map(|&v| v as f32).collect();
            row_products(&narrow, &few, l, &mut other);
            for i in 0..m {
                for j in 0..b {
                    let plain: f64 = (0..l).map(|k| a[i * l + k] * v[j * l + k]).sum();
                    assert!((out[i * b + j] - plain).abs() < 1e-11);
                    assert!((other[i * b + j] - plain).abs() < 1e-6 * (l + 1) as f64);
                }
            }
        }
    }
}
