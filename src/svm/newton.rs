//! A direct step on the unbounded variables: where pair steps crawl, one system of equations goes the whole way.
//!
//! Once the set F of unbounded variables has settled, what is left is a quadratic program without bounds,
//!
//! ```text
//! minimise  1/2 d'K_FF d + g_F'd   subject to  sum of d over each group = 0
//! ```
//!
//! whose solution is d = -H^-1 (g_F - l), H = K_FF with a small ridge, l one number a group. Pair steps need about as many
//! passes over F as its matrix is badly conditioned: at large C millions of steps, where the factor of F costs as much as
//! a few thousand. Variables that would leave their bounds go to the bound and the rest is solved again, as in the
//! projected Newton method (Bertsekas 1982) and in the primal-dual active sets (Hintermueller, Ito, Kunisch 2003);
//! whatever comes out is only a direction: the objective falls along it, or nothing is done. Which variables are to leave
//! their bounds is for the pair steps before and after to find.
//!
//! Invariant: bounds and sums are kept, the objective does not rise. Cost: m^3 / 6 multiply-adds for m variables and each
//! time that some go to their bounds.
//!
//! All allocations are small: at most 2,048 variables.

use super::precision::KernelValue;
use super::problem::GROUPS;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::linalg::cholesky;
use crate::linalg::dense::{Square, factor};
use crate::simd::blas::add_rows;

/// Most variables of a step: a second of one core at most, all sendings included, in which nobody checks of the monitor.
const MOST: usize = 2048;
/// Fewest: below, pair steps are as good.
const FEWEST: usize = 32;
/// The ridge ([`KernelValue::RIDGE`]) is multiplied by 10 at most so often where the matrix is not positive definite.
const RIDGES: usize = 3;
/// Times that variables are sent to their bounds.
const SENDINGS: usize = 6;

/// When a direct step is worth its price: when pair steps have cost as much since the last one.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// Entries that pair steps have scanned since the last direct step.
    scanned: u64,
    /// How many times the price they must have cost; 0 for never.
    times: u64,
}

impl Patience {
    /// Multiply-adds of a factorisation that take as long as an entry of a scan.
    const ENTRY: u64 = 24;
    /// Most times.
    const LAST: u64 = 1 << 10;

    /// At first it must be earned eightfold: with bounded vectors all around it mostly leads nowhere (moons and letter are a
    /// fifth slower where the first one comes at once).
    pub(super) fn new() -> Self {
        Self { scanned: 0, times: 8 }
    }

    /// Waits without end.
    pub(super) fn endless() -> Self {
        Self { scanned: 0, times: 0 }
    }

    /// Pair steps have scanned so many entries.
    pub(super) fn spend(&mut self, entries: u64) {
        self.scanned += entries;
    }

    /// Whether a direct step on `m` variables has been earned.
    pub(super) fn is_over(&self, m: usize) -> bool {
        let m = m as u64;
        self.times > 0
            && (FEWEST as u64..=MOST as u64).contains(&m)
            && self.scanned >= self.times * (m * m * (m / 6 + 64) / Self::ENTRY)
    }

    /// A direct step has gone this share of its way: after one that led nowhere the next waits longer.
    pub(super) fn paid(&mut self, share: f64) {
        self.scanned = 0;
        self.times = if share > 0.1 { (self.times / 2).max(1) } else { (2 * self.times).min(Self::LAST) };
    }
}

/// Share of the values that their sum may change by in a step.
const SUM_ERROR: f64 = 1e-10;

/// The unbounded variables of a block.
pub(super) struct Face<'a, K> {
    /// k(i, j) at `kernel[slots[i] * stride + slots[j]]`, the ridge of the problem on the diagonal.
    pub(super) kernel: &'a [K],
    pub(super) stride: usize,
    pub(super) slots: Vec<usize>,
    pub(super) values: Vec<f64>,
    /// Derivatives of the objective, the kink's included.
    pub(super) derivatives: Vec<f64>,
    /// Where the piece of the cost that a variable is on ends, below and above.
    pub(super) ends: Vec<(f64, f64)>,
    /// Group of each variable, whose sum is kept; `None` where no sum is.
    pub(super) groups: Vec<Option<u8>>,
}

impl<K: KernelValue> Face<'_, K> {
    /// Better values of the variables, and which share they are of the way to the best; `None` where there are none.
    ///
    /// # Errors
    /// Those of the factorisation that say nothing of the matrix and of memory.
    pub(super) fn solve(&self, ctx: Context<'_>) -> Result<Option<(Vec<f64>, f64)>> {
        let n = self.slots.len();
        let mut active: Vec<usize> = (0..n).collect();
        let mut to = self.values.clone();
        // The last solution: it keeps the sums, though not all bounds where it is not `whole`.
        let (mut solved, mut whole) = (None, false);
        for _ in 0..SENDINGS {
            if active.len() < 2 || !self.solve_for(&active, &mut to, ctx)? {
                break;
            }
            solved = Some(to.clone());
            let before = active.len();
            active.retain(|&i| {
                let (below, above) = self.ends[i];
                let within = to[i] > below && to[i] < above;
                to[i] = to[i].clamp(below, above);
                within
            });
            whole = active.len() == before;
            if whole {
                break;
            }
        }
        Ok(solved.and_then(|to| self.along(&to, whole)))
    }

    /// Sets `to` of the active variables so that the objective is least while those of the others stay.
    fn solve_for(&self, active: &[usize], to: &mut [f64], ctx: Context<'_>) -> Result<bool> {
        let m = active.len();
        let Some(l) = self.factor(active, ctx)? else { return Ok(false) };
        let mut sent: Vec<(usize, f64)> =
            (0..self.slots.len()).map(|i| (i, to[i] - self.values[i])).filter(|&(_, d)| d != 0.0).collect();
        // Those that are solved for are rising.
        sent.retain(|(i, _)| active.binary_search(i).is_err());
        let mut solution: Vec<f64> = active
            .iter()
            .map(|&i| {
                let line = self.line(i);
                let moved: f64 = sent.iter().map(|&(j, d)| d * line[self.slots[j]].wide()).sum();
                -self.derivatives[i] - moved
            })
            .collect();
        let lines = |b: &mut [f64]| cholesky::solve_one(l.values(), l.stride(), b);
        lines(&mut solution);
        // One number a group that has members, so that its sum is kept; all of a group cannot leave.
        let mut kept = Vec::new();
        for group in 0..GROUPS as u8 {
            let of_group = |i: usize| self.groups[i] == Some(group);
            if sent.iter().any(|&(i, _)| of_group(i)) && !active.iter().any(|&i| of_group(i)) {
                return Ok(false);
            }
            let mut ones: Vec<f64> =
                active.iter().map(|&i| f64::from(u8::from(self.groups[i] == Some(group)))).collect();
            if ones.iter().any(|v| *v != 0.0) {
                lines(&mut ones);
                kept.push((group, ones));
            }
        }
        let sum_of = |group: u8, values: &[f64]| -> f64 {
            (0..m).filter(|&k| self.groups[active[k]] == Some(group)).map(|k| values[k]).sum()
        };
        let wanted: Vec<f64> = kept
            .iter()
            .map(|(group, _)| {
                let gone: f64 =
                    sent.iter().filter(|&&(j, _)| self.groups[j] == Some(*group)).map(|&(_, d)| d).sum();
                -gone - sum_of(*group, &solution)
            })
            .collect();
        let at = |k: usize, j: usize| sum_of(kept[k].0, &kept[j].1);
        let multipliers = match kept.len() {
            0 => vec![],
            1 => vec![wanted[0] / at(0, 0)],
            _ => {
                let determinant = at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0);
                vec![
                    (wanted[0] * at(1, 1) - at(0, 1) * wanted[1]) / determinant,
                    (at(0, 0) * wanted[1] - wanted[0] * at(1, 0)) / determinant,
                ]
            }
        };
        for (k, &i) in active.iter().enumerate() {
            let level: f64 = kept.iter().zip(&multipliers).map(|((_, ones), l)| l * ones[k]).sum();
            to[i] = self.values[i] + solution[k] + level;
        }
        Ok(active.iter().all(|&i| to[i].is_finite()))
    }

    /// L of the kernel matrix of the active variables with a ridge; `None` where none makes it positive definite, or there
    /// is no room for it.
    fn factor(&self, active: &[usize], ctx: Context<'_>) -> Result<Option<Square<f64>>> {
        let m = active.len();
        let largest = active.iter().map(|&i| self.line(i)[self.slots[i]].wide()).fold(0.0, f64::max);
        let mut ridge = K::RIDGE * (m as f64).sqrt() * largest;
        for _ in 0..RIDGES {
            let Ok(mut matrix) = Square::<f64>::new(m) else { return Ok(None) };
            let stride = matrix.stride();
            ctx.for_each_chunk(matrix.values_mut(), 64 * stride, |task, lines| {
                for (k, out) in (task * 64..).zip(lines.chunks_exact_mut(stride)) {
                    let line = self.line(active[k]);
                    for (out, &j) in out.iter_mut().zip(&active[..=k]) {
                        *out = line[self.slots[j]].wide();
                    }
                    out[k] += ridge;
                }
            });
            match factor(&mut matrix, ctx.silent()) {
                Ok(()) => return Ok(Some(matrix)),
                Err(Error::NotPositiveDefinite { .. }) => ridge *= 10.0,
                // Pair steps need no more than there is.
                Err(Error::Memory { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn line(&self, i: usize) -> &[K] {
        &self.kernel[self.slots[i] * self.stride..][..self.stride]
    }

    /// The best of the values on the way to `to` that are within the ends; `whole` says that `to` itself is.
    fn along(&self, to: &[f64], whole: bool) -> Option<(Vec<f64>, f64)> {
        let moves: Vec<f64> = to.iter().zip(&self.values).map(|(to, from)| to - from).collect();
        let slope: f64 = moves.iter().zip(&self.derivatives).map(|(d, g)| d * g).sum();
        let lines: Vec<&[K]> = (0..moves.len()).map(|i| self.line(i)).collect();
        let mut product = vec![0.0; self.stride];
        add_rows(&moves, &lines, 0, &mut product);
        let curvature: f64 = moves.iter().zip(&self.slots).map(|(d, &slot)| d * product[slot]).sum();
        if !(slope < 0.0) {
            return None;
        }
        let mut share = if curvature > 0.0 { (-slope / curvature).min(1.0) } else { 1.0 };
        if !whole {
            for ((&(below, above), &from), &d) in self.ends.iter().zip(&self.values).zip(&moves) {
                let room = if d > 0.0 { above - from } else { from - below };
                if d.abs() * share > room {
                    share = room / d.abs();
                }
            }
        }
        if !(share > 0.0) {
            return None;
        }
        let at = |i: usize| {
            let (below, above) = self.ends[i];
            if share == 1.0 { to[i] } else { self.values[i] + share * moves[i] }.clamp(below, above)
        };
        let values: Vec<f64> = (0..moves.len()).map(at).collect();
        self.keeps_sums(&values).then_some((values, share))
    }

    /// Whether rounding has left the sums alone: steps that are far longer than the bounds are apart may lose them.
    fn keeps_sums(&self, values: &[f64]) -> bool {
        (0..GROUPS as u8).all(|group| {
            let of_group = (0..values.len()).filter(|&i| self.groups[i] == Some(group));
            let (mut moved, mut size) = (0.0, 0.0);
            for i in of_group {
                moved += values[i] - self.values[i];
                size += values[i].abs() + self.values[i].abs();
            }
            moved.abs() <= SUM_ERROR * size
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    /// 1/2 d'Kd + g'd of the change from a face's values.
    fn objective(face: &Face<'_, f32>, to: &[f64]) -> f64 {
        let moves: Vec<f64> = to.iter().zip(&face.values).map(|(to, from)| to - from).collect();
        let product = |i: usize| -> f64 {
            moves.iter().zip(&face.slots).map(|(d, &slot)| d * f64::from(face.line(i)[slot])).sum()
        };
        (0..moves.len()).map(|i| moves[i] * (0.5 * product(i) + face.derivatives[i])).sum()
    }

    /// Kernel values of `n` rows in the plane, from slot 1 on, amid what is none.
    fn matrix(n: usize, random: &mut Random) -> Vec<f32> {
        let x: Vec<[f64; 2]> = (0..n).map(|_| [random.normal(), random.normal()]).collect();
        let mut kernel = vec![f32::MAX; (n + 3) * (n + 3)];
        for (i, a) in x.iter().enumerate() {
            for (j, b) in x.iter().enumerate() {
                let squared = (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
                kernel[(i + 1) * (n + 3) + j + 1] = (-squared).exp() as f32;
            }
        }
        kernel
    }

    /// A face of all of them, in `groups` groups or none, within `c` of each other.
    fn face<'a>(kernel: &'a [f32], n: usize, groups: u8, c: f64, random: &mut Random) -> Face<'a, f32> {
        Face {
            kernel,
            stride: n + 3,
            slots: (1..=n).collect(),
            values: (0..n).map(|_| c * (0.9 * random.uniform() - 0.45)).collect(),
            derivatives: (0..n).map(|_| random.normal()).collect(),
            ends: vec![(-0.5 * c, 0.5 * c); n],
            groups: (0..n).map(|i| (groups > 0).then(|| (i % usize::from(groups.max(1))) as u8)).collect(),
        }
    }

    proptest! {
        #[test]
        fn bounds_and_sums_are_kept_and_the_objective_falls(
            n in 2..90_usize,
            groups in 0..=2_u8,
            c in prop::sample::select(vec![1e-6, 0.1, 1.0, 30.0, 1e5]),
            seed in 0..1000_u64,
        ) {
            let mut random = Random::new(seed);
            let kernel = matrix(n, &mut random);
            let face = face(&kernel, n, groups, c, &mut random);
            let Some((to, share)) = face.solve(Context::SEQUENTIAL).unwrap() else { return Ok(()) };
            prop_assert!(share > 0.0 && share <= 1.0);
            prop_assert!(to.iter().all(|v| v.abs() <= 0.5 * c));
            for group in 0..groups {
                let of = |values: &[f64]| -> f64 {
                    (0..n).filter(|&i| face.groups[i] == Some(group)).map(|i| values[i]).sum()
                };
                prop_assert!((of(&to) - of(&face.values)).abs() <= 1e-9 * c * n as f64);
            }
            let fall = objective(&face, &to);
            prop_assert!(fall < 0.0, "{}", fall);
        }
    }

    #[test]
    fn without_bounds_in_the_way_it_is_the_solution() {
        let mut random = Random::new(5);
        let mut kernel = matrix(40, &mut random);
        // Away from zero eigenvalues, so that the ridge does not show.
        (1..=40).for_each(|slot| kernel[slot * 43 + slot] += 1.0);
        let face = face(&kernel, 40, 1, 1e9, &mut random);
        let (to, share) = face.solve(Context::SEQUENTIAL).unwrap().unwrap();
        let gradient: Vec<f64> = (0..40)
            .map(|i| {
                let line = face.line(i);
                let product: f64 =
                    (0..40).map(|j| (to[j] - face.values[j]) * f64::from(line[face.slots[j]])).sum();
                face.derivatives[i] + product
            })
            .collect();
        let level = gradient.iter().sum::<f64>() / 40.0;
        assert!(share == 1.0 && gradient.iter().all(|g| (g - level).abs() < 1e-4), "{gradient:?}");
    }

    #[test]
    fn what_leads_nowhere_is_tried_less_often() {
        let mut patience = Patience::new();
        let price = |patience: &Patience| {
            let mut asked = *patience;
            let mut paid = 0_u64;
            while !asked.is_over(100) {
                asked.spend(1000);
                paid += 1000;
            }
            paid
        };
        let first = price(&patience);
        patience.paid(0.0);
        patience.paid(0.01);
        let later = price(&patience);
        assert!(first > 0 && later >= 3 * first, "{first} {later}");
        patience.paid(1.0);
        assert!(price(&patience) < later);
        assert!(!patience.is_over(FEWEST - 1) && !patience.is_over(MOST + 1));
    }
}
