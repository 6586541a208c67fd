//! Hyperplane matching pursuit: approximate w_j = sum_i B[i, j] phi(z_i), all outputs j at once, in the span of few
//! candidates phi(p) (Weston and Bakir, TR-132, Alg. 3.2, with back-fitting (6)-(10), joint over outputs (12)-(13)).
//!
//! A step takes the candidate that is most aligned with the residual. With r_j the residual of output j,
//!
//! ```text
//! basic          p = argmax sum_j <r_j, phi(p)>^2 / ||phi(p)||^2         (the absolute value, which the paper omits)
//! back-fitting   the same, with r_j orthogonal to everything taken so far
//! pre-fitting    p = argmax sum_j <r_j, phi(p)>^2 / ||phi(p) outside the span||^2
//! ```
//!
//! The third is the decrease of the squared residual by the step. The last two need only, for every candidate, its residual
//! correlations C (M_c, q), its squared distance d from the span, and its row of the pivoted Cholesky factor L:
//!
//! ```text
//! l_p = (k(p, s) - L_p . L_s) / sqrt(d_s),   d_p -= l_p^2,   C_p -= l_p C_s / sqrt(d_s)
//! ```
//!
//! Invariant: after t steps C_p = <r, phi(p)> for the *best* coefficients on the t vectors, so no system is
//! solved; coefficients of every size follow from L afterwards (see `path`). Basic steps subtract a_j = C_p / d_p times
//! the kernel column instead and may choose a vector again; a size lasts until the next new vector.
//!
//! Inner products are those of the feature space or of predictions on rows (see `space`); a step considers all
//! candidates or a few random ones (see `stepper`). Separate outputs have one pursuit each, and the one with the largest
//! gain takes the next step; all outputs then use the vectors of all, with the best coefficients on them. Basic steps keep
//! the coefficients of each output.
//!
//! Cost of complete steps: candidates x steps^2 / 2 multiply-adds and (about) steps x candidates kernel values; memory
//! candidates x steps numbers.

use ndarray::Array2;

use super::sampled::Sampled;
use super::space::{Criterion, Space, SpaceOptions, check_kernel};
use super::stepper::{Complete, Proposal, Rule, Step};
use crate::context::{Context, GracePeriod, MAX_THREADS_AWAKE, Progress, Stop, StopReason};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::linalg::matrix_of_rows;
use crate::memory::TryGrow;
use crate::path::Path;
use crate::random::Random;
use crate::simd::blas::dot;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of basic steps for each vector, since basic steps need not end.
const MAX_BASIC_STEPS_PER_VECTOR: usize = 64;
/// Minimum gain of a basic step as a share of the squared norm; a smaller one is rounding error.
const MIN_RELATIVE_GAIN: f64 = 1e-16;

/// The rule that chooses the next vector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// The angle between the residual and the candidate (TR-132). Classifiers had a lower error than with pre-fitting,
    /// though the residual is slightly larger.
    #[default]
    BackFitting,
    /// The decrease of the residual, as in orthogonal least squares: the candidate's part in the span is ignored.
    PreFitting,
    /// The angle, without a change of earlier coefficients (TR-132, Alg. 3.2 alone).
    Basic,
    /// A given order, with the best coefficients of every size; candidates in the span are skipped.
    Given(Vec<usize>),
}

/// A random sample of candidates for each step (TR-132, "probabilistic search").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Number of candidates, at least 1; 59 contain one of the best 5 % with probability .95.
    pub size: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Parameters of a pursuit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PursuitParams<'a> {
    /// Maximum number of vectors, at least 1 and at most the number of candidates.
    pub max_vectors: usize,
    /// Stop when the residual norm is at most this share of the target's norm.
    pub tolerance: f64,
    /// The rule that chooses the next vector.
    pub selection: Selection,
    /// The residual to minimize.
    pub criterion: Criterion<'a>,
    /// Chooses the vectors of all outputs jointly.
    pub joint: bool,
    /// Considers only a few random candidates in each step.
    pub sample: Option<Sample>,
    /// Maximum number of kernel values between candidates and rows that are kept if predictions are compared.
    pub max_kept_values: usize,
    /// Upper bound on the target's squared norm that replaces it, since the norm costs m^2 kernel values. Used only with
    /// candidates and the feature-space norm.
    pub(crate) norm_bound: Option<f64>,
}

impl PursuitParams<'_> {
    /// Returns the parameters of a joint back-fitting pursuit in the feature space with tolerance 0.
    pub fn new(max_vectors: usize) -> Self {
        Self {
            max_vectors,
            tolerance: 0.0,
            selection: Selection::BackFitting,
            criterion: Criterion::Norm,
            joint: true,
            sample: None,
            max_kept_values: 1 << 26,
            norm_bound: None,
        }
    }

    /// Checks every parameter against its rule.
    fn check(&self, candidates: usize) -> Result<()> {
        let rule = format!("between 1 and {candidates}, the number of candidates");
        let fits = (1..=candidates).contains(&self.max_vectors);
        Error::check_param(fits, "max_vectors", self.max_vectors, rule)?;
        if let Selection::Given(order) = &self.selection {
            Error::check_below("order", order, candidates, "the number of candidates")?;
        }
        let share = (0.0..1.0).contains(&self.tolerance);
        Error::check_param(share, "tolerance", self.tolerance, "in [0, 1)")?;
        let some = self.sample.is_none_or(|sample| sample.size > 0);
        Error::check_param(some, "sample", 0, "at least 1")
    }

    fn rule(&self) -> Rule {
        match self.selection {
            Selection::Basic => Rule::Basic,
            Selection::PreFitting => Rule::PreFitting,
            Selection::BackFitting | Selection::Given(_) => Rule::BackFitting,
        }
    }
}

/// Reduces `target` to at most `max_vectors` candidates: the given rows, or the vectors of the target.
///
/// # Errors
/// [`Error::Param`] for parameters outside their rules, a precomputed kernel, since k between vectors is unknown, and
/// a kernel that proves indefinite if distances in its feature space are needed; [`Error::Shape`] if the candidates and the
/// vectors have different numbers of columns.
pub fn pursuit(
    target: &ExpansionView<'_>,
    candidates: Option<Rows<'_>>,
    params: &PursuitParams<'_>,
    ctx: Context<'_>,
) -> Result<Path> {
    check_kernel(&target.kernel)?;
    params.check(candidates.map_or(target.len(), |rows| rows.rows()))?;
    // The union of the vectors of separate outputs is solved for among all candidates.
    let complete =
        params.sample.is_none() || !params.joint || matches!(params.selection, Selection::Given(_));
    let options =
        SpaceOptions { complete, max_kept_values: params.max_kept_values, norm_bound: params.norm_bound };
    let (target, candidates) = (target.reborrow(), candidates.map(Rows::reborrow));
    let criterion = params.criterion.reborrow();
    let space = Space::new(&target, candidates, criterion, options, ctx);
    Path::or_empty(space.and_then(|space| pursue(&space, params, ctx)), target.outputs())
}

/// Runs a pursuit in a prepared space.
pub(in crate::reduced_set) fn pursue(
    space: &Space<'_>,
    params: &PursuitParams<'_>,
    ctx: Context<'_>,
) -> Result<Path> {
    let mut run = Run::new(space, params, ctx);
    let reason = if let Selection::Given(order) = &params.selection {
        run.follow_order(order).or_else(Error::into_stop_reason)?
    } else if params.joint || space.outputs() == 1 {
        ctx.with_threads_awake(MAX_THREADS_AWAKE, || run.joint_steps()).or_else(Error::into_stop_reason)?
    } else {
        let reason = run.separate_steps().or_else(Error::into_stop_reason)?;
        if params.rule() == Rule::Basic {
            reason
        } else {
            let order = std::mem::take(&mut run.order);
            let grace = GracePeriod::new(ctx.monitor());
            let mut refit = Run::new(space, params, ctx.with_monitor(&grace));
            let end = refit.follow_order(&order).or_else(Error::into_stop_reason)?;
            let mut path = refit.path(end)?;
            if reason != StopReason::Converged {
                path.stop.reason = reason;
            }
            return Ok(path);
        }
    };
    run.path(reason)
}

/// The stepper of one or all outputs.
enum Stepper<'s, 'a> {
    Complete(Complete<'s, 'a>),
    Sampled(Sampled<'s, 'a>),
}

/// The state of a pursuit.
struct Run<'s, 'a, 'p> {
    space: &'s Space<'a>,
    params: &'s PursuitParams<'p>,
    ctx: Context<'s>,
    norm: f64,
    residual: f64,
    residual_norms: Vec<f64>,
    order: Vec<usize>,
    place: HashMap<usize, usize>,
    lines: Vec<Vec<f64>>,
    /// (steps, q), see [`Path::projections`].
    changes: Vec<f64>,
    vector_of_step: Vec<usize>,
    steps_of_size: Vec<usize>,
}

impl<'s, 'a, 'p> Run<'s, 'a, 'p> {
    /// Starts with the whole target as residual.
    fn new(space: &'s Space<'a>, params: &'s PursuitParams<'p>, ctx: Context<'s>) -> Self {
        let norm: f64 = space.norms.iter().sum();
        Self {
            space,
            params,
            ctx,
            norm,
            residual: norm,
            residual_norms: vec![norm.sqrt()],
            order: Vec::new(),
            place: HashMap::new(),
            lines: Vec::new(),
            changes: Vec::new(),
            vector_of_step: Vec::new(),
            steps_of_size: Vec::new(),
        }
    }

    fn stepper(&self, outputs: Range<usize>) -> Result<Stepper<'s, 'a>> {
        let rule = self.params.rule();
        match self.params.sample {
            Some(sample) => {
                let random = Random::stream(sample.seed, outputs.start as u64);
                Ok(Stepper::Sampled(Sampled::new(self.space, outputs, rule, sample.size, random)?))
            }
            None => Ok(Stepper::Complete(Complete::new(self.space, outputs, rule)?)),
        }
    }

    /// Returns the best candidate, or None if no candidate reduces the residual.
    fn propose(&self, stepper: &mut Stepper<'_, '_>) -> Result<Option<Proposal>> {
        match stepper {
            Stepper::Complete(complete) => Ok(complete.propose()),
            Stepper::Sampled(sampled) => sampled.propose(self.ctx),
        }
    }

    /// Takes a step with a candidate; `None` if the step would not reduce the residual.
    fn take(&self, stepper: &mut Stepper<'_, '_>, proposal: Proposal) -> Result<Option<Step>> {
        match stepper {
            Stepper::Complete(complete) => complete.take(proposal.candidate, self.ctx).map(Some),
            Stepper::Sampled(sampled) => sampled.take(proposal),
        }
    }

    /// Reports the progress, and returns the reason to end before the next step, if there is one.
    fn check(&self) -> Result<Option<StopReason>> {
        let basic = self.params.rule() == Rule::Basic;
        let enough = self.params.tolerance * self.params.tolerance * self.norm;
        if self.residual <= enough || (!basic && self.order.len() == self.params.max_vectors) {
            return Ok(Some(StopReason::Converged));
        }
        if basic && self.vector_of_step.len() >= MAX_BASIC_STEPS_PER_VECTOR * self.params.max_vectors {
            return Ok(Some(StopReason::MaxIterations));
        }
        let progress = Progress {
            gap: (self.residual / self.norm).sqrt(),
            steps: self.order.len() as u64,
            ..Progress::new("pursuit", self.order.len(), self.params.max_vectors)
        };
        self.ctx.tick(&progress)?;
        Ok(None)
    }

    /// Returns whether a basic step gains nothing, or needs one vector too many.
    fn ends_with(&self, proposal: Proposal) -> bool {
        self.params.rule() == Rule::Basic
            && (proposal.gain <= MIN_RELATIVE_GAIN * self.norm
                || (self.order.len() == self.params.max_vectors
                    && !self.place.contains_key(&proposal.candidate)))
    }

    /// Records a step of some outputs.
    fn record(&mut self, candidate: usize, step: Step, gain: f64, outputs: Range<usize>) -> Result<()> {
        let fresh = self.order.len();
        let at = *self.place.entry(candidate).or_insert(fresh);
        let mut change = vec![0.0; self.space.outputs()];
        change[outputs].copy_from_slice(&step.change);
        self.changes.try_extend(change)?;
        self.vector_of_step.push(at);
        if at == fresh {
            self.order.push(candidate);
            self.steps_of_size.push(0);
            self.residual_norms.push(0.0);
        }
        if !step.line.is_empty() {
            self.lines.push(step.line);
        }
        self.residual -= gain;
        if self.residual < -1e-6 * self.norm {
            return Err(self.space.indefinite(self.residual));
        }
        self.residual = self.residual.max(0.0);
        // A size lasts until the next new vector.
        if let (Some(end), Some(norm)) = (self.steps_of_size.last_mut(), self.residual_norms.last_mut()) {
            *end = self.vector_of_step.len();
            *norm = self.residual.sqrt();
        }
        Ok(())
    }

    /// Takes steps of all outputs with one stepper.
    fn joint_steps(&mut self) -> Result<StopReason> {
        let all = 0..self.space.outputs();
        let mut stepper = self.stepper(all.clone())?;
        loop {
            if let Some(reason) = self.check()? {
                return Ok(reason);
            }
            let Some(proposal) = self.propose(&mut stepper)? else { return Ok(StopReason::Converged) };
            if self.ends_with(proposal) {
                return Ok(StopReason::Converged);
            }
            let Some(step) = self.take(&mut stepper, proposal)? else { return Ok(StopReason::Stalled) };
            let gain = step.gain(proposal);
            self.record(proposal.candidate, step, gain, all.clone())?;
        }
    }

    /// Takes steps with one stepper for each output; the one with the largest gain takes the next step.
    fn separate_steps(&mut self) -> Result<StopReason> {
        let q = self.space.outputs();
        let basic = self.params.rule() == Rule::Basic;
        let mut steppers: Vec<Stepper<'s, 'a>> =
            (0..q).map(|j| self.stepper(j..j + 1)).collect::<Result<_>>()?;
        let mut proposals =
            steppers.iter_mut().map(|stepper| self.propose(stepper)).collect::<Result<Vec<_>>>()?;
        loop {
            if let Some(reason) = self.check()? {
                return Ok(reason);
            }
            let next = (0..q)
                .filter_map(|j| proposals[j].filter(|proposal| !self.ends_with(*proposal)).map(|p| (j, p)))
                .max_by(|a, b| a.1.gain.total_cmp(&b.1.gain).then(b.0.cmp(&a.0)));
            let Some((j, proposal)) = next else { return Ok(StopReason::Converged) };
            let Some(mut step) = self.take(&mut steppers[j], proposal)? else {
                return Ok(StopReason::Stalled);
            };
            let gain = step.gain(proposal);
            // The factors of single outputs do not serve the union.
            step.line.clear();
            self.record(proposal.candidate, step, gain, j..j + 1)?;
            proposals[j] = self.propose(&mut steppers[j])?;
            if !basic && self.order.len() == self.params.max_vectors {
                return Ok(StopReason::Converged);
            }
        }
    }

    /// Takes steps of all outputs along a given order.
    fn follow_order(&mut self, order: &[usize]) -> Result<StopReason> {
        let all = 0..self.space.outputs();
        let mut stepper = Complete::new(self.space, all.clone(), Rule::BackFitting)?;
        for &candidate in order {
            if let Some(reason) = self.check()? {
                return Ok(reason);
            }
            // A candidate that does not reduce the residual still has its place.
            if !stepper.is_outside(candidate) {
                continue;
            }
            let step = stepper.take(candidate, self.ctx)?;
            let gain = dot(&step.change, &step.change);
            self.record(candidate, step, gain, all.clone())?;
        }
        Ok(StopReason::Converged)
    }

    fn path(self, reason: StopReason) -> Result<Path> {
        let m = self.order.len();
        let factor = if self.lines.is_empty() { None } else { Some(matrix_of_rows(&self.lines)?) };
        let shape = (self.vector_of_step.len(), self.space.outputs());
        let gap = if self.norm > 0.0 { (self.residual / self.norm).sqrt() } else { 0.0 };
        Ok(Path {
            order: self.order,
            factor,
            projections: Array2::from_shape_vec(shape, self.changes).expect("a step changes all outputs"),
            vector_of_step: self.vector_of_step,
            steps_of_size: self.steps_of_size,
            residual_norms: self.residual_norms,
            penalties: Vec::new(),
            exact: self.params.norm_bound.is_none() || !matches!(self.params.criterion, Criterion::Norm),
            orthogonal: self.params.rule() != Rule::Basic && matches!(self.params.criterion, Criterion::Norm),
            stop: Stop { reason, iterations: m as u64, gap },
        })
    }
}
