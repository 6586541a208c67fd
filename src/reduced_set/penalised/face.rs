//! Newton's step of outputs that share their vectors: every row of B stays on the face that it is on.
//!
//! Row i of B has entries at its largest size p_i, the clipped ones with signs s, and free ones. While none changes its
//! kind the objective of `groups` is quadratic in p and the free entries. Its minimum, with H damped to H' = H + e diag(H),
//! is B + D, where an output j with clipped entries C has
//!
//! ```text
//! H' D_j = R_j + E_C y_j,    D_C = s d_C,    A = ((H'^-1)_CC)^-1 = H'_CC - H'_CF H'_FF^-1 H'_FC
//!                            y_j = A (s d_C - u_C),    U = H'^-1 R
//! sum_j s y_j = -h c:        (sum_j s A s) d = sum_j s A u_C - h c
//! ```
//!
//! so that outputs have nothing in common but n numbers d, what the p grow by. Of the two forms of A the one with the
//! smaller system is taken. A row at zero stays there.
//!
//! The step may leave the face. What is tried is B + t D with rows clipped at p + t d again, for t = 1, 1/2, 1/4.
//!
//! Cost: n^3 + 4 n^2 q, and min(|C|, |F|)^3 for every output.

use crate::context::WorkCounter;
use crate::error::Result;
use crate::linalg::cholesky;
use crate::memory::{TryCollect, TryGrow, TryToVec};
use crate::simd::blas::{add_rows, axpy, dot};

/// Lengths of a step that are tried.
const LENGTHS: [f64; 3] = [1.0, 0.5, 0.25];
/// Numbers of the forms A that are kept from the system to the step, 17 MB; others are computed again. Few in tests, which
/// then do both.
const KEPT: usize = if cfg!(test) { 100 } else { 1 << 21 };
/// Rows of a product between two looks.
const ROWS: usize = 16;

/// Where a step begins.
pub(super) struct Face<'a> {
    /// H, (n, n).
    pub(super) quadratic: &'a [f64],
    /// h c.
    pub(super) bounds: &'a [f64],
    /// B, (n, q), every row clipped.
    pub(super) b: &'a [f64],
    /// T - H B.
    pub(super) residual: &'a [f64],
    /// max_j |B_ij|.
    pub(super) peaks: &'a [f64],
    /// q.
    pub(super) outputs: usize,
}

/// Where it ends.
pub(super) struct Step {
    pub(super) b: Vec<f64>,
    /// By how much the objective grows, below zero.
    pub(super) change: f64,
    /// As a share of the minimum's distance.
    pub(super) length: f64,
}

/// What steps compute in, kept from one to the next: fresh memory for the forms would cost more than they do.
#[derive(Default)]
pub(super) struct Room {
    damped: Vec<f64>,
    inverse: Vec<f64>,
    u: Vec<f64>,
    pull: Vec<f64>,
    d: Vec<f64>,
    system: Vec<f64>,
    /// A of one output after the other.
    forms: Vec<f64>,
    /// The clipped rows of one output after the other, with their signs.
    clipped: Vec<(usize, f64)>,
    /// How many an output has.
    counts: Vec<usize>,
    parts: Parts,
}

/// Of an output.
#[derive(Default)]
struct Parts {
    free: Vec<usize>,
    factor: Vec<f64>,
    solved: Vec<f64>,
    across: Vec<f64>,
    vector: Vec<f64>,
}

impl Face<'_> {
    /// The best of the steps tried; none where the damped matrix is not positive definite, or none is better.
    pub(super) fn step(
        &self,
        damping: f64,
        room: &mut Room,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Step>> {
        let Some(growth) = self.direction(damping, room, counter)? else { return Ok(None) };
        let mut best: Option<Step> = None;
        for length in LENGTHS {
            let b = self.moved(&room.d, &growth, length)?;
            let change = self.change(&b, room, counter)?;
            if change < best.as_ref().map_or(0.0, |best| best.change) {
                best = Some(Step { b, change, length });
            } else if best.is_some() {
                break;
            }
        }
        Ok(best)
    }

    /// D, in the room, and by how much the peaks grow.
    fn direction(
        &self,
        damping: f64,
        room: &mut Room,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Option<Vec<f64>>> {
        let (n, q) = (self.bounds.len(), self.outputs);
        let Room { damped, inverse, u, pull, d, system, forms, clipped, counts, parts } = room;
        damped.clear();
        damped.try_extend(self.quadratic.iter().copied())?;
        damped.iter_mut().step_by(n + 1).for_each(|v| *v *= 1.0 + damping);
        inverse.clear();
        inverse.try_extend(damped.iter().copied())?;
        if !invert(inverse, n, &mut parts.vector, counter)? {
            return Ok(None);
        }
        product(inverse, self.residual, q, u, counter)?;
        let mut growth: Vec<f64> = self.bounds.iter().map(|bound| -bound).try_collect_vec()?;
        system.clear();
        system.try_resize(n * n, 0.0)?;
        forms.clear();
        clipped.clear();
        counts.clear();
        let mut full = false;
        for j in 0..q {
            let first = clipped.len();
            for (i, &peak) in self.peaks.iter().enumerate() {
                let v = self.b[i * q + j];
                if v.abs() == peak {
                    clipped.push((i, if peak > 0.0 { v.signum() } else { 0.0 }));
                }
            }
            let (mine, start) = (&clipped[first..], forms.len());
            let k = mine.len();
            if !parts.form(forms, inverse, damped, mine, counter)? {
                return Ok(None);
            }
            let form = &forms[start..];
            counts.push(k);
            parts.vector.clear();
            parts.vector.extend(mine.iter().map(|&(i, _)| u[i * q + j]));
            for (line, &(i, sign)) in form.chunks_exact(k.max(1)).zip(mine) {
                growth[i] += sign * dot(line, &parts.vector);
                let into = &mut system[i * n..(i + 1) * n];
                for (&a, &(other, with)) in line.iter().zip(mine) {
                    into[other] += sign * with * a;
                }
            }
            // From the first that is too many on none is kept, so that those kept are the first outputs'.
            full |= forms.len() > KEPT;
            if full {
                forms.truncate(start);
            }
        }
        for i in (0..n).filter(|&i| self.peaks[i] == 0.0) {
            (system[i * n + i], growth[i]) = (1.0, 0.0);
        }
        if cholesky::factor(system, n).is_err() {
            return Ok(None);
        }
        cholesky::solve(system, n, &mut growth, 1);
        pull.clear();
        pull.try_extend(self.residual.iter().copied())?;
        let (mut first, mut start) = (0, 0);
        for (j, &k) in counts.iter().enumerate() {
            let mine = &clipped[first..first + k];
            let again = start + k * k > forms.len();
            if again && !parts.form(forms, inverse, damped, mine, counter)? {
                return Ok(None);
            }
            parts.vector.clear();
            parts.vector.extend(mine.iter().map(|&(i, sign)| sign * growth[i] - u[i * q + j]));
            for (line, &(i, _)) in forms[start..start + k * k].chunks_exact(k.max(1)).zip(mine) {
                pull[i * q + j] += dot(line, &parts.vector);
            }
            if again {
                forms.truncate(start);
            } else {
                start += k * k;
            }
            first += k;
        }
        product(inverse, pull, q, d, counter)?;
        let mut mine = &clipped[..];
        for (j, &k) in counts.iter().enumerate() {
            for &(i, sign) in &mine[..k] {
                d[i * q + j] = sign * growth[i];
            }
            mine = &mine[k..];
        }
        Ok(Some(growth))
    }

    /// B + t D, clipped.
    fn moved(&self, d: &[f64], growth: &[f64], length: f64) -> Result<Vec<f64>> {
        let mut b = self.b.try_to_vec()?;
        axpy(length, d, &mut b);
        for ((row, peak), growth) in b.chunks_exact_mut(self.outputs).zip(self.peaks).zip(growth) {
            let peak = (peak + length * growth).max(0.0);
            for v in row {
                *v = v.clamp(-peak, peak);
            }
        }
        Ok(b)
    }

    /// By how much the objective grows on the way to another B.
    fn change(&self, b: &[f64], room: &mut Room, counter: &mut WorkCounter<'_>) -> Result<f64> {
        let Room { u: curved, pull: step, .. } = room;
        step.clear();
        step.try_extend(b.iter().zip(self.b).map(|(new, old)| new - old))?;
        product(self.quadratic, step, self.outputs, curved, counter)?;
        let rows = b.chunks_exact(self.outputs).zip(self.peaks).zip(self.bounds);
        let penalty: f64 = rows.map(|((row, peak), bound)| bound * (largest(row) - peak)).sum();
        Ok(dot(step, curved) - 2.0 * dot(step, self.residual) + 2.0 * penalty)
    }
}

impl Parts {
    /// Adds A of an output to the forms; false where a system is not positive definite.
    fn form(
        &mut self,
        forms: &mut Vec<f64>,
        inverse: &[f64],
        damped: &[f64],
        clipped: &[(usize, f64)],
        counter: &mut WorkCounter<'_>,
    ) -> Result<bool> {
        let (n, k, start) = (inverse.len().isqrt(), clipped.len(), forms.len());
        let inverted = 2 * k <= n;
        let few = k.min(n - k);
        counter.charge((k * k * (few + 1) + few * few * few) as u64)?;
        let matrix = if inverted { inverse } else { damped };
        for &(i, _) in clipped {
            let line = &matrix[i * n..(i + 1) * n];
            forms.try_extend(clipped.iter().map(|&(other, _)| line[other]))?;
        }
        let form = &mut forms[start..];
        if inverted {
            return invert(form, k, &mut self.vector, counter);
        }
        let mut others = clipped.iter().map(|&(i, _)| i).peekable();
        self.free.clear();
        self.free.try_extend((0..n).filter(|i| others.next_if_eq(i).is_none()))?;
        Ok(self.complement(form, damped, n, clipped)?)
    }

    /// H_CC - H_CF H_FF^-1 H_FC in place of H_CC; false where H_FF is not positive definite.
    fn complement(
        &mut self,
        form: &mut [f64],
        h: &[f64],
        n: usize,
        clipped: &[(usize, f64)],
    ) -> Result<bool> {
        let Self { free, factor, solved, across, .. } = self;
        let (k, f) = (clipped.len(), free.len());
        factor.clear();
        solved.clear();
        across.clear();
        for &i in free.iter() {
            let line = &h[i * n..(i + 1) * n];
            factor.try_extend(free.iter().map(|&other| line[other]))?;
            solved.try_extend(clipped.iter().map(|&(other, _)| line[other]))?;
        }
        for &(i, _) in clipped {
            let line = &h[i * n..(i + 1) * n];
            across.try_extend(free.iter().map(|&other| -line[other]))?;
        }
        if cholesky::factor(factor, f).is_err() {
            return Ok(false);
        }
        cholesky::solve(factor, f, solved, k);
        add_rows(across, &solved.chunks_exact(k.max(1)).try_collect_vec()?, 0, form);
        Ok(true)
    }
}

/// out = A X for A (n, n) and X (n, q).
pub(super) fn product(
    a: &[f64],
    x: &[f64],
    q: usize,
    out: &mut Vec<f64>,
    counter: &mut WorkCounter<'_>,
) -> Result<()> {
    let rows: Vec<&[f64]> = x.chunks_exact(q).try_collect_vec()?;
    out.clear();
    out.try_resize(x.len(), 0.0)?;
    for (a, out) in a.chunks(ROWS * rows.len().max(1)).zip(out.chunks_mut(ROWS * q)) {
        counter.charge((a.len() * q) as u64)?;
        add_rows(a, &rows, 0, out);
    }
    Ok(())
}

/// max_j |v_j|
pub(super) fn largest(row: &[f64]) -> f64 {
    row.iter().fold(0.0, |a, v| a.max(v.abs()))
}

/// A^-1 (n, n) in place of A; false where A is not positive definite.
fn invert(a: &mut [f64], n: usize, row: &mut Vec<f64>, counter: &mut WorkCounter<'_>) -> Result<bool> {
    for i in 0..n {
        counter.charge((i * i) as u64)?;
        if cholesky::factor_lines(a, n, i..i + 1).is_err() {
            return Ok(false);
        }
    }
    // M = L^-1 in place of L, row after row.
    for i in 0..n {
        counter.charge((i * i) as u64)?;
        let (above, line) = a.split_at_mut(i * n);
        row.clear();
        row.resize(i, 0.0);
        for (k, &l) in line[..i].iter().enumerate() {
            axpy(-l, &above[k * n..=k * n + k], &mut row[..=k]);
        }
        let own = 1.0 / line[i];
        line[..i].iter_mut().zip(&*row).for_each(|(out, v)| *out = own * v);
        line[i] = own;
    }
    // M'M in place of M: its row i needs the rows of M from i on.
    for i in 0..n {
        counter.charge((i * (n - i)) as u64)?;
        row.clear();
        row.resize(i + 1, 0.0);
        for line in a.chunks_exact(n).skip(i) {
            axpy(line[i], &line[..=i], row);
        }
        a[i * n..=i * n + i].copy_from_slice(row);
    }
    for i in 0..n {
        for k in 0..i {
            a[k * n + i] = a[i * n + k];
        }
    }
    Ok(a.iter().all(|v| v.is_finite()))
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

    #[test]
    fn the_inverse_times_the_matrix_is_one() {
        for n in [0, 1, 2, 17, 40] {
            let a = matrix(n, &mut Random::new(n as u64));
            let (mut inverse, mut out) = (a.clone(), Vec::new());
            let mut counter = Context::default().counter("", 0);
            assert!(invert(&mut inverse, n, &mut Vec::new(), &mut counter).unwrap());
            product(&a, &inverse, n.max(1), &mut out, &mut counter).unwrap();
            for (e, v) in out.iter().enumerate() {
                assert!((v - if e / n == e % n { 1.0 } else { 0.0 }).abs() < 1e-9, "n {n} entry {e}: {v}");
            }
        }
        let refused =
            invert(&mut [1.0, 2.0, 2.0, 1.0], 2, &mut Vec::new(), &mut Context::default().counter("", 0))
                .unwrap();
        assert!(!refused);
    }

    /// Where the step stays on its face, the derivatives along the face are zero at its end: R is zero at the free entries,
    /// and the clipped ones of a row pull by h c. Shares of clipped entries bring both forms of A about; row 3 is at zero.
    #[test]
    fn a_step_within_the_face_goes_to_its_minimum() {
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
            let peaks: Vec<f64> = b.chunks_exact(q).map(largest).collect();
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
            let face = Face {
                quadratic: &h,
                bounds: &bounds,
                b: &b,
                residual: &residual,
                peaks: &peaks,
                outputs: q,
            };
            let (mut room, mut counter) = (Room::default(), Context::default().counter("", 0));
            // Twice in the same room.
            for _ in 0..2 {
                let Ok(Some(step)) = face.step(0.0, &mut room, &mut counter) else {
                    panic!("there is a step")
                };
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
