//! Magnitudes of rows and kernel values, and the checks that they neither overflow nor vanish.
//!
//! Every solver checks its rows before it computes a kernel value, so that an error names the rows and the remedy, not a
//! solution that is not finite. The same pass refuses NaN and infinities: `min` and `max` in the formulas of kernels would turn
//! NaN into a valid kernel value.
//!
//! Cost: one pass over all rows.

use super::function::KernelFunction;
use super::rounding::{EUCLIDEAN_ERROR, FINAL_ROUNDINGS, relative_error_bound};
use super::standardization::{Standardization, is_l1};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use std::ops::Range;

/// Maximum magnitude of numbers in sums of products in single precision.
const MAX_SINGLE: f64 = 1e37;
/// Maximum magnitude of numbers in sums of products in double precision.
const MAX_DOUBLE: f64 = 1e300;
/// Factor from the relative error of a sum, times the lengths of two standardized rows, to the relative error of a Matérn kernel
/// (see `rounding`): the largest sqrt(2 nu) gamma there is 3.2.
const MATERN_SLOPE: f64 = 1.1 * 3.2 * EUCLIDEAN_ERROR;
/// Maximum squared length of standardized rows at which squared distances in single precision are off by less than a hundredth.
const MAX_SINGLE_SQUARED_LENGTH: f64 = 65536.0;
/// Maximum squared length of standardized rows at which squared distances of the RBF kernel are computed from products, whose
/// error is a few roundings of it.
pub(super) const MAX_PRODUCT_LENGTH: f64 = 1e6;
/// Rows that one task measures.
const ROWS_PER_TASK: usize = 256;

/// The precision in which kernel values are computed; rows are kept in single precision either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Twice as fast; errors of about 1e-7 relative to k(x, x).
    #[default]
    Single,
    /// For kernels whose values are large compared with their differences.
    Double,
}

/// Maximum magnitudes of rows, and of the kernel values between any two of them.
#[derive(Clone, Copy)]
pub(crate) struct Magnitudes {
    kernel: Kernel,
    /// The largest number of the rows.
    max_entry: f64,
    /// The largest squared length of a standardized row; for kernels of sums of differences, the largest l1 length.
    max_length: f64,
    max_value: f64,
    columns: usize,
}

impl Magnitudes {
    /// Measures rows for a kernel. User-defined functions are not measured.
    ///
    /// # Errors
    /// [`Error::NotFinite`] that names `what` if a number is not finite.
    pub(crate) fn new(what: &'static str, kernel: KernelFunction<'_>, rows: Rows<'_>) -> Result<Self> {
        let standardization = Standardization::new(&kernel.built_in(), rows)?;
        Self::of_standardized(what, kernel, &standardization, rows, Context::SEQUENTIAL)
    }

    /// Measures rows after a standardization that was fitted for the kernel, to these rows or to others.
    ///
    /// # Errors
    /// [`Error::NotFinite`] that names `what` if a number is not finite.
    pub(super) fn of_standardized(
        what: &'static str,
        kernel: KernelFunction<'_>,
        standardization: &Standardization,
        rows: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let KernelFunction::BuiltIn(kernel) = kernel else {
            let kernel = Kernel::Precomputed;
            return Ok(Self { kernel, max_entry: 0.0, max_length: 0.0, max_value: 0.0, columns: 0 });
        };
        // The length of a row with NaN is NaN, which must not be lost.
        let larger =
            |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), if a.1 > b.1 || a.1.is_nan() { a.1 } else { b.1 });
        let ctx = ctx.for_operations(rows.rows().saturating_mul(rows.cols()));
        let interrupts = ctx.interrupts();
        let of_range = |range: Range<usize>| {
            if interrupts.charge(range.len().saturating_mul(rows.cols())).is_err() {
                return (0.0, 0.0);
            }
            let magnitudes = range.map(|row| standardization.magnitudes(rows, row, !is_l1(&kernel)));
            magnitudes.fold((0.0, 0.0), larger)
        };
        let largest = ctx.reduce(rows.rows(), ROWS_PER_TASK, of_range, larger);
        interrupts.check()?;
        let (max_entry, mut max_length) = largest.unwrap_or((0.0, 0.0));
        if !max_length.is_finite() {
            // Large numbers overflow in squares.
            rows.check_finite(what)?;
        }
        if kernel == Kernel::Precomputed {
            max_length = 0.0;
        }
        let max_value = match *standardization.kernel() {
            Kernel::Linear => max_length,
            Kernel::Polynomial { degree, gamma, coef0 } => {
                (gamma * max_length + coef0.abs()).powf(f64::from(degree))
            }
            Kernel::Precomputed => max_entry,
            _ => 1.0,
        };
        Ok(Self { kernel, max_entry, max_length, max_value, columns: rows.cols() })
    }

    /// Returns the largest magnitude of a kernel value, and a bound for the error of a value in double precision (see
    /// `rounding`). Precomputed values are exact.
    pub(crate) fn in_double(&self) -> (f64, f64) {
        let (sum, last) = self.double_precision_errors();
        // The gamma of standardized rows is at most 2.
        let error = match self.kernel {
            Kernel::Precomputed => 0.0,
            Kernel::Linear => (sum + last) * self.max_length,
            Kernel::Polynomial { degree, .. } => 1.1 * f64::from(degree) * (sum + last) * self.max_value,
            // Longer rows have distances (`distances`) whose relative error is at most 16 times that of a sum.
            Kernel::Rbf { .. } => (8.8 * self.max_length.min(MAX_PRODUCT_LENGTH) + 6.5) * sum + last,
            Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => 6.6 * sum * self.max_length + last,
            Kernel::Matern { .. } => 2.0 * MATERN_SLOPE * sum * self.max_length.sqrt() + last,
            Kernel::Sigmoid { coef0, .. } => 2.2 * sum * self.max_length + last * (1.0 + coef0.abs()),
        };
        (self.max_value, error)
    }

    /// Returns (a, b) of the bound k(x, z) (a + b (s + t)) for the error of a value in double precision, with the rounding
    /// scales s and t of the rows (see `KernelRows::rounding_scales`); `None` for kernels without such a bound.
    pub(crate) fn relative_error_in_double(&self) -> Option<(f64, f64)> {
        let (sum, last) = self.double_precision_errors();
        let slope = match self.kernel {
            Kernel::Rbf { .. } => 4.4 * sum,
            Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => 3.3 * sum,
            Kernel::Matern { .. } => MATERN_SLOPE * sum,
            _ => return None,
        };
        let is_matern = matches!(self.kernel, Kernel::Matern { .. });
        let largest = if is_matern { self.max_length.sqrt() } else { self.max_length };
        (slope * (2.0 * largest) < 0.1).then_some((last, slope))
    }

    /// Returns the relative errors of a sum over the columns, and of the operations after it.
    fn double_precision_errors(&self) -> (f64, f64) {
        (relative_error_bound(self.columns + 4, false), FINAL_ROUNDINGS * relative_error_bound(0, false))
    }

    /// Returns whether values can be computed in single precision.
    pub(crate) fn is_single(&self) -> bool {
        self.max_value < MAX_SINGLE && is_single(&self.kernel, self.max_length)
    }

    /// Checks that values can be computed in double precision and stored in the precision `stored`.
    ///
    /// # Errors
    /// [`Error::Param`] that names `what`.
    pub(crate) fn check_overflow(&self, what: &'static str, stored: Precision) -> Result<()> {
        let limit = if stored == Precision::Single { MAX_SINGLE } else { MAX_DOUBLE };
        // About a center, values of the linear kernel are small even if products with the center are not.
        let products = self.max_entry * self.max_entry * self.columns as f64;
        let fits = self.kernel != Kernel::Linear || products < MAX_DOUBLE;
        if self.max_length < MAX_DOUBLE && self.max_value < limit && fits {
            return Ok(());
        }
        Err(self.out_of_range(what, format!("stay below {limit:e}")))
    }

    /// Checks that not all values are zero in single precision, unless values below `negligible` do not matter.
    ///
    /// # Errors
    /// [`Error::Param`] that names `what`.
    pub(crate) fn check_underflow(&self, what: &'static str, negligible: f64) -> Result<()> {
        let vanishes = self.max_value > 0.0 && self.max_value < 1.0 / MAX_SINGLE;
        if vanishes && self.max_value > 1e-3 * negligible {
            Err(self.out_of_range(what, format!("reach {:e}", 1.0 / MAX_SINGLE)))
        } else {
            Ok(())
        }
    }

    fn out_of_range(&self, what: &'static str, goal: String) -> Error {
        let Self { kernel, max_entry, max_length, max_value, .. } = *self;
        let gamma = kernel.gamma().map_or(String::new(), |gamma| format!(" and gamma={gamma:e}"));
        let magnitude = if max_length >= MAX_DOUBLE {
            max_length
        } else if max_value >= MAX_SINGLE || kernel != Kernel::Linear {
            max_value
        } else {
            max_value.max(max_entry * max_entry)
        };
        Error::param(
            what,
            format!("numbers up to {max_entry:e}"),
            format!(
                "scaled (for example by StandardScaler) so that {} kernel values {goal}: with these numbers{gamma} they \
                 are as large as {magnitude:e}",
                kernel.name()
            ),
        )
    }
}

/// Returns whether values of standardized rows of this squared length can be computed in single precision.
pub(super) fn is_single(kernel: &Kernel, squared_norm: f64) -> bool {
    let is_euclidean = matches!(kernel, Kernel::Rbf { .. } | Kernel::Matern { .. });
    squared_norm < if is_euclidean { MAX_SINGLE_SQUARED_LENGTH } else { MAX_SINGLE }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 20;
    const D: usize = 3;

    fn rows(of: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..N * D).map(|i| of((i as f64 * 0.77 + (i * i) as f64 * 0.013).sin())).collect()
    }

    #[test]
    fn numbers_beyond_the_precision_are_refused_by_name() {
        for (size, kernel, precision) in [
            (1e200, Kernel::Linear, Precision::Double),
            (1e30, Kernel::Linear, Precision::Single),
            (1e9, Kernel::Polynomial { degree: 20, gamma: 1.0, coef0: 0.0 }, Precision::Double),
            (1e160, Kernel::Rbf { gamma: 1.0 }, Precision::Double),
        ] {
            let x = rows(|v| size * v);
            let magnitudes =
                Magnitudes::new("X", kernel.into(), Rows::from_shape((N, D), &x).unwrap()).unwrap();
            let message = magnitudes.check_overflow("X", precision).unwrap_err().to_string();
            assert!(message.starts_with("X=numbers up to ") && message.contains(kernel.name()), "{message}");
        }
        let x = rows(|v| 1e-30 * v);
        let magnitudes =
            Magnitudes::new("X", Kernel::Linear.into(), Rows::from_shape((N, D), &x).unwrap()).unwrap();
        assert!(
            magnitudes.check_underflow("X", 1e-3).is_ok() && magnitudes.check_underflow("X", 1e-60).is_err()
        );
    }
}
