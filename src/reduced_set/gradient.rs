//! Gradient support vectors: vectors and coefficients of a small expansion moved together, so that it does on given rows
//! what a large one does (Burges and Schoelkopf, 1997; Xu, Gardner, Tyree and Weinberger, Compressed support vector
//! machines, 2015, eq. 10)
//!
//! ```text
//! min over Z, B, b of  mean over rows x of  L(K(x, Z) B + b, f*(x), label)
//! ```
//!
//! with the losses L of `objective`. The problem is not convex. What measured best, by far: a start at cluster centres
//! (`centres`) with the coefficients by least squares, then many cheap steps of Adam (Kingma and Ba, 2015) on small
//! batches, the rates falling to zero along a half cosine. More steps is what helps most.
//!
//! A machine's outputs on its own training rows are flattered by the fit. Each visit of a row therefore moves it a
//! little (a share of each feature's standard deviation), to one of a few places whose outputs f* are computed once and
//! whose displacement is drawn again from the row's own random stream, never stored.
//!
//! Invariant: the same seed gives the same model whatever the number of threads. Cost: steps x batch x (2 m d + 3 m q)
//! multiply-adds and steps x batch x m kernel values, and the machine's outputs on rows x places.

use super::objective::{Loss, Objective};
use crate::control::{Monitor, Par, Progress, Stop, StopReason};
use crate::data::{DenseView, Rows};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Batch, Evaluator, Kernel, MovingExpansion, Workspace, gram};
use crate::linalg::cholesky;
use crate::random::Random;
use crate::simd::adam;
use crate::simd::blas::dot;
use std::ops::ControlFlow;

/// Rows whose machine outputs are computed together where they are displaced.
const CHUNK: usize = 2048;
/// Steps between two looks at the monitor.
const STEPS_PER_TICK: usize = 16;

/// Parameters of moving.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientParams {
    /// What is minimised.
    pub objective: Objective,
    /// Number of steps.
    pub steps: usize,
    /// Rows of a step.
    pub batch: usize,
    /// Length of a first step in each feature of a vector, as a share of the features' root mean square deviation.
    pub vector_rate: f64,
    /// Length of a first step in each coefficient, as a share of the coefficients' root mean square.
    pub coefficient_rate: f64,
    /// Displacement of rows as a share of each feature's standard deviation.
    pub noise: f64,
    /// Places that each row is displaced to, besides its own.
    pub places: usize,
    /// Of the batches and displacements.
    pub seed: u64,
}

impl GradientParams {
    fn check(&self) -> Result<()> {
        let rule = |name, value: f64, holds: bool, rule: &str| {
            if holds { Ok(()) } else { Err(Error::param(name, value, rule)) }
        };
        rule("batch", self.batch as f64, self.batch >= 1, "at least 1")?;
        for (name, value) in [
            ("vector_rate", self.vector_rate),
            ("coefficient_rate", self.coefficient_rate),
            ("noise", self.noise),
        ] {
            rule(name, value, value.is_finite() && value >= 0.0, "finite and not negative")?;
        }
        let s = self.objective.sharpness;
        rule("sharpness", s, s.is_finite() && s > 0.0, "finite and positive")?;
        let w = self.objective.label_weight;
        rule("label_weight", w, (0.0..=1.0).contains(&w), "in [0, 1]")
    }
}

/// A small expansion made by moving.
#[derive(Debug, Clone)]
pub struct Construction {
    /// Z, (m, d) row-major.
    pub vectors: Vec<f32>,
    /// B, (m, q) row-major.
    pub coefficients: Vec<f64>,
    /// b, (q,).
    pub intercepts: Vec<f64>,
    /// Mean loss of a row over each tenth of the run, as it was while the vectors moved.
    pub losses: Vec<f64>,
    /// Converged where all steps were made.
    pub stop: Stop,
}

/// Moves `start` (m, d) and the coefficients that fit it best, to imitate `target` on `rows`, or to do better than it
/// where the objective asks for the labels.
///
/// # Errors
/// [`Error::Param`] for parameters outside their rules, labels that are missing or not below the number of classes, an
/// empty start, or a precomputed kernel; [`Error::Shape`] where sizes disagree.
pub fn gradient_vectors(
    target: &ExpansionView<'_>,
    start: &[f32],
    rows: Rows<'_>,
    labels: Option<&[usize]>,
    params: &GradientParams,
    monitor: &dyn Monitor,
    par: Par,
) -> Result<Construction> {
    let (n, d, q) = (rows.rows(), rows.cols(), target.outputs());
    params.check()?;
    if target.kernel == Kernel::Precomputed {
        return Err(Error::param("kernel", "precomputed", "a function of two vectors to be reduced"));
    }
    Error::check_len("columns of the rows", target.vectors.cols(), d)?;
    if n == 0 || d == 0 || start.is_empty() {
        return Err(Error::param(
            "rows",
            n,
            "at least one, with at least one column and one vector to start from",
        ));
    }
    if !start.len().is_multiple_of(d) || start.iter().any(|v| !v.is_finite()) {
        return Err(Error::param("start", start.len(), "finite vectors with the columns of the rows"));
    }
    let objective = params.objective;
    if let Some(labels) = labels {
        let classes = objective.classes(q).unwrap_or(usize::MAX);
        Error::check_len("labels (one for each row)", n, labels.len())?;
        if let Some(label) = labels.iter().find(|&&label| label >= classes) {
            return Err(Error::param("labels", label, format!("below {classes}, the number of classes")));
        }
    } else if objective.needs_labels() {
        return Err(Error::param("labels", "None", "given for a loss on labels"));
    }
    target.kernel.check_rows("rows", rows)?;

    let source = Source::new(target, rows, params, par)?;
    let signs = objective.signs(q);
    let (coefficients, intercepts) = fitted_coefficients(target, start, &source, par)?;
    let size = |values: &[f32]| {
        let mean = values.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / values.len() as f64;
        if mean > 0.0 { mean.sqrt() } else { 1.0 }
    };
    let rates =
        [params.vector_rate * size(&source.deviations), params.coefficient_rate * size(&coefficients)];
    let centred: Vec<f32> =
        start.chunks_exact(d).flat_map(|z| z.iter().zip(&source.centre).map(|(z, c)| z - c)).collect();
    let mut moving = MovingExpansion::new(target.kernel, &centred, d, &coefficients, &intercepts);
    let mut states: Vec<[Vec<f32>; 4]> = moving
        .panels
        .iter()
        .map(|p| {
            [p.vectors.len(), p.vectors.len(), p.coefficients.len(), p.coefficients.len()]
                .map(|n| vec![0.0; n])
        })
        .collect();
    let mut intercept_state = [vec![0.0; q], vec![0.0; q]];

    let mut random = Random::new(params.seed);
    let mut order: Vec<usize> = (0..n).collect();
    let batch_size = params.batch.min(n);
    let (mut batch, mut work, mut dense) = (Batch::default(), Workspace::default(), Vec::new());
    let mut picked: Vec<(usize, usize)> = Vec::new();
    let (mut losses, mut sum, mut count) = (Vec::new(), 0.0, 0);
    let mut next = n;
    let mut reason = StopReason::Converged;
    let mut done = 0;
    for step in 0..params.steps {
        if step % STEPS_PER_TICK == 0 {
            let progress = Progress {
                phase: "gradient",
                done: step as u64,
                total: Some(params.steps as u64),
                gap: losses.last().copied().unwrap_or(f64::NAN),
                steps: step as u64,
            };
            if let ControlFlow::Break(asked) = monitor.tick(&progress) {
                reason = asked;
                break;
            }
        }
        if next + batch_size > n {
            random.shuffle(&mut order);
            next = 0;
        }
        picked.clear();
        picked.extend(
            order[next..next + batch_size].iter().map(|&i| (i, random.below(source.places as u64) as usize)),
        );
        next += batch_size;
        dense.resize(batch_size * d, 0.0);
        for (out, &(row, place)) in dense.chunks_exact_mut(d).zip(&picked) {
            source.row(row, place, out);
            out.iter_mut().zip(&source.centre).for_each(|(v, c)| *v -= c);
        }
        batch.fill(&dense, d);
        let loss = |i: usize, outputs: &mut [f32]| {
            let (row, place) = picked[i];
            let machine = &source.outputs[(place * n + row) * q..(place * n + row + 1) * q];
            objective.slopes(outputs, machine, labels.map(|labels| signs_of(&signs, labels[row])))
        };
        sum += moving.slopes(&batch, &mut work, loss, par);
        count += batch_size;

        let fall = 0.5 * (1.0 + (std::f64::consts::PI * step as f64 / params.steps as f64).cos());
        let [for_vectors, for_coefficients] = rates.map(|rate| adam::corrected(rate * fall, step + 1));
        let kernel = moving.kernel();
        let mut parts: Vec<_> = moving.panels.iter_mut().zip(&mut states).zip(&work.slopes).collect();
        par.for_each_chunk(&mut parts, 1, |_, part| {
            let ((panel, [v1, v2, c1, c2]), slopes) = &mut part[0];
            adam::step(for_vectors, &slopes.vectors, v1, v2, &mut panel.vectors);
            adam::step(for_coefficients, &slopes.coefficients, c1, c2, &mut panel.coefficients);
            panel.refresh(kernel);
        });
        let [means, squares] = &mut intercept_state;
        adam::step(for_coefficients, &work.intercepts, means, squares, &mut moving.intercepts);
        done = step + 1;
        if done % params.steps.div_ceil(10) == 0 || done == params.steps {
            losses.push(sum / f64::from(count as u32));
            (sum, count) = (0.0, 0);
        }
    }

    let (mut vectors, coefficients) = moving.unpack();
    for z in vectors.chunks_exact_mut(d) {
        z.iter_mut().zip(&source.centre).for_each(|(v, c)| *v += c);
    }
    let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
    if vectors.iter().chain(&coefficients).chain(&moving.intercepts).any(|v| !v.is_finite()) {
        return Err(Error::param(
            "vector_rate",
            params.vector_rate,
            "small enough for the vectors to stay finite",
        ));
    }
    let gap = losses.last().copied().unwrap_or(f64::NAN);
    Ok(Construction {
        vectors,
        coefficients: wide(&coefficients),
        intercepts: wide(&moving.intercepts),
        losses,
        stop: Stop { reason, iterations: done as u64, gap },
    })
}

fn signs_of(signs: &[Vec<f32>], label: usize) -> &[f32] {
    signs.get(label).map_or(&[], Vec::as_slice)
}

/// The rows with their displaced places and the machine's outputs there.
struct Source<'a> {
    rows: Rows<'a>,
    kernel: Kernel,
    /// Subtracted from rows and vectors where the kernel allows it: keeps single precision accurate.
    centre: Vec<f32>,
    deviations: Vec<f32>,
    noise: f32,
    seed: u64,
    /// The row itself and its displacements.
    places: usize,
    /// (places, n, q)
    outputs: Vec<f32>,
}

impl<'a> Source<'a> {
    fn new(target: &ExpansionView<'_>, rows: Rows<'a>, params: &GradientParams, par: Par) -> Result<Self> {
        let (n, d, q) = (rows.rows(), rows.cols(), target.outputs());
        let (mut sums, mut squares) = (vec![0.0; d], vec![0.0; d]);
        for i in 0..n {
            rows.for_each_in_row(i, |k, v| {
                sums[k] += v;
                squares[k] += v * v;
            });
        }
        let means: Vec<f64> = sums.iter().map(|s| s / n as f64).collect();
        let deviations =
            means.iter().zip(&squares).map(|(m, s)| (s / n as f64 - m * m).max(0.0).sqrt() as f32).collect();
        let translates = matches!(target.kernel, Kernel::Rbf { .. } | Kernel::Laplacian { .. });
        let centre = means.iter().map(|&m| if translates { m as f32 } else { 0.0 }).collect();
        let places = 1 + if params.noise > 0.0 { params.places } else { 0 };
        let mut source = Self {
            rows,
            kernel: target.kernel,
            centre,
            deviations,
            noise: params.noise as f32,
            seed: params.seed,
            places,
            outputs: Vec::new(),
        };
        // Labels alone need no machine.
        let objective = params.objective;
        if matches!(objective.loss, Loss::Hinge | Loss::SquaredHinge) {
            source.outputs = vec![0.0; places * n * q];
            return Ok(source);
        }
        let evaluator = Evaluator::new(target)?;
        let mut outputs = Vec::with_capacity(places * n * q);
        outputs.extend(evaluator.evaluate(rows, par)?.into_iter().map(|v| v as f32));
        for place in 1..places {
            for first in (0..n).step_by(CHUNK) {
                let count = CHUNK.min(n - first);
                let mut dense = vec![0.0; count * d];
                let mut lines: Vec<&mut [f32]> = dense.chunks_exact_mut(d).collect();
                par.for_each_chunk(&mut lines, 64, |chunk, lines| {
                    for (i, line) in lines.iter_mut().enumerate() {
                        source.row(first + chunk * 64 + i, place, line);
                    }
                });
                let values = evaluator.evaluate(DenseView::new(&dense, count, d)?.into(), par)?;
                outputs.extend(values.into_iter().map(|v| v as f32));
            }
        }
        source.outputs = outputs;
        Ok(source)
    }

    /// A row at one of its places; place 0 is the row itself.
    fn row(&self, row: usize, place: usize, out: &mut [f32]) {
        out.fill(0.0);
        self.rows.for_each_in_row(row, |k, v| out[k] = v as f32);
        if place == 0 {
            return;
        }
        let mut random = Random::stream(self.seed, (place * self.rows.rows() + row) as u64);
        for (v, deviation) in out.iter_mut().zip(&self.deviations) {
            *v += self.noise * deviation * random.bell();
        }
        if matches!(self.kernel, Kernel::ChiSquared { .. }) {
            for v in out.iter_mut() {
                *v = v.max(0.0);
            }
        }
    }
}

/// B and b that bring K(X, Z) B + b nearest to the machine's outputs on a sample of the rows: least squares with a
/// ridge of 1e-6 of the mean diagonal, which duplicate vectors need.
fn fitted_coefficients(
    target: &ExpansionView<'_>,
    start: &[f32],
    source: &Source<'_>,
    par: Par,
) -> Result<(Vec<f32>, Vec<f32>)> {
    const ROWS_PER_VECTOR: usize = 6;
    const LEAST_ROWS: usize = 2000;
    const RIDGE: f64 = 1e-6;
    let (n, d, q) = (source.rows.rows(), source.rows.cols(), target.outputs());
    let m = start.len() / d;
    let count = n.min((m * ROWS_PER_VECTOR).max(LEAST_ROWS));
    let mut sample = Random::stream(source.seed, u64::MAX).sample(n, count);
    sample.sort_unstable();
    let rows = source.rows.gather(&sample);
    let wanted = Evaluator::new(target)?.evaluate(rows.view(), par)?;
    let kernel = gram(&target.kernel, rows.view(), DenseView::new(start, m, d)?.into(), par)?;
    // Columns of [K 1] as lines, so that the normal matrix is a matrix of inner products.
    let size = m + 1;
    let mut columns = vec![1.0; size * count];
    for (i, line) in kernel.chunks_exact(m).enumerate() {
        for (j, &value) in line.iter().enumerate() {
            columns[j * count + i] = value;
        }
    }
    let mut normal = vec![0.0; size * size];
    par.for_each_chunk(&mut normal, size, |a, line| {
        for (b, value) in line.iter_mut().enumerate().take(a + 1) {
            *value = dot(&columns[a * count..(a + 1) * count], &columns[b * count..(b + 1) * count]);
        }
    });
    let ridge = RIDGE * (0..size).map(|i| normal[i * size + i]).sum::<f64>() / size as f64;
    for i in 0..size {
        normal[i * size + i] += ridge;
    }
    let mut solution = vec![0.0; size * q];
    for (j, out) in solution.chunks_exact_mut(q).enumerate() {
        for (i, wanted) in wanted.chunks_exact(q).enumerate() {
            crate::simd::blas::axpy(columns[j * count + i], wanted, out);
        }
    }
    cholesky::factor(&mut normal, size)?;
    cholesky::solve(&normal, size, &mut solution, q);
    let narrow = |values: &[f64]| values.iter().map(|&v| v as f32).collect();
    Ok((narrow(&solution[..m * q]), narrow(&solution[m * q..])))
}
