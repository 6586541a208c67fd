//! The outputs of the large machine (the teacher) on the rows and on displaced copies of them.
//!
//! A machine's outputs on its own training rows are biased by the fit. Therefore each row has a few displaced copies: moved
//! at random by a share of each feature's standard deviation, and towards another row by a share of the distance. The
//! machine's outputs on them are computed once; the copies are drawn again from the row's own random stream whenever they
//! are needed, and never stored.
//!
//! If values are given in addition to the machine (regression), the target at a copy is the machine's value plus a share w of
//! its error at the row: f*(x') + w (y - f*(x)), so that w = 1 gives the target y at the row itself.
//!
//! A machine that is known by its outputs on the rows alone has no displaced copies; its outputs are the targets.
//!
//! Invariant: copy p of row i is the same whenever it is drawn. Cost: rows x (1 + places) outputs of the machine, and as many
//! single precision numbers for each output.

use ndarray::ArrayView2;

use super::objective::{Loss, Objective};
use super::params::{Answers, GradientParams};
use crate::context::Context;
use crate::data::{Rows, flat, rounded};
use crate::error::Result;
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, Kernel, gram};
use crate::linalg::cholesky;
use crate::memory::{TryCollect, try_filled, try_vec, try_with_capacity, try_zeros};
use crate::random::Random;
use crate::reduced_set::pursuit::for_blocks;
use crate::simd::blas::{axpy, dot};

/// Maximum number of rows whose outputs are computed together.
const MAX_CHUNK_ROWS: usize = 512;
/// Number of multiplications between two checks of the monitor.
const WORK_PER_CHECK: usize = 400_000_000;

/// The rows, their displaced copies and the machine's outputs on them.
pub(super) struct Teacher<'a> {
    pub(super) rows: Rows<'a>,
    kernel: Kernel,
    /// Vector subtracted from rows and vectors if the kernel allows it, for the accuracy of single precision.
    pub(super) centre: Vec<f32>,
    pub(super) deviations: Vec<f32>,
    noise: f32,
    mixing: f64,
    start_ridge: f64,
    seed: u64,
    /// Number of places of a row: place 0 is the row itself, the others are its displaced copies.
    pub(super) places: usize,
    /// Targets, (places, n, q), or (1, n, q) of zeros if the loss uses only labels.
    outputs: Vec<f32>,
    outputs_per_row: usize,
    uses_only_labels: bool,
}

impl<'a> Teacher<'a> {
    /// Computes means and deviations of the rows.
    pub(super) fn new(target: &ExpansionView<'_>, rows: Rows<'a>, params: &GradientParams) -> Self {
        let (n, d) = (rows.rows(), rows.cols());
        let (mut sums, mut squares) = (vec![0.0; d], vec![0.0; d]);
        for i in 0..n {
            rows.for_each_in_row(i, |k, v| {
                sums[k] += v;
                squares[k] += v * v;
            });
        }
        let means: Vec<f64> = sums.iter().map(|s| s / n as f64).collect();
        let deviations = means
            .iter()
            .zip(&squares)
            .map(|(m, s)| (s / n as f64 - m * m).max(0.0).sqrt() as f32)
            .collect::<Vec<_>>();
        let translates =
            matches!(target.kernel, Kernel::Rbf { .. } | Kernel::Laplacian { .. } | Kernel::Matern { .. });
        let moves = params.noise > 0.0 || params.mixing > 0.0;
        Self {
            rows,
            kernel: target.kernel,
            centre: means.iter().map(|&m| if translates { m as f32 } else { 0.0 }).collect(),
            deviations,
            noise: params.noise as f32,
            mixing: params.mixing,
            start_ridge: params.start_ridge,
            seed: params.seed,
            places: 1 + if moves { params.places } else { 0 },
            outputs: Vec::new(),
            outputs_per_row: target.outputs(),
            uses_only_labels: matches!(params.objective.loss, Loss::Hinge | Loss::SquaredHinge),
        }
    }

    /// Computes the outputs of the machine at all places.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn compute_outputs(
        &mut self,
        target: &ExpansionView<'_>,
        answers: Option<Answers<'_>>,
        objective: Objective,
        ctx: Context<'_>,
    ) -> Result<()> {
        let (n, d, q) = (self.rows.rows(), self.rows.cols(), self.outputs_per_row);
        if self.uses_only_labels {
            self.outputs = try_zeros("the outputs at the rows", n * q)?;
            return Ok(());
        }
        if let Some(Answers::Outputs(values)) = answers {
            self.outputs = rounded(values)?;
            objective.prepare(&mut self.outputs, q);
            return Ok(());
        }
        let evaluator = Evaluator::new(target)?;
        self.outputs =
            try_with_capacity("the outputs at the rows and their displaced copies", self.places * n * q)?;
        let chunk = (WORK_PER_CHECK / (target.len() * (d + q)).max(1)).clamp(16, MAX_CHUNK_ROWS);
        for place in 0..self.places {
            for first in (0..n).step_by(chunk) {
                ctx.check("outputs", place * n + first, self.places * n)?;
                let count = chunk.min(n - first);
                let values = if place == 0 {
                    let places: Vec<usize> = (first..first + count).collect();
                    evaluator.evaluate(self.rows.gather(&places)?.view(), ctx.silent())?
                } else {
                    let mut dense = try_vec![0.0; count * d]?;
                    let mut lines: Vec<&mut [f32]> = dense.chunks_exact_mut(d).collect();
                    ctx.for_each_chunk(&mut lines, 64, |part, lines| {
                        for (i, line) in lines.iter_mut().enumerate() {
                            self.row(first + part * 64 + i, place, line);
                        }
                    });
                    evaluator.evaluate(Rows::from_shape((count, d), &dense)?, ctx.silent())?
                };
                self.outputs.extend(values.into_iter().map(|v| v as f32));
            }
        }
        if let Some(Answers::Values(targets)) = answers {
            let share = objective.label_weight;
            let error: Vec<f32> = targets
                .iter()
                .zip(&self.outputs)
                .map(|(y, &f)| (share * (y - f64::from(f))) as f32)
                .try_collect_vec()?;
            for place in self.outputs.chunks_exact_mut(n * q) {
                place.iter_mut().zip(&error).for_each(|(f, error)| *f += error);
            }
        }
        objective.prepare(&mut self.outputs, q);
        Ok(())
    }

    /// Returns the targets at a place of a row, (q,).
    pub(super) fn outputs(&self, row: usize, place: usize) -> &[f32] {
        let place = if self.uses_only_labels { 0 } else { place };
        let q = self.outputs_per_row;
        let at = (place * self.rows.rows() + row) * q;
        &self.outputs[at..at + q]
    }

    /// Writes a row at one of its places.
    pub(super) fn row(&self, row: usize, place: usize, out: &mut [f32]) {
        out.fill(0.0);
        self.rows.for_each_in_row(row, |k, v| out[k] = v as f32);
        if place == 0 {
            return;
        }
        let mut random = Random::stream(self.seed, (place * self.rows.rows() + row) as u64);
        if self.mixing > 0.0 {
            let other = random.below(self.rows.rows() as u64) as usize;
            let share = (self.mixing * random.uniform()) as f32;
            for v in out.iter_mut() {
                *v *= 1.0 - share;
            }
            self.rows.for_each_in_row(other, |k, v| out[k] += share * v as f32);
        }
        if self.noise > 0.0 {
            for (v, deviation) in out.iter_mut().zip(&self.deviations) {
                *v += self.noise * deviation * random.bell();
            }
        }
        if matches!(self.kernel, Kernel::ChiSquared { .. }) {
            for v in out.iter_mut() {
                *v = v.max(0.0);
            }
        }
    }

    /// Returns the B and b with which K(X, Z) B + b approximates the targets on a sample of the rows best: least squares with
    /// a ridge as a share of the mean diagonal, which duplicate vectors need.
    pub(super) fn fitted_coefficients(
        &self,
        target: &ExpansionView<'_>,
        start: ArrayView2<'_, f32>,
        answers: Option<Answers<'_>>,
        share: f64,
        ctx: Context<'_>,
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        const ROWS_PER_VECTOR: usize = 6;
        const MIN_ROWS: usize = 2000;
        let (n, q, m) = (self.rows.rows(), target.outputs(), start.nrows());
        let count = n.min((m * ROWS_PER_VECTOR).max(MIN_ROWS));
        let mut sample = Random::stream(self.seed, u64::MAX).sample(n, count);
        sample.sort_unstable();
        let rows = self.rows.gather(&sample)?;
        let d = self.rows.cols();
        let mut targets = if let Some(Answers::Outputs(values)) = answers {
            let mut targets = try_with_capacity("the outputs at the rows", count * q)?;
            for &row in &sample {
                targets.extend(values.row(row));
            }
            targets
        } else {
            let evaluator = Evaluator::new(target)?;
            let work = target.len().max(1) * (d + q);
            for_blocks(rows.view(), work, ctx, |block| evaluator.evaluate(block, ctx.silent()).map(flat))?
        };
        if let Some(Answers::Values(values)) = answers {
            for (line, &row) in targets.chunks_exact_mut(q).zip(&sample) {
                for (f, y) in line.iter_mut().zip(values.row(row)) {
                    *f += share * (y - *f);
                }
            }
        }
        let start: Rows<'_> = start.try_into()?;
        let kernel = for_blocks(rows.view(), m * d, ctx, |block| {
            gram(&target.kernel, block, start, ctx.silent()).map(flat)
        })?;
        // Columns of [K 1] as lines, so that the normal matrix is a matrix of inner products.
        let size = m + 1;
        let mut columns = try_filled("kernel values at the rows", size * count, 1.0)?;
        for (i, line) in kernel.chunks_exact(m).enumerate() {
            for (j, &value) in line.iter().enumerate() {
                columns[j * count + i] = value;
            }
        }
        let mut normal = try_zeros("the matrix of the coefficients", size * size)?;
        let mut counter = ctx.counter("coefficients", size);
        counter.for_each_batch(size, (size * count / 2) as u64, |lines, _| {
            ctx.for_each_chunk(&mut normal[lines.start * size..lines.end * size], size, |a, line| {
                let a = lines.start + a;
                for (b, value) in line.iter_mut().enumerate().take(a + 1) {
                    *value = dot(&columns[a * count..(a + 1) * count], &columns[b * count..(b + 1) * count]);
                }
            });
            Ok(())
        })?;
        let ridge = self.start_ridge * (0..size).map(|i| normal[i * size + i]).sum::<f64>() / size as f64;
        for i in 0..size {
            normal[i * size + i] += ridge;
        }
        let mut solution = try_vec![0.0; size * q]?;
        for (j, out) in solution.chunks_exact_mut(q).enumerate() {
            counter.charge((count * q) as u64)?;
            for (i, target) in targets.chunks_exact(q).enumerate() {
                axpy(columns[j * count + i], target, out);
            }
        }
        cholesky::factor_counted(&mut normal, size, &mut counter)?;
        counter.charge((2 * size * size * q) as u64)?;
        cholesky::solve(&normal, size, &mut solution, q);
        Ok((rounded(&solution[..m * q])?, rounded(&solution[m * q..])?))
    }
}
