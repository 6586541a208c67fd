//! The voted perceptron (Freund and Schapire, Large margin classification using the perceptron algorithm, Machine
//! Learning 37, 1999): every hypothesis of the pass votes, and its number of votes is the number of rows it was tested on.
//!
//! Hypothesis i is the sum over the first i vectors, so the votes of all of them follow from one row of kernel values by
//! prefix sums. Cost: O(m (d + q)) for a row.

use super::update::outputs;
use crate::argmax::argmax;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::gram;
use crate::memory::try_zero_matrix;
use ndarray::Array2;

/// Number of rows whose kernel values are computed together.
const ROWS_PER_BLOCK: usize = 256;

/// Returns the share of votes of each class, (n, classes).
///
/// `expansion` is the last hypothesis, its vectors in the order of their mistakes; vector i came after `born[i]` of the
/// `seen` rows.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Param`] if the arguments disagree, [`Error::Stopped`].
pub fn voted(
    expansion: &ExpansionView<'_>,
    born: &[u64],
    seen: u64,
    classes: usize,
    rows: Rows<'_>,
    ctx: Context<'_>,
) -> Result<Array2<f64>> {
    let (m, q) = (expansion.len(), expansion.outputs());
    Error::check_len("born (one for each vector)", m, born.len())?;
    Error::check_len("outputs of the expansion", outputs(classes), q)?;
    let rises = born.is_sorted() && born.last().is_none_or(|&last| last < seen.max(1));
    Error::check_param(rises, "born", "(...)", "rising and below the number of rows seen")?;
    let mut votes = try_zero_matrix("the votes of the rows", (rows.rows(), classes))?;
    if m == 0 {
        return Ok(votes);
    }
    let end = |i: usize| born.get(i + 1).copied().unwrap_or(seen);
    let flat = votes.as_slice_mut().expect("a new array is row-major");
    for (block, votes) in flat.chunks_mut(ROWS_PER_BLOCK * classes).enumerate() {
        let first = block * ROWS_PER_BLOCK;
        ctx.check("votes", first, rows.rows())?;
        let block = rows.slice(first..first + votes.len() / classes);
        let values = gram(&expansion.kernel, block, expansion.vectors, ctx.silent())?;
        ctx.for_each_chunk(votes, classes, |r, votes| {
            let mut scores = expansion.intercepts.to_vec();
            for (i, &value) in values.row(r).iter().enumerate() {
                for (score, &c) in scores.iter_mut().zip(expansion.coefficients.row(i)) {
                    *score += c * value;
                }
                let winner =
                    if q == 1 { usize::from(scores[0] >= 0.0) } else { argmax(scores.iter().copied()) };
                votes[winner] += (end(i) - born[i]) as f64 / seen as f64;
            }
        });
    }
    Ok(votes)
}
