//! Explanations of kernel expansions.
//!
//! | file | contains |
//! |---|---|
//! | `shapley` | exact Shapley values of expansions whose kernel is a product over columns |
//! | `quadrature` | nodes and weights of Gauss and Legendre |
//!
//! The values of a sample add up to its output:
//!
//! ```
//! use ndarray::arr2;
//! use svmarrow::context::Context;
//! use svmarrow::data::Rows;
//! use svmarrow::expansion::KernelExpansion;
//! use svmarrow::explain::{Game, ShapleyParams, shapley_values};
//! use svmarrow::kernels::{Evaluator, Kernel};
//!
//! let vectors = arr2(&[[0.0, 1.0], [1.0, 0.0]]);
//! let f = KernelExpansion::new(Kernel::Rbf { gamma: 1.0 }, vectors.into(), arr2(&[[1.0], [-1.0]]), vec![0.5])?;
//! let (x, background) = (arr2(&[[0.2, 0.9]]), arr2(&[[0.5, 0.5], [0.0, 0.0]]));
//! let params = ShapleyParams::new(Game::Interventional, &[0, 1]);
//! let (rows, context) = (Rows::try_from(&x)?, Context::default());
//! let found = shapley_values(&f.view(), rows, Rows::try_from(&background)?, &params, context)?;
//! let output = Evaluator::new(&f.view())?.evaluate(rows, context)?[[0, 0]];
//! assert!((found.values.sum() + found.base[0] - output).abs() < 1e-12);
//! # Ok::<(), svmarrow::Error>(())
//! ```

mod quadrature;
mod shapley;

pub use shapley::{Game, Shapley, ShapleyParams, shapley_values};
