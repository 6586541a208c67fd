//! Rows that are prepared once for a kernel: checked, standardized and measured. Solvers, searches over many fits and
//! measures of rounding make all their `KernelRows` from them.

use super::Kernel;
use super::bytes::Unit;
use super::function::KernelFunction;
use super::overflow_check::{Magnitudes, Precision};
use super::pair::pair_with_itself;
use super::standardization::{CoefficientSum, Standardization};
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::fast_gauss::GaussTargets;
use crate::once::OnceCell;
use std::sync::Arc;

/// Rows whose lengths one task computes.
const ROWS_PER_TASK: usize = 64;

/// Rows and a kernel, with everything that is computed from all rows. Clones share it.
#[derive(Clone)]
pub(crate) struct PreparedRows<'a> {
    pub(crate) kernel: KernelFunction<'a>,
    pub(crate) rows: Rows<'a>,
    shared: Arc<Shared>,
}

struct Shared {
    standardization: Arc<Standardization>,
    magnitudes: Magnitudes,
    /// The unit of rows that can be packed as bytes.
    unit: OnceCell<Option<Unit>>,
    /// No targets yet, for sums of Gaussians in few columns.
    gauss: Option<GaussTargets>,
}

impl<'a> PreparedRows<'a> {
    /// Checks rows against the domain of a kernel, standardizes and measures them.
    ///
    /// # Errors
    /// [`Error::Param`](crate::Error::Param) for parameters or rows outside of their domain,
    /// [`Error::NotFinite`](crate::Error::NotFinite).
    pub(crate) fn new<'r: 'a>(
        kernel: impl Into<KernelFunction<'a>>,
        rows: Rows<'r>,
        sum: CoefficientSum,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let (kernel, rows) = (kernel.into(), rows.reborrow());
        if let KernelFunction::BuiltIn(kernel) = kernel {
            kernel.check()?;
            kernel.check_rows("X", rows)?;
        }
        let standardization = Standardization::with_coefficients(&kernel.built_in(), rows, sum, ctx)?;
        let standardization = Arc::new(standardization);
        let magnitudes = Magnitudes::of_standardized("X", kernel, &standardization, rows, ctx)?;
        let gauss = match kernel {
            KernelFunction::BuiltIn(kernel) => GaussTargets::new(&kernel, rows),
            KernelFunction::Blocks(_) => None,
        };
        let shared = Arc::new(Shared { standardization, magnitudes, unit: OnceCell::default(), gauss });
        Ok(Self { kernel, rows, shared })
    }

    /// Returns the same rows for a shorter time; see [`Rows::reborrow`].
    pub(crate) fn reborrow<'b>(&self) -> PreparedRows<'b>
    where
        'a: 'b,
    {
        PreparedRows { kernel: self.kernel, rows: self.rows.reborrow(), shared: Arc::clone(&self.shared) }
    }

    /// Returns the maximum magnitudes of rows and kernel values.
    pub(crate) fn magnitudes(&self) -> &Magnitudes {
        &self.shared.magnitudes
    }

    /// Returns the precision that suffices for the values of a solver. Values of kernels without a bound may be large compared
    /// with their differences, so these are computed in the precision of the rows.
    pub(crate) fn precision(&self) -> Precision {
        let bounded = self.kernel.built_in().constant_diagonal().is_some();
        let single = (bounded || !self.rows.is_f64()) && self.magnitudes().is_single();
        if single { Precision::Single } else { Precision::Double }
    }

    pub(super) fn standardization(&self) -> &Arc<Standardization> {
        &self.shared.standardization
    }

    /// Returns the unit of which all numbers are multiples; `None` if packing the rows as bytes is impossible or not worth it.
    pub(super) fn unit(&self, ctx: Context<'_>) -> Result<Option<Unit>> {
        let find = || Ok(Unit::find(&self.kernel.built_in(), self.rows, ctx));
        self.shared.unit.get_or_try_init(find).copied()
    }

    pub(super) fn gauss(&self) -> Option<&GaussTargets> {
        self.shared.gauss.as_ref()
    }

    pub(crate) fn standardized_kernel(&self) -> Kernel {
        *self.shared.standardization.kernel()
    }

    /// Calls `visit(column, value)` for the entries of a standardized row; others are zero.
    pub(crate) fn for_each_standardized(&self, row: usize, visit: impl FnMut(usize, f64)) {
        self.shared.standardization.for_each(self.rows, row, visit);
    }

    /// Returns by how much outputs computed with values of the standardized rows exceed those of the kernel, (q,): products of
    /// the center with the weights of coefficients (m, q) of the listed rows.
    pub(crate) fn intercept_correction(&self, rows: &[usize], coefficients: &[f64], q: usize) -> Vec<f64> {
        if self.kernel.built_in() != Kernel::Linear {
            return vec![0.0; q];
        }
        self.shared.standardization.centre_products(self.rows, rows, coefficients, q)
    }

    /// Returns the scale of rounding errors in kernel values of the listed rows, relative to each other.
    pub(crate) fn rounding_scales(&self, rows: &[usize], ctx: Context<'_>) -> Vec<f64> {
        let length = |squared: bool, power: f64| {
            let standardization = &self.shared.standardization;
            let scale =
                |&row: &usize| 1.0 + standardization.magnitudes(self.rows, row, squared).1.powf(power);
            let mut scales = vec![0.0; rows.len()];
            let ctx = ctx.for_operations(rows.len().saturating_mul(self.rows.cols()));
            ctx.for_each_chunk(&mut scales, ROWS_PER_TASK, |task, scales| {
                for (out, row) in scales.iter_mut().zip(&rows[task * ROWS_PER_TASK..]) {
                    *out = scale(row);
                }
            });
            scales
        };
        match self.kernel.built_in() {
            Kernel::Rbf { .. } => length(true, 1.0),
            Kernel::Matern { .. } => length(true, 0.5),
            Kernel::Laplacian { .. } | Kernel::ChiSquared { .. } => length(false, 1.0),
            Kernel::Linear | Kernel::Polynomial { .. } => self.diagonal(rows),
            Kernel::Sigmoid { .. } | Kernel::Precomputed => vec![1.0; rows.len()],
        }
    }

    /// Returns k(x_i, x_i) of the listed rows, exactly.
    pub(crate) fn diagonal(&self, rows: &[usize]) -> Vec<f64> {
        let blocks = match self.kernel {
            KernelFunction::BuiltIn(Kernel::Linear) => {
                let standardization = &self.shared.standardization;
                let values = rows.iter().map(|&row| standardization.magnitudes(self.rows, row, true).1);
                return values.collect();
            }
            KernelFunction::BuiltIn(kernel) => {
                return rows.iter().map(|&row| pair_with_itself(&kernel, self.rows, row)).collect();
            }
            KernelFunction::Blocks(blocks) => blocks,
        };
        let mut diagonal = vec![0.0; rows.len()];
        blocks.diagonal(rows, &mut diagonal);
        diagonal
    }
}
