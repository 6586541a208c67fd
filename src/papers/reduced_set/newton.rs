//! The Newton step of `groups`: outputs share their vectors, and every entry of B keeps its kind.
//!
//! Row i of B has clipped entries, at its maximum p_i = max_j |B_ij| with signs s, and free ones. While no entry changes its
//! kind, the objective of `groups` is quadratic in p and the free entries. Its minimum, with H damped to H' = H + e diag(H),
//! is B + D, where an output j with clipped entries C has
//!
//! ```text
//! H' D_j = R_j + E_C y_j,    D_C = s d_C,    A = ((H'^-1)_CC)^-1 = H'_CC - H'_CF H'_FF^-1 H'_FC
//!                            y_j = A (s d_C - u_C),    U = H'^-1 R
//! sum_j s y_j = -h c:        (sum_j s A s) d = sum_j s A u_C - h c
//! ```
//!
//! so that the outputs share only n numbers d, the growth of p. Of the two forms of A the one with the smaller system is
//! computed. A row at zero stays zero.
//!
//! Invariant: a step never increases the objective. Entries may change their kind on the way, so the candidates are B + t D
//! with rows clipped at p + t d, for t = 1, 1/2, 1/4, and the best is taken.
//!
//! Cost: n^3 + 4 n^2 q, and min(|C|, |F|)^3 for every output.

use crate::context::WorkCounter;
use crate::error::Result;
use crate::linalg::cholesky;
use crate::memory::TryGrow;
use crate::simd::blas::{add_rows, axpy, dot};
use std::iter::repeat_n;

/// Step lengths that are tried.
const STEP_LENGTHS: [f64; 3] = [1.0, 0.5, 0.25];
/// Maximum number of entries of the matrices A that are kept between their two uses, 17 MB; others are computed twice. Small
/// in tests, which then cover both cases.
const MAX_KEPT_ENTRIES: usize = if cfg!(test) { 100 } else { 1 << 21 };
/// Number of rows of a product between two checks of the monitor.
const ROWS_PER_CHECK: usize = 16;

/// The point at which a step begins.
pub(super) struct Point<'a> {
    /// H, (n, n).
    pub(super) quadratic: &'a [f64],
    /// h c.
    pub(super) bounds: &'a [f64],
    /// B, (n, q).
    pub(super) b: &'a [f64],
    /// R = T - H B.
    pub(super) residual: &'a [f64],
    /// p, max_j |B_ij|.
    pub(super) row_max: &'a [f64],
    /// q.
    pub(super) outputs: usize,
}

/// A Newton step after its line search.
pub(super) struct Step {
    /// B at its end.
    pub(super) b: Vec<f64>,
    /// Change of the objective, negative.
    pub(super) change: f64,
    /// Length as a share of the distance to the minimum.
    pub(super) length: f64,
}

/// Buffers of a step, reused because their allocation would cost more than the computation.
#[derive(Default)]
pub(super) struct Workspace {
    damped: Vec<f64>,
    inverse: Vec<f64>,
    u: Vec<f64>,
    rhs: Vec<f64>,
    d: Vec<f64>,
    system: Vec<f64>,
    /// A of one output after the other.
    complements: Vec<f64>,
    /// The clipped rows of one output after the other, with their signs.
    clipped: Vec<(usize, f64)>,
    /// Number of clipped rows of each output.
    counts: Vec<usize>,
    of_output: OutputWorkspace,
}

/// Buffers for one output.
#[derive(Default)]
struct OutputWorkspace {
    free: Vec<usize>,
    factor: Vec<f64>,
    solved: Vec<f64>,
    across: Vec<f64>,
    vector: Vec<f64>,
}

impl Point<'_> {
    /// Returns the best step; None if the damped matrix is not positive definite or no step decreases the objective.
    pub(super) fn step(
        &self,
        damping: f64,
        work: &mut Workspace,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Step>> {
        let Some(growth) = self.direction(damping, work, counter)? else { return Ok(None) };
        let mut best: Option<Step> = None;
        for length in STEP_LENGTHS {
            let b = self.step_to(&work.d, &growth, length)?;
            let change = self.change(&b, work, counter)?;
            if change < best.as_ref().map_or(0.0, |best| best.change) {
                best = Some(Step { b, change, length });
            } else if best.is_some() {
                break;
            }
        }
        Ok(best)
    }

    /// Computes D and returns d, the growth of p; None if a matrix is not positive definite.
    fn direction(
        &self,
        damping: f64,
        work: &mut Workspace,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Vec<f64>>> {
        let (n, q) = (self.bounds.len(), self.outputs);
        let Workspace { damped, inverse, u, rhs, d, system, complements, clipped, counts, of_output } = work;
        refill(damped, self.quadratic.iter().copied())?;
        damped.iter_mut().step_by(n + 1).for_each(|v| *v *= 1.0 + damping);
        refill(inverse, damped.iter().copied())?;
        if !cholesky::invert(inverse, n, &mut of_output.vector, counter)? {
            return Ok(None);
        }
        product(inverse, self.residual, q, u, counter)?;
        let mut growth: Vec<f64> = self.bounds.iter().map(|bound| -bound).collect();
        refill(system, repeat_n(0.0, n * n))?;
        complements.clear();
        clipped.clear();
        counts.clear();
        let mut full = false;
        for j in 0..q {
            let first = clipped.len();
            for (i, &max) in self.row_max.iter().enumerate() {
                let v = self.b[i * q + j];
                if v.abs() == max {
                    clipped.push((i, if max > 0.0 { v.signum() } else { 0.0 }));
                }
            }
            let (mine, start) = (&clipped[first..], complements.len());
            let k = mine.len();
            if !of_output.append_complement(complements, inverse, damped, mine, counter)? {
                return Ok(None);
            }
            let form = &complements[start..];
            counts.push(k);
            of_output.vector.clear();
            of_output.vector.extend(mine.iter().map(|&(i, _)| u[i * q + j]));
            for (line, &(i, sign)) in form.chunks_exact(k.max(1)).zip(mine) {
                growth[i] += sign * dot(line, &of_output.vector);
                let into = &mut system[i * n..(i + 1) * n];
                for (&a, &(other, with)) in line.iter().zip(mine) {
                    into[other] += sign * with * a;
                }
            }
            // Once a matrix is dropped no later one is kept, so that those kept belong to the first outputs.
            full |= complements.len() > MAX_KEPT_ENTRIES;
            if full {
                complements.truncate(start);
            }
        }
        for i in (0..n).filter(|&i| self.row_max[i] == 0.0) {
            (system[i * n + i], growth[i]) = (1.0, 0.0);
        }
        if cholesky::factor(system, n).is_err() {
            return Ok(None);
        }
        cholesky::solve(system, n, &mut growth, 1);
        refill(rhs, self.residual.iter().copied())?;
        let (mut first, mut start) = (0, 0);
        for (j, &k) in counts.iter().enumerate() {
            let mine = &clipped[first..first + k];
            let recompute = start + k * k > complements.len();
            if recompute && !of_output.append_complement(complements, inverse, damped, mine, counter)? {
                return Ok(None);
            }
            of_output.vector.clear();
            of_output.vector.extend(mine.iter().map(|&(i, sign)| sign * growth[i] - u[i * q + j]));
            for (line, &(i, _)) in complements[start..start + k * k].chunks_exact(k.max(1)).zip(mine) {
                rhs[i * q + j] += dot(line, &of_output.vector);
            }
            if recompute {
                complements.truncate(start);
            } else {
                start += k * k;
            }
            first += k;
        }
        product(inverse, rhs, q, d, counter)?;
        move_clipped(d, q, clipped, counts, &growth);
        Ok(Some(growth))
    }

    /// Returns B + t D, clipped.
    fn step_to(&self, d: &[f64], growth: &[f64], length: f64) -> Result<Vec<f64>> {
        let mut b = Vec::new();
        refill(&mut b, self.b.iter().copied())?;
        axpy(length, d, &mut b);
        for ((row, max), growth) in b.chunks_exact_mut(self.outputs).zip(self.row_max).zip(growth) {
            let max = (max + length * growth).max(0.0);
            for v in row {
                *v = v.clamp(-max, max);
            }
        }
        Ok(b)
    }

    /// Returns the change of the objective from B to another matrix.
    fn change(&self, b: &[f64], work: &mut Workspace, counter: &mut WorkCounter<'_>) -> Result<f64> {
        let Workspace { u: curved, rhs: step, .. } = work;
        refill(step, b.iter().zip(self.b).map(|(new, old)| new - old))?;
        product(self.quadratic, step, self.outputs, curved, counter)?;
        let rows = b.chunks_exact(self.outputs).zip(self.row_max).zip(self.bounds);
        let penalty: f64 = rows.map(|((row, max), bound)| bound * (max_norm(row) - max)).sum();
        Ok(dot(step, curved) - 2.0 * dot(step, self.residual) + 2.0 * penalty)
    }
}

/// Moves the coefficients at their bounds with the bounds; `counts` has their number for each output.
fn move_clipped(d: &mut [f64], q: usize, clipped: &[(usize, f64)], counts: &[usize], growth: &[f64]) {
    let mut remaining = clipped;
    for (j, &k) in counts.iter().enumerate() {
        let (of_output, others) = remaining.split_at(k);
        for &(i, sign) in of_output {
            d[i * q + j] = sign * growth[i];
        }
        remaining = others;
    }
}

impl OutputWorkspace {
    /// Appends A of an output to `complements`; returns false if a matrix is not positive definite.
    fn append_complement(
        &mut self,
        complements: &mut Vec<f64>,
        inverse: &[f64],
        damped: &[f64],
        clipped: &[(usize, f64)],
        counter: &mut WorkCounter<'_>,
    ) -> Result<bool> {
        let (n, k, start) = (inverse.len().isqrt(), clipped.len(), complements.len());
        let inverted = 2 * k <= n;
        let few = k.min(n - k);
        counter.charge((k * k * (few + 1) + few * few * few) as u64)?;
        let matrix = if inverted { inverse } else { damped };
        for &(i, _) in clipped {
            let line = &matrix[i * n..(i + 1) * n];
            complements.try_extend(clipped.iter().map(|&(other, _)| line[other]))?;
        }
        let form = &mut complements[start..];
        if inverted {
            return cholesky::invert(form, k, &mut self.vector, counter);
        }
        let mut others = clipped.iter().map(|&(i, _)| i).peekable();
        self.free.clear();
        self.free.extend((0..n).filter(|i| others.next_if_eq(i).is_none()));
        self.complement(form, damped, n, clipped)
    }

    /// Replaces H_CC by H_CC - H_CF H_FF^-1 H_FC; returns false if H_FF is not positive definite.
    fn complement(
        &mut self,
        form: &mut [f64],
        h: &[f64],
        n: usize,
        clipped: &[(usize, f64)],
    ) -> Result<bool> {
        let Self { free, factor, solved, across, .. } = self;
        let (k, f) = (clipped.len(), free.len());
        refill(factor, free.iter().flat_map(|&i| free.iter().map(move |&other| h[i * n + other])))?;
        refill(solved, free.iter().flat_map(|&i| clipped.iter().map(move |&(other, _)| h[i * n + other])))?;
        refill(across, clipped.iter().flat_map(|&(i, _)| free.iter().map(move |&other| -h[i * n + other])))?;
        if cholesky::factor(factor, f).is_err() {
            return Ok(false);
        }
        cholesky::solve(factor, f, solved, k);
        add_rows(across, &solved.chunks_exact(k.max(1)).collect::<Vec<_>>(), 0, form);
        Ok(true)
    }
}

/// Replaces the numbers of a vector, whose memory is used again.
pub(super) fn refill(values: &mut Vec<f64>, numbers: impl Iterator<Item = f64>) -> Result<()> {
    values.clear();
    values.try_extend(numbers)
}

/// Computes out = A X for A (n, n) and X (n, q).
pub(super) fn product(
    a: &[f64],
    x: &[f64],
    q: usize,
    out: &mut Vec<f64>,
    counter: &mut WorkCounter<'_>,
) -> Result<()> {
    let rows: Vec<&[f64]> = x.chunks_exact(q).collect();
    refill(out, repeat_n(0.0, x.len()))?;
    for (a, out) in a.chunks(ROWS_PER_CHECK * rows.len().max(1)).zip(out.chunks_mut(ROWS_PER_CHECK * q)) {
        counter.charge((a.len() * q) as u64)?;
        add_rows(a, &rows, 0, out);
    }
    Ok(())
}

/// Returns max_j |v_j|.
pub(super) fn max_norm(row: &[f64]) -> f64 {
    row.iter().fold(0.0, |a, v| a.max(v.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::random::Random;

    /// X'X + 0.1 I of random columns.
    fn matrix(n: usize, random: &mut Random) -> Vec<f64> {
        let x: Vec<f64> = (0..n * n).map(|_| random.uniform() - 0.5).collect();
        let entry = |i: usize, j: usize| (0..n).map(|k| x[k * n + i] * x[k * n + j]).sum::<f64>();
        (0..n * n).map(|e| entry(e / n, e % n) + if e / n == e % n { 0.1 } else { 0.0 }).collect()
    }

    /// If no entry changes its kind, the derivatives are zero at the end of the step: R is zero at the free entries, and its
    /// clipped entries in a row sum to h c with their signs. Both forms of A are covered; row 3 is zero.
    #[test]
    fn a_step_without_changes_of_kind_ends_at_the_minimum() {
        for share in [0.1, 0.5, 0.9] {
            let (n, q) = (9, 7);
            let mut random = Random::new(5);
            let h = matrix(n, &mut random);
            let mut b: Vec<f64> = (0..n * q).map(|_| random.uniform() - 0.5).collect();
            for (e, v) in b.iter_mut().enumerate() {
                if e % q == 0 || random.uniform() < share {
                    *v = v.signum();
                }
            }
            b[3 * q..4 * q].fill(0.0);
            let bounds: Vec<f64> = (0..n).map(|i| 0.1 + 0.01 * i as f64).collect();
            let row_max: Vec<f64> = b.chunks_exact(q).map(max_norm).collect();
            // R next to that of a minimum, so that the step is short.
            let mut residual = vec![0.0; n * q];
            for i in (0..n).filter(|&i| i != 3) {
                let clipped: Vec<usize> = (0..q).filter(|&j| b[i * q + j].abs() == 1.0).collect();
                for &j in &clipped {
                    residual[i * q + j] = b[i * q + j] * bounds[i] / clipped.len() as f64;
                }
            }
            for r in &mut residual {
                *r += 1e-4 * (random.uniform() - 0.5);
            }
            let point = Point {
                quadratic: &h,
                bounds: &bounds,
                b: &b,
                residual: &residual,
                row_max: &row_max,
                outputs: q,
            };
            let (mut work, mut counter) = (Workspace::default(), Context::default().counter("", 0));
            // Twice in the same workspace.
            for _ in 0..2 {
                let Ok(Some(step)) = point.step(0.0, &mut work, &mut counter) else { panic!("no step") };
                assert!(step.length == 1.0 && step.change < 0.0);
                let moved: Vec<f64> = step.b.iter().zip(&b).map(|(new, old)| new - old).collect();
                let mut after = Vec::new();
                product(&h, &moved, q, &mut after, &mut counter).unwrap();
                after.iter_mut().zip(&residual).for_each(|(v, r)| *v = r - *v);
                assert!(step.b[3 * q..4 * q].iter().all(|&v| v == 0.0));
                for i in (0..n).filter(|&i| i != 3) {
                    let mut along = 0.0;
                    for e in i * q..(i + 1) * q {
                        if b[e].abs() == 1.0 {
                            along += b[e] * after[e];
                        } else {
                            assert!(after[e].abs() < 1e-10, "share {share}: {} at {e}", after[e]);
                        }
                    }
                    assert!((along - bounds[i]).abs() < 1e-10, "share {share} row {i}: {along}");
                }
            }
        }
    }
}
