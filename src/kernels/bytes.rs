//! Rows of pixels, counts or switches as bytes: every number is a whole multiple, 0 to 255 times, of one unit. Their inner
//! products and distances are exact in integers, and several times as fast as in single precision (`simd/bytes`).
//!
//! The unit is detected: images come as bytes, or as bytes divided by 255 in either precision. A number counts as a multiple
//! if it differs from one by no more than rounding to single precision.
//!
//! Cost: one pass over all numbers of rows that have a unit; other rows are recognized by the first of them.

use super::standardization::{is_mostly_zeros, scaled};
use crate::context::Context;
use crate::data::{Element, Rows, row as dense_row};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::memory::{self};
use crate::simd::Real;
use crate::simd::bytes::{ByteMeasure, BytePanel, ByteRows, GROUP_SIZE, MAX_FEATURES, OFFSET, are_fast};
use crate::with_rows;
use std::sync::atomic::{AtomicBool, Ordering};

/// Context reported when the allocation of packed rows fails.
const PACKED: &str = "packed rows";
/// Minimum number of features at which the products take most of the time.
const MIN_FEATURES: usize = 64;
/// Maximum number of columns for each number that is not zero, less [`MAX_COLUMNS_OVERHEAD`]; beyond, sparse rows are faster.
const MAX_COLUMNS_PER_ENTRY: usize = 12;
const MAX_COLUMNS_OVERHEAD: usize = 64;
/// Maximum distance of a number from a multiple of the unit, relative to the number.
const MAX_RELATIVE_DISTANCE: f64 = 1.5e-7;
/// Number of rows in which units are sought, and of rows that are checked together.
const SAMPLE_ROWS: usize = 64;
/// A number below 2^51 plus this one has the nearest integer in its last bits.
const LAST_BITS: f64 = 6_755_399_441_055_744.0;

/// A number of which all numbers of the rows are multiples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    size: f64,
    inverse: f64,
    /// The scale of standardized rows.
    scale: f64,
}

impl Unit {
    /// Returns the unit of the rows; `None` if they have none, or if bytes are impossible or not worth it for the kernel.
    pub(super) fn find(kernel: &Kernel, rows: Rows<'_>, ctx: Context<'_>) -> Option<Self> {
        let features = rows.cols();
        let fits = matches!(
            kernel,
            Kernel::Rbf { .. } | Kernel::Matern { .. } | Kernel::Polynomial { .. } | Kernel::Sigmoid { .. }
        );
        if !(fits && are_fast() && !rows.is_sparse() && (MIN_FEATURES..=MAX_FEATURES).contains(&features))
            || is_mostly_zeros(rows, MAX_COLUMNS_PER_ENTRY, MAX_COLUMNS_OVERHEAD)
        {
            return None;
        }
        let (_, scale) = scaled(*kernel);
        let sample = rows.rows().min(SAMPLE_ROWS);
        let (mut smallest, mut largest) = (f64::INFINITY, 0.0_f64);
        for i in 0..sample {
            rows.for_each_in_row(i * rows.rows() / sample, |_, v| {
                (smallest, largest) = (if v > 0.0 { smallest.min(v) } else { smallest }, largest.max(v));
            });
        }
        let candidates = [1.0, 1.0 / 255.0, 1.0 / 256.0, largest / 255.0, smallest];
        candidates.into_iter().map(|size| Self::new(size, scale)).find(|unit| {
            let factor = unit.factor() * 65_025.0 * features as f64;
            let all = AtomicBool::new(unit.size > 0.0 && factor > 1e-30 && factor < 1e30);
            ctx.for_each(rows.rows().div_ceil(SAMPLE_ROWS), |chunk| {
                for row in chunk * SAMPLE_ROWS..rows.rows().min((chunk + 1) * SAMPLE_ROWS) {
                    if !(all.load(Ordering::Relaxed) && unit.divides(rows, row)) {
                        all.store(false, Ordering::Relaxed);
                    }
                }
            });
            all.into_inner()
        })
    }

    fn new(size: f64, scale: f64) -> Self {
        Self { size, inverse: 1.0 / size, scale }
    }

    fn divides(&self, rows: Rows<'_>, row: usize) -> bool {
        with_rows!(&rows,
            dense(view) => dense_row(view, row).iter().all(|v| self.byte(Element::to_f64(*v)).1),
            csr(_s) => false)
    }

    /// Returns the number as a multiple of the unit, and whether it is one; if not, the multiple is unspecified.
    #[inline]
    fn byte(&self, v: f64) -> (u8, bool) {
        let byte = ((v * self.inverse + LAST_BITS).to_bits() & 0xff) as u8;
        // A nearest integer of 256 or more has other last bits, so the difference is too large; infinity is excluded.
        (byte, v.is_finite() && (f64::from(byte) * self.size - v).abs() <= MAX_RELATIVE_DISTANCE * v)
    }

    /// Calls `put(column, byte)` for the columns of a row, and returns whether the unit divides all of its numbers.
    fn read(&self, rows: Rows<'_>, row: usize, mut put: impl FnMut(usize, u8)) -> bool {
        let mut divided = true;
        let mut take = |k: usize, v: f64| {
            let (byte, divides) = self.byte(v);
            put(k, byte);
            divided &= divides;
        };
        with_rows!(&rows,
            dense(view) => for (k, v) in dense_row(view, row).iter().enumerate() { take(k, Element::to_f64(*v)) },
            csr(view) => view.for_each_in_row(row, |k, v| take(k, Element::to_f64(v))));
        divided
    }

    /// Returns the factor from inner products of bytes to those of standardized rows.
    fn factor(&self) -> f64 {
        (self.size * self.scale).powi(2)
    }

    /// Returns what is computed from inner products of bytes before the epilogue, which takes all lengths as zero.
    pub(super) fn measure(&self, kernel: &Kernel) -> ByteMeasure {
        let factor = self.factor();
        match kernel {
            Kernel::Rbf { .. } => ByteMeasure::SquaredDistance((-0.5 * factor) as f32),
            Kernel::Matern { .. } => ByteMeasure::SquaredDistance(factor as f32),
            _ => ByteMeasure::Inner(factor as f32),
        }
    }
}

/// Dense rows as columns of panels of bytes.
pub(super) struct BytePanels {
    pub(super) unit: Unit,
    stride: usize,
    width: usize,
    values: Vec<u8>,
    sums: Vec<i32>,
    squares: Vec<i32>,
}

impl BytePanels {
    /// Packs the listed rows, all of which the unit divides, in panels of `width`.
    pub(super) fn pack(
        unit: Unit,
        rows: Rows<'_>,
        order: &[usize],
        width: usize,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (stride, count) = (rows.cols().next_multiple_of(GROUP_SIZE), order.len().div_ceil(width));
        let size = stride * width;
        let mut values = memory::try_zeros(PACKED, count.saturating_mul(size))?;
        let mut sums = vec![0; count * width];
        let mut squares = vec![0; count * width];
        let panel_rows = |p: usize| &order[p * width..order.len().min((p + 1) * width)];
        let interrupts = ctx.interrupts();
        ctx.try_for_each_chunk(&mut values, size, |p, panel| {
            interrupts.charge(size)?;
            for (j, &row) in panel_rows(p).iter().enumerate() {
                unit.read(rows, row, |k, byte| {
                    panel[(k / GROUP_SIZE * width + j) * GROUP_SIZE + k % GROUP_SIZE] = byte;
                });
            }
            Ok(())
        })?;
        for (p, panel) in values.chunks_exact(size).enumerate() {
            for line in panel.chunks_exact(width * GROUP_SIZE) {
                let numbers = sums[p * width..].iter_mut().zip(&mut squares[p * width..]);
                for ((sum, square), column) in numbers.zip(line.chunks_exact(GROUP_SIZE)) {
                    for &v in column {
                        *sum += OFFSET * i32::from(v);
                        *square += i32::from(v) * i32::from(v);
                    }
                }
            }
        }
        Ok(Self { unit, stride, width, values, sums, squares })
    }

    pub(super) fn panel(&self, p: usize) -> BytePanel<'_> {
        let (size, columns) = (self.stride * self.width, p * self.width..(p + 1) * self.width);
        BytePanel {
            values: &self.values[p * size..(p + 1) * size],
            sums: &self.sums[columns.clone()],
            squares: &self.squares[columns],
        }
    }

    /// Returns the squared lengths of the columns after standardization.
    pub(super) fn norms<T: Real>(&self) -> Vec<T> {
        let factor = self.unit.factor();
        self.squares.iter().map(|&square| T::from_f64(factor * f64::from(square))).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.sums.len() * Self::bytes_per_row(self.stride)
    }

    /// Returns the number of bytes of a packed row, without its norm.
    pub(super) fn bytes_per_row(features: usize) -> usize {
        features.next_multiple_of(GROUP_SIZE) + 2 * size_of::<i32>()
    }

    /// Packs rows for the other side of a tile.
    pub(super) fn block(&self, rows: Rows<'_>, list: &[usize]) -> Result<ByteBlock> {
        let mut values = memory::try_zeros(PACKED, list.len().saturating_mul(self.stride))?;
        let (mut squares, mut is_exact) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
        for (&row, out) in list.iter().zip(values.chunks_exact_mut(self.stride)) {
            out[..rows.cols()].fill((0 - OFFSET) as i8);
            let mut square = 0;
            is_exact.push(self.unit.read(rows, row, |k, byte| {
                let byte = i32::from(byte);
                out[k] = (byte - OFFSET) as i8;
                square += byte * byte;
            }));
            squares.push(square);
        }
        Ok(ByteBlock { values, stride: self.stride, squares, is_exact })
    }
}

/// Rows of bytes.
pub(super) struct ByteBlock {
    values: Vec<i8>,
    stride: usize,
    squares: Vec<i32>,
    /// True if the unit divides the row; if not, its values are unspecified.
    pub(super) is_exact: Vec<bool>,
}

impl ByteBlock {
    pub(super) fn view(&self) -> ByteRows<'_> {
        ByteRows { values: &self.values, stride: self.stride, squares: &self.squares }
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_whole(unit: f64, v: f64) -> bool {
        Unit::new(unit, 1.0).byte(v).1
    }

    #[test]
    fn multiples_are_found_whatever_they_were_rounded_to() {
        for times in 0..=255_u8 {
            for v in [f64::from(times) / 255.0, f64::from(f32::from(times) / 255.0)] {
                assert_eq!(Unit::new(1.0 / 255.0, 1.0).byte(v), (times, true));
            }
        }
    }

    #[test]
    fn other_numbers_are_refused() {
        for v in [256.0, 511.0, 1e300, -1.0, -1e-300, 0.5, 1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!is_whole(1.0, v), "{v}");
        }
        assert!(!is_whole(1.0 / 255.0, 0.1) && is_whole(1.0 / 255.0, 0.2));
        for unit in [0.0, f64::INFINITY, 1e-320] {
            assert!(!is_whole(unit, 1.0), "{unit}");
        }
    }
}
