//! Steps on many free variables at once, for blocks on which SMO steps make slow progress.
//!
//! At a large C, most support vectors are unbounded and the kernel matrix of the free variables is badly conditioned: SMO
//! needs thousands to millions of steps where a Cholesky factor costs as much as a few hundred. Two methods factor the
//! matrix of the free variables:
//!
//! | file | method | free variables |
//! |---|---|---|
//! | `newton` | one Newton step, with variables projected onto their bounds | 32 to 2,048 |
//! | `method` | an active-set method, which adds and removes one variable at a time | at most 48 at the start |
//!
//! Each has a [`StepBudget`] (`budget`): it runs once SMO steps have cost as much as it would cost, and is tried less often
//! after a run that has gained little. Costs are counted in operations, so results do not depend on a clock.

mod budget;
mod method;
mod newton;

pub(super) use budget::StepBudget;
pub(super) use newton::is_newton_due;
