//! Any loss (Vincent and Bengio, 3.1 and fig. 4): the next function is the one most collinear with the direction of
//! steepest descent, -dL/df; its coefficient comes from a line search, and every p steps all coefficients are fitted again.
//! Without the latter it is basic matching pursuit, with squared error that of fig. 1: a function may be chosen again, and
//! then only its coefficient changes.
//!
//! Cost of a step: one pass over the dictionary, O(l) for each evaluation of the line search, and the cost of `backfit`.

use super::backfit::{Backfit, unscale};
use super::basis::{Basis, ColumnResidual};
use super::curve::{Coefficients, Fit, Stopping};
use super::dictionary::{Dictionary, inner_products};
use super::loss::{Derivative, Objective};
use super::task::{MatchingParams, Task, Variant};
use crate::context::{Context, Progress, Stop, StopReason};
use crate::data::{copy_columns, flat, matrix};
use crate::error::Result;
use crate::memory::{TryGrow, try_vec, try_with_capacity};
use crate::path::{Form, PathView, path_coefficients};
use crate::random::Random;
use crate::simd::blas::{axpy, dot};
use ndarray::Array2;

/// Slopes below this share of the first are rounding.
const MIN_RELATIVE_RESIDUAL: f64 = 1e-12;

struct State<'a> {
    objectives: Vec<Objective<'a>>,
    scale: Option<Vec<f64>>,
    /// (q, l)
    f: Vec<Vec<f64>>,
    /// Coefficients of the chosen functions, the constant first where it is there from the start: (n, q).
    coefficients: Vec<f64>,
    /// Values of the chosen functions on the validation rows.
    validation: Vec<Vec<f64>>,
    /// Outputs of the validation rows, (q, n).
    validation_outputs: Vec<f64>,
    basis: Basis,
    order: Vec<usize>,
}

impl<'a> State<'a> {
    /// Returns the state without functions.
    fn new<'t: 'a>(task: &Task<'t>, targets: &'a [Vec<f64>]) -> Result<Self> {
        let l = task.rows();
        let objectives = targets.iter().map(|y| Objective::new(task.loss, y, task.weights));
        Ok(Self {
            objectives: objectives.collect::<Result<_>>()?,
            scale: task.weights.map(|w| w.iter().map(|w| w.sqrt()).collect()),
            f: (0..task.outputs()).map(|_| try_vec![0.0; l]).collect::<Result<_>>()?,
            coefficients: Vec::new(),
            validation: Vec::new(),
            validation_outputs: task.validation_zeros()?,
            basis: Basis::new(l, 0),
            order: Vec::new(),
        })
    }

    /// Adds the constant function, and makes a step along it.
    fn add_constant(&mut self, task: &Task<'_>, dictionary: &Dictionary<'_>, ctx: Context<'_>) -> Result<()> {
        let mut ones = vec![1.0; task.rows()];
        dictionary.scale(&mut ones);
        let residual = ColumnResidual::of(ones.clone());
        if let Some(outside) = self.basis.split(residual, Vec::new(), 0.0, ctx)? {
            self.basis.push(outside, Vec::new())?;
        }
        self.add_function(vec![1.0; task.validation_rows()])?;
        self.step(0, &ones);
        Ok(())
    }

    /// Adds a function, given its values on the validation rows, with coefficients 0.
    fn add_function(&mut self, validation: Vec<f64>) -> Result<()> {
        self.validation.push(validation);
        self.coefficients.try_resize(self.coefficients.len() + self.outputs(), 0.0)
    }

    fn outputs(&self) -> usize {
        self.f.len()
    }

    /// Moves the coefficient of the function at a place by the best step of each output.
    fn step(&mut self, place: usize, column: &[f64]) {
        let q = self.outputs();
        let mut values = column.to_vec();
        unscale(self.scale.as_deref(), &mut values);
        let validation = &self.validation[place];
        let n = validation.len();
        for j in 0..q {
            let alpha = self.objectives[j].line_search(&self.f[j], &values);
            axpy(alpha, &values, &mut self.f[j]);
            self.coefficients[place * q + j] += alpha;
            axpy(alpha, validation, &mut self.validation_outputs[j * n..(j + 1) * n]);
        }
    }

    /// Fits all coefficients again; returns why it was stopped, if it was.
    fn backfit(&mut self, progress: Progress, ctx: Context<'_>) -> Result<Option<StopReason>> {
        let (q, n) = (self.outputs(), self.basis.len());
        let factor = self.basis.factor()?;
        let mut projections = try_vec![0.0; n * q]?;
        for (k, a) in self.coefficients.chunks_exact(q).enumerate() {
            for i in 0..=k {
                axpy(factor[[k, i]], a, &mut projections[i * q..(i + 1) * q]);
            }
        }
        let (basis, scale) = (&self.basis, self.scale.as_deref());
        let fixed = Backfit { basis, scale, progress, ctx };
        let mut reason = None;
        for j in 0..q {
            let mut b: Vec<f64> = projections.iter().skip(j).step_by(q).copied().collect();
            let ended = fixed.improve(&mut self.objectives[j], &mut b, &mut self.f[j]);
            reason = reason.or(StopReason::from_result(ended)?);
            for (to, from) in projections.iter_mut().skip(j).step_by(q).zip(b) {
                *to = from;
            }
        }
        let form = Form::Factored(factor.view());
        let path = PathView { projections: matrix((n, q), &projections)?, form };
        self.coefficients = flat(path_coefficients(&path, n)?);
        self.validation_outputs.fill(0.0);
        for (values, a) in self.validation.iter().zip(self.coefficients.chunks_exact(q)) {
            for (f, &a) in self.validation_outputs.chunks_exact_mut(values.len().max(1)).zip(a) {
                axpy(a, values, f);
            }
        }
        Ok(reason)
    }

    /// -dL/df times sqrt(w), (q, l).
    fn descent(&mut self) -> Result<Vec<f64>> {
        let rows = self.f.first().map_or(0, Vec::len);
        let mut out = try_with_capacity("the slopes", self.f.len() * rows)?;
        for (objective, f) in self.objectives.iter_mut().zip(&self.f) {
            let from = out.len();
            out.extend(objective.rows(Derivative::First, f).iter().map(|g| -g));
            unscale(self.scale.as_deref(), &mut out[from..]);
        }
        Ok(out)
    }

    fn note(&mut self, stopping: &mut Stopping<'_>, task: &Task<'_>) -> bool {
        let n = task.validation_rows();
        let mut out = vec![0.0; n];
        let mut validation = 0.0;
        let targets = task.validation.iter().flat_map(|v| v.targets.columns());
        for (y, f) in targets.zip(self.validation_outputs.chunks_exact(n.max(1))) {
            task.loss.fill(Derivative::Value, &y.iter().copied().collect::<Vec<_>>(), f, &mut out);
            let rows = task.validation.iter();
            validation +=
                rows.flat_map(|v| out.iter().enumerate().map(|(i, loss)| v.weight(i) * loss)).sum::<f64>();
        }
        let weight = task.validation.filter(|_| n > 0).map_or(1.0, |v| v.total_weight());
        let training: f64 = self.objectives.iter_mut().zip(&self.f).map(|(o, f)| o.value(f)).sum();
        let mean = (training / task.total_weight(), validation / weight);
        stopping.note(self.order.len(), mean.0, mean.1, &self.validation_outputs)
    }
}

/// Runs the pursuit.
pub(super) fn fit(
    task: &Task<'_>,
    params: &MatchingParams,
    dictionary: &Dictionary<'_>,
    ctx: Context<'_>,
) -> Result<Fit> {
    let every = (params.variant != Variant::Basic).then_some(params.every);
    let targets = copy_columns(task.targets.view())?;
    let mut state = State::new(task, &targets)?;
    let mut stopping = Stopping::new(task, params);
    let slope = state.descent()?;
    let at_first = dot(&slope, &slope);
    if task.constant {
        state.add_constant(task, dictionary, ctx)?;
    }
    let max_size = params.functions.min(dictionary.count());
    let mut candidates = Candidates::new(dictionary, task.rows(), params.seed, usize::from(task.constant));

    let mut recorded = state.coefficients.clone();
    let mut may_continue = state.note(&mut stopping, task);
    let (mut steps, mut size_before) = (0_usize, 0);
    let mut gap;
    let reason = loop {
        let descent = state.descent()?;
        let squared = dot(&descent, &descent);
        gap = if at_first > 0.0 { (squared / at_first).sqrt() } else { 0.0 };
        let is_full = state.order.len() == max_size;
        if gap <= params.tolerance.max(MIN_RELATIVE_RESIDUAL)
            || !may_continue
            || is_full && (every.is_some() || max_size == 0)
        {
            break StopReason::Converged;
        }
        if steps >= params.max_iterations.unwrap_or(usize::MAX) {
            break StopReason::MaxIterations;
        }
        let progress =
            Progress { gap, steps: steps as u64, ..Progress::new("pursuit", state.order.len(), max_size) };
        if let Some(reason) = StopReason::from_result(ctx.tick(&progress))? {
            break reason;
        }
        let Some((p, column)) = candidates.best(&descent, is_full, ctx)? else { break StopReason::Converged };
        let Some(place) = candidates.place_of(p, &column, &mut state, every.is_some(), ctx)? else {
            continue;
        };
        state.step(place, &column);
        steps += 1;
        let mut stopped = None;
        if every.is_some_and(|every| steps.is_multiple_of(every)) {
            stopped = state.backfit(progress, ctx)?;
            // Only rounding is left where the same functions are chosen again after all coefficients were set.
            if std::mem::replace(&mut size_before, state.order.len()) == state.order.len() {
                stopped = stopped.or(Some(StopReason::Converged));
            }
        }
        recorded.try_extend(state.coefficients.iter().copied())?;
        may_continue = state.note(&mut stopping, task);
        if let Some(reason) = stopped {
            break reason;
        }
    };
    let shape = (recorded.len() / task.outputs(), task.outputs());
    let recorded = Array2::from_shape_vec(shape, recorded).expect("a line of coefficients a function");
    Ok(Fit {
        order: state.order,
        coefficients: Coefficients::Steps(recorded),
        curve: stopping.curve,
        stop: Stop { reason, iterations: steps as u64, gap },
    })
}

/// The functions of the dictionary that may be chosen.
struct Candidates<'d, 'a> {
    dictionary: &'d Dictionary<'a>,
    rows: usize,
    all: Vec<usize>,
    /// Place of each function in the basis, if it has one.
    places: Vec<Option<usize>>,
    /// Number of functions of the basis that are not in the dictionary.
    first: usize,
    /// False for functions inside the span of the others.
    open: Vec<bool>,
    random: Random,
}

impl<'d, 'a> Candidates<'d, 'a> {
    fn new(dictionary: &'d Dictionary<'a>, rows: usize, seed: u64, first: usize) -> Self {
        let count = dictionary.count();
        Self {
            dictionary,
            rows,
            all: (0..count).collect(),
            places: vec![None; count],
            first,
            open: vec![true; count],
            random: Random::new(seed),
        }
    }

    /// Returns the function that is most collinear with the direction of steepest descent, and its column. A full basis leaves
    /// only its own functions to choose from.
    fn best(
        &mut self,
        descent: &[f64],
        is_full: bool,
        ctx: Context<'_>,
    ) -> Result<Option<(usize, Vec<f64>)>> {
        let Self { dictionary, rows: l, all, places, open, random, .. } = self;
        let (l, q) = (*l, descent.len() / *l);
        let is_allowed = |p: usize| open[p] && (!is_full || places[p].is_some());
        if dictionary.drawn().is_none() {
            let aligned = dictionary.products(all, descent, ctx)?;
            let squared = |p: usize| if is_allowed(p) { dictionary.squared_norms[p] } else { 0.0 };
            let Some(p) = best(&aligned, q, squared) else { return Ok(None) };
            return Ok(Some((p, dictionary.columns(&[p], ctx)?)));
        }
        let flags: Vec<bool> = all.iter().map(|&p| is_allowed(p)).collect();
        let list = dictionary.draw(&flags, random);
        let columns = dictionary.columns(&list, ctx)?;
        let squared: Vec<f64> = columns.chunks_exact(l).map(|d| dot(d, d)).collect();
        let aligned = inner_products(&columns, descent, l, ctx)?;
        let Some(i) = best(&aligned, q, |i| squared[i]) else { return Ok(None) };
        Ok(Some((list[i], columns[i * l..(i + 1) * l].to_vec())))
    }

    /// Returns the place of a function among those of the state, to which it is added if it is new. `None` if it is inside the
    /// span of the others, for a state with a basis.
    fn place_of(
        &mut self,
        p: usize,
        column: &[f64],
        state: &mut State<'_>,
        has_basis: bool,
        ctx: Context<'_>,
    ) -> Result<Option<usize>> {
        if let Some(place) = self.places[p] {
            return Ok(Some(place));
        }
        if has_basis {
            let line = state.basis.products(column, ctx);
            let residual = ColumnResidual::of(column.to_vec());
            let Some(outside) = state.basis.split(residual, line, self.dictionary.span_tolerance(), ctx)?
            else {
                self.open[p] = false;
                return Ok(None);
            };
            state.basis.push(outside, Vec::new())?;
        }
        state.add_function(self.dictionary.validation_column(p, ctx)?)?;
        let place = self.first + state.order.len();
        state.order.push(p);
        self.places[p] = Some(place);
        Ok(Some(place))
    }
}

/// The candidate with the largest ||c||^2 over its squared norm, the first of equals; those of norm 0 are left out.
fn best(aligned: &[f64], q: usize, squared_norm: impl Fn(usize) -> f64) -> Option<usize> {
    let mut best = (0.0, None);
    for (i, c) in aligned.chunks_exact(q).enumerate() {
        let squared_norm = squared_norm(i);
        let score = c.iter().map(|c| c * c).sum::<f64>() / squared_norm;
        if squared_norm > 0.0 && score > best.0 {
            best = (score, Some(i));
        }
    }
    best.1
}
