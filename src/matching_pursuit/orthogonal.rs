//! Squared loss with all coefficients at their best after every step: back-fitting (Vincent and Bengio, 2.2) and
//! pre-fitting (2.3, fig. 3), which is orthogonal least squares.
//!
//! Fig. 3 keeps for every function its part outside the span of the basis, in row coordinates, and its part inside, as
//! coefficients. Here the part inside is its products F_k with an orthonormal basis, the part outside is known by its
//! norm and its products with the residuals, and neither needs the rows: a step costs one column of D'D, computed for
//! several candidates at once (see `linalg::greedy`), instead of two passes over D. Only the chosen functions are
//! orthogonalised in row coordinates, twice, so that rounding in F can mislead the choice among equals but never the fit.
//!
//! Invariant: R = Y - Q G with Q orthonormal, G = Q'Y.

use super::basis::Basis;
use super::curve::Curve;
use super::dictionary::{Dictionary, inner_products};
use super::{Coefficients, Fit, MatchingParams, Task, Variant};
use crate::control::{Monitor, Par, Progress, Stop, StopReason};
use crate::error::Result;
use crate::linalg::greedy::{Candidates, Criterion, INSIDE};
use crate::random::Random;
use crate::simd::blas::{axpy, dot};
use std::ops::ControlFlow;

/// Residuals below this share of the targets are rounding.
const NOTHING: f64 = 1e-13;

/// The fitted part, without the candidates.
struct State<'a> {
    task: &'a Task<'a>,
    basis: Basis,
    /// R, (q, l): output after output.
    residuals: Vec<f64>,
    /// G, (n, q).
    projections: Vec<f64>,
    /// Outputs of the validation rows, (q, n).
    watched: Vec<f64>,
    total_weight: f64,
}

impl<'a> State<'a> {
    fn new(task: &'a Task<'a>, dictionary: &Dictionary<'_>) -> Self {
        let (l, q) = (task.rows(), task.outputs);
        let mut residuals = vec![0.0; l * q];
        for (j, r) in residuals.chunks_exact_mut(l).enumerate() {
            for (r, y) in r.iter_mut().zip(task.targets.iter().skip(j).step_by(q)) {
                *r = *y;
            }
            dictionary.scale(r);
        }
        let others = task.validation.map_or(0, |v| v.targets.len() / q);
        Self {
            task,
            basis: Basis::new(l, others),
            residuals,
            projections: Vec::new(),
            watched: vec![0.0; others * q],
            total_weight: task.weights.map_or(l as f64, |w| w.iter().sum()),
        }
    }

    fn others(&self) -> usize {
        self.watched.len() / self.task.outputs
    }

    fn squared_norm(&self) -> f64 {
        dot(&self.residuals, &self.residuals)
    }

    /// Takes the last basis vector's share of the residuals; returns it.
    fn project(&mut self) -> Vec<f64> {
        let (l, others) = (self.task.rows(), self.others());
        let (direction, rider) = self.basis.last();
        let shares: Vec<f64> = self
            .residuals
            .chunks_exact_mut(l)
            .map(|r| {
                let share = dot(direction, r);
                axpy(-share, direction, r);
                share
            })
            .collect();
        if others > 0 {
            for (f, share) in self.watched.chunks_exact_mut(others).zip(&shares) {
                axpy(*share, rider, f);
            }
        }
        self.projections.extend(&shares);
        shares
    }

    /// Notes the step; whether to go on.
    fn note(&self, curve: &mut Curve<'_>, size: usize) -> bool {
        let (q, n) = (self.task.outputs, self.others());
        curve.note(size, 0.5 * self.squared_norm() / self.total_weight, &self.watched, |targets, outputs| {
            let squares = (0..q).flat_map(|j| {
                let f = &outputs[j * n..(j + 1) * n];
                f.iter().zip(targets.iter().skip(j).step_by(q)).map(|(f, y)| (f - y) * (f - y))
            });
            0.5 * squares.sum::<f64>() / n.max(1) as f64
        })
    }
}

/// Where the next function comes from.
enum Rivals<'a> {
    All(Candidates<'a>),
    Drawn { open: Vec<bool>, random: Random },
}

pub(super) fn fit(task: &Task<'_>, params: &MatchingParams, monitor: &dyn Monitor, par: Par) -> Result<Fit> {
    let mut fit = Fit {
        order: Vec::new(),
        sizes: Vec::new(),
        coefficients: Coefficients::Factor { factor: Vec::new(), projections: Vec::new() },
        training_loss: Vec::new(),
        validation_loss: Vec::new(),
        validation_error: Vec::new(),
        stop: Stop { reason: StopReason::Converged, iterations: 0, gap: f64::NAN },
    };
    let dictionary = match Dictionary::new(task, params.storage, params.sample, monitor, par)? {
        Ok(dictionary) => dictionary,
        Err(stop) => {
            fit.stop = stop;
            return Ok(fit);
        }
    };
    let mut curve = Curve::new(task.validation, task.outputs, params.patience, params.measure);
    let mut state = State::new(task, &dictionary);
    let norm = state.squared_norm();
    let most = params.functions.min(dictionary.count());
    let criterion = if params.variant == Variant::PreFitting { Criterion::Gain } else { Criterion::Angle };

    let constant = task.constant.then(|| {
        let mut ones = vec![1.0; task.rows()];
        dictionary.scale(&mut ones);
        ones
    });
    let mut rivals = if dictionary.drawn().is_some() {
        Rivals::Drawn { open: vec![true; dictionary.count()], random: Random::new(params.seed) }
    } else {
        let correlations = dictionary.products(&state.residuals, par);
        let own = dictionary.own.clone();
        Rivals::All(Candidates::new(&dictionary, criterion, own, correlations, task.outputs, most + 1))
    };
    if let Some(ones) = constant {
        let column = if let Rivals::All(_) = rivals { dictionary.products(&ones, par) } else { Vec::new() };
        if let Some(outside) = state.basis.split(ones, 0.0, par) {
            let (line, pivot) = (outside.line.clone(), outside.pivot);
            state.basis.push(outside, vec![1.0; state.others()]);
            let shares = state.project();
            if let Rivals::All(rivals) = &mut rivals {
                rivals.advance(&column, &line, pivot, &shares, par);
            }
        }
    }

    let enough = params.tolerance.max(NOTHING).powi(2) * norm;
    let mut go_on = state.note(&mut curve, 0);
    let reason = loop {
        let residual = state.squared_norm();
        let gap = if norm > 0.0 { (residual / norm).sqrt() } else { 0.0 };
        fit.stop.gap = gap;
        if residual <= enough || fit.order.len() == most || !go_on {
            break StopReason::Converged;
        }
        let progress = Progress {
            phase: "pursuit",
            done: fit.order.len() as u64,
            total: Some(most as u64),
            gap,
            steps: fit.order.len() as u64,
        };
        if let ControlFlow::Break(reason) = monitor.tick(&progress) {
            break reason;
        }
        let chosen = match &mut rivals {
            Rivals::All(rivals) => match rivals.best() {
                Some((p, score)) if score > 0.0 => Some((p, dictionary.columns(&[p], par)?)),
                _ => None,
            },
            Rivals::Drawn { open, random } => {
                let list = dictionary.draw(open, random);
                let chosen = best_drawn(&dictionary, &state, &list, criterion, open, par)?;
                // A sample that was inside the span, and is closed now, leaves others to look at.
                if chosen.is_none() && list.iter().any(|&p| !open[p]) {
                    continue;
                }
                chosen
            }
        };
        let Some((p, column)) = chosen else { break StopReason::Converged };
        let outside = state.basis.split(column, INSIDE, par);
        match (&mut rivals, outside) {
            (Rivals::All(rivals), Some(outside)) => {
                let (line, pivot) = (outside.line.clone(), outside.pivot);
                let gram = rivals.column(p, par);
                dictionary.failure()?;
                state.basis.push(outside, dictionary.watched(p, state.others(), par)?);
                let shares = state.project();
                rivals.advance(&gram, &line, pivot, &shares, par);
                rivals.leave_out(p);
            }
            (Rivals::Drawn { open, .. }, Some(outside)) => {
                state.basis.push(outside, dictionary.watched(p, state.others(), par)?);
                state.project();
                open[p] = false;
            }
            (Rivals::All(rivals), None) => {
                rivals.leave_out(p);
                continue;
            }
            (Rivals::Drawn { open, .. }, None) => {
                open[p] = false;
                continue;
            }
        }
        fit.order.push(p);
        go_on = state.note(&mut curve, fit.order.len());
    };
    fit.stop.reason = reason;
    fit.stop.iterations = fit.order.len() as u64;
    fit.coefficients = Coefficients::Factor { factor: state.basis.factor(), projections: state.projections };
    curve.finish(&mut fit);
    Ok(fit)
}

/// The best of some candidates and its column; those inside the span are closed.
fn best_drawn(
    dictionary: &Dictionary<'_>,
    state: &State<'_>,
    list: &[usize],
    criterion: Criterion,
    open: &mut [bool],
    par: Par,
) -> Result<Option<(usize, Vec<f64>)>> {
    let (l, q) = (state.task.rows(), state.task.outputs);
    let columns = dictionary.columns(list, par)?;
    let inside = inner_products(&columns, state.basis.vectors(), l, par);
    let aligned = inner_products(&columns, &state.residuals, l, par);
    let n = state.basis.len();
    let mut best: Option<(usize, f64)> = None;
    for (i, &p) in list.iter().enumerate() {
        let column = &columns[i * l..(i + 1) * l];
        let own = dot(column, column);
        let distance = own - inside[i * n..(i + 1) * n].iter().map(|v| v * v).sum::<f64>();
        if !(distance > INSIDE * own) {
            open[p] = false;
            continue;
        }
        let size: f64 = aligned[i * q..(i + 1) * q].iter().map(|c| c * c).sum();
        let score = size / if criterion == Criterion::Gain { distance } else { own };
        if score > 0.0 && best.is_none_or(|(_, most)| score > most) {
            best = Some((i, score));
        }
    }
    Ok(best.map(|(i, _)| (list[i], columns[i * l..(i + 1) * l].to_vec())))
}
