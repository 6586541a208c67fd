//! Selection by a sparse penalty (Weston and Bakir, TR-132, eq. 4 and 5): minimize over B (m, q)
//!
//! ```text
//! tr(B' H B) - 2 tr(B' T) + lambda sum_i c_i ||B_i||
//! ```
//!
//! where B_i is the row of vector i and the norm is l1 (separate outputs, eq. 4) or l-infinity (eq. 5: a vector is
//! active for all outputs or for none, so that the outputs share their vectors). With H = K and T = K alpha the first two
//! terms are ||w - sum_i b_i phi(z_i)||^2 up to a constant.
//!
//! LARS-SVM (compressed SVM, eq. 6 to 9) is the l1 path of an SVM that is trained again on its own vectors, with squared
//! losses instead of hinge losses: ||w||^2 + cost sum_i (y_i - b - f(x_i))^2, so H = cost K K + K and T = cost K (y - b). The
//! paper omits the cost. A machine minimizes 1/2 ||w||^2 + C sum_i loss, so its cost is 2 C; and it is the same machine for
//! every C that is at least its largest coefficient, so the default is cost = 2 max |alpha|. H costs m^3 / 2
//! multiply-adds.
//!
//! A separate output has an exact, piecewise linear path (`lasso`). Joint outputs are solved at decreasing lambdas, each from
//! the solution before, and their conditions are checked (`groups`).
//!
//! Invariant of the result: vectors are in the order in which they enter the path, each with its lambda, or, for one lambda,
//! the largest first. The penalty also shrinks the coefficients, so those of each size are computed again (eq. 7), as in a
//! pursuit; or they are the penalized ones of the smallest lambda before the next vector enters.
//!
//! Cost: that of `lasso` or `groups` for each event or lambda.

use super::Norm;
use super::groups::Groups;
use super::lasso::{Event, Lasso};
use super::newton::refill;
use crate::context::{Context, Progress, StopReason, WorkCounter};
use crate::data::{copy_columns, matrix};
use crate::error::{Error, Result};
use crate::linalg::copy_upper_to_lower;
use crate::memory::{try_vec, try_zeros};
use crate::reduced_set::{Coefficients, Order, Problem};
use crate::simd::blas::dot;

/// Ratio of two successive lambdas of joint outputs: ten of them halve lambda.
const PENALTY_RATIO: f64 = 0.933;
/// Number of lambdas on the way to a given one.
const WARM_START_LEVELS: usize = 20;
/// Minimum lambda of separate outputs, as a share of the first; a smaller penalty is rounding error.
const MIN_PENALTY_SHARE: f64 = 1e-12;
/// Minimum lambda of joint outputs, as a share of the first.
const MIN_JOINT_PENALTY_SHARE: f64 = 1e-8;

/// A penalized quadratic problem.
pub(super) struct Penalised<'a> {
    /// H, (m, m), symmetric; a vector with a diagonal entry of 0 never enters.
    pub(super) quadratic: &'a [f64],
    /// T, (m, q).
    pub(super) linear: &'a [f64],
    /// c, (m,), not negative; a vector with c = 0 never enters.
    pub(super) weights: &'a [f64],
    /// q.
    pub(super) outputs: usize,
    pub(super) norm: Norm,
    /// Keeps the penalized coefficients.
    pub(super) keeps_coefficients: bool,
    pub(super) ctx: Context<'a>,
}

impl Penalised<'_> {
    /// Returns at most `max_vectors` vectors in the order in which they enter as lambda decreases; or, given the
    /// `last` lambda, those of its solution, the largest in the norm of H first.
    pub(super) fn order(&self, max_vectors: usize, last: Option<f64>) -> Result<Order> {
        let (m, q) = (self.weights.len(), self.outputs);
        Error::check_len("quadratic term", m * m, self.quadratic.len())?;
        Error::check_len("linear term", m * q, self.linear.len())?;
        let mut counter = self.ctx.counter("penalty path", max_vectors);
        match (self.norm, last) {
            (Norm::Joint, Some(last)) if q > 1 => self.joint_solution(max_vectors, last, &mut counter),
            (Norm::Joint, None) if q > 1 => self.joint_path(max_vectors, &mut counter),
            (_, Some(last)) => self.separate_solution(max_vectors, last, &mut counter),
            (_, None) => self.separate_path(max_vectors, &mut counter),
        }
    }

    fn empty_order(&self) -> PartialOrder {
        let coefficients = self.keeps_coefficients.then(|| Coefficients::new(self.outputs));
        let order = Order { coefficients, ..Order::new(Vec::new(), StopReason::Converged) };
        PartialOrder { order, outputs: self.outputs }
    }

    /// Returns a path for each output.
    fn lassos(&self) -> Result<Vec<Lasso<'_>>> {
        let columns = copy_columns(matrix((self.weights.len(), self.outputs), self.linear)?)?;
        let lasso = |linear| Lasso::new(self.quadratic, linear, self.weights, self.ctx);
        Ok(columns.into_iter().map(lasso).collect())
    }

    /// Follows the paths of separate outputs, event by event as lambda decreases.
    fn separate_path(&self, max_vectors: usize, counter: &mut WorkCounter<'_>) -> Result<Order> {
        let (mut partial, mut lassos) = (self.empty_order(), self.lassos()?);
        let first = next_output(&lassos).1;
        let mut entered = vec![false; self.weights.len()];
        let mut half = first;
        loop {
            let (j, next, event) = next_output(&lassos);
            half = next.max(first * MIN_PENALTY_SHARE).min(half);
            if !(next > first * MIN_PENALTY_SHARE) || event == Event::End {
                break;
            }
            if let Some(reason) = StopReason::from_result(counter.charge(lassos[j].work()))? {
                partial.order.reason = reason;
                break;
            }
            let done = partial.order.vectors.len();
            let new_vector = match event {
                Event::Enter(i, _) if !entered[i] => Some(i),
                _ => None,
            };
            let before = new_vector
                .filter(|_| self.keeps_coefficients)
                .map(|_| partial.rows_of(&lassos, half))
                .transpose()?;
            lassos[j].advance()?;
            if lassos[j].is_cycling() {
                partial.order.reason = StopReason::Stalled;
                break;
            }
            if let Some(i) = new_vector.filter(|&i| lassos[j].is_active(i)) {
                if let Some(before) = before {
                    partial.set_coefficients(&before)?;
                }
                if done == max_vectors {
                    return Ok(partial.order);
                }
                entered[i] = true;
                partial.order.vectors.push(i);
                partial.order.penalties.push(2.0 * half);
                counter.advance(1);
                if done + 1 == max_vectors && !self.keeps_coefficients {
                    return Ok(partial.order);
                }
            }
        }
        let rows = partial.rows_of(&lassos, half)?;
        partial.set_coefficients(&rows)?;
        Ok(partial.order)
    }

    /// Solves for separate outputs at one lambda.
    fn separate_solution(
        &self,
        max_vectors: usize,
        last: f64,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Order> {
        let (mut partial, mut lassos) = (self.empty_order(), self.lassos()?);
        let first = next_output(&lassos).1;
        let half = (0.5 * last).max(first * MIN_PENALTY_SHARE);
        if half >= first {
            return Ok(partial.order);
        }
        loop {
            let (j, next, _) = next_output(&lassos);
            if next <= half {
                break;
            }
            if let Some(reason) = StopReason::from_result(counter.charge(lassos[j].work()))? {
                partial.order.reason = reason;
                return Ok(partial.order);
            }
            lassos[j].advance()?;
            if lassos[j].is_cycling() {
                partial.order.reason = StopReason::Stalled;
                break;
            }
        }
        let half = half.max(next_output(&lassos).1);
        let (m, q) = (self.weights.len(), self.outputs);
        let mut b = try_vec![0.0; m * q]?;
        for (j, lasso) in lassos.iter().enumerate() {
            lasso.at(half).for_each(|(i, value)| b[i * q + j] = value);
        }
        let row = |i: usize| &b[i * q..(i + 1) * q];
        let size = |i: usize| dot(row(i), row(i)) * self.quadratic[i * m + i];
        let active =
            (0..m).filter(|&i| row(i).iter().any(|&v| v != 0.0)).map(|i| (size(i), i)).collect::<Vec<_>>();
        partial.add(sort_by_size(active), max_vectors, 2.0 * half, row)?;
        Ok(partial.order)
    }

    /// Solves for joint outputs at decreasing lambdas.
    fn joint_path(&self, max_vectors: usize, counter: &mut WorkCounter<'_>) -> Result<Order> {
        let mut partial = self.empty_order();
        let mut groups = Groups::new(self.quadratic, self.linear, self.weights, self.outputs)?;
        let first = groups.max_half();
        let mut entered = vec![false; self.weights.len()];
        let mut half = first;
        while half * PENALTY_RATIO > first * MIN_JOINT_PENALTY_SHARE {
            let done = partial.order.vectors.len();
            let progress =
                Progress { steps: done as u64, ..Progress::new("penalty path", done, max_vectors) };
            if let Some(reason) = StopReason::from_result(self.ctx.tick(&progress))? {
                partial.order.reason = reason;
                break;
            }
            half *= PENALTY_RATIO;
            match groups.solve(half, counter) {
                Ok(true) => {}
                Ok(false) => partial.order.reason = StopReason::MaxIterations,
                Err(error) => {
                    partial.order.reason = error.into_stop_reason()?;
                    break;
                }
            }
            let fresh = groups
                .active()
                .iter()
                .filter(|&&i| !entered[i])
                .map(|&i| (groups.size(i), i))
                .collect::<Vec<_>>();
            let fresh = sort_by_size(fresh);
            for &i in &fresh {
                entered[i] = true;
            }
            // Until others enter, the vectors present have the coefficients of this lambda.
            if done == max_vectors && !fresh.is_empty() {
                break;
            }
            partial.add(fresh, max_vectors, 2.0 * half, |i| groups.row(i))?;
            if partial.order.vectors.len() == max_vectors && !self.keeps_coefficients {
                break;
            }
        }
        Ok(partial.order)
    }

    /// Solves for joint outputs at one lambda.
    fn joint_solution(&self, max_vectors: usize, last: f64, counter: &mut WorkCounter<'_>) -> Result<Order> {
        let mut partial = self.empty_order();
        let mut groups = Groups::new(self.quadratic, self.linear, self.weights, self.outputs)?;
        let first = groups.max_half();
        let half = (0.5 * last).max(first * MIN_JOINT_PENALTY_SHARE);
        if half >= first {
            return Ok(partial.order);
        }
        for level in 1..=WARM_START_LEVELS {
            let at = if level == WARM_START_LEVELS {
                half
            } else {
                first * (half / first).powf(level as f64 / WARM_START_LEVELS as f64)
            };
            match groups.solve(at, counter) {
                Ok(true) => {}
                Ok(false) if level < WARM_START_LEVELS => {}
                Ok(false) => partial.order.reason = StopReason::MaxIterations,
                Err(error) => {
                    partial.order.reason = error.into_stop_reason()?;
                    return Ok(partial.order);
                }
            }
        }
        let active = groups.active().iter().map(|&i| (groups.size(i), i)).collect::<Vec<_>>();
        partial.add(sort_by_size(active), max_vectors, 2.0 * half, |i| groups.row(i))?;
        Ok(partial.order)
    }
}

/// Returns the output whose next event is at the largest h, that h, and the event.
fn next_output(lassos: &[Lasso<'_>]) -> (usize, f64, Event) {
    let mut best = (0, 0.0, Event::End);
    for (j, lasso) in lassos.iter().enumerate() {
        let (half, event) = lasso.next();
        if half > best.1 {
            best = (j, half, event);
        }
    }
    best
}

/// Sorts vectors by size, the largest first.
fn sort_by_size(mut sizes: Vec<(f64, usize)>) -> Vec<usize> {
    sizes.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    sizes.into_iter().map(|(_, i)| i).collect()
}

/// The vectors that have entered so far.
struct PartialOrder {
    order: Order,
    outputs: usize,
}

impl PartialOrder {
    /// Returns the rows of B in order, at an h that no path has passed.
    fn rows_of(&self, lassos: &[Lasso<'_>], half: f64) -> Result<Vec<f64>> {
        let q = self.outputs;
        let mut rows = try_vec![0.0; self.order.vectors.len() * q]?;
        if self.order.coefficients.is_some() {
            let mut place: Vec<usize> = vec![0; self.order.vectors.iter().max().map_or(0, |i| i + 1)];
            for (at, &i) in self.order.vectors.iter().enumerate() {
                place[i] = at;
            }
            for (j, lasso) in lassos.iter().enumerate() {
                lasso.at(half).for_each(|(i, value)| rows[place[i] * q + j] = value);
            }
        }
        Ok(rows)
    }

    /// Sets the coefficients of the current size, if they are kept.
    fn set_coefficients(&mut self, rows: &[f64]) -> Result<()> {
        match &mut self.order.coefficients {
            Some(coefficients) => coefficients.set(rows),
            None => Ok(()),
        }
    }

    /// Adds vectors that enter at one lambda, up to the maximum number; each size in between has the first of them.
    fn add<'r>(
        &mut self,
        fresh: Vec<usize>,
        max_vectors: usize,
        penalty: f64,
        row: impl Fn(usize) -> &'r [f64],
    ) -> Result<()> {
        let remaining = max_vectors - self.order.vectors.len();
        let mut rows = Vec::new();
        let mut set = |partial: &mut Self| {
            refill(&mut rows, partial.order.vectors.iter().flat_map(|&i| row(i).iter().copied()))?;
            partial.set_coefficients(&rows)
        };
        if fresh.is_empty() && self.order.coefficients.is_some() {
            set(self)?;
        }
        for i in fresh.into_iter().take(remaining) {
            self.order.vectors.push(i);
            self.order.penalties.push(penalty);
            if self.order.coefficients.is_some() {
                set(self)?;
            }
        }
        Ok(())
    }
}

/// Returns the order of the path, or of the solution at `penalty`. Weights c are 1 or, if `inverse`, 1 / (sum_j |alpha_ij|).
pub(super) fn order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    inverse: bool,
    penalty: Option<f64>,
    keeps_coefficients: bool,
) -> Result<Order> {
    let (coefficients, q) = (problem.target.flat(), problem.target.outputs());
    let linear = problem.times(coefficients)?;
    let weights: Vec<f64> = coefficients
        .chunks_exact(q)
        .map(|row| row.iter().map(|v| v.abs()).sum::<f64>())
        .map(|size| match inverse {
            false => 1.0,
            true if size > 0.0 => 1.0 / size,
            true => 0.0,
        })
        .collect();
    let (quadratic, ctx) = (problem.gram, problem.ctx);
    Penalised { quadratic, linear: &linear, weights: &weights, outputs: q, norm, keeps_coefficients, ctx }
        .order(problem.max_vectors, penalty)
}

/// Returns the order of the path of LARS-SVM, or of the solution at `penalty`; labels are the signs of the coefficients.
/// The default cost is that of the machine, 2 max |alpha|.
pub(super) fn lars_order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    cost: Option<f64>,
    penalty: Option<f64>,
    keeps_coefficients: bool,
) -> Result<Order> {
    let (target, k) = (problem.target, problem.gram);
    let (m, q) = (target.len(), target.outputs());
    let cost = cost.unwrap_or_else(|| 2.0 * target.flat().iter().fold(0.0, |a: f64, v| a.max(v.abs())));
    // The target is y - b for a vector of the output, otherwise the machine's value.
    let mut targets = problem.times(target.flat())?;
    for (targets, alpha) in targets.chunks_exact_mut(q).zip(target.flat().chunks_exact(q)) {
        for ((targets, &alpha), b) in targets.iter_mut().zip(alpha).zip(target.intercepts) {
            if alpha != 0.0 {
                *targets = alpha.signum() - b;
            }
        }
    }
    let mut linear = problem.times(&targets)?;
    for v in &mut linear {
        *v *= cost;
    }
    let mut quadratic = try_zeros("the square of a kernel matrix", m * m)?;
    problem.ctx.counter("squared kernel matrix", m).for_each_batch(m, (m * m) as u64, |lines, _| {
        problem.ctx.for_each_chunk(&mut quadratic[lines.start * m..lines.end * m], m, |i, line| {
            let i = lines.start + i;
            for (j, value) in line.iter_mut().enumerate().skip(i) {
                *value = cost * dot(&k[i * m..(i + 1) * m], &k[j * m..(j + 1) * m]) + k[i * m + j];
            }
        });
        Ok(())
    })?;
    copy_upper_to_lower(&mut quadratic, m);
    let (weights, ctx) = (vec![1.0; m], problem.ctx);
    Penalised {
        quadratic: &quadratic,
        linear: &linear,
        weights: &weights,
        outputs: q,
        norm,
        keeps_coefficients,
        ctx,
    }
    .order(problem.max_vectors, penalty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orthogonal_vectors_enter_by_their_size() {
        let m = 6;
        let mut h = vec![0.0; m * m];
        (0..m).for_each(|i| h[i * m + i] = 1.0);
        let linear = [0.5, -3.0, 2.0, 0.1, -1.0, 0.0];
        let problem = |weights: &'static [f64], norm| Penalised {
            quadratic: &h,
            linear: &linear,
            weights,
            outputs: 1,
            norm,
            keeps_coefficients: false,
            ctx: Context::SEQUENTIAL,
        };
        for norm in [Norm::Each, Norm::Joint] {
            let problem = problem(&[1.0; 6], norm);
            assert_eq!(problem.order(6, None).unwrap().vectors, [1, 2, 4, 0, 3]);
            assert_eq!(problem.order(2, None).unwrap().vectors, [1, 2]);
        }
        // With an orthonormal H the solution is the soft threshold: lambda / 2 = 0.75 leaves three.
        let even = problem(&[1.0; 6], Norm::Each);
        let at = even.order(6, Some(1.5)).unwrap();
        assert_eq!((at.vectors, at.penalties.len()), (vec![1, 2, 4], 3));
        let path = even.order(6, None).unwrap();
        for (i, lambda) in path.vectors.iter().zip(&path.penalties) {
            assert!((lambda - 2.0 * f64::abs(linear[*i])).abs() < 1e-12);
        }
        let uneven = problem(&[1.0, 100.0, 1.0, 1.0, 1.0, 1.0], Norm::Each);
        assert_eq!(uneven.order(6, None).unwrap().vectors, [2, 4, 0, 3, 1]);
    }
}
