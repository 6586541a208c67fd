//! The kernel perceptron (Ukkonen and Arias 2010, algorithm 1; Freund and Schapire 1999) over a stream.
//!
//! For each row x with class y: s_j = sum_i B[i, j] k(x, z_i). If the margin of y is not positive, the row is a mistake
//! and joins the pool with the coefficients of an `Update`; the [`Policy`] keeps the pool within its budget. A margin of
//! exactly 0 is a mistake, so that the first row is one.
//!
//! Invariant between two rows: the m vectors are in the order in which they took their places, vector i came after
//! `born[i]` rows, and `matrix` and `scores` are the policy's arrays. All kernel values of a row are computed once,
//! O(m d), and serve the answer, the update and the policy.

use super::budget::{PoolScores, replace_vector};
use super::learner::{Learner, PerceptronState};
use super::params::{PerceptronParams, Policy, check_piece, check_values};
use super::projection::Projection;
use super::update::Update;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::simd::Real;
use crate::simd::blas::dot;

/// Learns from a piece of a stream, row by row in the given order.
///
/// Returns the new state and the rows of the piece that were mistakes. Cost: m d for a row, plus the policy's cost of a
/// mistake: O(m d) for Forgetron and margin, O(m^2 q) for the tighter budget, O(m^2) for the projections.
///
/// # Errors
/// [`Error::Param`](crate::Error::Param) and [`Error::Shape`](crate::Error::Shape) for parameters, state, rows and labels
/// that break their rules and for rows whose kernel values are not finite, [`Error::NotFinite`](crate::Error::NotFinite)
/// for rows that are not finite, [`Error::Stopped`](crate::Error::Stopped) when the monitor stops the work. Nothing is then
/// learned.
pub fn partial_fit(
    params: &PerceptronParams,
    state: PerceptronState,
    rows: Rows<'_>,
    labels: &[usize],
    ctx: Context<'_>,
) -> Result<(PerceptronState, Vec<u64>)> {
    params.check()?;
    state.check(params)?;
    let vectors = state.rows.view();
    check_piece(&params.kernel, params.classes, vectors.cols(), rows, labels)?;
    // The factor of a Gram matrix needs all digits of its values.
    if rows.is_f64() || vectors.is_f64() || matches!(params.policy, Policy::Projectron { .. }) {
        learn::<f64>(params, &state, rows, labels, ctx)
    } else {
        learn::<f32>(params, &state, rows, labels, ctx)
    }
}

/// Learns in the precision T.
fn learn<T: Real>(
    params: &PerceptronParams,
    state: &PerceptronState,
    rows: Rows<'_>,
    labels: &[usize],
    ctx: Context<'_>,
) -> Result<(PerceptronState, Vec<u64>)> {
    let mut learner = Learner::<T>::new(params, state, rows.reborrow())?;
    let mut projection = Projection::new(&mut learner, state, ctx)?;
    let mut pool_scores = PoolScores::new(state, params.policy)?;
    let is_double = state.rows.view().is_f64();
    let mut wrong = Vec::new();
    let mut scores = vec![0.0; learner.coefficients.len()];
    let mut counter = ctx.counter("stream", labels.len());
    for (i, &label) in labels.iter().enumerate() {
        counter.charge_row(learner.pool.len() * learner.row.features().max(8))?;
        learner.load(i);
        learner.fill_values();
        for (score, column) in scores.iter_mut().zip(&learner.coefficients) {
            *score = dot(column, &learner.values);
        }
        let numbers = learner.values.iter().chain(&scores).copied();
        check_values(&params.kernel, i, numbers.chain([learner.self_value()]), is_double)?;
        let (update, margin) = Update::new(&scores, label);
        let is_mistake = !(margin > 0.0);
        if is_mistake {
            learner.mistakes += 1;
            wrong.push(i as u64);
            counter.charge(learner.mistake_cost())?;
        }
        if let Policy::Projectron { eta, margin: learns_margins } = params.policy {
            if is_mistake || (learns_margins && margin < 1.0) {
                projection.learn(&mut learner, update, margin, eta)?;
            }
        } else if is_mistake && params.allows(learner.pool.len() + 1) {
            pool_scores.append(&learner, &scores, update)?;
            learner.push(update)?;
        } else if is_mistake {
            replace_vector(&mut learner, &mut pool_scores, &scores, update)?;
        }
        learner.seen += 1;
    }
    let pairs = if pool_scores.gram.is_empty() { projection.into_factor() } else { pool_scores.gram };
    Ok((learner.into_state(&pairs, &pool_scores.scores, is_double)?, wrong))
}
