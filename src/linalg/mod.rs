//! Dense systems.
//!
//! | file | holds |
//! |---|---|
//! | `cholesky` | small matrices: A = L L' and the solution of A X = B |
//! | `columns` | right-hand sides of the systems of `dense`: solutions, products with the matrix |
//! | `conjugate` | conjugate gradients for several right-hand sides |
//! | `dense` | the same blocked and in any precision, for matrices that fill the memory; diagonal of the inverse |
//! | `growing` | A = L L' of a matrix that gains and loses rows |
//! | `inverse` | the inverse of such a matrix from its factor |
//! | `pivoted` | A = L L' with as many columns as A has rank |

pub(crate) mod cholesky;
pub(crate) mod columns;
pub(crate) mod conjugate;
pub(crate) mod dense;
pub(crate) mod growing;
pub(crate) mod inverse;
pub(crate) mod pivoted;
