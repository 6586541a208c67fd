//! K(X, Z) for fixed vectors Z, packed once, and blocks of rows X that come and go.

use super::Kernel;
use super::pack::{Centre, Panels};
use super::tile::for_each_tile;
use crate::control::Par;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::simd::Real;

/// Rows of a task.
const ROWS: usize = 48;

/// Vectors packed for kernel values in the precision `T`.
pub(crate) struct CrossKernel<T> {
    kernel: Kernel,
    centre: Centre,
    panels: Panels<T>,
    vectors: usize,
    columns: usize,
}

impl<T: Real> CrossKernel<T> {
    /// Packs the vectors; the kernel must be computed from rows.
    pub(crate) fn new(kernel: Kernel, z: Rows<'_>, par: Par) -> Result<Self> {
        kernel.check()?;
        kernel.check_rows("vectors", z)?;
        if matches!(kernel, Kernel::Precomputed) {
            return Err(Error::param("kernel", "precomputed", "computed from rows"));
        }
        let centre = Centre::of(&kernel, z);
        let panels = Panels::pack(z, &(0..z.rows()).collect::<Vec<_>>(), &centre, par);
        Ok(Self { kernel, centre, panels, vectors: z.rows(), columns: z.cols() })
    }

    /// Length of a line: the vectors, up to a whole panel.
    pub(crate) fn stride(&self) -> usize {
        self.vectors.next_multiple_of(self.panels.width())
    }

    /// Writes k(x_i, z_j) for the rows from `first`, one line of [`CrossKernel::stride`] values each, zeros behind the
    /// last vector.
    pub(crate) fn fill(&self, x: Rows<'_>, first: usize, out: &mut [T], par: Par) -> Result<()> {
        Error::check_len("columns of X", self.columns, x.cols())?;
        let (stride, width) = (self.stride(), self.panels.width());
        par.for_each_chunk(out, ROWS * stride, |task, out| {
            let from = first + task * ROWS;
            let rows: Vec<usize> = (from..from + out.len() / stride).collect();
            let block = self.panels.block(x, &rows, &self.centre);
            let all = 0..self.panels.count();
            for_each_tile(
                &self.kernel,
                &block,
                &self.panels,
                all,
                ROWS,
                self.columns,
                |row, count, p, tile| {
                    for (i, line) in tile.chunks_exact(width).take(count).enumerate() {
                        out[(row + i) * stride + p * width..][..width].copy_from_slice(line);
                    }
                },
            );
            for line in out.chunks_exact_mut(stride) {
                line[self.vectors..].fill(T::ZERO);
            }
        });
        Ok(())
    }
}
