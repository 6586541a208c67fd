//! How much memory a fit takes, before it is begun.
//!
//! Packed rows, which every fit holds; kernel rows, as many as the budget and the problem have room for; the matrices
//! of the blocks that are solved at the same time; the variables of all machines. The caller's own rows are not counted,
//! nor is the system of a direct step (`newton`): at most 50 MB a thread, for a moment, and done without where there is
//! no room.
//!
//! Cost: a look at some hundred rows.

use super::columns::{depth, is_cached};
use super::params::SvmParams;
use super::rounding::SAMPLE;
use crate::data::Rows;
use crate::error::Result;
use crate::kernels::{CoefficientSum, KernelFunction, Precision, PreparedRows, packed_bytes};

/// Numbers in double precision that a machine keeps for each variable, a shrunk copy and the row's index included.
const NUMBERS_A_VARIABLE: usize = 16;

/// Rows that are looked at for the precision: where they miss the largest, packed rows may take twice the estimate.
const LOOKED_AT: usize = 512;

/// Bytes that a fit takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Training rows as the kernels want them.
    pub packed: usize,
    /// Cached kernel rows: the budget, or less where all rows need less. 0 where values are computed again.
    pub cache: usize,
    /// Kernel matrices of the largest blocks.
    pub blocks: usize,
    /// The state of the machines, and what it takes to measure the rounding of one of them.
    pub variables: usize,
    /// What a fit cannot do without: packed rows, variables, two cached rows, blocks as they begin.
    pub least: usize,
}

/// The memory of a fit of machines of the given numbers of variables, `threads` at a time, on `n` rows like these; `rows`
/// may be all of them, or a few that stand for rows that are not there yet.
pub fn estimate_memory<'a>(
    kernel: impl Into<KernelFunction<'a>>,
    rows: Rows<'_>,
    n: usize,
    machines: &[usize],
    params: &SvmParams,
    threads: usize,
) -> Result<MemoryEstimate> {
    let kernel = kernel.into();
    let (given, tuning) = (rows.rows(), params.tuning);
    let kept = if given > LOOKED_AT {
        let some: Vec<usize> = (0..LOOKED_AT).map(|i| i * given / LOOKED_AT).collect(); // small: 512 rows
        precision_of(kernel, rows.gather(&some)?.view())?
    } else {
        precision_of(kernel, rows)?
    };
    let packed = packed_bytes(kernel, rows, n, kept)?;
    let largest = machines.iter().copied().max().unwrap_or(0);
    let is_cached = is_cached(depth(kernel, rows), largest, params);
    let all_rows = 4 * n * n;
    let cache =
        if is_cached { params.cache_bytes.saturating_sub(packed).min(all_rows).max(8 * n) } else { 0 };
    // Blocks of a machine that keeps its rows cannot be larger than the cache has room for.
    let room = if is_cached { (cache / (4 * n.max(1))).max(2) } else { usize::MAX };
    // Those of the largest machines, which may be solved at the same time.
    let blocks_of = |size: &dyn Fn(usize) -> usize| {
        // small: one number per machine
        let mut sizes: Vec<usize> = machines.iter().map(|&variables| size(variables).min(room)).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.iter().take(threads.max(1)).map(|size| 4 * size * size).sum::<usize>()
    };
    let first = |variables: usize| tuning.first_block(variables);
    let largest_of = |variables: usize| first(variables).max(variables.min(tuning.largest_block));
    let blocks = blocks_of(&largest_of);
    // What rounding has done is measured on packed rows in double precision, by some of their kernel values.
    let measured = packed_bytes(kernel, rows, largest.min(n), Precision::Double)? + 8 * SAMPLE * largest;
    let variables = machines.iter().sum::<usize>() * NUMBERS_A_VARIABLE * size_of::<f64>() + measured;
    let smallest = if is_cached { 8 * n } else { blocks_of(&first) };
    Ok(MemoryEstimate { packed, cache, blocks, variables, least: packed + variables + smallest })
}

fn precision_of(kernel: KernelFunction<'_>, rows: Rows<'_>) -> Result<Precision> {
    Ok(PreparedRows::new(kernel, rows, CoefficientSum::Any)?.precision())
}
