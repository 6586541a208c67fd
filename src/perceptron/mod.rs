//! Online learners: perceptrons in kernel space, with and without a budget, and trees of them.
//!
//! The learner answers each row and then learns from it if the answer was wrong, so the order of the rows matters. All
//! classes share one pool of vectors (Crammer and Singer, Ultraconservative online algorithms, JMLR 3, 2003).
//!
//! | file | holds |
//! |---|---|
//! | `params` | parameters of a stream, and the checks of its pieces |
//! | `update` | answers, and the update of a mistake |
//! | `learner` | the pool, and the state between two pieces |
//! | `stream` | the kernel perceptron: the loop over a piece |
//! | `budget` | replacement in a full pool: oldest, Forgetron, margin, random, tighter budget |
//! | `projection` | Projectron and Projectron++ |
//! | `voted` | the votes of all hypotheses of a pass |
//! | `tree` | perceptron trees |
//!
//! Invariant: a stream in pieces, saved and loaded between them, gives the model of one pass bit for bit. A state
//! therefore holds every number that a later row depends on, and no number depends on where a piece ends.
//!
//! A stream in two pieces:
//!
//! ```
//! use ndarray::{Array2, s};
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::perceptron::{PerceptronParams, PerceptronState, Policy, partial_fit};
//!
//! let x = Array2::from_shape_fn((60, 1), |(i, _)| (0.7 * i as f64).sin());
//! let labels: Vec<usize> = x.iter().map(|x| usize::from(*x > 0.0)).collect();
//! let params = PerceptronParams::new(Kernel::Rbf { gamma: 1.0 }, 2, Policy::Unlimited);
//! let rows = |start: usize| Rows::try_from(x.slice(s![start..start + 30, ..]));
//! let state = PerceptronState::new(&params, rows(0)?, 0)?;
//! let (state, _) = partial_fit(&params, state, rows(0)?, &labels[..30], Context::default())?;
//! let (state, mistakes) = partial_fit(&params, state, rows(30)?, &labels[30..], Context::default())?;
//! assert_eq!(state.seen, 60);
//! assert!(mistakes.len() < 10);
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod budget;
mod learner;
mod params;
mod projection;
mod stream;
pub mod tree;
mod update;
mod voted;

pub use learner::PerceptronState;
pub use params::{PerceptronParams, Policy};
pub use stream::partial_fit;
pub use voted::voted;
