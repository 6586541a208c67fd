//! Kernel matching pursuit: f(x) = sum_n a_n g_n(x) with few functions g_n out of a dictionary, chosen one after the
//! other so that a loss on the training rows falls (Vincent and Bengio, Kernel Matching Pursuit, Machine Learning 48,
//! 2002). Not a reduction of a machine but a learner: only the functions' values on the training rows matter, so kernels
//! need be neither symmetric nor positive definite, and functions need be no kernels.
//!
//! | file | holds |
//! |---|---|
//! | `task` | the learning task and its parameters |
//! | `source` | sources of the functions' values: kernels around points, given columns, the caller |
//! | `dictionary` | the values on the training rows, stored or drawn at each step |
//! | `basis` | an orthonormal basis of the chosen functions |
//! | `orthogonal` | squared loss with back-fitting or pre-fitting (fig. 3) |
//! | `state` | the fitted part of such a pursuit |
//! | `levels` | all functions as candidates, in levels that are updated every few steps |
//! | `column_cache` | columns of best_candidates functions, computed together |
//! | `descent` | any loss: basic pursuit (fig. 1) and back-fitting every few steps (fig. 4) |
//! | `backfit` | the best coefficients for any loss |
//! | `loss` | losses, and the search along one function |
//! | `curve` | a finished pursuit: losses along the path, early stopping |
//!
//! Several outputs choose their functions together (Weston and Bakir, TR-132, eq. 13). Row weights w are folded into the
//! values: with s = sqrt(w), the dictionary holds s d and the targets are s y.
//!
//! [`MatchingPursuit`](crate::MatchingPursuit) is the short way:
//!
//! ```
//! use ndarray::Array2;
//! use svmarrow::MatchingPursuit;
//!
//! let x = Array2::from_shape_fn((60, 1), |(i, _)| 0.1 * i as f64);
//! let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
//! let model = MatchingPursuit::builder(8).gamma(1.0).build()?.fit(&x, &y)?;
//! assert!(model.predict(&x)?.iter().zip(&y).all(|(f, y)| (f - y).abs() < 0.1));
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod backfit;
mod basis;
mod column_cache;
mod curve;
mod descent;
mod dictionary;
mod levels;
mod loss;
mod orthogonal;
mod source;
mod state;
mod task;

pub use column_cache::MAX_CACHED_COLUMN_BYTES;
pub use curve::{Coefficients, Curve, Fit};
pub use dictionary::DEFAULT_SAMPLE_SIZE;
pub use loss::{BuiltIn, Derivative, Loss};
pub use source::{Columns, Functions, KernelFunctions, RowSet};
pub use task::{DEFAULT_DICTIONARY_BYTES, MatchingParams, Measure, Storage, Task, Validation, Variant};

use crate::context::{Context, MAX_THREADS_AWAKE, Stop};
use crate::error::{Error, Result};
use dictionary::Dictionary;

/// Runs a pursuit.
///
/// Cost O(functions x candidates x rows); memory functions x rows numbers, and the dictionary as far as its storage allows.
///
/// # Errors
/// [`Error::Param`], [`Error::Shape`] and
/// [`Error::NotFinite`] for inputs that do not fit; any error of a dictionary part.
pub fn matching_pursuit(task: &Task<'_>, params: &MatchingParams, ctx: Context<'_>) -> Result<Fit> {
    task.check()?;
    params.check(task)?;
    match Dictionary::new(task, params, ctx) {
        Err(Error::Stopped(interruption)) => {
            let reason = interruption.into();
            Ok(Fit::nothing(task.outputs(), Stop { reason, iterations: 0, gap: f64::NAN }))
        }
        Err(error) => Err(error),
        Ok(dictionary) if task.squared && params.variant != Variant::Basic => {
            ctx.with_threads_awake(MAX_THREADS_AWAKE, || orthogonal::fit(task, params, &dictionary, ctx))
        }
        Ok(dictionary) => descent::fit(task, params, &dictionary, ctx),
    }
}
