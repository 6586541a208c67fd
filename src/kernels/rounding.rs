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
use super::pack::Centre;
use crate::data::Rows;

/// Units in the last place that the exponential and the last operations of a kernel may be off.
const FINISH: f64 = 6.0;

/// The relative error of a result of n roundings.
pub(crate) fn growth(n: usize, single: bool) -> f64 {
    let n = n as f64 + 4.0;
    if single { 10.0 * n.sqrt() * f64::from(f32::EPSILON) / 2.0 } else { 1.01 * n * f64::EPSILON / 2.0 }
}

/// delta of |computed k(x, z) - k(x, z)| <= delta sqrt(k(x, x) k(z, z)) for any x and the given vectors z; `None` for
/// kernels without a feature space.
pub(crate) fn rounding(kernel: &Kernel, vectors: Rows<'_>, single: bool) -> Option<f64> {
    let of_sum = growth(vectors.cols() + 4, single);
    let unit = growth(0, single);
    let of_distance = match *kernel {
        Kernel::Linear => return Some(of_sum + FINISH * unit),
        Kernel::Polynomial { coef0, .. } if coef0 < 0.0 => return None,
        Kernel::Polynomial { degree, .. } => {
            return Some(1.1 * f64::from(degree.max(1)) * (of_sum + FINISH * unit));
        }
        // The error of ||x||^2 + ||z||^2 - 2 x'z is of_sum (||x|| + ||z||)^2, norms about the centre.
        Kernel::Rbf { gamma } => {
            let centre = Centre::of(kernel, vectors);
            4.0 + 9.0 * gamma * largest(vectors, |k, v| (v - centre.at(k)).powi(2), |k| centre.at(k).powi(2))
        }
        // Sparse rows are summed as differences from ||z||_1.
        Kernel::Laplacian { gamma } | Kernel::ChiSquared { gamma } => {
            4.0 + 3.0 * gamma * largest(vectors, |_, v| v.abs(), |_| 0.0)
        }
        Kernel::Sigmoid { .. } | Kernel::Precomputed => return None,
    };
    Some(of_sum * of_distance + FINISH * unit)
}

/// For kernels that are the exponential of a distance: errors relative to the value itself, which for rows near the
/// vectors is much smaller than relative to sqrt(k(x, x) k(z, z)) where most values are small.
pub(crate) struct RelativeRounding {
    centre: Centre,
    gamma: f64,
    of_sum: f64,
    squared: bool,
    /// The largest norm of a vector: Euclidean about the centre, or l1.
    largest: f64,
    finish: f64,
}

impl RelativeRounding {
    /// `None` for other kernels.
    pub(crate) fn new(kernel: &Kernel, vectors: Rows<'_>, single: bool) -> Option<Self> {
        let (gamma, squared) = match *kernel {
            Kernel::Rbf { gamma } => (gamma, true),
            Kernel::Laplacian { gamma } | Kernel::ChiSquared { gamma } => (gamma, false),
            _ => return None,
        };
        let of_sum = growth(vectors.cols() + 4, single);
        let finish = FINISH * growth(0, single);
        let centre = Centre::of(kernel, vectors);
        let mut new = Self { centre, gamma, of_sum, squared, largest: 0.0, finish };
        new.largest = (0..vectors.rows()).map(|i| new.norm(vectors, i)).fold(0.0, f64::max);
        Some(new)
    }

    fn norm(&self, rows: Rows<'_>, i: usize) -> f64 {
        let mut sum = 0.0;
        if self.squared {
            let nothing = if rows.is_sparse() { self.centre.squared_norm() } else { 0.0 };
            rows.for_each_in_row(i, |k, v| {
                let c = self.centre.at(k);
                sum += (v - c).powi(2) - if rows.is_sparse() { c * c } else { 0.0 };
            });
            return (sum + nothing).max(0.0).sqrt();
        }
        rows.for_each_in_row(i, |_, v| sum += v.abs());
        sum
    }

    /// epsilon of |computed k(x, z) - k(x, z)| <= epsilon k(x, z) for row i and any of the vectors; infinite where it
    /// would be no small number.
    pub(crate) fn of(&self, rows: Rows<'_>, i: usize) -> f64 {
        let both = self.norm(rows, i) + self.largest;
        let exponent = self.gamma * self.of_sum * if self.squared { both * both } else { both };
        if exponent < 0.1 { 1.1 * exponent + self.finish } else { f64::INFINITY }
    }
}

/// The largest sum of `term` over a row's entries; entries that are not stored count as `absent`.
fn largest(rows: Rows<'_>, term: impl Fn(usize, f64) -> f64, absent: impl Fn(usize) -> f64) -> f64 {
    let nothing: f64 = (0..rows.cols()).map(&absent).sum();
    let stored_everywhere = !rows.is_sparse();
    (0..rows.rows())
        .map(|i| {
            let mut sum = if stored_everywhere { 0.0 } else { nothing };
            rows.for_each_in_row(i, |k, v| {
                sum += term(k, v) - if stored_everywhere { 0.0 } else { absent(k) };
            });
            sum
        })
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Par;
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
            let delta = rounding(&kernel, rows, true).unwrap();
            let (mut worst, mut relative_worst) = (0.0_f64, 0.0_f64);
            for z in 0..n {
                let one = Rows::from_shape((1, d), &x[z * d..(z + 1) * d]).unwrap();
                let f =
                    Evaluator::new(&ExpansionView::new(kernel, one, arr2(&[[1.0]]).view(), &[0.0]).unwrap())
                        .unwrap();
                let values = f.evaluate(rows, Par::Sequential).unwrap();
                for i in 0..n {
                    let scale = (pair(&kernel, rows, i, rows, i) * pair(&kernel, rows, z, rows, z)).sqrt();
                    let truth = pair(&kernel, rows, i, rows, z);
                    worst = worst.max((values[[i, 0]] - truth).abs() / scale);
                    relative_worst = relative_worst.max((values[[i, 0]] - truth).abs() / truth.abs());
                }
            }
            assert!(worst <= delta && worst > 0.0, "{kernel:?} {worst} {delta}");
            if let Some(relative) = RelativeRounding::new(&kernel, rows, true) {
                let most = (0..n).map(|i| relative.of(rows, i)).fold(0.0, f64::max);
                assert!(relative_worst <= most, "{kernel:?} {relative_worst} {most}");
            }
        }
        assert!(rounding(&Kernel::Sigmoid { gamma: 1.0, coef0: 0.0 }, rows, false).is_none());
        assert!(rounding(&Kernel::Polynomial { degree: 2, gamma: 1.0, coef0: -1.0 }, rows, false).is_none());
    }
}
