//! K(X, Z) for fixed vectors Z, packed once, and blocks of rows X that come and go.

use super::Kernel;
use super::gram::PackedVectors;
use crate::control::Par;
use crate::data::Rows;
use crate::error::Result;
use crate::simd::Real;

/// Rows of a task.
const ROWS: usize = 48;

/// Vectors packed for kernel values in the precision `T`, in lines as the factorisations read them.
pub(crate) struct CrossKernel<T>(PackedVectors<T>);

impl<T: Real> CrossKernel<T> {
    /// Packs the vectors; the kernel must be computed from rows.
    pub(crate) fn new(kernel: Kernel, z: Rows<'_>, par: Par) -> Result<Self> {
        Ok(Self(PackedVectors::new(kernel, z, par)?))
    }

    /// Length of a line: the vectors, up to a whole panel.
    pub(crate) fn stride(&self) -> usize {
        self.0.padded()
    }

    /// Writes k(x_i, z_j) for the rows from `first`, one line of [`CrossKernel::stride`] values each, zeros behind the
    /// last vector.
    pub(crate) fn fill(&self, x: Rows<'_>, first: usize, out: &mut [T], par: Par) -> Result<()> {
        self.0.check_width(x)?;
        let stride = self.stride();
        par.for_each_chunk(out, ROWS * stride, |task, out| {
            let from = first + task * ROWS;
            let rows: Vec<usize> = (from..from + out.len() / stride).collect();
            self.0.values(x, &rows, out, stride);
            for line in out.chunks_exact_mut(stride) {
                line[self.0.len()..].fill(T::ZERO);
            }
        });
        Ok(())
    }
}
