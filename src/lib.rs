//! Kernel machines: trained exact and fast on all cores, shrunk to the few vectors that matter, served at the
//! speed of what is left.
//!
//! ```text
//! rows --> svm --> KernelExpansion --> reduced_set --> KernelExpansion --> Evaluator / io
//! ```
//!
//! Everything is a [`KernelExpansion`](expansion::KernelExpansion). See `docs/design.md` in the repository for
//! the layers and the decisions.
//!
//! The estimators ([`Svc`], [`Svr`], [`OneClassSvm`], [`LeastSquares`], [`MatchingPursuit`], [`Reduction`]) are the short way;
//! the modules have every option. A machine that separates a disc from the ring around it, reduced to eight vectors:
//!
//! ```
//! # #[cfg(feature = "reduce")] {
//! use ndarray::Array2;
//! use svmarrow::{Reduction, Svc};
//!
//! let labels: Vec<bool> = (0..200).map(|i| i % 2 == 1).collect();
//! let angle = |i: usize, k: usize| 0.7 * i as f64 + 1.57 * k as f64;
//! let x = Array2::from_shape_fn((200, 2), |(i, k)| (0.5 + (i % 2) as f64) * angle(i, k).sin());
//!
//! let machine = Svc::builder().c(10.0).gamma(1.0).build()?.fit(&x, &labels)?;
//! let small = Reduction::builder(8).build()?.apply(&machine)?;
//! assert_eq!(small.predict(&x)?, labels);
//! # }
//! # Ok::<(), svmarrow::Error>(())
//! ```
//!
//! # Features
//!
//! `explain`, `io`, `online` and `reduce` are on by default. Without them the crate trains and predicts, with fewer dependencies.
//!
//! | feature | adds |
//! |---|---|
//! | `io` | `io`: model files, LIBSVM models, svmlight text; `save` and `load` of the models |
//! | `reduce` | `reduced_set` and [`Reduction`] |
//! | `online` | `perceptron` |
//! | `explain` | `explain`: Shapley values |
//! | `cli` | the program `svmarrow`: LIBSVM's commands without Python |
//! | `papers` | `papers`: methods that only experiments of the papers need; `svm::Tuning`, sizes of the solver |

#![deny(unsafe_code)]
// Parts that only some features use are not dead code in the crate.
#![cfg_attr(
    not(all(
        feature = "explain",
        feature = "io",
        feature = "online",
        feature = "papers",
        feature = "reduce"
    )),
    allow(dead_code, unreachable_pub, unused_imports)
)]

mod argmax;
mod cache;
pub mod context;
pub mod data;
pub mod error;
pub mod estimators;
pub mod expansion;
#[cfg(feature = "explain")]
pub mod explain;
mod fast_gauss;
#[cfg(feature = "io")]
pub mod io;
mod kernel;
pub mod kernels;
pub mod least_squares;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod libsvm;
mod linalg;
pub mod matching_pursuit;
#[doc(hidden)]
pub mod memory;
pub mod multiclass;
mod once;
#[cfg(feature = "papers")]
pub mod papers;
pub mod path;
#[cfg(feature = "online")]
pub mod perceptron;
mod platform;
pub mod probability;
#[doc(hidden)]
pub mod random;
#[cfg(feature = "reduce")]
pub mod reduced_set;
pub mod sequences;
#[doc(hidden)]
pub mod simd;
pub mod svm;

pub use error::{Error, Result};
#[cfg(feature = "reduce")]
pub use estimators::Reduction;
pub use estimators::{LeastSquares, MatchingPursuit, OneClassSvm, Svc, Svr};
pub use kernel::Kernel;
