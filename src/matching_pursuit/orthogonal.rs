//! Squared loss with all coefficients at their best after every step: back-fitting (Vincent and Bengio, 2.2) and
//! pre-fitting (2.3, fig. 3), which is orthogonal least squares.
//!
//! Fig. 3 keeps for every function its part outside the span of the basis, in row coordinates. Here that part is known by
//! its squared norm n_k and its products C_k with the residuals. A new basis vector q, whose products with the residuals
//! are g, changes them by one number for each function:
//!
//! ```text
//! l_k = <d_k, q>,   n_k -= l_k^2,   C_k -= l_k g,   score ||C_k||^2 / n_k (pre-fitting) or / ||d_k||^2 (back-fitting)
//! ```
//!
//! One pass over the dictionary would be needed at each step, bound by memory; `levels` needs a part of a pass. Only the chosen
//! functions are orthogonalized in row coordinates, twice, so that rounding in n and C can mislead the choice among equals
//! but never the fit.
//!
//! The values n and C of functions that are hardly outside the span are rounding. If such functions may matter
//! ([`Functions::span_tolerance`](super::Functions::span_tolerance) is 0), the pursuit continues with drawn functions, which are
//! orthogonalized in row coordinates.

use super::basis::{ColumnResidual, SPAN_TOLERANCE};
use super::column_cache::ColumnCache;
use super::curve::{Coefficients, Fit, Stopping};
use super::dictionary::{Dictionary, inner_products};
use super::levels::CandidateLevels;
use super::state::State;
use super::task::{MatchingParams, Task, Variant};
use crate::context::{Context, Progress, Stop, StopReason};
use crate::data::{copy_columns, matrix};
use crate::error::Result;
use crate::random::Random;
use crate::simd::blas::dot;
use ndarray::Array2;

/// Share of the targets below which residuals are rounding.
const MIN_RELATIVE_RESIDUAL: f64 = 1e-13;

/// The source of the next function.
enum Candidates<'a> {
    /// With true once no candidate reduces the residual, before all are updated.
    All(Box<CandidateLevels<'a>>, ColumnCache, bool),
    Drawn {
        open: Vec<bool>,
        random: Random,
    },
}

impl<'a> Candidates<'a> {
    /// Returns all functions of a dictionary, or those to draw from.
    fn new(
        dictionary: &'a Dictionary<'a>,
        state: &State<'_, '_>,
        params: &MatchingParams,
        ctx: Context<'_>,
    ) -> Result<Self> {
        if dictionary.drawn().is_some() {
            return Ok(Self::outside(dictionary, &[], params.seed));
        }
        let by_gain = params.variant == Variant::PreFitting;
        let levels = Box::new(CandidateLevels::new(dictionary, state, by_gain, ctx)?);
        Ok(Self::All(levels, ColumnCache::default(), false))
    }

    /// Returns the functions that are not in `order`, to draw from.
    fn outside(dictionary: &Dictionary<'_>, order: &[usize], seed: u64) -> Self {
        let mut open = vec![true; dictionary.count()];
        for &p in order {
            open[p] = false;
        }
        Self::Drawn { open, random: Random::new(seed) }
    }

    /// Returns the next function.
    fn choose(
        &mut self,
        state: &mut State<'_, '_>,
        dictionary: &'a Dictionary<'a>,
        params: &MatchingParams,
        ctx: Context<'_>,
    ) -> Result<Choice> {
        match self {
            Self::All(levels, cache, is_exhausted) => match levels.best(state.order.len()) {
                Some(p) => {
                    *is_exhausted = false;
                    let residual = cache.take(p, levels, dictionary, &state.basis, ctx)?;
                    let newer = levels.line(p)[residual.seen()..].to_vec();
                    Ok(Choice::Candidate((p, residual, newer)))
                }
                None if std::mem::replace(is_exhausted, true) => {
                    if dictionary.span_tolerance() >= SPAN_TOLERANCE {
                        return Ok(Choice::None);
                    }
                    *self = Self::outside(dictionary, &state.order, params.seed);
                    Ok(Choice::Again)
                }
                None => Ok(Choice::Truncated(levels.refresh(state, true, true, ctx)?)),
            },
            Self::Drawn { open, random } => {
                let list = dictionary.draw(open, random);
                let by_gain = params.variant == Variant::PreFitting;
                let best = best_drawn(dictionary, state, &list, by_gain, open, ctx)?;
                // Functions inside the span are excluded now; others may be left to draw, unless all were candidates before.
                if best.is_none() && dictionary.drawn().is_some() && list.iter().any(|&p| !open[p]) {
                    return Ok(Choice::Again);
                }
                Ok(best.map_or(Choice::None, Choice::Candidate))
            }
        }
    }

    /// Returns the largest squared distance of a column from the span, relative to its squared length, that counts as zero.
    fn span_tolerance(&self, dictionary: &Dictionary<'_>) -> f64 {
        match self {
            Self::All(..) => SPAN_TOLERANCE,
            Self::Drawn { .. } => dictionary.span_tolerance(),
        }
    }

    /// Excludes a function that was chosen in a step.
    fn close(&mut self, p: usize, step: usize) {
        match self {
            Self::All(levels, ..) => levels.close(p, step),
            Self::Drawn { open, .. } => open[p] = false,
        }
    }
}

/// A candidate, its column as far as it is orthogonal to the basis, and the products of that with the rest of the basis.
type Candidate = (usize, ColumnResidual, Vec<f64>);

/// The choice of the next function.
enum Choice {
    Candidate(Candidate),
    /// There may be one among the candidates that are left.
    Again,
    /// Steps after this number were not the best ones, and are undone.
    Truncated(usize),
    /// No function reduces the residual.
    None,
}

/// Runs the pursuit.
pub(super) fn fit(
    task: &Task<'_>,
    params: &MatchingParams,
    dictionary: &Dictionary<'_>,
    ctx: Context<'_>,
) -> Result<Fit> {
    let mut stopping = Stopping::new(task, params);
    let mut state = State::new(task, dictionary)?;
    let norm = state.squared_norm();
    let max_size = params.functions.min(dictionary.count());
    let last_size = max_size.min(params.max_iterations.unwrap_or(usize::MAX));
    if task.constant {
        let mut ones = vec![1.0; task.rows()];
        dictionary.scale(&mut ones);
        if let Some(outside) = state.basis.split(ColumnResidual::of(ones), Vec::new(), 0.0, ctx)? {
            state.take(outside, vec![1.0; task.validation_rows()])?;
        }
    }
    let mut candidates = Candidates::new(dictionary, &state, params, ctx)?;
    let enough = params.tolerance.max(MIN_RELATIVE_RESIDUAL).powi(2) * norm;
    let mut may_continue = state.note(&mut stopping);
    let mut gap;
    let reason = loop {
        let residual = state.squared_norm();
        gap = if norm > 0.0 { (residual / norm).sqrt() } else { 0.0 };
        let progress = Progress {
            gap,
            steps: state.order.len() as u64,
            ..Progress::new("pursuit", state.order.len(), last_size)
        };
        let end = if residual <= enough || state.order.len() == max_size || !may_continue {
            Some(StopReason::Converged)
        } else {
            (state.order.len() == last_size).then_some(StopReason::MaxIterations)
        };
        let stopped = StopReason::from_result(ctx.tick(&progress))?;
        let reason = stopped.or(end);
        if let Candidates::All(levels, ..) = &mut candidates {
            // At the end all functions are updated: a better one may have been missed at an earlier step.
            let n_exact = levels.refresh(&mut state, reason.is_some(), false, ctx)?;
            if n_exact + 1 < stopping.curve.sizes.len() {
                may_continue = stopping.truncate(n_exact + 1);
                if stopped.is_none() {
                    continue;
                }
            }
        }
        if let Some(reason) = reason {
            break reason;
        }
        let (p, residual, newer) = match candidates.choose(&mut state, dictionary, params, ctx)? {
            Choice::Candidate(candidate) => candidate,
            Choice::Again => continue,
            Choice::Truncated(size) => {
                may_continue = stopping.truncate(size + 1);
                continue;
            }
            Choice::None => break StopReason::Converged,
        };
        let outside = state.basis.split(residual, newer, candidates.span_tolerance(dictionary), ctx)?;
        candidates.close(p, state.order.len());
        let Some(outside) = outside else { continue };
        state.take(outside, dictionary.validation_column(p, ctx)?)?;
        state.order.push(p);
        may_continue = state.note(&mut stopping);
    };
    let shape = (state.basis.len(), task.outputs());
    let projections = Array2::from_shape_vec(shape, state.projections).expect("a line of shares a function");
    Ok(Fit {
        stop: Stop { reason, iterations: state.order.len() as u64, gap },
        order: state.order,
        coefficients: Coefficients::Factor { factor: state.basis.factor()?, projections },
        curve: stopping.curve,
    })
}

/// The best of some candidates; those inside the span are closed.
fn best_drawn(
    dictionary: &Dictionary<'_>,
    state: &State<'_, '_>,
    list: &[usize],
    by_gain: bool,
    open: &mut [bool],
    ctx: Context<'_>,
) -> Result<Option<Candidate>> {
    let (l, q, tolerance) = (state.task.rows(), state.task.outputs(), dictionary.span_tolerance());
    let mut columns = dictionary.columns(list, ctx)?;
    let mut inside = inner_products(&columns, state.basis.vectors(), l, ctx)?;
    let n = state.basis.len();
    let squared_norms: Vec<f64> = columns.chunks_exact(l).map(|d| dot(d, d)).collect();
    let mut residuals = Vec::new();
    // Squared distances from the span, and whether they are outside of it.
    let distances: Vec<(f64, bool)> = if tolerance < SPAN_TOLERANCE {
        residuals.extend(
            copy_columns(matrix((list.len(), l), &columns)?.t())?.into_iter().map(ColumnResidual::of),
        );
        state.basis.orthogonalize(&mut residuals, &mut inside, ctx)?;
        for (column, residual) in columns.chunks_exact_mut(l).zip(&residuals) {
            column.copy_from_slice(residual.column());
        }
        residuals
            .iter()
            .map(|residual| (residual.squared(), state.basis.is_outside(residual, tolerance)))
            .collect::<Vec<_>>()
    } else {
        let squared = |i: usize| inside[i * n..(i + 1) * n].iter().map(|v| v * v).sum::<f64>();
        let distances = squared_norms
            .iter()
            .enumerate()
            .map(|(i, squared_norm)| (squared_norm - squared(i), squared_norm));
        distances
            .map(|(distance, squared_norm)| (distance, distance > tolerance * squared_norm))
            .collect::<Vec<_>>()
    };
    let aligned = inner_products(&columns, &state.residuals, l, ctx)?;
    let mut best: Option<(usize, f64)> = None;
    for (i, &p) in list.iter().enumerate() {
        let (distance, is_outside) = distances[i];
        if !is_outside {
            open[p] = false;
            continue;
        }
        let size: f64 = aligned[i * q..(i + 1) * q].iter().map(|c| c * c).sum();
        let score = size / if by_gain { distance } else { squared_norms[i] };
        if score > 0.0 && best.is_none_or(|(_, best_score)| score > best_score) {
            best = Some((i, score));
        }
    }
    let Some((i, _)) = best else { return Ok(None) };
    if i < residuals.len() {
        return Ok(Some((list[i], residuals.swap_remove(i), Vec::new())));
    }
    let column = ColumnResidual::of(columns[i * l..(i + 1) * l].to_vec());
    Ok(Some((list[i], column, inside[i * n..(i + 1) * n].to_vec())))
}
