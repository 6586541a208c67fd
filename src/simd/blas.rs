//! Dense products of the solvers: sums in double precision from rows in single or double precision.
//!
//! Problem: solvers store kernel values in single precision, which halves the memory traffic that bounds them, while their
//! gradients need sums in double precision. Values are converted as they are loaded, several rows share a pass over a sum,
//! and compensated products give twice the precision where terms cancel.
//!
//! Invariant: the bits of a sum depend on its numbers and on the instruction set, not on the other sums of a call.
//!
//! Source: compensated sums and products after Ogita, Rump and Oishi, Accurate sum and dot product, 2005.

use super::{Isa, Operation, Real, Vector, run, vectorized};

/// An element type of stored rows.
pub(crate) trait Stored: Copy + Send + Sync + 'static {
    /// Loads a vector of numbers in its precision.
    ///
    /// # Safety
    /// See [`Vector::load`].
    unsafe fn load<V: Vector>(from: *const Self) -> V;
    /// Converts to double precision.
    fn wide(self) -> f64;
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const Self) -> V {
        // SAFETY: the contract is the caller's.
        unsafe { V::load_f32(from) }
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Stored for f64 {
    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const Self) -> V {
        // SAFETY: the contract is the caller's.
        unsafe { V::load_f64(from) }
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

/// Computes a'b.
pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    assert_eq!(a.len(), b.len());
    vectorized!([T: Real] (a: &[T], b: &[T]) -> T {
        let (n, lanes) = (a.len(), <T::Of<I> as Vector>::LANES);
        // SAFETY: the lengths agree; every access ends at or before n.
        unsafe {
            let mut sums = [T::Of::<I>::zero(); 4];
            let mut i = 0;
            while i + 4 * lanes <= n {
                for (k, sum) in sums.iter_mut().enumerate() {
                    let at = i + k * lanes;
                    *sum = T::Of::<I>::load(a.as_ptr().add(at)).mul_add(T::Of::<I>::load(b.as_ptr().add(at)), *sum);
                }
                i += 4 * lanes;
            }
            while i + lanes <= n {
                sums[0] = T::Of::<I>::load(a.as_ptr().add(i)).mul_add(T::Of::<I>::load(b.as_ptr().add(i)), sums[0]);
                i += lanes;
            }
            let mut sum = sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum();
            while i < n {
                sum += a[i] * b[i];
                i += 1;
            }
            sum
        }
    })
}

/// Computes a'a with the sum in double precision.
pub(crate) fn squares<T: Stored>(a: &[T]) -> f64 {
    vectorized!([T: Stored] (a: &[T]) -> f64 {
        let (n, lanes) = (a.len(), I::F64::LANES);
        // SAFETY: every access ends at or before n.
        unsafe {
            let mut sums = [I::F64::zero(); 4];
            let mut i = 0;
            while i + 4 * lanes <= n {
                for (k, sum) in sums.iter_mut().enumerate() {
                    let x = T::load::<I::F64>(a.as_ptr().add(i + k * lanes));
                    *sum = x.mul_add(x, *sum);
                }
                i += 4 * lanes;
            }
            let mut sum = sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum();
            for x in &a[i..] {
                sum += x.wide() * x.wide();
            }
            sum
        }
    })
}

/// Adds alpha x to y.
pub(crate) fn axpy(alpha: f64, x: &[f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len());
    vectorized!([] (alpha: f64, x: &[f64], y: &mut [f64]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y += alpha * x;
        }
    });
}

/// Adds alpha x to y, and the rounding errors to `remainder`, so that y + remainder is as if summed in twice the precision.
pub(crate) fn axpy_compensated(alpha: f64, x: &[f64], y: &mut [f64], remainder: &mut [f64]) {
    assert!(x.len() == y.len() && y.len() == remainder.len());
    vectorized!([] (alpha: f64, x: &[f64], y: &mut [f64], remainder: &mut [f64]) {
        for ((y, remainder), &x) in y.iter_mut().zip(remainder).zip(x) {
            let (sum, error) = add_product(*y, alpha, x);
            *y = sum;
            *remainder += error;
        }
    });
}

/// Computes a'b as a sum of two numbers, as if summed in twice the precision.
pub(crate) fn dot_compensated(a: &[f64], b: &[f64]) -> (f64, f64) {
    assert_eq!(a.len(), b.len());
    vectorized!([] (a: &[f64], b: &[f64]) -> (f64, f64) {
        let (mut total, mut remainder) = (0.0, 0.0);
        for (&a, &b) in a.iter().zip(b) {
            let (sum, error) = add_product(total, a, b);
            (total, remainder) = (sum, remainder + error);
        }
        (total, remainder)
    })
}

/// Returns sum + a b, rounded, and the rounding error of the product and the sum.
#[inline(always)]
fn add_product(sum: f64, a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let total = sum + product;
    let back = total - sum;
    (total, a.mul_add(b, -product) + ((sum - (total - back)) + (product - back)))
}

/// ys[c][j] += sum_k weights[c][k] rows[k][from + j]: up to eight rows in one pass over a y, or four over four.
struct AddRows<'a, T> {
    weights: &'a [f64],
    rows: &'a [&'a [T]],
    from: usize,
    ys: &'a mut [f64],
    width: usize,
}

impl<T: Stored> AddRows<'_, T> {
    #[inline(always)]
    unsafe fn pass<V: Vector<Elem = f64>, const R: usize, const C: usize>(&mut self, first: usize, y: usize) {
        // SAFETY: `add_rows` has checked that every row reaches `from + width` and that there is a weight for each row and
        // y; first + R <= rows.len(), y + C is at most the number of ys.
        unsafe {
            let n = self.width;
            let mut weights = [[V::zero(); R]; C];
            let mut rows = [std::ptr::null::<T>(); R];
            for k in 0..R {
                rows[k] = self.rows[first + k].as_ptr().add(self.from);
                for (c, weights) in weights.iter_mut().enumerate() {
                    weights[k] = V::splat(self.weights[(y + c) * self.rows.len() + first + k]);
                }
            }
            let out = self.ys.as_mut_ptr().add(y * n);
            let mut j = 0;
            while j + V::LANES <= n {
                let mut x = [V::zero(); R];
                for k in 0..R {
                    x[k] = T::load::<V>(rows[k].add(j));
                }
                for (c, weights) in weights.iter().enumerate() {
                    let mut sum = V::load(out.add(c * n + j));
                    for k in 0..R {
                        sum = weights[k].mul_add(x[k], sum);
                    }
                    sum.store(out.add(c * n + j));
                }
                j += V::LANES;
            }
            while j < n {
                for c in 0..C {
                    let mut sum = *out.add(c * n + j);
                    for k in 0..R {
                        sum += self.weights[(y + c) * self.rows.len() + first + k] * (*rows[k].add(j)).wide();
                    }
                    *out.add(c * n + j) = sum;
                }
                j += 1;
            }
        }
    }
}

impl<T: Stored> Operation for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(mut self) {
        let (count, rows) = (self.ys.len() / self.width, self.rows.len());
        let mut y = 0;
        while y < count {
            let (max_rows, together) = if I::REGISTERS >= 32 && count - y >= 4 { (4, 4) } else { (8, 1) };
            let mut first = 0;
            while first < rows {
                let all = rows - first >= max_rows;
                // SAFETY: as `pass`.
                unsafe {
                    match (together, all) {
                        (4, true) => self.pass::<I::F64, 4, 4>(first, y),
                        (4, false) => self.pass::<I::F64, 1, 4>(first, y),
                        (_, true) => self.pass::<I::F64, 8, 1>(first, y),
                        (_, false) => self.pass::<I::F64, 1, 1>(first, y),
                    }
                }
                first += if all { max_rows } else { 1 };
            }
            y += together;
        }
    }
}

/// Adds sum_k weights[c][k] rows[k][from..from + width] to ys[c], in double precision, for one or more ys, one after the other.
/// The bits of each y do not depend on the others.
pub(crate) fn add_rows<T: Stored>(weights: &[f64], rows: &[&[T]], from: usize, ys: &mut [f64]) {
    if rows.is_empty() || ys.is_empty() {
        return;
    }
    let count = weights.len() / rows.len();
    assert!(count * rows.len() == weights.len() && count > 0 && ys.len().is_multiple_of(count));
    let width = ys.len() / count;
    assert!(rows.iter().all(|row| row.len() >= from + width));
    // SAFETY: there is a weight for a row and a y, and the rows reach as far as the ys.
    unsafe { run(AddRows { weights, rows, from, ys, width }) };
}

/// Writes the products of rows (r, n) with vectors (c, n), one after the other, to `out` (r, c): all sums in double precision.
pub(crate) fn products_with_rows<T: Stored>(rows: &[&[T]], vectors: &[f64], out: &mut [f64]) {
    let Some(length) = rows.first().map(|row| row.len()) else { return };
    if length == 0 {
        out.fill(0.0);
        return;
    }
    let count = vectors.len() / length;
    assert!(rows.iter().all(|row| row.len() == length));
    assert!(count * length == vectors.len() && out.len() == rows.len() * count);
    vectorized!([T: Stored] (rows: &[&[T]], vectors: &[f64], out: &mut [f64]) {
        const ROWS: usize = 4;
        let (length, lanes) = (rows[0].len(), I::F64::LANES);
        let count = vectors.len() / length;
        for (rows, out) in rows.chunks(ROWS).zip(out.chunks_mut(ROWS * count)) {
            // The last rows of fewer than four are filled up with the first of them.
            let mut starts = [rows[0].as_ptr(); ROWS];
            for (start, row) in starts.iter_mut().zip(rows) {
                *start = row.as_ptr();
            }
            for (c, vector) in vectors.chunks_exact(length).enumerate() {
                let mut totals = [0.0; ROWS];
                // SAFETY: every row and vector has `length` numbers; every access ends at or before that.
                unsafe {
                    let mut sums = [[I::F64::zero(); 2]; ROWS];
                    let mut k = 0;
                    while k + 2 * lanes <= length {
                        for half in 0..2 {
                            let at = k + half * lanes;
                            let v = I::F64::load(vector.as_ptr().add(at));
                            for r in 0..ROWS {
                                sums[r][half] = T::load::<I::F64>(starts[r].add(at)).mul_add(v, sums[r][half]);
                            }
                        }
                        k += 2 * lanes;
                    }
                    for r in 0..ROWS {
                        totals[r] = sums[r][0].add(sums[r][1]).sum();
                        for i in k..length {
                            totals[r] += (*starts[r].add(i)).wide() * vector[i];
                        }
                    }
                }
                for (r, total) in totals.iter().enumerate().take(rows.len()) {
                    out[r * count + c] = *total;
                }
            }
        }
    });
}

/// Multiplies a row vector (n,) by a row-major matrix (n, q).
pub(crate) fn row_times(line: &[f64], a: &[f64], q: usize) -> Vec<f64> {
    let mut out = vec![0.0; q];
    for (&l, row) in line.iter().zip(a.chunks_exact(q)) {
        axpy(l, row, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_equal_plain_loops() {
        for n in [0, 1, 3, 17, 64, 257] {
            let a: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin()).collect();
            let b: Vec<f64> = (0..n).map(|i| (i as f64 * 0.3).cos()).collect();
            let plain: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert!((dot(&a, &b) - plain).abs() < 1e-12);
            assert!((squares(&a) - a.iter().map(|a| a * a).sum::<f64>()).abs() < 1e-12);
            let rows: Vec<Vec<f32>> =
                (0..11).map(|k| (0..n + 5).map(|i| ((k * i) as f32 * 0.1).sin()).collect()).collect();
            let views: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
            let weights: Vec<f64> = (0..11).map(|k| f64::from(k) - 4.5).collect();
            // Terms of 1e16 cancel and leave small ones.
            let (mut y, mut remainder) = (b.clone(), vec![0.0; n]);
            for (alpha, x) in [(1e16 / 3.0, &a), (0.5, &b), (-1e16 / 3.0, &a)] {
                axpy_compensated(alpha, x, &mut y, &mut remainder);
            }
            for j in 0..n {
                assert!((y[j] + remainder[j] - 1.5 * b[j]).abs() < 1e-15);
            }
            let twice = [&*a, &*a, &[1e-3]].concat();
            let (large, small) = dot_compensated(
                &twice,
                &[&*b, &*b.iter().map(|b| -b).collect::<Vec<f64>>(), &[1.0]].concat(),
            );
            assert_eq!(large + small, 1e-3);
            let mut y = b.clone();
            add_rows(&weights, &views, 5, &mut y);
            for j in 0..n {
                let plain: f64 = b[j] + (0..11).map(|k| weights[k] * f64::from(rows[k][j + 5])).sum::<f64>();
                assert!((y[j] - plain).abs() < 1e-12);
            }
            let (six, many) = (b.repeat(6), weights.repeat(6));
            let mut ys = six;
            add_rows(&many, &views, 5, &mut ys);
            assert_eq!(ys, y.repeat(6));
        }
    }

    #[test]
    fn products_with_rows_equal_plain_sums() {
        for (r, c, n) in [(1, 1, 1), (3, 2, 7), (9, 5, 37), (4, 1, 130), (2, 3, 0)] {
            let noise = |i: usize| (i as f64 * 0.7 + (i * i) as f64 * 0.01).sin();
            let a: Vec<f32> = (0..r * n).map(|i| noise(i) as f32).collect();
            let rows: Vec<&[f32]> = (0..r).map(|i| &a[i * n..(i + 1) * n]).collect();
            let vectors: Vec<f64> = (0..c * n).map(|i| noise(i + 5)).collect();
            let mut out = vec![f64::NAN; r * c];
            products_with_rows(&rows, &vectors, &mut out);
            for (i, row) in rows.iter().enumerate() {
                for j in 0..c {
                    let sum: f64 = (0..n).map(|k| f64::from(row[k]) * vectors[j * n + k]).sum();
                    assert!(n == 0 || (out[i * c + j] - sum).abs() < 1e-12);
                }
            }
        }
    }
}
