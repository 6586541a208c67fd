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
