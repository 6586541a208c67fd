//! The coding of classes by the outputs of a machine.
//!
//! Cost: O(1).

/// The meaning of the outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Numbers: no labels.
    Values,
    /// One output, positive for class 1.
    Sign,
    /// An output for every class, the largest wins.
    Largest,
    /// An output for every pair a < b of classes in the order (0, 1), (0, 2), ..., positive for a.
    Pairs,
}

impl Coding {
    /// Returns the number of classes that q outputs distinguish, `None` for values.
    pub fn classes(self, q: usize) -> Option<usize> {
        match self {
            Self::Values => None,
            Self::Sign => Some(2),
            Self::Largest => Some(q),
            Self::Pairs => Some((1 + 8 * q).isqrt().div_ceil(2)),
        }
    }
}
