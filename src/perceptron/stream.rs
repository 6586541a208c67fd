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
use super::params::{PerceptronParams, Policy, check_piece, check_values};
use super::projection::Projection;
use super::update::Update;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::RowWriter;
use crate::memory::{TryGrow, try_matrix, try_vec, try_zero_matrix};
use crate::simd::Real;
use crate::simd::blas::dot;

/// Learns from a piece of a stream, row by row in the given order.
///
/// Returns the new state and which rows of the piece were mistakes. Cost: m d a row, and what the policy adds at a
/// mistake: O(m d) for Forgetron and margin, O(m^2 q) for the tighter budget, O(m^2) for the projections.
///
/// # Errors
/// [`Error::Param`](crate::Error::Param) and [`Error::Shape`](crate::Error::Shape) for parameters, state, rows and labels that break their rules,
/// [`Error::NotFinite`](crate::Error::NotFinite) for rows that are not finite, [`Error::Param`](crate::Error::Param) for rows whose kernel values are not, [`Error::Stopped`](crate::Error::Stopped) when the monitor stops the work; nothing
/// is then learnt.
pub fn partial_fit(
    params: &PerceptronParams,
    state: PerceptronState,
    rows: Rows<'_>,
    labels: &[usize],
    ctx: Context<'_>,
) -> Result<(PerceptronState, Vec<u64>)> {
    params.check()?;
    state.check(params)?;
    let vectors = state.vectors.view();
    check_piece(&params.kernel, params.classes, vectors.cols(), rows, labels)?;
    // The factor of a Gram matrix needs all digits of its values.
    if rows.is_f64() || vectors.is_f64() || matches!(params.policy, Policy::Projectron { .. }) {
        Stream::<f64>::new(params, &state, rows.reborrow(), ctx)?.learn(labels, ctx)
    } else {
        Stream::<f32>::new(params, &state, rows.reborrow(), ctx)?.learn(labels, ctx)
    }
}

/// A learner and what its policy keeps.
struct Stream<'a, T> {
    learner: Learner<'a, T>,
    books: Bookkeeping,
    projection: Projection,
    double: bool,
}

impl<'a, T: Real> Stream<'a, T> {
    fn new(
        params: &PerceptronParams,
        state: &'a PerceptronState,
        rows: Rows<'a>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let mut learner = Learner::new(params, state, rows)?;
        let projection = Projection::new(&mut learner, state, ctx)?;
        Ok(Self {
            learner,
            books: Bookkeeping::new(state, params.policy)?,
            projection,
            double: state.vectors.view().is_f64(),
        })
    }

    fn learn(mut self, labels: &[usize], ctx: Context<'_>) -> Result<(PerceptronState, Vec<u64>)> {
        let Self { learner, books, projection, double } = &mut self;
        let mut wrong = Vec::new();
        let mut scores = try_vec![0.0; learner.coefficients.len()]?;
        let mut counter = ctx.counter("stream", labels.len());
        for (i, &label) in labels.iter().enumerate() {
            counter.charge_row(learner.pool.len() * learner.row.features().max(8))?;
            learner.load(i);
            learner.fill_values()?;
            for (score, column) in scores.iter_mut().zip(&learner.coefficients) {
                *score = dot(column, &learner.values);
            }
            let numbers = learner.values.iter().chain(&scores).copied();
            check_values(&learner.params.kernel, i, numbers.chain([learner.self_value()]), *double)?;
            let (update, margin) = Update::of(&scores, label);
            let mistake = !(margin > 0.0);
            if mistake {
                learner.mistakes += 1;
                wrong.try_push(i as u64)?;
                counter.charge(learner.cost_of_a_mistake())?;
            }
            if let Policy::Projectron { eta, margin: learn_margins } = learner.params.policy {
                if mistake || (learn_margins && margin < 1.0) {
                    projection.learn(learner, update, margin, eta)?;
                }
            } else if mistake && learner.params.has_room_for(learner.pool.len() + 1) {
                books.added(learner, &scores, update)?;
                learner.push(update)?;
            } else if mistake {
                make_room(learner, books, &scores, update)?;
            }
            learner.seen += 1;
        }
        Ok((self.state()?, wrong))
    }

    fn state(self) -> Result<PerceptronState> {
        let Self { learner, books, projection, double } = self;
        let (m, q) = (learner.pool.len(), learner.coefficients.len());
        let (features, sparse) = (learner.row.features(), learner.row.is_sparse());
        let mut writer = RowWriter::new(features, sparse, double);
        let mut row = learner.row.another()?;
        for at in 0..m {
            learner.read(at, &mut row);
            writer.push(&row)?;
        }
        let (outputs, gram) = books.into_parts();
        let pairs = if gram.is_empty() { projection.into_factor() } else { gram };
        let scored = outputs.first().map_or(0, Vec::len);
        let mut matrix =
            try_zero_matrix("what the policy keeps for pairs of vectors", (pairs.len(), pairs.len()))?;
        // Rows of a factor end at the diagonal.
        for (mut to, from) in matrix.rows_mut().into_iter().zip(&pairs) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        Ok(PerceptronState {
            vectors: writer.finish(),
            coefficients: try_matrix((m, q), |(i, j)| learner.coefficients[j][i])?,
            born: learner.born,
            matrix,
            scores: try_matrix((scored, q), |(i, j)| outputs[j][i])?,
            deviation: learner.deviation,
            random: learner.random.state(),
            seen: learner.seen,
            mistakes: learner.mistakes,
        })
    }
}
