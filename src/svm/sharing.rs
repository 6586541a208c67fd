//! Which kernel rows the unfinished machines of a fit still have in common: rows against columns that none of them sees
//! any more can be let go.

use super::machine::Machine;
use crate::error::Result;
use crate::memory::try_vec;

/// How many unfinished machines see both of two segments.
pub(super) struct Sharing {
    segments: usize,
    counts: Vec<u32>,
}

impl Sharing {
    pub(super) fn new(machines: &[Machine<'_>], segments: usize) -> Result<Self> {
        let mut sharing = Self { segments, counts: try_vec![0; segments * segments]? };
        for machine in machines {
            sharing.add(machine, 1);
        }
        Ok(sharing)
    }

    fn add(&mut self, machine: &Machine<'_>, change: i32) {
        for a in machine.segments() {
            for b in machine.segments() {
                let count = &mut self.counts[a * self.segments + b];
                *count = count.saturating_add_signed(change);
            }
        }
    }

    /// Counts a machine no longer.
    pub(super) fn leave(&mut self, machine: &Machine<'_>) {
        self.add(machine, -1);
    }

    /// How many see both.
    pub(super) fn count(&self, a: usize, b: usize) -> u32 {
        self.counts[a * self.segments + b]
    }

    /// Whether no two machines see the same two segments.
    pub(super) fn is_single(&self) -> bool {
        (0..self.segments).all(|a| (0..a).all(|b| self.count(a, b) <= 1))
    }
}
