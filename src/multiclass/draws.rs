//! The best of many random draws, the same whatever the number of threads: draw number t has its own stream of random
//! numbers, and of equals the first is kept.

use crate::context::Context;
use crate::error::{Error, Result};

/// Maximum number of draws between two checks of the monitor.
const BATCH: usize = 64;
/// Approximate work of the draws between two checks.
const WORK_PER_CHECK: usize = 1 << 26;

/// The number of draws, and the seed of their streams of random numbers.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    /// Number of draws, at least 1, of which the best is used.
    pub count: usize,
    /// Seed of the draws; each has its own stream of random numbers.
    pub seed: u64,
}

impl Draws {
    pub(super) fn check(self) -> Result<()> {
        if self.count == 0 { Err(Error::param("n_draws", self.count, "at least 1")) } else { Ok(()) }
    }

    /// Returns the number of the draw with the largest `quality(number, best so far)`, which costs about `work`
    /// multiplications; none if no draw is better than the default. For a draw that is no better than the best so far,
    /// `quality` may return any value that is no better, so the choice does not depend on the size of a batch.
    pub(super) fn best<Q: Copy + Default + PartialOrd + Send + Sync>(
        self,
        quality: impl Fn(u64, Q) -> Result<Q> + Sync + Send,
        work: usize,
        ctx: Context<'_>,
    ) -> Result<Option<u64>> {
        let (mut best, mut number) = (Q::default(), None);
        let batch = (WORK_PER_CHECK / work.max(1)).clamp(1, BATCH).max(ctx.threads());
        for first in (0..self.count).step_by(batch) {
            ctx.check("code", first, self.count)?;
            let qualities =
                ctx.try_map(batch.min(self.count - first), |t| quality((first + t) as u64, best))?;
            for (t, quality) in qualities.into_iter().enumerate() {
                if quality > best {
                    (best, number) = (quality, Some((first + t) as u64));
                }
            }
        }
        Ok(number)
    }
}
