//! Bounds on the distance of the outputs of an orthogonal projection from those of the machine that it approximates.
//!
//! With S the first t vectors of a path and v_j the projection of w_j on their span, w_j - v_j is orthogonal to every
//! phi(s), so only the part of phi(x) outside the span matters, or, for a weaker bound, outside the span of the first p, P:
//!
//! ```text
//! |f_j(x) - f^_j(x)| = |<w_j - v_j, phi(x)>| <= ||w_j - v_j|| sqrt(k(x, x) - k_P(x)' K_P^-1 k_P(x))      (Cauchy-Schwarz)
//! ```
//!
//! and for the difference of two outputs the same with ||(w_a - w_b) - (v_a - v_b)||. The second factor costs p^2 / 2
//! multiply-adds a row, the kernel values t d: p may be smaller than t where that is cheaper.
//!
//! **Rounding.** No computed number is assumed to be exact. u_i = sum_k (L^-1)_ik phi(s_k) are the directions that the
//! stored factor defines; their Gram matrix U, the products h of w_j - v_j with them, and the norms are computed
//! afterwards from kernel values, with bounds on their own errors (`kernels::rounding`). Then for q = sum_i phi_i u_i
//!
//! ```text
//! |f_j - f^_j| <= ||w_j - v_j|| ||phi(x) - q|| + ||h_j|| ||phi||,    ||phi(x) - q||^2 <= k(x, x) - ||phi||^2 + tau k(x, x)
//! ```
//!
//! holds for the numbers in memory, and the errors of evaluating f and f^ themselves are added. The errors of an
//! ill-conditioned L enlarge tau and h: the bound then certifies less.
//!
//! Invariant: the bound holds for the numbers in memory.
//!
//! Cost: m^2 kernel values once (the norms of w), p^3 / 2 and t^2 q multiply-adds for the stages.

use ndarray::{Array2, ArrayView2, s};

use crate::context::{Context, WorkCounter};
use crate::data::{Rows, copy_flat, flat, matrix, row};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Evaluator, diagonal, gram_symmetric, relative_error_bound, rounding};
use crate::linalg::copy_triangle;
use crate::memory::{try_to_matrix, try_vec, try_with_capacity, try_zero_matrix};
use crate::path::{Form, PathView, path_coefficients};
use crate::reduced_set::coding::Coding;
use crate::reduced_set::pursuit::{check_kernel, for_blocks};
use crate::simd::blas::{axpy, dot, row_times};

/// Inner products of the machine that is approximated.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// <w_a, w_b>, (q, q).
    pub products: Array2<f64>,
    /// <w_j, phi(s)> for the vectors s of the path, (M, q).
    pub at_selected: Array2<f64>,
    /// sum_i |B_ij| sqrt(k(z_i, z_i)), (q,).
    pub sums: Vec<f64>,
    /// At least sum_i |B_ij| |k(x, z_i)| / sqrt(k(x, x)) for any x, (q,).
    pub masses: Vec<f64>,
}

/// Computes the inner products for the bounds. Cost m (m + M) kernel values and m q^2 multiply-adds.
///
/// # Errors
/// See [`Evaluator::new`]; [`Error::Param`] for kernels without a feature space; [`Error::Stopped`].
pub fn moments(target: &ExpansionView<'_>, selected: Rows<'_>, ctx: Context<'_>) -> Result<Moments> {
    feature_space(target)?;
    let q = target.outputs();
    // The outputs with the absolute coefficients come second: they share the kernel values.
    let mut both = try_zero_matrix("a matrix of results", (target.len(), 2 * q))?;
    both.slice_mut(s![.., ..q]).assign(&target.coefficients);
    both.slice_mut(s![.., q..]).zip_mut_with(&target.coefficients, |to, from: &f64| *to = from.abs());
    let (zero, coefficients) = (vec![0.0; 2 * q], both.view());
    let evaluator = Evaluator::new(&ExpansionView { intercepts: &zero, coefficients, ..target.reborrow() })?;
    let outputs_at = |rows: Rows<'_>| {
        let work = evaluator.len().max(1) * (rows.cols() + 2 * q);
        for_blocks(rows, work, ctx, |block| evaluator.evaluate_double(block, ctx.silent()).map(flat))
    };
    let (at_vectors, at_selected) = (outputs_at(target.vectors)?, outputs_at(selected)?);
    let at_selected = try_to_matrix(matrix((selected.rows(), 2 * q), &at_selected)?.slice(s![.., ..q]))?;
    let mut products = try_zero_matrix("a matrix of results", (q, q))?;
    let (mut sums, mut squares) = (vec![0.0; q], vec![0.0; q]);
    let self_values = diagonal(&target.kernel, target.vectors);
    let lines = target.flat().chunks_exact(q).zip(at_vectors.chunks_exact(2 * q));
    let mut counter = ctx.counter("moments", target.len());
    for ((coefficients, values), self_value) in lines.zip(self_values) {
        counter.charge((q * q) as u64)?;
        for (j, &c) in coefficients.iter().enumerate().filter(|(_, c)| **c != 0.0) {
            axpy(c, &values[..q], products.row_mut(j).into_slice().expect("a new array is row-major"));
            sums[j] += c.abs() * self_value.max(0.0).sqrt();
            squares[j] += c.abs() * values[q + j].abs();
        }
    }
    let mut masses = sums.clone();
    // If kernel values are not negative, the sum is an inner product with sum_i |B_ij| phi(z_i).
    if target.kernel.constant_diagonal().is_some() {
        for (mass, square) in masses.iter_mut().zip(&squares) {
            *mass = mass.min(1.01 * square.sqrt());
        }
    }
    Ok(Moments { products, at_selected, sums, masses })
}

/// Returns the relative error of a kernel value in double and in single precision.
pub(super) fn feature_space(target: &ExpansionView<'_>) -> Result<(f64, f64)> {
    let of = |single| rounding(&target.kernel, target.vectors, single);
    of(false)?.zip(of(true)?).ok_or_else(|| {
        Error::param(
            "kernel",
            target.kernel.name(),
            "positive definite for an error bound: linear, poly with coef0 at least 0, rbf, laplacian, chi2, matern12, matern32 or matern52",
        )
    })
}

/// The size of a stage of a cascade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageSize {
    /// t, the number of vectors of the outputs.
    pub vectors: usize,
    /// p, the number of vectors of the span from which distances are measured, at most t.
    pub directions: usize,
}

/// A stage with its error bounds.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) size: StageSize,
    /// (q, t): the coefficients of each output.
    pub(super) coefficients: Vec<f64>,
    /// ||w_j - v_j||, (q,).
    pub(super) radius: Vec<f64>,
    /// The same for the difference of two outputs, (q, q); empty if only signs decide.
    pub(super) pair_radius: Vec<f64>,
    /// Rounding errors in units of sqrt(k(x, x)), (q,), without those of kernel values, if the machine is evaluated in double
    /// and in single precision.
    pub(super) slack: [Vec<f64>; 2],
    /// Rounding errors of the intercepts, (q,), in double and in single precision.
    pub(super) fixed: [Vec<f64>; 2],
    /// Rounding error of the squared distance in units of k(x, x).
    pub(super) tau: f64,
}

/// A machine and a path whose sizes are its orthogonal projections, the source of the stages.
pub struct Projection<'a> {
    /// The machine whose answers are to be certain.
    pub target: ExpansionView<'a>,
    /// The M vectors of the path.
    pub selected: Rows<'a>,
    /// L, (M, M).
    pub factor: ArrayView2<'a, f64>,
    /// G, (M, q).
    pub projections: ArrayView2<'a, f64>,
    /// Moments of the machine and the vectors of the path.
    pub moments: &'a Moments,
}

impl Projection<'_> {
    fn path(&self) -> PathView<'_> {
        PathView { projections: self.projections.reborrow(), form: Form::Factored(self.factor.reborrow()) }
    }
}

/// Computes the stages, whose sizes must increase.
///
/// # Errors
/// [`Error::Param`] if they do not, [`Error::Shape`] if the arrays disagree.
pub(super) fn stages(
    source: &Projection<'_>,
    sizes: &[StageSize],
    coding: Coding,
    ctx: Context<'_>,
) -> Result<Vec<Stage>> {
    let (q, m) = (source.target.outputs(), source.selected.rows());
    let moments = source.moments;
    source.path().check()?;
    Error::check_len("factor of a path", m, source.factor.nrows())?;
    Error::check_len("outputs of a path", q, source.projections.ncols())?;
    Error::check_shape("products of the outputs", (q, q), moments.products.dim())?;
    Error::check_shape("products with the selected vectors", (m, q), moments.at_selected.dim())?;
    Error::check_len("masses of the outputs", q, moments.masses.len())?;
    Error::check_len("sums of the outputs", q, moments.sums.len())?;
    let grows = |w: &[StageSize]| w[0].vectors < w[1].vectors && w[0].directions <= w[1].directions;
    let fits = |s: &StageSize| s.directions <= s.vectors && (1..=m).contains(&s.vectors);
    let holds = sizes.windows(2).all(grows) && sizes.iter().all(fits);
    let rule = format!("increasing, with no more directions than vectors and at most {m} vectors");
    Error::check_param(holds, "stages", format!("{sizes:?}"), rule)?;
    let Some(last) = sizes.last() else { return Ok(Vec::new()) };
    let deltas = feature_space(&source.target)?;
    let shared = Shared::new(source, last, deltas, ctx)?;
    let mut counter = ctx.counter("stages", sizes.len());
    sizes.iter().map(|&size| shared.stage(source, size, coding, &mut counter)).collect()
}

/// The data that all stages share.
struct Shared {
    deltas: (f64, f64),
    /// K of the kept vectors of the last stage, (t, t).
    gram: Vec<f64>,
    t: usize,
    /// sqrt(k(s, s)).
    lengths: Vec<f64>,
    directions: Directions,
}

impl Shared {
    /// Computes the kernel matrix and the directions of the last stage.
    fn new(source: &Projection<'_>, last: &StageSize, deltas: (f64, f64), ctx: Context<'_>) -> Result<Self> {
        let (target, t) = (&source.target, last.vectors);
        check_kernel(&target.kernel)?;
        let gram = flat(gram_symmetric(&target.kernel, source.selected.slice(0..t), ctx)?);
        let lengths: Vec<f64> = (0..t).map(|i| gram[i * t + i].max(0.0).sqrt()).collect();
        let lines: Vec<&[f64]> = (0..last.directions).map(|i| &row(&source.factor, i)[..=i]).collect();
        let mut counter = ctx.counter("directions", last.directions);
        let directions = Directions::new(&lines, &gram, t, &lengths, deltas.0, &mut counter, ctx)?;
        Ok(Self { deltas, gram, t, lengths, directions })
    }

    /// Computes a stage.
    fn stage(
        &self,
        source: &Projection<'_>,
        size: StageSize,
        coding: Coding,
        counter: &mut WorkCounter<'_>,
    ) -> Result<Stage> {
        let StageSize { vectors: t, directions: p } = size;
        let (q, total) = (source.target.outputs(), source.target.len());
        let (sums, masses) = (&source.moments.sums, &source.moments.masses);
        let a = path_coefficients(&source.path(), t)?;
        let mut of_v: Vec<f64> = try_with_capacity("sums of the error bounds", t * q)?;
        for line in self.gram.chunks_exact(self.t).take(t) {
            counter.charge((t * q) as u64)?;
            of_v.extend(row_times(&line[..t], a.as_slice().unwrap_or_default(), q));
        }
        let of_w = copy_flat(source.moments.at_selected.slice(s![..t, ..]).t())?;
        let (coefficients, of_v) = (copy_flat(a.t())?, copy_flat(matrix((t, q), &of_v)?.t())?);
        let column = |values: &'_ [f64], j: usize| -> std::ops::Range<usize> {
            let length = values.len() / q;
            j * length..(j + 1) * length
        };
        let small_mass: Vec<f64> = (0..q)
            .map(|j| {
                coefficients[j * t..(j + 1) * t].iter().zip(&self.lengths).map(|(a, l)| a.abs() * l).sum()
            })
            .collect();
        // Errors of f and f^ in double precision, in units of sqrt(k(x, x)).
        let values_error = |j: usize| {
            (self.deltas.0 + relative_error_bound(total, false)) * sums[j]
                + (self.deltas.0 + relative_error_bound(t, false)) * small_mass[j]
        };
        let squared = |j: usize, k: usize| {
            let product = |x: &[f64], y: &[f64]| dot(&x[column(x, j)], &y[column(y, k)]);
            source.moments.products[[j, k]] - product(&coefficients, &of_w) - product(&of_w, &coefficients)
                + product(&coefficients, &of_v)
        };
        let error_of_squared =
            |mass: f64, error: f64| 2.0 * mass * error + relative_error_bound(total + t, false) * mass * mass;
        let both = |j: usize| sums[j] + small_mass[j];
        let squares: Vec<f64> = (0..q).map(|j| squared(j, j)).collect();
        let radius = (0..q)
            .map(|j| (squares[j].max(0.0) + error_of_squared(both(j), values_error(j))).sqrt())
            .collect::<Vec<_>>();
        let mut pair_radius = Vec::new();
        if coding == Coding::Largest {
            pair_radius = pairs(q, |j, k| {
                let difference = squares[j] + squares[k] - squared(j, k) - squared(k, j);
                let error = error_of_squared(both(j) + both(k), values_error(j) + values_error(k));
                (difference.max(0.0) + error).sqrt()
            })?;
        }
        // h: the deviation from orthogonality, on the directions of the stored factor.
        let lengths: f64 = self.lengths[..p].iter().map(|l| l * l).sum::<f64>().sqrt();
        let mut orthogonality_errors = Vec::with_capacity(q);
        for j in 0..q {
            let left: Vec<f64> = (0..p).map(|i| of_w[j * t + i] - of_v[j * t + i]).collect();
            let orthogonality_error = solve(&source.factor, &left);
            let norm = dot(&orthogonality_error, &orthogonality_error).sqrt();
            let error = self.directions.norm(p) * lengths * values_error(j)
                + relative_error_bound(p, false) * self.directions.condition(p) * norm;
            orthogonality_errors.push(1.1 * (norm + error));
        }
        let evaluation = |single: bool| {
            // Sums are kept in the precision of the rows over at most 2,048 vectors.
            let of_sum = relative_error_bound(total.min(2048), single) + relative_error_bound(total, false);
            (0..q)
                .map(|j| {
                    orthogonality_errors[j]
                        + of_sum * masses[j]
                        + (self.deltas.0 + relative_error_bound(t, false)) * small_mass[j]
                })
                .collect::<Vec<_>>()
        };
        let fixed = |single: bool| {
            let unit = relative_error_bound(4, single);
            source.target.intercepts.iter().map(|b| unit * b.abs()).collect::<Vec<_>>()
        };
        Ok(Stage {
            size,
            coefficients,
            radius,
            pair_radius,
            slack: [evaluation(false), evaluation(true)],
            fixed: [fixed(false), fixed(true)],
            tau: self.directions.tau(p),
        })
    }
}

/// Returns a symmetric matrix (q, q) with zeros on the diagonal from its entries j > k.
fn pairs(q: usize, entry: impl Fn(usize, usize) -> f64) -> Result<Vec<f64>> {
    let mut matrix = try_vec![0.0; q * q]?;
    for j in 0..q {
        for k in 0..j {
            let value = entry(j, k);
            (matrix[j * q + k], matrix[k * q + j]) = (value, value);
        }
    }
    Ok(matrix)
}

/// Properties of the stored factor L, for all its leading blocks.
struct Directions {
    /// For p = 0, 1, ...: ||L^-1||_F, || |L^-1| |L| ||_F, ||U - I||_F and sum_i (sum_k |L^-1_ik| sqrt(k_kk))^2, squared
    /// where they are norms.
    inverse: Vec<f64>,
    condition: Vec<f64>,
    skew: Vec<f64>,
    length_bound: Vec<f64>,
    delta: f64,
}

impl Directions {
    /// Computes them row by row.
    fn new(
        lines: &[&[f64]],
        gram: &[f64],
        stride: usize,
        lengths: &[f64],
        delta: f64,
        counter: &mut WorkCounter<'_>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let p = lines.len();
        // Column k of L^-1 by forward substitution; kept as rows of the transpose.
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(p);
        counter.for_each_batch(p, (p * p / 2) as u64, |part, _| {
            columns.extend(ctx.try_map(part.len(), |k| {
                let k = part.start + k;
                let mut column = try_vec![0.0; p]?;
                column[k] = 1.0 / lines[k][k];
                for i in k + 1..p {
                    column[i] = -dot(&lines[i][k..i], &column[k..i]) / lines[i][i];
                }
                Ok(column)
            })?);
            Ok(())
        })?;
        let inverse = copy_triangle(p, |i| columns.iter().map(move |column| column[i]))?;
        // Row i of L^-1 K, then its products with the rows of L^-1 up to the i-th.
        let row_properties = |i: usize| {
            let mut product = vec![0.0; p];
            let mut amplified = vec![0.0; p];
            for (k, &l) in inverse[i].iter().enumerate() {
                axpy(l, &gram[k * stride..k * stride + p], &mut product);
                for (out, v) in amplified.iter_mut().zip(lines[k]) {
                    *out += l.abs() * v.abs();
                }
            }
            let mut skew = 0.0;
            for (k, line) in inverse[..=i].iter().enumerate() {
                let value = dot(&product[..=k], line) - f64::from(u8::from(k == i));
                skew += if k == i { 1.0 } else { 2.0 } * value * value;
            }
            let length_bound: f64 = inverse[i].iter().zip(lengths).map(|(l, s)| l.abs() * s).sum();
            [dot(&inverse[i], &inverse[i]), dot(&amplified, &amplified), skew, length_bound * length_bound]
        };
        let mut per_row: Vec<[f64; 4]> = Vec::with_capacity(p);
        counter.for_each_batch(p, (2 * p * p) as u64, |part, _| {
            per_row.extend(ctx.map(part.len(), |i| row_properties(part.start + i)));
            Ok(())
        })?;
        let running = |which: usize| {
            let mut sum = 0.0;
            std::iter::once(0.0)
                .chain(per_row.iter().map(|row| {
                    sum += row[which];
                    sum
                }))
                .collect::<Vec<_>>()
        };
        Ok(Self {
            inverse: running(0),
            condition: running(1),
            skew: running(2),
            length_bound: running(3),
            delta,
        })
    }

    /// Returns ||L^-1||_F.
    fn norm(&self, p: usize) -> f64 {
        self.inverse[p].sqrt()
    }

    /// Returns || |L^-1| |L| ||_F.
    fn condition(&self, p: usize) -> f64 {
        self.condition[p].sqrt()
    }

    /// Returns tau: ||L^-1 k - phi|| for the computed phi twice, ||U - I||, and the errors of k(x, x) and of these.
    fn tau(&self, p: usize) -> f64 {
        let substitution = relative_error_bound(p, false) * self.condition(p);
        let unit = self.delta + relative_error_bound(4, false);
        2.2 * (self.length_bound[p].sqrt() * self.delta + substitution)
            + self.skew[p].sqrt()
            + (self.delta + relative_error_bound(2 * p, false)) * self.length_bound[p]
            + 4.0 * substitution
            + relative_error_bound(p, false)
            + unit
    }
}

/// Returns L^-1 b.
fn solve(factor: &ArrayView2<'_, f64>, b: &[f64]) -> Vec<f64> {
    let mut out = Vec::with_capacity(b.len());
    for (i, b) in b.iter().enumerate() {
        let line = row(factor, i);
        out.push((b - dot(&out[..i], &line[..i])) / line[i]);
    }
    out
}
