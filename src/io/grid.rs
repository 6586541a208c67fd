//! Coefficients that lie on a grid of at most 256 values, as bytes and exactly back.
//!
//! A column is on a grid if every number of it is step * (code - zero) in double precision, for one step, one zero in
//! 0, ..., 255 and codes of one byte: what rounding to eight bits leaves, and also the coefficients of a machine whose
//! multipliers all sit at their bounds. Nothing is rounded here: a matrix that is not on a grid is left alone.
//!
//! Cost: at most 255 passes over a column, nearly always one entry for each.

use crate::context::Context;
use crate::error::Result;
use crate::memory::{try_collect, try_vec, try_zeros};

/// A matrix (m, q) of bytes with the grid of each column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    /// (m, q), row-major.
    pub(super) codes: Vec<u8>,
    /// (q,)
    pub(super) steps: Vec<f64>,
    /// (q,)
    pub(super) zeros: Vec<u8>,
}

impl Grid {
    /// The grid of a matrix of q columns, where all columns have one and it takes fewer bytes than the numbers.
    pub(super) fn of(values: &[f64], q: usize, ctx: Context<'_>) -> Result<Option<Self>> {
        if values.len() * 7 <= 9 * q {
            return Ok(None);
        }
        let codes = try_zeros("the codes of the coefficients", values.len())?;
        let mut grid = Self { codes, steps: try_vec![0.0; q]?, zeros: try_vec![0; q]? };
        for k in 0..q {
            let column = values.iter().skip(k).step_by(q).copied();
            let Some(found) = grid_of_column(column, ctx)? else { return Ok(None) };
            (grid.steps[k], grid.zeros[k]) = found;
        }
        for (i, (code, &value)) in grid.codes.iter_mut().zip(values).enumerate() {
            let Some(found) = code_of(value, grid.steps[i % q], grid.zeros[i % q]) else { return Ok(None) };
            *code = found;
        }
        Ok(Some(grid))
    }

    /// The numbers, bit by bit what [`Grid::of`] was given.
    pub(super) fn values(&self) -> Result<Vec<f64>> {
        let q = self.steps.len();
        let value = |(i, &code): (usize, &u8)| number(code, self.steps[i % q], self.zeros[i % q]);
        try_collect("the coefficients", self.codes.iter().enumerate().map(value))
    }
}

fn number(code: u8, step: f64, zero: u8) -> f64 {
    step * (f64::from(code) - f64::from(zero))
}

fn code_of(value: f64, step: f64, zero: u8) -> Option<u8> {
    let at = if step > 0.0 { (value / step).round() } else { 0.0 } + f64::from(zero);
    let code = (0.0..=255.0).contains(&at).then_some(at as u8)?;
    (number(code, step, zero).to_bits() == value.to_bits()).then_some(code)
}

fn grid_of_column(values: impl Iterator<Item = f64> + Clone, ctx: Context<'_>) -> Result<Option<(f64, u8)>> {
    let (low, high) = values.clone().fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    let fits = |step: f64, zero: u8| values.clone().all(|v| code_of(v, step, zero).is_some());
    if low == high {
        return Ok(fits(0.0, 0).then_some((0.0, 0)));
    }
    for parts in (1..=255_u8).rev() {
        ctx.check("write", usize::from(255 - parts), 255)?;
        let step = (high - low) / f64::from(parts);
        let zero = (-low / step).round() as u8;
        if fits(step, zero) {
            return Ok(Some((step, zero)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64], q: usize) -> Option<Grid> {
        Grid::of(values, q, Context::default()).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_on_a_grid_comes_back(
            codes in prop::collection::vec(any::<u8>(), 12..40),
            steps in prop::array::uniform3(1e-6_f32..1e3),
            zeros in prop::array::uniform3(any::<u8>()),
        ) {
            let m = codes.len() / 3;
            let values: Vec<f64> =
                (0..3 * m).map(|i| number(codes[i], f64::from(steps[i % 3]), zeros[i % 3])).collect();
            let grid = of(&values, 3);
            prop_assert!(grid.is_some());
            prop_assert_eq!(grid.unwrap().values().unwrap(), values);
        }
    }

    #[test]
    fn what_is_not_is_left_alone() {
        let values: Vec<f64> = (0..40).map(|i| f64::from(i).sqrt()).collect();
        assert_eq!(of(&values, 1), None);
        // Too few to gain anything.
        assert_eq!(of(&[1.0], 1), None);
        // Zeros, and multipliers at their bounds.
        assert_eq!(of(&[0.0; 8], 1).unwrap().values().unwrap(), [0.0; 8]);
        let bounds = [0.3, -0.3, 0.3, 0.0, -0.3, 0.3];
        assert_eq!(of(&bounds, 1).unwrap().values().unwrap(), bounds);
    }
}
