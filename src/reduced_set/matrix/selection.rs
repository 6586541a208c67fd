//! Selection by a method that needs the whole kernel matrix: the method gives an order of the vectors, and the path along it
//! has the best coefficients of every size (TR-132, eq. 7), as in a pursuit.
//!
//! This removes the shrinkage by a penalty; the residual can only decrease. A path that keeps the penalized coefficients is a
//! list of changes, like that of a basic pursuit.
//!
//! Invariant: residual norms belong to the coefficients returned. Cost and memory grow with the square of the number of
//! vectors, and more for some methods: see their files.

use super::problem::{Coefficients, Method, Order, Problem};
use crate::context::{Context, GracePeriod, StopReason};
use crate::data::{Rows, flat, matrix};
use crate::error::{Error, Result};
use crate::expansion::ExpansionView;
use crate::kernels::{Kernel, gram_symmetric};
use crate::memory::{try_to_matrix, try_vec};
use crate::path::Path;
use crate::reduced_set::pursuit::{
    PursuitParams, Selection, Space, TargetProducts, check_kernel, indefinite, pursue,
};
use crate::simd::blas::{axpy, dot};
use std::collections::HashMap;

/// Reduces `target` to at most `max_vectors` of its own vectors in the order that a method gives; see `Problem` for drafts.
///
/// # Errors
/// [`Error::Param`] for parameters outside their rules or a precomputed kernel.
pub(in crate::reduced_set) fn select(
    target: &ExpansionView<'_>,
    method: &dyn Method,
    max_vectors: usize,
    tolerance: f64,
    is_draft: bool,
    ctx: Context<'_>,
) -> Result<Path> {
    let (m, q) = (target.len(), target.outputs());
    check_kernel(&target.kernel)?;
    let rule = format!("between 1 and {m}, the number of vectors");
    Error::check_param((1..=m).contains(&max_vectors), "max_vectors", max_vectors, rule)?;
    method.check()?;
    Path::or_empty(path(target, method, max_vectors, tolerance, is_draft, ctx), q)
}

/// Returns the path of a method, for checked parameters.
fn path(
    target: &ExpansionView<'_>,
    method: &dyn Method,
    max_vectors: usize,
    tolerance: f64,
    is_draft: bool,
    ctx: Context<'_>,
) -> Result<Path> {
    ctx.check("kernel matrix", 0, max_vectors)?;
    // Computed first, because the coefficients need it even if the time ends during the selection.
    let products = TargetProducts::new(target, None, None, ctx)?;
    let (Order { vectors: order, penalties, coefficients, reason }, gram) =
        order_by(target, method, max_vectors, is_draft, ctx)?;
    let grace = GracePeriod::new(ctx.monitor());
    let ctx = ctx.with_monitor(&grace);
    let (kernel, pool) = (target.kernel, target.vectors.reborrow());
    if let Some(coefficients) = coefficients {
        let order = Order { vectors: order, penalties, coefficients: None, reason };
        return penalised_path(order, &coefficients, &products, &gram, tolerance, ctx);
    }
    let ordered = OrderedPaths {
        kernel,
        outputs: target.outputs(),
        pool,
        products: &products,
        tolerance,
        norm_bound: None,
    };
    let mut path = ordered.path(&order, ctx)?;
    // Vectors in the span of earlier ones are not part of the path.
    if !penalties.is_empty() {
        let at: HashMap<usize, f64> = order.iter().copied().zip(penalties).collect();
        path.penalties = path.order.iter().map(|p| at[p]).collect();
    }
    if reason != StopReason::Converged {
        path.stop.reason = reason;
    }
    Ok(path)
}

/// Returns the path of an order with the penalized coefficients; it ends as a pursuit does.
fn penalised_path(
    order: Order,
    coefficients: &Coefficients,
    products: &TargetProducts,
    gram: &[f64],
    tolerance: f64,
    ctx: Context<'_>,
) -> Result<Path> {
    let Order { vectors, penalties, reason, .. } = order;
    let (q, m) = (coefficients.outputs(), gram.len().isqrt());
    let mut path = Path::empty(q, reason);
    let squared = products.squared_norm();
    path.residual_norms = vec![squared.sqrt()];
    let targets = products.of(&vectors, q)?;
    let mut b = try_vec![0.0; vectors.len() * q]?;
    let mut counter = ctx.counter("coefficients", vectors.len());
    let mut steps = 0;
    for (size, &until) in (1..).zip(&coefficients.steps_of_size) {
        let work = (size * size * q) as u64;
        if let Some(reason) = StopReason::from_result(counter.charge(work))? {
            path.stop.reason = reason;
            break;
        }
        for step in steps..until {
            let place = coefficients.vector_of_step[step];
            axpy(1.0, &coefficients.changes[step * q..(step + 1) * q], &mut b[place * q..(place + 1) * q]);
        }
        steps = until;
        // ||w - w^||^2 = ||w||^2 - sum over the vectors of b_i (2 f(z_i) - f^(z_i))
        let mut squared_residual = squared;
        for (place, row) in b.chunks_exact(q).enumerate().take(size) {
            let line = &gram[vectors[place] * m..(vectors[place] + 1) * m];
            let mut outputs = vec![0.0; q];
            for (&other, row) in vectors[..size].iter().zip(b.chunks_exact(q)) {
                axpy(line[other], row, &mut outputs);
            }
            squared_residual -= 2.0 * dot(row, targets.target(place, q)) - dot(row, &outputs);
        }
        path.residual_norms.push(squared_residual.max(0.0).sqrt());
        path.steps_of_size.push(until);
        if squared_residual <= tolerance * tolerance * squared {
            break;
        }
    }
    let size = path.steps_of_size.len();
    path.order = vectors[..size].to_vec();
    path.penalties = penalties[..size].to_vec();
    path.vector_of_step = coefficients.vector_of_step[..steps].to_vec();
    path.projections = try_to_matrix(matrix((steps, q), &coefficients.changes[..steps * q])?)?;
    path.orthogonal = false;
    path.stop.iterations = size as u64;
    Ok(path)
}

/// Returns the order of a method, and the kernel matrix.
fn order_by(
    target: &ExpansionView<'_>,
    method: &dyn Method,
    max_vectors: usize,
    is_draft: bool,
    ctx: Context<'_>,
) -> Result<(Order, Vec<f64>)> {
    let k = flat(gram_symmetric(&target.kernel, target.vectors, ctx)?);
    let problem = Problem { target, gram: &k, max_vectors, is_draft, ctx };
    if let Some(negative) = problem.diagonal().find(|&v| v < 0.0) {
        return Err(indefinite(&target.kernel, negative));
    }
    let order = method.order(&problem)?;
    Ok((order, k))
}

/// Paths along given orders of some vectors.
pub(in crate::reduced_set) struct OrderedPaths<'a> {
    pub(in crate::reduced_set) kernel: Kernel,
    /// q.
    pub(in crate::reduced_set) outputs: usize,
    /// The vectors of the orders, and their products with the target.
    pub(in crate::reduced_set) pool: Rows<'a>,
    pub(in crate::reduced_set) products: &'a TargetProducts,
    pub(in crate::reduced_set) tolerance: f64,
    /// See `PursuitParams`.
    pub(in crate::reduced_set) norm_bound: Option<f64>,
}

impl OrderedPaths<'_> {
    pub(in crate::reduced_set) fn path(&self, order: &[usize], ctx: Context<'_>) -> Result<Path> {
        // Only the chosen vectors are candidates; an empty order gets one candidate that is not used.
        let (first, q) = ([0], self.outputs);
        let places = if order.is_empty() { &first } else { order };
        let chosen = self.pool.gather(places)?;
        let products = self.products.of(places, q)?;
        let space = Space::of_features(self.kernel, chosen.view(), products, q, ctx)?;
        let params = PursuitParams {
            tolerance: self.tolerance,
            norm_bound: self.norm_bound,
            selection: Selection::Given((0..order.len()).collect()),
            ..PursuitParams::new(order.len().max(1))
        };
        let mut path = pursue(&space, &params, ctx)?;
        for p in &mut path.order {
            *p = order[*p];
        }
        Ok(path)
    }
}
