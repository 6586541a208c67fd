//! Fitting, prediction, compression and leave-one-out predictions: the estimators of the crate behind one type.
//!
//! JavaScript passes names and numbers. Here they become an estimator with checked parameters ([`Training`]) and a fitted
//! [`Model`], which maps indices of classes to labels and applies the standardization that a loaded file holds. All work is done on
//! the calling thread.

use crate::options::Options;
use ndarray::{Array2, Axis, aview1};
use serde_json::{Value, json};
use std::ops::Range;
use svmarrow::context::Context;
use svmarrow::data::{OwnedRows, Rows};
use svmarrow::estimators::{Classifier, Detector, Model as Estimated, Regressor, Strategy};
use svmarrow::expansion::KernelExpansion;
use svmarrow::kernels::Kernel;
use svmarrow::least_squares::{Problem, exact};
use svmarrow::reduced_set::{Coding, Examples, GradientParams, Loss, Objective, centres, gradient_vectors};
use svmarrow::svm::Certificate;
use svmarrow::{Error, LeastSquares, MatchingPursuit, OneClassSvm, Reduction, Result, Svc, Svr};

const CONTEXT: Context<'static> = Context::SEQUENTIAL;
/// Memory for kernel values of a fit.
const CACHE_BYTES: usize = 256 << 20;
/// The settings of constructed vectors are those of `GradientSettings` in Python.
const BATCH: usize = 144;
const NOISE: f64 = 0.2;
const PLACES: usize = 2;
/// The default number of steps of a construction; a page does not wait for the 20,000 or more of the Python package.
const STEPS: u64 = 4000;

/// A fitted model of the crate, by the kind of its predictions.
pub(crate) enum Predictor {
    Classifier(Classifier<usize>),
    Regressor(Regressor),
    Detector(Detector),
}

/// The estimator and its parameters.
#[derive(Clone)]
enum Estimator {
    Svc(Svc),
    Svr(Svr),
    OneClass(OneClassSvm),
    LeastSquares {
        estimator: LeastSquares,
        kernel: Option<Kernel>,
        alpha: f64,
        fit_intercept: bool,
        classifies: bool,
    },
    Pursuit {
        estimator: MatchingPursuit,
        classifies: bool,
    },
}

/// An estimator with checked parameters.
#[derive(Clone)]
pub(crate) struct Training(Estimator);

/// A model, the labels of its classes, and what was done to samples before.
pub(crate) struct Model {
    pub(crate) predictor: Predictor,
    /// Labels by class: numbers or texts.
    pub(crate) labels: Vec<Value>,
    /// Center and scale of each column.
    pub(crate) preparation: Option<(Vec<f64>, Vec<f64>)>,
    training: Option<Training>,
}

impl Training {
    /// Reads the parameters. The names of estimators are those of the Python package.
    pub(crate) fn new(mut options: Options) -> Result<Self> {
        let name = options.text("estimator")?.unwrap_or_default();
        let kernel = options.kernel()?;
        /// Sets the kernel, the tolerance and the limit of steps of a support vector machine.
        macro_rules! machine {
            ($builder:expr) => {{
                let mut builder = $builder.cache_bytes(CACHE_BYTES);
                if let Some(kernel) = kernel {
                    builder = builder.kernel(kernel);
                }
                if let Some(tolerance) = options.number("tol")? {
                    builder = builder.tolerance(tolerance);
                }
                if let Some(steps) = options.integer("max_iter")? {
                    builder = builder.max_iterations(steps);
                }
                builder
            }};
        }
        let estimator = match name.as_str() {
            "SVC" => {
                let strategy = match options.text("multi_class")?.as_deref() {
                    None | Some("ovo") => Strategy::OneVsOne,
                    Some("ovr") => Strategy::OneVsRest,
                    Some(other) => return Err(Error::param("multi_class", other, "\"ovo\" or \"ovr\"")),
                };
                let builder = machine!(Svc::builder()).strategy(strategy);
                Estimator::Svc(builder.c(options.number("C")?.unwrap_or(1.0)).build()?)
            }
            "SVR" => {
                let builder = machine!(Svr::builder()).c(options.number("C")?.unwrap_or(1.0));
                Estimator::Svr(builder.epsilon(options.number("epsilon")?.unwrap_or(0.1)).build()?)
            }
            "OneClassSVM" => {
                let builder = machine!(OneClassSvm::builder());
                Estimator::OneClass(builder.nu(options.number("nu")?.unwrap_or(0.5)).build()?)
            }
            "RLSClassifier" | "RLSRegressor" => {
                let alpha = options.number("alpha")?.unwrap_or(1.0);
                let fit_intercept = options.flag("fit_intercept")?.unwrap_or(false);
                let mut builder = LeastSquares::builder().alpha(alpha).fit_intercept(fit_intercept);
                if let Some(kernel) = kernel {
                    builder = builder.kernel(kernel);
                }
                let (estimator, classifies) = (builder.build()?, name == "RLSClassifier");
                Estimator::LeastSquares { estimator, kernel, alpha, fit_intercept, classifies }
            }
            "KMPClassifier" | "KMPRegressor" => {
                let mut builder =
                    MatchingPursuit::builder(options.integer("n_vectors")?.unwrap_or(100) as usize)
                        .fit_intercept(options.flag("fit_intercept")?.unwrap_or(true))
                        .tolerance(options.number("tol")?.unwrap_or(0.0));
                if let Some(kernel) = kernel {
                    builder = builder.kernel(kernel);
                }
                Estimator::Pursuit { estimator: builder.build()?, classifies: name == "KMPClassifier" }
            }
            _ => {
                let rule =
                    "SVC, SVR, OneClassSVM, RLSClassifier, RLSRegressor, KMPClassifier or KMPRegressor";
                return Err(Error::param("estimator", name, rule));
            }
        };
        options.finish(&name)?;
        Ok(Self(estimator))
    }

    pub(crate) fn fit(self, rows: Rows<'_>, targets: &[f64]) -> Result<Model> {
        let (labels, indices) = if self.classifies() { encoded(targets)? } else { Default::default() };
        let predictor = match &self.0 {
            Estimator::Svc(svc) => Predictor::Classifier(svc.fit_in(rows, &indices, CONTEXT)?),
            Estimator::Svr(svr) => {
                Error::check_finite("y", targets.iter().copied(), 1)?;
                Predictor::Regressor(svr.fit_in(rows, targets, CONTEXT)?)
            }
            Estimator::OneClass(machine) => Predictor::Detector(machine.fit_in(rows, CONTEXT)?),
            Estimator::LeastSquares { estimator, classifies: true, .. } => {
                Predictor::Classifier(estimator.fit_classifier_in(rows, &indices, CONTEXT)?)
            }
            Estimator::LeastSquares { estimator, .. } => {
                Predictor::Regressor(estimator.fit_in(rows, targets, CONTEXT)?)
            }
            Estimator::Pursuit { estimator, classifies: true } => {
                Predictor::Classifier(estimator.fit_classifier_in(rows, &indices, CONTEXT)?)
            }
            Estimator::Pursuit { estimator, .. } => {
                Predictor::Regressor(estimator.fit_in(rows, targets, CONTEXT)?)
            }
        };
        Ok(Model { predictor, labels, preparation: None, training: Some(self) })
    }

    fn classifies(&self) -> bool {
        matches!(
            self.0,
            Estimator::Svc(_)
                | Estimator::LeastSquares { classifies: true, .. }
                | Estimator::Pursuit { classifies: true, .. }
        )
    }

    /// Returns whether the machine without a sample is the machine itself unless the sample is one of its vectors.
    fn is_sparse(&self) -> bool {
        matches!(self.0, Estimator::Svc(_) | Estimator::Svr(_) | Estimator::OneClass(_))
    }
}

/// Returns the distinct labels in ascending order, and the index of each sample's class.
fn encoded(targets: &[f64]) -> Result<(Vec<Value>, Vec<usize>)> {
    if let Some(label) = targets.iter().find(|y| y.fract() != 0.0 || y.abs() >= 2.0_f64.powi(53)) {
        return Err(Error::param("y", label, "an integer, the label of a class"));
    }
    let mut classes: Vec<i64> = targets.iter().map(|y| *y as i64).collect();
    classes.sort_unstable();
    classes.dedup();
    let indices = targets.iter().map(|y| classes.partition_point(|class| *class < *y as i64)).collect();
    Ok((classes.into_iter().map(Value::from).collect(), indices))
}

impl Model {
    /// Creates a model of a file.
    pub(crate) fn new(
        predictor: Predictor,
        labels: Vec<Value>,
        preparation: Option<(Vec<f64>, Vec<f64>)>,
    ) -> Self {
        Self { predictor, labels, preparation, training: None }
    }

    pub(crate) fn expansion(&self) -> &KernelExpansion {
        match &self.predictor {
            Predictor::Classifier(model) => model.expansion(),
            Predictor::Regressor(model) => model.expansion(),
            Predictor::Detector(model) => model.expansion(),
        }
    }

    /// Returns the name of the decoding of a classifier's outputs in a model file.
    pub(crate) fn decoding(&self) -> Option<&'static str> {
        let Predictor::Classifier(model) = &self.predictor else { return None };
        Some(match model.strategy() {
            _ if self.labels.len() == 2 => "binary",
            Strategy::OneVsRest => "ovr",
            _ => "ovo",
        })
    }

    fn certificates(&self) -> &[Certificate] {
        match &self.predictor {
            Predictor::Classifier(model) => model.certificates(),
            Predictor::Regressor(model) => model.certificate().map_or(&[], std::slice::from_ref),
            Predictor::Detector(model) => model.certificate().map_or(&[], std::slice::from_ref),
        }
    }

    /// Describes the model for JavaScript.
    pub(crate) fn description(&self) -> Value {
        let expansion = self.expansion();
        let (kernel, mut parameters) = (expansion.kernel, json!({ "name": expansion.kernel.name() }));
        match kernel {
            Kernel::Polynomial { degree, gamma, coef0 } => {
                parameters["gamma"] = gamma.into();
                parameters["coef0"] = coef0.into();
                parameters["degree"] = degree.into();
            }
            Kernel::Sigmoid { gamma, coef0 } => {
                parameters["gamma"] = gamma.into();
                parameters["coef0"] = coef0.into();
            }
            Kernel::Rbf { gamma }
            | Kernel::Laplacian { gamma }
            | Kernel::ChiSquared { gamma }
            | Kernel::Matern { gamma, .. } => parameters["gamma"] = gamma.into(),
            _ => {}
        }
        let certificates: Vec<Value> = self
            .certificates()
            .iter()
            .map(|c| {
                json!({
                    "dual": c.dual, "primal": c.primal, "gap": c.gap, "violation": c.violation,
                    "iterations": c.iterations, "support": c.support, "bounded": c.bounded, "stop": c.stop.name(),
                })
            })
            .collect();
        let view = expansion.view();
        json!({
            "kind": match self.predictor {
                Predictor::Classifier(_) => "classifier",
                Predictor::Regressor(_) => "regressor",
                Predictor::Detector(_) => "detector",
            },
            "kernel": parameters,
            "n_vectors": view.len(),
            "n_features": view.vectors.cols(),
            "n_outputs": view.outputs(),
            "decoding": self.decoding(),
            "classes": self.labels,
            "certificates": certificates,
        })
    }

    /// Returns the vectors, row-major.
    pub(crate) fn vectors(&self) -> Vec<f64> {
        let rows = self.expansion().vectors.view();
        let mut vectors = vec![0.0; rows.rows() * rows.cols()];
        for row in 0..rows.rows() {
            rows.for_each_in_row(row, |column, value| vectors[row * rows.cols() + column] = value);
        }
        vectors
    }

    /// Applies the preparation of a pipeline to samples.
    fn prepared(&self, rows: Rows<'_>) -> Result<Option<OwnedRows>> {
        let Some((centre, scale)) = &self.preparation else { return Ok(None) };
        Error::check_len("columns of X", centre.len(), rows.cols())?;
        let mut prepared = Array2::zeros((rows.rows(), rows.cols()));
        for row in 0..rows.rows() {
            rows.for_each_in_row(row, |column, value| {
                prepared[[row, column]] = (value - centre[column]) / scale[column];
            });
        }
        Ok(Some(prepared.into()))
    }

    /// Returns the outputs, (n_samples, n_outputs).
    pub(crate) fn outputs(&self, rows: Rows<'_>) -> Result<Array2<f64>> {
        let prepared = self.prepared(rows.reborrow())?;
        let rows = prepared.as_ref().map_or_else(|| rows.reborrow(), OwnedRows::view);
        let column = |values: Vec<f64>| {
            let n = values.len();
            Array2::from_shape_vec((n, 1), values).expect("one output of each sample")
        };
        match &self.predictor {
            Predictor::Classifier(model) => model.decision_function_in(rows, CONTEXT),
            Predictor::Regressor(model) => model.predict_in(rows, CONTEXT).map(column),
            Predictor::Detector(model) => model.decision_function_in(rows, CONTEXT).map(column),
        }
    }

    /// Returns the index of the class, the value, or 1 for an inlier and -1 for an outlier, of each sample.
    pub(crate) fn predict(&self, rows: Rows<'_>) -> Result<Vec<f64>> {
        let prepared = self.prepared(rows.reborrow())?;
        let rows = prepared.as_ref().map_or_else(|| rows.reborrow(), OwnedRows::view);
        Ok(match &self.predictor {
            Predictor::Classifier(model) => {
                model.predict_in(rows, CONTEXT)?.into_iter().map(|class| class as f64).collect()
            }
            Predictor::Regressor(model) => model.predict_in(rows, CONTEXT)?,
            Predictor::Detector(model) => {
                let outputs = model.decision_function_in(rows, CONTEXT)?;
                outputs.into_iter().map(|f| if f >= 0.0 { 1.0 } else { -1.0 }).collect()
            }
        })
    }

    /// Returns the predictions for the samples `range` of machines trained without them: least squares by its exact formula,
    /// the others by training again. A support vector machine is the same without a sample that is not one of its vectors.
    pub(crate) fn leave_one_out(
        &self,
        rows: Rows<'_>,
        targets: &[f64],
        range: Range<usize>,
    ) -> Result<Vec<f64>> {
        let Some(training) = &self.training else {
            return Err(Error::param(
                "model",
                "a model of a file or a compressed one",
                "one that was fitted here",
            ));
        };
        let n = rows.rows();
        Error::check_param(
            range.start <= range.end && range.end <= n,
            "to",
            range.end,
            format!("at most {n}"),
        )?;
        if !matches!(training.0, Estimator::OneClass(_)) {
            Error::check_len("y (one for each sample)", n, targets.len())?;
        }
        if let Estimator::LeastSquares { kernel, alpha, fit_intercept, .. } = training.0 {
            let kernel = kernel.unwrap_or(self.expansion().kernel);
            return self.exact_leave_one_out(kernel, alpha, fit_intercept, rows, targets, range);
        }
        let view = self.expansion().vectors.view();
        let row_of = |rows: Rows<'_>, row: usize| {
            let mut values = vec![0.0; rows.cols()];
            rows.for_each_in_row(row, |column, value| values[column] = value);
            values
        };
        let vectors: Vec<Vec<f64>> = (0..view.rows()).map(|row| row_of(view.reborrow(), row)).collect();
        let mut predictions = Vec::new();
        for left_out in range {
            let sample = rows.gather(&[left_out])?;
            if training.is_sparse() && !vectors.contains(&row_of(sample.view(), 0)) {
                predictions.extend(self.predict(sample.view())?);
                continue;
            }
            let others: Vec<usize> = (0..n).filter(|row| *row != left_out).collect();
            let other_rows = rows.gather(&others)?;
            let other_targets: Vec<f64> =
                if targets.is_empty() { Vec::new() } else { others.iter().map(|&i| targets[i]).collect() };
            if training.classifies() && other_targets.iter().all(|y| *y == other_targets[0]) {
                // Only the class of the others can be predicted.
                predictions.push(self.class_of(other_targets[0]));
                continue;
            }
            let without = training.clone().fit(other_rows.view(), &other_targets)?;
            let prediction = without.predict(sample.view())?[0];
            predictions.push(match without.labels.get(prediction as usize) {
                Some(label) if training.classifies() => self.class_of(label.as_f64().unwrap_or(f64::NAN)),
                _ => prediction,
            });
        }
        Ok(predictions)
    }

    /// Returns the index of the class of a label.
    fn class_of(&self, label: f64) -> f64 {
        self.labels
            .iter()
            .position(|class| class.as_f64() == Some(label))
            .map_or(f64::NAN, |index| index as f64)
    }

    fn exact_leave_one_out(
        &self,
        kernel: Kernel,
        alpha: f64,
        fit_intercept: bool,
        rows: Rows<'_>,
        targets: &[f64],
        range: Range<usize>,
    ) -> Result<Vec<f64>> {
        let outputs = self.expansion().intercepts.len();
        let is_classifier = matches!(self.predictor, Predictor::Classifier(_));
        let targets = if is_classifier {
            Array2::from_shape_fn((targets.len(), outputs), |(i, j)| {
                let class = self.class_of(targets[i]) as usize;
                if class == if outputs == 1 { 1 } else { j } { 1.0 } else { -1.0 }
            })
        } else {
            aview1(targets).insert_axis(Axis(1)).to_owned()
        };
        let problem = Problem {
            kernel: kernel.into(),
            rows: rows.reborrow(),
            targets: targets.view(),
            fit_intercept,
            weights: None,
            groups: None,
        };
        let solution = exact::solve(&problem, alpha, true, CONTEXT)?;
        let values = solution.leave_one_out.expect("leave-one-out values were requested").values;
        Ok(range
            .map(|row| {
                let values = values.row(row);
                if !is_classifier {
                    values[0]
                } else if outputs == 1 {
                    f64::from(u8::from(values[0] >= 0.0))
                } else {
                    let best = (0..outputs).reduce(|best, j| if values[j] > values[best] { j } else { best });
                    best.unwrap_or(0) as f64
                }
            })
            .collect())
    }

    /// Returns a model with fewer vectors: `method` "backfit" selects them among those of the model, "gradient" constructs them
    /// so that both models agree on the samples and near them.
    pub(crate) fn compress(
        &self,
        mut options: Options,
        rows: Rows<'_>,
        start: Option<&Self>,
    ) -> Result<Self> {
        let count = options.integer("n_vectors")?.unwrap_or(0) as usize;
        let method = options.text("method")?.unwrap_or_else(|| "gradient".to_owned());
        if method == "backfit" {
            options.finish("compress by selection")?;
            let reduction = Reduction::builder(count).build()?;
            return self.with(match &self.predictor {
                Predictor::Classifier(model) => Predictor::Classifier(reduction.apply_in(model, CONTEXT)?),
                Predictor::Regressor(model) => Predictor::Regressor(reduction.apply_in(model, CONTEXT)?),
                Predictor::Detector(model) => Predictor::Detector(reduction.apply_in(model, CONTEXT)?),
            });
        }
        Error::check_param(method == "gradient", "method", method, "\"gradient\" or \"backfit\"")?;
        let steps = options.integer("steps")?.unwrap_or(STEPS) as usize;
        let seed = options.integer("seed")?.unwrap_or(0);
        let loss = options.text("loss")?;
        options.finish("compress by construction")?;
        let prepared = self.prepared(rows.reborrow())?;
        let rows = prepared.as_ref().map_or_else(|| rows.reborrow(), OwnedRows::view);
        let coding = match self.decoding() {
            None => Coding::Values,
            Some("binary") => Coding::Sign,
            Some("ovr") => Coding::Largest,
            Some(_) => Coding::Pairs,
        };
        let loss = match loss.as_deref() {
            None if coding == Coding::Values => Loss::Matching,
            None | Some("agreement") => Loss::Agreement,
            Some("matching") => Loss::Matching,
            Some(other) => return Err(Error::param("loss", other, "\"agreement\" or \"matching\"")),
        };
        let objective = Objective { loss, coding, sharpness: 1.0, label_weight: 0.0 };
        let mut params = GradientParams::new(objective, steps);
        (params.batch, params.noise, params.places, params.seed) = (BATCH, NOISE, PLACES, seed);
        let first = match start {
            Some(start) => {
                let vectors = start.vectors().iter().map(|v| *v as f32).collect();
                let view = start.expansion().view();
                Error::check_len("vectors of the start", count, view.len())?;
                Array2::from_shape_vec((view.len(), view.vectors.cols()), vectors).expect("rows of vectors")
            }
            None => {
                let classes: Option<Vec<usize>> = match &self.predictor {
                    Predictor::Classifier(model) => Some(model.predict_in(rows.reborrow(), CONTEXT)?),
                    _ => None,
                };
                centres(rows.reborrow(), classes.as_deref(), count, seed, CONTEXT)?
            }
        };
        let examples = Examples { rows, answers: None };
        let full = self.expansion().view();
        let constructed = gradient_vectors(&full, &[first.view()], &examples, &params, CONTEXT)?;
        let small = constructed.into_iter().next().expect("one result for one start");
        let expansion =
            KernelExpansion::new(full.kernel, small.vectors.into(), small.coefficients, small.intercepts)?;
        self.with(match &self.predictor {
            Predictor::Classifier(model) => Predictor::Classifier(model.with_expansion(expansion)?),
            Predictor::Regressor(model) => Predictor::Regressor(model.with_expansion(expansion)?),
            Predictor::Detector(model) => Predictor::Detector(model.with_expansion(expansion)?),
        })
    }

    /// Returns a model with the same labels and preparation.
    fn with(&self, predictor: Predictor) -> Result<Self> {
        Ok(Self {
            predictor,
            labels: self.labels.clone(),
            preparation: self.preparation.clone(),
            training: None,
        })
    }
}
