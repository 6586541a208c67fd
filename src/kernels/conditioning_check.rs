//! Whether kernel values tell rows apart in double precision.
//!
//! What a machine learns from are the squared distances k(x, x) + k(z, z) - 2 k(x, z) of the feature space. Kernels that
//! no translation leaves as they are (polynomials; the linear one where coefficients do not sum to zero) have values that
//! grow with the rows' distance from the origin while these do not, and once their rounding is as large,
//! a solver fits nothing but rounding, or goes in circles.
//!
//! Cost: the kernel values of [`MAX_PAIRS`] pairs of rows.

use super::function::KernelFunction;
use super::pair::pair;
use super::{CoefficientSum, Kernel};
use crate::data::Rows;
use crate::error::{Error, Result};

/// Pairs of rows that are looked at, spread evenly.
const MAX_PAIRS: usize = 64;
/// Largest rounding of the median distance, relative to it.
const MAX_RELATIVE_ROUNDING: f64 = 0.1;

/// Checks that rounding leaves something of the distances between rows.
///
/// # Errors
/// [`Error::Param`] that names `what`.
pub(crate) fn check_conditioning(
    what: &'static str,
    kernel: KernelFunction<'_>,
    rows: Rows<'_>,
    sums: CoefficientSum,
) -> Result<()> {
    let KernelFunction::BuiltIn(kernel) = kernel else { return Ok(()) };
    let moved = match kernel {
        Kernel::Linear => sums == CoefficientSum::Zero,
        Kernel::Polynomial { .. } => false,
        _ => true,
    };
    let n = rows.rows();
    if moved || n < 2 {
        return Ok(());
    }
    let mut shares = Vec::new();
    let mut largest = 0.0_f64;
    for k in 0..MAX_PAIRS.min(n) {
        let i = k * n / MAX_PAIRS.min(n);
        let j = (i + 1 + k * (n - 1) / MAX_PAIRS) % n;
        let value = |i: usize, j: usize| pair(&kernel, rows, i, rows, j);
        let (a, b) = (value(i, i), value(j, j));
        let distance = a + b - 2.0 * value(i, j);
        // Equal rows have no distance to lose.
        if i != j && distance != 0.0 {
            largest = largest.max(a.abs().max(b.abs()));
            let rounding = 0.5 * f64::EPSILON * (a.abs() + b.abs());
            shares.push(rounding / distance.max(f64::MIN_POSITIVE));
        }
    }
    let middle = shares.len() / 2;
    let Some((_, &mut share, _)) =
        (middle < shares.len()).then(|| shares.select_nth_unstable_by(middle, f64::total_cmp))
    else {
        return Ok(());
    };
    Error::check_param(
        share <= MAX_RELATIVE_ROUNDING,
        what,
        format!("rows far from the origin, or hardly different, for the {} kernel", kernel.name()),
        format!(
            "scaled (for example by StandardScaler): kernel values are as large as {largest:e}, and their rounding is {share:.1e} \
             of the squared distances between these rows"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(kernel: Kernel, offset: f64, sums: CoefficientSum) -> bool {
        let x: Vec<f64> = (0..120).map(|i| offset + f64::from((i * i) % 17)).collect();
        check_conditioning("X", kernel.into(), Rows::from_shape((30, 4), &x).unwrap(), sums).is_ok()
    }

    #[test]
    fn distances_below_rounding_are_refused() {
        for kernel in [Kernel::Linear, Kernel::Polynomial { degree: 2, gamma: 0.1, coef0: 1.0 }] {
            assert!(verdict(kernel, 0.0, CoefficientSum::Any) && verdict(kernel, 1e5, CoefficientSum::Any));
            assert!(!verdict(kernel, 1e10, CoefficientSum::Any));
        }
        assert!(verdict(Kernel::Linear, 1e10, CoefficientSum::Zero));
        assert!(verdict(Kernel::Rbf { gamma: 1.0 }, 1e5, CoefficientSum::Any));
    }

    #[test]
    fn equal_rows_and_single_rows_have_nothing_to_lose() {
        let x = [1e9; 40];
        for n in [1, 2, 10] {
            let rows = Rows::from_shape((n, 4), &x[..4 * n]).unwrap();
            assert!(check_conditioning("X", Kernel::Linear.into(), rows, CoefficientSum::Any).is_ok());
        }
    }
}
