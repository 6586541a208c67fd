//! Every size of one greedy reduction, from one triangular factor.
//!
//! With S the vectors in the order chosen and K_SS = L L', the orthonormal directions of the greedy run are the rows of
//! L^-1 k_S(.), and the target's projections on them are G. The best coefficients on the first t vectors solve
//! L_t' A = G_t, and the outputs of all sizes at a row x are the running sums of phi_t(x) G_t with L phi = k_S(x): both
//! cost O(t^2), so no size is ever fitted afresh.
//!
//! A basic pursuit has no such factor: its steps change the coefficients of one vector each, a vector's more than once.
//! Then the path says which vector each step changes, and how many steps each size has. With a factor every vector has
//! one step.
//!
//! Coefficients of two sizes from one run:
//!
//! ```
//! use ndarray::arr2;
//! use svmarrow::path::{Form, PathView, path_coefficients};
//!
//! let (factor, projections) = (arr2(&[[2.0, 0.0], [1.0, 1.0]]), arr2(&[[4.0], [3.0]]));
//! let path = PathView { projections: projections.view(), form: Form::Factored(factor.view()) };
//! assert_eq!(path_coefficients(&path, 1)?, arr2(&[[2.0]]));
//! assert_eq!(path_coefficients(&path, 2)?, arr2(&[[0.5], [3.0]]));
//! # Ok::<(), svmarrow::Error>(())
//! ```

use ndarray::{Array2, Array3, ArrayView2, Axis, s};

use crate::context::{Context, Stop, StopReason};
use crate::data::{Rows, copy_flat, flat, row};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, gram};
use crate::memory::{try_to_matrix, try_vec, try_zeros};
use crate::simd::blas::{axpy, dot};

/// A greedy reduction of an expansion with q outputs to at most M vectors.
#[derive(Debug, Clone)]
pub struct Path {
    /// The M candidates in the order they were chosen.
    pub order: Vec<usize>,
    /// L, (M, M), lower triangular: the Cholesky factor of their inner products. `None` for basic steps.
    pub factor: Option<Array2<f64>>,
    /// G, (steps, q): the target's projections on the orthonormal directions, or the changes of coefficients that basic
    /// steps make.
    pub projections: Array2<f64>,
    /// (steps,): the place in `order` of the vector that each step belongs to.
    pub vector_of_step: Vec<usize>,
    /// (M,): the number of steps that sizes 1, 2, ... M have.
    pub steps_of_size: Vec<usize>,
    /// (M + 1,): norm of what is missing after 0, 1, ... M vectors, all outputs together:
    /// sqrt(sum_j ||w_j - w_j^(t)||^2), or the root mean square of the difference of the outputs where predictions were
    /// compared.
    pub residual_norms: Vec<f64>,
    /// (M,): for the penalized paths the lambda below which each vector enters; else empty.
    pub penalties: Vec<f64>,
    /// If true, `residual_norms` are exact; otherwise they are upper bounds.
    pub exact: bool,
    /// If true, every size is the orthogonal projection of the target on its vectors in feature space.
    pub orthogonal: bool,
    /// The reason for the end of the run: converged if no candidate can lower the residual below the tolerance.
    pub stop: Stop,
}

impl Path {
    /// Replaces a stop before the first vector was chosen by the empty path.
    ///
    /// # Errors
    /// Every error other than [`Error::Stopped`](crate::Error::Stopped).
    pub(crate) fn or_empty(result: Result<Self>, outputs: usize) -> Result<Self> {
        result.or_else(|error| Ok(Self::empty(outputs, error.into_stop_reason()?)))
    }

    /// Returns the path without vectors.
    pub(crate) fn empty(outputs: usize, reason: StopReason) -> Self {
        Self {
            order: Vec::new(),
            factor: None,
            projections: Array2::zeros((0, outputs)),
            vector_of_step: Vec::new(),
            steps_of_size: Vec::new(),
            residual_norms: vec![f64::NAN],
            penalties: Vec::new(),
            exact: true,
            orthogonal: true,
            stop: Stop { reason, iterations: 0, gap: f64::NAN },
        }
    }

    /// Returns the numbers from which the coefficients and the outputs of all sizes are computed.
    pub fn view(&self) -> PathView<'_> {
        let form = match &self.factor {
            Some(factor) => Form::Factored(factor.view()),
            None => Form::Basic { vector_of_step: &self.vector_of_step, steps_of_size: &self.steps_of_size },
        };
        PathView { projections: self.projections.view(), form }
    }
}

/// Multiplications between two checks of the monitor.
const WORK_PER_CHECK: usize = 200_000_000;

/// The numbers of a path, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct PathView<'a> {
    /// G, see [`Path::projections`].
    pub projections: ArrayView2<'a, f64>,
    /// The rule that turns G into coefficients.
    pub form: Form<'a>,
}

/// The rule that turns the rows of G into coefficients.
#[derive(Debug, Clone, Copy)]
pub enum Form<'a> {
    /// Through L, (M, M); a row each.
    Factored(ArrayView2<'a, f64>),
    /// Added to the coefficients of a vector.
    Basic {
        /// See [`Path::vector_of_step`].
        vector_of_step: &'a [usize],
        /// See [`Path::steps_of_size`].
        steps_of_size: &'a [usize],
    },
}

impl PathView<'_> {
    /// Returns the number of vectors M of the longest expansion.
    pub fn vectors(&self) -> usize {
        match self.form {
            Form::Factored(factor) => factor.nrows(),
            Form::Basic { steps_of_size, .. } => steps_of_size.len(),
        }
    }

    /// Returns the number of outputs q.
    pub fn outputs(&self) -> usize {
        self.projections.ncols()
    }

    pub(crate) fn check(&self) -> Result<()> {
        let (m, rows) = (self.vectors(), self.projections.nrows());
        Rows::try_from(self.projections.reborrow())?;
        match self.form {
            Form::Factored(factor) => {
                Rows::try_from(factor.reborrow())?;
                Error::check_len("columns of the factor of a path", m, factor.ncols())?;
                Error::check_len("rows of the projections of a path", m, rows)
            }
            Form::Basic { vector_of_step: of_step, steps_of_size: of_size } => {
                Error::check_len("rows of the changes of a path", of_step.len(), rows)?;
                Error::check_below("vector_of_step", of_step, m, "the vectors of the path")?;
                let rise = of_size.is_sorted() && of_size.last().is_none_or(|&n| n <= rows);
                let rule = "increasing, up to the number of steps";
                Error::check_param(rise, "steps_of_size", format!("{of_size:?}"), rule)
            }
        }
    }

    /// The steps that size t has and size t - 1 has not: the vector and the row of G of each.
    fn steps_to(&self, t: usize) -> impl Iterator<Item = (usize, &[f64])> {
        let steps = match self.form {
            Form::Factored(_) => t - 1..t,
            Form::Basic { steps_of_size, .. } => {
                (if t == 1 { 0 } else { steps_of_size[t - 2] })..steps_of_size[t - 1]
            }
        };
        steps.map(move |step| {
            let vector = match self.form {
                Form::Factored(_) => step,
                Form::Basic { vector_of_step, .. } => vector_of_step[step],
            };
            (vector, row(&self.projections, step))
        })
    }
}

/// The coefficients (size, q) of the first `size` of a path's M vectors: L_t' A = G_t. Cost O(size^2 q).
///
/// # Errors
/// [`Error::Param`] where `size` exceeds M, [`Error::Shape`] where the arrays disagree.
pub fn path_coefficients(path: &PathView<'_>, size: usize) -> Result<Array2<f64>> {
    path.check()?;
    let (m, q) = (path.vectors(), path.outputs());
    Error::check_param(size <= m, "size", size, format!("at most {m}, the vectors of the path"))?;
    let a = match path.form {
        Form::Factored(factor) => {
            let mut a = copy_flat(path.projections.slice(s![..size, ..]))?;
            for t in (0..size).rev() {
                let line = row(&factor, t);
                let (before, mine) = a.split_at_mut(t * q);
                let mine = &mut mine[..q];
                for v in mine.iter_mut() {
                    *v /= line[t];
                }
                for (u, target) in before.chunks_exact_mut(q).enumerate() {
                    axpy(-line[u], mine, target);
                }
            }
            a
        }
        Form::Basic { .. } => {
            let mut a = try_vec![0.0; size * q]?;
            for (vector, change) in (1..=size).flat_map(|t| path.steps_to(t)) {
                axpy(1.0, change, &mut a[vector * q..(vector + 1) * q]);
            }
            a
        }
    };
    Ok(Array2::from_shape_vec((size, q), a).expect("q numbers were made for each vector"))
}

/// Outputs at the rows of X for several sizes of a path, (sizes, n, q).
///
/// `selected` holds the path's M vectors in order, `sizes` increases. Cost n M (d + M / 2) whatever the number of sizes.
///
/// # Errors
/// [`Error::Param`] where the sizes do not increase or exceed M, [`Error::Shape`] where the arrays disagree,
/// [`Error::Stopped`].
#[allow(clippy::too_many_arguments)]
pub fn path_decisions(
    kernel: &Kernel,
    selected: Rows<'_>,
    path: &PathView<'_>,
    intercepts: &[f64],
    x: Rows<'_>,
    sizes: &[usize],
    ctx: Context<'_>,
) -> Result<Array3<f64>> {
    let reader = Reader::new(path, selected.rows(), intercepts, sizes)?;
    let (n, m) = (x.rows(), selected.rows());
    let mut by_row = cube((n, sizes.len(), intercepts.len()))?;
    let block = (WORK_PER_CHECK / (m * (x.cols() + m / 2)).max(1)).clamp(16, 4096).max(ctx.threads());
    for (part, mut out) in by_row.axis_chunks_iter_mut(Axis(0), block).enumerate() {
        let first = part * block;
        ctx.check("path", first, n)?;
        let rows = x.slice(first..n.min(first + block));
        let mut features = flat(gram(kernel, rows, selected, ctx.silent())?);
        reader.read(&mut features, out.as_slice_mut().expect("rows of a new array"), ctx);
    }
    by_size(&by_row)
}

/// Outputs (sizes, n, q) as [`path_decisions`], from the values (n, M) of the path's M functions at the rows.
///
/// # Errors
/// The errors of [`path_decisions`].
pub fn path_outputs(
    path: &PathView<'_>,
    features: Array2<f64>,
    intercepts: &[f64],
    sizes: &[usize],
    ctx: Context<'_>,
) -> Result<Array3<f64>> {
    let (n, m) = features.dim();
    let reader = Reader::new(path, m, intercepts, sizes)?;
    let mut features = if features.is_standard_layout() { features } else { try_to_matrix(features.view())? };
    let mut by_row = cube((n, sizes.len(), intercepts.len()))?;
    let block = (WORK_PER_CHECK / (m * m / 2).max(1)).max(16 * ctx.threads());
    let parts = features.axis_chunks_iter_mut(Axis(0), block);
    for (part, (mut features, mut out)) in parts.zip(by_row.axis_chunks_iter_mut(Axis(0), block)).enumerate()
    {
        ctx.check("path", part * block, n)?;
        let features = features.as_slice_mut().expect("whole rows");
        reader.read(features, out.as_slice_mut().expect("whole rows"), ctx);
    }
    by_size(&by_row)
}

/// Reads the outputs of some sizes.
struct Reader<'a, 'p> {
    path: &'a PathView<'p>,
    intercepts: &'a [f64],
    sizes: &'a [usize],
}

impl<'a, 'p> Reader<'a, 'p> {
    fn new(path: &'a PathView<'p>, m: usize, intercepts: &'a [f64], sizes: &'a [usize]) -> Result<Self> {
        path.check()?;
        Error::check_len("vectors of a path", path.vectors(), m)?;
        Error::check_len("outputs of a path", path.outputs(), intercepts.len())?;
        let rise = sizes.windows(2).all(|w| w[0] < w[1]) && sizes.last().is_none_or(|&s| s <= m);
        let rule = format!("increasing and at most {m}, the vectors of the path");
        Error::check_param(rise, "sizes", format!("{sizes:?}"), rule)?;
        Ok(Self { path, intercepts, sizes })
    }

    /// From the values (rows, M) of the functions, which are lost, to outputs (rows, sizes, q).
    fn read(&self, features: &mut [f64], out: &mut [f64], ctx: Context<'_>) {
        let lines = out.chunks_exact_mut((self.sizes.len() * self.intercepts.len()).max(1));
        if features.is_empty() {
            lines.for_each(|out| self.read_row(&mut [], out));
            return;
        }
        let mut pairs: Vec<_> = features.chunks_exact_mut(self.path.vectors()).zip(lines).collect();
        ctx.for_each_chunk(&mut pairs, 16, |_, pairs| {
            for (phi, out) in pairs {
                self.read_row(phi, out);
            }
        });
    }

    fn read_row(&self, phi: &mut [f64], out: &mut [f64]) {
        let mut outputs = self.intercepts.to_vec();
        let mut remaining = self.sizes.iter().zip(out.chunks_exact_mut(outputs.len().max(1))).peekable();
        for t in 0..=self.sizes.last().copied().unwrap_or(0) {
            if t > 0 {
                if let Form::Factored(factor) = self.path.form {
                    let line = row(&factor, t - 1);
                    phi[t - 1] = (phi[t - 1] - dot(&phi[..t - 1], &line[..t - 1])) / line[t - 1];
                }
                for (vector, change) in self.path.steps_to(t) {
                    axpy(phi[vector], change, &mut outputs);
                }
            }
            if let Some((_, out)) = remaining.next_if(|(size, _)| **size == t) {
                out.copy_from_slice(&outputs);
            }
        }
    }
}

/// All sizes of a row after each other, put in the order of sizes.
fn by_size(by_row: &Array3<f64>) -> Result<Array3<f64>> {
    let (n, sizes, q) = by_row.dim();
    let mut out = cube((sizes, n, q))?;
    out.assign(&by_row.view().permuted_axes([1, 0, 2]));
    Ok(out)
}

fn cube(shape: (usize, usize, usize)) -> Result<Array3<f64>> {
    let len = shape.0.saturating_mul(shape.1).saturating_mul(shape.2);
    let values = try_zeros("the outputs of all sizes", len)?;
    Ok(Array3::from_shape_vec(shape, values).expect("as many numbers as the shape has"))
}
