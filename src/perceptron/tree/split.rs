//! How a leaf is split (sections 3 and 4): a partition z of its sampled rows by a branching rule, and selections p and q
//! of its m vectors for the left and the right child.
//!
//! With G_c the (n, m) matrix a_jc K_ij of output c and r_c = G_c 1: c_p(x_i) = sum_c (G_c p - r_c)_i^2, and the cost of a
//! split is sum_i z_i c_p(x_i) + (1 - z_i) c_q(x_i) (2), over all outputs together. For fixed z the selection is the
//! program of `selection` with Q_L = (A A') o (K' diag(z) K) and w_L = Q_L 1; Q_R = Q - Q_L.
//!
//! The joint strategies alternate (algorithm 3) from random p and q while the cost falls; selections are fractional
//! until the end. Cost: a round O(n m^2 / 4) and the programs; BAL with the programs does so for each vector.
//!
//! Invariant: every partition has rows on both sides; where no rule can do that there is no split.

use super::interior::box_budget_program;
use super::node::projection;
use super::program::{Program, lower_products};
use super::selection::{improve, rounded};
use super::strategy::{Partition, Selection, Strategy};
use crate::context::WorkCounter;
use crate::error::{Error, Result};
use crate::kernels::RowBuffer;
use crate::memory::{TryCollect, TryToVec, try_vec, try_with_capacity, try_zero_matrix, try_zeros};
use crate::random::Random;
use crate::simd::Real;
use crate::simd::blas::axpy;
use ndarray::Array2;

/// Rounds of algorithm 3, at most; it mostly ends after a few.
const ROUNDS: usize = 30;
/// Part of the cost by which a round must be better.
const PROGRESS: f64 = 1e-4;
/// Vectors above which neither the rounds nor their programs go on to the end.
const LARGE: usize = 256;
/// Pair steps for each of so many vectors.
const PAIR_STEPS: usize = 10;
/// Tolerance of the programs, relative.
const TOLERANCE: f64 = 1e-5;

/// A branching rule in terms of the leaf.
pub(super) enum Cut<T> {
    /// Left where w'x/|x| > threshold.
    Linear { direction: Vec<T>, threshold: f64 },
    /// Left where k(x, b_j) <= threshold.
    Vector { vector: usize, threshold: f64 },
    /// Left where the nearest sampled row went left.
    Nearest,
}

/// A branching rule, and which sampled rows it sends left.
type Divided<T> = (Cut<T>, Vec<bool>);

/// A split of a leaf.
pub(super) struct Split<T> {
    pub(super) cut: Cut<T>,
    /// Which sampled rows went left.
    pub(super) rows: Vec<bool>,
    /// Which vectors the children take over.
    pub(super) left: Vec<bool>,
    pub(super) right: Vec<bool>,
}

/// A leaf that is to be split.
pub(super) struct Problem<'a, T> {
    /// n sampled rows and their classes.
    pub(super) rows: &'a [RowBuffer<T>],
    pub(super) labels: &'a [u32],
    /// The vectors as rows, where a selection is induced.
    pub(super) vectors: &'a [RowBuffer<T>],
    /// K, column after column: n values for each of the m vectors.
    pub(super) kernel: &'a [f64],
    /// Kernel values between the vectors, (m, m), where a selection is induced.
    pub(super) gram: &'a [f64],
    /// A, (m, q).
    pub(super) coefficients: &'a [f64],
    pub(super) outputs: usize,
    /// C.
    pub(super) most: usize,
    pub(super) draws: usize,
    /// r_c of each output, output after output, and Q of all rows: empty before `ready`.
    pub(super) target: Vec<f64>,
    pub(super) total: Array2<f64>,
}

/// Fractional or whole selections and what they cost.
struct Selected {
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

    /// sum_c (G_c p)_i of each output, output after output.
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

    /// c_p of each row.
    fn costs(&self, p: &[f64]) -> Result<Vec<f64>> {
        let mut out = try_vec![0.0; self.n()]?;
        let fitted = self.fitted(p)?;
        for (fitted, target) in fitted.chunks_exact(self.n()).zip(self.target.chunks_exact(self.n())) {
            for (out, (f, r)) in out.iter_mut().zip(fitted.iter().zip(target)) {
                *out += (f - r) * (f - r);
            }
        }
        Ok(out)
    }

    /// Q of the rows that `z` marks, (m, m).
    fn quadratic(&self, z: &[bool], counter: &mut WorkCounter<'_>) -> Result<Array2<f64>> {
        let (m, q) = (self.m(), self.outputs);
        let chosen: Vec<usize> = (0..self.n()).filter(|&i| z[i]).try_collect_vec()?;
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

    /// Fills in what all rows together say.
    pub(super) fn ready(mut self, counter: &mut WorkCounter<'_>) -> Result<Self> {
        self.target = self.fitted(&try_vec![1.0; self.m()]?)?;
        self.total = self.quadratic(&try_vec![true; self.n()]?, counter)?;
        Ok(self)
    }

    /// The split, if a rule divides the rows.
    pub(super) fn split(
        &self,
        strategy: Strategy,
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Split<T>>> {
        if self.n() < 2 {
            return Ok(None);
        }
        let found = match strategy {
            Strategy::JointLinear | Strategy::JointNearest => self.joint(strategy, random, counter)?,
            Strategy::Heuristic(partition, selection) => {
                let divided = match partition {
                    Partition::RandomHyperplane => self.random_hyperplane(random)?,
                    Partition::Balanced => self.balanced(selection, random, counter)?,
                    Partition::Entropy => self.purest()?,
                };
                let select = |(cut, rows): Divided<T>| {
                    let selected = self.select(selection, &cut, &rows, random, counter)?;
                    Ok::<_, Error>(((cut, rows), selected))
                };
                divided.map(select).transpose()?
            }
        };
        let Some(((cut, rows), selected)) = found else { return Ok(None) };
        let (left, right) = self.both(&rows, counter)?;
        let left = rounded(&left.program(), self.draws, &selected.left, random, counter)?;
        let right = rounded(&right.program(), self.draws, &selected.right, random, counter)?;
        Ok(Some(Split { cut, rows, left, right }))
    }

    /// The vectors that stay where the rows cannot be divided: the best C for all of them.
    pub(super) fn reduce(&self, random: &mut Random, counter: &mut WorkCounter<'_>) -> Result<Vec<bool>> {
        let m = self.m();
        let mut total = try_zero_matrix("the program of a split", self.total.dim())?;
        total.assign(&self.total);
        let side = Side::new(total, self.most)?;
        let mut p = try_vec![self.most.min(m) as f64 / m as f64; m]?;
        side.relax(&mut p, counter)?;
        rounded(&side.program(), self.draws, &p, random, counter)
    }

    /// The programs of the left and of the right rows.
    fn both(&self, z: &[bool], counter: &mut WorkCounter<'_>) -> Result<(Side, Side)> {
        let left = self.quadratic(z, counter)?;
        let mut right = try_zero_matrix("the program of a split", self.total.dim())?;
        ndarray::Zip::from(&mut right).and(&self.total).and(&left).for_each(|to, a, b| *to = a - b);
        Ok((Side::new(left, self.most)?, Side::new(right, self.most)?))
    }

    /// Solves both programs from where the selections are.
    fn solve(
        &self,
        z: &[bool],
        left: &mut [f64],
        right: &mut [f64],
        counter: &mut WorkCounter<'_>,
    ) -> Result<f64> {
        let sides = self.both(z, counter)?;
        sides.0.relax(left, counter)?;
        sides.1.relax(right, counter)?;
        self.cost(z, left, right)
    }

    /// (2)
    fn cost(&self, z: &[bool], left: &[f64], right: &[f64]) -> Result<f64> {
        let (p, q) = (self.costs(left)?, self.costs(right)?);
        Ok(z.iter().zip(p.iter().zip(&q)).map(|(&z, (p, q))| if z { p } else { q }).sum())
    }

    /// Algorithm 3.
    fn joint(
        &self,
        strategy: Strategy,
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<(Divided<T>, Selected)>> {
        let mut draw = || {
            let p: Vec<f64> = (0..self.m()).map(|_| random.uniform()).try_collect_vec()?;
            let scale = (self.most as f64 / p.iter().sum::<f64>()).min(1.0);
            p.into_iter().map(|p| p * scale).try_collect_vec()
        };
        let (mut left, mut right) = (draw()?, draw()?);
        let mut best: Option<(Divided<T>, Selected)> = None;
        for _ in 0..if self.m() > LARGE { ROUNDS / 6 } else { ROUNDS } {
            let (p, q) = (self.costs(&left)?, self.costs(&right)?);
            let gains: Vec<f64> = p.iter().zip(&q).map(|(p, q)| p - q).try_collect_vec()?;
            let divided = match strategy {
                Strategy::JointNearest => Some((Cut::Nearest, smallest_half(&gains)?)),
                _ => self.hyperplane(&gains)?,
            };
            let Some((cut, rows)) = divided else { break };
            let cost = self.solve(&rows, &mut left, &mut right, counter)?;
            if best.as_ref().is_some_and(|(_, best)| cost >= best.cost * (1.0 - PROGRESS)) {
                break;
            }
            let selected = Selected { left: left.try_to_vec()?, right: right.try_to_vec()?, cost };
            best = Some(((cut, rows), selected));
        }
        Ok(best)
    }

    /// LP_w of section 3.3 with its threshold at the median.
    fn hyperplane(&self, gains: &[f64]) -> Result<Option<Divided<T>>> {
        let mut d = try_vec![0.0; self.rows[0].features()]?;
        for (row, gain) in self.rows.iter().zip(gains) {
            let length = row.squared_norm().sqrt();
            if length > 0.0 {
                row.for_each(|k, v| d[k] -= gain * v.to_f64() / length);
            }
        }
        self.halved(d)
    }

    fn random_hyperplane(&self, random: &mut Random) -> Result<Option<Divided<T>>> {
        self.halved((0..self.rows[0].features()).map(|_| random.normal()).try_collect_vec()?)
    }

    fn halved(&self, d: Vec<f64>) -> Result<Option<Divided<T>>> {
        let length = d.iter().map(|v| v * v).sum::<f64>().sqrt();
        if !(length > 0.0) {
            return Ok(None);
        }
        let direction: Vec<T> = d.into_iter().map(|v| T::from_f64(v / length)).try_collect_vec()?;
        let values: Vec<f64> = self.rows.iter().map(|row| projection(&direction, row)).try_collect_vec()?;
        let Some(threshold) = median(&values)? else { return Ok(None) };
        let rows = values.iter().map(|v| *v > threshold).try_collect_vec()?;
        Ok(Some((Cut::Linear { direction, threshold }, rows)))
    }

    /// Algorithm 4's partition by vector j.
    fn by_vector(&self, j: usize) -> Result<Option<Divided<T>>> {
        let Some(threshold) = median(self.column(j))? else { return Ok(None) };
        let rows = self.column(j).iter().map(|k| *k <= threshold).try_collect_vec()?;
        Ok(Some((Cut::Vector { vector: j, threshold }, rows)))
    }

    fn balanced(
        &self,
        selection: Selection,
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Divided<T>>> {
        let seeds: Vec<u64> = (0..self.m()).map(|_| random.bits()).try_collect_vec()?;
        let cost = |j: usize, counter: &mut WorkCounter<'_>| {
            let Some((cut, rows)) = self.by_vector(j)? else { return Ok(None) };
            let selected = self.select(selection, &cut, &rows, &mut Random::new(seeds[j]), counter)?;
            Ok(Some((j, selected.cost)))
        };
        let (n, m) = (self.n() as u64, self.m() as u64);
        let work = if selection == Selection::Optimised { n * m * m } else { n * m * self.outputs as u64 };
        let mut costs = try_with_capacity("the costs of a split", self.m())?;
        counter.for_each_batch(self.m(), work, |part, counter| {
            // One alone is long: it spreads its own work, and looks.
            costs.extend(match part.len() {
                1 => vec![cost(part.start, counter)],
                count => {
                    let ctx = counter.context();
                    ctx.map(count, |i| cost(part.start + i, &mut ctx.silent().counter("", 0)))?
                }
            });
            Ok(())
        })?;
        let costs: Vec<(usize, f64)> =
            // small: one number per vector of a leaf
            costs.into_iter().filter_map(Result::transpose).collect::<Result<_>>()?;
        let best = costs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(Ok(None), |(j, _)| self.by_vector(j))
    }

    fn purest(&self) -> Result<Option<Divided<T>>> {
        let score = |rows: &[bool]| {
            let left = entropy(self.labels.iter().zip(rows).filter(|(_, z)| **z).map(|(l, _)| *l));
            let right = entropy(self.labels.iter().zip(rows).filter(|(_, z)| !**z).map(|(l, _)| *l));
            left.min(right)
        };
        let mut purest: Option<(usize, f64)> = None;
        for j in 0..self.m() {
            let Some((_, rows)) = self.by_vector(j)? else { continue };
            let score = score(&rows);
            if purest.is_none_or(|(_, least)| score.total_cmp(&least).is_lt()) {
                purest = Some((j, score));
            }
        }
        purest.map_or(Ok(None), |(j, _)| self.by_vector(j))
    }

    /// Selections for a partition: fractional for OPTS, whole else.
    fn select(
        &self,
        selection: Selection,
        cut: &Cut<T>,
        rows: &[bool],
        random: &mut Random,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Selected> {
        let (m, most) = (self.m(), self.most.min(self.m()));
        let (mut left, mut right) = (try_vec![0.0; m]?, try_vec![0.0; m]?);
        match selection {
            Selection::Optimised => {
                left.fill(most as f64 / m as f64);
                right.fill(most as f64 / m as f64);
                let cost = self.solve(rows, &mut left, &mut right, counter)?;
                return Ok(Selected { left, right, cost });
            }
            Selection::Random => {
                for side in [&mut left, &mut right] {
                    for j in random.sample(m, most)? {
                        side[j] = 1.0;
                    }
                }
            }
            Selection::Induced => {
                let mut room = [most; 2];
                for j in (0..m).rev() {
                    let goes_left = match cut {
                        Cut::Linear { direction, threshold } => {
                            projection(direction, &self.vectors[j]) > *threshold
                        }
                        Cut::Vector { vector, threshold } => self.gram[vector * m + j] <= *threshold,
                        Cut::Nearest => false,
                    };
                    let (side, room) =
                        if goes_left { (&mut left, &mut room[0]) } else { (&mut right, &mut room[1]) };
                    if *room > 0 {
                        side[j] = 1.0;
                        *room -= 1;
                    }
                }
            }
        }
        let cost = self.cost(rows, &left, &right)?;
        Ok(Selected { left, right, cost })
    }
}

/// The program of a side.
struct Side {
    q: Array2<f64>,
    /// Q 1
    w: Vec<f64>,
    most: f64,
}

impl Side {
    fn new(q: Array2<f64>, most: usize) -> Result<Self> {
        // Summed in their order, as ndarray's sums are not.
        let w = q.rows().into_iter().map(|row| row.iter().sum()).try_collect_vec()?;
        Ok(Self { q, w, most: most as f64 })
    }

    fn program(&self) -> Program<'_> {
        Program { q: self.q.view(), w: &self.w, most: self.most }
    }

    /// Solves the relaxed program: exactly, or for the many vectors of a large expansion, which only asks what to divide
    /// further, by some steps from where `p` is.
    fn relax(&self, p: &mut [f64], counter: &mut WorkCounter<'_>) -> Result<()> {
        if p.len() > LARGE {
            return improve(&self.program(), TOLERANCE, PAIR_STEPS, p, counter);
        }
        box_budget_program(&self.program(), TOLERANCE, p)?;
        Ok(())
    }
}

/// A threshold near the median with values on both sides, above it and not above it.
fn median(values: &[f64]) -> Result<Option<f64>> {
    let mut sorted = values.try_to_vec()?;
    sorted.sort_unstable_by(f64::total_cmp);
    let (middle, largest) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() - 1]);
    if middle < largest {
        return Ok(Some(middle));
    }
    Ok(sorted.into_iter().rev().find(|v| *v < largest))
}

/// LP_z: the half with the smallest gains.
fn smallest_half(gains: &[f64]) -> Result<Vec<bool>> {
    let mut order: Vec<usize> = (0..gains.len()).try_collect_vec()?;
    order.sort_unstable_by(|&a, &b| gains[a].total_cmp(&gains[b]).then(a.cmp(&b)));
    let mut z = try_vec![false; gains.len()]?;
    for &i in &order[..gains.len() / 2] {
        z[i] = true;
    }
    Ok(z)
}

/// Entropy of some classes, and how many rows there are.
fn entropy(labels: impl Iterator<Item = u32>) -> f64 {
    let mut counts: Vec<usize> = Vec::new();
    for label in labels {
        if counts.len() <= label as usize {
            counts.resize(label as usize + 1, 0);
        }
        counts[label as usize] += 1;
    }
    let total: usize = counts.iter().sum();
    let parts = counts.iter().filter(|c| **c > 0).map(|c| *c as f64 / total as f64);
    parts.map(|p| -p * p.ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_divide() {
        assert_eq!(median(&[3.0, 1.0, 2.0, 4.0]).unwrap(), Some(2.0));
        assert_eq!(median(&[1.0, 5.0, 5.0, 5.0]).unwrap(), Some(1.0));
        assert_eq!(median(&[5.0, 5.0]).unwrap(), None);
        assert_eq!(smallest_half(&[0.3, -1.0, 2.0, 0.0, 0.0]).unwrap(), [false, true, false, true, false]);
    }

    #[test]
    fn entropies_by_hand() {
        assert!((entropy([0, 0, 1, 1].into_iter()) - std::f64::consts::LN_2).abs() < 1e-15);
        assert_eq!(entropy([2, 2].into_iter()), 0.0);
    }
}
