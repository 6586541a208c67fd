//! Bounds for the rounding errors of kernel values and of sums over them (Higham, Accuracy and Stability of
//! Numerical Algorithms, 2002, ch. 3).
//!
//! For a kernel with a feature space, |k(x, z)| <= sqrt(k(x, x) k(z, z)), and the error of a value is at most delta of
//! that for *every* row x: distances of rows far from the vectors have larger errors, but the exponential makes them small.
//!
//! Bounds in double precision are those of the worst case, n u for n roundings. In single precision the worst case is far from
//! real sums, so the roundings are taken as independent: 10 sqrt(n) u, which a sum exceeds with a chance below 1e-20
//! (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).

use super::Kernel;
use super::standardization::Standardization;
use crate::data::Rows;
use crate::error::Result;

/// Number of roundings of the exponential and the last operations of a kernel.
pub(super) const FINAL_ROUNDINGS: f64 = 6.0;

/// The error of a Euclidean distance is at most this, times that of a sum, times the lengths of both rows. Sparse rows have the
/// largest: their squared distances have the errors of products, and are at least a sixteenth of the squared lengths
/// (`distances`), so the root has at most sqrt(16) times the error.
pub(super) const EUCLIDEAN_ERROR: f64 = 5.0;

/// Returns a bound for the relative error of a result of n roundings.
pub(crate) fn relative_error_bound(n: usize, single: bool) -> f64 {
    let n = n as f64 + 4.0;
    if single { 10.0 * n.sqrt() * f64::from(f32::EPSILON) / 2.0 } else { 1.01 * n * f64::EPSILON / 2.0 }
}

/// Returns delta of |computed k(x, z) - k(x, z)| <= delta sqrt(k(x, x) k(z, z)) for any x and the given vectors z; `None` for
/// kernels without a feature space.
pub(crate) fn rounding(kernel: &Kernel, vectors: Rows<'_>, single: bool) -> Result<Option<f64>> {
    let sum = relative_error_bound(vectors.cols() + 4, single);
    let last = FINAL_ROUNDINGS * relative_error_bound(0, single);
    let distance = match *kernel {
        Kernel::Linear => return Ok(Some(sum + last)),
        Kernel::Polynomial { coef0, .. } if coef0 < 0.0 => return Ok(None),
        Kernel::Polynomial { degree, .. } => return Ok(Some(1.1 * f64::from(degree.max(1)) * (sum + last))),
        // The error of ||x||^2 + ||z||^2 - 2 x'z is that of a sum times (||x|| + ||z||)^2, norms about the center.
        Kernel::Rbf { .. } => 4.0 + 9.0 * Lengths::new(kernel, vectors)?.largest.powi(2),
        // Any row x is at most a longer than z, and a k <= 1.2.
        Kernel::Matern { .. } => EUCLIDEAN_ERROR * (1.2 + 2.0 * Lengths::new(kernel, vectors)?.largest),
        // Sparse rows are summed as differences from ||z||_1.
        Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => {
            4.0 + 3.0 * Lengths::new(kernel, vectors)?.largest
        }
        Kernel::Sigmoid { .. } | Kernel::Precomputed => return Ok(None),
    };
    Ok(Some(sum * distance + last))
}

/// Lengths of rows for kernels of a distance: the Euclidean length times sqrt(gamma), or times sqrt(2 nu) gamma for Matérn
/// kernels, or the l1 length times gamma.
struct Lengths {
    standardization: Standardization,
    /// Factor of the lengths of standardized rows.
    factor: f64,
    euclidean: bool,
    /// The length of the longest vector.
    largest: f64,
}

impl Lengths {
    fn new(kernel: &Kernel, vectors: Rows<'_>) -> Result<Self> {
        let standardization = Standardization::new(kernel, vectors)?;
        let (factor, euclidean) = match *standardization.kernel() {
            Kernel::Rbf { gamma } => (gamma.sqrt(), true),
            Kernel::Matern { smoothness, gamma } => (smoothness.rate(gamma), true),
            kernel => (kernel.gamma().unwrap_or(1.0), false),
        };
        let mut new = Self { standardization, factor, euclidean, largest: 0.0 };
        new.largest = (0..vectors.rows()).map(|i| new.of(vectors, i)).fold(0.0, f64::max);
        Ok(new)
    }

    fn of(&self, rows: Rows<'_>, i: usize) -> f64 {
        let length = self.standardization.length(rows, i, self.euclidean);
        self.factor * if self.euclidean { length.sqrt() } else { length }
    }
}

/// Rounding errors relative to the kernel value, for kernels of a distance: an error of the exponent of an exponential, and for
/// Matérn kernels of a, whose logarithm changes by at most as much. For rows near the
/// vectors they are much smaller than relative to sqrt(k(x, x) k(z, z)) if most values are small.
pub(crate) struct RelativeRounding {
    lengths: Lengths,
    kernel: Kernel,
    sum: f64,
    last: f64,
}

impl RelativeRounding {
    /// Measures the vectors; `None` for other kernels.
    pub(crate) fn new(kernel: &Kernel, vectors: Rows<'_>, single: bool) -> Result<Option<Self>> {
        if kernel.constant_diagonal().is_none() {
            return Ok(None);
        }
        let sum = relative_error_bound(vectors.cols() + 4, single);
        let last = FINAL_ROUNDINGS * relative_error_bound(0, single);
        Ok(Some(Self { lengths: Lengths::new(kernel, vectors)?, kernel: *kernel, sum, last }))
    }

    /// Returns epsilon of |computed k(x, z) - k(x, z)| <= epsilon k(x, z) for row i and any of the vectors; infinity if it is
    /// not small.
    pub(crate) fn of(&self, rows: Rows<'_>, i: usize) -> f64 {
        let both = self.lengths.of(rows, i) + self.lengths.largest;
        let exponent = self.sum
            * match self.kernel {
                Kernel::Rbf { .. } => both * both,
                Kernel::Matern { .. } => EUCLIDEAN_ERROR * both,
                _ => both,
            };
        if exponent < 0.1 { 1.1 * exponent + self.last } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::expansion::ExpansionView;
    use crate::kernels::{Evaluator, Precision, Smoothness, pair};
    use ndarray::arr2;

    #[test]
    fn single_precision_stays_within_the_bound() {
        let (n, d) = (60, 37);
        let x: Vec<f32> = (0..n * d).map(|i| ((i * i % 101) as f32 * 0.037).sin().abs() * 3.0).collect();
        let rows: Rows<'_> = Rows::from_shape((n, d), &x).unwrap();
        for kernel in [
            Kernel::Linear,
            Kernel::Polynomial { degree: 3, gamma: 0.3, coef0: 0.5 },
            Kernel::Rbf { gamma: 0.02 },
            Kernel::Laplacian { gamma: 0.03 },
            Kernel::ChiSquared { gamma: 0.05 },
            Kernel::Matern { smoothness: Smoothness::Half, gamma: 0.2 },
            Kernel::Matern { smoothness: Smoothness::FiveHalves, gamma: 0.2 },
        ] {
            let delta = rounding(&kernel, rows, true).unwrap().unwrap();
            let (mut worst, mut relative_worst) = (0.0_f64, 0.0_f64);
            for z in 0..n {
                let one = Rows::from_shape((1, d), &x[z * d..(z + 1) * d]).unwrap();
                let f =
                    Evaluator::new(&ExpansionView::new(kernel, one, arr2(&[[1.0]]).view(), &[0.0]).unwrap())
                        .unwrap();
                let values = f.evaluate_in(rows, Precision::Single, Context::SEQUENTIAL).unwrap();
                for i in 0..n {
                    let scale = (pair(&kernel, rows, i, rows, i) * pair(&kernel, rows, z, rows, z)).sqrt();
                    let truth = pair(&kernel, rows, i, rows, z);
                    worst = worst.max((values[[i, 0]] - truth).abs() / scale);
                    relative_worst = relative_worst.max((values[[i, 0]] - truth).abs() / truth.abs());
                }
            }
            assert!(worst <= delta && worst > 0.0, "{kernel:?} {worst} {delta}");
            if let Some(relative) = RelativeRounding::new(&kernel, rows, true).unwrap() {
                let max_relative = (0..n).map(|i| relative.of(rows, i)).fold(0.0, f64::max);
                assert!(relative_worst <= max_relative, "{kernel:?} {relative_worst} {max_relative}");
            }
        }
        assert!(rounding(&Kernel::Sigmoid { gamma: 1.0, coef0: 0.0 }, rows, false).unwrap().is_none());
        assert!(
            rounding(&Kernel::Polynomial { degree: 2, gamma: 1.0, coef0: -1.0 }, rows, false)
                .unwrap()
                .is_none()
        );
    }
}
