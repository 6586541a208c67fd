//! The machines of a model: fitted to some samples of a problem, and turned into LIBSVM's expansion and report.
//!
//! The solver's machine of two classes is positive for the second class, LIBSVM's for the first; `into_expansion` changes the
//! sign. Vectors of a precomputed kernel are serial numbers, counted from 0. Invariant: a fit that the monitor interrupts is an
//! error and never a model. Cost: that of the fit, and a copy of its rows.

use super::classes::{counts, pairs};
use super::failure::{Failure, Outcome};
use super::numbers::fixed;
use super::options::TrainOptions;
use super::problem::Problem;
use crate::context::{Context, Interruption, StopReason};
use crate::data::Rows;
use crate::error::Error;
use crate::expansion::KernelExpansion;
use crate::io::libsvm_model::SvmType;
use crate::kernels::KernelFunction;
use crate::svm::{
    Certificate, Classification, ClassifierLoss, MachineModel, OneClass, Regression, RegressionLoss,
    SvmParams, fit_classifier, fit_one_class, fit_regression,
};
use ndarray::Array2;

/// The machines of a fit, in the direction of the solver.
pub(super) struct Machines {
    /// The position of each vector among the samples of the fit.
    pub(super) support: Vec<usize>,
    pub(super) class_counts: Vec<usize>,
    coefficients: Array2<f64>,
    intercepts: Vec<f64>,
    certificates: Vec<Certificate>,
    /// The width of the tube of nu-SVR.
    epsilon: f64,
    nu: f64,
}

impl Machines {
    /// Fits the machines to the listed samples; `classes` are the classes of the samples and their labels.
    pub(super) fn fit(
        problem: &Problem<'_>,
        list: &[usize],
        classes: Option<(&[usize], &[i32])>,
        ctx: Context<'_>,
    ) -> Outcome<Self> {
        if let Some((_, [label])) = classes {
            return Err(Failure::input(format!(
                "the training data has only one class, {label}: at least two are needed, or -s 2 for one-class SVM"
            )));
        }
        let options = problem.options;
        let params = SvmParams {
            tolerance: options.tolerance,
            cache_bytes: (options.megabytes * 1e6) as usize,
            shrinking: options.shrinking,
            ..SvmParams::default()
        };
        let rows = problem.training_rows(list, ctx)?;
        let machines = match classes {
            Some((classes, labels)) => {
                Self::fit_classes(problem, rows.view(), (classes, labels), &params, ctx)
            }
            None => Self::fit_single(problem, rows.view(), &problem.targets(list), &params, ctx),
        }?;
        if machines.certificates.iter().any(|certificate| certificate.stop == StopReason::Interrupted) {
            return Err(Error::Stopped(Interruption::Interrupted).into());
        }
        Ok(machines)
    }

    fn fit_classes(
        problem: &Problem<'_>,
        rows: Rows<'_>,
        (classes, labels): (&[usize], &[i32]),
        params: &SvmParams,
        ctx: Context<'_>,
    ) -> Outcome<Self> {
        let options = problem.options;
        let (loss, nu, sample_c) = if options.svm_type == SvmType::CSvc {
            let c_of = |&class: &usize| options.c * options.weight_of(labels[class]);
            (ClassifierLoss::Hinge, 0.0, classes.iter().map(c_of).collect())
        } else {
            // A subset may have fewer samples of the smaller class than nu needs.
            let counts = counts(classes, labels.len());
            let max_nu = |(a, b): (usize, usize)| {
                2.0 * counts[a].min(counts[b]) as f64 / (counts[a] + counts[b]) as f64
            };
            let nu = pairs(labels.len()).map(max_nu).fold(options.nu, f64::min);
            (ClassifierLoss::Nu(nu), nu, vec![1.0; classes.len()])
        };
        let mut task = Classification::new(classes, labels.len(), &sample_c);
        task.loss = loss;
        // The type of the binding's calls, so that the solver is compiled once.
        let kernel = KernelFunction::from(options.kernel_of(problem.n_features()));
        let model = fit_classifier(kernel, rows, &task, params, ctx)?;
        Ok(Self {
            support: model.support,
            class_counts: model.class_counts,
            coefficients: model.coefficients,
            intercepts: model.intercepts,
            certificates: model.certificates,
            epsilon: 0.0,
            nu,
        })
    }

    fn fit_single(
        problem: &Problem<'_>,
        rows: Rows<'_>,
        y: &[f64],
        params: &SvmParams,
        ctx: Context<'_>,
    ) -> Outcome<Self> {
        let options = problem.options;
        // The type of the binding's calls, so that the solver is compiled once.
        let kernel = KernelFunction::from(options.kernel_of(problem.n_features()));
        let regression = |loss: RegressionLoss| {
            let sample_c = vec![options.c; y.len()];
            let task = Regression { targets: y, sample_c: &sample_c, loss, start: None };
            fit_regression(kernel, rows, &task, params, ctx)
        };
        let model: MachineModel = match options.svm_type {
            SvmType::OneClass => {
                let task = OneClass { weights: &vec![1.0; y.len()], nu: options.nu, start: None };
                fit_one_class(kernel, rows, &task, params, ctx)
            }
            SvmType::NuSvr => regression(RegressionLoss::Nu(options.nu)),
            _ => regression(RegressionLoss::Epsilon(options.epsilon)),
        }?;
        Ok(Self {
            support: model.support,
            class_counts: Vec::new(),
            coefficients: model.coefficients,
            intercepts: vec![model.intercept],
            certificates: vec![model.certificate],
            epsilon: -model.rho,
            nu: options.nu,
        })
    }

    /// Returns the expansion in LIBSVM's direction, over the serial numbers of a precomputed kernel.
    ///
    /// `support` lists the sample of each vector.
    pub(super) fn into_expansion(
        self,
        problem: &Problem<'_>,
        support: &[usize],
        is_binary: bool,
    ) -> Outcome<KernelExpansion> {
        let Self { mut coefficients, mut intercepts, .. } = self;
        if is_binary {
            // The solver's machine is positive for the second class, LIBSVM's for the first.
            coefficients.mapv_inplace(|b| -b);
            for b in &mut intercepts {
                *b = 0.0 - *b;
            }
        }
        let vectors = if problem.options.is_precomputed() {
            Array2::from_shape_fn((support.len(), 1), |(i, _)| problem.columns[support[i]] as f64).into()
        } else {
            problem.rows.gather(support)?
        };
        let kernel = problem.options.kernel_of(problem.n_features());
        Ok(KernelExpansion::new(kernel, vectors, coefficients, intercepts)?)
    }

    /// Returns the warning about a fit that ended before the tolerance was reached.
    pub(super) fn warning(&self, tolerance: f64) -> Option<String> {
        let unfinished =
            || self.certificates.iter().filter(|certificate| certificate.stop != StopReason::Converged);
        let first = unfinished().next()?;
        let largest = |value: fn(&Certificate) -> f64| unfinished().map(value).fold(0.0, f64::max);
        let rounding = largest(|certificate| certificate.rounding);
        let cause = if rounding > tolerance {
            format!(", and rounding may have moved an output by {rounding:.2e}")
        } else {
            String::new()
        };
        Some(format!(
            "training ended before the tolerance was reached ({}): the violation is {:.2e} for -e {tolerance:?}, the duality gap \
         {:.2e}{cause}. The model is usable; scale the data, lower -c, or raise -e",
            first.stop.name(),
            largest(|certificate| certificate.violation),
            largest(|certificate| certificate.gap),
        ))
    }

    /// Returns the lines about each machine.
    pub(super) fn report(&self, options: &TrainOptions, sizes: &[usize], labels: &[i32]) -> String {
        let is_weighted = options.weights.iter().any(|(label, _)| labels.contains(label));
        let mut lines = Vec::new();
        let mut line = |line: String| lines.push(line);
        for (j, (certificate, &size)) in self.certificates.iter().zip(sizes).enumerate() {
            let total: f64 = self.coefficients.column(j).iter().map(|b| b.abs()).sum();
            let mut objective = -certificate.dual;
            line("*".to_owned());
            line(format!("optimization finished, #iter = {}", certificate.iterations));
            match options.svm_type {
                SvmType::CSvc | SvmType::EpsilonSvr if !is_weighted => {
                    line(format!("nu = {}", fixed(total / (options.c * size as f64))));
                }
                SvmType::NuSvc => {
                    let c = total / (self.nu * size as f64);
                    line(format!("C = {}", fixed(c)));
                    objective *= c * c;
                }
                SvmType::NuSvr => line(format!("epsilon = {}", fixed(self.epsilon))),
                _ => {}
            }
            let rho = if labels.len() == 2 { self.intercepts[j] } else { -self.intercepts[j] };
            line(format!("obj = {}, rho = {}", fixed(objective), fixed(rho)));
            line(format!("nSV = {}, nBSV = {}", certificate.support, certificate.bounded));
        }
        if options.svm_type != SvmType::OneClass {
            line(format!("Total nSV = {}", self.support.len()));
        }
        lines.join("\n")
    }
}
