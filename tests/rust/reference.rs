//! Naive oracles in double precision, straight from the formulas.

use ndarray::ArrayView2;
use svmarrow::data::Rows;
use svmarrow::kernels::{Kernel, pair};

/// Deterministic numbers in [0, 1).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Rows around `classes` overlapping centres, with their labels.
pub(crate) fn blobs(n: usize, d: usize, classes: usize, seed: u64) -> (Vec<f64>, Vec<usize>) {
    let mut numbers = Numbers::new(seed);
    let centres: Vec<f64> = (0..classes * d).map(|_| 2.0 * numbers.next()).collect();
    let labels: Vec<usize> = (0..n).map(|i| i % classes).collect();
    let x = labels
        .iter()
        .flat_map(|&c| (0..d).map(|k| centres[c * d + k] + 2.0 * numbers.next()).collect::<Vec<_>>())
        .collect();
    (x, labels)
}

pub(crate) fn rows(x: &[f64], n: usize) -> Rows<'_> {
    Rows::from_shape((n, x.len() / n.max(1)), x).unwrap()
}

/// Numbers as a matrix of n rows.
pub(crate) fn matrix(x: &[f64], n: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((n, x.len() / n.max(1)), x).unwrap()
}

/// K(X, Z), pair by pair.
pub(crate) fn gram(kernel: &Kernel, x: Rows<'_>, z: Rows<'_>) -> Vec<f64> {
    (0..x.rows()).flat_map(|i| (0..z.rows()).map(move |j| pair(kernel, x, i, z, j))).collect()
}

/// The maximal dual objective of a binary C-SVC with bias, by first-order pair steps on the full matrix to 1e-9.
#[cfg(feature = "papers")]
pub(crate) fn svc_dual(k: &[f64], positive: &[bool], upper: &[f64]) -> f64 {
    let n = positive.len();
    let y: Vec<f64> = positive.iter().map(|&p| if p { 1.0 } else { -1.0 }).collect();
    let (mut alpha, mut f): (Vec<f64>, Vec<f64>) = (vec![0.0; n], y.iter().map(|y| -y).collect());
    for _ in 0..2_000_000 {
        let can = |i: usize, rise: bool| {
            if (y[i] > 0.0) == rise { alpha[i] < upper[i] } else { alpha[i] > 0.0 }
        };
        let i = (0..n).filter(|&i| can(i, true)).min_by(|&a, &b| f[a].total_cmp(&f[b]));
        let j = (0..n).filter(|&j| can(j, false)).max_by(|&a, &b| f[a].total_cmp(&f[b]));
        let (Some(i), Some(j)) = (i, j) else { break };
        if f[j] - f[i] < 1e-9 {
            break;
        }
        let room = |t: usize, rise: bool| if (y[t] > 0.0) == rise { upper[t] - alpha[t] } else { alpha[t] };
        let (room_i, room_j) = (room(i, true), room(j, false));
        let curvature = (k[i * n + i] + k[j * n + j] - 2.0 * k[i * n + j]).max(1e-12);
        let step = ((f[j] - f[i]) / curvature).min(room_i).min(room_j);
        alpha[i] =
            if step == room_i { if y[i] > 0.0 { upper[i] } else { 0.0 } } else { alpha[i] + y[i] * step };
        alpha[j] =
            if step == room_j { if y[j] > 0.0 { 0.0 } else { upper[j] } } else { alpha[j] - y[j] * step };
        for t in 0..n {
            f[t] += step * (k[t * n + i] - k[t * n + j]);
        }
    }
    let quadratic: f64 = (0..n).map(|i| y[i] * alpha[i] * (f[i] + y[i])).sum();
    alpha.iter().sum::<f64>() - 0.5 * quadratic
}

/// Returns a value after a change.
pub(crate) fn changed<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}
