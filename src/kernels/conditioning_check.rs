//! Conditioning of kernel values: whether distances between rows survive rounding in double precision.
//!
//! A machine learns from the squared distances k(x, x) + k(z, z) - 2 k(x, z) of the feature space. Values of kernels that a
//! translation changes (polynomials; the linear kernel unless coefficients sum to zero) grow with the distance of the rows
//! from the origin, while these distances do not. If the rounding of the values is as large as the distances, a solver
//! fits rounding errors, or does not terminate.
//!
//! Cost: the kernel values of [`MAX_PAIRS`] pairs of rows.

use super::function::KernelFunction;
use super::pair::pair;
use super::{CoefficientSum, Kernel};
use crate::data::Rows;
use crate::error::{Error, Result};

/// Maximum number of pairs of rows, spread evenly.
const MAX_PAIRS: usize = 64;

/// Checks that distances between rows are larger than their rounding errors: that the error of the median squared distance is
/// at most `max_relative_rounding` of it.
///
/// # Errors
/// [`Error::Param`] that names `what`.
pub(crate) fn check_conditioning(
    what: &'static str,
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    sum: CoefficientSum,
    max_relative_rounding: f64,
) -> Result<()> {
    let KernelFunction::BuiltIn(kernel) = kernel else { return Ok(()) };
    let is_affected = match kernel {
        Kernel::Linear => sum == CoefficientSum::Any,
        Kernel::Polynomial { .. } => true,
        _ => false,
    };
    let n = rows.rows();
    if !is_affected || n < 2 {
        return Ok(());
    }
    let mut roundings = Vec::new();
    let mut largest = 0.0_f64;
    for k in 0..MAX_PAIRS.min(n) {
        let i = k * n / MAX_PAIRS.min(n);
        let j = (i + 1 + k * (n - 1) / MAX_PAIRS) % n;
        let value = |i: usize, j: usize| pair(&kernel, rows, i, rows, j);
        let (a, b) = (value(i, i), value(j, j));
        let distance = a + b - 2.0 * value(i, j);
        // Equal rows have no distance; rows whose distance is not finite are refused by their magnitudes.
        if i != j && distance.is_finite() && distance != 0.0 {
            largest = largest.max(a.abs().max(b.abs()));
            let rounding = 0.5 * f64::EPSILON * (a.abs() + b.abs());
            roundings.push(rounding / distance.max(f64::MIN_POSITIVE));
        }
    }
    if roundings.is_empty() {
        return Ok(());
    }
    let middle = roundings.len() / 2;
    let (_, &mut median, _) = roundings.select_nth_unstable_by(middle, f64::total_cmp);
    Error::check_param(
        median <= max_relative_rounding,
        what,
        format!("rows far from the origin, or hardly different, for the {} kernel", kernel.name()),
        format!(
            "scaled (for example by StandardScaler): kernel values are as large as {largest:e}, and their rounding is {median:.1e} \
             of the squared distances between these rows"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(kernel: Kernel, offset: f64, sum: CoefficientSum) -> bool {
        let x: Vec<f64> = (0..120).map(|i| offset + f64::from((i * i) % 17)).collect();
        check_conditioning("X", kernel.into(), Rows::from_shape((30, 4), &x).unwrap(), sum, 0.1).is_ok()
    }

    #[test]
    fn distances_below_rounding_are_refused() {
        for kernel in [Kernel::Linear, Kernel::Polynomial { degree: 2, gamma: 0.1, coef0: 1.0 }] {
            assert!(passes(kernel, 0.0, CoefficientSum::Any) && passes(kernel, 1e5, CoefficientSum::Any));
            assert!(!passes(kernel, 1e10, CoefficientSum::Any));
        }
        assert!(passes(Kernel::Linear, 1e10, CoefficientSum::Zero));
        assert!(passes(Kernel::Rbf { gamma: 1.0 }, 1e5, CoefficientSum::Any));
    }

    #[test]
    fn a_stricter_limit_refuses_nearer_rows() {
        let x: Vec<f64> = (0..120).map(|i| 1e5 + f64::from((i * i) % 17)).collect();
        let rows = Rows::from_shape((30, 4), &x).unwrap();
        let check = |limit| check_conditioning("X", Kernel::Linear.into(), rows, CoefficientSum::Any, limit);
        assert!(check(1e-6).is_ok() && check(1e-9).is_err());
    }

    #[test]
    fn equal_rows_and_single_rows_pass() {
        let x = [1e9; 40];
        for n in [1, 2, 10] {
            let rows = Rows::from_shape((n, 4), &x[..4 * n]).unwrap();
            assert!(check_conditioning("X", Kernel::Linear.into(), rows, CoefficientSum::Any, 0.1).is_ok());
        }
    }
}
