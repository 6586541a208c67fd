//! Inner products of many long rows with a few vectors, A V': rows in single or double precision, sums in double.
//!
//! A tile of some rows and four vectors shares its loads; a stretch of the vectors stays in the cache while the rows pass.
//! Nothing is packed, since a row is read once.

use super::{Isa, Operation, Vector, run};

/// Numbers of a stretch: 16 vectors of it are 128 kB.
const STRETCH: usize = 1024;

/// A number that rows may hold.
pub(crate) trait Stored: Copy + Send + Sync + 'static {
    /// As many numbers as the vector has lanes, widened.
    ///
    /// # Safety
    /// As [`Vector::load`].
    unsafe fn load<V: Vector<Elem = f64>>(from: *const Self) -> V;
    /// Widened.
    fn wide(self) -> f64;
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<V: Vector<Elem = f64>>(from: *const Self) -> V {
        // SAFETY: the caller's promise is this function's.
        unsafe { V::load_f32(from) }
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Stored for f64 {
    #[inline(always)]
    unsafe fn load<V: Vector<Elem = f64>>(from: *const Self) -> V {
        // SAFETY: the caller's promise is this function's.
        unsafe { V::load(from) }
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

struct Products<'a, T> {
    rows: &'a [&'a [T]],
    vectors: &'a [f64],
    length: usize,
    out: &'a mut [f64],
}

impl<T: Stored> Products<'_, T> {
    /// out[row + r][column + c] += the products along `from..to`.
    #[inline(always)]
    unsafe fn tile<V: Vector<Elem = f64>, const R: usize, const C: usize>(
        &mut self,
        row: usize,
        column: usize,
        (from, to): (usize, usize),
    ) {
        // SAFETY: `row_products` has checked that every row and vector has `length` numbers; to <= length, row + R and
        // column + C stay within the rows and vectors.
        unsafe {
            let mut sums = [[V::zero(); C]; R];
            let mut i = from;
            while i + V::LANES <= to {
                let mut x = [V::zero(); R];
                for r in 0..R {
                    x[r] = T::load(self.rows.get_unchecked(row + r).as_ptr().add(i));
                }
                for c in 0..C {
                    let v = V::load(self.vectors.as_ptr().add((column + c) * self.length + i));
                    for r in 0..R {
                        sums[r][c] = x[r].mul_add(v, sums[r][c]);
                    }
                }
                i += V::LANES;
            }
            let count = self.vectors.len() / self.length;
            for r in 0..R {
                for c in 0..C {
                    let mut sum = sums[r][c].sum();
                    for k in i..to {
                        sum += self.rows[row + r][k].wide() * self.vectors[(column + c) * self.length + k];
                    }
                    self.out[(row + r) * count + column + c] += sum;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn columns<V: Vector<Elem = f64>, const R: usize>(&mut self, row: usize, part: (usize, usize)) {
        let count = self.vectors.len() / self.length;
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

impl<T: Stored> Operation for Products<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(mut self) {
        for from in (0..self.length).step_by(STRETCH) {
            let part = (from, self.length.min(from + STRETCH));
            let mut row = 0;
            // SAFETY: as `tile`; the loops keep row + R within the rows.
            unsafe {
                if <I::F64 as Vector>::LANES >= 8 {
                    // 24 sums, ten loads, in 32 registers.
                    while row + 6 <= self.rows.len() {
                        self.columns::<I::F64, 6>(row, part);
                        row += 6;
                    }
                }
                while row + 2 <= self.rows.len() {
                    self.columns::<I::F64, 2>(row, part);
                    row += 2;
                }
                while row < self.rows.len() {
                    self.columns::<I::F64, 1>(row, part);
                    row += 1;
                }
            }
        }
    }
}

/// Writes the products of `rows` with `vectors` (b, length) to `out` (rows, b).
pub(crate) fn row_products<T: Stored>(rows: &[&[T]], vectors: &[f64], length: usize, out: &mut [f64]) {
    out.fill(0.0);
    if length == 0 {
        return;
    }
    assert!(rows.iter().all(|row| row.len() == length));
    assert!(vectors.len().is_multiple_of(length) && out.len() == rows.len() * (vectors.len() / length));
    run(Products { rows, vectors, length, out });
}

#[cfg(test)]
mod tests {
    use super::*;

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
            row_products(&narrow, &v, l, &mut other);
            for i in 0..m {
                for j in 0..b {
                    let plain: f64 = (0..l).map(|k| a[i * l + k] * v[j * l + k]).sum();
                    let rounded: f64 = (0..l).map(|k| f64::from(single[i * l + k]) * v[j * l + k]).sum();
                    assert!((out[i * b + j] - plain).abs() < 1e-11);
                    assert!((other[i * b + j] - rounded).abs() < 1e-11);
                }
            }
        }
    }
}
