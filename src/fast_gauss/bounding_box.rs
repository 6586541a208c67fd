//! The region in which samples lie.

use super::{SUM, is_applicable};
use crate::data::Rows;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::memory;
use crate::simd::chebyshev::MAX_AXES;

/// The smallest axis-aligned box that contains the samples, in units of 1 / sqrt(gamma).
pub(super) struct BoundingBox {
    unit: f64,
    lower: Vec<f64>,
    pub(super) lengths: Vec<f64>,
}

impl BoundingBox {
    /// Returns the box of all rows, or `None` if the module does not apply to the kernel.
    pub(super) fn of(kernel: &Kernel, rows: Rows<'_>) -> Option<Self> {
        let (Kernel::Rbf { gamma }, d) = (*kernel, rows.cols()) else { return None };
        if !is_applicable(kernel, d) || rows.rows() == 0 {
            return None;
        }
        // small: at most three columns
        let (mut lower, mut upper) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
        let mut point = vec![0.0; d]; // small: at most three columns
        for row in 0..rows.rows() {
            point.fill(0.0);
            rows.for_each_in_row(row, |k, v| point[k] = v);
            for k in 0..d {
                lower[k] = lower[k].min(point[k]);
                upper[k] = upper[k].max(point[k]);
            }
        }
        let unit = gamma.sqrt();
        // small: at most three columns
        let lengths = lower.iter().zip(&upper).map(|(lower, upper)| unit * (upper - lower)).collect();
        Some(Self { unit, lower, lengths })
    }

    /// Returns the listed rows as points in these units, from the lower corner of the box.
    pub(super) fn points(&self, rows: Rows<'_>, list: &[usize]) -> Result<Vec<f64>> {
        let d = self.lower.len();
        let mut points = memory::try_zeros(SUM, list.len() * d)?;
        let mut buffer = [0.0; MAX_AXES];
        for (point, &row) in points.chunks_exact_mut(d).zip(list) {
            buffer.fill(0.0);
            rows.for_each_in_row(row, |k, v| buffer[k] = v);
            for k in 0..d {
                point[k] = self.unit * (buffer[k] - self.lower[k]);
            }
        }
        Ok(points)
    }
}
