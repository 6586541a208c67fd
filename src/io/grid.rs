//! Matrices whose numbers lie on a grid of at most 256 values in each column, as bytes and exactly back.
//!
//! A matrix is on a grid if every number of it is step * (low + code), computed in double precision and rounded to the
//! precision of the matrix, with codes of one byte and an integer low for each column. Vectors have one step for all columns;
//! coefficients have one for each, and 0 lies on their grids. Rounding to eight bits leaves such numbers, pixels and other small
//! integers are such numbers, and so are the coefficients of a machine whose multipliers all sit at their bounds. Nothing is
//! rounded here: a matrix that is not on a grid is left alone.
//!
//! The column with the widest range determines the step, since the range is an integer number of steps, 255 at most. Cost: at most 255
//! passes; a pass that fails nearly always ends at the first entries.

use ndarray::{ArrayView2, Axis};

use crate::context::Context;
use crate::error::Result;
use crate::memory::{try_with_capacity, try_zeros};

/// A type of the numbers of a matrix.
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

/// Columns that share a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    /// One step for all columns, as vectors have it.
    Shared,
    /// A step for each column, with 0 on its grid, as coefficients have it.
    PerColumn,
}

/// A matrix (m, d) of bytes with the grids of its columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    /// (m, d), row-major.
    pub(super) codes: Vec<u8>,
    /// (d,), or one for all columns.
    pub(super) steps: Vec<f64>,
    /// (d,), or one for all columns.
    pub(super) lows: Vec<i16>,
}

impl Grid {
    /// Finds the grid of a matrix, where it has one and that takes fewer bytes than the numbers.
    pub(super) fn of<T: Number>(
        values: ArrayView2<'_, T>,
        steps: Steps,
        ctx: Context<'_>,
    ) -> Result<Option<Self>> {
        let (m, d) = values.dim();
        let n_steps = if steps == Steps::Shared { 1 } else { d };
        if m * d * size_of::<T>() <= m * d + 2 * d + 8 * n_steps {
            return Ok(None);
        }
        let mut grid =
            Self { codes: try_zeros("the codes of a matrix", m * d)?, steps: Vec::new(), lows: Vec::new() };
        for columns in values.axis_chunks_iter(Axis(1), d / n_steps) {
            let Some((step, lows)) = step_of(columns, steps, ctx)? else { return Ok(None) };
            grid.steps.push(step);
            grid.lows.extend(lows.iter().map(|low| *low as i16));
        }
        for (codes, row) in grid.codes.chunks_exact_mut(d).zip(values.rows()) {
            for (k, (code, &value)) in codes.iter_mut().zip(row).enumerate() {
                let step = grid.steps[k % n_steps];
                *code = code_of(value, f64::from(grid.lows[k]), step).unwrap_or_default();
            }
        }
        Ok(Some(grid))
    }

    /// Returns the numbers (m, d), bit by bit those that [`Grid::of`] was given.
    pub(super) fn values<T: Number>(&self, d: usize) -> Result<Vec<T>> {
        let mut values = try_with_capacity("the numbers of a grid", self.codes.len())?;
        for row in self.codes.chunks_exact(d.max(1)) {
            for (k, &code) in row.iter().enumerate() {
                let (low, step) = (self.lows[k % self.lows.len()], self.steps[k % self.steps.len()]);
                values.push(number(code, f64::from(low), step));
            }
        }
        Ok(values)
    }
}

fn number<T: Number>(code: u8, low: f64, step: f64) -> T {
    T::rounded(step * (low + f64::from(code)))
}

fn code_of<T: Number>(value: T, low: f64, step: f64) -> Option<u8> {
    let at = if step > 0.0 { (value.exact() / step).round() } else { 0.0 } - low;
    let code = (0.0..=255.0).contains(&at).then_some(at as u8)?;
    (number::<T>(code, low, step).exact().to_bits() == value.exact().to_bits()).then_some(code)
}

/// Finds the largest step on which all columns lie, and the low of each.
fn step_of<T: Number>(
    values: ArrayView2<'_, T>,
    steps: Steps,
    ctx: Context<'_>,
) -> Result<Option<(f64, Vec<f64>)>> {
    let start = if steps == Steps::PerColumn { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
    let mut bounds = crate::memory::copies(start, values.ncols())?;
    for row in values.rows() {
        for ((low, high), value) in bounds.iter_mut().zip(row) {
            (*low, *high) = (low.min(value.exact()), high.max(value.exact()));
        }
    }
    let lies_on = |step: f64, lows: &[f64]| {
        let on_grid = |(&value, &low): (&T, &f64)| code_of(value, low, step).is_some();
        values.rows().into_iter().all(|row| row.iter().zip(lows).all(on_grid))
    };
    let widest = bounds.iter().fold(0.0_f64, |widest, (low, high)| widest.max(high - low));
    if steps == Steps::PerColumn && widest == 0.0 && lies_on(0.0, &[0.0]) {
        return Ok(Some((0.0, vec![0.0])));
    }
    if !widest.is_finite() || widest <= 0.0 {
        return Ok(None);
    }
    for parts in (1..=255_u8).rev() {
        ctx.check("write", usize::from(255 - parts), 255)?;
        let step = widest / f64::from(parts);
        let lows: Vec<f64> = bounds.iter().map(|(low, _)| (low / step).round()).collect();
        let representable = step > 0.0 && lows.iter().all(|low| low.abs() <= f64::from(i16::MAX));
        if representable && lies_on(step, &lows) {
            return Ok(Some((step, lows)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use ndarray::{Array2, arr2};
    use proptest::prelude::*;

    fn grid<T: Number>(values: &Array2<T>, steps: Steps) -> Option<Grid> {
        Grid::of(values.view(), steps, Context::default()).unwrap()
    }

    fn restored<T: Number>(values: &Array2<T>, steps: Steps) -> Option<Array2<T>> {
        let grid = grid(values, steps)?;
        Some(Array2::from_shape_vec(values.dim(), grid.values(values.ncols()).unwrap()).unwrap())
    }

    proptest! {
        #[test]
        fn coefficients_on_a_grid_are_restored(
            codes in prop::collection::vec(any::<u8>(), 12..40),
            steps in prop::array::uniform3(1e-6_f32..1e3),
            zeros in prop::array::uniform3(any::<u8>()),
        ) {
            let values = Array2::from_shape_fn((codes.len() / 3, 3), |(i, k)| {
                number::<f64>(codes[3 * i + k], -f64::from(zeros[k]), f64::from(steps[k]))
            });
            prop_assert_eq!(restored(&values, Steps::PerColumn), Some(values));
        }

        #[test]
        fn vectors_on_a_grid_are_restored(
            codes in prop::collection::vec(any::<u8>(), 60..90),
            lows in prop::array::uniform3(-3000_i16..3000),
            step in 1_u16..4096,
            exponent in -20_i32..20,
        ) {
            let (m, step) = (codes.len() / 3, f64::from(step) * 2_f64.powi(exponent));
            let place = |(i, j)| (codes[3 * i + j], f64::from(lows[j]));
            let single = Array2::from_shape_fn((m, 3), |at| number::<f32>(place(at).0, place(at).1, step));
            let double = Array2::from_shape_fn((m, 3), |at| number::<f64>(place(at).0, place(at).1, step));
            if let Some(decoded) = restored(&single, Steps::Shared) {
                prop_assert_eq!(decoded, single);
            } else {
                prop_assert!(codes.iter().all(|code| *code == codes[0]));
            }
            if let Some(decoded) = restored(&double, Steps::Shared) {
                prop_assert_eq!(decoded, double);
            }
        }
    }

    #[test]
    fn other_numbers_are_left_alone() {
        let roots = Array2::from_shape_fn((20, 2), |(i, j)| ((2 * i + j) as f64).sqrt());
        assert_eq!(grid(&roots, Steps::Shared), None);
        assert_eq!(grid(&roots, Steps::PerColumn), None);
        assert_eq!(grid(&Array2::from_elem((20, 2), 0.1_f32), Steps::Shared), None);
        // Too few to gain anything.
        assert_eq!(grid(&arr2(&[[1.0]]), Steps::PerColumn), None);
        // Minus zero is another number.
        let mut signed = Array2::from_shape_fn((20, 2), |(i, _)| i as f64);
        assert!(grid(&signed, Steps::Shared).is_some());
        signed[(0, 1)] = -0.0;
        assert_eq!(grid(&signed, Steps::Shared), None);
    }

    #[test]
    fn zeros_and_multipliers_at_their_bounds_are_on_a_grid() {
        for column in [[0.0; 8], [0.3, -0.3, 0.3, 0.0, -0.3, 0.3, 0.0, 0.0]] {
            let values = Array2::from_shape_fn((8, 1), |(i, _)| column[i]);
            assert_eq!(restored(&values, Steps::PerColumn), Some(values));
        }
    }
}
