//! Positive definite kernels of objects that are no rows of numbers: series of vectors, and strings.
//!
//! | kernel | objects | source |
//! |---|---|---|
//! | [`GlobalAlignment`] | series of vectors, of any lengths | Cuturi (2011), Fast global alignment kernels |
//! | [`Subsequence`] | strings of symbols | Lodhi and others (2002), Text classification using string kernels |
//!
//! Both are normalized, k(x, y) / sqrt(k(x, x) k(y, y)). A kernel packs objects into a [`Block`], which holds their
//! values with themselves. Kernel values are then computed between blocks:
//!
//! ```
//! use ndarray::{Array2, array};
//! use svmarrow::context::Context;
//! use svmarrow::sequences::GlobalAlignment;
//!
//! let series = [array![[0.0], [1.0], [2.0]], array![[0.0], [0.0], [1.0], [2.0]], array![[5.0], [4.0]]];
//! let views: Vec<_> = series.iter().map(|series| series.view()).collect();
//! let kernel = GlobalAlignment::builder().sigma(2.0).build()?;
//! let block = kernel.prepare(&views, Context::default())?;
//! let values = block.gram_symmetric(Context::default())?;
//! assert_eq!(values[(0, 0)], 1.0);
//! assert!(values[(0, 1)] > values[(0, 2)]);
//! // The values of a part of the block have the same bits.
//! let part = block.select(&[2, 0])?.gram(&block, Context::default())?;
//! assert_eq!(part.row(0), values.row(2));
//! # Ok::<(), svmarrow::Error>(())
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `block` | packed objects, and the matrices of their kernel values |
//! | `scaled` | positive numbers beyond the range of doubles |
//! | `alignment`, `subsequence` | the kernels |
//!
//! Invariant: a value depends on its two objects alone, so it has the same bits in any block and for any number of threads, and
//! matrices are exactly symmetric.

mod alignment;
mod block;
mod scaled;
mod subsequence;

pub use alignment::{GlobalAlignment, GlobalAlignmentBuilder};
pub use block::{Block, SequenceKernel};
pub use subsequence::{MAX_SUBSEQUENCE_LENGTH, Subsequence, SubsequenceBuilder};
