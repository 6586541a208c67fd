//! Explanations of kernel expansions.
//!
//! | file | contains |
//! |---|---|
//! | `shapley` | exact Shapley values of expansions whose kernel is a product over columns |
//! | `quadrature` | nodes and weights of Gauss and Legendre |

mod quadrature;
mod shapley;

pub use shapley::{Game, Shapley, ShapleyParams, shapley_values};
