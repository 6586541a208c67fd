//! Reduction of an expansion to a shorter one (Weston and Bakir, TR-132, 2004).
//!
//! | module | contents |
//! |---|---|
//! | `pursuit` | vectors selected one after the other, each the one most aligned with the residual |
//! | `matrix` | vectors selected by means of the whole kernel matrix: a basis of their span, or a [`Method`] of your own |
//! | `construction` | constructed vectors, optimized together with their coefficients (compressed SVM, eq. 10) |
//! | `certified` | bounds on the distance of a projection's outputs from the machine's, and an exact cascade |
//! | `chunking` | selection from more vectors than fit in memory, a chunk at a time |
//! | `coding` | the meaning of outputs |
//! | `threshold` | the intercept optimized on the training error |
//!
//! A selection returns a [`crate::path::Path`], which has the coefficients of every size.
//!
//! [`Reduction`](crate::Reduction) is the simple interface. Every size of a pursuit:
//!
//! ```
//! use ndarray::{Array2, arr2};
//! use svmarrow::context::Context;
//! use svmarrow::expansion::KernelExpansion;
//! use svmarrow::kernels::Kernel;
//! use svmarrow::reduced_set::{PursuitParams, pursuit};
//!
//! let vectors = Array2::from_shape_fn((50, 1), |(i, _)| 0.1 * i as f64);
//! let coefficients = vectors.mapv(f64::cos);
//! let f = KernelExpansion::new(Kernel::Rbf { gamma: 1.0 }, vectors.into(), coefficients, vec![0.0])?;
//! let path = pursuit(&f.view(), None, &PursuitParams::new(8), Context::default())?;
//! assert_eq!(path.order.len(), 8);
//! assert!(path.residual_norms[8] < 0.05 * path.residual_norms[0]);
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod certified;
mod chunking;
mod coding;
mod construction;
mod matrix;
mod pursuit;
pub mod threshold;

pub use certified::{Cascade, CertainAnswers, Decision, Moments, Projection, StageSize, UNDECIDED, moments};
pub use chunking::{Limits, Reducer, reduce};
pub use coding::Coding;
pub use construction::{
    Answers, Construction, Examples, GradientParams, Loss, Objective, centres, gradient_vectors,
};
pub(crate) use matrix::{Coefficients, basis};
pub use matrix::{Method, Order, Problem, Rank};
pub use pursuit::{Criterion, PursuitParams, Sample, Selection, pursuit};
