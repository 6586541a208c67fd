//! Kernel rows that unfinished machines have in common: rows against columns that no unfinished machine has are removed
//! from the caches.

use super::machine::Machine;
use crate::error::Result;
use crate::memory::try_vec;

/// The number of unfinished machines with both of two class blocks.
pub(super) struct SharedBlocks {
    class_blocks: usize,
    counts: Vec<u32>,
}

impl SharedBlocks {
    /// Counts the pairs of class blocks of all machines.
    pub(super) fn new(machines: &[Machine<'_>], class_blocks: usize) -> Result<Self> {
        let mut shared = Self { class_blocks, counts: try_vec![0; class_blocks * class_blocks]? };
        for machine in machines {
            shared.add(machine, 1);
        }
        Ok(shared)
    }

    fn add(&mut self, machine: &Machine<'_>, change: i32) {
        for a in machine.class_blocks() {
            for b in machine.class_blocks() {
                let count = &mut self.counts[a * self.class_blocks + b];
                *count = count.saturating_add_signed(change);
            }
        }
    }

    /// Removes a machine that has ended.
    pub(super) fn remove(&mut self, machine: &Machine<'_>) {
        self.add(machine, -1);
    }

    /// Returns the number of unfinished machines with both class blocks.
    pub(super) fn count(&self, a: usize, b: usize) -> u32 {
        self.counts[a * self.class_blocks + b]
    }

    /// Returns whether two machines have the same two class blocks.
    pub(super) fn has_shared_pair(&self) -> bool {
        (0..self.class_blocks).any(|a| (0..a).any(|b| self.count(a, b) > 1))
    }
}
