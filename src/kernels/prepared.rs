//! Rows that are prepared once for a kernel: checked, standardized and measured. Solvers, searches over many fits and
//! measures of rounding make all their `KernelRows` from them.

use super::Kernel;
use super::bytes::Unit;
use super::function::KernelFunction;
use super::overflow_check::{Magnitudes, Precision};
use super::pair::pair_with_itself;
use super::standardization::{CoefficientSum, Standardization, is_packed_sparse};
use crate::context::Context;
use crate::data::{OwnedRows, Rows, SparseElement};
use crate::error::Result;
use crate::fast_gauss::GaussTargets;
use crate::memory::{try_entries, try_with_capacity};
use crate::once::OnceCell;
use crate::simd::Real;
use std::sync::Arc;

/// Maximum number of rows in which an estimate of memory counts entries.
const MAX_ESTIMATE_ROWS: usize = 512;
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
    /// The numbers of dense rows that are not zero, if rows are packed by these.
    entries: OnceCell<OwnedRows>,
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
        let (unit, entries) = (OnceCell::default(), OnceCell::default());
        let shared = Arc::new(Shared { standardization, magnitudes, unit, entries, gauss });
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

    /// Returns the rows to pack from: solvers pack the same rows many times, so that dense rows that are packed by their entries
    /// are copied to sparse rows first.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn to_pack(&self, ctx: Context<'_>) -> Result<Rows<'_>> {
        let Shared { standardization, entries, .. } = &*self.shared;
        if self.rows.is_sparse() || !standardization.is_sparse() || self.unit(ctx)?.is_some() {
            return Ok(self.rows.reborrow());
        }
        let copy = || {
            if self.rows.is_f64() {
                copy_entries::<f64>(self.rows, ctx)
            } else {
                copy_entries::<f32>(self.rows, ctx)
            }
        };
        entries.get_or_try_init(copy).map(OwnedRows::view)
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

/// Returns the number of bytes of the copy of `n` rows like these that is packed from, by some of the rows.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory).
pub(crate) fn copied_bytes(kernel: KernelFunction<'_>, rows: Rows<'_>, n: usize) -> Result<usize> {
    if rows.is_sparse() || !is_packed_sparse(rows) {
        return Ok(0);
    }
    let count = rows.rows().min(MAX_ESTIMATE_ROWS);
    let sample = rows.gather(&(0..count).map(|i| i * rows.rows() / count).collect::<Vec<_>>())?;
    if Unit::find(&kernel.built_in(), sample.view(), Context::SEQUENTIAL).is_some() {
        return Ok(0);
    }
    let entries: usize = (0..count).map(|i| sample.view().entries(i)).sum();
    let bytes_of_entry = size_of::<i64>() + if rows.is_f64() { size_of::<f64>() } else { size_of::<f32>() };
    let bytes = (entries * bytes_of_entry + count * size_of::<i64>()) as f64;
    Ok((bytes * n as f64 / count.max(1) as f64) as usize)
}

/// Copies the numbers of dense rows that are not zero to sparse rows.
fn copy_entries<T: SparseElement + Real>(rows: Rows<'_>, ctx: Context<'_>) -> Result<OwnedRows> {
    const COPY: &str = "the entries of the rows";
    let (n, cols, interrupts) = (rows.rows(), rows.cols(), ctx.interrupts());
    let parts = ctx.try_map(n.div_ceil(ROWS_PER_TASK), |task| {
        let range = task * ROWS_PER_TASK..n.min((task + 1) * ROWS_PER_TASK);
        interrupts.charge(range.len() * cols)?;
        let (mut indices, mut values) = try_entries(COPY, range.clone().map(|row| rows.entries(row)).sum())?;
        let mut ends = [0; ROWS_PER_TASK];
        for (end, row) in ends.iter_mut().zip(range) {
            rows.for_each_entry(row, |k, v| {
                indices.push(k as i64);
                values.push(T::from_f64(v));
            });
            *end = values.len();
        }
        Ok((ends, indices, values))
    })?;
    let mut indptr = try_with_capacity(COPY, n + 1)?;
    let (mut indices, mut values) = try_entries(COPY, parts.iter().map(|(_, _, values)| values.len()).sum())?;
    indptr.push(0);
    for (task, (ends, some, of_these)) in parts.iter().enumerate() {
        let count = ROWS_PER_TASK.min(n - task * ROWS_PER_TASK);
        indptr.extend(ends[..count].iter().map(|end| (values.len() + end) as i64));
        indices.extend_from_slice(some);
        values.extend_from_slice(of_these);
    }
    OwnedRows::from_csr(indptr, indices, values, cols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn dense_rows_that_are_mostly_zeros_are_packed_from_their_entries() {
        let n = 2 * ROWS_PER_TASK + 7;
        let value = |i: usize, k: usize| if (3 * i + k).is_multiple_of(29) { (i as f64).sin() } else { 0.0 };
        let (double, ctx) = (Array2::from_shape_fn((n, 60), |(i, k)| value(i, k)), Context::default());
        let single = double.mapv(|v| v as f32);
        for rows in [Rows::try_from(&double).unwrap(), Rows::try_from(&single).unwrap()] {
            let prepared =
                PreparedRows::new(Kernel::Rbf { gamma: 0.5 }, rows, CoefficientSum::Any, ctx).unwrap();
            let entries = prepared.to_pack(ctx).unwrap();
            assert!(entries.is_sparse() && entries.is_f64() == rows.is_f64());
            assert_eq!((entries.rows(), entries.cols()), (n, 60));
            for row in 0..n {
                let list = |rows: Rows<'_>| {
                    let mut list = Vec::new();
                    rows.for_each_entry(row, |k, v| list.push((k, v)));
                    list
                };
                assert_eq!(list(entries), list(rows));
            }
        }
        let full = double.mapv(|v| v + 1.0);
        let rows = Rows::try_from(&full).unwrap();
        let prepared = PreparedRows::new(Kernel::Rbf { gamma: 0.5 }, rows, CoefficientSum::Any, ctx).unwrap();
        assert!(!prepared.to_pack(ctx).unwrap().is_sparse());
    }
}
