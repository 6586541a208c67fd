//! Selection by the zero norm: the fewest vectors that keep the expansion as it is, or nearly (Weston and Bakir,
//! TR-132, alg. 3.4 and, joint over the outputs, alg. 3.5)
//!
//! ```text
//! repeat:  lambda_j = argmin ||w_j - sum_i lambda_ij s_i phi(z_i)||^2 + gamma ||lambda_j||^2     for every output j
//!          s_i <- s_i sum_j |lambda_ij|
//! ```
//!
//! from s = 1: scales that shrink once shrink faster, as the majoriser of sum_i log |b_i| has it. The print has the two
//! matrices of the solution swapped and penalises the sum of lambda; the step is the ridge problem above, and for
//! gamma = 0 its solution of least norm, which is what makes the lossless form choose at all.
//!
//! With K = L L' from a pivoted Cholesky factorisation (m, r), g = L' alpha and D = diag(s), both cases are one formula,
//!
//! ```text
//! lambda = D L (L' D^2 L + gamma I)^-1 g        or, with fewer vectors left than r,       (D K D + gamma I)^-1 D K alpha
//! ```
//!
//! and no pseudo-inverse is needed. Vectors whose scale falls below 1e-9 of the largest leave the problem.
//!
//! Cost of a round: the smaller of r and the vectors left, cubed; memory m r.

use super::problem::{Norm, Order, Problem};
use super::rank;
use crate::control::{Monitor, Progress, StopReason};
use crate::error::Result;
use crate::linalg::cholesky;
use crate::simd::blas::{axpy, dot, row_times};
use std::ops::ControlFlow;

/// Rounds; the paper finds 10 to 20 enough.
const ROUNDS: usize = 40;
/// Share of the largest scale below which a vector has left.
const GONE: f64 = 1e-9;
/// Rounds end when no scale changes by more than this share of the largest.
const STILL: f64 = 1e-6;

/// Values of gamma that a path tries.
pub const LEVELS: usize = 16;
/// Share of the first gamma that the last one is.
const LAST: f64 = 1e-12;

/// The vectors left for one gamma, the heaviest first; without one gamma falls in so many levels, and vectors enter as
/// they are first needed. Outputs by themselves take turns.
pub(super) fn order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    gamma: Option<f64>,
    levels: usize,
) -> Result<Order> {
    let (m, q) = (problem.target.len(), problem.target.outputs());
    let (basis, factor) = rank::basis(problem, m, 1e-14)?;
    let (mut orders, mut reason) = (Vec::new(), StopReason::Converged);
    let together = if norm == Norm::Joint { q } else { 1 };
    for first in (0..q).step_by(together) {
        if basis.is_empty() || reason != StopReason::Converged {
            break;
        }
        let lines = problem.target.flat().chunks_exact(q);
        let coefficients: Vec<f64> = lines.flat_map(|line| &line[first..first + together]).copied().collect();
        let zero_norm =
            ZeroNorm { factor: &factor, rank: basis.len(), coefficients: &coefficients, outputs: together };
        let order;
        (order, reason) = match gamma {
            Some(gamma) => zero_norm.support(gamma, problem.monitor)?,
            None => zero_norm.path(problem, levels)?,
        };
        orders.push(order);
    }
    Ok(Order::new(interleaved(&orders, m, problem.max_vectors), reason))
}

/// The first of every order, then the second, and so on, each vector once.
fn interleaved(orders: &[Vec<usize>], m: usize, most: usize) -> Vec<usize> {
    let (mut union, mut inside) = (Vec::new(), vec![false; m]);
    for place in 0..orders.iter().map(Vec::len).max().unwrap_or(0) {
        for &i in orders.iter().filter_map(|order| order.get(place)) {
            if !std::mem::replace(&mut inside[i], true) && union.len() < most {
                union.push(i);
            }
        }
    }
    union
}

/// A kernel matrix of some vectors, factored, and what is to be kept.
struct ZeroNorm<'a> {
    /// L, (m, rank) row-major.
    factor: &'a [f64],
    rank: usize,
    /// alpha, (m, q).
    coefficients: &'a [f64],
    /// q.
    outputs: usize,
}

impl ZeroNorm<'_> {
    /// The vectors in the order in which they are needed as gamma falls.
    fn path(&self, problem: &Problem<'_, '_>, levels: usize) -> Result<(Vec<usize>, StopReason)> {
        let m = problem.target.len();
        let largest = problem.largest() * m as f64;
        let (mut order, mut entered) = (Vec::new(), vec![false; m]);
        for level in 0..=levels {
            let gamma = largest * LAST.powf(level as f64 / levels.max(1) as f64);
            let (support, reason) = self.support(gamma, problem.monitor)?;
            for i in support {
                if !std::mem::replace(&mut entered[i], true) {
                    order.push(i);
                }
            }
            if order.len() >= problem.max_vectors || reason != StopReason::Converged {
                return Ok((order, reason));
            }
        }
        Ok((order, StopReason::Converged))
    }

    /// The vectors left for this gamma with their weight sum_j |b_ij|, the heaviest first.
    fn support(&self, gamma: f64, monitor: &dyn Monitor) -> Result<(Vec<usize>, StopReason)> {
        let (r, q) = (self.rank, self.outputs);
        let m = self.coefficients.len() / q;
        // g = L' alpha
        let mut wanted = vec![0.0; r * q];
        for (line, alpha) in self.factor.chunks_exact(r.max(1)).zip(self.coefficients.chunks_exact(q)) {
            for (&l, g) in line.iter().zip(wanted.chunks_exact_mut(q)) {
                axpy(l, alpha, g);
            }
        }
        let mut left: Vec<usize> = (0..m).collect();
        let mut scales = vec![1.0; m];
        let mut reason = StopReason::Converged;
        for round in 0..ROUNDS {
            let progress = Progress { steps: left.len() as u64, ..Progress::of("zero norm", round, ROUNDS) };
            if let ControlFlow::Break(asked) = monitor.tick(&progress) {
                reason = asked;
                break;
            }
            let lambda = self.step(gamma, &left, &scales, &wanted)?;
            let mut largest = 0.0_f64;
            let mut moved = 0.0_f64;
            for (&i, lambda) in left.iter().zip(lambda.chunks_exact(q)) {
                let new = scales[i] * lambda.iter().map(|v| v.abs()).sum::<f64>();
                moved = moved.max((new - scales[i]).abs());
                scales[i] = new;
                largest = largest.max(new);
            }
            left.retain(|&i| scales[i] > GONE * largest);
            if moved <= STILL * largest {
                break;
            }
        }
        left.sort_unstable_by(|&a, &b| {
            let weight = |i: usize| scales[i] * dot(self.line(i), self.line(i)).sqrt();
            weight(b).total_cmp(&weight(a)).then(a.cmp(&b))
        });
        Ok((left, reason))
    }

    fn line(&self, i: usize) -> &[f64] {
        &self.factor[i * self.rank..(i + 1) * self.rank]
    }

    /// lambda of the vectors left, (left, q).
    fn step(&self, gamma: f64, left: &[usize], scales: &[f64], wanted: &[f64]) -> Result<Vec<f64>> {
        let (r, q) = (self.rank, self.outputs);
        let scaled: Vec<Vec<f64>> =
            left.iter().map(|&i| self.line(i).iter().map(|l| scales[i] * l).collect()).collect();
        if left.len() >= r {
            // S = L' D^2 L + gamma I
            let mut s = vec![0.0; r * r];
            for line in &scaled {
                for (a, row) in s.chunks_exact_mut(r.max(1)).enumerate() {
                    axpy(line[a], &line[..a + 1], &mut row[..a + 1]);
                }
            }
            let mut solution = wanted.to_vec();
            self.solve(&mut s, r, gamma, &mut solution)?;
            return Ok(scaled.iter().flat_map(|line| row_times(line, &solution, q)).collect());
        }
        let n = left.len();
        let mut s = vec![0.0; n * n];
        for a in 0..n {
            for b in 0..=a {
                s[a * n + b] = dot(&scaled[a], &scaled[b]);
            }
        }
        let mut solution: Vec<f64> = scaled.iter().flat_map(|line| row_times(line, wanted, q)).collect();
        self.solve(&mut s, n, gamma, &mut solution)?;
        Ok(solution)
    }

    /// (S + gamma I)^-1, with the least addition to the diagonal that rounding asks for.
    fn solve(&self, s: &mut [f64], n: usize, gamma: f64, b: &mut [f64]) -> Result<()> {
        let diagonal: Vec<f64> = (0..n).map(|i| s[i * n + i]).collect();
        let largest = diagonal.iter().copied().fold(0.0, f64::max);
        let mut extra = 0.0;
        loop {
            let mut factor = s.to_vec();
            for i in 0..n {
                factor[i * n + i] = diagonal[i] + gamma + extra * largest;
            }
            match cholesky::factor(&mut factor, n) {
                Ok(()) => {
                    cholesky::solve(&factor, n, b, self.outputs);
                    return Ok(());
                }
                Err(error) if extra > 1e-6 => return Err(error),
                Err(_) => extra = if extra == 0.0 { 1e-15 } else { extra * 10.0 },
            }
        }
    }
}
