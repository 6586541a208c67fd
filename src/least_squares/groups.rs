//! Exact leave-one-group-out values: rows of one patient, site or day leave together.
//!
//! Rows of a group are alike, so that a row is predicted well by the others of its group and leave-one-out errors are too
//! small for new groups. With G the inverse of the matrix of the system, bordered by an intercept (see `solution`), c its
//! coefficients and g the rows of a group, alpha held fixed when they leave,
//!
//! ```text
//! y_g - f^(-g)(x_g) = (G_gg)^-1 c_g
//! ```
//!
//! which is the formula for single rows (Rifkin 2002, section 3.3) with a block in the place of a number: eliminating the
//! rows of g from G (y, 0) leaves the system without them.
//!
//! Invariant: an entry of a block is summed in an order that depends on the sizes alone, so results do not depend on the number
//! of threads. Cost: n / 2 multiply-adds for each entry of the lower triangles of the blocks, and their factors; memory for
//! the largest block.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::linalg::columns;
use crate::linalg::dense::{self, Square};
use crate::memory::{try_vec, try_zero_matrix};
use crate::simd::blas::dot;
use ndarray::{Array2, ArrayView2};

/// Number of rows of a block that one task computes.
const ROWS_PER_TASK: usize = 16;

/// A division of rows into groups.
#[derive(Debug, Clone)]
pub struct Groups {
    /// Rows, group after group, ascending in each.
    rows: Vec<usize>,
    /// First place of each group in `rows`, and their number.
    starts: Vec<usize>,
}

impl Groups {
    /// Returns the groups of rows with equal numbers, which count from 0.
    ///
    /// # Errors
    /// [`Error::Param`] for a number that is at least the number of rows, and for fewer than two groups.
    pub fn new(numbers: &[usize]) -> Result<Self> {
        let n = numbers.len();
        let count = numbers.iter().max().map_or(0, |largest| largest.saturating_add(1));
        if count > n {
            return Err(Error::param("groups", count - 1, format!("below {n}, the number of rows")));
        }
        let mut places = try_vec![0_usize; count + 1]?;
        for &number in numbers {
            places[number + 1] += 1;
        }
        for number in 0..count {
            places[number + 1] += places[number];
        }
        let mut starts = places.clone();
        starts.dedup();
        if starts.len() < 3 {
            return Err(Error::param(
                "groups",
                format!("{} group(s)", starts.len() - 1),
                "at least two groups",
            ));
        }
        let mut rows = try_vec![0; n]?;
        for (row, &number) in numbers.iter().enumerate() {
            rows[places[number]] = row;
            places[number] += 1;
        }
        Ok(Self { rows, starts })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Iterates over the rows of each group.
    fn iter(&self) -> impl Iterator<Item = &[usize]> {
        self.starts.windows(2).map(|ends| &self.rows[ends[0]..ends[1]])
    }

    /// Returns f^(-g)(x_g) for all groups, (n, q), from targets and coefficients (n, q) and L^-T.
    ///
    /// `inverted` holds L^-T above the diagonal, and L on it; `ones` is G 1 where there is an intercept.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] for a group without which the system has no solution, [`Error::Stopped`].
    pub(super) fn left_out(
        &self,
        targets: ArrayView2<'_, f64>,
        coefficients: &Array2<f64>,
        inverted: &Square<f64>,
        ones: Option<&[f64]>,
        ctx: Context<'_>,
    ) -> Result<Array2<f64>> {
        let q = targets.ncols();
        let total = ones.map_or(1.0, |ones| ones.iter().sum());
        let mut values = try_zero_matrix("leave-one-group-out values", coefficients.dim())?;
        for (number, group) in self.iter().enumerate() {
            ctx.check("groups", number, self.starts.len() - 1)?;
            let mut block = Square::<f64>::new(group.len())?;
            let stride = block.stride();
            ctx.for_each_chunk(block.values_mut(), ROWS_PER_TASK * stride, |task, lines| {
                let first = task * ROWS_PER_TASK;
                for (i, line) in (first..group.len()).zip(lines.chunks_exact_mut(stride)) {
                    for (entry, &other) in line.iter_mut().zip(&group[..=i]) {
                        let border = ones.map_or(0.0, |ones| ones[group[i]] * ones[other] / total);
                        *entry = inverse_entry(inverted, other, group[i]) - border;
                    }
                }
            });
            dense::factor(&mut block, ctx)?;
            let mut right = try_zero_matrix("leave-one-group-out values", (group.len(), q))?;
            for (mut line, &row) in right.rows_mut().into_iter().zip(group) {
                line.assign(&coefficients.row(row));
            }
            let residuals = right.as_slice_mut().expect("row-major");
            let mut panels = columns::to_panels::<f64>(residuals, group.len(), q)?;
            columns::solve(&block, &mut panels, ctx)?;
            columns::from_panels(&panels, residuals, group.len(), q);
            for (residual, &row) in right.rows().into_iter().zip(group) {
                values.row_mut(row).assign(&(&targets.row(row) - &residual));
            }
        }
        Ok(values)
    }
}

/// Returns an entry of (L L')^-1, `first` at most `last`, from L^-T above the diagonal and L on it.
fn inverse_entry(inverted: &Square<f64>, first: usize, last: usize) -> f64 {
    let (n, stride, values) = (inverted.len(), inverted.stride(), inverted.values());
    let line = |row: usize| &values[row * stride..row * stride + n];
    let pivot = 1.0 / line(last)[last];
    let lead = if first == last { pivot } else { line(first)[last] };
    lead * pivot + dot(&line(first)[last + 1..], &line(last)[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::super::{Problem, solve, solve_path};
    use super::*;
    use crate::data::Rows;
    use crate::expansion::ExpansionView;
    use crate::kernels::{Evaluator, Kernel};
    use ndarray::Axis;

    const N: usize = 61;

    fn number(row: usize) -> usize {
        [0, 3, 1, 1, 4, 0, 1][row % 7] + 5 * usize::from(row > 40)
    }

    /// The values of models that were fitted without each group.
    fn refitted(problem: &Problem<'_>, x: &Array2<f64>, numbers: &[usize], alpha: f64) -> Array2<f64> {
        let mut values = Array2::zeros(problem.targets.dim());
        for group in 0..N {
            let (others, group_rows): (Vec<usize>, Vec<usize>) =
                (0..N).partition(|&row| numbers[row] != group);
            if group_rows.is_empty() {
                continue;
            }
            let (near, far) = (x.select(Axis(0), &others), x.select(Axis(0), &group_rows));
            let targets = problem.targets.select(Axis(0), &others);
            let weights = problem.weights.map(|w| others.iter().map(|&row| w[row]).collect::<Vec<_>>());
            let rows = Rows::try_from(&near).unwrap();
            let part = Problem {
                rows: rows.reborrow(),
                targets: targets.view(),
                weights: weights.as_deref(),
                groups: None,
                ..*problem
            };
            let fit = solve(&part, alpha, false, Context::default()).unwrap();
            let kernel = problem.kernel.built_in();
            let view = ExpansionView::new(kernel, rows, fit.coefficients.view(), &fit.intercepts).unwrap();
            let outputs = Evaluator::new(&view)
                .unwrap()
                .evaluate(Rows::try_from(&far).unwrap(), Context::default())
                .unwrap();
            for (output, &row) in outputs.rows().into_iter().zip(&group_rows) {
                values.row_mut(row).assign(&output);
            }
        }
        values
    }

    #[test]
    fn values_are_those_of_fits_without_the_group() {
        let x = Array2::from_shape_fn((N, 2), |(i, k)| {
            ((3 * i + 7 * k * i * i) % 17) as f64 / 5.0 + 0.01 * i as f64
        });
        let targets =
            Array2::from_shape_fn((N, 2), |(i, j)| (x[[i, 0]] * (1.0 + j as f64)).sin() + x[[i, 1]]);
        let weights: Vec<f64> = (0..N).map(|i| 0.5 + (i % 4) as f64).collect();
        let numbers: Vec<usize> = (0..N).map(number).collect();
        let groups = Groups::new(&numbers).unwrap();
        for kernel in [Kernel::Rbf { gamma: 0.4 }, Kernel::Linear] {
            for (fit_intercept, weights) in
                [(false, None), (true, None), (false, Some(&weights[..])), (true, Some(&weights[..]))]
            {
                let problem = Problem {
                    kernel: kernel.into(),
                    rows: Rows::try_from(&x).unwrap(),
                    targets: targets.view(),
                    fit_intercept,
                    weights,
                    groups: Some(&groups),
                };
                let expected = refitted(&problem, &x, &numbers, 0.3);
                let estimate = solve(&problem, 0.3, true, Context::default()).unwrap().leave_one_out.unwrap();
                let (points, _, best) =
                    solve_path(&problem, &[0.3], false, None, Context::default()).unwrap();
                for (value, expected) in estimate.values.iter().zip(&expected) {
                    assert!((value - expected).abs() < 1e-8, "{kernel:?} {fit_intercept} {value} {expected}");
                }
                assert_eq!(best.leave_one_out.unwrap().values, estimate.values);
                let total: f64 = (0..N).map(|i| problem.weight(i)).sum();
                let error: f64 = (0..N)
                    .map(|i| {
                        let line = &expected.row(i) - &targets.row(i);
                        problem.weight(i) * line.dot(&line) / 2.0
                    })
                    .sum();
                assert!((points[0].squared_error - error / total).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn groups_of_one_row_are_leave_one_out_values() {
        let x = Array2::from_shape_fn((N, 1), |(i, _)| 0.1 * i as f64);
        let y = x.mapv(f64::cos);
        let groups = Groups::new(&(0..N).rev().collect::<Vec<_>>()).unwrap();
        let problem = |groups| Problem {
            kernel: Kernel::Rbf { gamma: 1.0 }.into(),
            rows: Rows::try_from(&x).unwrap(),
            targets: y.view(),
            fit_intercept: true,
            weights: None,
            groups,
        };
        let solved = |groups| solve(&problem(groups), 0.1, true, Context::default()).unwrap();
        let (alone, each) = (solved(Some(&groups)), solved(None));
        let difference = alone.leave_one_out.unwrap().values - each.leave_one_out.unwrap().values;
        assert!(difference.iter().all(|v| v.abs() < 1e-10));
        assert_eq!(alone.coefficients, each.coefficients);
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let n = 900;
        let x = Array2::from_shape_fn((n, 2), |(i, k)| ((3 * i + 7 * k * i) % 101) as f64 / 50.0);
        let y = Array2::from_shape_fn((n, 1), |(i, _)| x[[i, 0]].sin());
        let groups = Groups::new(&(0..n).map(|i| i % 3).collect::<Vec<_>>()).unwrap();
        let problem = Problem {
            kernel: Kernel::Rbf { gamma: 1.0 }.into(),
            rows: Rows::try_from(&x).unwrap(),
            targets: y.view(),
            fit_intercept: false,
            weights: None,
            groups: Some(&groups),
        };
        let values = |ctx| solve(&problem, 0.1, true, ctx).unwrap().leave_one_out.unwrap().values;
        assert_eq!(values(Context::SEQUENTIAL), values(Context::default()));
    }

    #[test]
    fn one_group_and_numbers_beyond_the_rows_are_refused() {
        for numbers in [&[0, 0, 0][..], &[2, 2, 2], &[0, 1, 3], &[0, usize::MAX]] {
            assert!(matches!(Groups::new(numbers), Err(Error::Param { .. })), "{numbers:?}");
        }
    }
}
