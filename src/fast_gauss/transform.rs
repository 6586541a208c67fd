//! The outputs of a model of many vectors in few columns.

use super::bounding_box::BoundingBox;
use super::boxes::{KINDS, MAX_COEFFICIENTS, Plan};
use crate::context::Context;
use crate::data::{RowSet, Rows};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::simd::chebyshev::evaluate;

/// Maximum cost of the polynomials, relative to that of all kernel values between the vectors of a model.
const MAX_COST: f64 = 0.125;
/// Minimum magnitude of a sum relative to the weights. A smaller one is computed by all pairs, since none of its digits may be
/// correct.
const MIN_OUTPUT: f64 = 1e-11;

/// The outputs of a model of many vectors in few columns: sums over the same points for blocks of rows.
pub(crate) struct FastGaussTransform {
    bounds: BoundingBox,
    plan: Plan,
    /// The polynomials of each output that is not zero everywhere, and the smallest sum whose digits are correct.
    outputs: Vec<Option<(Vec<f64>, f64)>>,
}

impl FastGaussTransform {
    /// Computes polynomials for coefficients (m, q); `None` if they are not worth their cost. The decision depends on the model
    /// alone, so an output does not depend on the other rows.
    pub(crate) fn new(
        kernel: &Kernel,
        vectors: Rows<'_>,
        coefficients: &[f64],
        ctx: Context<'_>,
    ) -> Result<Option<Self>> {
        let m = vectors.rows();
        let Some(bounds) = BoundingBox::of(kernel, vectors) else { return Ok(None) };
        let q = coefficients.len() / m;
        let (order, side, _) = KINDS[KINDS.len() - 1];
        let (cost, plan) = bounds.boxes(order, side, 2 * m);
        let live = (0..q).filter(|&j| coefficients.iter().skip(j).step_by(q).any(|&c| c != 0.0)).count();
        if !(live as f64 * cost < MAX_COST * m as f64 * m as f64) {
            return Ok(None);
        }
        let plan = plan();
        if (live * plan.boxes.size()) as f64 > 2.0 * MAX_COEFFICIENTS {
            return Ok(None);
        }
        let points = bounds.points(vectors, &(0..m).collect::<Vec<_>>())?;
        let mut outputs = Vec::with_capacity(q);
        for output in 0..q {
            let weights: Vec<f64> = coefficients.iter().skip(output).step_by(q).copied().collect();
            let total: f64 = weights.iter().map(|w| w.abs()).sum();
            let polynomials =
                if total > 0.0 { Some(plan.coefficients((&points, &weights), ctx)?) } else { None };
            outputs.push(polynomials.map(|polynomials| (polynomials, MIN_OUTPUT * total)));
        }
        Ok(Some(Self { bounds, plan, outputs }))
    }

    /// Returns the number of multiply-adds of a row.
    pub(crate) fn work(&self) -> usize {
        self.outputs.len() * self.plan.boxes.order.pow(self.bounds.lengths.len() as u32)
    }

    /// Adds the sums of the listed rows to their outputs. Rows outside the box of the vectors are added to `uncovered`, and those
    /// where all Gaussians are so small that no digit of a sum may be correct; their outputs are unspecified.
    pub(crate) fn add(&self, x: Rows<'_>, list: &[usize], out: &mut [f64], uncovered: &RowSet) -> Result<()> {
        let (q, d) = (self.outputs.len(), self.bounds.lengths.len());
        let points = self.bounds.points(x, list)?;
        let mut sums = vec![0.0; list.len()];
        for (j, output) in self.outputs.iter().enumerate() {
            let Some((polynomials, least)) = output else { continue };
            sums.fill(0.0);
            evaluate(&self.plan.boxes, self.plan.scale, polynomials, &points, &mut sums);
            for ((sum, out), &row) in sums.iter().zip(out.iter_mut().skip(j).step_by(q)).zip(list) {
                *out += sum;
                if !(sum.abs() > *least) {
                    uncovered.insert(row);
                }
            }
        }
        for (point, &row) in points.chunks_exact(d).zip(list) {
            if !point.iter().zip(&self.bounds.lengths).all(|(v, length)| (0.0..=*length).contains(v)) {
                uncovered.insert(row);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expansion::ExpansionView;
    use crate::fast_gauss::tests::rows;
    use crate::kernels::{Evaluator, pair};
    use crate::random::Random;

    /// Outputs of a model of many vectors in two clusters have the accuracy of either precision, whatever rows are evaluated
    /// together; those of rows between the clusters and outside are computed from all pairs, however small they are.
    #[test]
    fn outputs_of_many_vectors_are_sums() {
        let (m, q, gamma) = (12_000, 3, 3.0);
        let mut random = Random::new(4);
        let mut z = rows(m, &[2.0, 1.5], &mut random);
        z.chunks_exact_mut(2).step_by(2).for_each(|row| row[0] += 9.0);
        let coefficients: Vec<f64> =
            (0..m * q).map(|i| if i % q == 1 { 0.0 } else { 500.0 * ((i % 11) as f64 - 4.0) }).collect();
        let z_rows = Rows::from_shape((m, 2), &z).unwrap();
        let intercepts = [0.0, 0.5, -3.0];
        let kernel = Kernel::Rbf { gamma };
        assert!(
            FastGaussTransform::new(&kernel, z_rows, &coefficients, Context::default()).unwrap().is_some()
        );
        let view = crate::data::matrix((m, q), &coefficients).unwrap();
        let evaluator =
            Evaluator::new(&ExpansionView::new(kernel, z_rows, view, &intercepts).unwrap()).unwrap();
        let mut x = z[..80].to_vec();
        x.extend([5.0, 0.4, -1.0, 0.0, 30.0, 30.0, 4.9, -0.3]);
        let n = x.len() / 2;
        let single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let total: f64 = 500.0 * 3.0 * m as f64;
        for (rows, digits) in [
            (Rows::from_shape((n, 2), &x).unwrap(), 1e-14),
            (Rows::from_shape((n, 2), &single).unwrap(), 1e-6),
        ] {
            let f = evaluator.evaluate(rows, Context::default()).unwrap();
            assert_eq!(f, evaluator.evaluate(rows, Context::SEQUENTIAL).unwrap());
            for i in 0..n {
                let alone = rows.gather(&[i]);
                let alone = evaluator.evaluate(alone.unwrap().view(), Context::SEQUENTIAL).unwrap();
                for j in 0..q {
                    assert_eq!(f[[i, j]], alone[[0, j]]);
                    let of = |k: usize| coefficients[k * q + j] * pair(&kernel, rows, i, z_rows, k);
                    let sum: f64 = (0..m).map(of).sum();
                    let off = (f[[i, j]] - intercepts[j] - sum).abs();
                    assert!(off <= digits * total, "{i} {j}: {sum} {off:e}");
                    // Every sign is correct.
                    assert!(
                        off <= 1e-2 * sum.abs() + 1e3 * f64::from(f32::MIN_POSITIVE) * total,
                        "{i} {j}: {sum} {off:e}"
                    );
                }
            }
        }
    }
}
