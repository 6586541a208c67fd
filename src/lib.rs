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
//! A machine that tells a disc from the ring around it, compressed to eight vectors:
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::expansion::KernelExpansion;
//! use svmarrow::kernels::{Evaluator, Kernel};
//! use svmarrow::path::path_coefficients;
//! use svmarrow::reduced_set::{PursuitParams, pursuit};
//! use svmarrow::svm::{Classification, SvmParams, fit_classifier};
//!
//! let labels: Vec<usize> = (0..200).map(|i| i % 2).collect();
//! let angle = |i: usize, k: usize| 0.7 * i as f64 + 1.57 * k as f64;
//! let x = Array2::from_shape_fn((200, 2), |(i, k)| (0.5 + labels[i] as f64) * angle(i, k).sin());
//! let (rows, kernel) = (Rows::try_from(&x)?, Kernel::Rbf { gamma: 1.0 });
//!
//! let task = Classification::new(&labels, 2, &[10.0; 200]);
//! let fit = fit_classifier(kernel, rows, &task, &SvmParams::default(), Context::default())?;
//! let machine = KernelExpansion::new(kernel, rows.gather(&fit.support)?, fit.coefficients, fit.intercepts)?;
//!
//! let path = pursuit(&machine.view(), None, &PursuitParams::new(8), Context::default())?;
//! let (kept, coefficients) = (machine.view().vectors.gather(&path.order)?, path_coefficients(&path.view(), 8)?);
//! let small = KernelExpansion::new(kernel, kept, coefficients, machine.intercepts)?;
//! let f = Evaluator::new(&small.view())?.evaluate(rows, Context::default())?;
//! assert!(f.column(0).iter().zip(&labels).all(|(&f, &class)| (f > 0.0) == (class == 1)));
//! # Ok::<(), svmarrow::Error>(())
//! ```

#![deny(unsafe_code)]

mod cache;
pub mod context;
pub mod data;
pub mod error;
pub mod expansion;
pub mod explain;
pub mod io;
mod kernel;
pub mod kernels;
mod largest;
pub mod least_squares;
mod linalg;
pub mod matching_pursuit;
pub mod memory;
pub mod multiclass;
pub mod path;
pub mod perceptron;
pub mod random;
pub mod reduced_set;
pub mod simd;
pub mod svm;

pub use error::{Error, Result};
