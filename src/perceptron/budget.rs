//! Budgets: replacing a vector of a full pool at a mistake.
//!
//! | policy | vector replaced | source |
//! |---|---|---|
//! | oldest | the one that came first | Dekel, Shalev-Shwartz and Singer, SIAM J. Comput. 37, 2008, without shrinking |
//! | Forgetron | the same, after all coefficients shrank by phi | ibid., self-tuned Forgetron, figure 3 |
//! | margin | argmax of the margin of z_i without z_i | Crammer, Kandola and Singer, NIPS 16, 2004 |
//! | random | a random one | Cavallanti, Cesa-Bianchi and Gentile, Machine Learning 69, 2007 |
//! | tighter | argmin of the pool's errors without z_i, then the largest margin | Weston, Bordes and Bottou, AISTATS 2005 |
//!
//! The new row takes the place of the one replaced, so no other vector moves. A vector's class is the output with its
//! positive coefficient and its rival the one with the negative coefficient: shrinking keeps signs.
//! Cost: that of the policy in [`partial_fit`](super::partial_fit).
//!
//! Forgetron: with sigma the coefficient of the oldest vector r and mu its margin after the update, removal after
//! shrinking by phi costs Psi = phi^2 (sigma^2 ||phi_r||^2 - 2 sigma mu) + 2 phi sigma, and phi is the largest number in
//! (0, 1] with Psi + Q <= 15/32 M, Q the sum of the earlier Psi and M the number of mistakes. The guarantee holds for
//! k(x, x) <= 1.

use super::learner::{Learner, PerceptronState};
use super::params::Policy;
use super::update::Update;
use crate::data::copy_columns;
use crate::error::Result;
use crate::memory::{TryCollect, push_row};
use crate::simd::Real;
use crate::simd::blas::{axpy, dot};

/// The outputs at the vectors of the pool and, for the tighter budget, the Gram matrix.
///
/// Invariant: both belong to the current pool and coefficients, or are empty if the policy does not keep them.
pub(super) struct PoolScores {
    /// One column per output.
    pub(super) scores: Vec<Vec<f64>>,
    /// Row by row.
    pub(super) gram: Vec<Vec<f64>>,
    /// Kernel values of the vector that is replaced.
    removed: Vec<f64>,
}

impl PoolScores {
    /// Copies the arrays that the policy keeps from a state.
    pub(super) fn new(state: &PerceptronState, policy: Policy) -> Result<Self> {
        let mut arrays = Self { scores: Vec::new(), gram: Vec::new(), removed: Vec::new() };
        if policy.keeps_scores() {
            arrays.scores = copy_columns(state.scores.view())?;
        }
        if matches!(policy, Policy::Tightest) {
            arrays.gram = copy_columns(state.matrix.t())?;
        }
        Ok(arrays)
    }

    /// Appends the current row, which has these outputs before it is learned.
    pub(super) fn append<T: Real>(
        &mut self,
        learner: &Learner<'_, T>,
        scores: &[f64],
        update: Update,
    ) -> Result<()> {
        let (values, self_value, m) = (&learner.values, learner.self_value(), learner.values.len());
        if !self.scores.is_empty() {
            push_row(&mut self.scores, scores.iter().copied())?;
            for (output, sign) in update.coefficients() {
                axpy(sign, values, &mut self.scores[output][..m]);
                self.scores[output][m] += sign * self_value;
            }
        }
        if matches!(learner.params.policy, Policy::Tightest) {
            push_row(&mut self.gram, values.iter().copied())?;
            self.gram.push(values.iter().copied().chain(std::iter::once(self_value)).try_collect_vec()?);
        }
        Ok(())
    }

    /// Replaces vector `at`, whose kernel values are in `removed`, by the current row.
    fn replace<T: Real>(&mut self, at: usize, learner: &Learner<'_, T>, scores: &[f64], update: Update) {
        let (values, self_value) = (&learner.values, learner.self_value());
        for (column, (coefficients, &score)) in
            self.scores.iter_mut().zip(learner.coefficients.iter().zip(scores))
        {
            let coefficient = coefficients[at];
            if coefficient != 0.0 {
                axpy(-coefficient, &self.removed, column);
            }
            column[at] = score - coefficient * values[at];
        }
        for (output, sign) in update.coefficients() {
            let score = self.scores[output][at] + sign * self_value;
            axpy(sign, values, &mut self.scores[output]);
            self.scores[output][at] = score;
        }
        if !self.gram.is_empty() {
            for (line, &value) in self.gram.iter_mut().zip(values) {
                line[at] = value;
            }
            self.gram[at].copy_from_slice(values);
            self.gram[at][at] = self_value;
        }
    }
}

/// Returns the update that added a vector of the pool, from the signs of its coefficients.
fn update_of<T: Real>(learner: &Learner<'_, T>, at: usize) -> Update {
    let columns = &learner.coefficients;
    if columns.len() == 1 {
        return Update { class: usize::from(columns[0][at] > 0.0), rival: None };
    }
    let find = |sign: f64| columns.iter().position(|column| column[at] * sign > 0.0);
    Update { class: find(1.0).unwrap_or(0), rival: find(-1.0) }
}

/// Learns from a mistake with a full pool; `scores` are the outputs of the current row.
pub(super) fn replace_vector<T: Real>(
    learner: &mut Learner<'_, T>,
    pool: &mut PoolScores,
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
            scale = shrink(learner, &mut pool.removed, at, update);
            at
        }
        Policy::Margin => best(m, |i| Ok((0, margin_without(learner, pool, i))))?,
        Policy::Tightest => {
            best(m, |i| Ok((errors_without(learner, pool, i), margin_without(learner, pool, i))))?
        }
    };
    if !pool.scores.is_empty() {
        learner.kernel_row(at, &mut pool.removed);
        pool.replace(at, learner, scores, update);
    }
    learner.replace(at, update, scale)
}

/// Returns the vector that came first. Its m comparisons are cheap compared with the m d multiplications of the row.
fn oldest<T>(learner: &Learner<'_, T>) -> usize {
    learner.born.iter().enumerate().min_by_key(|&(_, born)| born).map_or(0, |(at, _)| at)
}

/// Returns the vector with the fewest errors; ties are broken by the largest margin, then by the first place.
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

/// Returns the margin of vector `at` without itself.
fn margin_without<T: Real>(learner: &Learner<'_, T>, pool: &PoolScores, at: usize) -> f64 {
    let (self_value, class) = (learner.self_values[at], update_of(learner, at).class);
    if let [scores] = pool.scores.as_slice() {
        return Update::new(&[scores[at] - learner.coefficients[0][at] * self_value], class).1;
    }
    let scores: Vec<f64> = pool
        .scores
        .iter()
        .zip(&learner.coefficients)
        .map(|(scores, coefficients)| scores[at] - coefficients[at] * self_value)
        .collect();
    Update::new(&scores, class).1
}

/// Returns the number of vectors of the pool that are misclassified without vector `at`.
fn errors_without<T: Real>(learner: &Learner<'_, T>, pool: &PoolScores, at: usize) -> usize {
    let (columns, removed) = (&pool.scores, &pool.gram[at]);
    if let [column] = columns.as_slice() {
        let coefficient = learner.coefficients[0][at];
        return learner.coefficients[0]
            .iter()
            .zip(column)
            .zip(removed)
            .filter(|((self_value, score), value)| !(**self_value * (**score - coefficient * **value) > 0.0))
            .count();
    }
    let mut scores = vec![0.0; columns.len()];
    (0..removed.len())
        .filter(|&i| {
            for (score, (column, coefficients)) in
                scores.iter_mut().zip(columns.iter().zip(&learner.coefficients))
            {
                *score = column[i] - coefficients[at] * removed[i];
            }
            !(Update::new(&scores, update_of(learner, i).class).1 > 0.0)
        })
        .count()
}

/// Shrinks all coefficients before the oldest vector is removed, the new row included in the margin. Returns phi.
fn shrink<T: Real>(learner: &mut Learner<'_, T>, removed: &mut Vec<f64>, at: usize, update: Update) -> f64 {
    learner.kernel_row(at, removed);
    let mut scores: Vec<f64> = learner.coefficients.iter().map(|column| dot(column, removed)).collect();
    for (output, sign) in update.coefficients() {
        scores[output] += sign * learner.values[at];
    }
    let Update { class, rival } = update_of(learner, at);
    // The margin against the rival that the vector was added against: the direction that is removed.
    let (sigma, mu, norm) = match rival {
        None => {
            let coefficient = learner.coefficients[0][at];
            (coefficient.abs(), if class == 1 { scores[0] } else { -scores[0] }, 1.0)
        }
        Some(rival) => (learner.coefficients[class][at], scores[class] - scores[rival], 2.0),
    };
    let norm = norm * learner.self_values[at];
    let bound = 15.0 / 32.0 * learner.mistakes as f64 - learner.deviation;
    let (square, linear) = (sigma * sigma * norm - 2.0 * sigma * mu, 2.0 * sigma);
    let phi = largest_shrink(square, linear, bound);
    learner.deviation += square * phi * phi + linear * phi;
    for column in &mut learner.coefficients {
        for c in column {
            *c *= phi;
        }
    }
    phi
}

/// Returns the largest phi in (0, 1] with square phi^2 + linear phi <= bound, for bound > 0.
fn largest_shrink(square: f64, linear: f64, bound: f64) -> f64 {
    if square + linear <= bound {
        return 1.0;
    }
    // The parabola rises through 0 at phi = 0 and is above `bound` at 1: its first crossing, without cancellation.
    let root = (linear * linear + 4.0 * square * bound).max(0.0).sqrt();
    (2.0 * bound / (linear + root)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::largest_shrink;

    #[test]
    fn shrinking_is_the_largest_allowed() {
        for (square, linear, bound) in [
            (0.5, 2.0, 1.0),
            (-0.9, 2.0, 0.4),
            (-3.0, 2.0, 0.2),
            (0.0, 2.0, 0.5),
            (-1.5, 2.0, 5.0),
            (3.0, 2.0, 0.1),
        ] {
            let phi = largest_shrink(square, linear, bound);
            let cost = |phi: f64| square * phi * phi + linear * phi;
            assert!(phi > 0.0 && phi <= 1.0 && cost(phi) <= bound + 1e-12);
            // With a negative square a larger phi can be allowed again only at 1, which was tried first.
            assert!(phi == 1.0 || (cost(phi) - bound).abs() < 1e-12);
        }
    }
}
