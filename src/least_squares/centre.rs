//! The linear kernel with an intercept, about a center.
//!
//! Coefficients then add up to zero, and a translation of the rows changes f by a constant alone:
//!
//! ```text
//! sum_i c_i (x_i - m)'(x - m) + b = sum_i c_i x_i'x + b - w'm,     w = sum_i c_i x_i
//! ```
//!
//! Without it, products of rows far from the origin hide their differences: those of time stamps in seconds have no digit left for a
//! minute. The rows are copied, less a center near their mean in columns that are far from zero compared with their width
//! (`kernels::standardization`), sparse rows only where all of them have the column. Other columns stay as they are, since an outlier
//! would move all other rows away from zero.
//!
//! Cost: a copy of the rows in double precision.

use super::problem::Problem;
use crate::data::{OwnedRows, copy_flat};
use crate::error::Result;
use crate::kernels::{Kernel, KernelFunction, Standardization};
use crate::memory::{try_entries, try_zero_matrix};
use ndarray::ArrayView2;

/// Solves a problem about a center if a translation of the rows changes the intercepts alone; `parts` returns the coefficients
/// (n, q) and intercepts (q,) of a solution.
pub(super) fn about_centre<S>(
    problem: &Problem<'_>,
    solve: impl FnOnce(&Problem<'_>) -> Result<S>,
    parts: impl FnOnce(&mut S) -> (ArrayView2<'_, f64>, &mut [f64]),
) -> Result<S> {
    let Some(centred) = CentredRows::of(problem)? else { return solve(problem) };
    let mut solution = solve(&centred.problem(problem))?;
    let (coefficients, intercepts) = parts(&mut solution);
    let all: Vec<usize> = (0..problem.rows.rows()).collect();
    let flat = copy_flat(coefficients)?;
    let products = centred.standardization.centre_products(problem.rows, &all, &flat, intercepts.len());
    intercepts.iter_mut().zip(products).for_each(|(b, product)| *b -= product);
    Ok(solution)
}

/// Rows less their center.
pub(super) struct CentredRows {
    standardization: Standardization,
    rows: OwnedRows,
}

impl CentredRows {
    /// Translates the rows of a problem; `None` if a translation would change more than the intercept, or no column is far from
    /// zero.
    pub(super) fn of(problem: &Problem<'_>) -> Result<Option<Self>> {
        if !(problem.fit_intercept && matches!(problem.kernel, KernelFunction::BuiltIn(Kernel::Linear))) {
            return Ok(None);
        }
        let rows = problem.rows;
        let standardization = Standardization::of_far_columns(rows)?;
        let mut is_moved = false;
        standardization.for_each_in_centre(|_, m| is_moved |= m != 0.0);
        if !is_moved {
            return Ok(None);
        }
        let (n, d) = (rows.rows(), rows.cols());
        let centred = if standardization.is_sparse() {
            let mut indptr = Vec::with_capacity(n + 1);
            let stored = (0..n).map(|i| rows.stored(i)).sum();
            let (mut indices, mut values) = try_entries("rows", stored)?;
            indptr.push(0);
            for i in 0..n {
                standardization.for_each(rows, i, |k, v| {
                    indices.push(k as i64);
                    values.push(v);
                });
                indptr.push(values.len() as i64);
            }
            OwnedRows::CsrF64 { indptr, indices, values, cols: d }
        } else {
            let mut centred = try_zero_matrix("rows", (n, d))?;
            for (i, mut line) in centred.rows_mut().into_iter().enumerate() {
                standardization.for_each(rows, i, |k, v| line[k] = v);
            }
            centred.into()
        };
        Ok(Some(Self { standardization, rows: centred }))
    }

    /// Returns the problem of these rows.
    pub(super) fn problem<'b, 'a: 'b>(&'b self, problem: &Problem<'a>) -> Problem<'b> {
        let Problem { kernel, targets, fit_intercept, weights, groups, .. } = *problem;
        Problem {
            kernel,
            rows: self.rows.view(),
            targets: targets.reborrow(),
            fit_intercept,
            weights,
            groups,
        }
    }

    /// Moves the intercepts (q,) that belong to weights (d, q) of the columns to the rows as they were given.
    pub(super) fn move_back(&self, weights: ArrayView2<'_, f64>, intercepts: &mut [f64]) {
        self.standardization.for_each_in_centre(|k, m| {
            intercepts.iter_mut().zip(weights.row(k)).for_each(|(b, w)| *b -= m * w);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::iterative::{self, RandomPoints};
    use super::super::{Stopping, exact, linear, solve, solve_path};
    use super::*;
    use crate::context::Context;
    use crate::data::{Rows, to_csr};
    use crate::expansion::ExpansionView;
    use crate::kernels::Evaluator;
    use ndarray::{Array2, arr1};

    const N: usize = 40;

    /// Outputs of an expansion at its own vectors.
    fn outputs(rows: Rows<'_>, coefficients: ArrayView2<'_, f64>, intercepts: &[f64]) -> Array2<f64> {
        let view = ExpansionView::new(Kernel::Linear, rows, coefficients, intercepts).unwrap();
        Evaluator::new(&view).unwrap().evaluate(rows, Context::SEQUENTIAL).unwrap()
    }

    #[test]
    fn an_offset_changes_the_intercepts_alone() {
        let near = Array2::from_shape_fn((N, 3), |(i, k)| ((7 * i + 5 * k * k) % 16) as f64 / 16.0);
        let far = &near + 1e9;
        let targets = Array2::from_shape_fn((N, 2), |(i, j)| near[[i, j]] - 2.0 * near[[i, 2]]);
        let weights: Vec<f64> = (0..N).map(|i| 1.0 + (i % 3) as f64).collect();
        let sparse = to_csr((&far).try_into().unwrap(), 3, |k| k);
        let problem = |rows| Problem {
            kernel: Kernel::Linear.into(),
            rows,
            targets: targets.view(),
            fit_intercept: true,
            weights: Some(&weights),
            groups: None,
        };
        let (ctx, stopping) = (Context::default(), Stopping::new(1e-11));
        let expected = solve(&problem((&near).try_into().unwrap()), 0.1, false, ctx).unwrap();
        let expected =
            outputs((&near).try_into().unwrap(), expected.coefficients.view(), &expected.intercepts);
        for rows in [(&far).try_into().unwrap(), sparse.view()] {
            let problem = problem(rows);
            let direct = solve(&problem, 0.1, true, ctx).unwrap();
            let (_, _, path) = solve_path(&problem, &[0.1], false, None, ctx).unwrap();
            let points = RandomPoints { count: 8, seed: 0 };
            let iterated = iterative::solve(&problem, 0.1, stopping, points, ctx).unwrap();
            let inverse = exact::bordered_inverse(&problem, 0.1, ctx).unwrap();
            let units = outputs(rows, inverse.inverse.view(), &inverse.intercepts);
            assert!((units.dot(&targets) - &expected).iter().all(|e| e.abs() < 1e-3));
            for (coefficients, intercepts) in [
                (direct.coefficients, direct.intercepts),
                (path.coefficients, path.intercepts),
                (iterated.coefficients, iterated.intercepts),
            ] {
                let actual = outputs(rows, coefficients.view(), &intercepts);
                assert!((actual - &expected).iter().all(|e| e.abs() < 1e-3));
            }
            let weights = linear::solve(&problem, 0.1, stopping, ctx).unwrap();
            let actual = far.dot(&weights.weights) + arr1(&weights.intercepts);
            assert!((actual - &expected).iter().all(|e| e.abs() < 1e-5));
        }
    }
}
