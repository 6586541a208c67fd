//! The kernel of a fit: one of the crate's, or a user-defined function.
//!
//! A user-defined function computes blocks of values, never a pair: a call costs far more than a value, above all if it
//! crosses into another language (Rifkin 2002, 2.4.3). A block holds at most [`MAX_BLOCK_VALUES`] values unless a single
//! row has more, so K is never in memory as a whole.

use super::Kernel;

/// Maximum number of kernel values of a block: tens of megabytes with the temporaries of the function.
pub(super) const MAX_BLOCK_VALUES: usize = 1 << 22;
/// Rows of the square blocks whose diagonals are k(x, x): a compromise between unused values and calls.
const DIAGONAL_BLOCK_ROWS: usize = 64;

/// A user-defined kernel function of training rows.
pub trait KernelBlocks: Sync {
    /// Writes k(x_i, x_t) for i in `rows` and t in `columns`, indices of training rows, to `out`, one line of
    /// `columns.len()` values per row.
    ///
    /// An implementation that fails stores its error, writes zeros, and makes the
    /// [`Monitor`](crate::context::Monitor) of the fit return `Break`.
    fn fill(&self, rows: &[usize], columns: &[usize], out: &mut [f64]);

    /// Writes k(x_i, x_i) for i in `rows` to `out`: the diagonals of square blocks, unless an implementation knows a cheaper way.
    fn diagonal(&self, rows: &[usize], out: &mut [f64]) {
        let mut values = vec![0.0; DIAGONAL_BLOCK_ROWS * DIAGONAL_BLOCK_ROWS];
        for (rows, out) in rows.chunks(DIAGONAL_BLOCK_ROWS).zip(out.chunks_mut(DIAGONAL_BLOCK_ROWS)) {
            let n = rows.len();
            self.fill(rows, rows, &mut values[..n * n]);
            for (i, out) in out.iter_mut().enumerate() {
                *out = values[i * n + i];
            }
        }
    }
}

/// A kernel for a fit.
#[derive(Clone, Copy)]
pub enum KernelFunction<'a> {
    /// A kernel of the crate.
    BuiltIn(Kernel),
    /// A user-defined function.
    Blocks(&'a dyn KernelBlocks),
}

impl KernelFunction<'_> {
    /// Returns the kernel of the crate; `Precomputed` for a user-defined function, whose values are given too.
    pub(crate) fn built_in(&self) -> Kernel {
        match *self {
            Self::BuiltIn(kernel) => kernel,
            Self::Blocks(_) => Kernel::Precomputed,
        }
    }
}

impl From<Kernel> for KernelFunction<'_> {
    fn from(kernel: Kernel) -> Self {
        Self::BuiltIn(kernel)
    }
}

impl<'a> From<&'a dyn KernelBlocks> for KernelFunction<'a> {
    fn from(blocks: &'a dyn KernelBlocks) -> Self {
        Self::Blocks(blocks)
    }
}
