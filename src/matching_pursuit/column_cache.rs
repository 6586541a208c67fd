//! A cache of the columns of the best candidates, in double precision and orthogonal to the basis at the time of their
//! computation.
//!
//! One column costs a pass over the rows and two over the basis, all bound by memory; several columns together cost hardly
//! more. So the columns of the best candidates are computed together with the column requested, and are made orthogonal to
//! the vectors of the basis that will not be undone. When one of them is chosen, only the newer vectors are projected out.

use super::basis::{Basis, ColumnResidual};
use super::dictionary::Dictionary;
use super::levels::CandidateLevels;
use crate::context::Context;
use crate::error::Result;

/// Number of columns computed together.
const COLUMNS_PER_BATCH: usize = 8;
/// Maximum number of bytes of the columns that wait to be chosen, at least those of one batch; the oldest are removed.
pub const MAX_CACHED_COLUMN_BYTES: usize = 1 << 26;

/// The cached columns, the oldest first.
#[derive(Default)]
pub(super) struct ColumnCache(Vec<(usize, ColumnResidual)>);

impl ColumnCache {
    /// Returns the residual of a function's column after projection on the vectors known when it was computed.
    pub(super) fn take(
        &mut self,
        p: usize,
        levels: &CandidateLevels<'_>,
        dictionary: &Dictionary<'_>,
        basis: &Basis,
        ctx: Context<'_>,
    ) -> Result<ColumnResidual> {
        self.0.retain(|(waiting, _)| !levels.is_final(*waiting));
        if !self.0.iter().any(|(waiting, _)| *waiting == p) {
            let list = levels
                .best_candidates(p, COLUMNS_PER_BATCH, |p| self.0.iter().any(|(waiting, _)| *waiting == p));
            let columns = dictionary.columns(&list, ctx)?;
            let columns = columns.chunks_exact(columns.len() / list.len());
            let mut residuals: Vec<ColumnResidual> =
                columns.map(|column| ColumnResidual::of(column.to_vec())).collect();
            let mut lines = Vec::new();
            for &p in &list {
                lines.extend(levels.line(p)[..levels.n_final_vectors()].iter().copied());
            }
            basis.orthogonalize(&mut residuals, &mut lines, ctx)?;
            // The column requested is the newest.
            self.0.extend(list.into_iter().zip(residuals).rev());
            let column_bytes = dictionary.rows().max(1) * size_of::<f64>();
            let capacity = (MAX_CACHED_COLUMN_BYTES / column_bytes).max(COLUMNS_PER_BATCH);
            self.0.drain(..self.0.len().saturating_sub(capacity));
        }
        let entry = self.0.iter().find(|(waiting, _)| *waiting == p);
        // It stays in the cache: if its step is undone, it will be requested again.
        Ok(entry.expect("it was computed").1.clone())
    }
}
