//! Splitting a leaf (sections 3 and 4): a partition z of its sampled rows by a branching rule, and selections p and q
//! of its m vectors for the left and the right child.
//!
//! With G_c the (n, m) matrix a_jc K_ij of output c and r_c = G_c 1: c_p(x_i) = sum_c (G_c p - r_c)_i^2, and the cost of a
//! split is sum_i z_i c_p(x_i) + (1 - z_i) c_q(x_i) (2), over all outputs together. For fixed z the selection is the
//! program of `selection` with Q_L = (A A') o (K' diag(z) K) and w_L = Q_L 1; Q_R = Q - Q_L.
//!
//! The joint strategies alternate (algorithm 3) from random p and q while the cost falls; selections are fractional
//! until the end. Cost: O(n m^2 / 4) and the programs for a round; BAL with the programs takes as much for each vector.
//!
//! Invariant: every partition has rows on both sides; a leaf that no rule divides is not split.

use super::node::projection;
use super::partition::{
    Cut, Division, entropy, explaining_direction, halved, median, random_direction, smallest_half,
};
use super::program::{Program, box_budget_program, lower_products};
use super::selection::{improve, rounded};
use super::strategy::{Partition, Selection, Strategy};
use crate::context::WorkCounter;
use crate::error::{Error, Result};
use crate::kernels::RowBuffer;
use crate::memory::{try_to_matrix, try_vec, try_zero_matrix, try_zeros};
use crate::random::Random;
use crate::simd::Real;
use crate::simd::blas::axpy;
use ndarray::Array2;

/// Maximum number of rounds of algorithm 3; it usually ends after a few.
const MAX_ROUNDS: usize = 30;
/// Minimum relative decrease of the cost in a round.
const MIN_DECREASE: f64 = 1e-4;
/// Maximum number of vectors for which the rounds and the programs are solved to the tolerance.
const MAX_EXACT_VECTORS: usize = 256;
/// Number of SMO steps for each vector if there are more.
const SMO_STEPS_PER_VECTOR: usize = 10;
/// Relative tolerance of the programs.
const PROGRAM_TOLERANCE: f64 = 1e-5;

/// A split of a leaf.
pub(super) struct Split<T> {
    pub(super) cut: Cut<T>,
    /// True for the sampled rows that go left.
    pub(super) rows: Vec<bool>,
    /// True for the vectors that a child inherits.
    pub(super) left: Vec<bool>,
    pub(super) right: Vec<bool>,
}

/// The problem of splitting a leaf.
pub(super) struct Problem<'a, T> {
    /// The n sampled rows and their classes.
    pub(super) rows: &'a [RowBuffer<T>],
    pub(super) labels: &'a [u32],
    /// The vectors as rows, for induced selections.
    pub(super) vectors: &'a [RowBuffer<T>],
    /// K, column after column: n values for each of the m vectors.
    pub(super) kernel: &'a [f64],
    /// Kernel values between the vectors, (m, m), for induced selections.
    pub(super) gram: &'a [f64],
    /// A, (m, q).
    pub(super) coefficients: &'a [f64],
    pub(super) outputs: usize,
    /// C.
    pub(super) max_vectors: usize,
    pub(super) draws: usize,
    /// r_c of each output, output after output, and Q of all rows: empty before `prepare`.
    pub(super) target: Vec<f64>,
    pub(super) total: Array2<f64>,
}

/// Fractional or whole selections and their cost.
struct Selections {
    left: Vec<f64>,
    right: Vec<f64>,
    cost: f64,
}

impl<T: Real> Problem<'_, T> {
    fn n(&self) -> usize {
        self.rows.len()
    }

    fn m(&self) -> usize {
        self.coefficients.len() / self.outputs
    }

    fn column(&self, j: usize) -> &[f64] {
        &self.kernel[j * self.n()..(j + 1) * self.n()]
    }

    /// Returns (G_c p)_i of each output, output after output.
    fn fitted(&self, p: &[f64]) -> Result<Vec<f64>> {
        let n = self.n();
        let mut out = try_vec![0.0; n * self.outputs]?;
        for (j, &p) in p.iter().enumerate().filter(|(_, p)| **p != 0.0) {
            for (c, out) in out.chunks_exact_mut(n).enumerate() {
                let a = self.coefficients[j * self.outputs + c];
                if a != 0.0 {
                    axpy(p * a, self.column(j), out);
                }
            }
        }
        Ok(out)
    }

    /// Returns c_p of each row.
    fn costs(&self, p: &[f64]) -> Result<Vec<f64>> {
        let mut out = vec![0.0; self.n()];
        let fitted = self.fitted(p)?;
        for (fitted, target) in fitted.chunks_exact(self.n()).zip(self.target.chunks_exact(self.n())) {
            for (out, (f, r)) in out.iter_mut().zip(fitted.iter().zip(target)) {
                *out += (f - r) * (f - r);
            }
        }
        Ok(out)
    }

    /// Returns Q of the rows that `z` marks, (m, m).
    fn quadratic(&self, z: &[bool], counter: &mut WorkCounter<'_>) -> Result<Array2<f64>> {
        let (m, q) = (self.m(), self.outputs);
        let chosen: Vec<usize> = (0..self.n()).filter(|&i| z[i]).collect();
        let size = chosen.len();
        let mut columns = try_zeros("kernel values of a split", m * size)?;
        for (j, column) in columns.chunks_exact_mut(size.max(1)).enumerate() {
            let all = self.column(j);
            for (to, &i) in column.iter_mut().zip(&chosen) {
                *to = all[i];
            }
        }
        let weight = |j: usize, k: usize| {
            let (a, b) = (&self.coefficients[j * q..(j + 1) * q], &self.coefficients[k * q..(k + 1) * q]);
            a.iter().zip(b).map(|(a, b)| a * b).sum()
        };
        let mut out = lower_products(&columns, m, weight, counter)?;
        for j in 0..m {
            counter.charge(8 * j as u64)?;
            for k in 0..j {
                out[[k, j]] = out[[j, k]];
            }
        }
        Ok(out)
    }

    /// Computes the target and Q of all rows.
    pub(super) fn prepare(mut self, counter: &mut WorkCounter<'_>) -> Result<Self> {
        self.target = self.fitted(&vec![1.0; self.m()])?;
        self.total = self.quadratic(&vec![true; self.n()], counter)?;
        Ok(self)
    }

    /// Returns the split, or None if no rule divides the rows.
    pub(super) fn split(
        &self,
        strategy: Strategy,
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Split<T>>> {
        if self.n() < 2 {
            return Ok(None);
        }
        let division = match strategy {
            Strategy::JointLinear | Strategy::JointNearest => self.joint(strategy, random, counter)?,
            Strategy::Heuristic(partition, selection) => {
                let divided = match partition {
                    Partition::Explaining => halved(self.rows, explaining_direction(self.rows, &self.target)),
                    Partition::RandomHyperplane => halved(self.rows, random_direction(self.rows, random)),
                    Partition::Balanced => self.balanced(selection, random, counter)?,
                    Partition::Entropy => self.purest(),
                };
                let select = |(cut, rows): Division<T>| {
                    let selected = self.select(selection, &cut, &rows, random, counter)?;
                    Ok::<_, Error>(((cut, rows), selected))
                };
                divided.map(select).transpose()?
            }
        };
        let Some(((cut, rows), selected)) = division else { return Ok(None) };
        let (left, right) = self.sides(&rows, counter)?;
        let left = rounded(&left.program(), self.draws, &selected.left, random, counter)?;
        let right = rounded(&right.program(), self.draws, &selected.right, random, counter)?;
        Ok(Some(Split { cut, rows, left, right }))
    }

    /// Returns the best C vectors for all rows, for a leaf that cannot be split.
    pub(super) fn reduce(&self, random: &mut Random, counter: &mut WorkCounter<'_>) -> Result<Vec<bool>> {
        let m = self.m();
        let side = Side::new(try_to_matrix(self.total.view())?, self.max_vectors);
        let mut p = vec![self.max_vectors.min(m) as f64 / m as f64; m];
        side.relax(&mut p, counter)?;
        rounded(&side.program(), self.draws, &p, random, counter)
    }

    /// Returns the programs of the left and of the right rows.
    fn sides(&self, z: &[bool], counter: &mut WorkCounter<'_>) -> Result<(Side, Side)> {
        let left = self.quadratic(z, counter)?;
        let mut right = try_zero_matrix("the program of a split", self.total.dim())?;
        ndarray::Zip::from(&mut right).and(&self.total).and(&left).for_each(|to, a, b| *to = a - b);
        Ok((Side::new(left, self.max_vectors), Side::new(right, self.max_vectors)))
    }

    /// Solves both programs from the current selections; returns the cost.
    fn solve(
        &self,
        z: &[bool],
        left: &mut [f64],
        right: &mut [f64],
        counter: &mut WorkCounter<'_>,
    ) -> Result<f64> {
        let (of_left, of_right) = self.sides(z, counter)?;
        let (mut left_counter, mut right_counter) = (counter.fork(), counter.fork());
        let (left_result, right_result) = counter
            .context()
            .join(|| of_left.relax(left, &mut left_counter), || of_right.relax(right, &mut right_counter));
        left_result.and(right_result)?;
        self.cost(z, left, right)
    }

    /// Returns the cost (2) of a split.
    fn cost(&self, z: &[bool], left: &[f64], right: &[f64]) -> Result<f64> {
        let (p, q) = (self.costs(left)?, self.costs(right)?);
        Ok(z.iter().zip(p.iter().zip(&q)).map(|(&z, (p, q))| if z { p } else { q }).sum())
    }

    /// Alternates partition and selections (algorithm 3).
    fn joint(
        &self,
        strategy: Strategy,
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<(Division<T>, Selections)>> {
        let mut draw = || {
            let p: Vec<f64> = (0..self.m()).map(|_| random.uniform()).collect();
            let scale = (self.max_vectors as f64 / p.iter().sum::<f64>()).min(1.0);
            p.into_iter().map(|p| p * scale).collect::<Vec<_>>()
        };
        let (mut left, mut right) = (draw(), draw());
        let mut best: Option<(Division<T>, Selections)> = None;
        for _ in 0..if self.m() > MAX_EXACT_VECTORS { MAX_ROUNDS / 6 } else { MAX_ROUNDS } {
            let (p, q) = (self.costs(&left)?, self.costs(&right)?);
            let gains: Vec<f64> = p.iter().zip(&q).map(|(p, q)| p - q).collect();
            let divided = match strategy {
                Strategy::JointNearest => Some((Cut::Nearest, smallest_half(&gains))),
                _ => self.hyperplane(&gains),
            };
            let Some((cut, rows)) = divided else { break };
            let cost = self.solve(&rows, &mut left, &mut right, counter)?;
            if best.as_ref().is_some_and(|(_, best)| cost >= best.cost * (1.0 - MIN_DECREASE)) {
                break;
            }
            let selected = Selections { left: left.clone(), right: right.clone(), cost };
            best = Some(((cut, rows), selected));
        }
        Ok(best)
    }

    /// Solves LP_w of section 3.3, with the threshold at the median.
    fn hyperplane(&self, gains: &[f64]) -> Option<Division<T>> {
        let mut d = vec![0.0; self.rows[0].features()];
        for (row, gain) in self.rows.iter().zip(gains) {
            let length = row.squared_norm().sqrt();
            if length > 0.0 {
                row.for_each(|k, v| d[k] -= gain * v.to_f64() / length);
            }
        }
        halved(self.rows, d)
    }

    /// Divides the rows by their kernel values with vector j (algorithm 4).
    fn by_vector(&self, j: usize) -> Option<Division<T>> {
        let threshold = median(self.column(j))?;
        let rows = self.column(j).iter().map(|k| *k <= threshold).collect::<Vec<_>>();
        Some((Cut::Vector { vector: j, threshold }, rows))
    }

    /// Finds the vector whose split costs least (BAL).
    fn balanced(
        &self,
        selection: Selection,
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Division<T>>> {
        let seeds: Vec<u64> = (0..self.m()).map(|_| random.bits()).collect();
        let cost = |j: usize, counter: &mut WorkCounter<'_>| {
            let Some((cut, rows)) = self.by_vector(j) else { return Ok(None) };
            let selected = self.select(selection, &cut, &rows, &mut Random::new(seeds[j]), counter)?;
            Ok(Some((j, selected.cost)))
        };
        let (n, m) = (self.n() as u64, self.m() as u64);
        let work = if selection == Selection::Optimised { n * m * m } else { n * m * self.outputs as u64 };
        let mut costs = Vec::with_capacity(self.m());
        counter.for_each_batch(self.m(), work, |part, counter| {
            // A single cost is large: it distributes its own work and checks the monitor.
            costs.extend(match part.len() {
                1 => vec![cost(part.start, counter)],
                count => {
                    let ctx = counter.context();
                    ctx.map(count, |i| cost(part.start + i, &mut ctx.silent().counter("", 0)))
                }
            });
            Ok(())
        })?;
        let costs: Vec<(usize, f64)> =
            costs.into_iter().filter_map(Result::transpose).collect::<Result<_>>()?;
        let best = costs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(best.and_then(|(j, _)| self.by_vector(j)))
    }

    /// Finds the vector with the purest side (ENT).
    fn purest(&self) -> Option<Division<T>> {
        let score = |rows: &[bool]| {
            let left = entropy(self.labels.iter().zip(rows).filter(|(_, z)| **z).map(|(l, _)| *l));
            let right = entropy(self.labels.iter().zip(rows).filter(|(_, z)| !**z).map(|(l, _)| *l));
            left.min(right)
        };
        let mut purest: Option<(usize, f64)> = None;
        for j in 0..self.m() {
            let Some((_, rows)) = self.by_vector(j) else { continue };
            let score = score(&rows);
            if purest.is_none_or(|(_, least)| score.total_cmp(&least).is_lt()) {
                purest = Some((j, score));
            }
        }
        purest.and_then(|(j, _)| self.by_vector(j))
    }

    /// Returns the selections for a partition: fractional for OPTS, otherwise whole.
    fn select(
        &self,
        selection: Selection,
        cut: &Cut<T>,
        rows: &[bool],
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Selections> {
        let (m, max_vectors) = (self.m(), self.max_vectors.min(self.m()));
        let (mut left, mut right) = (vec![0.0; m], vec![0.0; m]);
        match selection {
            Selection::Optimised => {
                left.fill(max_vectors as f64 / m as f64);
                right.fill(max_vectors as f64 / m as f64);
                let cost = self.solve(rows, &mut left, &mut right, counter)?;
                return Ok(Selections { left, right, cost });
            }
            Selection::Random => {
                for side in [&mut left, &mut right] {
                    for j in random.sample(m, max_vectors) {
                        side[j] = 1.0;
                    }
                }
            }
            Selection::Induced => {
                let mut left_over = [max_vectors; 2];
                for j in (0..m).rev() {
                    let goes_left = match cut {
                        Cut::Linear { direction, threshold } => {
                            projection(direction, &self.vectors[j]) > *threshold
                        }
                        Cut::Vector { vector, threshold } => self.gram[vector * m + j] <= *threshold,
                        Cut::Nearest => false,
                    };
                    let (side, remaining) = if goes_left {
                        (&mut left, &mut left_over[0])
                    } else {
                        (&mut right, &mut left_over[1])
                    };
                    if *remaining > 0 {
                        side[j] = 1.0;
                        *remaining -= 1;
                    }
                }
            }
        }
        let cost = self.cost(rows, &left, &right)?;
        Ok(Selections { left, right, cost })
    }
}

/// The program of one child.
struct Side {
    q: Array2<f64>,
    /// Q 1.
    w: Vec<f64>,
    max_vectors: f64,
}

impl Side {
    fn new(q: Array2<f64>, max_vectors: usize) -> Self {
        // Summed in order; ndarray does not.
        let w = q.rows().into_iter().map(|row| row.iter().sum()).collect::<Vec<_>>();
        Self { q, w, max_vectors: max_vectors as f64 }
    }

    fn program(&self) -> Program<'_> {
        Program { q: self.q.view(), w: &self.w, max_vectors: self.max_vectors }
    }

    /// Solves the relaxed program: exactly, or by some steps from `p` for the many vectors of a large expansion, whose
    /// children are split again.
    fn relax(&self, p: &mut [f64], counter: &mut WorkCounter<'_>) -> Result<()> {
        if p.len() > MAX_EXACT_VECTORS {
            return improve(&self.program(), PROGRAM_TOLERANCE, SMO_STEPS_PER_VECTOR, p, counter);
        }
        box_budget_program(&self.program(), PROGRAM_TOLERANCE, p)?;
        Ok(())
    }
}
