//! Selection by the zero norm: the fewest vectors that keep the expansion as it is, or nearly (Weston and Bakir,
//! TR-132, alg. 3.4 and, joint over the outputs, alg. 3.5)
//!
//! ```text
//! repeat:  lambda_j = argmin ||w_j - sum_i lambda_ij s_i phi(z_i)||^2 + gamma ||lambda_j||^2     for every output j
//!          s_i <- s_i sum_j |lambda_ij|
//! ```
//!
//! Scales that shrink once shrink faster, as for the majoriser of sum_i log |b_i|. The paper swaps the two matrices of the
//! solution and penalizes the sum of lambda; here the step is the ridge problem above, and for gamma = 0 its solution of
//! least norm, which makes the lossless form select at all.
//!
//! At a fixed point sum_j |lambda_ij| = 1 for every remaining vector, and so gamma has a natural unit. For one output,
//! b = s lambda, t = K alpha, the remaining vectors satisfy
//!
//! ```text
//! K b + gamma / b = t     so     gamma m' = b' t - b' K b <= ||w||^2 / 4     for m' remaining vectors
//! ```
//!
//! A single vector remains for gamma <= t_i^2 / (4 k_ii); several that depend on each other, such as a near copy with the
//! other sign, can remain for larger gammas, but none above ||w||^2 / 4 (q outputs: q sum_j ||w_j||^2 / 4). The path starts
//! there. The paper starts with s = 1, which depends on the unit of alpha: a larger alpha would collapse at gammas at which
//! a smaller one remains. Here the rounds start from the coefficients of least norm, which need no scale, computed for
//! gamma > 0 with a small ridge against rounding. So c alpha with c^2 gamma leaves the same vectors.
//!
//! With K = L L' from a pivoted Cholesky factorization (m, r), g = L' alpha and D = diag(s), both cases are one formula,
//!
//! ```text
//! lambda = D L (L' D^2 L + gamma I)^-1 g        or, with fewer remaining vectors than r,       (D K D + gamma I)^-1 D K alpha
//! ```
//!
//! and no pseudo-inverse is needed. Invariant: the scale of every remaining vector is above 1e-9 of the largest.
//!
//! Cost of a round: the smaller of r and the number of remaining vectors, cubed; memory m r.

use super::Norm;
use crate::context::{Context, Progress, StopReason, WorkCounter};
use crate::data::copy_flat;
use crate::error::{Error, Result};
use crate::linalg::cholesky;
use crate::memory::{try_vec, try_zeros};
use crate::reduced_set::{Order, Problem, basis};
use crate::simd::blas::{axpy, dot, row_times};
use ndarray::s;

/// Maximum number of rounds; the paper finds 10 to 20 enough.
const MAX_ROUNDS: usize = 40;
/// Share of the largest scale at or below which a vector is removed.
const MIN_RELATIVE_SCALE: f64 = 1e-9;
/// Change of the scales, as a share of the largest, at which the rounds end.
const SCALE_TOLERANCE: f64 = 1e-6;

/// Default number of values of gamma of a path before gamma = 0.
pub const LEVELS: usize = 24;
/// Last gamma above 0 as a share of the first.
const LAST_GAMMA_SHARE: f64 = 1e-8;
/// Ridge of the first round if gamma > 0, as a share of the largest k(z, z).
const INITIAL_RIDGE: f64 = 1e-10;

/// Returns the remaining vectors for one gamma, the heaviest first; without gamma, vectors in the order in which they enter
/// as gamma decreases in a number of levels. Separate outputs take turns.
pub(super) fn order(
    problem: &Problem<'_, '_>,
    norm: Norm,
    gamma: Option<f64>,
    levels: usize,
) -> Result<Order> {
    let (m, q) = (problem.target.len(), problem.target.outputs());
    let (basis, factor, stopped) = basis(problem, m, 1e-14)?;
    let (mut orders, mut reason) = (Vec::new(), stopped.unwrap_or(StopReason::Converged));
    let group_size = if norm == Norm::Joint { q } else { 1 };
    for first in (0..q).step_by(group_size) {
        if basis.is_empty() || reason != StopReason::Converged {
            break;
        }
        let columns = first..first + group_size;
        let mut coefficients = copy_flat(problem.target.coefficients.slice(s![.., columns]))?;
        // The unit is a power of two near the largest coefficient, so that no square overflows or underflows.
        let size = coefficients.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
        let unit = if size > 0.0 { size.log2().floor().exp2() } else { 1.0 };
        for v in &mut coefficients {
            *v /= unit;
        }
        let gamma = gamma.map(|gamma| gamma / unit / unit);
        let zero_norm =
            ZeroNorm { factor: &factor, rank: basis.len(), coefficients: &coefficients, outputs: group_size };
        let order;
        (order, reason) = match gamma {
            Some(gamma) => zero_norm.support(gamma, problem.ctx)?,
            None => zero_norm.path(problem, levels)?,
        };
        orders.push(order);
    }
    Ok(Order::new(interleaved(&orders, m, problem.max_vectors), reason))
}

/// Interleaves the orders: the first of every order, then the second, and so on, each vector once.
fn interleaved(orders: &[Vec<usize>], m: usize, max_count: usize) -> Vec<usize> {
    let (mut union, mut inside) = (Vec::new(), vec![false; m]);
    for place in 0..orders.iter().map(Vec::len).max().unwrap_or(0) {
        for &i in orders.iter().filter_map(|order| order.get(place)) {
            if !std::mem::replace(&mut inside[i], true) && union.len() < max_count {
                union.push(i);
            }
        }
    }
    union
}

/// Memory of the arrays of a round, used again by the next one.
struct Workspace(Vec<f64>);

impl Workspace {
    /// Allocates memory for rounds of up to m vectors, a factor of rank r and q outputs.
    fn new(m: usize, r: usize, q: usize) -> Result<Self> {
        let size = m.min(r);
        Ok(Self(try_zeros("the matrices of the zero norm", m * (r + q) + 2 * size * size + r * q)?))
    }

    /// Returns arrays of the given lengths with unspecified contents.
    fn parts<const N: usize>(&mut self, lengths: [usize; N]) -> [&mut [f64]; N] {
        let mut numbers = self.0.as_mut_slice();
        lengths.map(|length| {
            let (part, others) = std::mem::take(&mut numbers).split_at_mut(length);
            numbers = others;
            part
        })
    }
}

/// The factored kernel matrix of some vectors, and their coefficients.
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
    /// Returns the vectors in the order in which they enter as gamma decreases.
    fn path(&self, problem: &Problem<'_, '_>, levels: usize) -> Result<(Vec<usize>, StopReason)> {
        let first = self.first_gamma()?;
        let (mut order, mut entered) = (Vec::new(), vec![false; problem.target.len()]);
        if first == 0.0 {
            return Ok((order, StopReason::Converged));
        }
        let decreasing =
            (0..=levels).map(|level| first * LAST_GAMMA_SHARE.powf(level as f64 / levels.max(1) as f64));
        for gamma in decreasing.chain([0.0]) {
            let (support, reason) = self.support(gamma, problem.ctx)?;
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

    /// Returns q sum_j ||w_j||^2 / 4, above which no vector remains.
    fn first_gamma(&self) -> Result<f64> {
        let weights = self.weights()?;
        Ok(0.25 * self.outputs as f64 * dot(&weights, &weights))
    }

    /// Returns g = L' alpha, (rank, q): w_j in the coordinates of the factor.
    fn weights(&self) -> Result<Vec<f64>> {
        let (r, q) = (self.rank, self.outputs);
        let mut weights = try_vec![0.0; r * q]?;
        for (line, alpha) in self.factor.chunks_exact(r.max(1)).zip(self.coefficients.chunks_exact(q)) {
            for (&l, g) in line.iter().zip(weights.chunks_exact_mut(q)) {
                axpy(l, alpha, g);
            }
        }
        Ok(weights)
    }

    /// Returns the remaining vectors for this gamma, sorted by their weight sum_j |b_ij|, the heaviest first.
    fn support(&self, gamma: f64, ctx: Context<'_>) -> Result<(Vec<usize>, StopReason)> {
        let q = self.outputs;
        let m = self.coefficients.len() / q;
        let weights = self.weights()?;
        let max_diagonal = (0..m).map(|i| dot(self.line(i), self.line(i))).fold(0.0, f64::max);
        let guard = if gamma > 0.0 { INITIAL_RIDGE * max_diagonal } else { 0.0 };
        let mut counter = ctx.counter("zero norm", MAX_ROUNDS);
        let mut work = Workspace::new(m, self.rank, q)?;
        let mut remaining: Vec<usize> = (0..m).collect();
        let mut scales = vec![1.0; m];
        let mut reason = StopReason::Converged;
        for round in 0..MAX_ROUNDS {
            let progress =
                Progress { steps: remaining.len() as u64, ..Progress::new("zero norm", round, MAX_ROUNDS) };
            let gamma = if round == 0 { guard } else { gamma };
            let lambda = ctx
                .tick(&progress)
                .and_then(|()| self.step(gamma, (&remaining, &scales), &weights, &mut work, &mut counter));
            // An interrupted round keeps the scales of the one before.
            let lambda = match lambda {
                Ok(lambda) => lambda,
                Err(error) => {
                    reason = error.into_stop_reason()?;
                    break;
                }
            };
            let mut largest = 0.0_f64;
            let mut moved = 0.0_f64;
            for (&i, lambda) in remaining.iter().zip(lambda.chunks_exact(q)) {
                let new = scales[i] * lambda.iter().map(|v| v.abs()).sum::<f64>();
                moved = moved.max((new - scales[i]).abs());
                scales[i] = new;
                largest = largest.max(new);
            }
            remaining.retain(|&i| scales[i] > MIN_RELATIVE_SCALE * largest);
            if round > 0 && moved <= SCALE_TOLERANCE * largest {
                break;
            }
        }
        remaining.sort_unstable_by(|&a, &b| {
            let weight = |i: usize| scales[i] * dot(self.line(i), self.line(i)).sqrt();
            weight(b).total_cmp(&weight(a)).then(a.cmp(&b))
        });
        Ok((remaining, reason))
    }

    /// Returns a row of L.
    fn line(&self, i: usize) -> &[f64] {
        &self.factor[i * self.rank..(i + 1) * self.rank]
    }

    /// Returns lambda of the remaining vectors, (remaining, q).
    fn step<'w>(
        &self,
        gamma: f64,
        (remaining, scales): (&[usize], &[f64]),
        weights: &[f64],
        work: &'w mut Workspace,
        counter: &mut WorkCounter<'_>,
    ) -> Result<&'w [f64]> {
        let (n, r, q) = (remaining.len(), self.rank, self.outputs);
        let is_dual = n < r;
        let size = n.min(r);
        let [scaled, s, factor, solution, lambda] =
            work.parts([n * r, size * size, size * size, r * q, n * q]);
        for (&i, line) in remaining.iter().zip(scaled.chunks_exact_mut(r)) {
            line.iter_mut().zip(self.line(i)).for_each(|(scaled, l)| *scaled = scales[i] * l);
        }
        if is_dual {
            for (a, (line, row)) in scaled.chunks_exact(r).zip(s.chunks_exact_mut(n.max(1))).enumerate() {
                counter.charge((a * r) as u64)?;
                for (value, other) in row.iter_mut().zip(scaled.chunks_exact(r)).take(a + 1) {
                    *value = dot(line, other);
                }
            }
        } else {
            // S = L' D^2 L + gamma I
            s.fill(0.0);
            for line in scaled.chunks_exact(r) {
                counter.charge((r * r / 2) as u64)?;
                for (a, row) in s.chunks_exact_mut(r).enumerate() {
                    axpy(line[a], &line[..a + 1], &mut row[..a + 1]);
                }
            }
        }
        solution.copy_from_slice(weights);
        if !is_dual {
            self.solve((s, factor), size, gamma, solution, counter)?;
        }
        for (line, lambda) in scaled.chunks_exact(r).zip(lambda.chunks_exact_mut(q)) {
            lambda.copy_from_slice(&row_times(line, solution, q));
        }
        if is_dual {
            self.solve((s, factor), size, gamma, lambda, counter)?;
        }
        Ok(lambda)
    }

    /// Computes (S + gamma I)^-1 B, with the smallest addition to the diagonal that makes the factor exist.
    fn solve(
        &self,
        (s, factor): (&[f64], &mut [f64]),
        n: usize,
        gamma: f64,
        b: &mut [f64],
        counter: &mut WorkCounter<'_>,
    ) -> Result<()> {
        let diagonal: Vec<f64> = (0..n).map(|i| s[i * n + i]).collect();
        let largest = diagonal.iter().copied().fold(0.0, f64::max);
        let mut extra = 0.0;
        loop {
            factor.copy_from_slice(s);
            for i in 0..n {
                factor[i * n + i] = diagonal[i] + gamma + extra * largest;
            }
            match cholesky::factor_counted(factor, n, counter) {
                Ok(()) => {
                    counter.charge((2 * n * n * self.outputs) as u64)?;
                    cholesky::solve(factor, n, b, self.outputs);
                    return Ok(());
                }
                Err(error) if matches!(error, Error::Stopped(_)) || extra > 1e-6 => return Err(error),
                Err(_) => extra = if extra == 0.0 { 1e-15 } else { extra * 10.0 },
            }
        }
    }
}
