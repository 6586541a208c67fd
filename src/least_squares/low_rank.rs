//! Least squares with coefficients at m points only, the loss over all rows (Rifkin 2002, section 3.7.2, subset of regressors):
//!
//! ```text
//! (K_ml K_lm + alpha K_mm) c = K_ml y                                  (3.86)
//! ```
//!
//! The system needs sums over rows alone, so rows may come in pieces, in any order, from several processes; see [`Sums`].
//! The *nystrom* solution of (K_lm K_mm^-1 K_ml + alpha I) u = y is u = (y - K_lm c) / alpha: both share a dual.
//!
//! If rows have weights W, K_ml W and K_ml W y take the place of K_ml and K_ml y, and u = W (y - K_lm c) / alpha.
//!
//! With H = K_lm (K_ml K_lm + alpha K_mm)^-1 K_ml, the points held fixed, a row that is left out is given
//! y_i - (y_i - f(x_i)) / (1 - H_ii).
//!
//! Kernel values are computed in the precision of the rows, their products in double. Cost n m d + n m^2 / 2
//! multiply-adds and m^3 / 6 to solve; memory m^2 and a block of rows.
//!
//! ```
//! use ndarray::{Array2, s};
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::least_squares::low_rank::{Piece, Sums, System};
//!
//! let x = Array2::from_shape_fn((40, 1), |(i, _)| 0.1 * i as f64);
//! let y = x.mapv(f64::sin);
//! let (kernel, points, context) = (Kernel::Rbf { gamma: 1.0 }, x.slice(s![..;5, ..]), Context::default());
//! let (vectors, rows) = (Rows::try_from(points)?, Rows::try_from(&x)?);
//! let mut sums = Sums::new(8, 1)?;
//! sums.add(kernel, vectors, Piece { rows, targets: y.view(), weights: None }, context)?;
//! let (coefficients, _) = System::new(kernel, vectors, &sums, 0.1, false, context)?.solve(&sums, context)?;
//! assert_eq!(coefficients.dim(), (8, 1));
//! # Ok::<(), svmarrow::Error>(())
//! ```

use super::problem::{MAX_RELATIVE_ROUNDING, check_alpha, kernel_matrix, rows_at_once};
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::{CoefficientSum, Kernel, Magnitudes, PackedVectors, check_conditioning};
use crate::linalg::columns;
use crate::linalg::dense::{self, RowSolver, Square, subtract_gram};
use crate::memory::{self, try_matrix};
use crate::simd::Real;
use ndarray::{Array2, ArrayView2};

/// Context reported when an allocation fails.
const SUMS_OVER_ROWS: &str = "sums over rows";
/// Maximum rounding error of the squared distances between points, relative to them: the system has its square. The linear
/// kernel has fewer dimensions than points, so that rounding decides among equal solutions earlier.
const MAX_POINTS_ROUNDING: f64 = 1e-7;
const MAX_LINEAR_POINTS_ROUNDING: f64 = 1e-10;
/// Maximum number of rows of a block.
const MAX_BLOCK_ROWS: usize = 1024;

/// The sums over all rows so far.
#[derive(Debug, Clone)]
pub struct Sums {
    /// K_ml W K_lm, (m, m), the lower triangle.
    pub gram: Array2<f64>,
    /// K_ml W Y, (m, q).
    pub products: Array2<f64>,
    /// K_ml W 1, (m,).
    pub columns: Vec<f64>,
    /// Y' W 1, (q,).
    pub targets: Vec<f64>,
    /// Number of rows that have been added, of any weight.
    pub rows: u64,
    /// Sum of their weights.
    pub weight: f64,
}

/// Rows that are added together.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    /// The rows, (n, d).
    pub rows: Rows<'a>,
    /// Their targets, (n, q).
    pub targets: ArrayView2<'a, f64>,
    /// Positive weights of their squares, (n,); `None` is 1 for each.
    pub weights: Option<&'a [f64]>,
}

impl Sums {
    /// Returns the sums over no rows.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(vectors: usize, outputs: usize) -> Result<Self> {
        Ok(Self {
            gram: memory::try_zero_matrix(SUMS_OVER_ROWS, (vectors, vectors))?,
            products: memory::try_zero_matrix(SUMS_OVER_ROWS, (vectors, outputs))?,
            columns: vec![0.0; vectors],
            targets: vec![0.0; outputs],
            rows: 0,
            weight: 0.0,
        })
    }

    /// Checks the sizes against each other.
    pub fn check(&self, vectors: usize) -> Result<()> {
        let (gram, products) = (self.gram.dim(), self.products.dim());
        for (what, expected, actual) in [
            ("rows of the sums of products of kernel values (vectors)", vectors, gram.0),
            ("columns of the sums of products of kernel values (vectors)", vectors, gram.1),
            ("sums of kernel values (vectors)", vectors, self.columns.len()),
            ("rows of the sums of targets (vectors)", vectors, products.0),
            ("columns of the sums of targets (outputs)", self.targets.len(), products.1),
        ] {
            Error::check_len(what, expected, actual)?;
        }
        Ok(())
    }

    /// Adds rows with their targets; nothing is added if the work is stopped.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Param`] for rows outside the kernel's domain, [`Error::Stopped`].
    pub fn add(
        &mut self,
        kernel: Kernel,
        vectors: Rows<'_>,
        piece: Piece<'_>,
        ctx: Context<'_>,
    ) -> Result<()> {
        self.check(vectors.rows())?;
        Error::check_len("columns of the targets (outputs)", self.targets.len(), piece.targets.ncols())?;
        let single = check_piece(kernel, vectors, piece)?;
        if single {
            self.add_at(&PackedVectors::<f32>::new(kernel, vectors, ctx)?, piece, ctx)
        } else {
            self.add_at(&PackedVectors::<f64>::new(kernel, vectors, ctx)?, piece, ctx)
        }
    }

    fn add_at<T: Real>(
        &mut self,
        cross: &PackedVectors<T>,
        Piece { rows: x, targets, weights }: Piece<'_>,
        ctx: Context<'_>,
    ) -> Result<()> {
        cross.check(x)?;
        let (n, m, q) = (x.rows(), self.columns.len(), self.targets.len());
        let at_once = rows_at_once(m, MAX_BLOCK_ROWS);
        // W (Y, 1).
        let mut y = memory::try_with_capacity(SUMS_OVER_ROWS, n.saturating_mul(q + 1))?;
        for (i, line) in targets.rows().into_iter().enumerate() {
            let w = weights.map_or(1.0, |weights| weights[i]);
            y.extend(line.iter().map(|y| w * y));
            y.push(w);
        }
        let stride = cross.stride();
        let mut gram = Square::<f64>::new(m)?;
        let lines = gram.stride();
        let mut sums: Vec<f64> = memory::try_zeros(SUMS_OVER_ROWS, m * (q + 1))?;
        let mut values: Vec<T> = memory::try_zeros(SUMS_OVER_ROWS, at_once.min(n) * stride)?;
        for from in (0..n).step_by(at_once) {
            ctx.check("sums", from, n)?;
            let count = (n - from).min(at_once);
            let values = &mut values[..count * stride];
            cross.fill(x, from, values, ctx)?;
            let (y, block) = (&y[from * (q + 1)..(from + count) * (q + 1)], &*values);
            // A vector's own sums: its column of the block against the targets, a chunk of vectors a task.
            ctx.for_each_chunk(&mut sums, 64 * (q + 1), |task, sums| {
                for (line, y) in block.chunks_exact(stride).zip(y.chunks_exact(q + 1)) {
                    for (sums, v) in sums.chunks_exact_mut(q + 1).zip(&line[task * 64..]) {
                        let v = v.to_f64();
                        for (sum, y) in sums.iter_mut().zip(y) {
                            *sum += v * y;
                        }
                    }
                }
            });
            for (line, w) in values.chunks_exact_mut(stride).zip(weights.iter().flat_map(|w| &w[from..])) {
                let root = T::from_f64(w.sqrt());
                for v in line {
                    *v = *v * root;
                }
            }
            subtract_gram(&mut gram, values, stride, ctx)?;
        }
        for i in 0..m {
            for (sum, v) in self.gram.row_mut(i).iter_mut().take(i + 1).zip(&gram.values()[i * lines..]) {
                *sum -= v;
            }
            for (sum, v) in self.products.row_mut(i).iter_mut().zip(&sums[i * (q + 1)..]) {
                *sum += v;
            }
            self.columns[i] += sums[i * (q + 1) + q];
        }
        for y in y.chunks_exact(q + 1) {
            self.targets.iter_mut().zip(y).for_each(|(sum, y)| *sum += y);
            self.weight += y[q];
        }
        self.rows += n as u64;
        Ok(())
    }
}

/// Checks rows, targets and points; returns whether single precision suffices for their kernel values.
///
/// # Errors
/// The errors of [`Sums::add`].
pub(super) fn check_piece(kernel: Kernel, vectors: Rows<'_>, piece: Piece<'_>) -> Result<bool> {
    let Piece { rows: x, targets: y, weights } = piece;
    if let Some(weights) = weights {
        Error::check_len("weights (one for each row)", x.rows(), weights.len())?;
    }
    Error::check_len("rows of the targets (one for each row of X)", x.rows(), y.nrows())?;
    let any = CoefficientSum::Any;
    check_conditioning("X", kernel.into(), x, any, MAX_RELATIVE_ROUNDING)?;
    let limit = if kernel == Kernel::Linear { MAX_LINEAR_POINTS_ROUNDING } else { MAX_POINTS_ROUNDING };
    check_conditioning("X", kernel.into(), vectors, any, limit)?;
    if let Some(row) = y.rows().into_iter().position(|y| y.iter().any(|y| !y.is_finite())) {
        return Err(Error::NotFinite { what: "targets", row });
    }
    Ok(!x.is_f64()
        && Magnitudes::new("vectors", kernel.into(), vectors)?.is_single()
        && Magnitudes::new("X", kernel.into(), x)?.is_single())
}

/// The factored system, which gives solutions and the diagonal of the hat matrix.
pub struct System {
    factor: Square<f64>,
    /// The number added to the diagonal so that the factor exists: 0 unless rounding made the system indefinite.
    pub jitter: f64,
    /// With an intercept: the means of the kernel columns, and the weight of all rows.
    centred: Option<(Vec<f64>, f64)>,
}

impl System {
    /// Factors K_ml K_lm + alpha K_mm; an intercept that is not penalized takes the columns' means out.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] where points depend on each other and alpha is zero, [`Error::NotFinite`].
    pub fn new(
        kernel: Kernel,
        vectors: Rows<'_>,
        sums: &Sums,
        alpha: f64,
        fit_intercept: bool,
        ctx: Context<'_>,
    ) -> Result<Self> {
        check_alpha(alpha)?;
        let m = vectors.rows();
        sums.check(m)?;
        if sums.rows == 0 {
            return Err(Error::param("rows", 0, "at least 1 before a solution is asked for"));
        }
        vectors.check_finite("vectors")?;
        let mut kernel_values = kernel_matrix::<f64>(kernel.into(), vectors, ctx)?;
        let (stride, rows) = (kernel_values.stride(), sums.weight);
        let mean = || sums.columns.iter().map(|sum| sum / rows).collect::<Vec<_>>();
        let centred = fit_intercept.then(mean).map(|mean| (mean, rows));
        for i in 0..m {
            for j in 0..=i {
                let mean = centred.as_ref().map_or(0.0, |(mean, rows)| rows * mean[i] * mean[j]);
                let at = &mut kernel_values.values_mut()[i * stride + j];
                *at = sums.gram[[i, j]] - mean + alpha * *at;
            }
        }
        let largest = kernel_values.diagonal().fold(0.0, f64::max);
        // Where all kernel values are zero, so are the coefficients.
        let mut jitter = if largest == 0.0 { 1.0 } else { 0.0 };
        loop {
            let mut factor = kernel_values.shifted::<f64>(|_| jitter, ctx)?;
            match dense::factor(&mut factor, ctx) {
                Ok(()) => return Ok(Self { factor, jitter, centred }),
                // Eigenvalues of a product that are below its rounding.
                Err(Error::NotPositiveDefinite { .. }) if alpha > 0.0 && jitter < 1e-9 * largest => {
                    jitter = (10.0 * jitter).max(1e-15 * m as f64 * largest);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Solves for coefficients (m, q) and intercepts (q,).
    ///
    /// # Errors
    /// [`Error::Param`] where they are not numbers.
    pub fn solve(&self, sums: &Sums, ctx: Context<'_>) -> Result<(Array2<f64>, Vec<f64>)> {
        let (m, q) = sums.products.dim();
        let mean = |i: usize| self.centred.as_ref().map_or(0.0, |(mean, _)| mean[i]);
        let mut coefficients =
            try_matrix((m, q), |(i, j)| sums.products[[i, j]] - mean(i) * sums.targets[j])?;
        let values = coefficients.as_slice_mut().expect("made row-major");
        let mut panels = columns::to_panels::<f64>(values, m, q)?;
        columns::solve(&self.factor, &mut panels, ctx)?;
        columns::from_panels(&panels, values, m, q);
        let mut intercepts = vec![0.0; q];
        if let Some((mean, rows)) = &self.centred {
            for (b, y) in intercepts.iter_mut().zip(&sums.targets) {
                *b = y / rows;
            }
            for (line, mean) in coefficients.rows().into_iter().zip(mean) {
                intercepts.iter_mut().zip(line).for_each(|(b, c)| *b -= mean * c);
            }
        }
        if coefficients.iter().chain(&intercepts).all(|v| v.is_finite()) {
            return Ok((coefficients, intercepts));
        }
        let rule = "such that sums over rows and their solution stay within double precision: scale X or the targets";
        Err(Error::param("X", format!("{} rows", sums.rows), rule))
    }

    /// Returns H_ii / w_i of some rows: the leverage of each row for each unit of its weight.
    ///
    /// # Errors
    /// The errors of [`Sums::add`].
    pub fn hat_diagonal(
        &self,
        kernel: Kernel,
        vectors: Rows<'_>,
        x: Rows<'_>,
        ctx: Context<'_>,
    ) -> Result<Vec<f64>> {
        let n = x.rows();
        let cross = PackedVectors::<f64>::new(kernel, vectors, ctx)?;
        cross.check(x)?;
        let solver = RowSolver::new(&self.factor, ctx)?;
        let (stride, m) = (cross.stride(), vectors.rows());
        let mut hat = Vec::with_capacity(n);
        let mut values: Vec<f64> = memory::try_zeros(SUMS_OVER_ROWS, MAX_BLOCK_ROWS.min(n) * stride)?;
        for from in (0..n).step_by(MAX_BLOCK_ROWS) {
            ctx.check("leave one out", from, n)?;
            let values = &mut values[..(n - from).min(MAX_BLOCK_ROWS) * stride];
            cross.fill(x, from, values, ctx)?;
            ctx.for_each_chunk(values, 96 * stride, |_, rows| {
                if let Some((mean, _)) = &self.centred {
                    for line in rows.chunks_exact_mut(stride) {
                        line.iter_mut().zip(mean).for_each(|(v, mean)| *v -= mean);
                    }
                }
                solver.substitute(rows, stride);
            });
            let of_mean = self.centred.as_ref().map_or(0.0, |(_, rows)| 1.0 / rows);
            hat.extend(
                values.chunks_exact(stride).map(|x| of_mean + x[..m].iter().map(|v| v * v).sum::<f64>()),
            );
        }
        Ok(hat)
    }
}
