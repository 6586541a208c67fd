//! Exact Shapley values of an expansion whose kernel is a product over columns.
//!
//! Problem: f(x) = sum_i B_i prod_j k_j(x_j, z_ij) + b is to be divided among players j (columns or groups of columns). For a
//! background sample b, the *interventional* game gives a coalition S the output for a sample that has the columns of S from x
//! and the others from b. For one vector z, with p_j = k_j(x_j, z_j) and q_j = k_j(b_j, z_j), that is
//!
//!   v(S) = prod_{j in S} p_j prod_{j not in S} q_j,
//!
//! and by the multilinear extension of the game (Owen, Management Science 18, 1972) the Shapley value of player j is
//!
//!   phi_j = int_0^1 (p_j - q_j) prod_{h != j} (q_h + t (p_h - q_h)) dt,
//!
//! the integral of a polynomial of degree P - 1 for P players: ceil(P / 2) nodes of Gauss and Legendre are exact. Values are
//! linear in the game, so they are summed over vectors with B and averaged over background samples. The *product-kernel*
//! game (Mohammadi and others, PKeX-Shapley, 2025) leaves the factors of absent players out: q_j = 1.
//!
//! Fewer nodes are tried first. The values of a sample must add up to f(x) - mean_b f(b), since the integrands add up to the
//! derivative of the whole product; samples that miss this are computed again with twice the nodes.
//!
//! Invariant: partial sums are added in the order of their tasks, so results do not depend on the number of threads.
//! Cost: O(n m |background| P nodes); memory O(n P q).

use ndarray::{Array2, Array3, Axis};

use super::quadrature::gauss_legendre;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernel::Kernel;
use crate::memory::{self};
use crate::simd::shapley::{Distance, Integrals, LANE_MULTIPLE, NODES_TOGETHER, factors, integrals};

/// Samples of a task: they share the factors of the background.
const SAMPLES_PER_TASK: usize = 8;
/// Vectors of a task.
const VECTORS_PER_TASK: usize = 16;
/// Maximum number of tasks between two interrupt checks: enough for many threads.
const MAX_TASKS_TOGETHER: usize = 64;
/// Minimum number of tasks between two interrupt checks, whatever memory their results take.
const MIN_TASKS_TOGETHER: usize = 8;
/// Maximum number of partial sums in memory, as long as [`MIN_TASKS_TOGETHER`] tasks have room.
const MAX_PARTIAL_SUMS: usize = 1 << 23;
/// Nodes that are tried first.
const FIRST_NODES: usize = 8;
/// Largest error of additivity that ends the search for more nodes, relative to the mean of the products along the path,
/// weighted by |B|.
const TOLERANCE: f64 = 1e-11;

/// The value of a coalition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Game {
    /// The output for a sample whose absent columns come from a background sample, averaged over these.
    Interventional,
    /// The output without the factors of the absent columns (PKeX-Shapley).
    ProductKernel,
}

/// The game and its players.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ShapleyParams<'a> {
    /// The value of a coalition of players.
    pub game: Game,
    /// The player of each column, (d,): numbers from 0 to `players` - 1.
    pub player_of: &'a [usize],
    /// Number of players P, each of which has some columns or none.
    pub players: usize,
}

impl<'a> ShapleyParams<'a> {
    /// Returns the parameters of a game whose players are the numbers of `player_of`, one for each column.
    pub fn new(game: Game, player_of: &'a [usize]) -> Self {
        let players = player_of.iter().max().map_or(0, |last| last.saturating_add(1));
        Self { game, player_of, players }
    }
}

/// Shapley values with the error of their sums.
#[derive(Debug, Clone)]
pub struct Shapley {
    /// Values, (n, P, q).
    pub values: Array3<f64>,
    /// Value of the empty coalition, (q,): the mean output over the background, or for the product-kernel game the sum of
    /// the coefficients, plus the intercept.
    pub base: Vec<f64>,
    /// |sum of values + base - f(x)|, (n, q).
    pub additivity_error: Array2<f64>,
    /// Largest number of nodes that a sample needed.
    pub nodes: usize,
}

/// Samples as columns of numbers: those of a background, or one sample.
struct Lanes {
    /// (d, lanes).
    values: Vec<f64>,
    /// A multiple of [`LANE_MULTIPLE`].
    count: usize,
    /// Equal weights that add up to 1, then zeros, (lanes,).
    weights: Vec<f64>,
}

impl Lanes {
    fn new(rows: Rows<'_>) -> Result<Self> {
        let (n, d) = (rows.rows(), rows.cols());
        let lanes = n.next_multiple_of(LANE_MULTIPLE);
        let values = spread(rows, "the background samples", lanes.saturating_mul(d), (1, lanes))?;
        let mut weights = vec![0.0; lanes];
        weights[..n].fill(1.0 / n as f64);
        Ok(Self { values, count: lanes, weights })
    }
}

/// Vectors or samples as dense rows.
fn dense(rows: Rows<'_>, what: &'static str) -> Result<Vec<f64>> {
    let (n, d) = (rows.rows(), rows.cols());
    spread(rows, what, n.saturating_mul(d), (d, 1))
}

/// Writes rows to a dense array of `len` numbers with these strides of rows and columns.
fn spread(
    rows: Rows<'_>,
    what: &'static str,
    len: usize,
    (row_stride, column_stride): (usize, usize),
) -> Result<Vec<f64>> {
    let mut values = memory::try_zeros(what, len)?;
    for row in 0..rows.rows() {
        rows.for_each_in_row(row, |column, value| values[row * row_stride + column * column_stride] = value);
    }
    Ok(values)
}

/// Distance and gamma of a kernel that is a product over columns.
fn factor_of(kernel: Kernel) -> Result<(Distance, f64)> {
    match kernel {
        Kernel::Rbf { gamma } => Ok((Distance::Squared, gamma)),
        Kernel::Laplacian { gamma } => Ok((Distance::Absolute, gamma)),
        Kernel::ChiSquared { gamma } => Ok((Distance::ChiSquared, gamma)),
        other => Err(Error::param(
            "kernel",
            other.name(),
            "one of rbf, laplacian, chi2, which are products over the columns",
        )),
    }
}

/// Computes the Shapley values of all outputs of an expansion for every sample of `x`.
///
/// `x` (n, d); `background` (m, d) with at least one sample, which the product-kernel game does not use.
///
/// # Errors
/// [`Error::Param`] for a kernel that is not a product over columns, for players out of range and for rows outside the domain of
/// the kernel; [`Error::Shape`]; [`Error::NotFinite`]; [`Error::Memory`]; [`Error::Stopped`].
pub fn shapley_values(
    expansion: &ExpansionView<'_>,
    x: Rows<'_>,
    background: Rows<'_>,
    params: &ShapleyParams<'_>,
    ctx: Context<'_>,
) -> Result<Shapley> {
    let factor = factor_of(expansion.kernel)?;
    let (n, d, q) = (x.rows(), expansion.vectors.cols(), expansion.outputs());
    Error::check_len("columns of X (those of the vectors)", d, x.cols())?;
    Error::check_len("columns of the background (those of the vectors)", d, background.cols())?;
    Error::check_len("players (one for each column)", d, params.player_of.len())?;
    Error::check_below("groups", params.player_of, params.players, "the number of players")?;
    Error::check_param(background.rows() > 0, "background", "no samples", "at least one sample")?;
    for (what, rows) in [("X", x.reborrow()), ("background", background.reborrow())] {
        rows.check_finite(what)?;
        expansion.kernel.check_rows(what, rows)?;
    }
    let absent = match params.game {
        Game::Interventional => Lanes::new(background)?,
        Game::ProductKernel => Lanes::new(background.gather(&[0])?.view())?,
    };
    let problem = Problem {
        expansion: expansion.reborrow(),
        params: *params,
        factor,
        vectors: dense(expansion.vectors, "the vectors as dense rows")?,
        samples: dense(x, "the samples as dense rows")?,
        absent,
    };
    let mut sums = Sums {
        values: memory::try_zeros("the Shapley values", n.saturating_mul(params.players).saturating_mul(q))?,
        totals: memory::try_zeros("the sums of Shapley values", n.saturating_mul(q).saturating_mul(TOTALS))?,
    };
    let exact = params.players.div_ceil(2).max(1);
    let mut nodes = exact.min(FIRST_NODES);
    let mut open: Vec<usize> = (0..n).collect();
    let mut error = memory::try_zero_matrix("the errors of additivity", (n, q))?;
    loop {
        problem.explain(&open, nodes, &mut sums, ctx)?;
        for &sample in &open {
            for output in 0..q {
                error[[sample, output]] = sums.error(sample, output, params.players, q);
            }
        }
        if nodes == exact {
            break;
        }
        open.retain(|&sample| {
            (0..q).any(|output| !(error[[sample, output]] <= TOLERANCE * sums.magnitude(sample, output, q)))
        });
        if open.is_empty() {
            break;
        }
        nodes = (2 * nodes).min(exact);
    }
    let base = problem.base(&sums, n);
    let values = Array3::from_shape_vec((n, params.players, q), sums.values)
        .expect("the values were made in this shape");
    if values.iter().any(|value| !value.is_finite()) {
        let row = values.axis_iter(Axis(0)).position(|v| v.iter().any(|v| !v.is_finite())).unwrap_or(0);
        return Err(Error::NotFinite { what: "the Shapley values of X: coefficients too large; they", row });
    }
    Ok(Shapley { values, base, additivity_error: error, nodes })
}

/// Numbers that are summed beside the values, for each sample and output: f(x), the mean of f over the background, and the mean
/// product along the path weighted by |B|, all without the intercept.
const TOTALS: usize = 3;

/// The sums of all tasks so far.
struct Sums {
    /// (n, P, q).
    values: Vec<f64>,
    /// (n, [`TOTALS`], q).
    totals: Vec<f64>,
}

impl Sums {
    fn total(&self, sample: usize, which: usize, output: usize, q: usize) -> f64 {
        self.totals[(sample * TOTALS + which) * q + output]
    }

    /// |sum of values - (f(x) - f of the background)|.
    fn error(&self, sample: usize, output: usize, players: usize, q: usize) -> f64 {
        let values = &self.values[sample * players * q..][..players * q];
        let sum: f64 = values.iter().skip(output).step_by(q).sum();
        (sum - (self.total(sample, 0, output, q) - self.total(sample, 1, output, q))).abs()
    }

    fn magnitude(&self, sample: usize, output: usize, q: usize) -> f64 {
        self.total(sample, 2, output, q)
    }
}

struct Problem<'a> {
    expansion: ExpansionView<'a>,
    params: ShapleyParams<'a>,
    factor: (Distance, f64),
    /// (m, d).
    vectors: Vec<f64>,
    /// (n, d).
    samples: Vec<f64>,
    absent: Lanes,
}

/// Space of a task.
struct Scratch {
    /// Factors of the background, (P, lanes).
    absent: Vec<f64>,
    /// Factors of one sample, (P, [`LANE_MULTIPLE`]).
    lanes: Vec<f64>,
    /// The same without the unused lanes, (P,).
    present: Vec<f64>,
    /// Space of [`integrals`].
    products: Vec<f64>,
    /// Values for one vector, (P,).
    values: Vec<f64>,
    /// Columns of one sample, (d, [`LANE_MULTIPLE`]).
    sample: Vec<f64>,
}

impl Problem<'_> {
    /// Computes the values of some samples with `count` quadrature nodes.
    fn explain(&self, open: &[usize], count: usize, sums: &mut Sums, ctx: Context<'_>) -> Result<()> {
        let (players, q, m) = (self.params.players, self.expansion.outputs(), self.expansion.len());
        let mut nodes = Vec::with_capacity(count.next_multiple_of(NODES_TOGETHER));
        nodes.extend(gauss_legendre(count).iter().map(|node| (node.t, node.weight)));
        // Nodes of weight 0 complete the last group.
        nodes.resize(count.next_multiple_of(NODES_TOGETHER), (0.5, 0.0));
        for &sample in open {
            sums.values[sample * players * q..][..players * q].fill(0.0);
            sums.totals[sample * TOTALS * q..][..TOTALS * q].fill(0.0);
        }
        let (sample_blocks, vector_blocks) =
            (open.len().div_ceil(SAMPLES_PER_TASK), m.div_ceil(VECTORS_PER_TASK));
        let size = SAMPLES_PER_TASK * (players + TOTALS) * q;
        let work = SAMPLES_PER_TASK * VECTORS_PER_TASK * self.absent.count * players * (nodes.len() + 4);
        let tasks = sample_blocks * vector_blocks;
        let mut counter = ctx.counter("explain", tasks);
        let together =
            (MAX_PARTIAL_SUMS / size).clamp(MIN_TASKS_TOGETHER, MAX_TASKS_TOGETHER).min(tasks).max(1);
        let mut parts: Vec<f64> = memory::try_zeros("partial Shapley values", together.saturating_mul(size))?;
        for from in (0..tasks).step_by(together) {
            let until = tasks.min(from + together);
            counter.advance(until - from);
            counter.charge((work as u64).saturating_mul((until - from) as u64))?;
            let parts = &mut parts[..(until - from) * size];
            parts.fill(0.0);
            ctx.try_for_each_chunk(parts, size, |k, part| {
                let (samples, vectors) = ((from + k) / vector_blocks, (from + k) % vector_blocks);
                let samples =
                    &open[samples * SAMPLES_PER_TASK..open.len().min((samples + 1) * SAMPLES_PER_TASK)];
                let vectors = vectors * VECTORS_PER_TASK..m.min((vectors + 1) * VECTORS_PER_TASK);
                self.part(samples, vectors, &nodes, part)
            })?;
            for (k, part) in parts.chunks_exact(size).enumerate() {
                let block = (from + k) / vector_blocks * SAMPLES_PER_TASK;
                let samples = &open[block..open.len().min(block + SAMPLES_PER_TASK)];
                for (&sample, part) in samples.iter().zip(part.chunks_exact((players + TOTALS) * q)) {
                    let (values, totals) = part.split_at(players * q);
                    add(&mut sums.values[sample * players * q..][..players * q], values);
                    add(&mut sums.totals[sample * TOTALS * q..][..TOTALS * q], totals);
                }
            }
        }
        Ok(())
    }

    /// Adds what some vectors contribute to some samples to `part`, (samples, P + [`TOTALS`], q).
    fn part(
        &self,
        samples: &[usize],
        vectors: std::ops::Range<usize>,
        nodes: &[(f64, f64)],
        part: &mut [f64],
    ) -> Result<()> {
        let (players, q) = (self.params.players, self.expansion.outputs());
        let (d, lanes) = (self.params.player_of.len(), self.absent.count);
        let what = "the factors of a product kernel";
        let mut scratch = Scratch {
            absent: memory::try_filled(what, players.saturating_mul(lanes), 1.0)?,
            lanes: vec![0.0; players * LANE_MULTIPLE],
            present: vec![0.0; players],
            products: memory::try_zeros(what, Integrals::space(players))?,
            values: vec![0.0; players],
            sample: vec![0.0; d * LANE_MULTIPLE],
        };
        for vector in vectors {
            let z = &self.vectors[vector * d..][..d];
            if self.params.game == Game::Interventional {
                factors(
                    self.factor,
                    &self.absent.values,
                    lanes,
                    z,
                    self.params.player_of,
                    &mut scratch.absent,
                );
            }
            let mut mean = 0.0;
            for (lane, weight) in self.absent.weights.iter().enumerate() {
                if *weight > 0.0 {
                    mean += weight * scratch.absent[lane..].iter().step_by(lanes).product::<f64>();
                }
            }
            let coefficients = &self.expansion.flat()[vector * q..][..q];
            for (&sample, part) in samples.iter().zip(part.chunks_exact_mut((players + TOTALS) * q)) {
                for (places, &x) in
                    scratch.sample.chunks_exact_mut(LANE_MULTIPLE).zip(&self.samples[sample * d..][..d])
                {
                    places[0] = x;
                }
                let of = self.params.player_of;
                factors(self.factor, &scratch.sample, LANE_MULTIPLE, z, of, &mut scratch.lanes);
                for (present, lanes) in
                    scratch.present.iter_mut().zip(scratch.lanes.chunks_exact(LANE_MULTIPLE))
                {
                    *present = lanes[0];
                }
                let magnitude = integrals(Integrals {
                    present: &scratch.present,
                    absent: &scratch.absent,
                    weights: &self.absent.weights,
                    nodes,
                    space: &mut scratch.products,
                    out: &mut scratch.values,
                });
                let output: f64 = scratch.present.iter().product();
                let (values, totals) = part.split_at_mut(players * q);
                for (values, &value) in values.chunks_exact_mut(q).zip(&scratch.values) {
                    for (sum, b) in values.iter_mut().zip(coefficients) {
                        *sum += b * value;
                    }
                }
                for (k, &b) in coefficients.iter().enumerate() {
                    totals[k] += b * output;
                    totals[q + k] += b * mean;
                    totals[2 * q + k] += b.abs() * magnitude;
                }
            }
        }
        Ok(())
    }

    /// The value of the empty coalition for each output.
    fn base(&self, sums: &Sums, n: usize) -> Vec<f64> {
        let q = self.expansion.outputs();
        let mut base = self.expansion.intercepts.to_vec();
        if n > 0 {
            for (output, base) in base.iter_mut().enumerate() {
                *base += sums.total(0, 1, output, q);
            }
        }
        base
    }
}

fn add(sums: &mut [f64], values: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expansion::KernelExpansion;
    use crate::kernels::pair;
    use crate::random::Random;

    /// Shapley values by their definition over all coalitions of players.
    fn brute_force(
        expansion: &KernelExpansion,
        x: &[f64],
        background: &Array2<f64>,
        player_of: &[usize],
        players: usize,
    ) -> Array2<f64> {
        let q = expansion.intercepts.len();
        let output = |coalition: usize| -> Vec<f64> {
            let mut sums = vec![0.0; q];
            for b in background.rows() {
                let mixed: Vec<f64> = (0..x.len())
                    .map(|c| if coalition >> player_of[c] & 1 == 1 { x[c] } else { b[c] })
                    .collect();
                let mixed = Rows::from_shape((1, x.len()), &mixed).unwrap();
                for i in 0..expansion.coefficients.nrows() {
                    let value = pair(&expansion.kernel, mixed, 0, expansion.vectors.view(), i);
                    for (sum, coefficient) in sums.iter_mut().zip(expansion.coefficients.row(i)) {
                        *sum += coefficient * value / background.nrows() as f64;
                    }
                }
            }
            sums
        };
        let worth: Vec<Vec<f64>> = (0..1 << players).map(output).collect();
        let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
        Array2::from_shape_fn((players, q), |(player, output)| {
            (0..1_usize << players)
                .filter(|coalition| coalition >> player & 1 == 0)
                .map(|coalition| {
                    let size = coalition.count_ones() as usize;
                    let weight = factorial(size) * factorial(players - size - 1) / factorial(players);
                    weight * (worth[coalition | 1 << player][output] - worth[coalition][output])
                })
                .sum()
        })
    }

    fn example(kernel: Kernel, d: usize, m: usize, seed: u64) -> (KernelExpansion, Array2<f64>, Array2<f64>) {
        let mut random = Random::new(seed);
        let mut draw = |rows: usize| Array2::from_shape_fn((rows, d), |_| random.uniform());
        let (vectors, x, background) = (draw(m), draw(11), draw(5));
        let coefficients = Array2::from_shape_fn((m, 2), |(i, j)| ((3 * i + j) as f64).sin());
        (KernelExpansion::new(kernel, vectors.into(), coefficients, vec![0.3, -2.0]).unwrap(), x, background)
    }

    #[test]
    fn values_are_those_of_all_coalitions() {
        for (kernel, player_of, players) in [
            (Kernel::Rbf { gamma: 0.8 }, vec![0, 1, 2, 3, 4], 5),
            (Kernel::Rbf { gamma: 30.0 }, vec![2, 0, 2, 1, 1], 3),
            (Kernel::Laplacian { gamma: 1.5 }, vec![0, 1, 2, 3, 3], 4),
            (Kernel::ChiSquared { gamma: 2.0 }, vec![0, 1, 2, 3, 4], 5),
            (Kernel::Rbf { gamma: 1.0 }, vec![0; 5], 1),
        ] {
            let (expansion, x, background) = example(kernel, 5, 21, 7);
            let params = ShapleyParams { game: Game::Interventional, player_of: &player_of, players };
            let rows = (Rows::try_from(&x).unwrap(), Rows::try_from(&background).unwrap());
            let explained =
                shapley_values(&expansion.view(), rows.0, rows.1, &params, Context::default()).unwrap();
            assert!(explained.additivity_error.iter().all(|&error| error < 1e-12));
            for (sample, values) in x.rows().into_iter().zip(explained.values.outer_iter()) {
                let expected =
                    brute_force(&expansion, sample.as_slice().unwrap(), &background, &player_of, players);
                for (value, expected) in values.iter().zip(&expected) {
                    assert!((value - expected).abs() < 1e-12, "{kernel:?} {value} {expected}");
                }
            }
        }
    }

    #[test]
    fn threads_change_no_bit_and_many_players_add_up() {
        let (expansion, x, background) = example(Kernel::Rbf { gamma: 3.0 }, 80, 70, 3);
        let player_of: Vec<usize> = (0..80).collect();
        for game in [Game::Interventional, Game::ProductKernel] {
            let params = ShapleyParams { game, player_of: &player_of, players: 80 };
            let rows = (Rows::try_from(&x).unwrap(), Rows::try_from(&background).unwrap());
            let run = |ctx| shapley_values(&expansion.view(), rows.0, rows.1, &params, ctx).unwrap();
            let (sequential, parallel) = (run(Context::SEQUENTIAL), run(Context::default()));
            assert_eq!(sequential.values, parallel.values);
            assert!(
                sequential.nodes > FIRST_NODES / 2
                    && sequential.additivity_error.iter().all(|&error| error < 1e-9)
            );
        }
    }
}
