//! Perceptron trees (Ukkonen and Arias, Example-dependent basis vector selection for kernel-based classifiers, 2010).
//!
//! Inner nodes send a row left or right, leaves are perceptrons over at most B vectors. A leaf that a mistake brings
//! above B is split: a branching rule is found, and each child begins with at most C of the leaf's vectors. So an
//! answer costs a path and at most B kernel values, however many vectors the tree has. All rows that a tree remembers
//! (vectors, branching rows, samples of leaves) lie in one store, equal ones once.
//!
//! | file | holds |
//! |---|---|
//! | `rows` | the store |
//! | `node` | branching rules, leaves, the way of a row |
//! | `grow` | algorithm 2: a row is learnt, a leaf overflows |
//! | `split` | algorithms 3 and 4: partitions and selections |
//! | `strategy` | their names |
//! | `program` | the quadratic program of a selection |
//! | `interior` | its relaxed form, exactly |
//! | `selection` | its rounding, and steps towards it for many vectors |
//! | `convert` | any expansion as a tree of local ones |
//! | `state` | a tree as plain arrays |
//! | `predictor` | a tree made ready for prediction |
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::perceptron::tree::{Strategy, TreeParams, TreePredictor, TreeState, partial_fit};
//!
//! let x = Array2::from_shape_fn((300, 1), |(i, _)| 6.0 * (0.7 * i as f64).sin());
//! let labels: Vec<usize> = x.iter().map(|x| usize::from(x.sin() > 0.0)).collect();
//! let (rows, context) = (Rows::try_from(&x)?, Context::default());
//! let mut params = TreeParams::new(Kernel::Rbf { gamma: 1.0 }, 2, Strategy::JointLinear);
//! (params.budget, params.child_budget) = (10, 5);
//! let (state, _) = partial_fit(&params, &TreeState::new(rows, 1, 0)?, rows, &labels, context)?;
//! let routes = TreePredictor::new(params.kernel, &state, false)?.routes(rows, context)?;
//! assert!(routes.iter().all(|route| route.kernel_values <= 10));
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod convert;
mod grow;
mod interior;
mod node;
mod predictor;
mod program;
mod rows;
mod selection;
mod split;
mod state;
mod strategy;

pub use convert::{ConvertParams, from_expansion};
pub use grow::{TreeParams, partial_fit};
pub use interior::box_budget_program;
pub use node::Route;
pub use predictor::TreePredictor;
pub use program::Program;
pub use state::TreeState;
pub use strategy::{Partition, Selection, Strategy};
