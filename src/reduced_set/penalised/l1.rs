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
//! LARS-SVM (compressed SVM, eq. 6 to 9, with the C that the print drops) is the l1 path of a squared hinge SVM that is
//! trained again on its own vectors. Equation 9 is a lasso, and its LARS steps are the points where the lasso's path gains
//! a vector: the same problem with H = C K K + K and T = C K (y - b). Its H costs m^3 / 2 multiply-adds.
//!
//! The path over falling lambda is followed by block coordinate descent from the last
//! solution. A block has a closed solution: with Z_i = T_i - sum over k != i of H_ik B_k,
//! B_i = prox of lambda c_i / (2 H_ii) ||.|| at Z_i / H_ii, the soft threshold or, for l-infinity, what is left of a
//! vector when its projection on an l1 ball is taken away.
//!
//! What is kept is the order in which vectors enter the path, with the lambda of each, or the vectors of the solution
//! at one lambda, the largest first. The penalty also shrinks what it keeps, so the coefficients of each size are
//! solved for again (eq. 7), as in a pursuit; the residual can only fall by that.
//!
//! Invariant: R = T - H B. Cost m q for each coefficient row that changes; memory m^2.

use super::problem::{Norm, Order, Problem};
use crate::control::{Monitor, Progress, StopReason};
use crate::error::{Error, Result};
use crate::simd::blas::{axpy, dot};
use std::ops::ControlFlow;

/// Values of lambda from the first, where nothing is in, to the last, in equal ratios.
const LEVELS: usize = 160;
/// Last lambda as a share of the first.
const LAST: f64 = 1e-5;
/// Sweeps over the vectors at one lambda; the next lambda goes on where they end.
const SWEEPS: usize = 40;
/// A sweep that changes no row by more than this share of the largest ends a lambda.
const STILL: f64 = 1e-4;

/// The same where the solution at one lambda is asked for, and its sweeps.
const STILL_LAST: f64 = 1e-9;
const SWEEPS_LAST: usize = 4000;
/// Smallest lambda, as a share of the first, that can be asked for: below it the penalty is rounding.
const SMALLEST: f64 = 1e-12;

/// A penalised quadratic problem.
pub(super) struct Penalised<'a> {
    /// H, (m, m), symmetric with a positive diagonal where a vector may enter.
    pub(super) quadratic: &'a [f64],
    /// T, (m, q).
    pub(super) linear: &'a [f64],
    /// c, (m,), not negative.
    pub(super) weights: &'a [f64],
    /// q.
    pub(super) outputs: usize,
    pub(super) norm: Norm,
}

impl Penalised<'_> {
    /// Vectors in the order in which they enter as lambda falls, until `most` have entered; or, given the `last`
    /// lambda, those of its solution, the largest in feature space first.
    pub(super) fn order(&self, most: usize, last: Option<f64>, monitor: &dyn Monitor) -> Result<Order> {
        let (m, q) = (self.weights.len(), self.outputs);
        Error::check_len("quadratic term", m * m, self.quadratic.len())?;
        Error::check_len("linear term", m * q, self.linear.len())?;
        let diagonal: Vec<f64> = (0..m).map(|i| self.quadratic[i * m + i]).collect();
        let mut residual = self.linear.to_vec();
        let mut b = vec![0.0; m * q];
        let mut entered = vec![false; m];
        let (mut order, mut penalties) = (Vec::new(), Vec::new());
        // lambda / 2 above which row i stays at zero: the dual norm of its residual over its weight.
        let threshold = |i: usize, residual: &[f64]| {
            let row = &residual[i * q..(i + 1) * q];
            let dual = match self.norm {
                Norm::Each => row.iter().fold(0.0, |a: f64, v| a.max(v.abs())),
                Norm::Joint => row.iter().map(|v| v.abs()).sum(),
            };
            if diagonal[i] > 0.0 && self.weights[i] > 0.0 { dual / self.weights[i] } else { 0.0 }
        };
        let first = (0..m).map(|i| threshold(i, &residual)).fold(0.0, f64::max);
        let last_half = last.map_or(first * LAST, |lambda| (0.5 * lambda).max(first * SMALLEST));
        if first == 0.0 || last_half >= first {
            return Ok(Order { vectors: order, penalties, reason: StopReason::Converged });
        }
        let mut active: Vec<usize> = Vec::new();
        let mut new = vec![0.0; q];
        for level in 1..=LEVELS {
            let progress =
                Progress { steps: level as u64, ..Progress::of("penalty path", order.len(), most) };
            if let ControlFlow::Break(reason) = monitor.tick(&progress) {
                return Ok(Order { vectors: order, penalties, reason });
            }
            let half_lambda = first * (last_half / first).powf(level as f64 / LEVELS as f64);
            let final_one = last.is_some() && level == LEVELS;
            let (still, sweeps) = if final_one { (STILL_LAST, SWEEPS_LAST) } else { (STILL, SWEEPS) };
            for sweep in 0..sweeps {
                if sweep % SWEEPS == SWEEPS - 1
                    && let ControlFlow::Break(reason) = monitor.tick(&progress)
                {
                    return Ok(Order { vectors: order, penalties, reason });
                }
                let (mut largest, mut moved) = (0.0_f64, 0.0_f64);
                for &i in &active {
                    let change = self.solve_block(i, half_lambda, &diagonal, &mut b, &mut residual, &mut new);
                    moved = moved.max(change);
                    largest = b[i * q..(i + 1) * q]
                        .iter()
                        .fold(largest, |a, v| a.max(v.abs() * diagonal[i].sqrt()));
                }
                if moved > still * largest {
                    continue;
                }
                // Rows outside that ought to be inside come in, the strongest first.
                let mut wanted: Vec<(f64, usize)> = (0..m)
                    .filter(|&i| b[i * q..(i + 1) * q].iter().all(|&v| v == 0.0))
                    .map(|i| (threshold(i, &residual), i))
                    .filter(|(t, _)| *t > half_lambda * (1.0 + 1e-9))
                    .collect();
                if wanted.is_empty() {
                    break;
                }
                wanted.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                for (_, i) in wanted {
                    self.solve_block(i, half_lambda, &diagonal, &mut b, &mut residual, &mut new);
                    if !active.contains(&i) {
                        active.push(i);
                    }
                }
            }
            let mut fresh: Vec<(f64, usize)> = active
                .iter()
                .filter(|&&i| final_one || !entered[i])
                .map(|&i| (b[i * q..(i + 1) * q].iter().map(|v| v * v).sum::<f64>() * diagonal[i], i))
                .filter(|(size, _)| *size > 0.0)
                .collect();
            fresh.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            if last.is_some() && level < LEVELS {
                fresh.clear();
            }
            for (_, i) in fresh {
                entered[i] = true;
                order.push(i);
                penalties.push(2.0 * half_lambda);
            }
            active.retain(|&i| b[i * q..(i + 1) * q].iter().any(|&v| v != 0.0));
            if order.len() >= most {
                order.truncate(most);
                penalties.truncate(most);
                return Ok(Order { vectors: order, penalties, reason: StopReason::Converged });
            }
        }
        Ok(Order { vectors: order, penalties, reason: StopReason::Converged })
    }

    /// Minimises over row i; returns how far it moved in feature space.
    fn solve_block(
        &self,
        i: usize,
        half_lambda: f64,
        diagonal: &[f64],
        b: &mut [f64],
        residual: &mut [f64],
        new: &mut [f64],
    ) -> f64 {
        let (m, q) = (self.weights.len(), self.outputs);
        if !(diagonal[i] > 0.0) {
            return 0.0;
        }
        let old = &mut b[i * q..(i + 1) * q];
        for ((new, old), r) in new.iter_mut().zip(old.iter()).zip(&residual[i * q..(i + 1) * q]) {
            *new = old + r / diagonal[i];
        }
        let reach = half_lambda * self.weights[i] / diagonal[i];
        match self.norm {
            Norm::Each => {
                for v in new.iter_mut() {
                    *v = v.signum() * (v.abs() - reach).max(0.0);
                }
            }
            Norm::Joint => clip_to_prox(new, reach),
        }
        let mut moved = 0.0_f64;
        for (new, old) in new.iter_mut().zip(old.iter_mut()) {
            let value = *new;
            *new -= *old;
            *old = value;
            moved = moved.max(new.abs());
        }
        if moved > 0.0 {
            let column = &self.quadratic[i * m..(i + 1) * m];
            for (&h, residual) in column.iter().zip(residual.chunks_exact_mut(q)) {
                if q == 1 {
                    residual[0] -= h * new[0];
                } else {
                    axpy(-h, new, residual);
                }
            }
        }
        moved * diagonal[i].sqrt()
    }
}

/// The prox of reach max|.|: values are clipped at the level t where what is cut off sums to `reach`; all zero where the
/// values sum to less (the rest after projection on the l1 ball of radius `reach`).
fn clip_to_prox(values: &mut [f64], reach: f64) {
    if values.iter().map(|v| v.abs()).sum::<f64>() <= reach {
        values.fill(0.0);
        return;
    }
    let mut sizes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
    sizes.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut level) = (0.0, 0.0);
    for (k, &size) in sizes.iter().enumerate() {
        sum += size;
        level = (sum - reach) / (k + 1) as f64;
        if sizes.get(k + 1).is_none_or(|&next| next <= level) {
            break;
        }
    }
    // Where `reach` is the whole sum, rounding can put the level below zero.
    let level = level.max(0.0);
    for v in values {
        *v = v.clamp(-level, level);
    }
}

/// The order of the path, or of the solution at `penalty`. Weights c are 1 or, `inverse`, 1 / (sum_j |alpha_ij|).
pub(super) fn order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    inverse: bool,
    penalty: Option<f64>,
) -> Result<Order> {
    let (coefficients, q) = (problem.target.flat(), problem.target.outputs());
    let linear = problem.times(coefficients);
    let weights: Vec<f64> = coefficients
        .chunks_exact(q)
        .map(|row| row.iter().map(|v| v.abs()).sum::<f64>())
        .map(|size| match inverse {
            false => 1.0,
            true if size > 0.0 => 1.0 / size,
            true => 0.0,
        })
        .collect();
    Penalised { quadratic: problem.gram, linear: &linear, weights: &weights, outputs: q, norm }.order(
        problem.max_vectors,
        penalty,
        problem.monitor,
    )
}

/// The order of the path for C = `cost`, or of the solution at `penalty`; labels are the signs of the coefficients.
pub(super) fn lars_order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    cost: f64,
    penalty: Option<f64>,
) -> Result<Order> {
    let (target, k) = (problem.target, problem.gram);
    let (m, q) = (target.len(), target.outputs());
    // y - b where the vector has a say in the output, the machine's own value where it has none.
    let mut wanted = problem.times(target.flat());
    for (wanted, alpha) in wanted.chunks_exact_mut(q).zip(target.flat().chunks_exact(q)) {
        for ((wanted, &alpha), b) in wanted.iter_mut().zip(alpha).zip(target.intercepts) {
            if alpha != 0.0 {
                *wanted = alpha.signum() - b;
            }
        }
    }
    let mut linear = problem.times(&wanted);
    for v in &mut linear {
        *v *= cost;
    }
    let mut quadratic = vec![0.0; m * m];
    problem.par.for_each_chunk(&mut quadratic, m, |i, line| {
        for (j, value) in line.iter_mut().enumerate() {
            *value = cost * dot(&k[i * m..(i + 1) * m], &k[j * m..(j + 1) * m]) + k[i * m + j];
        }
    });
    let weights = vec![1.0; m];
    Penalised { quadratic: &quadratic, linear: &linear, weights: &weights, outputs: q, norm }.order(
        problem.max_vectors,
        penalty,
        problem.monitor,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Silent;
    use crate::random::Random;

    #[test]
    fn the_prox_minimises_its_objective() {
        for reach in [0.1, 0.7, 2.0, 10.0] {
            let v = [1.5, -0.4, 0.9, 0.0];
            let mut best = v;
            clip_to_prox(&mut best, reach);
            let value = |b: &[f64]| {
                let distance: f64 = b.iter().zip(&v).map(|(b, v)| 0.5 * (b - v) * (b - v)).sum();
                distance + reach * b.iter().fold(0.0_f64, |a, v| a.max(v.abs()))
            };
            let at_best = value(&best);
            for trial in 0..2000 {
                let other: Vec<f64> =
                    (0..4).map(|k| best[k] + 0.3 * (f64::from(trial * 4 + k as i32) * 0.77).sin()).collect();
                assert!(value(&other) >= at_best - 1e-12);
            }
        }
    }

    #[test]
    fn a_reach_of_nearly_the_whole_sum_leaves_next_to_nothing() {
        let mut random = Random::new(5);
        for _ in 0..1000 {
            let mut values: Vec<f64> = (0..10).map(|_| random.uniform() - 0.5).collect();
            let sum: f64 = values.iter().map(|v| v.abs()).sum();
            clip_to_prox(&mut values, sum.next_down());
            assert!(values.iter().all(|v| v.abs() < 1e-15));
        }
    }

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
        };
        for norm in [Norm::Each, Norm::Joint] {
            let problem = problem(&[1.0; 6], norm);
            assert_eq!(problem.order(6, None, &Silent).unwrap().vectors, [1, 2, 4, 0, 3]);
            assert_eq!(problem.order(2, None, &Silent).unwrap().vectors, [1, 2]);
        }
        // With an orthonormal H the solution is the soft threshold: lambda / 2 = 0.75 leaves three.
        let even = problem(&[1.0; 6], Norm::Each);
        let at = even.order(6, Some(1.5), &Silent).unwrap();
        assert_eq!((at.vectors, at.penalties.len()), (vec![1, 2, 4], 3));
        let path = even.order(6, None, &Silent).unwrap();
        for (i, lambda) in path.vectors.iter().zip(&path.penalties) {
            let exact = 2.0 * f64::abs(linear[*i]);
            assert!(*lambda <= exact && *lambda > 0.9 * exact);
        }
        let uneven = problem(&[1.0, 100.0, 1.0, 1.0, 1.0, 1.0], Norm::Each);
        assert_eq!(uneven.order(6, None, &Silent).unwrap().vectors, [2, 4, 0, 3, 1]);
    }
}
