//! Online learners: perceptrons in kernel space, with and without a budget, and trees of them.
//!
//! A row is answered, then learnt from if the answer was wrong: order matters and is the caller's. All classes share
//! one pool of vectors. With two classes there is one output, positive for class 1; with more there is one output a
//! class, the largest answers, and a mistake adds the row to its own class and takes it from the rival's (Crammer and
//! Singer, Ultraconservative online algorithms, JMLR 3, 2003).
//!
//! | file | holds |
//! |---|---|
//! | `kernel` | the kernel perceptron and the loop over a stream |
//! | `budget` | what leaves when the budget is spent: oldest, Forgetron, margin, random, tighter budget |
//! | `projection` | Projectron and Projectron++ |
//! | `voted` | the votes of all hypotheses of a pass |
//! | `tree` | perceptron trees |
//! | `watch` | looks at the monitor by the work done |
//!
//! Invariant: a stream in pieces, saved and loaded between them, gives the model of one pass bit for bit. So a state
//! holds every number that a later row depends on, and nothing is estimated from the rows of a call.

mod budget;
mod kernel;
mod projection;
pub mod tree;
mod voted;
mod watch;

pub use kernel::{PerceptronParams, PerceptronState, Policy, partial_fit};
pub use voted::voted;

/// The rival of `label`: the other output for two classes (there is one, so `None`), else the largest other one; and
/// the margin by which the row's own class wins.
pub(crate) fn margin(scores: &[f64], label: usize) -> (f64, Option<usize>) {
    if scores.len() == 1 {
        return (if label == 1 { scores[0] } else { -scores[0] }, None);
    }
    let mut rival = usize::from(label == 0);
    for (class, &score) in scores.iter().enumerate() {
        if class != label && score > scores[rival] {
            rival = class;
        }
    }
    (scores[label] - scores[rival], Some(rival))
}

/// What a mistake on a row adds: its coefficient for each output.
pub(crate) fn direction(label: usize, rival: Option<usize>) -> impl Iterator<Item = (usize, f64)> {
    let own = match rival {
        None => (0, if label == 1 { 1.0 } else { -1.0 }),
        Some(_) => (label, 1.0),
    };
    std::iter::once(own).chain(rival.map(|rival| (rival, -1.0)))
}

/// Number of outputs for so many classes.
pub(crate) fn outputs(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}
