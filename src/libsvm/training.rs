//! Training by LIBSVM's rules, and cross-validation.
//!
//! Source: `svm_train`, `svm_binary_svc_probability`, `svm_svr_probability` and `svm_cross_validation` of LIBSVM. Random numbers
//! are drawn in LIBSVM's order: the folds of the pairs of classes, one after the other, inside the folds of `-v`. Cost: a fit for
//! each fold; five more for each pair of classes with `-b 1`.
//!
//! Probabilities (`-b 1`) come from five-fold cross-validation with the folds of LIBSVM's random numbers: a sigmoid for each pair
//! of classes, the scale of the errors of a regression.

use super::classes::{Classes, pairs};
use super::failure::{Failure, Outcome};
use super::folds::{GlibcRandom, plain_folds, splits};
use super::machines::Machines;
use super::prediction::{Decoder, outputs};
use super::problem::Problem;
use crate::context::Context;
use crate::io::libsvm_model::{LibsvmModel, ProbabilityParams};
use crate::probability::{Sigmoid, fit_sigmoid, laplace_scale};

/// Number of folds of the cross-validation that fits probability parameters.
const PROBABILITY_FOLDS: usize = 5;

/// The result of a training.
pub struct TrainedModel {
    /// The model as its file holds it.
    pub model: LibsvmModel,
    /// The training sample of each vector.
    pub support: Vec<usize>,
    /// The lines of `svm-train` about each machine.
    pub report: String,
    /// Warnings about machines that ended before the tolerance was reached.
    pub warnings: Vec<String>,
}

/// The state of a training: what it reads, its random numbers and warnings.
struct Trainer<'a, 'r> {
    problem: &'a Problem<'r>,
    random: GlibcRandom,
    warnings: Vec<String>,
    ctx: Context<'a>,
}

/// Trains a model on all samples of a problem.
///
/// # Errors
/// [`Failure::Input`] and [`Failure::Library`] for data that cannot be trained on, and if the monitor asks for a stop.
pub fn train(problem: &Problem<'_>, ctx: Context<'_>) -> Outcome<TrainedModel> {
    let mut trainer = Trainer::new(problem, ctx);
    let all: Vec<usize> = (0..problem.y.len()).collect();
    let (model, support, report) = trainer.train(&all, problem.options.probability)?;
    Ok(TrainedModel { model, support, report, warnings: trainer.warnings })
}

/// Returns the predictions (n_samples,) of the cross-validation of `-v` by models that were trained without the fold of the
/// sample, and its warnings.
///
/// # Errors
/// The errors of [`train`], and [`Failure::Input`] for a single sample.
pub fn cross_validate(
    problem: &Problem<'_>,
    n_folds: usize,
    ctx: Context<'_>,
) -> Outcome<(Vec<f64>, Vec<String>)> {
    let mut trainer = Trainer::new(problem, ctx);
    let all: Vec<usize> = (0..problem.y.len()).collect();
    let predictions = trainer.out_of_fold(&all, n_folds, problem.options.probability)?;
    if n_folds > all.len() {
        trainer.warnings.push(
            "# folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)"
                .to_owned(),
        );
    }
    Ok((predictions, trainer.warnings))
}

impl<'a, 'r> Trainer<'a, 'r> {
    fn new(problem: &'a Problem<'r>, ctx: Context<'a>) -> Self {
        Self { problem, random: GlibcRandom::new(), warnings: Vec::new(), ctx }
    }

    /// Fits the machines to the listed samples; `classes` are the classes of the samples and their labels.
    fn fit(&mut self, list: &[usize], classes: Option<(&[usize], &[i32])>) -> Outcome<Machines> {
        let machines = Machines::fit(self.problem, list, classes, self.ctx)?;
        self.warnings.extend(machines.warning(self.problem.options.tolerance));
        Ok(machines)
    }

    /// Trains on the listed samples, in their order. Returns the model, the sample of each vector and the report.
    fn train(&mut self, list: &[usize], probability: bool) -> Outcome<(LibsvmModel, Vec<usize>, String)> {
        let options = self.problem.options;
        let classes = if options.svm_type.is_classifier() {
            Some(Classes::new(&self.problem.targets(list))?)
        } else {
            None
        };
        let probability = match (&classes, probability) {
            (_, false) => ProbabilityParams::default(),
            (None, true) => ProbabilityParams::new(vec![self.laplace_scale(list)?], Vec::new()),
            (Some(classes), true) => {
                let sigmoids = pairs(classes.labels.len()).map(|pair| self.sigmoid(list, classes, pair));
                ProbabilityParams::of_sigmoids(&sigmoids.collect::<Outcome<Vec<Sigmoid>>>()?)?
            }
        };
        let grouped = classes.as_ref().map(|classes| (&*classes.of_samples, &*classes.labels));
        let mut machines = self.fit(list, grouped)?;
        let labels = classes.as_ref().map_or(Vec::new(), |classes| classes.labels.clone());
        let sizes: Vec<usize> = match &classes {
            None => vec![list.len()],
            Some(classes) => {
                let counts = classes.counts();
                pairs(counts.len()).map(|(a, b)| counts[a] + counts[b]).collect()
            }
        };
        let report = machines.report(options, &sizes, &labels);
        let class_counts = std::mem::take(&mut machines.class_counts);
        let support: Vec<usize> = machines.support.iter().map(|&i| list[i]).collect();
        let expansion = machines.into_expansion(self.problem, &support, labels.len() == 2)?;
        let svm_type = options.svm_type;
        let model = LibsvmModel { svm_type, expansion, labels, class_counts, zero_based: false, probability };
        Ok((model, support, report))
    }

    /// Fits the sigmoid of a pair of classes to outputs of cross-validation.
    fn sigmoid(&mut self, list: &[usize], classes: &Classes, (a, b): (usize, usize)) -> Outcome<Sigmoid> {
        let of_samples = &classes.of_samples;
        let members_of = |class| (0..list.len()).filter(move |&i| of_samples[i] == class).map(|i| list[i]);
        let members: Vec<usize> = members_of(a).chain(members_of(b)).collect();
        let n_first = members_of(a).count();
        let labels = [classes.labels[a], classes.labels[b]];
        let mut values = vec![0.0; members.len()];
        let folds = plain_folds(members.len(), PROBABILITY_FOLDS, &mut self.random);
        for (held_out, others) in splits(&folds) {
            let sides: Vec<usize> = others.iter().map(|&i| usize::from(i >= n_first)).collect();
            let n_second: usize = sides.iter().sum();
            if n_second == 0 || n_second == sides.len() {
                // The output of a machine that knows one class or none.
                let output = if sides.is_empty() { 0.0 } else { [1.0, -1.0][sides[0]] };
                for &i in held_out {
                    values[i] = output;
                }
                continue;
            }
            if held_out.is_empty() {
                continue;
            }
            let samples =
                |positions: &[usize]| -> Vec<usize> { positions.iter().map(|&i| members[i]).collect() };
            let subset = samples(&others);
            let machines = self.fit(&subset, Some((&sides, &labels)))?;
            let support: Vec<usize> = machines.support.iter().map(|&i| subset[i]).collect();
            let expansion = machines.into_expansion(self.problem, &support, true)?;
            let outputs = outputs(&expansion, self.problem.rows, &samples(held_out), self.ctx)?;
            for (&i, output) in held_out.iter().zip(&outputs) {
                values[i] = *output;
            }
        }
        let is_first: Vec<bool> = (0..members.len()).map(|i| i < n_first).collect();
        Ok(fit_sigmoid(&values, &is_first, &vec![1.0; members.len()], 0.0, self.ctx)?)
    }

    /// Estimates the scale of the errors of a regression by cross-validation.
    fn laplace_scale(&mut self, list: &[usize]) -> Outcome<f64> {
        let predictions = self.out_of_fold(list, PROBABILITY_FOLDS, false)?;
        let errors: Vec<f64> = list.iter().zip(predictions).map(|(&i, v)| self.problem.y[i] - v).collect();
        Ok(laplace_scale(&errors))
    }

    /// Returns the prediction for each of the listed samples by a model that was trained without its fold.
    fn out_of_fold(&mut self, list: &[usize], n_folds: usize, probability: bool) -> Outcome<Vec<f64>> {
        let (y, is_classifier) = (self.problem.y, self.problem.options.svm_type.is_classifier());
        let folds = self.problem.folds(list, n_folds, &mut self.random)?;
        let mut predictions = vec![0.0; list.len()];
        let samples = |positions: &[usize]| -> Vec<usize> { positions.iter().map(|&i| list[i]).collect() };
        for (held_out, others) in splits(&folds).filter(|(held_out, _)| !held_out.is_empty()) {
            let subset = samples(&others);
            let Some(&first) = subset.first() else {
                return Err(Failure::input("cross-validation needs at least two rows"));
            };
            if is_classifier && subset.iter().all(|&j| y[j].trunc() == y[first].trunc()) {
                for &i in held_out {
                    predictions[i] = y[first].trunc();
                }
                continue;
            }
            let (model, _, _) = self.train(&subset, probability)?;
            let outputs = outputs(&model.expansion, self.problem.rows, &samples(held_out), self.ctx)?;
            let is_coupled = probability && is_classifier;
            let answers = Decoder::from(&model).answers(outputs.view(), is_coupled, self.ctx)?;
            for (&i, prediction) in held_out.iter().zip(answers.predictions) {
                predictions[i] = prediction;
            }
        }
        Ok(predictions)
    }
}
