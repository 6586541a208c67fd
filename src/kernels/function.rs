//! What a solver may be given as a kernel: one of the crate's, or a function that the caller computes.
//!
//! A function is asked for blocks of values, never for a pair: a call costs far more than a value, above all where it
//! crosses into another language (Rifkin 2002, 2.4.3). A block holds at most [`BLOCK`] values unless a single row
//! does, so K is never there in one piece.

use super::Kernel;

/// Most kernel values that a function is asked for at once: tens of megabytes with its own temporaries.
pub(super) const BLOCK: usize = 1 << 22;
/// Rows of the square blocks whose diagonals give k(x, x): wasted values against calls.
pub(super) const DIAGONAL: usize = 64;

/// Kernel values of training rows, computed by the caller.
pub trait KernelBlocks: Sync {
    /// Writes k(x_i, x_t) for i in `rows` and t in `columns`, indices of training rows, to `out`, one line of
    /// `columns.len()` values a row.
    ///
    /// A failure is the implementor's to remember: it writes zeros, and has the fit's
    /// [`Monitor`](crate::context::Monitor) answer `Break`.
    fn fill(&self, rows: &[usize], columns: &[usize], out: &mut [f64]);
}

/// A kernel for a fit.
#[derive(Clone, Copy)]
pub enum KernelFunction<'a> {
    /// A kernel of the crate.
    BuiltIn(Kernel),
    /// A function of blocks of rows.
    Blocks(&'a dyn KernelBlocks),
}

impl KernelFunction<'_> {
    /// The kernel of the crate; for a function `Precomputed`, whose values come from outside too.
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
