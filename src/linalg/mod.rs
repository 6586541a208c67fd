//! Small dense systems in double precision.
//!
//! | file | holds |
//! |---|---|
//! | `cholesky` | A = L L' and the solution of A X = B |

pub(crate) mod cholesky;
