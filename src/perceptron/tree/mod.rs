//! Perceptron trees (Ukkonen and Arias, Example-dependent basis vector selection for kernel-based classifiers, 2010).
//!
//! Inner nodes send a row left or right, leaves are perceptrons over at most B vectors. If a mistake
//! adds a vector to a leaf that has B, the leaf is split: a branching rule is chosen, and each child begins with at most C
//! of the leaf's vectors. The cost of an answer is therefore a path and at most B kernel values for any number of
//! vectors of the tree. All rows of a tree (vectors, branching rows, samples of leaves) are in one store, equal ones once.
//!
//! | file | holds |
//! |---|---|
//! | `rows` | the store of rows |
//! | `node` | branching rules, leaves, the path of a row |
//! | `params`, `stream` | parameters; a piece of a stream, on one thread or several |
//! | `grow` | algorithm 2: learning from a row, splitting a leaf |
//! | `learning` | what a leaf learns from a row |
//! | `concurrent`, `growing` | learning on several threads; a leaf meanwhile |
//! | `split` | algorithms 3 and 4: partitions and selections |
//! | `partition` | hyperplanes, medians, entropies |
//! | `strategy` | their names |
//! | `program` | the quadratic program of a selection and the exact solution of its relaxation |
//! | `selection` | rounding, and SMO steps for many vectors |
//! | `convert` | an expansion as a tree of local ones |
//! | `state` | a tree as plain arrays |
//! | `predictor` | prediction |
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
//! let (state, _) = partial_fit(&params, &TreeState::new(rows, 1, 0), rows, &labels, context)?;
//! let routes = TreePredictor::new(params.kernel, &state, false)?.routes(rows, context)?;
//! assert!(routes.iter().all(|route| route.kernel_values <= 10));
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod concurrent;
mod convert;
mod grow;
mod growing;
mod learning;
mod node;
mod params;
mod partition;
mod predictor;
mod program;
mod rows;
mod selection;
mod split;
mod state;
mod strategy;
mod stream;

pub use concurrent::MAX_SPLIT_BYTES;
pub use convert::{ConvertParams, from_expansion};
pub use node::Route;
pub use params::TreeParams;
pub use predictor::TreePredictor;
pub use program::{Program, box_budget_program};
pub use state::TreeState;
pub use strategy::{Partition, Selection, Strategy};
pub use stream::partial_fit;
