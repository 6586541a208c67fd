//! The kernel of an estimator, resolved when the samples are known.

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// A kernel, or the width of an RBF kernel, or neither.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct KernelChoice {
    pub(super) kernel: Option<Kernel>,
    pub(super) gamma: Option<f64>,
}

impl KernelChoice {
    /// Checks the parameters.
    pub(super) fn check(&self) -> Result<()> {
        match (self.kernel, self.gamma) {
            (Some(_), Some(gamma)) => Err(Error::param(
                "gamma",
                gamma,
                "a parameter of the kernel if a kernel is set: leave gamma out",
            )),
            (Some(kernel), None) => kernel.check(),
            (None, Some(gamma)) => Kernel::Rbf { gamma }.check(),
            (None, None) => Ok(()),
        }
    }

    /// Returns the kernel. Without a choice it is RBF with gamma = 1 / (n_features * variance of all values).
    pub(super) fn resolve(&self, rows: Rows<'_>) -> Result<Kernel> {
        let kernel = match (self.kernel, self.gamma) {
            (Some(kernel), _) => kernel,
            (None, Some(gamma)) => Kernel::Rbf { gamma },
            (None, None) => Kernel::Rbf { gamma: scale_gamma(rows) },
        };
        kernel.check()?;
        kernel.check_rows("X", rows)?;
        Ok(kernel)
    }
}

/// 1 / (n_features * variance of all values), or 1 if the variance is 0.
fn scale_gamma(rows: Rows<'_>) -> f64 {
    let count = rows.rows() as f64 * rows.cols() as f64;
    let (mut sum, mut stored) = (0.0, 0.0);
    for row in 0..rows.rows() {
        rows.for_each_in_row(row, |_, value| {
            sum += value;
            stored += 1.0;
        });
    }
    let mean = sum / count;
    let mut squares = (count - stored) * mean * mean;
    for row in 0..rows.rows() {
        rows.for_each_in_row(row, |_, value| squares += (value - mean) * (value - mean));
    }
    let variance = squares / count;
    if variance > 0.0 { 1.0 / (rows.cols() as f64 * variance) } else { 1.0 }
}

/// Functions of a builder: `name(type): field` sets a field of the estimator `0`.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($type:ty): $($field:ident).+;)+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.0.$($field).+ = $name.into();
            self
        }
    )+};
}
pub(super) use setters;

/// The functions of a builder that choose the kernel of the estimator in its field `0.kernel`.
macro_rules! kernel_setters {
    () => {
        $crate::estimators::kernel_choice::setters! {
            /// Sets gamma of an RBF kernel; the default is 1 / (n_features * variance of all values).
            gamma(f64): kernel.gamma;

            /// Sets the kernel with its parameters; the default is RBF.
            kernel($crate::kernels::Kernel): kernel.kernel;
        }
    };
}
pub(super) use kernel_setters;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrView, IndexSlice};
    use ndarray::arr2;

    #[test]
    fn scale_gamma_counts_the_zeros_of_sparse_rows() {
        let dense = arr2(&[[0.0, 3.0, 0.0], [1.0, 0.0, -2.0]]);
        let sparse =
            CsrView::new(IndexSlice::I32(&[0, 1, 3]), IndexSlice::I32(&[1, 0, 2]), &[3.0_f64, 1.0, -2.0], 3);
        let variance: f64 = (14.0 - 4.0 / 6.0) / 6.0;
        for rows in [Rows::try_from(&dense).unwrap(), Rows::from(sparse.unwrap())] {
            assert!((scale_gamma(rows) * 3.0 * variance - 1.0).abs() < 1e-14);
        }
        let constant = arr2(&[[2.0, 2.0]]);
        assert_eq!(scale_gamma(Rows::try_from(&constant).unwrap()), 1.0);
    }

    #[test]
    fn a_kernel_and_a_width_contradict_each_other() {
        let both = KernelChoice { kernel: Some(Kernel::Linear), gamma: Some(1.0) };
        assert!(both.check().unwrap_err().to_string().contains("gamma=1"));
        let negative = KernelChoice { kernel: None, gamma: Some(-1.0) };
        assert!(negative.check().unwrap_err().to_string().contains("gamma=-1"));
    }
}
