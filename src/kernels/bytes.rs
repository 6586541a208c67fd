//! Rows of pixels, counts and switches: every number is a whole multiple, 0 to 255 times, of one unit. Their inner
//! products and distances are exact in integers, and several times as fast as in single precision (`simd/bytes`).
//!
//! The unit is found, not asked for: images come as bytes, or as bytes divided by 255 in either precision. A number counts
//! as a multiple where it differs from one by no more than rounding to single precision does.
//!
//! Cost: a look at all numbers of the rows; other data betray themselves in the first of them.

use crate::context::Context;
use crate::data::{Element, Rows, row as dense_row};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::memory::{self, TryCollect, try_with_capacity};
use crate::simd::Real;
use crate::simd::bytes::{ByteMeasure, BytePanel, ByteRows, GROUP, MAX_FEATURES, OFFSET, are_fast};
use crate::with_rows;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the memory of this file is for.
const PACKED: &str = "packed rows";
/// Features from which on the products take most of the time.
const MIN_FEATURES: usize = 64;
/// Largest distance of a number to a multiple, relative to the number.
const ROUNDING: f64 = 1.5e-7;
/// Rows that are looked at for a unit.
const SAMPLE: usize = 64;
/// Added to a number below 2^51, it leaves the nearest integer in the last bits of the sum.
const LAST_BITS: f64 = 6_755_399_441_055_744.0;

/// What all numbers of the rows are multiples of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    size: f64,
    inverse: f64,
    /// What rows are multiplied by.
    scale: f64,
}

impl Unit {
    /// The unit of the rows, where bytes are possible for a kernel of rows times `scale`, worth it, and all numbers are
    /// multiples.
    pub(super) fn of(kernel: &Kernel, scale: f64, rows: Rows<'_>, ctx: Context<'_>) -> Option<Self> {
        let features = rows.cols();
        let fits = matches!(kernel, Kernel::Rbf { .. } | Kernel::Polynomial { .. } | Kernel::Sigmoid { .. });
        if !(fits && are_fast() && !rows.is_sparse() && (MIN_FEATURES..=MAX_FEATURES).contains(&features)) {
            return None;
        }
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for i in 0..rows.rows().min(SAMPLE) {
            rows.for_each_in_row(i * rows.rows() / rows.rows().min(SAMPLE), |_, v| {
                (least, most) = (if v > 0.0 { least.min(v) } else { least }, most.max(v));
            });
        }
        let candidates = [1.0, 1.0 / 255.0, 1.0 / 256.0, most / 255.0, least];
        candidates.into_iter().map(|size| Self::new(size, scale)).find(|unit| {
            let factor = unit.factor() * 65_025.0 * features as f64;
            let all = AtomicBool::new(unit.size > 0.0 && factor > 1e-30 && factor < 1e30);
            ctx.for_each(rows.rows().div_ceil(SAMPLE), |chunk| {
                for row in chunk * SAMPLE..rows.rows().min((chunk + 1) * SAMPLE) {
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

    /// How many times the unit goes into a number, and whether it does; if not, the first means nothing.
    #[inline]
    fn byte(&self, v: f64) -> (u8, bool) {
        let byte = ((v * self.inverse + LAST_BITS).to_bits() & 0xff) as u8;
        // The nearest integer of 256 or more leaves other last bits; only of infinity is the difference no less than allowed.
        (byte, v.is_finite() && (f64::from(byte) * self.size - v).abs() <= ROUNDING * v)
    }

    /// Calls `put(column, byte)` for the columns of a row; whether the unit divides all of its numbers.
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

    /// What an inner product of bytes is multiplied by for that of the rows in the frame.
    fn factor(&self) -> f64 {
        (self.size * self.scale).powi(2)
    }

    /// What becomes of inner products of bytes before the epilogue, which is then told that all lengths are zero.
    pub(super) fn measure(&self, kernel: &Kernel) -> ByteMeasure {
        let factor = self.factor();
        match kernel {
            Kernel::Rbf { .. } => ByteMeasure::Distance((-0.5 * factor) as f32),
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
        let (stride, count) = (rows.cols().next_multiple_of(GROUP), order.len().div_ceil(width));
        let size = stride * width;
        let mut values = memory::try_zeros(PACKED, count.saturating_mul(size))?;
        let mut sums = memory::try_zeros(PACKED, count * width)?;
        let mut squares = memory::try_zeros(PACKED, count * width)?;
        let panel_rows = |p: usize| &order[p * width..order.len().min((p + 1) * width)];
        ctx.for_each_chunk(&mut values, size, |p, panel| {
            for (j, &row) in panel_rows(p).iter().enumerate() {
                unit.read(rows, row, |k, byte| panel[(k / GROUP * width + j) * GROUP + k % GROUP] = byte);
            }
        });
        for (p, panel) in values.chunks_exact(size).enumerate() {
            for line in panel.chunks_exact(width * GROUP) {
                let numbers = sums[p * width..].iter_mut().zip(&mut squares[p * width..]);
                for ((sum, square), column) in numbers.zip(line.chunks_exact(GROUP)) {
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

    /// Squared lengths of the columns in the frame.
    pub(super) fn norms<T: Real>(&self) -> Result<Vec<T>> {
        let factor = self.unit.factor();
        self.squares.iter().map(|&square| T::from_f64(factor * f64::from(square))).try_collect_vec()
    }

    pub(super) fn bytes(&self) -> usize {
        self.sums.len() * Self::bytes_a_row(self.stride)
    }

    /// Bytes of a row of so many features; single-precision norms are kept elsewhere.
    pub(super) fn bytes_a_row(features: usize) -> usize {
        features.next_multiple_of(GROUP) + 2 * size_of::<i32>()
    }

    /// Rows for the other side of a tile.
    pub(super) fn block(&self, rows: Rows<'_>, list: &[usize]) -> Result<ByteBlock> {
        let mut values = memory::try_zeros(PACKED, list.len().saturating_mul(self.stride))?;
        let (mut squares, mut whole) = (
            try_with_capacity("rows as bytes", list.len())?,
            try_with_capacity("rows as bytes", list.len())?,
        );
        for (&row, out) in list.iter().zip(values.chunks_exact_mut(self.stride)) {
            out[..rows.cols()].fill((0 - OFFSET) as i8);
            let mut square = 0;
            whole.push(self.unit.read(rows, row, |k, byte| {
                let byte = i32::from(byte);
                out[k] = (byte - OFFSET) as i8;
                square += byte * byte;
            }));
            squares.push(square);
        }
        Ok(ByteBlock { values, stride: self.stride, squares, whole })
    }
}

/// Rows of bytes.
pub(super) struct ByteBlock {
    values: Vec<i8>,
    stride: usize,
    squares: Vec<i32>,
    /// Whether the unit divides the row; else its values mean nothing.
    pub(super) whole: Vec<bool>,
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
