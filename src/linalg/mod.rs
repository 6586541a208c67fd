//! Dense systems.
//!
//! | file | contents |
//! |---|---|
//! | `cholesky` | serial factor, solution and inverse, for small matrices |
//! | `columns` | right-hand sides of the systems of `dense`: solutions, products with the matrix |
//! | `conjugate` | conjugate gradients for several right-hand sides |
//! | `dense` | blocked factor over threads in any precision, for large matrices |
//! | `growing` | factor of a matrix that gains and loses rows |
//! | `inverse` | inverse of a large matrix and its diagonal, from the factor |
//! | `pivoted` | factor of low rank |

pub(crate) mod cholesky;
pub(crate) mod columns;
pub(crate) mod conjugate;
pub(crate) mod dense;
pub(crate) mod growing;
pub(crate) mod inverse;
pub(crate) mod pivoted;

use crate::error::Result;
use crate::memory::{TryCollect, try_zero_matrix};
use ndarray::Array2;

/// Copies a lower triangle of n rows, row by row: `row(i)` begins with the i + 1 entries of row i.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(crate) fn copy_triangle<R: IntoIterator<Item = f64>>(
    n: usize,
    row: impl Fn(usize) -> R,
) -> Result<Vec<Vec<f64>>> {
    (0..n).map(|i| row(i).into_iter().take(i + 1).try_collect_vec()).collect()
}

/// Returns the matrix (n, n) of n rows that may end before the last column, with zeros behind them.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(crate) fn matrix_of_rows(rows: &[Vec<f64>]) -> Result<Array2<f64>> {
    let mut matrix = try_zero_matrix("a matrix of pairs of vectors", (rows.len(), rows.len()))?;
    for (mut to, from) in matrix.rows_mut().into_iter().zip(rows) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    }
    Ok(matrix)
}

/// Copies the upper triangle of a matrix (n, n) to the lower one, in tiles that stay in the first cache.
pub(crate) fn copy_upper_to_lower(a: &mut [f64], n: usize) {
    const TILE: usize = 32;
    for i in (0..n).step_by(TILE) {
        for j in (0..=i).step_by(TILE) {
            for row in i..n.min(i + TILE) {
                for column in j..row.min(j + TILE) {
                    a[row * n + column] = a[column * n + row];
                }
            }
        }
    }
}
