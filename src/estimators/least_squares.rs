//! Regularized least squares: [`LeastSquares`].

use super::kernel_choice::{KernelChoice, kernel_setters, setters};
use super::model::fit_functions;
use crate::context::Context;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::least_squares::{Problem, solve};
use ndarray::ArrayView2;

/// Regularized least squares in the feature space of a kernel, solved exactly in O(n_samples^3) operations.
#[derive(Debug, Clone, PartialEq)]
pub struct LeastSquares {
    kernel: KernelChoice,
    alpha: f64,
    fit_intercept: bool,
}

/// Builds a [`LeastSquares`].
#[derive(Debug, Clone)]
pub struct LeastSquaresBuilder(LeastSquares);

impl LeastSquares {
    /// Returns a builder with the defaults alpha = 1, an RBF kernel and no intercept.
    pub fn builder() -> LeastSquaresBuilder {
        LeastSquaresBuilder(Self { kernel: KernelChoice::default(), alpha: 1.0, fit_intercept: false })
    }

    fit_functions! {
        "[`Error::NotPositiveDefinite`] if the system cannot be solved with this alpha.",
        "A stop is an error."
    }

    fn expansion(
        &self,
        rows: Rows<'_>,
        targets: ArrayView2<'_, f64>,
        context: Context<'_>,
    ) -> Result<KernelExpansion> {
        let (kernel, fit_intercept) = (self.kernel.resolve(rows)?, self.fit_intercept);
        let problem = Problem {
            kernel: kernel.into(),
            rows: rows.reborrow(),
            targets: targets.reborrow(),
            fit_intercept,
            weights: None,
            groups: None,
        };
        let solution = solve(&problem, self.alpha, false, context)?;
        let all: Vec<usize> = (0..rows.rows()).collect();
        KernelExpansion::new(kernel, rows.gather(&all)?, solution.coefficients, solution.intercepts)
    }
}

impl LeastSquaresBuilder {
    kernel_setters!();

    setters! {
        /// Sets alpha, the weight of the squared norm of the function; the default is 1.
        alpha(f64): alpha;

        /// Sets whether a constant that is not penalized is fitted; the default is no.
        fit_intercept(bool): fit_intercept;
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<LeastSquares> {
        Error::check_param(
            self.0.alpha > 0.0 && self.0.alpha.is_finite(),
            "alpha",
            self.0.alpha,
            "positive and finite",
        )?;
        self.0.kernel.check()?;
        Ok(self.0)
    }
}
