//! What each row would be given if it were left out, without refitting (Rifkin 2002, section 3.3).
//!
//! With G = (K + alpha W^-1)^-1, W the weights of the rows, alpha held fixed when a row leaves,
//!
//! ```text
//! y_i - f^(-i)(x_i) = c_i / G_ii
//! ```
//!
//! An intercept that is not penalised borders the system; the inverse of the bordered matrix has
//! G - G 1 1' G / (1' G 1) in the place of G, and the formula holds with its diagonal.

/// Leave-one-out values for one alpha.
#[derive(Debug, Clone)]
pub struct LeaveOneOut {
    /// f^(-i)(x_i), (n, q) row-major.
    pub values: Vec<f64>,
    /// The diagonal of the inverse, (n,).
    pub inverse_diagonal: Vec<f64>,
    /// Generalised cross-validation: the mean squared residual, weighted, divided by (1 - tr(H) / n)^2, (q,), H the
    /// matrix that turns targets into fitted values.
    pub gcv: Vec<f64>,
}

impl LeaveOneOut {
    /// From targets (n, q), coefficients (n, q), the diagonal of the inverse (n,) and the weights of the rows.
    pub(crate) fn new(
        targets: &[f64],
        coefficients: &[f64],
        inverse_diagonal: Vec<f64>,
        q: usize,
        weights: Option<&[f64]>,
    ) -> Self {
        let n = inverse_diagonal.len();
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
        let mut values = targets.to_vec();
        let mut gcv = vec![0.0; q];
        let lines = values.chunks_exact_mut(q).zip(coefficients.chunks_exact(q)).zip(&inverse_diagonal);
        for (i, ((values, c), g)) in lines.enumerate() {
            for ((value, c), gcv) in values.iter_mut().zip(c).zip(&mut gcv) {
                // A row that alone decides its own value (n = 1 with an intercept) has none when it is gone.
                *value = if *g > 0.0 { *value - c / g } else { f64::NAN };
                *gcv += c * c / weight(i);
            }
        }
        // Residuals are alpha c / w, and 1 - tr(H) / n is alpha tr(G / w) / n: alpha cancels.
        let trace: f64 = inverse_diagonal.iter().enumerate().map(|(i, g)| g / weight(i)).sum();
        for gcv in &mut gcv {
            *gcv *= n as f64 / (trace * trace);
        }
        Self { values, inverse_diagonal, gcv }
    }

    /// Mean squared error over all outputs, and the share of rows that are decoded to another class than their targets.
    pub(crate) fn errors(&self, problem: &super::Problem<'_>) -> (f64, f64) {
        let (targets, q) = (problem.targets, problem.outputs);
        let decode = |line: &[f64]| {
            if q == 1 { usize::from(line[0] >= 0.0) } else { crate::largest::largest(line.iter().copied()) }
        };
        let (mut sum, mut wrong, mut total) = (0.0, 0.0, 0.0);
        for (i, (value, target)) in self.values.chunks_exact(q).zip(targets.chunks_exact(q)).enumerate() {
            let weight = problem.weight(i);
            sum += weight * value.iter().zip(target).map(|(v, t)| (v - t) * (v - t)).sum::<f64>();
            wrong += if decode(value) == decode(target) { 0.0 } else { weight };
            total += weight;
        }
        (sum / (total * q as f64), wrong / total)
    }
}
