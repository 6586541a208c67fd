//! Features whose inner products are the values of a kernel projected on m points (Rifkin 2002, (3.104)-(3.121)):
//!
//! ```text
//! K_mm = L L',     F = K_lm L^-T,     F F' = K_lm K_mm^-1 K_ml
//! ```
//!
//! A linear machine w on F has the coefficients L^-T w at the points.
//!
//! Every entry is summed in an order that depends on the sizes alone, so threads cannot change a result. Kernel values are
//! in double precision. Cost n m d + n m^2 / 2 multiply-adds and m^3 / 6 for the factor; memory n m, the factor, and a
//! block of rows.

use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, Kernel, PackedVectors, check_conditioning, gram_lower};
use crate::linalg::columns;
use crate::linalg::dense::{self, RowSolver, Square};
use crate::memory::{self, try_matrix};
use ndarray::{Array2, ArrayView2};

/// Purpose of the memory of this file, in error messages.
const FEATURES: &str = "features at the points";
/// Remedy if memory is short.
const REMEDY: &str = "lower n_vectors";
/// Rows per block.
const BLOCK_ROWS: usize = 1024;
/// Rows per task.
const TASK_ROWS: usize = 96;
/// Addition to the diagonal for linearly dependent points, relative to its mean: far below the resolution of predictions in
/// single precision.
const RELATIVE_SHIFT: f64 = 1e-10;
/// Maximum rounding error of the squared distances between points, relative to them: the shift is about as large as they are
/// there.
const MAX_RELATIVE_ROUNDING: f64 = 1e-6;

/// A kernel projected on some points.
pub struct Features {
    points: PackedVectors<f64>,
    factor: Square<f64>,
}

impl Features {
    /// Factors the kernel matrix of the points.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], [`Error::Param`] for points outside the kernel's domain, [`Error::Memory`],
    /// [`Error::Stopped`].
    pub fn new(kernel: Kernel, points: Rows<'_>, ctx: Context<'_>) -> Result<Self> {
        check_conditioning("X", kernel.into(), points, CoefficientSum::Any, MAX_RELATIVE_ROUNDING)?;
        let packed = PackedVectors::new(kernel, points, ctx)?;
        let m = points.rows();
        let mut factor = Square::<f64>::new(m).map_err(|error| error.with_remedy(REMEDY))?;
        let stride = factor.stride();
        gram_lower(kernel.into(), points, factor.values_mut(), stride, ctx)?;
        let mean = factor.diagonal().sum::<f64>() / m as f64;
        factor.shift(|_| RELATIVE_SHIFT * mean.max(1e-300));
        dense::factor(&mut factor, ctx)?;
        Ok(Self { points: packed, factor })
    }

    /// Returns the features of rows, (n, m).
    ///
    /// # Errors
    /// [`Error::Param`] for rows outside the kernel's domain, [`Error::Memory`], [`Error::Stopped`].
    pub fn of(&self, rows: Rows<'_>, ctx: Context<'_>) -> Result<Array2<f64>> {
        self.points.check(rows)?;
        let (n, m, stride) = (rows.rows(), self.factor.len(), self.points.stride());
        let remedied = |error: Error| error.with_remedy(REMEDY);
        let mut features: Array2<f64> = memory::try_zero_matrix(FEATURES, (n, m)).map_err(remedied)?;
        let solver = RowSolver::new(&self.factor, ctx).map_err(remedied)?;
        let mut values: Vec<f64> =
            memory::try_zeros(FEATURES, BLOCK_ROWS.min(n) * stride).map_err(remedied)?;
        let out = features.as_slice_mut().expect("made row-major");
        for (from, out) in (0..n).step_by(BLOCK_ROWS).zip(out.chunks_mut(BLOCK_ROWS * m)) {
            let values = &mut values[..out.len() / m * stride];
            // A block of thousands of points takes longer than an interrupt may be delayed.
            for (task, values) in values.chunks_mut(TASK_ROWS * ctx.threads() * stride).enumerate() {
                ctx.check("features", from, n)?;
                self.points.fill(rows, from + task * TASK_ROWS * ctx.threads(), values, ctx)?;
                ctx.for_each_chunk(values, TASK_ROWS * stride, |_, rows| solver.substitute(rows, stride));
            }
            for (out, line) in out.chunks_exact_mut(m).zip(values.chunks_exact(stride)) {
                out.copy_from_slice(&line[..m]);
            }
        }
        Ok(features)
    }

    /// Returns the coefficients at the points, (m, q), of linear machines, (m, q).
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Memory`].
    pub fn coefficients(&self, weights: ArrayView2<'_, f64>, ctx: Context<'_>) -> Result<Array2<f64>> {
        let (m, q) = weights.dim();
        Error::check_len("rows of the weights (one for each point)", self.factor.len(), m)?;
        let mut out = try_matrix((m, q), |at| weights[at])?;
        let values = out.as_slice_mut().expect("made row-major");
        let mut panels = columns::to_panels::<f64>(values, m, q)?;
        columns::solve_transposed(&self.factor, &mut panels, ctx)?;
        columns::from_panels(&panels, values, m, q);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::gram;

    #[test]
    fn inner_products_are_the_projected_kernel_and_coefficients_give_the_same_outputs() {
        let noise =
            |n, salt: f64| Array2::from_shape_fn((n, 3), |(i, j)| ((7 * i + 3 * j) as f64 * salt).sin());
        let (x, z) = (noise(2100, 0.7), noise(70, 1.3));
        let (rows, points) = (
            Rows::from_shape((2100, 3), x.as_slice().unwrap()).unwrap(),
            Rows::from_shape((70, 3), z.as_slice().unwrap()).unwrap(),
        );
        let kernel = Kernel::Rbf { gamma: 0.8 };
        let features = Features::new(kernel, points, Context::SEQUENTIAL).unwrap();
        let f = features.of(rows, Context::SEQUENTIAL).unwrap();
        assert_eq!(f.dim(), (2100, 70));
        let weights = Array2::from_shape_fn((70, 3), |(i, j)| ((i + 2 * j) as f64).cos());
        let c = features.coefficients(weights.view(), Context::SEQUENTIAL).unwrap();
        // F w = K_lm L^-T w.
        let (ours, theirs) =
            (f.dot(&weights), gram(&kernel, rows, points, Context::SEQUENTIAL).unwrap().dot(&c));
        let largest = c.iter().fold(1.0_f64, |largest, v| largest.max(v.abs()));
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() < 1e-11 * largest, "{a} {b}");
        }
        // At the points themselves F F' is K_mm but for the shift.
        let values = features.of(points, Context::SEQUENTIAL).unwrap();
        let k = gram(&kernel, points, points, Context::SEQUENTIAL).unwrap();
        for (a, b) in values.dot(&values.t()).iter().zip(&k) {
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
    }
}
