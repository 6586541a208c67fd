//! How far computed kernel values and sums of them may be from the exact ones (Higham, Accuracy and Stability of
//! Numerical Algorithms, 2002, ch. 3).
//!
//! For a kernel with a feature space, |k(x, z)| <= sqrt(k(x, x) k(z, z)), and the error of a value is at most delta of
//! that for *every* row x: rows far from the vectors have larger errors in their distance, but the exponential makes
//! them small again.
//!
//! Double precision gets the worst case, n u for n roundings. In single precision the worst case says nothing about
//! real sums, so the roundings are taken as independent: 10 sqrt(n) u, which a sum exceeds with a chance below 1e-20
//! (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).

use super::Kernel;
use super::standardization::{FINISH, Standardization, relative_error_bound};
use crate::data::Rows;
use crate::error::Result;

/// delta of |computed k(x, z) - k(x, z)| <= delta sqrt(k(x, x) k(z, z)) for any x and the given vectors z; `None` for
/// kernels without a feature space.
pub(crate) fn rounding(kernel: &Kernel, vectors: Rows<'_>, single: bool) -> Result<Option<f64>> {
    let of_sum = relative_error_bound(vectors.cols() + 4, single);
    let unit = relative_error_bound(0, single);
    let of_distance = match *kernel {
        Kernel::Linear => return Ok(Some(of_sum + FINISH * unit)),
        Kernel::Polynomial { coef0, .. } if coef0 < 0.0 => return Ok(None),
        Kernel::Polynomial { degree, .. } => {
            return Ok(Some(1.1 * f64::from(degree.max(1)) * (of_sum + FINISH * unit)));
        }
        // The error of ||x||^2 + ||z||^2 - 2 x'z is of_sum (||x|| + ||z||)^2, norms about the centre.
        Kernel::Rbf { .. } => 4.0 + 9.0 * Lengths::new(kernel, vectors, true)?.largest.powi(2),
        // Sparse rows are summed as differences from ||z||_1.
        Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => {
            4.0 + 3.0 * Lengths::new(kernel, vectors, false)?.largest
        }
        Kernel::Sigmoid { .. } | Kernel::Precomputed => return Ok(None),
    };
    Ok(Some(of_sum * of_distance + FINISH * unit))
}

/// How long rows are for kernels that are the exponential of a distance: gamma ||x||^2 or gamma ||x||_1 is at most the
/// square of the Euclidean length, or the l1 length.
struct Lengths {
    standardization: Standardization,
    /// What is left of gamma in the frame.
    gamma: f64,
    squared: bool,
    /// That of the longest vector.
    largest: f64,
}

impl Lengths {
    fn new(kernel: &Kernel, vectors: Rows<'_>, squared: bool) -> Result<Self> {
        let standardization = Standardization::of(kernel, vectors)?;
        let gamma = standardization.kernel().gamma().unwrap_or(1.0);
        let mut new = Self { standardization, gamma, squared, largest: 0.0 };
        new.largest = (0..vectors.rows()).map(|i| new.of(vectors, i)).fold(0.0, f64::max);
        Ok(new)
    }

    fn of(&self, rows: Rows<'_>, i: usize) -> f64 {
        if self.squared {
            return (self.gamma * self.standardization.squared_norm(rows, i)).sqrt();
        }
        let mut sum = 0.0;
        self.standardization.for_each(rows, i, |_, v| sum += v.abs());
        self.gamma * sum
    }
}

/// For kernels that are the exponential of a distance: errors relative to the value itself, which for rows near the
/// vectors is much smaller than relative to sqrt(k(x, x) k(z, z)) where most values are small.
pub(crate) struct RelativeRounding {
    lengths: Lengths,
    of_sum: f64,
    finish: f64,
}

impl RelativeRounding {
    /// `None` for other kernels.
    pub(crate) fn new(kernel: &Kernel, vectors: Rows<'_>, single: bool) -> Result<Option<Self>> {
        let squared = match *kernel {
            Kernel::Rbf { .. } => true,
            Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => false,
            _ => return Ok(None),
        };
        let of_sum = relative_error_bound(vectors.cols() + 4, single);
        let finish = FINISH * relative_error_bound(0, single);
        Ok(Some(Self { lengths: Lengths::new(kernel, vectors, squared)?, of_sum, finish }))
    }

    /// epsilon of |computed k(x, z) - k(x, z)| <= epsilon k(x, z) for row i and any of the vectors; infinite where it
    /// would be no small number.
    pub(crate) fn of(&self, rows: Rows<'_>, i: usize) -> f64 {
        let both = self.lengths.of(rows, i) + self.lengths.largest;
        let exponent = self.of_sum * if self.lengths.squared { both * both } else { both };
        if exponent < 0.1 { 1.1 * exponent + self.finish } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::expansion::ExpansionView;
    use crate::kernels::{Evaluator, pair};
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
        ] {
            let delta = rounding(&kernel, rows, true).unwrap().unwrap();
            let (mut worst, mut relative_worst) = (0.0_f64, 0.0_f64);
            for z in 0..n {
                let one = Rows::from_shape((1, d), &x[z * d..(z + 1) * d]).unwrap();
                let f =
                    Evaluator::new(&ExpansionView::new(kernel, one, arr2(&[[1.0]]).view(), &[0.0]).unwrap())
                        .unwrap();
                let values = f.evaluate(rows, Context::SEQUENTIAL).unwrap();
                for i in 0..n {
                    let scale = (pair(&kernel, rows, i, rows, i) * pair(&kernel, rows, z, rows, z)).sqrt();
                    let truth = pair(&kernel, rows, i, rows, z);
                    worst = worst.max((values[[i, 0]] - truth).abs() / scale);
                    relative_worst = relative_worst.max((values[[i, 0]] - truth).abs() / truth.abs());
                }
            }
            assert!(worst <= delta && worst > 0.0, "{kernel:?} {worst} {delta}");
            if let Some(relative) = RelativeRounding::new(&kernel, rows, true).unwrap() {
                let most = (0..n).map(|i| relative.of(rows, i)).fold(0.0, f64::max);
                assert!(relative_worst <= most, "{kernel:?} {relative_worst} {most}");
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
