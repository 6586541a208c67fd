//! Small dense systems in double precision.
//!
//! | file | holds |
//! |---|---|
//! | `cholesky` | A = L L' and the solution of A X = B |
//! | `pivoted` | A = L L' with as many columns as A has rank |

pub(crate) mod cholesky;
pub(crate) mod pivoted;
