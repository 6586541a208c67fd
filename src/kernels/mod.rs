//! Kernel functions, their values in tiles, and the two products everything is built on.
//!
//! | file | holds |
//! |---|---|
//! | `pair` | k(x, z) for one pair, in double precision: the oracle |
//! | `pack` | rows of any layout repacked into column panels of one precision |
//! | `bytes` | rows of multiples of one unit, pixels and counts, as bytes |
//! | `standardization` | where rows are moved before they are packed, and how large their numbers get |
//! | `function` | a kernel of the crate, or one that the caller computes in blocks |
//! | `tile` | K(A, B) for blocks of rows: the micro-kernel over panels with the kernel's epilogue |
//! | `gram` | K(X, Z) written out; for fixed vectors Z, packed once, and blocks of rows X that come and go |
//! | `row` | one row as it was given and in the frame |
//! | `pool` | K(x, Z) for one row at a time and vectors Z that come and go |
//! | `product` | K(X, Z) B without ever storing K |
//! | `conditioning_check` | whether kernel values tell rows apart in single precision |
//! | `rounding` | how far a computed kernel value may be from the exact one |
//! | `weights` | expansions of the linear kernel as weights of the columns |
//! | `gradient` | K(X, Z) B with its slopes in Z and B |
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

mod bytes;
mod conditioning_check;
mod evaluator;
mod function;
mod gradient;
mod gram;
mod pack;
mod pair;
mod pool;
mod product;
mod rounding;
mod row;
mod standardization;
mod tile;
mod weights;

pub use crate::kernel::Kernel;
pub(crate) use conditioning_check::check_conditioning;
pub use evaluator::Evaluator;
pub use function::{KernelBlocks, KernelFunction};
pub(crate) use gradient::{Batch, TrainableExpansion, Workspace};
pub(crate) use gram::{PackedVectors, gram_lower};
pub use gram::{diagonal, gram, gram_symmetric};
pub(crate) use pack::packed_bytes;
pub use pair::pair;
pub(crate) use pair::self_value;
pub(crate) use pool::{Formula, PoolWorkspace, VectorPool};
pub(crate) use rounding::{RelativeRounding, rounding};
pub(crate) use row::{RowBuffer, RowWriter};
pub use standardization::Precision;
pub(crate) use standardization::{CoefficientSum, Magnitudes, is_packed_sparse, relative_error_bound};
pub use tile::{KernelRows, Value};
pub use weights::linear_weights;
