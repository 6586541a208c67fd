//! Any loss (Vincent and Bengio, 3.1 and fig. 4): the next function is the one most collinear with the direction of
//! steepest descent, -dL/df; its coefficient comes from a line search, and every p steps all coefficients are set anew.
//! Without the latter it is basic matching pursuit, with squared error that of fig. 1: a function may be chosen again, and
//! then only its coefficient changes.
//!
//! Cost of a step: one pass over the dictionary, the line search O(l) an evaluation, and what `backfit` says.

use super::backfit::backfit;
use super::basis::{Basis, INSIDE};
use super::curve::Curve;
use super::dictionary::{Dictionary, inner_products};
use super::loss::{Derivative, Objective};
use super::{Coefficients, Fit, MatchingParams, Task, Variant};
use crate::control::{Monitor, Par, Progress, Stop, StopReason};
use crate::error::Result;
use crate::path::{Form, Steps, path_coefficients};
use crate::random::Random;
use crate::simd::blas::{axpy, dot};
use std::ops::ControlFlow;

/// Slopes below this share of the first are rounding.
const NOTHING: f64 = 1e-12;

struct State<'a> {
    objectives: Vec<Objective<'a>>,
    scale: Option<Vec<f64>>,
    /// (q, l)
    f: Vec<Vec<f64>>,
    /// Coefficients of the chosen functions, the constant first where it is there from the start: (n, q).
    coefficients: Vec<f64>,
    /// Values of the chosen functions on the validation rows.
    riders: Vec<Vec<f64>>,
    /// (q, n)
    watched: Vec<f64>,
    basis: Basis,
    order: Vec<usize>,
}

impl State<'_> {
    fn outputs(&self) -> usize {
        self.f.len()
    }

    /// Moves the coefficient of the function at a place by the best step of each output.
    fn step(&mut self, place: usize, column: &[f64]) {
        let q = self.outputs();
        let mut values = column.to_vec();
        if let Some(scale) = &self.scale {
            values.iter_mut().zip(scale).for_each(|(v, s)| *v /= s);
        }
        let others = self.riders[place].len();
        for j in 0..q {
            let alpha = self.objectives[j].line_search(&self.f[j], &values);
            axpy(alpha, &values, &mut self.f[j]);
            self.coefficients[place * q + j] += alpha;
            axpy(alpha, &self.riders[place], &mut self.watched[j * others..(j + 1) * others]);
        }
    }

    /// Sets all coefficients anew.
    fn backfit(
        &mut self,
        progress: &Progress,
        monitor: &dyn Monitor,
        par: Par,
    ) -> Result<Option<StopReason>> {
        let (q, n) = (self.outputs(), self.basis.len());
        let factor = self.basis.factor();
        let mut projections = vec![0.0; n * q];
        for (k, a) in self.coefficients.chunks_exact(q).enumerate() {
            for i in 0..=k {
                axpy(factor[k * n + i], a, &mut projections[i * q..(i + 1) * q]);
            }
        }
        let mut reason = None;
        for j in 0..q {
            let mut b: Vec<f64> = projections.iter().skip(j).step_by(q).copied().collect();
            let scale = self.scale.as_deref();
            let (objective, f) = (&mut self.objectives[j], &mut self.f[j]);
            reason = reason.or(backfit(objective, &self.basis, scale, &mut b, f, progress, monitor, par));
            for (to, from) in projections.iter_mut().skip(j).step_by(q).zip(b) {
                *to = from;
            }
        }
        let steps =
            Steps { vectors: n, outputs: q, projections: &projections, form: Form::Factored(&factor) };
        self.coefficients = path_coefficients(&steps, n)?;
        let others = self.watched.len() / q;
        self.watched.fill(0.0);
        for (rider, a) in self.riders.iter().zip(self.coefficients.chunks_exact(q)) {
            for (j, &a) in a.iter().enumerate() {
                axpy(a, rider, &mut self.watched[j * others..(j + 1) * others]);
            }
        }
        Ok(reason)
    }

    /// -dL/df times sqrt(w), (q, l).
    fn descent(&mut self) -> Vec<f64> {
        let mut out = Vec::new();
        for (objective, f) in self.objectives.iter_mut().zip(&self.f) {
            let from = out.len();
            out.extend(objective.rows(Derivative::First, f).iter().map(|g| -g));
            if let Some(scale) = &self.scale {
                out[from..].iter_mut().zip(scale).for_each(|(v, s)| *v /= s);
            }
        }
        out
    }

    fn note(&mut self, curve: &mut Curve<'_>, task: &Task<'_>, total: f64) -> bool {
        let (q, n) = (self.outputs(), self.watched.len() / self.outputs());
        let training: f64 =
            self.objectives.iter_mut().zip(&self.f).map(|(o, f)| o.value(f)).sum::<f64>() / total;
        curve.note(self.order.len(), training, &self.watched, |targets, outputs| {
            let losses = (0..q).map(|j| {
                let y: Vec<f64> = targets.iter().skip(j).step_by(q).copied().collect();
                let mut out = vec![0.0; n];
                task.loss.fill(Derivative::Value, &y, &outputs[j * n..(j + 1) * n], &mut out);
                out.iter().sum::<f64>()
            });
            losses.sum::<f64>() / n.max(1) as f64
        })
    }
}

/// Runs the pursuit.
pub(super) fn fit(task: &Task<'_>, params: &MatchingParams, monitor: &dyn Monitor, par: Par) -> Result<Fit> {
    let dictionary = match Dictionary::new(task, params.storage, params.sample, monitor, par)? {
        Ok(dictionary) => dictionary,
        Err(stop) => return Ok(Fit::nothing(stop)),
    };
    let (l, q, count) = (task.rows(), task.outputs, dictionary.count());
    let every = (params.variant != Variant::Basic).then_some(params.every);
    let others = task.validation.map_or(0, |v| v.targets.len() / q);
    let targets: Vec<Vec<f64>> =
        (0..q).map(|j| task.targets.iter().skip(j).step_by(q).copied().collect()).collect();
    let mut state = State {
        objectives: targets.iter().map(|y| Objective::new(task.loss, y, task.weights)).collect(),
        scale: task.weights.map(|w| w.iter().map(|w| w.sqrt()).collect()),
        f: vec![vec![0.0; l]; q],
        coefficients: Vec::new(),
        riders: Vec::new(),
        watched: vec![0.0; others * q],
        basis: Basis::new(l, 0),
        order: Vec::new(),
    };
    let total = task.weights.map_or(l as f64, |w| w.iter().sum());
    let mut curve = Curve::new(task.validation, q, params.patience, params.measure);
    let slope = state.descent();
    let at_first = dot(&slope, &slope);
    if task.constant {
        let mut ones = vec![1.0; l];
        dictionary.scale(&mut ones);
        if let Some(outside) = state.basis.split(ones.clone(), Vec::new(), 0.0, par) {
            state.basis.push(outside, Vec::new());
        }
        state.coefficients.extend(vec![0.0; q]);
        state.riders.push(vec![1.0; others]);
        state.step(0, &ones);
    }
    let first = usize::from(task.constant);
    let most = params.functions.min(count);
    // Where each candidate is in the basis, and those that are never to be chosen.
    let mut place: Vec<Option<usize>> = vec![None; count];
    let mut open = vec![true; count];
    let mut random = Random::new(params.seed);
    let all: Vec<usize> = (0..count).collect();

    let mut recorded = state.coefficients.clone();
    let mut go_on = state.note(&mut curve, task, total);
    let (mut steps, mut size_before) = (0_usize, 0);
    let mut gap;
    let reason = loop {
        let descent = state.descent();
        let squared = dot(&descent, &descent);
        gap = if at_first > 0.0 { (squared / at_first).sqrt() } else { 0.0 };
        let full = state.order.len() == most;
        if gap <= params.tolerance.max(NOTHING)
            || !go_on
            || steps >= params.steps.unwrap_or(usize::MAX)
            || full && (every.is_some() || most == 0)
        {
            break StopReason::Converged;
        }
        let progress =
            Progress { gap, steps: steps as u64, ..Progress::of("pursuit", state.order.len(), most) };
        if let ControlFlow::Break(reason) = monitor.tick(&progress) {
            break reason;
        }
        // A full basis leaves only its own functions to choose from.
        let allowed = |p: usize| open[p] && (!full || place[p].is_some());
        let chosen = if dictionary.drawn().is_some() {
            let flags: Vec<bool> = all.iter().map(|&p| allowed(p)).collect();
            let list = dictionary.draw(&flags, &mut random);
            let columns = dictionary.columns(&list, par)?;
            let own: Vec<f64> = columns.chunks_exact(l).map(|d| dot(d, d)).collect();
            let aligned = inner_products(&columns, &descent, l, par);
            best(&aligned, q, |i| own[i]).map(|i| (list[i], columns[i * l..(i + 1) * l].to_vec()))
        } else {
            let aligned = dictionary.products(&all, &descent, par);
            let own = |p: usize| if allowed(p) { dictionary.own[p] } else { 0.0 };
            match best(&aligned, q, own) {
                Some(p) => Some((p, dictionary.columns(&[p], par)?)),
                None => None,
            }
        };
        let Some((p, column)) = chosen else { break StopReason::Converged };
        let at = if let Some(at) = place[p] {
            at
        } else {
            if every.is_some() {
                let line = state.basis.products(&column, par);
                let Some(outside) = state.basis.split(column.clone(), line, INSIDE, par) else {
                    open[p] = false;
                    continue;
                };
                state.basis.push(outside, Vec::new());
            }
            state.riders.push(dictionary.watched(p, others, par)?);
            state.coefficients.extend(vec![0.0; q]);
            state.order.push(p);
            place[p] = Some(first + state.order.len() - 1);
            first + state.order.len() - 1
        };
        state.step(at, &column);
        steps += 1;
        let mut stopped = None;
        if every.is_some_and(|every| steps.is_multiple_of(every)) {
            stopped = state.backfit(&progress, monitor, par)?;
            // Only rounding is left where the same functions are chosen again after all coefficients were set.
            if std::mem::replace(&mut size_before, state.order.len()) == state.order.len() {
                stopped = stopped.or(Some(StopReason::Converged));
            }
        }
        recorded.extend(&state.coefficients);
        go_on = state.note(&mut curve, task, total);
        if let Some(reason) = stopped {
            break reason;
        }
    };
    let mut fit = Fit::nothing(Stop { reason, iterations: steps as u64, gap });
    fit.coefficients = Coefficients::Steps(recorded);
    fit.order = state.order;
    curve.finish(&mut fit);
    Ok(fit)
}

/// The candidate with the largest ||c||^2 / own, the first of equals; those with no own norm are left out.
fn best(aligned: &[f64], q: usize, own: impl Fn(usize) -> f64) -> Option<usize> {
    let mut best = (0.0, None);
    for (i, c) in aligned.chunks_exact(q).enumerate() {
        let own = own(i);
        let score = c.iter().map(|c| c * c).sum::<f64>() / own;
        if own > 0.0 && score > best.0 {
            best = (score, Some(i));
        }
    }
    best.1
}
