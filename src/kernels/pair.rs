//! k(x, z) for one pair of rows in double precision, directly from the formula. Tests compare tiles with it.

use super::{Kernel, Smoothness};
use crate::data::Rows;

/// Computes k(x_i, z_j). Cost: O(d), for sparse rows O(stored values).
pub fn pair(kernel: &Kernel, x: Rows<'_>, i: usize, z: Rows<'_>, j: usize) -> f64 {
    if matches!(kernel, Kernel::Precomputed) {
        let (mut index, mut value) = (0.0, 0.0);
        z.for_each_in_row(j, |_, v| index = v);
        x.for_each_in_row(i, |k, v| value = if k == index as usize { v } else { value });
        return value;
    }
    let entries = |rows: Rows<'_>, row: usize| {
        let mut list = Vec::new();
        rows.for_each_in_row(row, |k, v| list.push((k, v)));
        list
    };
    let (a, b) = (entries(x, i), entries(z, j));
    // Sums over the columns that either row has, in their order.
    let sum = |f: fn(f64, f64) -> f64| -> f64 {
        let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
        let mut sum = 0.0;
        while let Some(k) = [a.peek(), b.peek()].into_iter().flatten().map(|(k, _)| *k).min() {
            let value = |of: &mut std::iter::Peekable<std::slice::Iter<'_, (usize, f64)>>| {
                of.next_if(|(column, _)| *column == k).map_or(0.0, |(_, v)| *v)
            };
            sum += f(value(&mut a), value(&mut b));
        }
        sum
    };
    match *kernel {
        Kernel::Linear => sum(|a, b| a * b),
        Kernel::Polynomial { degree, gamma, coef0 } => power(gamma * sum(|a, b| a * b) + coef0, degree),
        Kernel::Rbf { gamma } => (-gamma * sum(|a, b| (a - b) * (a - b))).exp(),
        Kernel::Sigmoid { gamma, coef0 } => (gamma * sum(|a, b| a * b) + coef0).tanh(),
        Kernel::Laplacian { gamma } => (-gamma * sum(|a, b| (a - b).abs())).exp(),
        Kernel::ChiSquared { gamma } => {
            (-gamma * sum(|a, b| if a + b > 0.0 { (a - b) * (a - b) / (a + b) } else { 0.0 })).exp()
        }
        Kernel::Matern { smoothness, gamma } => {
            let a = smoothness.rate(gamma) * sum(|a, b| (a - b) * (a - b)).sqrt();
            let factor = match smoothness {
                Smoothness::Half => 1.0,
                Smoothness::ThreeHalves => 1.0 + a,
                Smoothness::FiveHalves => 1.0 + a + a * a / 3.0,
            };
            let value = factor * (-a).exp();
            // Far away the factor may be infinite, and the exponential is zero.
            if value.is_nan() && !a.is_nan() { 0.0 } else { value }
        }
        Kernel::Precomputed => unreachable!("returned above"),
    }
}

/// Computes k(x_i, x_i) without an allocation.
pub(super) fn pair_with_itself(kernel: &Kernel, x: Rows<'_>, i: usize) -> f64 {
    if matches!(kernel, Kernel::Precomputed) {
        let mut value = 0.0;
        x.for_each_in_row(i, |k, v| value = if k == i { v } else { value });
        return value;
    }
    kernel.constant_diagonal().unwrap_or_else(|| {
        let mut squared_norm = 0.0;
        x.for_each_in_row(i, |_, v| squared_norm += v * v);
        self_value(kernel, squared_norm)
    })
}

/// Computes base^degree; `powi` takes only degrees below 2^31.
fn power(base: f64, degree: u32) -> f64 {
    i32::try_from(degree).map_or_else(|_| base.powf(f64::from(degree)), |degree| base.powi(degree))
}

/// Computes k(x, x) from ||x||^2.
pub(crate) fn self_value(kernel: &Kernel, squared_norm: f64) -> f64 {
    match *kernel {
        Kernel::Polynomial { degree, gamma, coef0 } => power(gamma * squared_norm + coef0, degree),
        Kernel::Sigmoid { gamma, coef0 } => (gamma * squared_norm + coef0).tanh(),
        _ => kernel.constant_diagonal().unwrap_or(squared_norm),
    }
}
