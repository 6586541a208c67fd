//! k(x, z) for one pair of rows in double precision, straight from the formula: the oracle of the tiles.

use super::Kernel;
use crate::data::Rows;

/// k(x_i, z_j). Cost O(d).
pub fn pair(kernel: &Kernel, x: Rows<'_>, i: usize, z: Rows<'_>, j: usize) -> f64 {
    let mut a = vec![0.0; x.cols()];
    x.for_each_in_row(i, |k, v| a[k] = v);
    if matches!(kernel, Kernel::Precomputed) {
        let mut index = 0.0;
        z.for_each_in_row(j, |_, v| index = v);
        return a[index as usize];
    }
    let mut b = vec![0.0; z.cols()];
    z.for_each_in_row(j, |k, v| b[k] = v);
    let sum = |f: fn(f64, f64) -> f64| -> f64 { a.iter().zip(&b).map(|(&a, &b)| f(a, b)).sum() };
    match *kernel {
        Kernel::Linear => sum(|a, b| a * b),
        Kernel::Polynomial { degree, gamma, coef0 } => {
            (gamma * sum(|a, b| a * b) + coef0).powi(degree as i32)
        }
        Kernel::Rbf { gamma } => (-gamma * sum(|a, b| (a - b) * (a - b))).exp(),
        Kernel::Sigmoid { gamma, coef0 } => (gamma * sum(|a, b| a * b) + coef0).tanh(),
        Kernel::Laplacian { gamma } => (-gamma * sum(|a, b| (a - b).abs())).exp(),
        Kernel::ChiSquared { gamma } => {
            (-gamma * sum(|a, b| if a + b > 0.0 { (a - b) * (a - b) / (a + b) } else { 0.0 })).exp()
        }
        Kernel::Precomputed => unreachable!("answered above"),
    }
}
