//! The kernel matrix of a search, in the precision of the solver's kernel rows: a line for each row that is a training row of
//! some fold, a column for every row. It serves all folds, costs and classes.
//!
//! Cost: m n kernel values for m lines, 4 m n bytes.

use super::precision::KernelValue;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{Arena, Arenas};

/// Multiply-adds between two checks of the monitor.
const WORK_PER_CHECK: usize = 2_000_000_000;

/// Lines of K(X, X), by position.
pub(super) struct KernelMatrix<K> {
    values: Arena<K>,
    /// Line of each position that has one.
    line_of: Vec<u32>,
}

impl<K: KernelValue> KernelMatrix<K> {
    pub(super) fn bytes(lines: usize, columns: usize) -> usize {
        lines.saturating_mul(columns).saturating_mul(size_of::<K>())
    }

    /// Computes the lines of some positions, ascending, in `order`, whose rows are the columns of `source`; a value depends on
    /// `depth` features.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), and [`Error::Stopped`](crate::Error::Stopped).
    pub(super) fn compute(
        source: &KernelRows<'_>,
        order: &[usize],
        positions: &[usize],
        depth: usize,
        arenas: &Arenas<K>,
        ctx: Context<'_>,
    ) -> Result<Self> {
        let len = order.len();
        let rows: Vec<usize> = positions.iter().map(|&position| order[position]).collect();
        let mut line_of = vec![u32::MAX; len];
        for (line, &position) in (0..).zip(positions) {
            line_of[position] = line;
        }
        let mut values = arenas.take("the kernel matrix of a search", rows.len() * len)?;
        let at_once = (WORK_PER_CHECK / (len * depth.max(16)).max(1)).max(96);
        let lines = values.values_mut()[..rows.len() * len].chunks_mut((at_once * len).max(1));
        for (part, (some, lines)) in rows.chunks(at_once).zip(lines).enumerate() {
            ctx.check("kernel", part * at_once, rows.len())?;
            source.compute(some, &mut lines.chunks_exact_mut(len).collect::<Vec<_>>(), ctx)?;
        }
        Ok(Self { values, line_of })
    }

    /// Returns the values of the row at a position that has a line, against all rows.
    pub(super) fn row(&self, position: usize) -> &[K] {
        let len = self.line_of.len();
        &self.values.values()[self.line_of[position] as usize * len..][..len]
    }

    /// Releases the memory for another matrix.
    pub(super) fn release(self, memory: &Arenas<K>) {
        memory.put(self.values);
    }
}
