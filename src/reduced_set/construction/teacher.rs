//! Where a small expansion is compared with the large one: the rows, places beside them, and what the large one says
//! there.
//!
//! A machine's outputs on its own training rows are flattered by the fit. So each row has a few places besides its own:
//! moved at random by a share of each feature's standard deviation, and towards another row by a share of the way. The
//! machine's outputs there are computed once; the places themselves are drawn again from the row's own random stream
//! whenever they are visited, and never stored.
//!
//! Where numbers are given besides the machine (regression), what is asked for at a place is the machine's value plus a
//! share w of what the machine lacks at the row: f*(x') + w (y - f*(x)), so that w = 1 asks for y at the row itself.
//!
//! Cost: rows x (1 + places) outputs of the machine; memory as many single precision numbers a machine output.

use ndarray::ArrayView2;

use super::objective::{Loss, Objective};
use super::params::{Answers, GradientParams};
use crate::context::Context;
use crate::data::{Rows, flat};
use crate::error::Result;
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, Kernel, gram};
use crate::linalg::cholesky;
use crate::memory::{TryCollect, try_filled, try_vec, try_with_capacity, try_zeros};
use crate::random::Random;
use crate::reduced_set::pursuit::for_blocks;
use crate::simd::blas::{axpy, dot};

/// Rows whose machine outputs are computed together, at most.
const CHUNK: usize = 512;
/// Multiplications between two checks of the monitor.
const WORK_PER_CHECK: usize = 400_000_000;

/// The rows with their places and the machine's outputs there.
pub(super) struct Teacher<'a> {
    pub(super) rows: Rows<'a>,
    kernel: Kernel,
    /// Subtracted from rows and vectors where the kernel allows it: keeps single precision accurate.
    pub(super) centre: Vec<f32>,
    pub(super) deviations: Vec<f32>,
    noise: f32,
    mixing: f64,
    seed: u64,
    /// The row itself and those beside it.
    pub(super) places: usize,
    /// (places, n, q), or (1, n, q) of zeros where labels alone are asked for.
    outputs: Vec<f32>,
    outputs_per_row: usize,
    labels_alone: bool,
}

impl<'a> Teacher<'a> {
    pub(super) fn new(target: &ExpansionView<'_>, rows: Rows<'a>, params: &GradientParams) -> Result<Self> {
        let (n, d) = (rows.rows(), rows.cols());
        let (mut sums, mut squares) = (try_vec![0.0; d]?, try_vec![0.0; d]?);
        for i in 0..n {
            rows.for_each_in_row(i, |k, v| {
                sums[k] += v;
                squares[k] += v * v;
            });
        }
        let means: Vec<f64> = sums.iter().map(|s| s / n as f64).try_collect_vec()?;
        let deviations = means
            .iter()
            .zip(&squares)
            .map(|(m, s)| (s / n as f64 - m * m).max(0.0).sqrt() as f32)
            .try_collect_vec()?;
        let translates = matches!(target.kernel, Kernel::Rbf { .. } | Kernel::Laplacian { .. });
        let moves = params.noise > 0.0 || params.mixing > 0.0;
        Ok(Self {
            rows,
            kernel: target.kernel,
            centre: means.iter().map(|&m| if translates { m as f32 } else { 0.0 }).try_collect_vec()?,
            deviations,
            noise: params.noise as f32,
            mixing: params.mixing,
            seed: params.seed,
            places: 1 + if moves { params.places } else { 0 },
            outputs: Vec::new(),
            outputs_per_row: target.outputs(),
            labels_alone: matches!(params.objective.loss, Loss::Hinge | Loss::SquaredHinge),
        })
    }

    /// Evaluates the machine at all places.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn ask(
        &mut self,
        target: &ExpansionView<'_>,
        answers: Option<Answers<'_>>,
        objective: Objective,
        ctx: Context<'_>,
    ) -> Result<()> {
        let (n, d, q) = (self.rows.rows(), self.rows.cols(), self.outputs_per_row);
        if self.labels_alone {
            self.outputs = try_zeros("the outputs at the rows", n * q)?;
            return Ok(());
        }
        let evaluator = Evaluator::new(target)?;
        self.outputs = try_with_capacity("the outputs at the rows and beside them", self.places * n * q)?;
        let chunk = (WORK_PER_CHECK / (target.len() * (d + q)).max(1)).clamp(16, CHUNK);
        for place in 0..self.places {
            for first in (0..n).step_by(chunk) {
                ctx.check("outputs", place * n + first, self.places * n)?;
                let count = chunk.min(n - first);
                let values = if place == 0 {
                    let own: Vec<usize> = (first..first + count).try_collect_vec()?;
                    evaluator.evaluate(self.rows.gather(&own)?.view(), ctx.silent())?
                } else {
                    let mut dense = try_vec![0.0; count * d]?;
                    let mut lines: Vec<&mut [f32]> = dense.chunks_exact_mut(d).try_collect_vec()?;
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
        if let Some(Answers::Values(wanted)) = answers {
            let share = objective.label_weight;
            let lacking: Vec<f32> = wanted
                .iter()
                .zip(&self.outputs)
                .map(|(y, &f)| (share * (y - f64::from(f))) as f32)
                .try_collect_vec()?;
            for place in self.outputs.chunks_exact_mut(n * q) {
                place.iter_mut().zip(&lacking).for_each(|(f, lacking)| *f += lacking);
            }
        }
        objective.prepare(&mut self.outputs, q);
        Ok(())
    }

    /// What is asked for at a place of a row, (q,), as the loss takes it.
    pub(super) fn outputs(&self, row: usize, place: usize) -> &[f32] {
        let place = if self.labels_alone { 0 } else { place };
        let q = self.outputs_per_row;
        let at = (place * self.rows.rows() + row) * q;
        &self.outputs[at..at + q]
    }

    /// A row at one of its places; place 0 is the row itself.
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

    /// B and b that bring K(X, Z) B + b nearest to what is asked for on a sample of the rows: least squares with a ridge
    /// of 1e-6 of the mean diagonal, which duplicate vectors need.
    pub(super) fn fitted_coefficients(
        &self,
        target: &ExpansionView<'_>,
        start: ArrayView2<'_, f32>,
        answers: Option<Answers<'_>>,
        share: f64,
        ctx: Context<'_>,
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        const ROWS_PER_VECTOR: usize = 6;
        const LEAST_ROWS: usize = 2000;
        const RIDGE: f64 = 1e-6;
        let (n, q, m) = (self.rows.rows(), target.outputs(), start.nrows());
        let count = n.min((m * ROWS_PER_VECTOR).max(LEAST_ROWS));
        let mut sample = Random::stream(self.seed, u64::MAX).sample(n, count)?;
        sample.sort_unstable();
        let rows = self.rows.gather(&sample)?;
        let (evaluator, d) = (Evaluator::new(target)?, self.rows.cols());
        let work = target.len().max(1) * (d + q);
        let mut wanted =
            for_blocks(rows.view(), work, ctx, |block| evaluator.evaluate(block, ctx.silent()).map(flat))?;
        if let Some(Answers::Values(values)) = answers {
            for (line, &row) in wanted.chunks_exact_mut(q).zip(&sample) {
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
        let ridge = RIDGE * (0..size).map(|i| normal[i * size + i]).sum::<f64>() / size as f64;
        for i in 0..size {
            normal[i * size + i] += ridge;
        }
        let mut solution = try_vec![0.0; size * q]?;
        for (j, out) in solution.chunks_exact_mut(q).enumerate() {
            counter.charge((count * q) as u64)?;
            for (i, wanted) in wanted.chunks_exact(q).enumerate() {
                axpy(columns[j * count + i], wanted, out);
            }
        }
        counter.for_each_batch(size, (size * size / 2) as u64, |lines, _| {
            cholesky::factor_lines(&mut normal, size, lines)
        })?;
        counter.charge((2 * size * size * q) as u64)?;
        cholesky::solve(&normal, size, &mut solution, q);
        let narrow = |values: &[f64]| values.iter().map(|&v| v as f32).try_collect_vec();
        Ok((narrow(&solution[..m * q])?, narrow(&solution[m * q..])?))
    }
}
