//! Kernel functions, tiles of their values, and the products that learners and predictions are built on.
//!
//! | file | holds |
//! |---|---|
//! | `pair` | k(x, z) for one pair in double precision: the oracle of the tests |
//! | `function` | the kernel of a fit: one of the crate's, or a user-defined function of blocks |
//! | `standardization` | the translation and scale of rows before they are packed |
//! | `overflow_check` | magnitudes of rows and kernel values, and whether a precision suffices for them |
//! | `conditioning_check` | whether distances between rows survive rounding |
//! | `rounding` | bounds for the rounding errors of kernel values |
//! | `prepared` | training rows checked, standardized and measured once |
//! | `pack` | rows of any layout in column panels and row blocks of one precision |
//! | `bytes` | rows of multiples of one unit (pixels, counts) as bytes |
//! | `distances` | squared distances of nearly equal rows, which products would cancel |
//! | `tile` | K(A, B) for blocks of rows against panels; rows of kernel values for solvers |
//! | `gram` | kernel matrices, and values of packed vectors Z for blocks of rows X |
//! | `product` | K(X, Z) B without the matrix K |
//! | `weights` | expansions of the linear kernel as weights of the columns |
//! | `evaluator` | predictions: the passes that compute the outputs of an expansion |
//! | `row` | one row as given and standardized |
//! | `pool` | K(x, Z) for one row at a time and vectors Z that are added and replaced |
//! | `batch` | dense rows of a gradient step |
//! | `gradient` | K(X, Z) B with its gradient in Z, B and scales of the columns |
//! | `trainable_panel` | a panel of vectors that a gradient moves |
//!
//! K(X, Z) B without and with the matrix K:
//!
//! ```
//! use ndarray::arr2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::expansion::KernelExpansion;
//! use svmarrow::kernels::{Evaluator, Kernel, pair};
//!
//! let (kernel, vectors) = (Kernel::Rbf { gamma: 0.5 }, arr2(&[[0.0, 1.0], [1.0, 0.0]]));
//! let f = KernelExpansion::new(kernel, vectors.clone().into(), arr2(&[[1.0], [2.0]]), vec![0.0])?;
//! let rows = Rows::try_from(&vectors)?;
//! let outputs = Evaluator::new(&f.view())?.evaluate(rows, Context::default())?;
//! let by_hand = pair(&kernel, rows, 0, rows, 0) + 2.0 * pair(&kernel, rows, 0, rows, 1);
//! assert!((outputs[[0, 0]] - by_hand).abs() < 1e-12);
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod batch;
mod bytes;
mod conditioning_check;
mod distances;
mod evaluator;
mod function;
mod gradient;
mod gram;
mod overflow_check;
mod pack;
mod pair;
mod pool;
mod prepared;
mod product;
mod rounding;
mod row;
mod sparse_panel;
mod standardization;
mod tile;
mod trainable_panel;
mod weights;

pub use crate::kernel::{Kernel, Smoothness};
pub(crate) use batch::Batch;
pub(crate) use conditioning_check::check_conditioning;
pub use evaluator::{Evaluation, Evaluator, PackedExpansion, Partial};
pub use function::{KernelBlocks, KernelFunction};
pub(crate) use gradient::{TrainableExpansion, Workspace};
pub(crate) use gram::{PackedVectors, gram_lower};
pub use gram::{diagonal, gram, gram_symmetric};
pub(crate) use overflow_check::Magnitudes;
pub use overflow_check::Precision;
pub(crate) use pack::packed_bytes;
pub use pair::pair;
pub(crate) use pair::self_value;
pub use pool::MAX_LISTED_FEATURES;
pub(crate) use pool::{Formula, PoolWorkspace, VectorPool};
pub(crate) use prepared::{PreparedRows, copied_bytes};
pub(crate) use rounding::{RelativeRounding, relative_error_bound, rounding};
pub(crate) use row::{RowBuffer, RowWriter};
pub(crate) use standardization::{CoefficientSum, Standardization, is_packed_sparse};
pub use tile::{KernelRows, Value};
pub(crate) use tile::{MIN_TILE_ROWS, rows_per_tile};
pub(crate) use trainable_panel::panel_zeros;
pub use weights::linear_weights;
