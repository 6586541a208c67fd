//! Factors of product kernels, and the Shapley integrals of one sample and one vector over all background samples.
//!
//! Background samples are the lanes. Matrices have a row for each column or player and `lanes` numbers in a row, a
//! multiple of [`LANE_MULTIPLE`]. Products that leave out one player are products of prefixes and suffixes, so that no
//! factor is divided by, which may be as small as the smallest number.

use super::exp::exp;
use super::{Isa, Operation, Vector, run, vectorized};

/// A multiple of the number of lanes of every vector of doubles.
pub(crate) const LANE_MULTIPLE: usize = 8;
/// Number of nodes that are computed together: their chains of products are independent.
pub(crate) const NODES_TOGETHER: usize = 4;

/// Distance of two numbers, whose sum over columns is the exponent of a product kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distance {
    /// (x - z)^2
    Squared,
    /// |x - z|
    Absolute,
    /// (x - z)^2 / (x + z), 0 if both are 0
    ChiSquared,
}

impl Distance {
    #[inline(always)]
    pub(crate) fn between(self, x: f64, z: f64) -> f64 {
        let difference = x - z;
        match self {
            Self::Squared => difference * difference,
            Self::Absolute => difference.abs(),
            Self::ChiSquared if x + z > 0.0 => difference * (difference / (x + z)),
            Self::ChiSquared => 0.0,
        }
    }
}

#[inline(always)]
fn add(sums: &mut [f64], values: &[f64], distance: impl Fn(f64) -> f64) {
    for (sum, &x) in sums.iter_mut().zip(values) {
        *sum += distance(x);
    }
}

/// Computes exp(-gamma sum_c d(x_c, z_c)) over the columns c of each player, for every sample.
///
/// `samples` (columns, lanes), `vector` z and `player_of` (columns,), `out` (players, lanes). No factor is 0: those below the
/// smallest normal number are that number.
///
/// # Panics
/// If the shapes contradict each other.
pub(crate) fn factors(
    (distance, gamma): (Distance, f64),
    samples: &[f64],
    lanes: usize,
    vector: &[f64],
    player_of: &[usize],
    out: &mut [f64],
) {
    assert!(lanes > 0 && lanes.is_multiple_of(LANE_MULTIPLE) && out.len().is_multiple_of(lanes));
    assert!(samples.len() == lanes * vector.len() && player_of.len() == vector.len());
    if gamma == 0.0 {
        // Without this, a distance that overflows would be multiplied by 0.
        return out.fill(1.0);
    }
    vectorized!([] (
        distance: Distance, gamma: f64, samples: &[f64], lanes: usize, vector: &[f64], player_of: &[usize], out: &mut [f64]
    ) {
        out.fill(0.0);
        for ((sample, &z), &player) in samples.chunks_exact(lanes).zip(vector).zip(player_of) {
            let sums = &mut out[player * lanes..][..lanes];
            match distance {
                Distance::Squared => add(sums, sample, |x| Distance::Squared.between(x, z)),
                Distance::Absolute => add(sums, sample, |x| Distance::Absolute.between(x, z)),
                Distance::ChiSquared => add(sums, sample, |x| Distance::ChiSquared.between(x, z)),
            }
        }
        for chunk in out.chunks_exact_mut(I::F64::LANES) {
            // SAFETY: the chunk has LANES numbers.
            unsafe {
                let exponent = I::F64::load(chunk.as_ptr()).mul(I::F64::splat(-gamma));
                exp(exponent).store(chunk.as_mut_ptr());
            }
        }
    });
}

/// The arguments of [`integrals`].
pub(crate) struct Integrals<'a> {
    /// p_j = k_j(x_j, z_j), (players,).
    pub(crate) present: &'a [f64],
    /// q_j = k_j(b_j, z_j), (players, lanes).
    pub(crate) absent: &'a [f64],
    /// Weights of the background samples, (lanes,); 0 for lanes without a sample.
    pub(crate) weights: &'a [f64],
    /// Nodes and weights of the quadrature, a multiple of [`NODES_TOGETHER`].
    pub(crate) nodes: &'a [(f64, f64)],
    /// Space for (players + players NODES_TOGETHER) vectors of [`LANE_MULTIPLE`] numbers.
    pub(crate) space: &'a mut [f64],
    /// The result, (players,).
    pub(crate) out: &'a mut [f64],
}

impl Integrals<'_> {
    /// Returns the length of `space`.
    pub(crate) fn space(players: usize) -> usize {
        LANE_MULTIPLE * players * (1 + NODES_TOGETHER)
    }
}

impl Operation for Integrals<'_> {
    type Output = f64;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> f64 {
        let Self { present, absent, weights, nodes, space, out } = self;
        let (players, lanes, width) = (present.len(), weights.len(), I::F64::LANES);
        let (sums, prefixes) = space.split_at_mut(width * players);
        sums.fill(0.0);
        // SAFETY: `integrals` checks that every place below lies in its slice; the caller guarantees the set.
        unsafe {
            let mut products = I::F64::zero();
            for lane in (0..lanes).step_by(width) {
                let weight = I::F64::load(weights.as_ptr().add(lane));
                for group in nodes.chunks_exact(NODES_TOGETHER) {
                    let mut prefix = [weight; NODES_TOGETHER];
                    for (product, node) in prefix.iter_mut().zip(group) {
                        *product = product.mul(I::F64::splat(node.1));
                    }
                    for player in 0..players {
                        let q = I::F64::load(absent.as_ptr().add(player * lanes + lane));
                        let change = I::F64::splat(present[player]).sub(q);
                        let place = prefixes.as_mut_ptr().add(player * NODES_TOGETHER * width);
                        for k in 0..NODES_TOGETHER {
                            prefix[k].store(place.add(k * width));
                            prefix[k] = prefix[k].mul(I::F64::splat(group[k].0).mul_add(change, q));
                        }
                    }
                    let mut suffix = [I::F64::splat(1.0); NODES_TOGETHER];
                    for player in (0..players).rev() {
                        let q = I::F64::load(absent.as_ptr().add(player * lanes + lane));
                        let change = I::F64::splat(present[player]).sub(q);
                        let place = prefixes.as_ptr().add(player * NODES_TOGETHER * width);
                        let mut others = I::F64::zero();
                        for k in 0..NODES_TOGETHER {
                            others = I::F64::load(place.add(k * width)).mul_add(suffix[k], others);
                            suffix[k] = suffix[k].mul(I::F64::splat(group[k].0).mul_add(change, q));
                        }
                        let sum = sums.as_mut_ptr().add(player * width);
                        change.mul_add(others, I::F64::load(sum)).store(sum);
                    }
                    for product in prefix {
                        products = products.add(product);
                    }
                }
            }
            for (player, out) in out.iter_mut().enumerate() {
                *out = I::F64::load(sums.as_ptr().add(player * width)).sum();
            }
            products.sum()
        }
    }
}

/// Computes sum_b w_b sum_t w_t (p_j - q_bj) prod_{h != j} (q_bh + t (p_h - q_bh)) for every player j, and returns the
/// same sums of the whole product, prod_h (q_bh + t (p_h - q_bh)).
///
/// # Panics
/// If the shapes contradict each other.
pub(crate) fn integrals(task: Integrals<'_>) -> f64 {
    let (players, lanes) = (task.present.len(), task.weights.len());
    assert!(
        lanes.is_multiple_of(LANE_MULTIPLE)
            && task.absent.len() == players * lanes
            && task.out.len() == players
    );
    assert!(task.space.len() >= Integrals::space(players) && task.nodes.len().is_multiple_of(NODES_TOGETHER));
    // SAFETY: lanes are whole vectors, and all lengths were checked.
    unsafe { run(task) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrals_are_those_of_the_formula() {
        let (players, lanes) = (3, 16);
        let number = |i: usize| 0.05 + (i as f64 * 0.7).sin().abs();
        let present: Vec<f64> = (0..players).map(number).collect();
        let absent: Vec<f64> = (0..players * lanes).map(|i| number(7 + i)).collect();
        let weights: Vec<f64> = (0..lanes).map(|i| if i < 11 { number(90 + i) } else { 0.0 }).collect();
        let nodes: Vec<(f64, f64)> = (0..8).map(|i| (number(40 + i), number(60 + i))).collect();
        let (mut space, mut out) = (vec![f64::NAN; Integrals::space(players)], vec![f64::NAN; players]);
        let total = integrals(Integrals {
            present: &present,
            absent: &absent,
            weights: &weights,
            nodes: &nodes,
            space: &mut space,
            out: &mut out,
        });
        let (mut sums, mut expected_total) = (vec![0.0; players], 0.0);
        for b in 0..lanes {
            for (t, w) in &nodes {
                let q = |j: usize| absent[j * lanes + b];
                let r = |j: usize| q(j) + t * (present[j] - q(j));
                expected_total += weights[b] * w * (0..players).map(r).product::<f64>();
                for (j, sum) in sums.iter_mut().enumerate() {
                    let others: f64 = (0..players).filter(|&h| h != j).map(r).product();
                    *sum += weights[b] * w * (present[j] - q(j)) * others;
                }
            }
        }
        assert!((total - expected_total).abs() < 1e-13 * expected_total.abs());
        for (out, sum) in out.iter().zip(&sums) {
            assert!((out - sum).abs() < 1e-13, "{out} {sum}");
        }
    }

    #[test]
    fn factors_are_those_of_the_formula() {
        let (columns, lanes) = (4, 8);
        let samples: Vec<f64> = (0..columns * lanes).map(|i| (i as f64 * 0.37).sin().abs()).collect();
        let (vector, player_of) = ([0.3, 0.0, 1.2, 0.4], [1, 0, 1, 1]);
        for distance in [Distance::Squared, Distance::Absolute, Distance::ChiSquared] {
            let mut out = vec![f64::NAN; 2 * lanes];
            factors((distance, 0.7), &samples, lanes, &vector, &player_of, &mut out);
            for lane in 0..lanes {
                for player in 0..2 {
                    let sum: f64 = (0..columns)
                        .filter(|&c| player_of[c] == player)
                        .map(|c| distance.between(samples[c * lanes + lane], vector[c]))
                        .sum();
                    let actual = out[player * lanes + lane];
                    assert!((actual - (-0.7 * sum).exp()).abs() < 1e-14, "{distance:?} {actual}");
                }
            }
        }
    }
}
