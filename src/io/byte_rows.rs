//! Dense vectors that lie on one grid, as bytes and exactly back.
//!
//! A matrix is on a grid if every number of it is step * (low + code), rounded to the precision of the matrix, for one
//! step, one whole number low a column, and codes of one byte: what rounding to eight bits leaves, and also rows of small
//! whole numbers. Nothing is rounded here: a matrix that is not on a grid is left alone.
//!
//! The widest column tells the step: it spans a whole number of steps, 255 at most. Cost: at most 255 passes, nearly
//! always one entry for each.

use ndarray::{Array2, ArrayView2};

use crate::context::Context;
use crate::error::Result;
use crate::memory::{TryCollect, try_vec, try_with_capacity, try_zeros};

/// A number of vectors.
pub(super) trait Number: Copy {
    fn exact(self) -> f64;
    fn rounded(value: f64) -> Self;
}

impl Number for f32 {
    fn exact(self) -> f64 {
        f64::from(self)
    }
    fn rounded(value: f64) -> Self {
        value as f32
    }
}

impl Number for f64 {
    fn exact(self) -> f64 {
        self
    }
    fn rounded(value: f64) -> Self {
        value
    }
}

/// A matrix (m, d) as bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ByteRows {
    /// (m, d), row-major.
    pub(super) codes: Vec<u8>,
    /// (d,), or one for all columns.
    pub(super) lows: Vec<i16>,
    pub(super) step: f64,
}

impl ByteRows {
    /// The grid of a matrix, where it has one and that takes fewer bytes than the numbers.
    pub(super) fn of<T: Number>(rows: ArrayView2<'_, T>, ctx: Context<'_>) -> Result<Option<Self>> {
        let (m, d) = rows.dim();
        if m * d * size_of::<T>() <= m * d + 2 * d + 8 {
            return Ok(None);
        }
        let mut bounds = try_vec![(f64::INFINITY, f64::NEG_INFINITY); d]?;
        for row in rows.rows() {
            for ((low, high), value) in bounds.iter_mut().zip(row) {
                (*low, *high) = (low.min(value.exact()), high.max(value.exact()));
            }
        }
        let widest = bounds.iter().fold(0.0_f64, |widest, (low, high)| widest.max(high - low));
        if !widest.is_finite() || widest <= 0.0 {
            return Ok(None);
        }
        for parts in (1..=255_u8).rev() {
            ctx.check("write", usize::from(255 - parts), 255)?;
            let step = widest / f64::from(parts);
            let lows: Vec<f64> = bounds.iter().map(|(low, _)| (low / step).round()).try_collect_vec()?;
            if step <= 0.0 || lows.iter().any(|low| low.abs() > f64::from(i16::MAX)) {
                continue;
            }
            let code = |value: T, low: f64| code_of(value, low, step);
            if !rows
                .rows()
                .into_iter()
                .all(|row| row.iter().zip(&lows).all(|(&v, &low)| code(v, low).is_some()))
            {
                continue;
            }
            let mut codes = try_zeros("the codes of the vectors", m * d)?;
            for (codes, row) in codes.chunks_exact_mut(d).zip(rows.rows()) {
                for ((place, &value), &low) in codes.iter_mut().zip(row).zip(&lows) {
                    *place = code(value, low).unwrap_or_default();
                }
            }
            let mut lows: Vec<i16> = lows.into_iter().map(|low| low as i16).try_collect_vec()?;
            if lows.iter().all(|low| *low == lows[0]) {
                lows.truncate(1);
            }
            return Ok(Some(Self { codes, lows, step }));
        }
        Ok(None)
    }

    /// The numbers (m, d), bit by bit what [`ByteRows::of`] was given.
    pub(super) fn values<T: Number>(&self, m: usize, d: usize) -> Result<Array2<T>> {
        let mut values = try_with_capacity("the vectors", m * d)?;
        for row in self.codes.chunks_exact(d.max(1)).take(m) {
            for (column, &code) in row.iter().enumerate() {
                let low = self.lows[if self.lows.len() == 1 { 0 } else { column }];
                values.push(number(code, f64::from(low), self.step));
            }
        }
        Ok(Array2::from_shape_vec((m, d), values).expect("a code for each number"))
    }
}

fn number<T: Number>(code: u8, low: f64, step: f64) -> T {
    T::rounded(step * (low + f64::from(code)))
}

fn code_of<T: Number>(value: T, low: f64, step: f64) -> Option<u8> {
    let at = (value.exact() / step).round() - low;
    let code = (0.0..=255.0).contains(&at).then_some(at as u8)?;
    (number::<T>(code, low, step).exact().to_bits() == value.exact().to_bits()).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_on_a_grid_comes_back(
            codes in prop::collection::vec(any::<u8>(), 60..90),
            lows in prop::array::uniform3(-3000_i16..3000),
            step in 1_u16..4096,
            exponent in -20_i32..20,
        ) {
            let (m, step) = (codes.len() / 3, f64::from(step) * 2_f64.powi(exponent));
            let place = |(i, j)| (codes[3 * i + j], f64::from(lows[j]));
            let single = Array2::from_shape_fn((m, 3), |at| number::<f32>(place(at).0, place(at).1, step));
            let double = Array2::from_shape_fn((m, 3), |at| number::<f64>(place(at).0, place(at).1, step));
            let found = ByteRows::of(single.view(), Context::default()).unwrap();
            if let Some(found) = found {
                prop_assert_eq!(found.values::<f32>(m, 3).unwrap(), single);
            } else {
                prop_assert!(codes.iter().all(|code| *code == codes[0]));
            }
            if let Some(found) = ByteRows::of(double.view(), Context::default()).unwrap() {
                prop_assert_eq!(found.values::<f64>(m, 3).unwrap(), double);
            }
        }
    }

    #[test]
    fn what_is_not_is_left_alone() {
        let roots = Array2::from_shape_fn((20, 2), |(i, j)| ((2 * i + j) as f64).sqrt());
        assert_eq!(ByteRows::of(roots.view(), Context::default()).unwrap(), None);
        let same = Array2::from_elem((20, 2), 0.1_f32);
        assert_eq!(ByteRows::of(same.view(), Context::default()).unwrap(), None);
        // Minus zero is another number.
        let mut signed = Array2::from_shape_fn((20, 2), |(i, _)| i as f64);
        assert!(ByteRows::of(signed.view(), Context::default()).unwrap().is_some());
        signed[(0, 1)] = -0.0;
        assert_eq!(ByteRows::of(signed.view(), Context::default()).unwrap(), None);
    }
}
