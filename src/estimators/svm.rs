//! Support vector machines: [`Svc`], [`Svr`], [`OneClassSvm`].

use super::finite_rows;
use super::kernel_choice::{KernelChoice, kernel_setters, setters};
use super::model::{Classifier, Detector, Regressor, Strategy, encode};
use crate::context::Context;
use crate::data::{IntoRows, Rows};
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::kernel::Kernel;
use crate::svm::{
    Certificate, Classification, Coding, MachineModel, OneClass, Regression, RegressionLoss, SvmParams,
    fit_classifier, fit_one_class, fit_regression,
};

/// The functions of a builder that set the parameters of the solver.
macro_rules! solver_setters {
    () => {
        kernel_setters!();

        setters! {
            /// Sets the tolerance of the optimality conditions, in units of the outputs; the default is 0.001.
            tolerance(f64): params.tolerance;

            /// Sets the number of bytes for kernel values; the default is 1 GiB.
            cache_bytes(usize): params.cache_bytes;

            /// Sets the maximum number of SMO steps of a machine; the default is no limit.
            max_iterations(u64): params.max_iterations;
        }
    };
}

fn check_c(c: f64) -> Result<()> {
    Error::check_param(c > 0.0 && c.is_finite(), "c", c, "positive and finite")
}

/// C-support vector classification.
#[derive(Debug, Clone, PartialEq)]
pub struct Svc {
    kernel: KernelChoice,
    params: SvmParams,
    c: f64,
    strategy: Strategy,
}

/// Builds an [`Svc`].
#[derive(Debug, Clone)]
pub struct SvcBuilder(Svc);

impl Svc {
    /// Returns a builder with scikit-learn's defaults: C = 1, an RBF kernel, one machine for each pair of classes.
    pub fn builder() -> SvcBuilder {
        let (kernel, params) = Default::default();
        SvcBuilder(Self { kernel, params, c: 1.0, strategy: Strategy::OneVsOne })
    }

    /// Fits the machines of all classes.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one label for each sample, [`Error::Param`] for fewer than two classes,
    /// [`Error::NotFinite`], [`Error::Layout`], [`Error::Memory`].
    pub fn fit<'a, L: Ord + Clone>(&self, x: impl IntoRows<'a>, labels: &[L]) -> Result<Classifier<L>> {
        self.fit_in(x, labels, Context::default())
    }

    /// Runs [`Svc::fit`] in a context. If the monitor asks for a stop, the machines as they are then are returned, and their
    /// certificates state the reason and the gap.
    ///
    /// # Errors
    /// The errors of [`Svc::fit`], and [`Error::Stopped`] for a stop before there is a machine.
    pub fn fit_in<'a, L: Ord + Clone>(
        &self,
        x: impl IntoRows<'a>,
        labels: &[L],
        context: Context<'_>,
    ) -> Result<Classifier<L>> {
        let rows = finite_rows(x)?;
        Error::check_len("labels (one for each sample)", rows.rows(), labels.len())?;
        let kernel = self.kernel.resolve(rows)?;
        let (classes, indices) = encode(labels)?;
        let sample_c = vec![self.c; labels.len()];
        let mut task = Classification::new(&indices, classes.len(), &sample_c);
        task.coding = match self.strategy {
            Strategy::OneVsOne => Coding::OneVsOne,
            Strategy::OneVsRest => Coding::OneVsRest,
        };
        let fit = fit_classifier(kernel, rows, &task, &self.params, context)?;
        let vectors = rows.gather(&fit.support)?;
        let expansion = KernelExpansion::new(kernel, vectors, fit.coefficients, fit.intercepts)?;
        Classifier::new(expansion, classes, self.strategy, fit.certificates)
    }
}

impl SvcBuilder {
    solver_setters!();

    setters! {
        /// Sets C, the weight of the losses; the default is 1.
        c(f64): c;

        /// Sets which machines are trained for more than two classes; the default is one for each pair.
        strategy(Strategy): strategy;
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<Svc> {
        check_c(self.0.c)?;
        self.0.kernel.check()?;
        self.0.params.check()?;
        Ok(self.0)
    }
}

/// Epsilon-support vector regression.
#[derive(Debug, Clone, PartialEq)]
pub struct Svr {
    kernel: KernelChoice,
    params: SvmParams,
    c: f64,
    epsilon: f64,
}

/// Builds an [`Svr`].
#[derive(Debug, Clone)]
pub struct SvrBuilder(Svr);

impl Svr {
    /// Returns a builder with scikit-learn's defaults: C = 1, epsilon = 0.1, an RBF kernel.
    pub fn builder() -> SvrBuilder {
        let (kernel, params) = Default::default();
        SvrBuilder(Self { kernel, params, c: 1.0, epsilon: 0.1 })
    }

    /// Fits the machine.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one target for each sample, [`Error::NotFinite`], [`Error::Layout`],
    /// [`Error::Memory`].
    pub fn fit<'a>(&self, x: impl IntoRows<'a>, targets: &[f64]) -> Result<Regressor> {
        self.fit_in(x, targets, Context::default())
    }

    /// Runs [`Svr::fit`] in a context; a stop is handled as in [`Svc::fit_in`].
    ///
    /// # Errors
    /// The errors of [`Svr::fit`], and [`Error::Stopped`].
    pub fn fit_in<'a>(
        &self,
        x: impl IntoRows<'a>,
        targets: &[f64],
        context: Context<'_>,
    ) -> Result<Regressor> {
        let rows = finite_rows(x)?;
        let kernel = self.kernel.resolve(rows)?;
        let sample_c = vec![self.c; rows.rows()];
        let loss = RegressionLoss::Epsilon(self.epsilon);
        let task = Regression { targets, sample_c: &sample_c, loss, start: None };
        let (expansion, certificate) =
            expansion_of(kernel, rows, fit_regression(kernel, rows, &task, &self.params, context)?)?;
        Regressor::new(expansion, Some(certificate))
    }
}

impl SvrBuilder {
    solver_setters!();

    setters! {
        /// Sets C, the weight of the losses; the default is 1.
        c(f64): c;

        /// Sets the half-width of the tube without loss; the default is 0.1.
        epsilon(f64): epsilon;
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<Svr> {
        check_c(self.0.c)?;
        Error::check_not_negative("epsilon", self.0.epsilon)?;
        self.0.kernel.check()?;
        self.0.params.check()?;
        Ok(self.0)
    }
}

/// The support of a distribution: at most a fraction nu of the training samples are outliers.
#[derive(Debug, Clone, PartialEq)]
pub struct OneClassSvm {
    kernel: KernelChoice,
    params: SvmParams,
    nu: f64,
}

/// Builds a [`OneClassSvm`].
#[derive(Debug, Clone)]
pub struct OneClassSvmBuilder(OneClassSvm);

impl OneClassSvm {
    /// Returns a builder with scikit-learn's defaults: nu = 0.5, an RBF kernel.
    pub fn builder() -> OneClassSvmBuilder {
        let (kernel, params) = Default::default();
        OneClassSvmBuilder(Self { kernel, params, nu: 0.5 })
    }

    /// Fits the machine.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::Layout`], [`Error::Memory`].
    pub fn fit<'a>(&self, x: impl IntoRows<'a>) -> Result<Detector> {
        self.fit_in(x, Context::default())
    }

    /// Runs [`OneClassSvm::fit`] in a context; a stop is handled as in [`Svc::fit_in`].
    ///
    /// # Errors
    /// The errors of [`OneClassSvm::fit`], and [`Error::Stopped`].
    pub fn fit_in<'a>(&self, x: impl IntoRows<'a>, context: Context<'_>) -> Result<Detector> {
        let rows = finite_rows(x)?;
        let kernel = self.kernel.resolve(rows)?;
        let weights = vec![1.0; rows.rows()];
        let task = OneClass { weights: &weights, nu: self.nu, start: None };
        let (expansion, certificate) =
            expansion_of(kernel, rows, fit_one_class(kernel, rows, &task, &self.params, context)?)?;
        Detector::new(expansion, Some(certificate))
    }
}

impl OneClassSvmBuilder {
    solver_setters!();

    setters! {
        /// Sets nu, in (0, 1]; the default is 0.5.
        nu(f64): nu;
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Param`].
    pub fn build(self) -> Result<OneClassSvm> {
        Error::check_param(self.0.nu > 0.0 && self.0.nu <= 1.0, "nu", self.0.nu, "in (0, 1]")?;
        self.0.kernel.check()?;
        self.0.params.check()?;
        Ok(self.0)
    }
}

/// Returns the expansion of a machine over its training samples.
fn expansion_of(
    kernel: Kernel,
    rows: Rows<'_>,
    machine: MachineModel,
) -> Result<(KernelExpansion, Certificate)> {
    let MachineModel { support, coefficients, intercept, certificate, .. } = machine;
    let intercepts = vec![intercept];
    Ok((KernelExpansion::new(kernel, rows.gather(&support)?, coefficients, intercepts)?, certificate))
}
