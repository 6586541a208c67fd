//! Selection by a sparse penalty (Weston and Bakir, TR-132, eq. 4 and 5): minimise over B (m, q)
//!
//! ```text
//! tr(B' H B) - 2 tr(B' T) + lambda sum_i c_i ||B_i||
//! ```
//!
//! where B_i is the row of vector i and the norm is l1 (each output by itself, eq. 4) or l-infinity (eq. 5: a vector is
//! in or out for all outputs together, so that the outputs share their vectors). With H = K and T = K alpha the first two
//! terms are ||w - sum_i b_i phi(z_i)||^2 but for a constant.
//!
//! LARS-SVM (compressed SVM, eq. 6 to 9) is the l1 path of an SVM that is trained again on its own vectors, with squares
//! in the place of hinges: ||w||^2 + cost sum_i (y_i - b - f(x_i))^2, so H = cost K K + K and T = cost K (y - b). The
//! print drops the cost. A machine has 1/2 ||w||^2 + C sum_i loss, so its cost is 2 C; and it is the same machine for
//! every C from its largest coefficient on, so an expansion alone tells: cost = 2 max |alpha|. H costs m^3 / 2
//! multiply-adds.
//!
//! An output by itself has an exact path of straight stretches (`lasso`). Of outputs together solutions are found at
//! falling lambdas, each from the one before, and held to their conditions (`groups`).
//!
//! What is kept is the order in which vectors enter the path, with the lambda of each, or the vectors of the solution
//! at one lambda, the largest first. The penalty also shrinks what it keeps, so the coefficients of each size are
//! solved for again (eq. 7), as in a pursuit; or they stay as the penalty has them: a size then has those of the
//! smallest lambda before the next vector enters.

use super::groups::Groups;
use super::lasso::{Event, Lasso};
use super::problem::{Coefficients, Norm, Order, Problem, mirror};
use crate::context::{Context, Progress, StopReason, WorkCounter};
use crate::error::{Error, Result};
use crate::memory::{TryCollect, try_vec, try_zeros};
use crate::simd::blas::dot;

/// Ratio of the lambdas that outputs together are solved at: ten of them halve lambda.
const RATIO: f64 = 0.933;
/// Lambdas on the way to one that is asked for.
const APPROACH: usize = 20;
/// Share of the first lambda below which the penalty is rounding.
const SMALLEST: f64 = 1e-12;
/// The same for outputs together.
const SMALLEST_TOGETHER: f64 = 1e-8;

/// A penalised quadratic problem.
pub(super) struct Penalised<'a> {
    /// H, (m, m), symmetric with a positive diagonal where a vector may enter.
    pub(super) quadratic: &'a [f64],
    /// T, (m, q).
    pub(super) linear: &'a [f64],
    /// c, (m,), not negative; a vector with c = 0 stays out.
    pub(super) weights: &'a [f64],
    /// q.
    pub(super) outputs: usize,
    pub(super) norm: Norm,
    /// Whether the coefficients are kept as the penalty has them.
    pub(super) own: bool,
    pub(super) ctx: Context<'a>,
}

impl Penalised<'_> {
    /// Vectors in the order in which they enter as lambda falls, until `most` have entered; or, given the `last`
    /// lambda, those of its solution, the largest by H first.
    pub(super) fn order(&self, most: usize, last: Option<f64>) -> Result<Order> {
        let (m, q) = (self.weights.len(), self.outputs);
        Error::check_len("quadratic term", m * m, self.quadratic.len())?;
        Error::check_len("linear term", m * q, self.linear.len())?;
        let mut counter = self.ctx.counter("penalty path", most);
        match (self.norm, last) {
            (Norm::Joint, Some(last)) if q > 1 => self.together_at(most, last, &mut counter),
            (Norm::Joint, None) if q > 1 => self.together(most, &mut counter),
            (_, Some(last)) => self.apart_at(most, last, &mut counter),
            (_, None) => self.apart(most, &mut counter),
        }
    }

    fn found(&self) -> Found {
        let own = self.own.then(|| Coefficients::new(self.outputs));
        Found { order: Order { own, ..Order::new(Vec::new(), StopReason::Converged) }, outputs: self.outputs }
    }

    /// A path for every output.
    fn lassos(&self) -> Result<Vec<Lasso<'_>>> {
        let column = |j: usize| self.linear.iter().skip(j).step_by(self.outputs).copied().try_collect_vec();
        (0..self.outputs)
            .map(|j| Lasso::new(self.quadratic, column(j)?, self.weights, self.ctx))
            .try_collect_results()
    }

    /// The paths of all outputs, event after event as lambda falls.
    fn apart(&self, most: usize, counter: &mut WorkCounter<'_>) -> Result<Order> {
        let (mut found, mut lassos) = (self.found(), self.lassos()?);
        let first = latest(&lassos).1;
        let mut entered = try_vec![false; self.weights.len()]?;
        let mut half = first;
        loop {
            let (j, next, event) = latest(&lassos);
            half = next.max(first * SMALLEST).min(half);
            if !(next > first * SMALLEST) || event == Event::End {
                break;
            }
            if let Some(reason) = StopReason::from_result(counter.charge(lassos[j].work()))? {
                found.order.reason = reason;
                break;
            }
            let done = found.order.vectors.len();
            let newcomer = match event {
                Event::Enter(i, _) if !entered[i] => Some(i),
                _ => None,
            };
            let before = newcomer.filter(|_| self.own).map(|_| found.rows_of(&lassos, half)).transpose()?;
            lassos[j].advance()?;
            if lassos[j].is_cycling() {
                found.order.reason = StopReason::Stalled;
                break;
            }
            if let Some(i) = newcomer.filter(|&i| lassos[j].is_active(i)) {
                if let Some(before) = before {
                    found.size(&before)?;
                }
                if done == most {
                    return Ok(found.order);
                }
                entered[i] = true;
                found.order.vectors.push(i);
                found.order.penalties.push(2.0 * half);
                counter.advance(1);
                if done + 1 == most && !self.own {
                    return Ok(found.order);
                }
            }
        }
        let rows = found.rows_of(&lassos, half)?;
        found.size(&rows)?;
        Ok(found.order)
    }

    /// The solution of all outputs at one lambda.
    fn apart_at(&self, most: usize, last: f64, counter: &mut WorkCounter<'_>) -> Result<Order> {
        let (mut found, mut lassos) = (self.found(), self.lassos()?);
        let first = latest(&lassos).1;
        let half = (0.5 * last).max(first * SMALLEST);
        if half >= first {
            return Ok(found.order);
        }
        loop {
            let (j, next, _) = latest(&lassos);
            if next <= half {
                break;
            }
            if let Some(reason) = StopReason::from_result(counter.charge(lassos[j].work()))? {
                found.order.reason = reason;
                return Ok(found.order);
            }
            lassos[j].advance()?;
            if lassos[j].is_cycling() {
                found.order.reason = StopReason::Stalled;
                break;
            }
        }
        let half = half.max(latest(&lassos).1);
        let (m, q) = (self.weights.len(), self.outputs);
        let mut b = try_vec![0.0; m * q]?;
        for (j, lasso) in lassos.iter().enumerate() {
            lasso.at(half).for_each(|(i, value)| b[i * q + j] = value);
        }
        let row = |i: usize| &b[i * q..(i + 1) * q];
        let size = |i: usize| dot(row(i), row(i)) * self.quadratic[i * m + i];
        let inside =
            (0..m).filter(|&i| row(i).iter().any(|&v| v != 0.0)).map(|i| (size(i), i)).try_collect_vec()?;
        found.add(sorted(inside)?, most, 2.0 * half, row)?;
        Ok(found.order)
    }

    /// Outputs together, at falling lambdas.
    fn together(&self, most: usize, counter: &mut WorkCounter<'_>) -> Result<Order> {
        let mut found = self.found();
        let mut groups = Groups::new(self.quadratic, self.linear, self.weights, self.outputs)?;
        let first = groups.first();
        let mut entered = try_vec![false; self.weights.len()]?;
        let mut half = first;
        while half * RATIO > first * SMALLEST_TOGETHER {
            let done = found.order.vectors.len();
            let progress = Progress { steps: done as u64, ..Progress::new("penalty path", done, most) };
            if let Some(reason) = StopReason::from_result(self.ctx.tick(&progress))? {
                found.order.reason = reason;
                break;
            }
            half *= RATIO;
            match groups.solve(half, counter) {
                Ok(true) => {}
                Ok(false) => found.order.reason = StopReason::MaxIterations,
                Err(error) => {
                    found.order.reason = error.into_stop_reason()?;
                    break;
                }
            }
            let fresh = groups
                .inside()
                .iter()
                .filter(|&&i| !entered[i])
                .map(|&i| (groups.size(i), i))
                .try_collect_vec()?;
            let fresh = sorted(fresh)?;
            for &i in &fresh {
                entered[i] = true;
            }
            // Until others enter, the vectors there are have the coefficients of this lambda.
            if done == most && !fresh.is_empty() {
                break;
            }
            found.add(fresh, most, 2.0 * half, |i| groups.row(i))?;
            if found.order.vectors.len() == most && !self.own {
                break;
            }
        }
        Ok(found.order)
    }

    /// Outputs together at one lambda.
    fn together_at(&self, most: usize, last: f64, counter: &mut WorkCounter<'_>) -> Result<Order> {
        let mut found = self.found();
        let mut groups = Groups::new(self.quadratic, self.linear, self.weights, self.outputs)?;
        let first = groups.first();
        let half = (0.5 * last).max(first * SMALLEST_TOGETHER);
        if half >= first {
            return Ok(found.order);
        }
        for level in 1..=APPROACH {
            let at = if level == APPROACH {
                half
            } else {
                first * (half / first).powf(level as f64 / APPROACH as f64)
            };
            match groups.solve(at, counter) {
                Ok(true) => {}
                Ok(false) if level < APPROACH => {}
                Ok(false) => found.order.reason = StopReason::MaxIterations,
                Err(error) => {
                    found.order.reason = error.into_stop_reason()?;
                    return Ok(found.order);
                }
            }
        }
        let inside = groups.inside().iter().map(|&i| (groups.size(i), i)).try_collect_vec()?;
        found.add(sorted(inside)?, most, 2.0 * half, |i| groups.row(i))?;
        Ok(found.order)
    }
}

/// The output whose next event is at the largest h, that h, and the event.
fn latest(lassos: &[Lasso<'_>]) -> (usize, f64, Event) {
    let mut best = (0, 0.0, Event::End);
    for (j, lasso) in lassos.iter().enumerate() {
        let (half, event) = lasso.next();
        if half > best.1 {
            best = (j, half, event);
        }
    }
    best
}

/// The largest first.
fn sorted(mut sizes: Vec<(f64, usize)>) -> Result<Vec<usize>> {
    sizes.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    sizes.into_iter().map(|(_, i)| i).try_collect_vec()
}

/// What has entered so far.
struct Found {
    order: Order,
    outputs: usize,
}

impl Found {
    /// The rows of B of the vectors in order, at an h that all paths have in reach.
    fn rows_of(&self, lassos: &[Lasso<'_>], half: f64) -> Result<Vec<f64>> {
        let q = self.outputs;
        let mut rows = try_vec![0.0; self.order.vectors.len() * q]?;
        if self.order.own.is_some() {
            let mut place: Vec<usize> = try_vec![0; self.order.vectors.iter().max().map_or(0, |i| i + 1)]?;
            for (at, &i) in self.order.vectors.iter().enumerate() {
                place[i] = at;
            }
            for (j, lasso) in lassos.iter().enumerate() {
                lasso.at(half).for_each(|(i, value)| rows[place[i] * q + j] = value);
            }
        }
        Ok(rows)
    }

    /// The coefficients of the size that is there, if they are kept.
    fn size(&mut self, rows: &[f64]) -> Result<()> {
        match &mut self.order.own {
            Some(own) => Ok(own.size(rows)?),
            None => Ok(()),
        }
    }

    /// Vectors that enter together, as many as there may be; each size in between has the first of them.
    fn add<'r>(
        &mut self,
        fresh: Vec<usize>,
        most: usize,
        penalty: f64,
        row: impl Fn(usize) -> &'r [f64],
    ) -> Result<()> {
        let room = most - self.order.vectors.len();
        let rows = |vectors: &[usize]| vectors.iter().flat_map(|&i| row(i).iter().copied()).try_collect_vec();
        if fresh.is_empty() && self.order.own.is_some() {
            let rows = rows(&self.order.vectors)?;
            self.size(&rows)?;
        }
        for i in fresh.into_iter().take(room) {
            self.order.vectors.push(i);
            self.order.penalties.push(penalty);
            if self.order.own.is_some() {
                let rows = rows(&self.order.vectors)?;
                self.size(&rows)?;
            }
        }
        Ok(())
    }
}

/// The order of the path, or of the solution at `penalty`. Weights c are 1 or, `inverse`, 1 / (sum_j |alpha_ij|).
pub(super) fn order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    inverse: bool,
    penalty: Option<f64>,
    own: bool,
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
        .try_collect_vec()?;
    let (quadratic, ctx) = (problem.gram, problem.ctx);
    Penalised { quadratic, linear: &linear, weights: &weights, outputs: q, norm, own, ctx }
        .order(problem.max_vectors, penalty)
}

/// The order of LARS-SVM's path, or of the solution at `penalty`; labels are the signs of the coefficients. Without a
/// cost it is that of the machine, 2 max |alpha|.
pub(super) fn lars_order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    cost: Option<f64>,
    penalty: Option<f64>,
    own: bool,
) -> Result<Order> {
    let (target, k) = (problem.target, problem.gram);
    let (m, q) = (target.len(), target.outputs());
    let cost = cost.unwrap_or_else(|| 2.0 * target.flat().iter().fold(0.0, |a: f64, v| a.max(v.abs())));
    // y - b where the vector has a say in the output, the machine's own value where it has none.
    let mut wanted = problem.times(target.flat())?;
    for (wanted, alpha) in wanted.chunks_exact_mut(q).zip(target.flat().chunks_exact(q)) {
        for ((wanted, &alpha), b) in wanted.iter_mut().zip(alpha).zip(target.intercepts) {
            if alpha != 0.0 {
                *wanted = alpha.signum() - b;
            }
        }
    }
    let mut linear = problem.times(&wanted)?;
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
    mirror(&mut quadratic, m);
    let (weights, ctx) = (try_vec![1.0; m]?, problem.ctx);
    Penalised { quadratic: &quadratic, linear: &linear, weights: &weights, outputs: q, norm, own, ctx }
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
            own: false,
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
