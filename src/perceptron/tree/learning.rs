//! How a leaf learns from a row, without what follows from it for the tree: the sample of the leaf, and its split.
//!
//! Invariant: a leaf that has learned has at most B vectors; a row that would be one more is left to the caller. Cost: B kernel
//! values, and O(d) for a mistake.

use super::node::Leaf;
use super::params::TreeParams;
use super::rows::Store;
use crate::error::Result;
use crate::kernels::{Formula, PoolWorkspace, RowBuffer};
use crate::perceptron::params::check_values;
use crate::perceptron::update::Update;
use crate::simd::Real;

/// The parts of a tree that its leaves share while they learn.
pub(super) struct Shared<'a, T> {
    pub(super) params: &'a TreeParams,
    pub(super) formula: &'a Formula<T>,
    pub(super) store: &'a Store<T>,
}

impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<'_, T> {}

/// The buffers of a thread that learns from a row at a time.
pub(super) struct Buffers<T> {
    pub(super) row: RowBuffer<T>,
    pub(super) workspace: PoolWorkspace<T>,
    pub(super) scores: Vec<f64>,
}

/// The effect of a row on a leaf.
pub(super) enum Outcome {
    /// The answer was right.
    Correct,
    /// The leaf has learned from a mistake.
    Learned,
    /// The row is a mistake and would be a vector more than the budget. It is in the store.
    Overflow { id: u32, update: Update },
}

impl<T: Real> Leaf<T> {
    /// Answers and learns from the row in the buffers, which has this number in its piece.
    pub(super) fn learn(
        &mut self,
        tree: Shared<'_, T>,
        number: usize,
        label: usize,
        buffers: &mut Buffers<T>,
    ) -> Result<Outcome> {
        let Buffers { row, workspace, scores } = buffers;
        self.scores(tree.formula, row, workspace, scores);
        let double = size_of::<T>() == size_of::<f64>();
        check_values(&tree.params.kernel, number, scores.iter().copied(), double)?;
        let (update, margin) = Update::new(scores, label);
        self.age += 1;
        if margin > 0.0 {
            return Ok(Outcome::Correct);
        }
        let id = tree.store.intern(row)?;
        if let Some(slot) = self.ids.iter().position(|&known| known == id) {
            // The leaf already has a reference to the row.
            tree.store.release(id);
            self.change(slot, update, scores.len());
        } else if self.ids.len() >= tree.params.budget {
            return Ok(Outcome::Overflow { id, update });
        } else {
            self.learn_vector(id, update, row, scores.len())?;
        }
        Ok(Outcome::Learned)
    }

    /// Adds a row of the store to the vectors, with the coefficients of an update.
    pub(super) fn learn_vector(
        &mut self,
        id: u32,
        update: Update,
        row: &RowBuffer<T>,
        outputs: usize,
    ) -> Result<()> {
        self.push(id, row, std::iter::repeat_n(0.0, outputs))?;
        self.change(self.ids.len() - 1, update, outputs);
        Ok(())
    }

    /// Adds an update to the coefficients of a vector.
    fn change(&mut self, slot: usize, update: Update, outputs: usize) {
        for (output, value) in update.coefficients() {
            self.add(slot * outputs + output, value);
        }
    }
}
