//! Estimators: each solver of the crate behind a builder, a `fit` and a fitted model.
//!
//! | estimator | fits | fitted model |
//! |---|---|---|
//! | [`Svc`] | C-support vector classification | [`Classifier`] |
//! | [`Svr`] | epsilon-support vector regression | [`Regressor`] |
//! | [`OneClassSvm`] | the support of a distribution | [`Detector`] |
//! | [`LeastSquares`] | regularized least squares, exact | [`Regressor`], [`Classifier`] |
//! | [`MatchingPursuit`] | few kernel functions, chosen greedily | [`Regressor`], [`Classifier`] |
//! | [`Reduction`] | nothing: it shortens any of the models | the same model with fewer vectors |
//!
//! Each `build` checks the parameters, each `fit` checks the samples. Samples are anything that converts to
//! rows ([`IntoRows`]): `&Array2<f64>`, an `ArrayView2` of `f64`, `f32` or `u8`, a
//! [`CsrView`](crate::data::CsrView). `fit` and `predict` use the installed rayon pool; `fit_in` and the other functions that
//! end in `_in` take a [`Context`](crate::context::Context) instead, with a monitor or a single thread. Defaults are scikit-learn's.
//!
//! The estimators add no algorithm. Options that they do not have (weights, other losses, codes, warm starts, leave-one-out
//! values) are those of the modules below them: [`svm`](crate::svm), [`least_squares`](crate::least_squares),
//! [`matching_pursuit`](crate::matching_pursuit) and [`reduced_set`](crate::reduced_set).
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::Svc;
//!
//! // A disc and the ring around it.
//! let labels: Vec<&str> = (0..200).map(|i| if i % 2 == 0 { "disc" } else { "ring" }).collect();
//! let angle = |i: usize, k: usize| 0.7 * i as f64 + 1.57 * k as f64;
//! let x = Array2::from_shape_fn((200, 2), |(i, k)| (0.5 + (i % 2) as f64) * angle(i, k).sin());
//!
//! let model = Svc::builder().c(10.0).gamma(1.0).build()?.fit(&x, &labels)?;
//! assert_eq!(model.predict(&x)?, labels);
//! # Ok::<(), svmarrow::Error>(())
//! ```

#[cfg(feature = "io")]
mod files;
mod kernel_choice;
mod least_squares;
mod matching_pursuit;
mod model;
#[cfg(feature = "reduce")]
mod reduction;
mod svm;

pub use least_squares::{LeastSquares, LeastSquaresBuilder};
pub use matching_pursuit::{MatchingPursuit, MatchingPursuitBuilder};
pub use model::{Classifier, Detector, Model, Regressor, Strategy};
#[cfg(feature = "reduce")]
pub use reduction::{Reduction, ReductionBuilder};
pub use svm::{OneClassSvm, OneClassSvmBuilder, Svc, SvcBuilder, Svr, SvrBuilder};

use crate::data::{IntoRows, Rows};
use crate::error::Result;

/// Converts samples to rows and checks that all values are finite.
fn finite_rows<'a>(x: impl IntoRows<'a>) -> Result<Rows<'a>> {
    let rows = x.into_rows()?;
    rows.check_finite("X")?;
    Ok(rows)
}
