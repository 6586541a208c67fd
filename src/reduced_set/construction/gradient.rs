//! Gradient support vectors: vectors and coefficients of a small expansion are optimized together, so that its outputs on
//! given rows approximate those of a large one (Burges and Schoelkopf, 1997; Xu, Gardner, Tyree and Weinberger, Compressed
//! support vector machines, 2015, eq. 10)
//!
//! ```text
//! min over Z, B, b of  mean over rows x of  L(K(x, Z) B + b, f*(x), label)
//! ```
//!
//! with the losses L of `objective`, on the rows and places of `teacher`. The problem is not convex. Vectors
//! start at cluster centers (`centres`) with coefficients by least squares, followed by many cheap steps of Adam (Kingma and
//! Ba, 2015) on small batches, with rates that decrease to zero along a half cosine. The number of steps matters most.
//!
//! Several sizes share only the machine's outputs on the rows. Each size starts from its own centers, because vectors that
//! were optimized as a few do not become good ones of many: starting a size from the one before took as long, and erred one
//! percentage point more on letter with 100, 200 or 400 vectors.
//!
//! With `scale_rate` the columns have scales, x -> s o x, which are optimized by their logarithms together with the vectors
//! (one gamma a column). Vectors are then in the scaled columns, and follow their scales.
//!
//! Invariant: the same seed gives the same model whatever the number of threads. Cost: for each size steps x batch x
//! (2 m d + 3 m q) multiply-adds and steps x batch x m kernel values, and once the machine's outputs on rows x places.

use ndarray::{Array2, ArrayView2};

use super::descent::{Descent, Rates, Samples};
use super::objective::Objective;
use super::params::{Answers, Examples, GradientParams};
use super::scales::{Best, ColumnScales};
use super::teacher::Teacher;
use crate::context::{Context, Progress, Stop, StopReason};
use crate::data::copy_flat;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Batch, Kernel, TrainableExpansion, Workspace};
use crate::memory::{TryCollect, TryToVec};
use crate::reduced_set::pursuit::check_kernel;

/// Maximum number of steps between two checks of the monitor.
const STEPS_PER_TICK: usize = 16;
/// Maximum number of multiplications between two checks of the monitor.
const WORK_PER_TICK: usize = 100_000_000;
/// Minimum number of vectors of each thread that stays awake for the steps.
const MIN_VECTORS_PER_THREAD: usize = 32;

/// A small expansion with constructed vectors.
#[derive(Debug, Clone)]
pub struct Construction {
    /// Z, (m, d).
    pub vectors: Array2<f32>,
    /// B, (m, q).
    pub coefficients: Array2<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// s, (d,): the vectors are in columns multiplied by it.
    pub scales: Vec<f64>,
    /// Mean loss of a row over each tenth of the run.
    pub losses: Vec<f64>,
    /// The end of the run: converged after all steps.
    pub stop: Stop,
}

/// Optimizes the vectors and coefficients of small expansions to approximate `target` on the examples, or the answers if the
/// objective uses them. Returns one result for each of `starts`, fewer if the monitor ended the run, none if it did so before
/// the first coefficients.
///
/// A start (m, d) holds the initial vectors of one result.
///
/// # Errors
/// [`Error::Param`] for parameters outside their rules, labels that are missing or not below the number of classes, a
/// start that is empty, or a precomputed kernel; [`Error::Shape`] where sizes disagree.
pub fn gradient_vectors(
    target: &ExpansionView<'_>,
    starts: &[ArrayView2<'_, f32>],
    examples: &Examples<'_>,
    params: &GradientParams,
    ctx: Context<'_>,
) -> Result<Vec<Construction>> {
    let Examples { rows, answers } = *examples;
    let (n, d, q) = (rows.rows(), rows.cols(), target.outputs());
    params.check()?;
    check_kernel(&target.kernel)?;
    Error::check_len("columns of the rows", target.vectors.cols(), d)?;
    let rule = "at least one, with at least one column and one vector to start from";
    let is_valid = n > 0 && d > 0 && !starts.is_empty() && starts.iter().all(|start| !start.is_empty());
    Error::check_param(is_valid, "rows", n, rule)?;
    params.check_answers(examples, q)?;
    target.kernel.check_rows("rows", rows)?;
    let scalable = matches!(target.kernel, Kernel::Rbf { .. } | Kernel::Laplacian { .. });
    let rule = "0 for kernels other than rbf and laplacian";
    Error::check_param(params.scale_rate == 0.0 || scalable, "scale_rate", params.scale_rate, rule)?;
    for start in starts {
        Error::check_len("columns of the start", d, start.ncols())?;
        if let Some(((row, _), _)) = start.indexed_iter().find(|(_, v)| !v.is_finite()) {
            return Err(Error::NotFinite { what: "start", row });
        }
        target.kernel.check_rows("start", (*start).try_into()?)?;
    }

    let mut teacher = Teacher::new(target, rows.reborrow(), params);
    let mut results: Vec<Construction> = Vec::new();
    for (stage, start) in starts.iter().enumerate() {
        let share = params.objective.label_weight;
        let fitted = teacher.fitted_coefficients(target, *start, answers, share, ctx);
        let (coefficients, intercepts) = match fitted {
            Ok(fitted) => fitted,
            Err(error) => {
                let reason = error.into_stop_reason()?;
                results.iter_mut().last().into_iter().for_each(|last| last.stop.reason = reason);
                break;
            }
        };
        let mut student =
            Student { vectors: copy_flat(*start)?, coefficients, intercepts, scales: vec![1.0; d] };
        if stage == 0
            && let Some(reason) =
                StopReason::from_result(teacher.compute_outputs(target, answers, params.objective, ctx))?
        {
            return Ok(vec![
                student.construction(Vec::new(), Stop { reason, iterations: 0, gap: f64::NAN })?,
            ]);
        }
        let run = Run {
            kernel: target.kernel,
            teacher: &teacher,
            objective: params.objective,
            signs: params.objective.signs(q)?,
            labels: if let Some(Answers::Classes(labels)) = answers { Some(labels) } else { None },
            params,
            stages: starts.len(),
        };
        let n_tasks = student.coefficients.len().div_ceil(q * MIN_VECTORS_PER_THREAD);
        let (losses, stop) = ctx.with_threads_awake(n_tasks, || run.optimize(&mut student, stage, ctx))?;
        let reason = stop.reason;
        // An interrupted size is not returned, except the first.
        if reason == StopReason::Converged || results.is_empty() {
            results.push(student.construction(losses, stop)?);
        } else if let Some(last) = results.last_mut() {
            last.stop.reason = reason;
        }
        if reason != StopReason::Converged {
            break;
        }
    }
    Ok(results)
}

/// The small expansion of one size.
struct Student {
    vectors: Vec<f32>,
    coefficients: Vec<f32>,
    intercepts: Vec<f32>,
    scales: Vec<f32>,
}

impl Student {
    fn construction(&self, losses: Vec<f64>, stop: Stop) -> Result<Construction> {
        let m = self.coefficients.len() / self.intercepts.len();
        let rule = "vectors and coefficients have a line each";
        let vectors =
            Array2::from_shape_vec((m, self.vectors.len() / m), self.vectors.try_to_vec()?).expect(rule);
        let shape = (m, self.intercepts.len());
        let coefficients = Array2::from_shape_vec(shape, to_double(&self.coefficients)?).expect(rule);
        let (intercepts, scales) = (to_double(&self.intercepts)?, to_double(&self.scales)?);
        Ok(Construction { vectors, coefficients, intercepts, scales, losses, stop })
    }
}

/// Converts to double precision.
fn to_double(values: &[f32]) -> Result<Vec<f64>> {
    values.iter().map(|&v| f64::from(v)).try_collect_vec()
}

/// Returns the root mean square, or 1 if it is 0.
fn root_mean_square(values: &[f32]) -> f64 {
    let mean = values.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / values.len() as f64;
    if mean > 0.0 { mean.sqrt() } else { 1.0 }
}

/// The data and settings that all sizes share.
struct Run<'a, 'r> {
    kernel: Kernel,
    teacher: &'a Teacher<'r>,
    objective: Objective,
    signs: Vec<Vec<f32>>,
    labels: Option<&'a [usize]>,
    params: &'a GradientParams,
    stages: usize,
}

impl Run<'_, '_> {
    /// Takes all steps of one size.
    fn optimize(&self, student: &mut Student, stage: usize, ctx: Context<'_>) -> Result<(Vec<f64>, Stop)> {
        let (teacher, params) = (self.teacher, self.params);
        if params.steps == 0 {
            let stop = Stop { reason: StopReason::Converged, iterations: 0, gap: f64::NAN };
            return Ok((Vec::new(), stop));
        }
        let mut descent = self.descent(student)?;
        let mut best = Best::default();
        if params.held_out > 0 {
            best.compare(self.held_out_loss(&descent, ctx)?, &descent.expansion, &descent.scales)?;
        }
        let (mut losses, mut done) = (Vec::new(), 0);
        let ended = self.take_steps(&mut descent, &mut best, (&mut losses, &mut done), stage, ctx);
        let reason = ended.map_or_else(Error::into_stop_reason, |()| Ok(StopReason::Converged))?;
        let (expansion, scales) = best.state.unwrap_or((descent.expansion, descent.scales));
        (student.vectors, student.coefficients) = expansion.unpack()?;
        for z in student.vectors.chunks_exact_mut(teacher.rows.cols()) {
            let columns = z.iter_mut().zip(&teacher.centre).zip(&scales.values);
            columns.for_each(|((v, c), s)| *v += s * c);
        }
        (student.intercepts, student.scales) = (expansion.intercepts, scales.values);
        let all = student.vectors.iter().chain(&student.coefficients).chain(&student.intercepts);
        let (finite, rule) =
            (all.copied().all(f32::is_finite), "small enough for the vectors to stay finite");
        Error::check_param(finite, "vector_rate", params.vector_rate, rule)?;
        let gap = losses.last().copied().unwrap_or(f64::NAN);
        Ok((losses, Stop { reason, iterations: done as u64, gap }))
    }

    /// Returns the expansion of a student about the center of the rows, before its first step.
    fn descent(&self, student: &mut Student) -> Result<Descent> {
        let (teacher, params, d) = (self.teacher, self.params, self.teacher.rows.cols());
        let rates = Rates {
            vectors: params.vector_rate * root_mean_square(&teacher.deviations),
            coefficients: params.coefficient_rate * root_mean_square(&student.coefficients),
            scales: params.scale_rate,
        };
        let mut vectors = std::mem::take(&mut student.vectors);
        for z in vectors.chunks_exact_mut(d) {
            z.iter_mut().zip(&teacher.centre).for_each(|(z, c)| *z -= c);
        }
        let (coefficients, intercepts) = (&student.coefficients, &student.intercepts);
        Descent::new(
            TrainableExpansion::new(self.kernel, &vectors, d, coefficients, intercepts)?,
            ColumnScales::new(d),
            rates,
        )
    }

    /// Takes all steps, with the mean loss after each tenth of them, and counts them.
    ///
    /// # Errors
    /// [`Error::Stopped`], after which the expansion is that of the steps that were counted.
    fn take_steps(
        &self,
        descent: &mut Descent,
        best: &mut Best,
        (losses, done): (&mut Vec<f64>, &mut usize),
        stage: usize,
        ctx: Context<'_>,
    ) -> Result<()> {
        let (teacher, params) = (self.teacher, self.params);
        let mut samples = Samples::new(params, teacher.rows.rows() - params.held_out);
        let mut batch = Batch::default();
        let (mut sum, mut count, mut work_done) = (0.0, 0, 0);
        let (m, d, q) =
            (descent.expansion.vectors(), teacher.rows.cols(), descent.expansion.intercepts.len());
        let work_of_step = samples.batch_size * m * (2 * d + 3 * q);
        for step in 0..params.steps {
            work_done += work_of_step;
            if step % STEPS_PER_TICK == 0 || work_done >= WORK_PER_TICK {
                work_done = 0;
                ctx.tick(&Progress {
                    gap: losses.last().copied().unwrap_or(f64::NAN),
                    steps: step as u64,
                    ..Progress::new("gradient", stage * params.steps + step, self.stages * params.steps)
                })?;
            }
            let picked = samples.draw(teacher.places);
            self.fill(&mut batch, picked, &descent.scales, ctx)?;
            sum += descent.gradient(&batch, self.loss_of(picked), ctx)?;
            count += picked.len();
            let decay = 0.5 * (1.0 + (std::f64::consts::PI * step as f64 / params.steps as f64).cos());
            descent.step(decay, step + 1, ctx);
            *done = step + 1;
            if *done % params.steps.div_ceil(10) == 0 || *done == params.steps {
                losses.push(sum / f64::from(count as u32));
                (sum, count) = (0.0, 0);
                if params.held_out > 0 {
                    let loss = self.held_out_loss(descent, ctx)?;
                    best.compare(loss, &descent.expansion, &descent.scales)?;
                }
            }
        }
        Ok(())
    }

    /// Fills a batch with rows at their places, centered and scaled.
    fn fill(
        &self,
        batch: &mut Batch,
        picked: &[(usize, usize)],
        scales: &ColumnScales,
        ctx: Context<'_>,
    ) -> Result<()> {
        let (teacher, d) = (self.teacher, scales.values.len());
        let write = |first: usize, lines: &mut [f32]| {
            for (out, &(row, place)) in lines.chunks_exact_mut(d).zip(&picked[first..]) {
                teacher.row(row, place, out);
                let columns = out.iter_mut().zip(&teacher.centre).zip(&scales.values);
                columns.for_each(|((v, c), s)| *v = (*v - c) * s);
            }
        };
        batch.fill((picked.len(), d), write, ctx)
    }

    /// Returns the loss of the rows at their places, as [`TrainableExpansion::gradient`] takes it.
    fn loss_of<'b>(&'b self, picked: &'b [(usize, usize)]) -> impl Fn(usize, &mut [f32]) -> f32 + Sync + 'b {
        |i, outputs| {
            let (row, place) = picked[i];
            self.objective.gradient(outputs, self.teacher.outputs(row, place), self.signs_of_row(row))
        }
    }

    /// Returns the mean loss on the rows held out.
    fn held_out_loss(&self, descent: &Descent, ctx: Context<'_>) -> Result<f64> {
        const ROWS_PER_BATCH: usize = 480;
        let (n, count) = (self.teacher.rows.rows(), self.params.held_out);
        let (mut batch, mut work) = (Batch::default(), Workspace::default());
        let mut picked: Vec<(usize, usize)> = Vec::with_capacity(ROWS_PER_BATCH);
        let mut total = 0.0;
        for first in (n - count..n).step_by(ROWS_PER_BATCH) {
            ctx.check("gradient", first, n)?;
            picked.clear();
            picked.extend((first..n.min(first + ROWS_PER_BATCH)).map(|row| (row, 0)));
            self.fill(&mut batch, &picked, &descent.scales, ctx)?;
            total += descent.expansion.gradient(&batch, &mut work, self.loss_of(&picked), ctx)?;
        }
        Ok(total / count as f64)
    }

    /// Returns the signs of the outputs for the label of a row.
    fn signs_of_row(&self, row: usize) -> Option<&[f32]> {
        self.labels.map(|labels| self.signs.get(labels[row]).map_or(&[][..], Vec::as_slice))
    }
}
