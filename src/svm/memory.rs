//! An estimate of the memory of a fit, before it starts.
//!
//! It counts packed rows; cached kernel rows, up to the budget or all rows; the matrices of the blocks that are solved at the
//! same time; and the variables of all machines. It does not count the caller's own rows, nor what is skipped if memory is
//! short: the system of a Newton step (`active_set`), at most 50 MB per thread for a short time, and the interior-point method
//! of a linear machine in few columns, some thirty numbers for each variable beside its columns.
//!
//! Cost: a pass over some hundred rows.

use super::columns::{depth, is_cached};
use super::params::SvmParams;
use super::rounding::MAX_SAMPLE;
use crate::context::Context;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{CoefficientSum, KernelFunction, Precision, PreparedRows, copied_bytes, packed_bytes};

/// Numbers in double precision per variable of a machine, with a shrunk copy and the row's index.
const NUMBERS_PER_VARIABLE: usize = 16;

/// Maximum number of rows from which the precision is determined; if they miss the largest values, packed rows may take twice
/// the estimate.
const MAX_SAMPLED_ROWS: usize = 512;

/// Bytes of a fit, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Packed training rows, and the copy of the entries of dense rows that are mostly zeros.
    pub packed: usize,
    /// Cached kernel rows: the budget, or less if all rows need less. 0 if values are computed again.
    pub cache: usize,
    /// Kernel matrices of the largest blocks.
    pub blocks: usize,
    /// The state of the machines, and the measurement of the rounding of one of them.
    pub variables: usize,
    /// Minimum memory of the fit: packed rows, variables, two cached rows, the first blocks.
    pub least: usize,
}

/// Estimates the memory of a fit of machines of the given numbers of variables, `threads` at a time, on `n` rows like `rows`,
/// which may be all rows or a sample of them.
pub fn estimate_memory<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'_>,
    n: usize,
    machines: &[usize],
    params: &SvmParams,
    threads: usize,
) -> Result<MemoryEstimate> {
    let kernel = kernel.into();
    let (n_rows, tuning) = (rows.rows(), params.tuning);
    let precision = if n_rows > MAX_SAMPLED_ROWS {
        let sample: Vec<usize> = (0..MAX_SAMPLED_ROWS).map(|i| i * n_rows / MAX_SAMPLED_ROWS).collect(); // small: 512 rows
        precision_of(kernel, rows.gather(&sample)?.view())?
    } else {
        precision_of(kernel, rows)?
    };
    let packed = packed_bytes(kernel, rows, n, precision)?.saturating_add(copied_bytes(kernel, rows, n)?);
    let largest = machines.iter().copied().max().unwrap_or(0);
    let is_cached = is_cached(depth(kernel, rows), largest, params);
    let all_rows = n.saturating_mul(n).saturating_mul(4);
    let cache = if is_cached {
        params.cache_bytes.saturating_sub(packed).min(all_rows).max(n.saturating_mul(8))
    } else {
        0
    };
    // Blocks of a machine with cached rows are limited by the cache.
    let capacity = if is_cached { (cache / n.max(1).saturating_mul(4)).max(2) } else { usize::MAX };
    // Those of the largest machines, if these are solved at the same time.
    let blocks_of = |size: &dyn Fn(usize) -> usize| {
        // small: one number per machine
        let mut sizes: Vec<usize> = machines.iter().map(|&variables| size(variables).min(capacity)).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let bytes = |size: &usize| size.saturating_mul(*size).saturating_mul(4);
        sizes.iter().take(threads.max(1)).map(bytes).fold(0, usize::saturating_add)
    };
    let first = |variables: usize| tuning.first_block(variables);
    let largest_of = |variables: usize| first(variables).max(variables.min(tuning.max_block));
    let blocks = blocks_of(&largest_of);
    // Rounding is measured on packed rows in double precision, with some of their kernel values.
    let measured = packed_bytes(kernel, rows, largest.min(n), Precision::Double)?
        .saturating_add(largest.saturating_mul(8 * MAX_SAMPLE));
    let all_variables = machines.iter().copied().fold(0, usize::saturating_add);
    let variables =
        all_variables.saturating_mul(NUMBERS_PER_VARIABLE * size_of::<f64>()).saturating_add(measured);
    let smallest = if is_cached { n.saturating_mul(8) } else { blocks_of(&first) };
    let least = packed.saturating_add(variables).saturating_add(smallest);
    Ok(MemoryEstimate { packed, cache, blocks, variables, least })
}

fn precision_of(kernel: KernelFunction<'_>, rows: Rows<'_>) -> Result<Precision> {
    Ok(PreparedRows::new(kernel, rows, CoefficientSum::Any, Context::SEQUENTIAL)?.precision())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernel;

    #[test]
    fn an_estimate_beyond_the_address_space_is_the_largest_number() {
        let x: Vec<f64> = (0..1000).map(|i| f64::from(i % 7)).collect();
        let rows = Rows::from_shape((10, 100), &x).unwrap();
        let n = usize::MAX / 64;
        let estimate =
            estimate_memory(Kernel::Rbf { gamma: 0.5 }, rows, n, &[n, n], &SvmParams::default(), 2).unwrap();
        let MemoryEstimate { packed, variables, least, .. } = estimate;
        assert_eq!([packed, variables, least], [usize::MAX; 3]);
    }
}
