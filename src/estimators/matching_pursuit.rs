//! Kernel matching pursuit: [`MatchingPursuit`].

use super::kernel_choice::{KernelChoice, kernel_setters, setters};
use super::model::fit_functions;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::kernel::Kernel;
use crate::matching_pursuit::{
    BuiltIn, Coefficients, KernelFunctions, MatchingParams, Task, matching_pursuit,
};
use crate::memory::try_to_matrix;
use crate::path::{Form, PathView, path_coefficients};
use ndarray::{ArrayView2, s};

/// Kernel matching pursuit with squared error: few kernel functions around training samples, chosen greedily, with the best
/// coefficients after each choice (back-fitting).
#[derive(Debug, Clone, PartialEq)]
pub struct MatchingPursuit {
    kernel: KernelChoice,
    n_vectors: usize,
    tolerance: f64,
    fit_intercept: bool,
}

/// Builds a [`MatchingPursuit`].
#[derive(Debug, Clone)]
pub struct MatchingPursuitBuilder(MatchingPursuit);

impl MatchingPursuit {
    /// Returns a builder for at most `n_vectors` functions, with an RBF kernel and an intercept.
    pub fn builder(n_vectors: usize) -> MatchingPursuitBuilder {
        let kernel = KernelChoice::default();
        MatchingPursuitBuilder(Self { kernel, n_vectors, tolerance: 0.0, fit_intercept: true })
    }

    fit_functions! {
        "[`Error::Param`] for the precomputed kernel.",
        "If the monitor asks for a stop, the functions chosen until then are returned. All outputs share the functions."
    }

    fn expansion(
        &self,
        rows: Rows<'_>,
        targets: ArrayView2<'_, f64>,
        context: Context<'_>,
    ) -> Result<KernelExpansion> {
        let kernel = self.kernel.resolve(rows)?;
        Error::check_param(
            kernel != Kernel::Precomputed,
            "kernel",
            "precomputed",
            "computed from the samples",
        )?;
        Error::check_len("targets (one for each sample)", rows.rows(), targets.nrows())?;
        let functions = KernelFunctions::new(kernel, rows.reborrow(), rows.reborrow(), None)?;
        let task = Task {
            functions: &[&functions],
            targets: targets.reborrow(),
            weights: None,
            constant: self.fit_intercept,
            loss: &BuiltIn::Squared,
            squared: true,
            validation: None,
        };
        let mut params = MatchingParams::new(self.n_vectors);
        params.tolerance = self.tolerance;
        params.storage.single = !rows.is_f64();
        let fit = matching_pursuit(&task, &params, context)?;
        let coefficients = match &fit.coefficients {
            Coefficients::Factor { factor, projections } => {
                let path = PathView { projections: projections.view(), form: Form::Factored(factor.view()) };
                path_coefficients(&path, factor.nrows())?
            }
            Coefficients::Steps(_) => unreachable!("squared error has a factor"),
        };
        // A constant that is there from the start has the first coefficients; a stop may come before it.
        let first = coefficients.nrows() - fit.order.len();
        let intercepts = if first == 1 {
            coefficients.row(0).to_slice().expect("made row-major").to_vec()
        } else {
            vec![0.0; targets.ncols()]
        };
        let coefficients = try_to_matrix(coefficients.slice(s![first.., ..]))?;
        KernelExpansion::new(kernel, rows.gather(&fit.order)?, coefficients, intercepts)
    }
}

impl MatchingPursuitBuilder {
    kernel_setters!();

    setters! {
        /// Sets the share of the targets' norm at which the pursuit ends early; the default is 0.
        tolerance(f64): tolerance;

        /// Sets whether the constant function is in the basis from the start; the default is yes.
        fit_intercept(bool): fit_intercept;
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<MatchingPursuit> {
        Error::check_param(self.0.n_vectors > 0, "n_vectors", 0, "at least 1")?;
        let share = (0.0..1.0).contains(&self.0.tolerance);
        Error::check_param(share, "tolerance", self.0.tolerance, "in [0, 1)")?;
        self.0.kernel.check()?;
        Ok(self.0)
    }
}
