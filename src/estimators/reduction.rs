//! Reduced sets: [`Reduction`].

use super::kernel_choice::setters;
use super::model::Model;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::path::path_coefficients;
use crate::reduced_set::{PursuitParams, pursuit};

/// Shortens a model by matching pursuit in the feature space: vectors of the model are chosen greedily, and all coefficients are
/// the best for the vectors chosen (Weston and Bakir, TR-132).
#[derive(Debug, Clone, PartialEq)]
pub struct Reduction {
    n_vectors: usize,
    tolerance: f64,
}

/// Builds a [`Reduction`].
#[derive(Debug, Clone)]
pub struct ReductionBuilder(Reduction);

impl Reduction {
    /// Returns a builder for a model of at most `n_vectors` vectors.
    pub fn builder(n_vectors: usize) -> ReductionBuilder {
        ReductionBuilder(Self { n_vectors, tolerance: 0.0 })
    }

    /// Returns a shorter model.
    ///
    /// # Errors
    /// [`Error::Param`] for a precomputed kernel, [`Error::Indefinite`] for a kernel that is not positive semidefinite on the
    /// vectors, [`Error::Memory`].
    pub fn apply<M: Model>(&self, model: &M) -> Result<M> {
        self.apply_in(model, Context::default())
    }

    /// Runs [`Reduction::apply`] in a context. If the monitor asks for a stop, the vectors chosen until then are kept.
    ///
    /// # Errors
    /// The errors of [`Reduction::apply`].
    pub fn apply_in<M: Model>(&self, model: &M, context: Context<'_>) -> Result<M> {
        let full = model.expansion().view();
        if full.is_empty() {
            return model.with_expansion(model.expansion().clone()); // small: no vectors
        }
        let mut params = PursuitParams::new(self.n_vectors.min(full.len()));
        params.tolerance = self.tolerance;
        let path = pursuit(&full, None, &params, context)?;
        let coefficients = path_coefficients(&path.view(), path.order.len())?;
        let vectors = full.vectors.gather(&path.order)?;
        let intercepts = full.intercepts.to_vec();
        model.with_expansion(KernelExpansion::new(full.kernel, vectors, coefficients, intercepts)?)
    }
}

impl ReductionBuilder {
    setters! {
        /// Sets the distance in feature space, relative to the norm of the model, at which fewer vectors suffice; the default is 0.
        tolerance(f64): tolerance;
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<Reduction> {
        Error::check_param(self.0.n_vectors > 0, "n_vectors", 0, "at least 1")?;
        let share = (0.0..1.0).contains(&self.0.tolerance);
        Error::check_param(share, "tolerance", self.0.tolerance, "in [0, 1)")?;
        Ok(self.0)
    }
}
