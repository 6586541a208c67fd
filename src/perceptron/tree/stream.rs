//! A piece of a stream for a tree: checks, the choice between one thread and several, and the state that follows.
//!
//! Invariant: the new state has the same bits on any number of threads. Cost: that of learning, and a copy of the state.

use super::concurrent::learn_concurrently;
use super::grow::Tree;
use super::node::Node;
use super::params::TreeParams;
use super::state::TreeState;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::perceptron::params::check_piece;
use crate::perceptron::update::outputs;
use crate::simd::Real;

/// Learns from a piece of a stream, row by row in the given order. Returns the new state and the rows of the piece
/// that were mistakes.
///
/// # Errors
/// See [`crate::perceptron::partial_fit`].
pub fn partial_fit(
    params: &TreeParams,
    state: &TreeState,
    rows: Rows<'_>,
    labels: &[usize],
    ctx: Context<'_>,
) -> Result<(TreeState, Vec<u64>)> {
    params.check()?;
    let state_rows = state.rows.view();
    check_piece(&params.kernel, params.classes, state_rows.cols(), rows, labels)?;
    Error::check_len("outputs of a tree that learns", outputs(params.classes), state.outputs())?;
    let stray = state.sample_labels.iter().find(|&&label| label >= params.classes as u64);
    if let Some(label) = stray {
        return Err(Error::param("sample_labels", label, format!("below {}, the classes", params.classes)));
    }
    if state_rows.is_f64() {
        learn::<f64>(params, state, rows, labels, ctx)
    } else {
        learn::<f32>(params, state, rows, labels, ctx)
    }
}

/// Learns in the precision T.
fn learn<T: Real>(
    params: &TreeParams,
    state: &TreeState,
    rows: Rows<'_>,
    labels: &[usize],
    ctx: Context<'_>,
) -> Result<(TreeState, Vec<u64>)> {
    let state_rows = state.rows.view();
    let mut tree = Tree::<T>::new(*params, state_rows, state.outputs(), state.random)?;
    (tree.nodes, tree.store) = state.build(&tree.formula, true)?;
    for node in &tree.nodes {
        if let Node::Leaf(leaf) = node {
            let m = leaf.ids.len();
            let rule = format!("at least {m}, the vectors of the largest leaf");
            Error::check_param(m <= params.budget, "budget", params.budget, rule)?;
        }
    }
    let wrong = if ctx.threads() > 1 && params.uses_threads(&rows) {
        learn_concurrently(&mut tree, rows.reborrow(), labels, ctx)?
    } else {
        tree.learn_in_order(&rows, labels, ctx)?
    };
    let next = TreeState {
        seen: state.seen + labels.len() as u64,
        mistakes: state.mistakes + wrong.len() as u64,
        ..tree.state()?
    };
    // Rows near the limits of the number range can make a rule that is not finite.
    next.check()?;
    Ok((next, wrong))
}
