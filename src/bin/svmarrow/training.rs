//! `svm-train`: training and cross-validation by LIBSVM's rules.

use crate::arguments::{Failure, Outcome};
use crate::evaluation::cross_validation_lines;
use crate::folds::{GlibcRandom, group_classes, plain_folds, stratified_folds};
use crate::options::TrainOptions;
use crate::prediction::{kernel_outputs, labels_of, most_probable, outputs, probabilities};
use crate::problem::{Samples, kernel_values, read_samples};
use ndarray::{Array2, ArrayView2};
use std::path::Path;
use svmarrow::Kernel;
use svmarrow::context::{Context, StopReason};
use svmarrow::data::{OwnedRows, Rows};
use svmarrow::expansion::KernelExpansion;
use svmarrow::io::libsvm_model::{LibsvmModel, ProbabilityParams, SvmType, write};
use svmarrow::probability::{Sigmoid, fit_sigmoid, laplace_scale};
use svmarrow::svm::{
    Certificate, Classification, ClassifierLoss, OneClass, Regression, RegressionLoss, SvmParams,
    fit_classifier, fit_one_class, fit_regression,
};

/// Folds of the cross-validation by which `-b 1` fits probabilities.
const PROBABILITY_FOLDS: usize = 5;

/// Runs the program.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let (options, paths) = TrainOptions::leading(arguments)?;
    let (data, target) = match paths {
        [data] => {
            let name = Path::new(data).file_name().unwrap_or_default().to_string_lossy();
            (data, format!("{name}.model"))
        }
        [data, model] => (data, model.clone()),
        _ => return Err(Failure::usage("give training_set_file and, if you like, model_file")),
    };
    let (y, samples) = read_samples(data, options.kernel == 4)?;
    let columns = samples.columns()?;
    if samples.cols() == 0 {
        return Err(Failure::input("the training data has no features: at least one value must not be 0"));
    }
    let problem = Problem { y, samples, columns, options: &options };
    problem.check()?;
    if options.svm_type == SvmType::CSvc {
        let present = group_classes(&problem.y).map_err(Failure::input)?.0;
        for (label, _) in options.weights.iter().filter(|(label, _)| !present.contains(label)) {
            eprintln!("WARNING: class label {label} specified in weight is not found");
        }
    }
    let all: Vec<usize> = (0..problem.y.len()).collect();
    let Some(n_folds) = options.n_folds else {
        let trained = problem.train(&all, options.probability, &mut GlibcRandom::new(), !options.is_quiet)?;
        let LibsvmModel { svm_type, expansion, labels, class_counts, probability, .. } = &trained;
        let (path, view, ctx) = (Path::new(&target), expansion.view(), Context::default());
        write(path, *svm_type, &view, labels, class_counts, probability, ctx)?;
        return Ok(());
    };
    let predictions = problem.out_of_fold(&all, n_folds, options.probability, &mut GlibcRandom::new())?;
    if n_folds > problem.y.len() {
        eprintln!(
            "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)"
        );
    }
    let is_regression = matches!(options.svm_type, SvmType::EpsilonSvr | SvmType::NuSvr);
    println!("{}", cross_validation_lines(is_regression, &problem.y, &predictions));
    Ok(())
}

/// Data and options.
struct Problem<'a> {
    y: Vec<f64>,
    samples: Samples,
    /// The column of each row of a precomputed kernel.
    columns: Vec<usize>,
    options: &'a TrainOptions,
}

/// The machines of a fit, in the direction of the core.
struct Fitted {
    support: Vec<usize>,
    class_counts: Vec<usize>,
    coefficients: Array2<f64>,
    intercepts: Vec<f64>,
    certificates: Vec<Certificate>,
    /// The width of the tube of nu-SVR.
    epsilon: f64,
    nu: f64,
}

impl Problem<'_> {
    fn check(&self) -> Outcome {
        if self.options.svm_type != SvmType::NuSvc {
            return Ok(());
        }
        let (labels, classes) = group_classes(&self.y).map_err(Failure::input)?;
        let counts = counts(&classes, labels.len());
        for (a, b) in pairs(labels.len()) {
            if self.options.nu * (counts[a] + counts[b]) as f64 / 2.0 > counts[a].min(counts[b]) as f64 {
                return Err(Failure::input(format!(
                    "-n {:?}: the specified nu is infeasible, since two classes have {} and {} samples: lower it",
                    self.options.nu, counts[a], counts[b]
                )));
            }
        }
        Ok(())
    }

    fn kernel(&self) -> Kernel {
        let TrainOptions { degree, coef0, gamma, .. } = *self.options;
        let gamma = if gamma == 0.0 { 1.0 / self.samples.cols() as f64 } else { gamma };
        match self.options.kernel {
            0 => Kernel::Linear,
            1 => Kernel::Polynomial { degree, gamma, coef0 },
            2 => Kernel::Rbf { gamma },
            3 => Kernel::Sigmoid { gamma, coef0 },
            _ => Kernel::Precomputed,
        }
    }

    /// Returns some rows as the solver takes them.
    fn rows(&self, train: &[usize]) -> Outcome<OwnedRows> {
        Ok(match &self.samples {
            Samples::Features(rows) => rows.view().gather(train)?,
            Samples::Kernel(values, _) => {
                let columns: Vec<usize> = train.iter().map(|&i| self.columns[i] + 1).collect();
                kernel_values(values, Some(train), &columns)?.into()
            }
        })
    }

    /// Fits the machines to some rows; `classes` are those of the rows and their labels. Machines that ended early are reported.
    fn fit(&self, train: &[usize], classes: Option<(&[usize], &[i32])>) -> Outcome<Fitted> {
        let fitted = self.solve(train, classes)?;
        for (j, certificate) in fitted.certificates.iter().enumerate() {
            if certificate.stop != StopReason::Converged {
                eprintln!(
                    "WARNING: machine {j} ended before the tolerance was reached: its objective is at most {:e} from the optimum",
                    certificate.gap
                );
            }
        }
        Ok(fitted)
    }

    fn solve(&self, train: &[usize], classes: Option<(&[usize], &[i32])>) -> Outcome<Fitted> {
        let options = self.options;
        let mut params = SvmParams::default();
        params.tolerance = options.tolerance;
        params.cache_bytes = (options.megabytes * 1e6) as usize;
        params.shrinking = options.shrinking;
        let (kernel, rows, ctx) = (self.kernel(), self.rows(train)?, Context::default());
        let view: Rows<'_> = rows.view();
        let y: Vec<f64> = train.iter().map(|&i| self.y[i]).collect();
        let filled = |value: f64| vec![value; train.len()];
        let single = |model: svmarrow::svm::MachineModel, nu: f64| Fitted {
            support: model.support,
            class_counts: Vec::new(),
            coefficients: model.coefficients,
            intercepts: vec![model.intercept],
            certificates: vec![model.certificate],
            epsilon: -model.rho,
            nu,
        };
        let regression = |loss: RegressionLoss| {
            let task = Regression { targets: &y, sample_c: &filled(options.c), loss, start: None };
            fit_regression(kernel, view, &task, &params, ctx)
        };
        Ok(match (options.svm_type, classes) {
            (SvmType::CSvc | SvmType::NuSvc, Some((classes, labels))) => {
                let weight =
                    |label: i32| options.weights.iter().find(|(l, _)| *l == label).map_or(1.0, |w| w.1);
                let (loss, nu, sample_c) = if options.svm_type == SvmType::CSvc {
                    let c = classes.iter().map(|&class| options.c * weight(labels[class])).collect();
                    (ClassifierLoss::Hinge, 0.0, c)
                } else {
                    // A subset may have fewer samples of the smaller class than nu needs.
                    let counts = counts(classes, labels.len());
                    let share = |(a, b): (usize, usize)| {
                        2.0 * counts[a].min(counts[b]) as f64 / (counts[a] + counts[b]) as f64
                    };
                    let nu = pairs(labels.len()).map(share).fold(options.nu, f64::min);
                    (ClassifierLoss::Nu(nu), nu, filled(1.0))
                };
                let mut task = Classification::new(classes, labels.len(), &sample_c);
                task.loss = loss;
                let model = fit_classifier(kernel, view, &task, &params, ctx)?;
                Fitted {
                    support: model.support,
                    class_counts: model.class_counts,
                    coefficients: model.coefficients,
                    intercepts: model.intercepts,
                    certificates: model.certificates,
                    epsilon: 0.0,
                    nu,
                }
            }
            (SvmType::OneClass, _) => {
                let task = OneClass { weights: &filled(1.0), nu: options.nu, start: None };
                single(fit_one_class(kernel, view, &task, &params, ctx)?, options.nu)
            }
            (SvmType::NuSvr, _) => single(regression(RegressionLoss::Nu(options.nu))?, options.nu),
            _ => single(regression(RegressionLoss::Epsilon(options.epsilon))?, 0.0),
        })
    }

    /// Trains on some rows, in their order; `random` draws the folds that `probability` needs.
    fn train(
        &self,
        train: &[usize],
        probability: bool,
        random: &mut GlibcRandom,
        reports: bool,
    ) -> Outcome<LibsvmModel> {
        let options = self.options;
        let y: Vec<f64> = train.iter().map(|&i| self.y[i]).collect();
        let (labels, classes) = if options.svm_type.is_classifier() {
            group_classes(&y).map_err(Failure::input)?
        } else {
            (Vec::new(), Vec::new())
        };
        if labels.len() == 1 {
            return Err(Failure::input(format!(
                "the training data has only one class, {}: at least two are needed, or -s 2 for one-class SVM",
                labels[0]
            )));
        }
        let probability = match (probability, labels.len()) {
            (false, _) => ProbabilityParams::default(),
            (true, 0) => ProbabilityParams::new(vec![self.laplace_scale(train, random)?], Vec::new()),
            (true, k) => {
                let fitted =
                    pairs(k).map(|pair| self.sigmoid_of_pair(train, &classes, &labels, pair, random));
                ProbabilityParams::of_sigmoids(&fitted.collect::<Outcome<Vec<Sigmoid>>>()?)?
            }
        };
        let mut fitted = self.fit(train, (!labels.is_empty()).then_some((&classes, &labels)))?;
        if reports {
            let sizes: Vec<usize> = match labels.len() {
                0 => vec![train.len()],
                k => {
                    let counts = counts(&classes, k);
                    pairs(k).map(|(a, b)| counts[a] + counts[b]).collect()
                }
            };
            let is_weighted = options.weights.iter().any(|(label, _)| labels.contains(label));
            report(&fitted, options, &sizes, labels.len() == 2, is_weighted);
        }
        let class_counts = std::mem::take(&mut fitted.class_counts);
        Ok(LibsvmModel {
            svm_type: options.svm_type,
            expansion: self.expansion(fitted, train, labels.len() == 2)?,
            labels,
            class_counts,
            zero_based: false,
            probability,
        })
    }

    /// Returns the expansion in LIBSVM's direction, over the serial numbers of a precomputed kernel.
    fn expansion(&self, fitted: Fitted, train: &[usize], is_binary: bool) -> Outcome<KernelExpansion> {
        let Fitted { support, mut coefficients, mut intercepts, .. } = fitted;
        if is_binary {
            // The core's machine is positive for the second class, LIBSVM's for the first.
            coefficients.mapv_inplace(|b| -b);
            for b in &mut intercepts {
                *b = 0.0 - *b;
            }
        }
        let vectors: Vec<usize> = support.iter().map(|&i| train[i]).collect();
        let vectors = match &self.samples {
            Samples::Features(rows) => rows.view().gather(&vectors)?,
            Samples::Kernel(..) => {
                Array2::from_shape_fn((vectors.len(), 1), |(i, _)| self.columns[vectors[i]] as f64).into()
            }
        };
        Ok(KernelExpansion::new(self.kernel(), vectors, coefficients, intercepts)?)
    }

    /// Returns the outputs (n, n_outputs) for some rows.
    fn outputs(&self, expansion: &KernelExpansion, rows: &[usize]) -> Outcome<Array2<f64>> {
        match &self.samples {
            Samples::Features(samples) => outputs(expansion, samples.view().gather(rows)?),
            Samples::Kernel(values, _) => kernel_outputs(expansion, values, Some(rows)),
        }
    }

    /// Fits the sigmoid of a pair of classes to outputs of five-fold cross-validation.
    fn sigmoid_of_pair(
        &self,
        train: &[usize],
        classes: &[usize],
        labels: &[i32],
        (a, b): (usize, usize),
        random: &mut GlibcRandom,
    ) -> Outcome<Sigmoid> {
        let of_class = |class| (0..train.len()).filter(move |&i| classes[i] == class).map(|i| train[i]);
        let members: Vec<usize> = of_class(a).chain(of_class(b)).collect();
        let n_first = of_class(a).count();
        let labels = [labels[a], labels[b]];
        let mut found = vec![0.0; members.len()];
        let folds = plain_folds(members.len(), PROBABILITY_FOLDS, random);
        for (held, rest) in splits(&folds) {
            let sides: Vec<usize> = rest.iter().map(|&i| usize::from(i >= n_first)).collect();
            let n_second: usize = sides.iter().sum();
            if n_second == 0 || n_second == sides.len() {
                // The output of a machine that knows one class or none.
                let output = if sides.is_empty() { 0.0 } else { [1.0, -1.0][sides[0]] };
                for &i in held {
                    found[i] = output;
                }
                continue;
            }
            if held.is_empty() {
                continue;
            }
            let rows =
                |positions: &[usize]| -> Vec<usize> { positions.iter().map(|&i| members[i]).collect() };
            let subset = rows(&rest);
            let fitted = self.fit(&subset, Some((&sides, &labels)))?;
            let expansion = self.expansion(fitted, &subset, true)?;
            for (&i, output) in held.iter().zip(&self.outputs(&expansion, &rows(held))?) {
                found[i] = *output;
            }
        }
        let is_first: Vec<bool> = (0..members.len()).map(|i| i < n_first).collect();
        Ok(fit_sigmoid(&found, &is_first, &vec![1.0; members.len()], 0.0, Context::default())?)
    }

    /// Estimates the scale of the errors of a regression by five-fold cross-validation.
    fn laplace_scale(&self, train: &[usize], random: &mut GlibcRandom) -> Outcome<f64> {
        let predictions = self.out_of_fold(train, PROBABILITY_FOLDS, false, random)?;
        let errors: Vec<f64> = train.iter().zip(predictions).map(|(&i, v)| self.y[i] - v).collect();
        Ok(laplace_scale(&errors))
    }

    /// Returns the prediction for each of some rows by a model that was trained without its fold.
    fn out_of_fold(
        &self,
        train: &[usize],
        n_folds: usize,
        probability: bool,
        random: &mut GlibcRandom,
    ) -> Outcome<Vec<f64>> {
        let (n, is_classifier) = (train.len(), self.options.svm_type.is_classifier());
        let n_folds = n_folds.min(n);
        let folds = if is_classifier && n_folds < n {
            let y: Vec<f64> = train.iter().map(|&i| self.y[i]).collect();
            let (labels, classes) = group_classes(&y).map_err(Failure::input)?;
            stratified_folds(&classes, labels.len(), n_folds, random)
        } else {
            plain_folds(n, n_folds, random)
        };
        let mut predictions = vec![0.0; n];
        let rows = |positions: &[usize]| -> Vec<usize> { positions.iter().map(|&i| train[i]).collect() };
        for (held, rest) in splits(&folds).filter(|(held, _)| !held.is_empty()) {
            let subset = rows(&rest);
            let Some(&first) = subset.first() else {
                return Err(Failure::input("cross-validation needs at least two rows"));
            };
            let is_constant = || subset.iter().all(|&j| self.y[j].trunc() == self.y[first].trunc());
            if is_classifier && is_constant() {
                for &i in held {
                    predictions[i] = self.y[first].trunc();
                }
                continue;
            }
            let model = self.train(&subset, probability, random, false)?;
            let found = self.outputs(&model.expansion, &rows(held))?;
            let labels = if probability && is_classifier {
                most_probable(&model, probabilities(&model, found.view())?.view())
            } else {
                labels_of(&model, found.view())
            };
            for (&i, label) in held.iter().zip(labels) {
                predictions[i] = label;
            }
        }
        Ok(predictions)
    }
}

/// Returns each fold with the members of the others, in their order.
fn splits(folds: &[Vec<usize>]) -> impl Iterator<Item = (&[usize], Vec<usize>)> {
    folds.iter().enumerate().map(move |(i, held)| {
        let others = folds.iter().enumerate().filter(move |(j, _)| *j != i);
        (held.as_slice(), others.flat_map(|(_, fold)| fold.iter().copied()).collect())
    })
}

/// The pairs of classes a < b.
pub(crate) fn pairs(k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..k).flat_map(move |a| (a + 1..k).map(move |b| (a, b)))
}

fn counts(classes: &[usize], k: usize) -> Vec<usize> {
    let mut counts = vec![0; k];
    for &class in classes {
        counts[class] += 1;
    }
    counts
}

/// Prints the lines about each machine.
fn report(fitted: &Fitted, options: &TrainOptions, sizes: &[usize], is_binary: bool, is_weighted: bool) {
    let coefficients: ArrayView2<'_, f64> = fitted.coefficients.view();
    for (j, (certificate, &size)) in fitted.certificates.iter().zip(sizes).enumerate() {
        let total: f64 = coefficients.column(j).iter().map(|b| b.abs()).sum();
        let mut objective = -certificate.dual;
        println!("*\noptimization finished, #iter = {}", certificate.iterations);
        match options.svm_type {
            SvmType::CSvc | SvmType::EpsilonSvr if !is_weighted => {
                println!("nu = {:.6}", total / (options.c * size as f64));
            }
            SvmType::NuSvc => {
                let c = total / (fitted.nu * size as f64);
                println!("C = {c:.6}");
                objective *= c * c;
            }
            SvmType::NuSvr => println!("epsilon = {:.6}", fitted.epsilon),
            _ => {}
        }
        let rho = if is_binary { fitted.intercepts[j] } else { -fitted.intercepts[j] };
        println!("obj = {objective:.6}, rho = {rho:.6}");
        println!("nSV = {}, nBSV = {}", certificate.support, certificate.bounded);
    }
    if options.svm_type != SvmType::OneClass {
        println!("Total nSV = {}", fitted.support.len());
    }
}
