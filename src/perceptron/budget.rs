//! Budgets: what makes room when a mistake finds the pool full.
//!
//! | policy | who leaves | source |
//! |---|---|---|
//! | oldest | the vector that came first | Dekel, Shalev-Shwartz and Singer, SIAM J. Comput. 37, 2008, without shrinking |
//! | Forgetron | the same, after all coefficients shrank by phi | ibid., self-tuned Forgetron, figure 3 |
//! | margin | argmax of the margin of z_i without z_i | Crammer, Kandola and Singer, NIPS 16, 2004 |
//! | random | anyone | Cavallanti, Cesa-Bianchi and Gentile, Machine Learning 69, 2007 |
//! | tighter | argmin of the pool's errors without z_i, then the largest margin | Weston, Bordes and Bottou, AISTATS 2005 |
//!
//! The new row takes the column of the one that leaves, so removal moves nothing. A vector's own class is the output
//! with its positive coefficient, its rival the one with the negative: shrinking keeps signs.
//!
//! Forgetron: with sigma the coefficient of the oldest vector r and mu its margin after the update, removal after
//! shrinking by phi costs Psi = phi^2 (sigma^2 ||phi_r||^2 - 2 sigma mu) + 2 phi sigma, and phi is the largest number in
//! (0, 1] with Psi + Q <= 15/32 M, Q the sum of the earlier Psi and M the number of mistakes. The guarantee holds for
//! k(x, x) <= 1.

use super::learner::{Learner, PerceptronState};
use super::params::Policy;
use super::update::Update;
use crate::error::Result;
use crate::memory::{TryCollect, TryGrow, try_vec};
use crate::simd::Real;
use crate::simd::blas::{axpy, dot};
use ndarray::ArrayView1;

/// The outputs at the vectors of the pool, output by output, and for the tighter budget the Gram matrix, row by row.
///
/// Invariant: both are those of the current pool and coefficients.
pub(super) struct Bookkeeping {
    scores: Option<Vec<Vec<f64>>>,
    gram: Option<Vec<Vec<f64>>>,
    removed: Vec<f64>,
}

impl Bookkeeping {
    pub(super) fn new(state: &PerceptronState, policy: Policy) -> Result<Self> {
        let copy = |line: ArrayView1<'_, f64>| line.iter().copied().try_collect_vec();
        let by_output = || state.scores.columns().into_iter().map(copy).try_collect_results();
        let by_row = || state.matrix.rows().into_iter().map(copy).try_collect_results();
        Ok(Self {
            scores: policy.keeps_scores().then(by_output).transpose()?,
            gram: matches!(policy, Policy::Tightest).then(by_row).transpose()?,
            removed: Vec::new(),
        })
    }

    /// Scores output by output and the Gram matrix row by row; empty where they are not kept.
    pub(super) fn into_parts(self) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        (self.scores.unwrap_or_default(), self.gram.unwrap_or_default())
    }

    /// The current row, with these outputs before it is learnt, joins as the last one.
    pub(super) fn added<T: Real>(
        &mut self,
        learner: &Learner<'_, T>,
        scores: &[f64],
        update: Update,
    ) -> Result<()> {
        let (values, own, m) = (&learner.values, learner.self_value(), learner.values.len());
        if let Some(columns) = &mut self.scores {
            for (column, &score) in columns.iter_mut().zip(scores) {
                column.try_push(score)?;
            }
            for (output, sign) in update.coefficients() {
                axpy(sign, values, &mut columns[output][..m]);
                columns[output][m] += sign * own;
            }
        }
        if let Some(gram) = &mut self.gram {
            for (line, &value) in gram.iter_mut().zip(values) {
                line.try_push(value)?;
            }
            gram.push(values.iter().copied().chain(std::iter::once(own)).try_collect_vec()?);
        }
        Ok(())
    }

    /// The current row takes the place of vector `at`, whose kernel values are in `removed`.
    fn replaced<T: Real>(&mut self, at: usize, learner: &Learner<'_, T>, scores: &[f64], update: Update) {
        let (values, own) = (&learner.values, learner.self_value());
        if let Some(columns) = &mut self.scores {
            for (column, (of_output, &score)) in
                columns.iter_mut().zip(learner.coefficients.iter().zip(scores))
            {
                let coefficient = of_output[at];
                if coefficient != 0.0 {
                    axpy(-coefficient, &self.removed, column);
                }
                column[at] = score - coefficient * values[at];
            }
            for (output, sign) in update.coefficients() {
                let score = columns[output][at] + sign * own;
                axpy(sign, values, &mut columns[output]);
                columns[output][at] = score;
            }
        }
        if let Some(gram) = &mut self.gram {
            for (line, &value) in gram.iter_mut().zip(values) {
                line[at] = value;
            }
            gram[at].copy_from_slice(values);
            gram[at][at] = own;
        }
    }
}

/// What a vector of the pool added, from the signs of its coefficients.
fn added_by<T: Real>(learner: &Learner<'_, T>, at: usize) -> Update {
    let columns = &learner.coefficients;
    if columns.len() == 1 {
        return Update { class: usize::from(columns[0][at] > 0.0), rival: None };
    }
    let find = |sign: f64| columns.iter().position(|column| column[at] * sign > 0.0);
    Update { class: find(1.0).unwrap_or(0), rival: find(-1.0) }
}

/// A full pool learns from a mistake; `scores` are the outputs of the current row.
pub(super) fn make_room<T: Real>(
    learner: &mut Learner<'_, T>,
    books: &mut Bookkeeping,
    scores: &[f64],
    update: Update,
) -> Result<()> {
    let m = learner.pool.len();
    let mut scale = 1.0;
    let at = match learner.params.policy {
        Policy::Unlimited | Policy::Stop | Policy::Projectron { .. } => return Ok(()),
        Policy::Oldest => oldest(learner),
        Policy::Random => learner.random.below(m as u64) as usize,
        Policy::Forgetron => {
            let at = oldest(learner);
            scale = forget(learner, books, at, update)?;
            at
        }
        Policy::Margin => best(m, |i| Ok((0, margin_without(learner, books, i)?)))?,
        Policy::Tightest => {
            best(m, |i| Ok((errors_without(learner, books, i)?, margin_without(learner, books, i)?)))?
        }
    };
    if books.scores.is_some() {
        learner.values_of(at, &mut books.removed)?;
        books.replaced(at, learner, scores, update);
    }
    learner.replace(at, update, scale)?;
    Ok(())
}

/// The vector that came first: m comparisons beside the m d multiplications that the row has cost.
fn oldest<T>(learner: &Learner<'_, T>) -> usize {
    learner.born.iter().enumerate().min_by_key(|&(_, born)| born).map_or(0, |(at, _)| at)
}

/// The vector with the fewest errors, among them the one with the largest margin, among them the first.
fn best(m: usize, rank: impl Fn(usize) -> Result<(usize, f64)>) -> Result<usize> {
    let mut winner = (0, rank(0)?);
    for i in 1..m {
        let (errors, margin) = rank(i)?;
        if errors < winner.1.0 || (errors == winner.1.0 && margin > winner.1.1) {
            winner = (i, (errors, margin));
        }
    }
    Ok(winner.0)
}

/// The margin of vector `at` without itself.
fn margin_without<T: Real>(learner: &Learner<'_, T>, books: &Bookkeeping, at: usize) -> Result<f64> {
    let Some(columns) = &books.scores else { return Ok(0.0) };
    let own = learner.own[at];
    let class = added_by(learner, at).class;
    if columns.len() == 1 {
        let score = columns[0][at] - learner.coefficients[0][at] * own;
        return Ok(Update::of(&[score], class).1);
    }
    let scores: Vec<f64> = columns
        .iter()
        .zip(&learner.coefficients)
        .map(|(scores, coefficients)| scores[at] - coefficients[at] * own)
        .try_collect_vec()?;
    Ok(Update::of(&scores, class).1)
}

/// How many vectors of the pool are misclassified without vector `at`.
fn errors_without<T: Real>(learner: &Learner<'_, T>, books: &Bookkeeping, at: usize) -> Result<usize> {
    let (Some(columns), Some(gram)) = (&books.scores, &books.gram) else { return Ok(0) };
    let gone = &gram[at];
    if let [column] = columns.as_slice() {
        let coefficient = learner.coefficients[0][at];
        return Ok(learner.coefficients[0]
            .iter()
            .zip(column)
            .zip(gone)
            .filter(|((own, score), value)| !(**own * (**score - coefficient * **value) > 0.0))
            .count());
    }
    let mut scores = try_vec![0.0; columns.len()]?;
    Ok((0..gone.len())
        .filter(|&i| {
            for (score, (column, coefficients)) in
                scores.iter_mut().zip(columns.iter().zip(&learner.coefficients))
            {
                *score = column[i] - coefficients[at] * gone[i];
            }
            !(Update::of(&scores, added_by(learner, i).class).1 > 0.0)
        })
        .count())
}

/// Shrinks all coefficients so that the oldest vector may leave; the new row counts already. Returns phi.
fn forget<T: Real>(
    learner: &mut Learner<'_, T>,
    books: &mut Bookkeeping,
    at: usize,
    update: Update,
) -> Result<f64> {
    learner.values_of(at, &mut books.removed)?;
    let mut scores: Vec<f64> =
        learner.coefficients.iter().map(|column| dot(column, &books.removed)).try_collect_vec()?;
    for (output, sign) in update.coefficients() {
        scores[output] += sign * learner.values[at];
    }
    let Update { class, rival } = added_by(learner, at);
    // The margin against the rival that the vector was added against: the direction that leaves.
    let (sigma, mu, norm) = match rival {
        None => {
            let coefficient = learner.coefficients[0][at];
            (coefficient.abs(), if class == 1 { scores[0] } else { -scores[0] }, 1.0)
        }
        Some(rival) => (learner.coefficients[class][at], scores[class] - scores[rival], 2.0),
    };
    let norm = norm * learner.own[at];
    let room = 15.0 / 32.0 * learner.mistakes as f64 - learner.deviation;
    let (square, linear) = (sigma * sigma * norm - 2.0 * sigma * mu, 2.0 * sigma);
    let phi = largest_shrink(square, linear, room);
    learner.deviation += square * phi * phi + linear * phi;
    for column in &mut learner.coefficients {
        for c in column {
            *c *= phi;
        }
    }
    Ok(phi)
}

/// The largest phi in (0, 1] with square phi^2 + linear phi <= room, for room > 0.
fn largest_shrink(square: f64, linear: f64, room: f64) -> f64 {
    if square + linear <= room {
        return 1.0;
    }
    // The parabola rises through 0 at phi = 0 and is above `room` at 1: its first crossing, without cancellation.
    let root = (linear * linear + 4.0 * square * room).max(0.0).sqrt();
    (2.0 * room / (linear + root)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::largest_shrink;

    #[test]
    fn shrinking_is_the_largest_allowed() {
        for (square, linear, room) in [
            (0.5, 2.0, 1.0),
            (-0.9, 2.0, 0.4),
            (-3.0, 2.0, 0.2),
            (0.0, 2.0, 0.5),
            (-1.5, 2.0, 5.0),
            (3.0, 2.0, 0.1),
        ] {
            let phi = largest_shrink(square, linear, room);
            let cost = |phi: f64| square * phi * phi + linear * phi;
            assert!(phi > 0.0 && phi <= 1.0 && cost(phi) <= room + 1e-12);
            // With a negative square a larger phi can be allowed again only at 1, which was tried first.
            assert!(phi == 1.0 || (cost(phi) - room).abs() < 1e-12);
        }
    }
}
