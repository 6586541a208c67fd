//! Training and test data: rows of features, or kernel values with the serial number of each row.

use crate::arguments::{Failure, Outcome};
use ndarray::{Array2, Axis};
use std::path::Path;
use svmarrow::context::Context;
use svmarrow::data::OwnedRows;
use svmarrow::io::svmlight::{IndexBase, ReadOptions, read};

/// Rows of a data file.
pub(crate) enum Samples {
    /// CSR rows, columns counted from the index 1.
    Features(OwnedRows),
    /// Kernel values, columns counted from the index 1, and the numbers of the index 0.
    Kernel(Array2<f64>, Vec<f64>),
}

/// Reads a data file: targets and rows, of which there is at least one.
pub(crate) fn read_samples(path: &str, is_kernel: bool) -> Outcome<(Vec<f64>, Samples)> {
    let mut options = ReadOptions::default();
    options.base = if is_kernel { IndexBase::Zero } else { IndexBase::One };
    let data = read(Path::new(path), &options, Context::default())?;
    if data.targets.is_empty() {
        return Err(Failure::input(format!("{path}: the file has no rows")));
    }
    if !is_kernel {
        return Ok((data.targets, Samples::Features(data.rows)));
    }
    let rows = data.rows.view();
    let mut serials = vec![0.0; rows.rows()];
    let mut values = Array2::zeros((rows.rows(), rows.cols().saturating_sub(1)));
    for (i, mut line) in values.axis_iter_mut(Axis(0)).enumerate() {
        rows.for_each_in_row(i, |k, v| if k == 0 { serials[i] = v } else { line[k - 1] = v });
    }
    Ok((data.targets, Samples::Kernel(values, serials)))
}

impl Samples {
    /// Returns the number of columns.
    pub(crate) fn cols(&self) -> usize {
        match self {
            Self::Features(rows) => rows.view().cols(),
            Self::Kernel(values, _) => values.ncols(),
        }
    }

    /// Returns the column of each training row of a precomputed kernel.
    pub(crate) fn columns(&self) -> Outcome<Vec<usize>> {
        let Self::Kernel(values, serials) = self else { return Ok(Vec::new()) };
        let m = values.ncols();
        let column = |serial: &f64| {
            let is_valid = serial.trunc() == *serial && *serial >= 1.0 && *serial <= m as f64;
            is_valid.then(|| *serial as usize - 1)
        };
        serials.iter().map(column).collect::<Option<_>>().ok_or_else(|| {
            Failure::input(format!(
                "the serial numbers (index 0) of a precomputed kernel must be integers from 1 to the number of columns, {m}"
            ))
        })
    }
}
