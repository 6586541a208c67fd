//! LIBSVM's programs: `svm-train`, `svm-predict` and `svm-scale`.
//!
//! Problem: scripts and tools are written for LIBSVM's programs and for its Python module. The option grammar, the lines that are
//! printed, the files, the random folds and the rules of training and prediction are LIBSVM's, and they are here alone: the
//! program `svmarrow` of this crate, the commands of the Python package and the functions of `svmarrow.libsvm` all call this
//! module.
//!
//! Source: LIBSVM 3.24 by Chang and Lin, its README and its `svm-train.c`, `svm-predict.c`, `svm-scale.c` and `svm.cpp`.
//!
//! Invariant: a program writes only to its [`Streams`] and to the files that its arguments name, and never ends the process.
//!
//! Cost: that of the solver and of reading the files; `svm-scale` writes its output row by row.
//!
//! | file | holds |
//! |---|---|
//! | `program` | the programs, their exit codes and error messages |
//! | `arguments`, `options` | the option grammar; options of `svm-train` and `svm-predict` |
//! | `failure`, `streams`, `numbers` | errors, output, numbers as C prints them |
//! | `problem` | rows and targets, from files or from memory |
//! | `classes`, `folds` | classes in LIBSVM's order; random folds |
//! | `machines`, `training` | machines of some samples; models, probability parameters, out-of-fold predictions |
//! | `prediction`, `evaluation` | outputs, labels, probabilities; accuracy and errors |
//! | `svm_train`, `svm_predict`, `svm_scale` | what the programs do |

mod arguments;
mod classes;
mod evaluation;
mod failure;
mod folds;
mod machines;
mod numbers;
mod options;
mod prediction;
mod problem;
mod program;
mod streams;
mod svm_predict;
mod svm_scale;
mod svm_train;
mod training;

pub use arguments::{integer, leading, value};
pub use classes::pairs;
pub use evaluation::{Evaluation, evaluate};
pub use failure::{Failure, Outcome};
pub use options::{PredictOptions, TrainOptions};
pub use prediction::{Answers, Decoder, kernel_outputs};
pub use problem::{Folds, MAX_ASYMMETRY, Problem};
pub use program::{PROGRAMS, Program};
pub use streams::Streams;
pub use training::{TrainedModel, cross_validate, train};
