//! Leaves that project: a mistake on a row within eta of the span of its leaf's vectors, in kernel space, adds the row's
//! projection to their coefficients, as in a Projectron, and takes up no vector. So a leaf goes on learning when it is
//! nearly full, is split later, and the tree has fewer leaves that have seen more rows each.
//!
//! Invariant: the factor of a leaf, where it has one, is that of its vectors in their order. It is no part of a state:
//! made anew it has the same bits, since each row of it depends on the vectors before it alone. Cost: O(m^2) a mistake.

use super::node::Leaf;
use super::rows::Store;
use crate::error::Result;
use crate::kernels::{Formula, Lines, RowBuffer};
use crate::memory::TryCollect;
use crate::perceptron::factor::{SPAN, check_projected};
use crate::perceptron::update::Update;
use crate::simd::Real;

/// Squared distances below this part of k(x, x) are the rounding of kernel values in single precision.
const SINGLE: f64 = 1e-5;

impl<T: Real> Leaf<T> {
    /// Learns from the projection of a row, if it is near enough; else, where it `joins`, it is to be pushed next.
    pub(super) fn project(
        &mut self,
        (formula, row, update): (&Formula<T>, &RowBuffer<T>, Update),
        (eta, joins): (f64, bool),
        store: &Store<T>,
        (other, lines): (&mut RowBuffer<T>, &mut Lines<T>),
    ) -> Result<bool> {
        let m = self.ids.len();
        let mut factor = self.factor.take().unwrap_or_default();
        if factor.rows.len() != m {
            factor.rows.clear();
            for (i, &id) in self.ids.iter().enumerate() {
                store.read(id, other);
                let values = self.pool.values(formula, other, lines)?[..i].iter().map(|v| v.to_f64());
                factor.push(formula.self_value(other), &values.try_collect_vec()?)?;
            }
        }
        let own = formula.self_value(row);
        let values: Vec<f64> =
            self.pool.values(formula, row, lines)?.iter().map(|v| v.to_f64()).try_collect_vec()?;
        let squared = (own - factor.forward(&values)).max(0.0);
        let rounding = if size_of::<T>() == size_of::<f64>() { SPAN } else { SINGLE };
        let near = m > 0 && squared <= (eta * eta).max(rounding * own);
        if near {
            let (q, coefficients) = (self.coefficients.len() / m, factor.backward());
            for (output, sign) in update.coefficients() {
                for (j, d) in coefficients.iter().enumerate() {
                    self.add(j * q + output, sign * d);
                }
            }
            check_projected(&self.coefficients)?;
        } else if joins {
            factor.push(own, &values)?;
        }
        self.factor = Some(factor);
        Ok(near)
    }
}
