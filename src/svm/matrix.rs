//! All kernel values that many fits to parts of the rows ask for, once.
//!
//! Where they fit the memory, the folds, costs and classes of a search read them from one matrix in single precision, the
//! precision in which the solver keeps kernel rows anyway: a line for each row that some fold learns from, a column for
//! every row. Cost: m n kernel values for m such lines, 4 m n bytes.

use super::precision::KernelValue;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::KernelRows;
use crate::memory::{self, Arena, Arenas, TryCollect};

/// Multiply-adds between two checks of the monitor.
const WORK_PER_CHECK: usize = 2_000_000_000;

/// Some lines of K(X, X), by position.
pub(super) struct KernelMatrix<K> {
    values: Arena<K>,
    /// Line of each position that has one.
    line_of: Vec<u32>,
}

impl<K: KernelValue> KernelMatrix<K> {
    /// Bytes of so many lines of so many columns.
    pub(super) fn bytes(lines: usize, columns: usize) -> usize {
        lines.saturating_mul(columns).saturating_mul(size_of::<K>())
    }

    /// The lines of some positions, rising, in `order`, whose rows are the columns of `source`; a value touches `depth`
    /// features.
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
        let rows: Vec<usize> = positions.iter().map(|&position| order[position]).try_collect_vec()?;
        let mut line_of = memory::try_filled("lines of a kernel matrix", len, u32::MAX)?;
        for (line, &position) in (0..).zip(positions) {
            line_of[position] = line;
        }
        let mut values = arenas.take("the kernel matrix of a search", rows.len() * len)?;
        let at_once = (WORK_PER_CHECK / (len * depth.max(16)).max(1)).max(96);
        let lines = values.values_mut()[..rows.len() * len].chunks_mut((at_once * len).max(1));
        for (part, (some, lines)) in rows.chunks(at_once).zip(lines).enumerate() {
            ctx.check("kernel", part * at_once, rows.len())?;
            source.compute(some, &mut lines.chunks_exact_mut(len).try_collect_vec()?, ctx)?;
        }
        Ok(Self { values, line_of })
    }

    /// The values of the row at a position that has a line, against all.
    pub(super) fn row(&self, position: usize) -> &[K] {
        let len = self.line_of.len();
        &self.values.values()[self.line_of[position] as usize * len..][..len]
    }

    /// Its memory goes back.
    pub(super) fn finish(self, memory: &Arenas<K>) {
        memory.put(self.values);
    }
}
