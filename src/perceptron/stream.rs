//! The kernel perceptron (Ukkonen and Arias 2010, algorithm 1; Freund and Schapire 1999) over a stream.
//!
//! For each row x with class y: s_j = sum_i B[i, j] k(x, z_i); where the margin of y is not positive the row is a
//! mistake, joins the pool with the coefficients of an `Update`, and the [`Policy`] keeps the pool within its
//! budget. A margin of exactly 0 is a mistake, so that the first row is one.
//!
//! Between two rows: the m vectors are in the order in which they took their places, `born[i]` rows had been seen when
//! vector i came, and `matrix` and `scores` are what the policy keeps about the pool. All kernel values a row needs
//! are computed once, O(m d), and serve the answer, the update and the policy.

use super::budget::{Bookkeeping, make_room};
use super::learner::{Learner, PerceptronState};
use super::params::{PerceptronParams, Policy, check_piece};
use super::projection::Projection;
use super::update::Update;
use super::watch::Watch;
use crate::control::Monitor;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{RowBuffer, RowWriter};
use crate::simd::Real;
use crate::simd::blas::dot;
use ndarray::Array2;

/// Learns from a piece of a stream, row by row in the given order.
///
/// Returns the new state and which rows of the piece were mistakes. Cost: m d a row, and what the policy adds at a
/// mistake: O(m d) for Forgetron and margin, O(m^2 q) for the tighter budget, O(m^2) for the projections.
///
/// # Errors
/// [`Error::Param`](crate::Error::Param) and [`Error::Shape`](crate::Error::Shape) for parameters, state, rows and labels that break their rules,
/// [`Error::NotFinite`](crate::Error::NotFinite) for rows that are not finite, [`Error::Cancelled`](crate::Error::Cancelled) when the monitor stops the work; nothing
/// is then learnt.
pub fn partial_fit(
    params: &PerceptronParams,
    state: PerceptronState,
    rows: Rows<'_>,
    labels: &[usize],
    monitor: &dyn Monitor,
) -> Result<(PerceptronState, Vec<u64>)> {
    params.check()?;
    state.check(params)?;
    let vectors = state.vectors.view();
    check_piece(&params.kernel, params.classes, vectors.cols(), rows, labels)?;
    // The inverse of a Gram matrix needs all digits of its values.
    if rows.is_f64() || vectors.is_f64() || matches!(params.policy, Policy::Projectron { .. }) {
        Stream::<f64>::new(params, &state)?.learn(rows, labels, monitor)
    } else {
        Stream::<f32>::new(params, &state)?.learn(rows, labels, monitor)
    }
}

/// A learner and what its policy keeps.
struct Stream<T> {
    learner: Learner<T>,
    books: Bookkeeping,
    projection: Projection,
    double: bool,
}

impl<T: Real> Stream<T> {
    fn new(params: &PerceptronParams, state: &PerceptronState) -> Result<Self> {
        Ok(Self {
            learner: Learner::new(params, state)?,
            books: Bookkeeping::new(state, params.policy),
            projection: Projection::new(state, params.policy),
            double: state.vectors.view().is_f64(),
        })
    }

    fn learn(
        mut self,
        rows: Rows<'_>,
        labels: &[usize],
        monitor: &dyn Monitor,
    ) -> Result<(PerceptronState, Vec<u64>)> {
        let Self { learner, books, projection, .. } = &mut self;
        let mut wrong = Vec::new();
        let mut scores = vec![0.0; learner.coefficients.len()];
        let mut watch = Watch::new(monitor, "stream", labels.len());
        for (i, &label) in labels.iter().enumerate() {
            watch.row(learner.pool.len() * rows.cols().max(8))?;
            learner.row.load(&rows, i);
            learner.fill_values();
            for (score, column) in scores.iter_mut().zip(&learner.coefficients) {
                *score = dot(column, &learner.values);
            }
            let (update, margin) = Update::of(&scores, label);
            let mistake = !(margin > 0.0);
            if mistake {
                learner.mistakes += 1;
                wrong.push(i as u64);
                watch.spend(learner.cost_of_a_mistake())?;
            }
            if let Policy::Projectron { eta, margin: learn_margins } = learner.params.policy {
                if mistake || (learn_margins && margin < 1.0) {
                    projection.learn(learner, update, margin, eta);
                }
            } else if mistake && learner.params.has_room_for(learner.pool.len() + 1) {
                books.added(learner, &scores, update);
                learner.push(update);
            } else if mistake {
                make_room(learner, books, &scores, update);
            }
            learner.seen += 1;
        }
        Ok((self.state(), wrong))
    }

    fn state(self) -> PerceptronState {
        let Self { learner, books, projection, double } = self;
        let (m, q) = (learner.pool.len(), learner.coefficients.len());
        let (features, sparse) = (learner.row.features(), learner.row.is_sparse());
        let mut writer = RowWriter::new(features, sparse, double);
        let mut row = RowBuffer::new(features, sparse);
        for at in 0..m {
            learner.pool.read(at, &mut row);
            writer.push(&row);
        }
        let (outputs, gram) = books.into_parts();
        let pairs = if gram.is_empty() { projection.into_inverse() } else { gram };
        let scored = outputs.first().map_or(0, Vec::len);
        PerceptronState {
            vectors: writer.finish(),
            coefficients: Array2::from_shape_fn((m, q), |(i, j)| learner.coefficients[j][i]),
            born: learner.born,
            matrix: Array2::from_shape_fn((pairs.len(), pairs.len()), |(i, j)| pairs[i][j]),
            scores: Array2::from_shape_fn((scored, q), |(i, j)| outputs[j][i]),
            deviation: learner.deviation,
            random: learner.random.state(),
            seen: learner.seen,
            mistakes: learner.mistakes,
        }
    }
}
