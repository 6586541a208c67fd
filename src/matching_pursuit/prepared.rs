//! Columns of functions that are likely to be chosen, in double precision and orthogonal to the basis as it was when they
//! were made.
//!
//! A column by itself costs a pass over the rows and two over the basis, all bound by memory; several together cost hardly
//! more. So with the column that is wanted those of the best candidates are made, orthogonal to what of the basis will not
//! be taken back. They wait until they are chosen, and only the newer vectors are taken away from them then.

use super::basis::{Basis, Rest};
use super::dictionary::Dictionary;
use super::field::Field;
use crate::context::Context;
use crate::error::Result;
use crate::memory::{TryCollect, TryGrow, TryToVec};

/// Columns made together.
const TOGETHER: usize = 8;
/// Numbers of the columns that wait at most, 64 MB; the oldest go.
const WAITING: usize = 1 << 23;

/// The columns that wait, the oldest first.
#[derive(Default)]
pub(super) struct Prepared(Vec<(usize, Rest)>);

impl Prepared {
    /// What the basis leaves of a function's column, as far as it has seen it.
    pub(super) fn take(
        &mut self,
        p: usize,
        field: &Field<'_>,
        dictionary: &Dictionary<'_>,
        basis: &Basis,
        ctx: Context<'_>,
    ) -> Result<Rest> {
        self.0.retain(|(waiting, _)| !field.is_settled(*waiting));
        if !self.0.iter().any(|(waiting, _)| *waiting == p) {
            let list = field.likely(p, TOGETHER, |p| self.0.iter().any(|(waiting, _)| *waiting == p))?;
            let columns = dictionary.columns(&list, ctx)?;
            let columns = columns.chunks_exact(columns.len() / list.len());
            let mut rests: Vec<Rest> =
                columns.map(|column| Ok(Rest::of(column.try_to_vec()?))).try_collect_results()?;
            let mut lines = Vec::new();
            for &p in &list {
                lines.try_extend(field.line(p)[..field.settled()].iter().copied())?;
            }
            basis.bring_up(&mut rests, &mut lines, ctx)?;
            // The one that is wanted is the youngest.
            self.0.extend(list.into_iter().zip(rests).rev());
            let most = (WAITING / dictionary.rows().max(1)).max(TOGETHER);
            self.0.drain(..self.0.len().saturating_sub(most));
        }
        let found = self.0.iter().find(|(waiting, _)| *waiting == p);
        // It stays: where its step is taken back it will be wanted again.
        found.expect("it was made").1.try_clone()
    }
}
