//! Fitted models: a kernel expansion and the meaning of its outputs.
//!
//! | model | outputs | predicts |
//! |---|---|---|
//! | [`Classifier`] | one for two classes, else one for each pair or class | a label |
//! | [`Regressor`] | one | a number |
//! | [`Detector`] | one | whether a sample is an inlier |
//!
//! The vectors are packed at the first prediction, and later ones share them. A model is its expansion and a few names, so a
//! reduction is the same model with another expansion ([`Model::with_expansion`]).

use super::finite_rows;
use crate::context::Context;
use crate::data::IntoRows;
use crate::error::{Error, Result};
use crate::expansion::KernelExpansion;
use crate::kernels::Evaluator;
use crate::multiclass::{CodeMatrix, Decoder, winners};
use crate::svm::Certificate;
use ndarray::Array2;

/// A model whose outputs are those of a kernel expansion.
pub trait Model: Sized {
    /// Returns the expansion, which holds the vectors, the coefficients and the intercepts.
    fn expansion(&self) -> &KernelExpansion;

    /// Returns the same model with another expansion, as a reduction needs it.
    ///
    /// # Errors
    /// [`Error::Shape`] if the expansion has another number of outputs.
    fn with_expansion(&self, expansion: KernelExpansion) -> Result<Self>;
}

/// Which binary machines make up a classifier of several classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// A machine for each pair of classes; the class with the most votes is predicted.
    #[default]
    OneVsOne,
    /// A machine for each class; the class with the largest output is predicted.
    OneVsRest,
}

/// An expansion that is ready to be evaluated.
pub(super) struct Prepared {
    pub(super) expansion: KernelExpansion,
    evaluator: Evaluator,
}

impl Prepared {
    pub(super) fn new(expansion: KernelExpansion) -> Result<Self> {
        let evaluator = Evaluator::sharing(&expansion)?;
        Ok(Self { expansion, evaluator })
    }

    /// Returns the prepared form of an expansion with as many outputs as this one.
    fn replaced(&self, expansion: KernelExpansion) -> Result<Self> {
        let outputs = self.expansion.intercepts.len();
        Error::check_len("outputs of the expansion", outputs, expansion.intercepts.len())?;
        Self::new(expansion)
    }

    /// Returns the outputs (n_samples, n_outputs).
    fn outputs<'a>(&self, x: impl IntoRows<'a>, context: Context<'_>) -> Result<Array2<f64>> {
        self.evaluator.evaluate(finite_rows(x)?, context)
    }

    /// Returns the first output of each sample.
    fn first_output<'a>(&self, x: impl IntoRows<'a>, context: Context<'_>) -> Result<Vec<f64>> {
        Ok(self.outputs(x, context)?.column(0).iter().copied().collect())
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let view = self.expansion.view();
        f.debug_struct("KernelExpansion")
            .field("kernel", &view.kernel)
            .field("vectors", &view.len())
            .field("outputs", &view.outputs())
            .finish_non_exhaustive()
    }
}

/// A fitted classifier with labels of type `L`.
#[derive(Debug)]
pub struct Classifier<L> {
    prepared: Prepared,
    classes: Vec<L>,
    strategy: Strategy,
    certificates: Vec<Certificate>,
}

impl<L: Clone> Classifier<L> {
    /// Creates a classifier from an expansion with the outputs of a strategy: one for two classes, positive for the second; else
    /// one for each pair of classes, positive for the first, or one for each class. `classes` are in ascending order.
    ///
    /// # Errors
    /// [`Error::Param`] for fewer than two classes, [`Error::Shape`] for another number of outputs.
    pub fn new(
        expansion: KernelExpansion,
        classes: Vec<L>,
        strategy: Strategy,
        certificates: Vec<Certificate>,
    ) -> Result<Self> {
        let (n, q) = (classes.len(), expansion.intercepts.len());
        let expected = match strategy {
            _ if n <= 2 => 1,
            Strategy::OneVsOne => n * (n - 1) / 2,
            Strategy::OneVsRest => n,
        };
        Error::check_param(n >= 2, "classes", n, "at least 2")?;
        Error::check_len("outputs of the expansion", expected, q)?;
        Ok(Self { prepared: Prepared::new(expansion)?, classes, strategy, certificates })
    }

    /// Returns the classes in ascending order.
    pub fn classes(&self) -> &[L] {
        &self.classes
    }

    /// Returns which machines the outputs belong to.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Returns the bounds on the optimum of each machine. They exist for support vector machines that [`Svc`](super::Svc) has
    /// fitted; the slice is empty for other models.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Returns the outputs (n_samples, n_outputs): one for two classes, positive for the second; else one for each pair of
    /// classes, positive for the first, or one for each class.
    ///
    /// # Errors
    /// [`Error::Shape`] if the samples have another number of columns than the vectors, [`Error::NotFinite`],
    /// [`Error::Memory`].
    pub fn decision_function<'a>(&self, x: impl IntoRows<'a>) -> Result<Array2<f64>> {
        self.decision_function_in(x, Context::default())
    }

    /// Runs [`Classifier::decision_function`] in a context.
    ///
    /// # Errors
    /// The errors of [`Classifier::decision_function`], and [`Error::Stopped`].
    pub fn decision_function_in<'a>(
        &self,
        x: impl IntoRows<'a>,
        context: Context<'_>,
    ) -> Result<Array2<f64>> {
        self.prepared.outputs(x, context)
    }

    /// Returns the class of each sample.
    ///
    /// # Errors
    /// The errors of [`Classifier::decision_function`].
    pub fn predict<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<L>> {
        self.predict_in(x, Context::default())
    }

    /// Runs [`Classifier::predict`] in a context.
    ///
    /// # Errors
    /// The errors of [`Classifier::decision_function_in`].
    pub fn predict_in<'a>(&self, x: impl IntoRows<'a>, context: Context<'_>) -> Result<Vec<L>> {
        let (outputs, n) = (self.prepared.outputs(x, context)?, self.classes.len());
        let class = |index: usize| self.classes[index].clone();
        if n == 2 {
            return Ok(outputs.column(0).iter().map(|&f| class(usize::from(f >= 0.0))).collect());
        }
        let indices = match self.strategy {
            Strategy::OneVsOne => {
                winners(outputs.view(), &CodeMatrix::one_vs_one(n)?, Decoder::Votes, context)?
            }
            Strategy::OneVsRest => outputs
                .rows()
                .into_iter()
                .map(|row| crate::argmax::argmax(row.iter().copied()))
                .collect::<Vec<_>>(),
        };
        Ok(indices.into_iter().map(class).collect())
    }
}

impl<L: Clone> Model for Classifier<L> {
    fn expansion(&self) -> &KernelExpansion {
        &self.prepared.expansion
    }

    fn with_expansion(&self, expansion: KernelExpansion) -> Result<Self> {
        let classes = self.classes.clone();
        Ok(Self {
            prepared: self.prepared.replaced(expansion)?,
            classes,
            strategy: self.strategy,
            certificates: Vec::new(),
        })
    }
}

/// Defines a model with one output and the certificate of its machine.
macro_rules! single_output_model {
    ($(#[$doc:meta])* $name:ident, $estimator:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            prepared: Prepared,
            certificate: Option<Certificate>,
        }

        impl $name {
            /// Creates a model from an expansion with one output.
            ///
            /// # Errors
            /// [`Error::Shape`] for another number of outputs.
            pub fn new(expansion: KernelExpansion, certificate: Option<Certificate>) -> Result<Self> {
                Error::check_len("outputs of the expansion", 1, expansion.intercepts.len())?;
                Ok(Self { prepared: Prepared::new(expansion)?, certificate })
            }

            #[doc = concat!("Returns the bounds on the optimum, if [`", stringify!($estimator), "`](super::", stringify!($estimator), ") has fitted the model.")]
            pub fn certificate(&self) -> Option<&Certificate> {
                self.certificate.as_ref()
            }
        }

        impl Model for $name {
            fn expansion(&self) -> &KernelExpansion {
                &self.prepared.expansion
            }

            fn with_expansion(&self, expansion: KernelExpansion) -> Result<Self> {
                Ok(Self { prepared: self.prepared.replaced(expansion)?, certificate: None })
            }
        }
    };
}

single_output_model! {
    /// A fitted regressor with one output.
    Regressor, Svr
}

single_output_model! {
    /// A fitted novelty detector.
    Detector, OneClassSvm
}

impl Regressor {
    /// Returns the value for each sample.
    ///
    /// # Errors
    /// [`Error::Shape`] if the samples have another number of columns than the vectors, [`Error::NotFinite`],
    /// [`Error::Memory`].
    pub fn predict<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        self.predict_in(x, Context::default())
    }

    /// Runs [`Regressor::predict`] in a context.
    ///
    /// # Errors
    /// The errors of [`Regressor::predict`], and [`Error::Stopped`].
    pub fn predict_in<'a>(&self, x: impl IntoRows<'a>, context: Context<'_>) -> Result<Vec<f64>> {
        self.prepared.first_output(x, context)
    }
}

impl Detector {
    /// Returns the output of each sample, which is negative for outliers.
    ///
    /// # Errors
    /// The errors of [`Regressor::predict`].
    pub fn decision_function<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<f64>> {
        self.decision_function_in(x, Context::default())
    }

    /// Runs [`Detector::decision_function`] in a context.
    ///
    /// # Errors
    /// The errors of [`Regressor::predict_in`].
    pub fn decision_function_in<'a>(&self, x: impl IntoRows<'a>, context: Context<'_>) -> Result<Vec<f64>> {
        self.prepared.first_output(x, context)
    }

    /// Returns whether each sample is an inlier.
    ///
    /// # Errors
    /// The errors of [`Regressor::predict`].
    pub fn predict<'a>(&self, x: impl IntoRows<'a>) -> Result<Vec<bool>> {
        Ok(self.decision_function(x)?.into_iter().map(|f| f >= 0.0).collect())
    }
}

/// Returns the distinct labels in ascending order, and the index of each sample's class.
///
/// # Errors
/// [`Error::Param`] for fewer than two classes.
pub(super) fn encode<L: Ord + Clone>(labels: &[L]) -> Result<(Vec<L>, Vec<usize>)> {
    let mut classes = labels.to_vec();
    classes.sort_unstable();
    classes.dedup();
    Error::check_param(
        classes.len() >= 2,
        "labels",
        format!("{} class(es)", classes.len()),
        "at least 2 classes",
    )?;
    let index = |label: &L| classes.partition_point(|class| class < label);
    let indices = labels.iter().map(index).collect::<Vec<_>>();
    Ok((classes, indices))
}

/// Returns the classes of labels, and targets (n, q): 1 for the class of an output and -1 for the others. Two classes share one
/// output.
///
/// # Errors
/// The errors of [`encode`].
pub(super) fn class_targets<L: Ord + Clone>(labels: &[L]) -> Result<(Vec<L>, Array2<f64>)> {
    let (classes, indices) = encode(labels)?;
    let outputs = if classes.len() == 2 { 1 } else { classes.len() };
    let targets = crate::memory::try_matrix((indices.len(), outputs), |(i, j)| {
        if indices[i] == if outputs == 1 { 1 } else { j } { 1.0 } else { -1.0 }
    })?;
    Ok((classes, targets))
}

/// The functions that fit an estimator with a function `expansion(rows, targets, context)` to targets or to labels. The
/// arguments complete their documentation: the errors of a fit, and the effect of a stop.
macro_rules! fit_functions {
    ($errors:literal, $stop:literal) => {
        /// Fits a function to targets.
        ///
        /// # Errors
        /// [`Error::Shape`] if there is not one target for each sample, [`Error::NotFinite`], [`Error::Layout`],
        /// [`Error::Memory`].
        #[doc = $errors]
        pub fn fit<'a>(
            &self,
            x: impl $crate::data::IntoRows<'a>,
            targets: &[f64],
        ) -> Result<$crate::estimators::Regressor> {
            self.fit_in(x, targets, Context::default())
        }

        /// Fits a function to targets in a context.
        #[doc = $stop]
        ///
        /// # Errors
        /// The errors of `fit`, and [`Error::Stopped`].
        pub fn fit_in<'a>(
            &self,
            x: impl $crate::data::IntoRows<'a>,
            targets: &[f64],
            context: Context<'_>,
        ) -> Result<$crate::estimators::Regressor> {
            let targets = ndarray::aview1(targets).insert_axis(ndarray::Axis(1));
            let rows = $crate::estimators::finite_rows(x)?;
            $crate::estimators::Regressor::new(self.expansion(rows, targets, context)?, None)
        }

        /// Fits a classifier: an output for each class with the targets 1 and -1, or a single output for two classes.
        ///
        /// # Errors
        /// The errors of `fit`, and [`Error::Param`] for fewer than two classes.
        pub fn fit_classifier<'a, L: Ord + Clone>(
            &self,
            x: impl $crate::data::IntoRows<'a>,
            labels: &[L],
        ) -> Result<$crate::estimators::Classifier<L>> {
            self.fit_classifier_in(x, labels, Context::default())
        }

        /// Fits a classifier in a context.
        #[doc = $stop]
        ///
        /// # Errors
        /// The errors of `fit_classifier`, and [`Error::Stopped`].
        pub fn fit_classifier_in<'a, L: Ord + Clone>(
            &self,
            x: impl $crate::data::IntoRows<'a>,
            labels: &[L],
            context: Context<'_>,
        ) -> Result<$crate::estimators::Classifier<L>> {
            let (classes, targets) = $crate::estimators::model::class_targets(labels)?;
            let rows = $crate::estimators::finite_rows(x)?;
            let (expansion, strategy) =
                (self.expansion(rows, targets.view(), context)?, $crate::estimators::Strategy::OneVsRest);
            $crate::estimators::Classifier::new(expansion, classes, strategy, Vec::new())
        }
    };
}
pub(super) use fit_functions;
