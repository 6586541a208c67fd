//! The kernel perceptron (Ukkonen and Arias 2010, algorithm 1; Freund and Schapire 1999) over a stream.
//!
//! For each row x with class y: s_j = sum_i B[i, j] k(x, z_i); where the margin of y is not positive the row is a
//! mistake, joins the pool with the coefficients of `direction`, and the [`Policy`] keeps the pool within its
//! budget. A margin of exactly 0 is a mistake, so that the first row is one.
//!
//! Between two rows: the m vectors are in the order in which they took their places, `born[i]` rows had been seen when
//! vector i came, and `matrix` and `scores` are what the policy keeps about the pool. All kernel values a row needs
//! are computed once, O(m d), and serve the answer, the update and the policy.

use super::budget::{Bookkeeping, make_room};
use super::projection::Projection;
use super::watch::Watch;
use super::{direction, margin, outputs};
use crate::control::Monitor;
use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::kernels::{Formula, Kernel, RowBuffer, RowWriter, VectorPool, self_value};
use crate::random::Random;
use crate::simd::Real;
use crate::simd::blas::dot;

/// What happens when a mistake finds the budget spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// There is no budget.
    Unlimited,
    /// Nothing is learnt any more (Stoptron).
    Stop,
    /// The oldest vector leaves.
    Oldest,
    /// The Forgetron: coefficients shrink, then the oldest leaves.
    Forgetron,
    /// The vector with the largest margin without itself leaves (Crammer, Kandola and Singer 2004).
    Margin,
    /// A random vector leaves (Cavallanti, Cesa-Bianchi and Gentile 2007).
    Random,
    /// The vector without which fewest of the pool are misclassified leaves (Weston, Bordes and Bottou 2005).
    Tightest,
    /// No budget: rows within `eta` of the span of the pool are projected onto it (Orabona et al. 2009).
    Projectron {
        /// Largest distance of a row from the span, in kernel space, at which it is projected.
        eta: f64,
        /// Whether rows that are right with a margin below 1 are learnt from too (Projectron++).
        margin: bool,
    },
}

/// What is fixed along a stream.
#[derive(Debug, Clone, Copy)]
pub struct PerceptronParams {
    /// The kernel; not precomputed.
    pub kernel: Kernel,
    /// Number of classes, at least 2.
    pub classes: usize,
    /// Most vectors, for the policies that have a budget.
    pub budget: usize,
    /// What happens when the budget is spent.
    pub policy: Policy,
}

impl PerceptronParams {
    /// Checks every parameter against its rule.
    pub fn check(&self) -> Result<()> {
        self.kernel.check()?;
        check_stream(&self.kernel, self.classes)?;
        if self.budget == 0 {
            return Err(Error::param("budget", 0, "at least 1"));
        }
        if let Policy::Projectron { eta, .. } = self.policy
            && !(eta.is_finite() && eta >= 0.0)
        {
            return Err(Error::param("eta", eta, "finite and not negative"));
        }
        Ok(())
    }
}

/// Rules that all online learners share.
pub(super) fn check_stream(kernel: &Kernel, classes: usize) -> Result<()> {
    if matches!(kernel, Kernel::Precomputed) {
        let rule = "computed from rows: a stream has no fixed rows to which kernel values could refer";
        return Err(Error::param("kernel", "precomputed", rule));
    }
    if classes < 2 {
        return Err(Error::param("classes", classes, "at least 2"));
    }
    Ok(())
}

/// Checks the rows and the labels of a piece of a stream.
pub(super) fn check_piece(
    kernel: &Kernel,
    classes: usize,
    features: usize,
    rows: Rows<'_>,
    labels: &[usize],
) -> Result<()> {
    Error::check_len("labels (one for each row)", rows.rows(), labels.len())?;
    Error::check_len("columns of X", features, rows.cols())?;
    if let Some(label) = labels.iter().find(|&&label| label >= classes) {
        return Err(Error::param("labels", label, format!("below {classes}, the number of classes")));
    }
    rows.check_finite("X")?;
    kernel.check_rows("X", rows)
}

/// Everything that the rest of the stream depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct PerceptronState {
    /// The pool, m vectors.
    pub vectors: OwnedRows,
    /// B, (m, q), row-major.
    pub coefficients: Vec<f64>,
    /// Rows seen before each vector came, (m,).
    pub born: Vec<u64>,
    /// What the policy keeps for pairs of vectors, (m, m), else empty: Gram matrix or its inverse.
    pub matrix: Vec<f64>,
    /// What the policy keeps for each vector, (m, q), else empty: outputs at the vectors.
    pub scores: Vec<f64>,
    /// The Forgetron's sum of deviations.
    pub deviation: f64,
    /// State of the random generator; the seed at the beginning.
    pub random: u64,
    /// Rows seen.
    pub seen: u64,
    /// Mistakes made.
    pub mistakes: u64,
}

impl PerceptronState {
    /// The state before the first row; `like` tells columns, layout and precision of the stream.
    pub fn new(like: Rows<'_>, seed: u64) -> Self {
        Self {
            vectors: RowWriter::new(like.cols(), like.is_sparse(), like.is_f64()).finish(),
            coefficients: Vec::new(),
            born: Vec::new(),
            matrix: Vec::new(),
            scores: Vec::new(),
            deviation: 0.0,
            random: seed,
            seen: 0,
            mistakes: 0,
        }
    }

    fn check(&self, params: &PerceptronParams) -> Result<()> {
        let (m, q) = (self.vectors.view().rows(), outputs(params.classes));
        Error::check_len(
            "coefficients of the state (vectors times outputs)",
            m * q,
            self.coefficients.len(),
        )?;
        Error::check_len("born of the state (one for each vector)", m, self.born.len())?;
        let budgeted = !matches!(params.policy, Policy::Unlimited | Policy::Projectron { .. });
        if budgeted && m > params.budget {
            let rule = format!("at least {m}, the number of vectors that the model has already");
            return Err(Error::param("budget", params.budget, rule));
        }
        let (matrix, scores) = match params.policy {
            Policy::Margin => (0, m * q),
            Policy::Tightest => (m * m, m * q),
            Policy::Projectron { .. } => (m * m, 0),
            _ => (0, 0),
        };
        Error::check_len("matrix of the state", matrix, self.matrix.len())?;
        Error::check_len("scores of the state", scores, self.scores.len())
    }
}

/// Learns from a piece of a stream, row by row in the given order.
///
/// Returns the new state and which rows of the piece were mistakes. Cost: m d a row, and what the policy adds at a
/// mistake: O(m d) for Forgetron and margin, O(m^2 q) for the tighter budget, O(m^2) for the projections.
///
/// # Errors
/// [`Error::Param`] and [`Error::Shape`] for parameters, state, rows and labels that break their rules,
/// [`Error::NotFinite`] for rows that are not finite, [`Error::Cancelled`] when the monitor stops the work; nothing
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

/// The pool and its numbers, as the loop and the policies work on them.
pub(super) struct Learner<T> {
    pub(super) params: PerceptronParams,
    pub(super) formula: Formula<T>,
    pub(super) pool: VectorPool<T>,
    /// Coefficients output by output, so that a score is one inner product.
    pub(super) coefficients: Vec<Vec<f64>>,
    pub(super) born: Vec<u64>,
    pub(super) random: Random,
    pub(super) seen: u64,
    pub(super) mistakes: u64,
    pub(super) deviation: f64,
    /// Kernel values of the current row against the pool.
    pub(super) values: Vec<f64>,
    pub(super) row: RowBuffer<T>,
    /// A vector of the pool, where a policy needs its kernel values.
    pub(super) other: RowBuffer<T>,
    /// k(z, z) of each vector.
    pub(super) own: Vec<f64>,
    lines: Vec<T>,
}

impl<T: Real> Learner<T> {
    fn new(params: &PerceptronParams, state: &PerceptronState) -> Result<Self> {
        let vectors = state.vectors.view();
        let (sparse, features, q) = (vectors.is_sparse(), vectors.cols(), outputs(params.classes));
        let formula = Formula::of(&params.kernel, sparse)
            .ok_or_else(|| Error::param("kernel", params.kernel.name(), "computed from rows"))?;
        let mut learner = Self {
            params: *params,
            formula,
            pool: VectorPool::new(features, sparse),
            coefficients: (0..q)
                .map(|j| state.coefficients.iter().skip(j).step_by(q).copied().collect())
                .collect(),
            born: state.born.clone(),
            random: Random::new(state.random),
            seen: state.seen,
            mistakes: state.mistakes,
            deviation: state.deviation,
            values: Vec::new(),
            row: RowBuffer::new(features, sparse),
            other: RowBuffer::new(features, sparse),
            own: Vec::new(),
            lines: Vec::new(),
        };
        for i in 0..vectors.rows() {
            learner.row.load(&vectors, i);
            learner.pool.push(&learner.row);
            learner.own.push(learner.self_value());
        }
        Ok(learner)
    }

    /// Whether a vector can still be added without another one leaving.
    pub(super) fn has_room(&self) -> bool {
        matches!(self.params.policy, Policy::Unlimited | Policy::Projectron { .. })
            || self.pool.len() < self.params.budget
    }

    /// Multiplications of the policy at a mistake, beside kernel values.
    fn cost_of_a_mistake(&self) -> u64 {
        let m = self.pool.len() as u64;
        match self.params.policy {
            Policy::Tightest => m * m * self.coefficients.len() as u64,
            Policy::Projectron { .. } => m * m,
            _ => m,
        }
    }

    /// k(x, x) of the current row.
    pub(super) fn self_value(&self) -> f64 {
        self_value(&self.params.kernel, self.row.squared_norm())
    }

    /// Kernel values of the current row against the pool.
    fn fill_values(&mut self) {
        let values = self.pool.values(&self.formula, &self.row, &mut self.lines);
        self.values.clear();
        self.values.extend(values.iter().map(|v| v.to_f64()));
    }

    /// Kernel values of one vector of the pool against all.
    pub(super) fn values_of(&mut self, at: usize, out: &mut Vec<f64>) {
        self.pool.read(at, &mut self.other);
        let values = self.pool.values(&self.formula, &self.other, &mut self.lines);
        out.clear();
        out.extend(values.iter().map(|v| v.to_f64()));
    }

    /// The current row joins the pool.
    pub(super) fn push(&mut self, label: usize, rival: Option<usize>) {
        self.pool.push(&self.row);
        self.own.push(self.self_value());
        self.born.push(self.seen);
        self.coefficients.iter_mut().for_each(|column| column.push(0.0));
        for (output, value) in direction(label, rival) {
            self.coefficients[output][self.pool.len() - 1] = value;
        }
    }

    /// The current row takes the place of vector `at`, its coefficients times `scale`.
    pub(super) fn replace(&mut self, at: usize, label: usize, rival: Option<usize>, scale: f64) {
        self.pool.replace(at, &self.row);
        self.own[at] = self.self_value();
        self.born[at] = self.seen;
        self.coefficients.iter_mut().for_each(|column| column[at] = 0.0);
        for (output, value) in direction(label, rival) {
            self.coefficients[output][at] = scale * value;
        }
    }

    fn export(self, books: Bookkeeping, projection: Projection, double: bool) -> PerceptronState {
        let (m, q) = (self.pool.len(), self.coefficients.len());
        let (features, sparse) = (self.row.features(), self.row.is_sparse());
        let mut writer = RowWriter::new(features, sparse, double);
        let mut row = RowBuffer::new(features, sparse);
        for at in 0..m {
            self.pool.read(at, &mut row);
            writer.push(&row);
        }
        let coefficients = (0..m * q).map(|t| self.coefficients[t % q][t / q]).collect();
        let (scores, gram) = books.into_parts();
        let inverse = projection.into_matrix();
        PerceptronState {
            vectors: writer.finish(),
            coefficients,
            born: self.born,
            matrix: if gram.is_empty() { inverse } else { gram },
            scores,
            deviation: self.deviation,
            random: self.random.state(),
            seen: self.seen,
            mistakes: self.mistakes,
        }
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
        let (m, q) = (state.vectors.view().rows(), outputs(params.classes));
        Ok(Self {
            learner: Learner::new(params, state)?,
            books: Bookkeeping::new(params.policy, &state.scores, &state.matrix, m, q),
            projection: Projection::new(params.policy, &state.matrix, m),
            double: state.vectors.view().is_f64(),
        })
    }

    fn learn(
        self,
        rows: Rows<'_>,
        labels: &[usize],
        monitor: &dyn Monitor,
    ) -> Result<(PerceptronState, Vec<u64>)> {
        let Self { mut learner, mut books, mut projection, double } = self;
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
            let (margin, rival) = margin(&scores, label);
            let mistake = !(margin > 0.0);
            if mistake {
                learner.mistakes += 1;
                wrong.push(i as u64);
                watch.spend(learner.cost_of_a_mistake())?;
            }
            if let Policy::Projectron { eta, margin: learn_margins } = learner.params.policy {
                if mistake || (learn_margins && margin < 1.0) {
                    projection.update(&mut learner, label, rival, margin, eta);
                }
            } else if mistake && learner.has_room() {
                books.added(learner.pool.len(), &learner.values, learner.self_value(), &scores, label, rival);
                learner.push(label, rival);
            } else if mistake {
                make_room(&mut learner, &mut books, &scores, label, rival);
            }
            learner.seen += 1;
        }
        Ok((learner.export(books, projection, double), wrong))
    }
}
