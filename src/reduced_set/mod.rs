//! Turning an expansion into a shorter one (Weston and Bakir, TR-132, 2004).
//!
//! | room | holds |
//! |---|---|
//! | `pursuit` | vectors chosen one after the other, each the one most aligned with what is missing |
//! | `penalised` | vectors chosen by the whole kernel matrix: rank, zero norm, l1, LARS-SVM |
//! | `construction` | new vectors, moved together with their coefficients (compressed SVM, eq. 10) |
//! | `certified` | how far a projection's outputs can be from the machine's, and a cascade that answers where it is certain |
//! | `chunking` | any choice from more vectors than it can hold, a part at a time |
//! | `coding` | what outputs mean |
//! | `threshold` | the intercept re-optimised on training error |
//!
//! A choice gives a [`crate::path::Path`], from which the coefficients of every size are read.
//!
//! [`Reduction`](crate::Reduction) is the short way. Every size of a pursuit:
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
mod penalised;
mod pursuit;
pub mod threshold;

pub use certified::{Cascade, CertainAnswers, Decision, Moments, Projection, StageSize, UNDECIDED, moments};
pub use chunking::{Limits, Reducer, reduce};
pub use coding::Coding;
pub use construction::{
    Answers, Construction, Examples, GradientParams, Loss, Objective, centres, gradient_vectors,
};
pub use penalised::{LEVELS, Method, Norm, select};
pub use pursuit::{Criterion, PursuitParams, Sample, Selection, pursuit};
