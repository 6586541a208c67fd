//! The feature map of a polynomial kernel: (gamma x'z + coef0)^p is the inner product of all monomials of degree p in the columns of
//! (sqrt(gamma) x, sqrt(coef0)), each times the root of its multinomial coefficient.
//!
//! Few columns have few monomials: 56 for 5 columns and degree 3, 286 for 10. A machine on them is a linear one.
//!
//! Cost: p multiplications for each monomial of a row.

use crate::error::Result;
use crate::kernels::Kernel;
use crate::memory::{self};

/// Maximum degree: numbers of the rows are raised to it.
const MAX_DEGREE: u32 = 16;
/// Context reported when the allocation fails.
const MONOMIALS: &str = "the monomials of a polynomial kernel";

/// The monomials of a polynomial kernel in the columns of its rows.
pub(super) struct Monomials {
    degree: usize,
    gamma_root: f64,
    /// sqrt(coef0), the last factor; 0 for a homogeneous kernel, which has no such factor.
    constant: f64,
    /// The factors of each monomial, by their places in the row and its constant.
    factors: Vec<u16>,
    /// The root of the multinomial coefficient of each monomial.
    roots: Vec<f64>,
}

impl Monomials {
    /// Returns the number of monomials of rows with `columns` columns; `None` for other kernels and for a negative constant, which
    /// has no root.
    pub(super) fn count(kernel: &Kernel, columns: usize) -> Option<usize> {
        let &Kernel::Polynomial { degree, gamma, coef0 } = kernel else { return None };
        if !((1..=MAX_DEGREE).contains(&degree) && gamma > 0.0 && coef0 >= 0.0) {
            return None;
        }
        let variables = columns.saturating_add(usize::from(coef0 > 0.0));
        // Binomial coefficients, each a multiple of the one before.
        (1..=degree as usize)
            .try_fold(1_usize, |count, k| Some(count.checked_mul(variables.checked_add(k - 1)?)? / k))
    }

    /// Returns the monomials of a polynomial kernel (see [`Monomials::count`]).
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(super) fn new(kernel: &Kernel, columns: usize) -> Result<Option<Self>> {
        let (Some(count), &Kernel::Polynomial { degree, gamma, coef0 }) =
            (Self::count(kernel, columns), kernel)
        else {
            return Ok(None);
        };
        let (degree, variables) = (degree as usize, columns + usize::from(coef0 > 0.0));
        let mut factors = memory::try_with_capacity(MONOMIALS, count.saturating_mul(degree))?;
        let mut roots = Vec::with_capacity(count);
        // Rising lists of factors, in lexicographic order.
        let mut list = vec![0_u16; degree];
        for _ in 0..count {
            factors.extend_from_slice(&list);
            roots.push(multinomial(&list).sqrt());
            let Some(place) = list.iter().rposition(|factor| usize::from(*factor) + 1 < variables) else {
                break;
            };
            let next = list[place] + 1;
            list[place..].fill(next);
        }
        Ok(Some(Self { degree, gamma_root: gamma.sqrt(), constant: coef0.sqrt(), factors, roots }))
    }

    /// Writes the monomials of a row, which is replaced by its factors. The row has a place for the constant.
    pub(super) fn write(&self, row: &mut [f64], out: &mut [f64]) {
        if let Some((constant, columns)) = row.split_last_mut() {
            for v in columns {
                *v *= self.gamma_root;
            }
            *constant = self.constant;
        }
        for ((out, factors), root) in
            out.iter_mut().zip(self.factors.chunks_exact(self.degree)).zip(&self.roots)
        {
            *out = factors.iter().fold(*root, |product, factor| product * row[usize::from(*factor)]);
        }
    }

    /// Returns the number of roundings of a monomial: each factor has those of its column, of the root of gamma and of their
    /// product, and is multiplied to the others; the multinomial coefficient has that of its root.
    pub(super) fn roundings(&self) -> usize {
        4 * self.degree + 1
    }
}

/// Returns the number of orders of a rising list.
fn multinomial(list: &[u16]) -> f64 {
    let (mut orders, mut run) = (1.0, 0);
    for (k, factor) in list.iter().enumerate() {
        run = if k > 0 && list[k - 1] == *factor { run + 1 } else { 1 };
        orders *= (k + 1) as f64 / f64::from(run);
    }
    orders.round()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simd::blas::dot;

    #[test]
    fn inner_products_of_monomials_are_kernel_values() {
        let mut random = Random::new(1);
        for (columns, degree, gamma, coef0) in [
            (1, 1, 2.0, 0.0),
            (1, 5, 0.3, 1.0),
            (3, 2, 0.7, 0.0),
            (5, 3, 1.3, 2.0),
            (7, 4, 0.1, 0.5),
            (2, 16, 0.4, 1.0),
        ] {
            let kernel = Kernel::Polynomial { degree, gamma, coef0 };
            let monomials = Monomials::new(&kernel, columns).unwrap().unwrap();
            let count = Monomials::count(&kernel, columns).unwrap();
            assert_eq!(monomials.roots.len(), count);
            let rows: Vec<Vec<f64>> =
                (0..2).map(|_| (0..columns).map(|_| random.normal()).collect()).collect();
            let features: Vec<Vec<f64>> = rows
                .iter()
                .map(|row| {
                    let (mut factors, mut out) = ([row.as_slice(), &[0.0]].concat(), vec![0.0; count]);
                    monomials.write(&mut factors, &mut out);
                    out
                })
                .collect();
            let scale = (0..2).map(|i| (gamma * dot(&rows[i], &rows[i]) + coef0).powi(degree as i32).sqrt());
            let expected = (gamma * dot(&rows[0], &rows[1]) + coef0).powi(degree as i32);
            let error = (dot(&features[0], &features[1]) - expected).abs();
            assert!(
                error <= 1e-14 * scale.product::<f64>() * f64::from(degree),
                "{columns} {degree}: {error}"
            );
        }
        assert_eq!(Monomials::count(&Kernel::Polynomial { degree: 3, gamma: 1.0, coef0: 1.0 }, 5), Some(56));
        for (degree, coef0) in [(17, 1.0), (0, 1.0), (3, -1.0)] {
            assert_eq!(Monomials::count(&Kernel::Polynomial { degree, gamma: 1.0, coef0 }, 2), None);
        }
        assert_eq!(Monomials::count(&Kernel::Linear, 2), None);
    }
}
