//! A leaf that learns from its rows of a block while other leaves learn from theirs (see `concurrent`).
//!
//! Invariant: a leaf that does not overflow has at most B vectors, one that does has B + 1, and has learned nothing since. Its
//! sample and the number of rows that it has seen are those before the block. Cost: see `learning`.

use super::learning::{Buffers, Outcome, Shared};
use super::node::Leaf;
use crate::context::{Context, WorkCounter};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::kernels::RowBuffer;
use crate::random::Random;
use crate::simd::Real;
use std::sync::atomic::{AtomicU64, Ordering};

/// A piece of a stream.
pub(super) struct Piece<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) labels: &'a [usize],
    pub(super) ctx: Context<'a>,
    /// Number of rows that leaves have learned from.
    pub(super) done: AtomicU64,
    /// Work of finished tasks after their last checks of the monitor.
    unchecked: AtomicU64,
}

impl<'a> Piece<'a> {
    pub(super) fn new(rows: Rows<'a>, labels: &'a [usize], ctx: Context<'a>) -> Self {
        Self { rows, labels, ctx, done: AtomicU64::new(0), unchecked: AtomicU64::new(0) }
    }

    /// Does a task with a counter of its work.
    pub(super) fn with_counter<R>(&self, task: impl FnOnce(&mut WorkCounter<'a>) -> R) -> R {
        let mut counter = self.ctx.counter("stream", self.labels.len());
        counter.set_rows(self.done.load(Ordering::Relaxed));
        counter.take_over(&self.unchecked);
        let result = task(&mut counter);
        counter.leave(&self.unchecked);
        result
    }
}

/// A leaf and the rows of a block that reach it.
pub(super) struct GrowingLeaf<T> {
    /// Its node.
    pub(super) at: usize,
    pub(super) leaf: Leaf<T>,
    /// Rows of the block, in order.
    pub(super) rows: Vec<usize>,
    /// Number of rows learned from.
    pub(super) learned: usize,
    /// Size of the sample before the block's `position`.
    pub(super) sample_size: usize,
    /// True if the last row that was learned from made it overflow: it has one vector more than its budget.
    pub(super) overflows: bool,
    /// Rows of the piece that were mistakes.
    pub(super) wrong: Vec<u64>,
    pub(super) error: Option<Error>,
}

impl<T: Real> GrowingLeaf<T> {
    pub(super) fn can_learn(&self) -> bool {
        !self.overflows && self.error.is_none() && self.learned < self.rows.len()
    }

    /// Returns the row that made it overflow.
    pub(super) fn overflow(&self) -> Option<usize> {
        self.overflows.then(|| self.rows[self.learned - 1])
    }

    /// Learns until it overflows; `is_closed` leaves learn no vectors beyond their budget.
    pub(super) fn learn(
        &mut self,
        tree: Shared<'_, T>,
        (piece, first): (&Piece<'_>, usize),
        buffers: &mut Buffers<T>,
        is_closed: bool,
        counter: &mut WorkCounter<'_>,
    ) -> Result<()> {
        let work = tree.params.work_per_row(&piece.rows) as usize;
        while self.learned < self.rows.len() && !self.overflows {
            let row = first + self.rows[self.learned];
            counter.set_rows(piece.done.fetch_add(1, Ordering::Relaxed));
            counter.charge_row(work)?;
            buffers.row.load(&piece.rows, row);
            match self.leaf.learn(tree, row, piece.labels[row], buffers)? {
                Outcome::Correct => {}
                Outcome::Learned => self.wrong.push(row as u64),
                Outcome::Overflow { id, .. } if is_closed => {
                    tree.store.release(id);
                    self.wrong.push(row as u64);
                }
                Outcome::Overflow { id, update } => {
                    self.leaf.learn_vector(id, update, &buffers.row, buffers.scores.len())?;
                    self.overflows = true;
                    self.wrong.push(row as u64);
                }
            }
            self.learned += 1;
        }
        Ok(())
    }

    /// Returns which rows of the block have come into the sample, place by place, after the first `count` rows of the leaf,
    /// and the number of rows that have reached the leaf then. `states` are those of the generator.
    pub(super) fn sampled(&self, count: usize, states: &[u64], max_size: usize) -> (Vec<Option<usize>>, u64) {
        let mut places = vec![None; self.leaf.sample.len()];
        let mut seen = self.leaf.seen;
        for &row in &self.rows[..count] {
            seen += 1;
            if places.len() < max_size {
                places.push(Some(row));
            } else {
                let place = Random::new(states[row]).below(seen) as usize;
                if place < places.len() {
                    places[place] = Some(row);
                }
            }
        }
        (places, seen)
    }

    /// Puts a row with its class into a place of the sample.
    pub(super) fn put(
        &mut self,
        tree: Shared<'_, T>,
        place: usize,
        row: &RowBuffer<T>,
        label: usize,
    ) -> Result<()> {
        let member = (tree.store.intern(row)?, label as u32);
        if let Some(at) = self.leaf.sample.get_mut(place) {
            let (old, _) = std::mem::replace(at, member);
            tree.store.release(old);
        } else {
            self.leaf.sample.push(member);
        }
        Ok(())
    }
}
