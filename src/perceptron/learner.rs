//! The pool of a perceptron and its numbers: as they are saved between two pieces of a stream, and as the loop over
//! the rows and the policies work on them.

use super::params::{PerceptronParams, Policy, check_counts};
use super::update::{Update, outputs};
use crate::data::{OwnedRows, Rows};
use crate::error::{Error, Result};
use crate::kernels::{Formula, PoolWorkspace, RowBuffer, VectorPool};
use crate::memory::{TryCollect, TryGrow, TryToVec, try_zero_matrix};
use crate::random::Random;
use crate::simd::Real;
use ndarray::Array2;

/// Everything that the rest of the stream depends on. Before the first row it has no vectors, and the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct PerceptronState {
    /// The pool, m vectors.
    pub vectors: OwnedRows,
    /// B, (m, q).
    pub coefficients: Array2<f64>,
    /// Rows seen before each vector came, (m,).
    pub born: Vec<u64>,
    /// What the policy keeps for pairs of vectors, (m, m), else (0, 0): Gram matrix or its Cholesky factor.
    pub matrix: Array2<f64>,
    /// What the policy keeps for each vector, (m, q), else (0, q): outputs at the vectors.
    pub scores: Array2<f64>,
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
    /// Returns an empty pool for a stream of rows laid out like those of `like`, from which nothing is learnt.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(params: &PerceptronParams, like: Rows<'_>, seed: u64) -> Result<Self> {
        let q = outputs(params.classes);
        Ok(Self {
            vectors: like.gather(&[])?,
            coefficients: try_zero_matrix("the coefficients", (0, q))?,
            born: Vec::new(),
            matrix: try_zero_matrix("kernel values of a pool", (0, 0))?,
            scores: try_zero_matrix("the outputs at a pool", (0, q))?,
            deviation: 0.0,
            random: seed,
            seen: 0,
            mistakes: 0,
        })
    }

    pub(super) fn check(&self, params: &PerceptronParams) -> Result<()> {
        let (m, q) = (self.vectors.view().rows(), outputs(params.classes));
        Error::check_len("born of the state (one for each vector)", m, self.born.len())?;
        let rule = format!("at least {m}, the number of vectors that the model has already");
        Error::check_param(params.has_room_for(m), "budget", params.budget, rule)?;
        let pairs = if params.policy.keeps_pairs() { m } else { 0 };
        let scored = if params.policy.keeps_scores() { m } else { 0 };
        for (what, expected, found) in [
            ("coefficients of the state", (m, q), self.coefficients.dim()),
            ("matrix of the state", (pairs, pairs), self.matrix.dim()),
            ("scores of the state", (scored, q), self.scores.dim()),
        ] {
            Error::check_shape(what, expected, found)?;
        }
        check_counts(self.seen, self.mistakes)?;
        let last = self.born.iter().copied().max().unwrap_or(0);
        Error::check_param(last <= self.seen, "born", last, format!("at most {}, the rows seen", self.seen))?;
        self.vectors.view().check_finite("vectors of the state")?;
        for (what, matrix) in [
            ("coefficients of the state", &self.coefficients),
            ("matrix of the state", &self.matrix),
            ("scores of the state", &self.scores),
        ] {
            Error::check_finite(what, matrix.iter().copied(), matrix.ncols())?;
        }
        Error::check_finite("deviation of the state", [self.deviation], 1)
    }
}

/// A perceptron that learns from a piece of a stream.
pub(super) struct Learner<'a, T> {
    pub(super) params: PerceptronParams,
    /// Vectors of earlier pieces, then the rows of this one: what the pool's vectors were, to the last digit.
    known: Rows<'a>,
    piece: Rows<'a>,
    /// Which of these each vector of the pool is, and the current row.
    origin: Vec<usize>,
    current: usize,
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
    lines: PoolWorkspace<T>,
}

impl<'a, T: Real> Learner<'a, T> {
    pub(super) fn new(
        params: &PerceptronParams,
        state: &'a PerceptronState,
        piece: Rows<'a>,
    ) -> Result<Self> {
        let vectors = state.vectors.view();
        let (sparse, features) = (vectors.is_sparse(), vectors.cols());
        let formula = Formula::of(&params.kernel, sparse)?;
        let mut learner = Self {
            params: *params,
            piece,
            origin: (0..vectors.rows()).try_collect_vec()?,
            current: 0,
            pool: VectorPool::new(features, sparse),
            coefficients: state
                .coefficients
                .columns()
                .into_iter()
                .map(|column| column.iter().copied().try_collect_vec())
                .try_collect_results()?,
            born: state.born.try_to_vec()?,
            random: Random::new(state.random),
            seen: state.seen,
            mistakes: state.mistakes,
            deviation: state.deviation,
            values: Vec::new(),
            row: formula.row(features)?,
            other: formula.row(features)?,
            formula,
            own: Vec::new(),
            lines: PoolWorkspace::new(),
            known: vectors,
        };
        for i in 0..learner.origin.len() {
            learner.row.load(&learner.known, i);
            learner.pool.push(&learner.row)?;
            learner.own.try_push(learner.self_value())?;
        }
        Ok(learner)
    }

    /// The next row of the piece becomes the current one.
    pub(super) fn load(&mut self, row: usize) {
        self.current = self.known.rows() + row;
        self.row.load(&self.piece, row);
    }

    /// A vector of the pool.
    pub(super) fn read(&self, at: usize, row: &mut RowBuffer<T>) {
        load(&self.known, &self.piece, self.origin[at], row);
    }

    /// Multiplications of the policy at a mistake, beside kernel values.
    pub(super) fn cost_of_a_mistake(&self) -> u64 {
        let m = self.pool.len() as u64;
        match self.params.policy {
            Policy::Tightest => m * m * self.coefficients.len() as u64,
            Policy::Projectron { .. } => m * m,
            _ => m,
        }
    }

    /// k(x, x) of the current row.
    pub(super) fn self_value(&self) -> f64 {
        self.formula.self_value(&self.row)
    }

    /// Kernel values of the current row against the pool.
    pub(super) fn fill_values(&mut self) -> Result<()> {
        let values = self.pool.values(&self.formula, &self.row, &mut self.lines)?;
        self.values.clear();
        self.values.try_extend(values.iter().map(|v| v.to_f64()))?;
        Ok(())
    }

    /// Kernel values of one vector of the pool against all.
    pub(super) fn values_of(&mut self, at: usize, out: &mut Vec<f64>) -> Result<()> {
        load(&self.known, &self.piece, self.origin[at], &mut self.other);
        let values = self.pool.values(&self.formula, &self.other, &mut self.lines)?;
        out.clear();
        out.try_extend(values.iter().map(|v| v.to_f64()))?;
        Ok(())
    }

    /// The current row joins the pool.
    pub(super) fn push(&mut self, update: Update) -> Result<()> {
        self.pool.push(&self.row)?;
        self.origin.try_push(self.current)?;
        self.own.try_push(self.self_value())?;
        self.born.try_push(self.seen)?;
        self.coefficients.iter_mut().try_for_each(|column| column.try_push(0.0))?;
        for (output, value) in update.coefficients() {
            self.coefficients[output][self.pool.len() - 1] = value;
        }
        Ok(())
    }

    /// The current row takes the place of vector `at`, its coefficients times `scale`.
    pub(super) fn replace(&mut self, at: usize, update: Update, scale: f64) -> Result<()> {
        self.pool.replace(at, &self.row)?;
        self.origin[at] = self.current;
        self.own[at] = self.self_value();
        self.born[at] = self.seen;
        self.coefficients.iter_mut().for_each(|column| column[at] = 0.0);
        for (output, value) in update.coefficients() {
            self.coefficients[output][at] = scale * value;
        }
        Ok(())
    }
}

/// Row `at` of two stretches of rows, one behind the other.
fn load<T: Real>(known: &Rows<'_>, piece: &Rows<'_>, at: usize, row: &mut RowBuffer<T>) {
    match at.checked_sub(known.rows()) {
        None => row.load(known, at),
        Some(place) => row.load(piece, place),
    }
}
