//! The options of `svm-train`.

use crate::arguments::{Failure, Outcome, flag, integer, leading, number, value};
use svmarrow::io::libsvm_model::SvmType;

pub(crate) const USAGE: &str = "\
Usage: svm-train [options] training_set_file [model_file]
-s type       0 C-SVC, 1 nu-SVC, 2 one-class SVM, 3 epsilon-SVR, 4 nu-SVR (default 0)
-t kernel     0 linear, 1 polynomial, 2 RBF, 3 sigmoid, 4 precomputed (default 2)
-d degree     degree of the polynomial kernel (default 3)
-g gamma      gamma of the kernel (default 1 / number of features)
-r coef0      independent term of the polynomial and the sigmoid kernel (default 0)
-c C          C of C-SVC, epsilon-SVR and nu-SVR (default 1)
-n nu         nu of nu-SVC, one-class SVM and nu-SVR (default 0.5)
-p epsilon    width of the tube of epsilon-SVR (default 0.1)
-m megabytes  memory for kernel rows (default 100)
-e tolerance  tolerance of the optimality conditions (default 0.001)
-h 0|1        shrinking (default 1)
-b 0|1        parameters for probability estimates, SVC and SVR (default 0)
-wi weight    factor of C for the class i, C-SVC (default 1); -w-1 3 for the class -1
-v n          n-fold cross-validation instead of a model
-q            no output
";

/// The values of the options.
pub(crate) struct TrainOptions {
    pub(crate) svm_type: SvmType,
    pub(crate) kernel: i64,
    pub(crate) degree: u32,
    /// 0 for 1 / n_features.
    pub(crate) gamma: f64,
    pub(crate) coef0: f64,
    pub(crate) c: f64,
    pub(crate) nu: f64,
    pub(crate) epsilon: f64,
    pub(crate) megabytes: f64,
    pub(crate) tolerance: f64,
    pub(crate) shrinking: bool,
    pub(crate) probability: bool,
    pub(crate) weights: Vec<(i32, f64)>,
    pub(crate) n_folds: Option<usize>,
    pub(crate) is_quiet: bool,
}

impl TrainOptions {
    /// Reads the leading options; returns the other arguments too.
    pub(crate) fn leading(arguments: &[String]) -> Outcome<(Self, &[String])> {
        let mut options = Self {
            svm_type: SvmType::CSvc,
            kernel: 2,
            degree: 3,
            gamma: 0.0,
            coef0: 0.0,
            c: 1.0,
            nu: 0.5,
            epsilon: 0.1,
            megabytes: 100.0,
            tolerance: 0.001,
            shrinking: true,
            probability: false,
            weights: Vec::new(),
            n_folds: None,
            is_quiet: false,
        };
        let paths = leading(arguments, |option, following| options.set(option, following))?;
        options.check().map_err(Failure::usage)?;
        Ok((options, paths))
    }

    fn set(&mut self, option: &str, following: &[String]) -> Result<usize, String> {
        if option == "-q" {
            self.is_quiet = true;
            return Ok(0);
        }
        let is_known = matches!(
            option,
            "-s" | "-t" | "-d" | "-g" | "-r" | "-c" | "-n" | "-p" | "-m" | "-e" | "-h" | "-b" | "-v"
        );
        if !is_known && !option.starts_with("-w") {
            return Err(format!("unknown option: {option}"));
        }
        let text = value(option, following)?;
        let within = |found: i64, last: i64| {
            let rule = || format!("{option} {found}: the value must be an integer from 0 to {last}");
            (0..=last).contains(&found).then_some(found).ok_or_else(rule)
        };
        match option {
            "-s" => self.svm_type = SvmType::ALL[within(integer(option, text)?, 4)? as usize],
            "-t" => self.kernel = within(integer(option, text)?, 4)?,
            "-d" => {
                let degree = integer(option, text)?;
                let rule = || format!("{option} {degree}: the value must be at least 0");
                self.degree = u32::try_from(degree).ok().filter(|d| *d < 1 << 31).ok_or_else(rule)?;
            }
            "-g" => self.gamma = number(option, text)?,
            "-r" => self.coef0 = number(option, text)?,
            "-c" => self.c = number(option, text)?,
            "-n" => self.nu = number(option, text)?,
            "-p" => self.epsilon = number(option, text)?,
            "-m" => self.megabytes = number(option, text)?,
            "-e" => self.tolerance = number(option, text)?,
            "-h" => self.shrinking = flag(option, text)?,
            "-b" => self.probability = flag(option, text)?,
            "-v" => {
                let folds = integer(option, text)?;
                let rule = || format!("{option} {folds}: the value must be at least 2");
                self.n_folds = Some(usize::try_from(folds).ok().filter(|n| *n >= 2).ok_or_else(rule)?);
            }
            _ => {
                let label = integer("-wi", &option[2..])?;
                let label =
                    i32::try_from(label).map_err(|_| format!("{option}: the label must have 32 bits"))?;
                if self.weights.iter().any(|(known, _)| *known == label) {
                    return Err(format!("{option} appears twice"));
                }
                self.weights.push((label, number(option, text)?));
            }
        }
        Ok(1)
    }

    fn check(&self) -> Result<(), String> {
        let classifies = self.svm_type.is_classifier();
        let needs_c = !matches!(self.svm_type, SvmType::NuSvc | SvmType::OneClass);
        let needs_nu = !matches!(self.svm_type, SvmType::CSvc | SvmType::EpsilonSvr);
        let rules = [
            ("-g", self.gamma, self.gamma >= 0.0, "at least 0; 0 means 1 / n_features"),
            ("-m", self.megabytes, self.megabytes > 0.0, "above 0"),
            ("-e", self.tolerance, self.tolerance > 0.0, "above 0"),
            ("-c", self.c, self.c > 0.0 || !needs_c, "above 0"),
            ("-n", self.nu, (self.nu > 0.0 && self.nu <= 1.0) || !needs_nu, "above 0 and at most 1"),
            ("-p", self.epsilon, self.epsilon >= 0.0 || self.svm_type != SvmType::EpsilonSvr, "at least 0"),
        ];
        for (option, value, is_allowed, rule) in rules {
            if !is_allowed {
                return Err(format!("{option} {value:?}: the value must be {rule}"));
            }
        }
        if self.probability && self.svm_type == SvmType::OneClass {
            return Err("-b 1 is not supported for one-class SVM (-s 2)".to_owned());
        }
        match self.weights.iter().find(|(_, weight)| classifies && *weight <= 0.0) {
            Some((label, weight)) => Err(format!("-w{label} {weight:?}: the weight must be above 0")),
            None => Ok(()),
        }
    }
}
