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
