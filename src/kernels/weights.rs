//! Expansions of the linear kernel as weights of the columns: f_j(x) = w_j'x + b_j with w_j = sum_i B[i, j] z_i.
//!
//! If rows lie far from the origin, the terms of w are much larger than w, and w'x and b nearly cancel. Sums over the vectors
//! are therefore compensated (Ogita, Rump, Oishi, Accurate sum and dot product, 2005), as if computed in twice the
//! precision and then rounded, and multiplied by rows in double precision. What remains is the rounding of w and b
//! themselves. An evaluation about a center would have it too, since b would be the same number, so no center is used. The
//! error of a row is at most (d + 2) u ||w|| ||x||, the bound of `rounding`.
//!
//! Invariant: an output depends on its row alone.
//!
//! Cost: m d multiply-adds for each output once, then d for each output of a row. Memory: q numbers for every column that a
//! vector has, in each of two layouts.

use crate::context::Context;
use crate::data::{Element, Rows, copy_flat, matrix, row as dense_row};
use crate::error::{Error, Result};
use crate::memory;
use crate::once::OnceCell;
use crate::simd::blas::{axpy, axpy_compensated};
use crate::simd::inner::row_products;
use crate::with_rows;
use ndarray::{Array2, ArrayView2};

/// Context reported when the allocation of weights fails.
const WEIGHTS: &str = "weights of the columns";
/// Number of multiply-adds of a thread between two checks of the monitor.
const WORK_PER_CHECK: usize = 100_000_000;

/// Maximum number of weights for each number of the sparse vectors, if there are at least as many vectors for each output:
/// an entry of a row is multiplied by q weights instead of m vectors.
const MAX_SPARSE_RATIO: usize = 16;

/// The weights of all outputs.
pub(crate) struct Weights {
    outputs: usize,
    features: usize,
    /// The columns that any vector has, rising; `None` for all columns.
    columns: Option<Vec<u32>>,
    by_output: OnceCell<Vec<f64>>,
    by_column: OnceCell<Vec<f64>>,
}

impl Weights {
    /// Computes the weights of vectors with row-major coefficients (m, q); `None` if the weights are more numbers than the
    /// vectors hold (for sparse vectors, many more), or not finite.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), [`Error::Stopped`](crate::Error::Stopped).
    pub(crate) fn new(
        vectors: Rows<'_>,
        coefficients: &[f64],
        q: usize,
        ctx: Context<'_>,
    ) -> Result<Option<Self>> {
        let (m, d) = (vectors.rows(), vectors.cols());
        let stored: usize = (0..m).map(|i| vectors.stored(i)).sum();
        let mut columns = None;
        if d.saturating_mul(q) > stored {
            if !vectors.is_sparse() {
                return Ok(None);
            }
            let mut list: Vec<u32> = memory::try_with_capacity(WEIGHTS, stored)?;
            (0..m).for_each(|i| vectors.for_each_in_row(i, |k, _| list.push(k as u32)));
            list.sort_unstable();
            list.dedup();
            let numbers = list.len().saturating_mul(q);
            if numbers > stored && (numbers > MAX_SPARSE_RATIO * stored || q > m / MAX_SPARSE_RATIO) {
                return Ok(None);
            }
            columns = Some(list);
        }
        let mut new = Self {
            outputs: q,
            features: d,
            columns,
            by_output: OnceCell::default(),
            by_column: OnceCell::default(),
        };
        let values = if vectors.is_sparse() {
            new.sum_sparse(vectors, coefficients, ctx)?
        } else {
            sum_dense(vectors, coefficients, q, ctx)?
        };
        if !values.iter().all(|v| v.is_finite()) {
            return Ok(None);
        }
        let layout = if vectors.is_sparse() { &mut new.by_column } else { &mut new.by_output };
        *layout = OnceCell::from(values);
        Ok(Some(new))
    }

    /// Returns the number of columns that have a weight.
    fn len(&self) -> usize {
        self.columns.as_ref().map_or(self.features, Vec::len)
    }

    /// Returns the index of a column among those that have a weight.
    fn place(&self, column: usize) -> Option<usize> {
        match &self.columns {
            None => Some(column),
            Some(columns) => columns.binary_search(&(column as u32)).ok(),
        }
    }

    fn sum_sparse(&self, vectors: Rows<'_>, coefficients: &[f64], ctx: Context<'_>) -> Result<Vec<f64>> {
        let (m, q) = (vectors.rows(), self.outputs);
        let (mut sums, mut remainders) = compensated_sums(self.len() * q)?;
        let mut work = 0;
        for (i, coefficients) in coefficients.chunks_exact(q).enumerate() {
            vectors.for_each_in_row(i, |k, v| {
                if let Some(place) = self.place(k) {
                    let at = place * q..(place + 1) * q;
                    axpy_compensated(v, coefficients, &mut sums[at.clone()], &mut remainders[at]);
                }
            });
            work += vectors.stored(i).saturating_mul(q);
            if work > WORK_PER_CHECK {
                ctx.check("weights", i, m)?;
                work = 0;
            }
        }
        Ok(rounded(sums, &remainders))
    }

    /// Adds `units[j] w_j'x` to the outputs (rows, q) of the listed rows.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn add(&self, x: Rows<'_>, list: &[usize], units: &[f64], out: &mut [f64]) -> Result<()> {
        let (q, length) = (self.outputs, self.len());
        let mut sums: Vec<f64> = memory::try_zeros(WEIGHTS, out.len())?;
        if x.is_sparse() {
            let weights = self.by_column.get_or_try_init(|| transposed(self.by_output.get(), q, length))?;
            for (&row, sums) in list.iter().zip(sums.chunks_exact_mut(q)) {
                x.for_each_in_row(row, |k, v| {
                    let Some(place) = self.place(k) else { return };
                    match sums {
                        [sum] => *sum += v * weights[place],
                        _ => axpy(v, &weights[place * q..(place + 1) * q], sums),
                    }
                });
            }
        } else {
            let weights = self.by_output.get_or_try_init(|| transposed(self.by_column.get(), length, q))?;
            if let (Rows::DenseF64(view), None) = (&x, &self.columns) {
                let rows: Vec<&[f64]> = list.iter().map(|&i| dense_row(view, i)).collect();
                row_products(&rows, weights, length, &mut sums);
            } else {
                let mut values: Vec<f64> = memory::try_with_capacity(WEIGHTS, list.len() * length)?;
                for &row in list {
                    with_rows!(&x,
                        dense(view) => match &self.columns {
                            None => values.extend(dense_row(view, row).iter().map(|&v| Element::to_f64(v))),
                            Some(columns) => {
                                let row = dense_row(view, row);
                                values.extend(columns.iter().map(|&k| Element::to_f64(row[k as usize])));
                            }
                        },
                        csr(_s) => unreachable!("sparse rows are handled above"));
                }
                let rows: Vec<&[f64]> = values.chunks_exact(length.max(1)).collect();
                row_products(&rows, weights, length, &mut sums);
            }
        }
        for (sums, out) in sums.chunks_exact(q).zip(out.chunks_exact_mut(q)) {
            for ((out, sum), unit) in out.iter_mut().zip(sums).zip(units) {
                *out += unit * sum;
            }
        }
        Ok(())
    }
}

/// Computes w_j = sum_i B[i, j] z_i, (q, d), with a number for every column.
///
/// # Errors
/// [`Error::Shape`] if there is not a row of coefficients for each vector, [`Error::Layout`] if they are not row-major, [`Error::Memory`], [`Error::Stopped`].
pub fn linear_weights(
    vectors: Rows<'_>,
    coefficients: ArrayView2<'_, f64>,
    ctx: Context<'_>,
) -> Result<Array2<f64>> {
    let ((m, q), d) = (coefficients.dim(), vectors.cols());
    Error::check_len("rows of the coefficients (one for each vector)", vectors.rows(), m)?;
    let Some(flat) = coefficients.to_slice() else {
        return Err(Error::Layout { strides: [coefficients.strides()[0], coefficients.strides()[1]] });
    };
    let weights = if vectors.is_sparse() {
        let all = Weights {
            outputs: q,
            features: d,
            columns: None,
            by_output: OnceCell::default(),
            by_column: OnceCell::default(),
        };
        transposed(Some(&all.sum_sparse(vectors, flat, ctx)?), d, q)
    } else {
        sum_dense(vectors, flat, q, ctx)
    }?;
    Ok(Array2::from_shape_vec((q, d), weights).expect("a weight for each column of an output"))
}

/// Computes the weights (q, d) of dense vectors; threads share the outputs.
fn sum_dense(vectors: Rows<'_>, coefficients: &[f64], q: usize, ctx: Context<'_>) -> Result<Vec<f64>> {
    let (m, d) = (vectors.rows(), vectors.cols());
    let (mut sums, mut remainders) = compensated_sums(q * d)?;
    let mut lines: Vec<(&mut [f64], &mut [f64])> =
        sums.chunks_exact_mut(d.max(1)).zip(remainders.chunks_exact_mut(d.max(1))).collect();
    let step = (WORK_PER_CHECK / d.saturating_mul(q.div_ceil(ctx.threads())).max(1)).max(1);
    for from in (0..m).step_by(step) {
        ctx.check("weights", from, m)?;
        ctx.for_each_chunk(&mut lines, 1, |j, line| {
            let (sums, remainders) = &mut line[0];
            let mut values = Vec::new();
            for i in from..m.min(from + step) {
                let coefficient = coefficients[i * q + j];
                if coefficient == 0.0 {
                    continue;
                }
                let row = if let Rows::DenseF64(view) = &vectors {
                    dense_row(view, i)
                } else {
                    values.clear();
                    vectors.for_each_in_row(i, |_, v| values.push(v));
                    &values
                };
                axpy_compensated(coefficient, row, sums, remainders);
            }
        });
    }
    drop(lines);
    Ok(rounded(sums, &remainders))
}

/// Allocates sums, zero at first, and the rounding errors of their terms.
fn compensated_sums(len: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    Ok((memory::try_zeros(WEIGHTS, len)?, memory::try_zeros(WEIGHTS, len)?))
}

fn rounded(mut sums: Vec<f64>, remainders: &[f64]) -> Vec<f64> {
    sums.iter_mut().zip(remainders).for_each(|(sum, error)| *sum += error);
    sums
}

/// Transposes (rows, columns) to (columns, rows).
fn transposed(values: Option<&Vec<f64>>, rows: usize, columns: usize) -> Result<Vec<f64>> {
    let values = values.expect("one of the layouts is always present");
    copy_flat(matrix((rows, columns), values)?.t())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrView, IndexSlice, OwnedRows, to_csr};
    use crate::expansion::ExpansionView;
    use crate::kernels::{Evaluator, Kernel};
    use proptest::prelude::*;

    /// Computes the output of rows of integers and coefficients in 256ths exactly.
    fn exact(z: &[i64], b: &[i64], x: &[i64], q: usize, j: usize) -> f64 {
        let d = x.len();
        let sum: i128 = (0..z.len() / d)
            .map(|i| {
                let product: i128 = (0..d).map(|k| i128::from(z[i * d + k]) * i128::from(x[k])).sum();
                product * i128::from(b[i * q + j])
            })
            .sum();
        sum as f64 / 256.0
    }

    fn csr(x: &[f64], d: usize, cols: usize) -> OwnedRows {
        let rows = Rows::from_shape((x.len() / d, d), x).unwrap();
        to_csr(rows, cols, |k| if k == d - 1 { cols - 1 } else { k })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn far_from_the_origin_outputs_keep_their_digits(
            m in 4..40_usize, n in 1..9_usize, d in 1..9_usize, q in 1..5_usize, seed in 0..1000_i64, power in 0..27_u32,
        ) {
            let noise = |i: usize, salt: i64| (i as i64 * 7919 + seed * 31 + salt * 104_729) % 509 % 17;
            let offset = 1_i64 << power;
            let z: Vec<i64> = (0..m * d).map(|i| offset + noise(i, 1)).collect();
            let x: Vec<i64> = (0..n * d).map(|i| offset + noise(i, 2)).collect();
            // The sums are zero, as those of machines with an intercept.
            let mut b: Vec<i64> = (0..m * q).map(|i| noise(i, 3) - 8).collect();
            for j in 0..q {
                let sum: i64 = (1..m).map(|i| b[i * q + j]).sum();
                b[j] = -sum;
            }
            let float = |v: &[i64]| v.iter().map(|&v| v as f64).collect::<Vec<f64>>();
            let (zf, xf) = (float(&z), float(&x));
            let coefficients =
                Array2::from_shape_vec((m, q), b.iter().map(|&b| b as f64 / 256.0).collect()).unwrap();
            // As in a machine, outputs are small although both of their terms are large.
            let intercepts: Vec<f64> = (0..q).map(|j| -exact(&z, &b, &x[..d], q, j)).collect();
            let single: Vec<f32> = xf.iter().map(|&v| v as f32).collect();
            let (zs, xs) = (csr(&zf, d, d), csr(&xf, d, d));
            let (zw, xw) = (csr(&zf, d, 1 << 31), csr(&xf, d, 1 << 31));
            let (zd, xd) = (Rows::from_shape((m, d), &zf).unwrap(), Rows::from_shape((n, d), &xf).unwrap());
            // Single precision represents these rows exactly.
            let far = if power < 23 { Rows::from_shape((n, d), &single).unwrap() } else { xd };
            for (z_rows, x_rows) in
                [(zd, xd), (zd, far), (zs.view(), xs.view()), (zs.view(), xd), (zd, xs.view()), (zw.view(), xw.view())]
            {
                let view = ExpansionView::new(Kernel::Linear, z_rows, coefficients.view(), &intercepts).unwrap();
                let f = Evaluator::new(&view).unwrap();
                let actual = f.evaluate(x_rows, Context::default()).unwrap();
                for i in 0..n {
                    let alone: Vec<f64> =
                        f.evaluate(x_rows.gather(&[i]).unwrap().view(), Context::SEQUENTIAL).unwrap().iter().copied().collect();
                    for j in 0..q {
                        prop_assert_eq!(actual[[i, j]].to_bits(), alone[j].to_bits());
                        let truth = exact(&z, &b, &x[i * d..(i + 1) * d], q, j) + intercepts[j];
                        // ||w|| is at most 40 * 8 * 16 / 256 * 3; w and b are rounded, and d products added.
                        let scale = (offset as f64 + 16.0) * 60.0 * d as f64 + intercepts[j].abs();
                        prop_assert!((actual[[i, j]] - truth).abs() <= 16.0 * f64::EPSILON * scale);
                    }
                }
            }
            let w = linear_weights(zd, coefficients.view(), Context::SEQUENTIAL).unwrap();
            prop_assert_eq!(w, linear_weights(zs.view(), coefficients.view(), Context::SEQUENTIAL).unwrap());
        }
    }

    #[test]
    fn more_outputs_than_vectors_have_numbers_are_no_weights() {
        let z = [1.0, 2.0, 3.0];
        let dense = Rows::from_shape((1, 3), &z).unwrap();
        let (indptr, indices) = ([0_i64, 3], [0_i64, 7, 1 << 31]);
        let wide: Rows<'_> =
            CsrView::new(IndexSlice::I64(&indptr), IndexSlice::I64(&indices), &z, 1 << 40).unwrap().into();
        for rows in [dense, wide] {
            let of = |b: &[f64]| Weights::new(rows, b, b.len(), Context::SEQUENTIAL).unwrap();
            assert!(of(&[1.0, 1.0]).is_none() && of(&[f64::MAX]).is_none());
            assert_eq!(of(&[2.0]).unwrap().len(), 3);
        }
        let view = ExpansionView::new(Kernel::Linear, wide, ndarray::aview2(&[[2.0]]), &[0.5]).unwrap();
        let f = Evaluator::new(&view).unwrap().evaluate(wide, Context::SEQUENTIAL).unwrap();
        assert_eq!(f[[0, 0]], 28.5);
    }
}
