//! All kernel values of the training rows, once, for many fits to parts of them.
//!
//! Where n^2 values fit the memory, the folds, costs and classes of a search read them from one matrix in single precision,
//! the precision in which the solver keeps kernel rows anyway. Cost: n^2 kernel values, 4 n^2 bytes.

use crate::control::{Monitor, Par};
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{Arena, Arenas};

/// Multiply-adds between two looks at the monitor.
const LOOK: usize = 2_000_000_000;

/// K(X, X) by position.
pub(super) struct KernelMatrix {
    values: Arena,
    len: usize,
}

impl KernelMatrix {
    /// Bytes of the matrix of so many rows.
    pub(super) fn bytes(len: usize) -> usize {
        len.saturating_mul(len).saturating_mul(size_of::<f32>())
    }

    /// The values of the rows of `order`, which are the columns of `source`; a value touches `depth` features.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), and [`Error::Cancelled`](crate::Error::Cancelled).
    pub(super) fn compute(
        source: &KernelRows<'_>,
        order: &[usize],
        depth: usize,
        memory: &Arenas,
        monitor: &dyn Monitor,
        par: Par,
    ) -> Result<Self> {
        let len = order.len();
        let mut values = memory.take("the kernel matrix of a search", len * len)?;
        let at_once = (LOOK / (len * depth.max(16)).max(1)).max(96);
        let lines = values.values_mut()[..len * len].chunks_mut((at_once * len).max(1));
        for (part, (rows, lines)) in order.chunks(at_once).zip(lines).enumerate() {
            monitor.go_on("kernel", part * at_once, len)?;
            source.compute(rows, &mut lines.chunks_exact_mut(len).collect::<Vec<_>>(), par)?;
        }
        Ok(Self { values, len })
    }

    /// The values of the row at a position against all.
    pub(super) fn row(&self, position: usize) -> &[f32] {
        &self.values.values()[position * self.len..][..self.len]
    }

    /// Its memory goes back.
    pub(super) fn finish(self, memory: &Arenas) {
        memory.put(self.values);
    }
}
