//! Training and test data: rows of features, or kernel values with the serial number of each row.

use crate::arguments::{Failure, Outcome};
use ndarray::{Array2, Axis};
use std::path::Path;
use svmarrow::context::Context;
use svmarrow::data::OwnedRows;
use svmarrow::io::svmlight::{IndexBase, ReadOptions, read};
use svmarrow::memory::try_zero_matrix;

/// Rows of a data file.
pub(crate) enum Samples {
    /// CSR rows, columns counted from the index 1.
    Features(OwnedRows),
    /// CSR rows of kernel values, columns counted from the index 0, and the numbers of the index 0.
    Kernel(OwnedRows, Vec<f64>),
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
    let serials = kernel_values(&data.rows, None, &[0])?.into_raw_vec_and_offset().0;
    Ok((data.targets, Samples::Kernel(data.rows, serials)))
}

/// Returns some columns of some rows, or of all; columns that a row lacks are zeros. The memory does not depend on the largest
/// index.
pub(crate) fn kernel_values(
    rows: &OwnedRows,
    list: Option<&[usize]>,
    columns: &[usize],
) -> Outcome<Array2<f64>> {
    let rows = rows.view();
    let mut order: Vec<(usize, usize)> = columns.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let count = list.map_or(rows.rows(), <[usize]>::len);
    let mut values = try_zero_matrix("kernel values", (count, columns.len()))?;
    for (i, mut line) in values.axis_iter_mut(Axis(0)).enumerate() {
        let mut indices = order.iter().peekable();
        rows.for_each_in_row(list.map_or(i, |list| list[i]), |k, v| {
            while indices.next_if(|(column, _)| *column < k).is_some() {}
            while let Some(&(_, place)) = indices.next_if(|(column, _)| *column == k) {
                line[place] = v;
            }
        });
    }
    Ok(values)
}

impl Samples {
    /// Returns the number of columns.
    pub(crate) fn cols(&self) -> usize {
        match self {
            Self::Features(rows) => rows.view().cols(),
            Self::Kernel(values, _) => values.view().cols().saturating_sub(1),
        }
    }

    /// Returns the column of each training row of a precomputed kernel.
    pub(crate) fn columns(&self) -> Outcome<Vec<usize>> {
        let Self::Kernel(_, serials) = self else { return Ok(Vec::new()) };
        let m = self.cols();
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
