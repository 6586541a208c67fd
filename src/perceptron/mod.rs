//! Online learners: perceptrons in kernel space, with and without a budget, and trees of them.
//!
//! A row is answered, then learnt from if the answer was wrong: order matters and is the caller's. All classes share
//! one pool of vectors (Crammer and Singer, Ultraconservative online algorithms, JMLR 3, 2003).
//!
//! | file | holds |
//! |---|---|
//! | `params` | what is fixed along a stream, and what its pieces must keep to |
//! | `update` | answers, and what a mistake adds |
//! | `learner` | the pool and its numbers, kept between two pieces |
//! | `stream` | the kernel perceptron: the loop over a piece |
//! | `budget` | what leaves when the budget is spent: oldest, Forgetron, margin, random, tighter budget |
//! | `projection` | Projectron and Projectron++ |
//! | `factor` | projections onto the span of a few vectors |
//! | `voted` | the votes of all hypotheses of a pass |
//! | `tree` | perceptron trees |
//!
//! Invariant: a stream in pieces, saved and loaded between them, gives the model of one pass bit for bit. So a state
//! holds every number that a later row depends on, and nothing is estimated from the rows of a call.
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
mod factor;
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
