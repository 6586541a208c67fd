//! The pool of a perceptron: as it is saved between two pieces of a stream ([`PerceptronState`]), and as the loop over the
//! rows and the policies change it ([`Learner`]).
//!
//! Invariant: vector i of the pool is row `origin[i]` of the earlier vectors followed by the rows of this piece, to the
//! last digit. Cost: O(d) to add or replace a vector, O(m d) for its kernel values.

use super::params::{PerceptronParams, Policy, check_counts};
use super::update::{Update, outputs};
use crate::data::{OwnedRows, Rows, copy_columns};
use crate::error::{Error, Result};
use crate::kernels::{Formula, PoolWorkspace, RowBuffer, RowWriter, VectorPool};
use crate::linalg::matrix_of_rows;
use crate::memory::{push_row, try_matrix};
use crate::random::Random;
use crate::simd::Real;
use ndarray::Array2;

/// The state of a stream: everything that later rows depend on. Before the first row it has no vectors, and the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct PerceptronState {
    /// Vectors of the pool, m rows.
    pub rows: OwnedRows,
    /// B, (m, q).
    pub coefficients: Array2<f64>,
    /// Number of rows seen before each vector came, (m,).
    pub born: Vec<u64>,
    /// The policy's values for pairs of vectors, (m, m) or (0, 0): the Gram matrix or its Cholesky factor.
    pub matrix: Array2<f64>,
    /// The policy's values for each vector, (m, q) or (0, q): the outputs at the vectors.
    pub scores: Array2<f64>,
    /// The Forgetron's sum of deviations.
    pub deviation: f64,
    /// State of the random generator; initially the seed.
    pub random: u64,
    /// Number of rows of the stream so far.
    pub seen: u64,
    /// Number of rows that were predicted wrongly before they were learned from.
    pub mistakes: u64,
}

impl PerceptronState {
    /// Returns an empty pool for a stream of rows laid out like those of `like`, whose values are not used.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(params: &PerceptronParams, like: Rows<'_>, seed: u64) -> Result<Self> {
        let q = outputs(params.classes);
        Ok(Self {
            rows: like.gather(&[])?,
            coefficients: Array2::zeros((0, q)),
            born: Vec::new(),
            matrix: Array2::zeros((0, 0)),
            scores: Array2::zeros((0, q)),
            deviation: 0.0,
            random: seed,
            seen: 0,
            mistakes: 0,
        })
    }

    /// Checks the arrays against each other and the parameters.
    pub(super) fn check(&self, params: &PerceptronParams) -> Result<()> {
        let (m, q) = (self.rows.view().rows(), outputs(params.classes));
        Error::check_len("born of the state (one for each vector)", m, self.born.len())?;
        let rule = format!("at least {m}, the number of vectors that the model has already");
        Error::check_param(params.allows(m), "budget", params.budget, rule)?;
        let pairs = if params.policy.keeps_pairs() { m } else { 0 };
        let scored = if params.policy.keeps_scores() { m } else { 0 };
        for (what, expected, actual) in [
            ("coefficients of the state", (m, q), self.coefficients.dim()),
            ("matrix of the state", (pairs, pairs), self.matrix.dim()),
            ("scores of the state", (scored, q), self.scores.dim()),
        ] {
            Error::check_shape(what, expected, actual)?;
        }
        check_counts(self.seen, self.mistakes)?;
        let last = self.born.iter().copied().max().unwrap_or(0);
        Error::check_param(last <= self.seen, "born", last, format!("at most {}, the rows seen", self.seen))?;
        self.rows.view().check_finite("vectors of the state")?;
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
    /// The vectors of earlier pieces.
    earlier: Rows<'a>,
    /// The rows of this piece.
    piece: Rows<'a>,
    /// Index of each vector of the pool among the rows of `earlier` followed by those of `piece`.
    origin: Vec<usize>,
    /// The same of the current row.
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
    /// Buffer for a vector of the pool.
    other: RowBuffer<T>,
    /// k(z, z) of each vector.
    pub(super) self_values: Vec<f64>,
    workspace: PoolWorkspace<T>,
}

impl<'a, T: Real> Learner<'a, T> {
    /// Returns the learner of a state for a piece of rows.
    pub(super) fn new(
        params: &PerceptronParams,
        state: &'a PerceptronState,
        piece: Rows<'a>,
    ) -> Result<Self> {
        let vectors = state.rows.view();
        let (sparse, features) = (vectors.is_sparse(), vectors.cols());
        let formula = Formula::of(&params.kernel, sparse)?;
        let mut learner = Self {
            params: *params,
            piece,
            origin: (0..vectors.rows()).collect(),
            current: 0,
            pool: VectorPool::new(features, sparse),
            coefficients: copy_columns(state.coefficients.view())?,
            born: state.born.clone(),
            random: Random::new(state.random),
            seen: state.seen,
            mistakes: state.mistakes,
            deviation: state.deviation,
            values: Vec::new(),
            row: formula.row(features),
            other: formula.row(features),
            formula,
            self_values: Vec::new(),
            workspace: PoolWorkspace::new(),
            earlier: vectors,
        };
        for i in 0..learner.origin.len() {
            learner.row.load(&learner.earlier, i);
            learner.pool.push(&learner.row)?;
            learner.self_values.push(learner.self_value());
        }
        Ok(learner)
    }

    /// Makes a row of the piece the current one.
    pub(super) fn load(&mut self, row: usize) {
        self.current = self.earlier.rows() + row;
        self.row.load(&self.piece, row);
    }

    /// Returns the approximate number of multiplications of the policy for a mistake, kernel values excluded.
    pub(super) fn mistake_cost(&self) -> u64 {
        let m = self.pool.len() as u64;
        match self.params.policy {
            Policy::Tightest => m * m * self.coefficients.len() as u64,
            Policy::Projectron { .. } => m * m,
            _ => m,
        }
    }

    /// Returns k(x, x) of the current row.
    pub(super) fn self_value(&self) -> f64 {
        self.formula.self_value(&self.row)
    }

    /// Computes the kernel values of the current row against the pool.
    pub(super) fn fill_values(&mut self) {
        let values = self.pool.values(&self.formula, &self.row, &mut self.workspace);
        self.values.clear();
        self.values.extend(values.iter().map(|v| v.to_f64()));
    }

    /// Computes the kernel values of a vector of the pool against all.
    pub(super) fn kernel_row(&mut self, at: usize, out: &mut Vec<f64>) {
        self.load_vector(at);
        let values = self.pool.values(&self.formula, &self.other, &mut self.workspace);
        out.clear();
        out.extend(values.iter().map(|v| v.to_f64()));
    }

    /// Adds the current row to the pool.
    pub(super) fn push(&mut self, update: Update) -> Result<()> {
        self.pool.push(&self.row)?;
        self.origin.push(self.current);
        self.self_values.push(self.self_value());
        self.born.push(self.seen);
        push_row(&mut self.coefficients, std::iter::repeat(0.0))?;
        for (output, value) in update.coefficients() {
            self.coefficients[output][self.pool.len() - 1] = value;
        }
        Ok(())
    }

    /// Replaces vector `at` by the current row, its coefficients times `scale`.
    pub(super) fn replace(&mut self, at: usize, update: Update, scale: f64) -> Result<()> {
        self.pool.replace(at, &self.row)?;
        self.origin[at] = self.current;
        self.self_values[at] = self.self_value();
        self.born[at] = self.seen;
        self.coefficients.iter_mut().for_each(|column| column[at] = 0.0);
        for (output, value) in update.coefficients() {
            self.coefficients[output][at] = scale * value;
        }
        Ok(())
    }

    /// Loads a vector of the pool into the buffer.
    fn load_vector(&mut self, at: usize) {
        match self.origin[at].checked_sub(self.earlier.rows()) {
            None => self.other.load(&self.earlier, self.origin[at]),
            Some(row) => self.other.load(&self.piece, row),
        }
    }

    /// Returns the state after the piece, given the policy's values for pairs of vectors and the outputs at the vectors.
    ///
    /// Rows of `pairs` may end at the diagonal. `scores` has one column per output, or none if they are not kept.
    pub(super) fn into_state(
        mut self,
        pairs: &[Vec<f64>],
        scores: &[Vec<f64>],
        is_double: bool,
    ) -> Result<PerceptronState> {
        let (m, q) = (self.pool.len(), self.coefficients.len());
        let mut writer = RowWriter::new(self.row.features(), self.row.is_sparse(), is_double);
        for at in 0..m {
            self.load_vector(at);
            writer.push(&self.other)?;
        }
        let scored = scores.first().map_or(0, Vec::len);
        let matrix = matrix_of_rows(pairs)?;
        Ok(PerceptronState {
            rows: writer.finish(),
            coefficients: try_matrix((m, q), |(i, j)| self.coefficients[j][i])?,
            born: self.born,
            matrix,
            scores: try_matrix((scored, q), |(i, j)| scores[j][i])?,
            deviation: self.deviation,
            random: self.random.state(),
            seen: self.seen,
            mistakes: self.mistakes,
        })
    }
}
