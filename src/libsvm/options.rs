//! The options of `svm-train` and `svm-predict`: their grammar, defaults and rules.
//!
//! Source: `parse_command_line` and `svm_check_parameter` of LIBSVM 3.24. Where LIBSVM takes a word for something else, as `-cost` for
//! `-c`, it is refused.

use super::arguments::{flag, integer, leading, number, only_options, value};
use super::failure::{Failure, Outcome};
use crate::io::libsvm_model::SvmType;
use crate::kernel::Kernel;
use std::ffi::{OsStr, OsString};

pub(super) const TRAIN_USAGE: &str = "\
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

pub(super) const PREDICT_USAGE: &str = "\
Usage: svm-predict [options] test_file model_file output_file
-b 0|1        probability estimates, of a model trained with -b 1 (default 0)
-q            no output
";

/// The options of `svm-train`.
#[derive(Debug, Clone)]
pub struct TrainOptions {
    /// `-s`.
    pub svm_type: SvmType,
    /// `-t`: 0 linear, 1 polynomial, 2 RBF, 3 sigmoid, 4 precomputed.
    pub kernel: i64,
    /// `-d`.
    pub degree: u32,
    /// `-g`; 0 for 1 / n_features.
    pub gamma: f64,
    /// `-r`.
    pub coef0: f64,
    /// `-c`, before the factors of the classes.
    pub c: f64,
    /// `-n`.
    pub nu: f64,
    /// `-p`.
    pub epsilon: f64,
    /// `-m`.
    pub megabytes: f64,
    /// `-e`.
    pub tolerance: f64,
    /// `-h`.
    pub shrinking: bool,
    /// `-b`.
    pub probability: bool,
    /// `-wi`: labels and factors of C.
    pub weights: Vec<(i32, f64)>,
    /// `-v`.
    pub n_folds: Option<usize>,
    /// `-q`.
    pub is_quiet: bool,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl TrainOptions {
    /// Reads the leading options; returns the other arguments too.
    pub(super) fn leading(arguments: &[OsString]) -> Outcome<(Self, &[OsString])> {
        let mut options = Self::default();
        let paths = leading(arguments, |option, following| options.set(option, following))?;
        options.check().map_err(Failure::Usage)?;
        Ok((options, paths))
    }

    /// Reads options without other arguments.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an unknown option, a missing value and a value that is not allowed.
    pub fn parse(words: &[OsString]) -> Outcome<Self> {
        let mut options = Self::default();
        only_options("svm-train", words, |option, following| options.set(option, following))?;
        options.check().map_err(Failure::Usage)?;
        Ok(options)
    }

    /// Returns true if the machine is a regression.
    pub fn is_regression(&self) -> bool {
        matches!(self.svm_type, SvmType::EpsilonSvr | SvmType::NuSvr)
    }

    /// Returns true if the kernel is precomputed.
    pub fn is_precomputed(&self) -> bool {
        self.kernel == 4
    }

    /// Returns the kernel for samples with a number of features.
    pub(super) fn kernel_of(&self, n_features: usize) -> Kernel {
        let Self { degree, coef0, gamma, .. } = *self;
        let gamma = if gamma == 0.0 { 1.0 / n_features as f64 } else { gamma };
        match self.kernel {
            0 => Kernel::Linear,
            1 => Kernel::Polynomial { degree, gamma, coef0 },
            2 => Kernel::Rbf { gamma },
            3 => Kernel::Sigmoid { gamma, coef0 },
            _ => Kernel::Precomputed,
        }
    }

    /// Returns the factor of C of a class.
    pub(super) fn weight_of(&self, label: i32) -> f64 {
        self.weights.iter().find(|(l, _)| *l == label).map_or(1.0, |(_, weight)| *weight)
    }

    fn set(&mut self, option: &str, following: &[OsString]) -> Result<usize, String> {
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
        let up_to_4 = |number: i64| {
            let rule = || format!("{option} {number}: the value must be an integer from 0 to 4");
            (0..=4).contains(&number).then_some(number).ok_or_else(rule)
        };
        match option {
            "-s" => self.svm_type = SvmType::ALL[up_to_4(integer(option, text)?)? as usize],
            "-t" => self.kernel = up_to_4(integer(option, text)?)?,
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
                let label = integer("-wi", OsStr::new(&option[2..]))?;
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

/// The options of `svm-predict`.
#[derive(Debug, Clone, Copy, Default)]
pub struct PredictOptions {
    /// `-b`.
    pub probability: bool,
    /// `-q`.
    pub is_quiet: bool,
}

impl PredictOptions {
    /// Reads the leading options; returns the other arguments too.
    pub(super) fn leading(arguments: &[OsString]) -> Outcome<(Self, &[OsString])> {
        let mut options = Self::default();
        let paths = leading(arguments, |option, following| options.set(option, following))?;
        Ok((options, paths))
    }

    /// Reads options without other arguments.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an unknown option, a missing value and a value that is not allowed.
    pub fn parse(words: &[OsString]) -> Outcome<Self> {
        let mut options = Self::default();
        only_options("svm-predict", words, |option, following| options.set(option, following))?;
        Ok(options)
    }

    fn set(&mut self, option: &str, following: &[OsString]) -> Result<usize, String> {
        match option {
            "-q" => {
                self.is_quiet = true;
                Ok(0)
            }
            "-b" => {
                self.probability = flag(option, value(option, following)?)?;
                Ok(1)
            }
            _ => Err(format!("unknown option: {option}")),
        }
    }
}
