//! Kernel functions, their values in tiles, and the two products everything is built on.
//!
//! | file | holds |
//! |---|---|
//! | `pair` | k(x, z) for one pair, in double precision: the oracle |
//! | `pack` | rows of any layout repacked into column panels of one precision |
//! | `function` | a kernel of the crate, or one that the caller computes in blocks |
//! | `tile` | K(A, B) for blocks of rows: the micro-kernel over panels with the kernel's epilogue |
//! | `gram` | K(X, Z) written out; for fixed vectors Z, packed once, and blocks of rows X that come and go |
//! | `pool` | K(x, Z) for one row at a time and vectors Z that come and go |
//! | `product` | K(X, Z) B without ever storing K |
//! | `rounding` | how far a computed kernel value may be from the exact one |
//! | `slope` | K(X, Z) B with its slopes in Z and B |

mod function;
mod gram;
mod pack;
mod pair;
mod pool;
mod product;
mod rounding;
mod slope;
mod tile;

pub use crate::kernel::Kernel;
pub use function::{KernelBlocks, KernelFunction};
pub(crate) use gram::{PackedVectors, gram_lower};
pub use gram::{diagonal, gram, gram_symmetric};
pub use pack::packed_bytes;
pub use pair::pair;
pub(crate) use pool::{Formula, RowBuffer, RowWriter, VectorPool, self_value};
pub use product::Evaluator;
pub(crate) use rounding::{RelativeRounding, growth, rounding};
pub(crate) use slope::{Batch, MovingExpansion, Workspace};
pub use tile::{KernelRows, Precision, Value};
