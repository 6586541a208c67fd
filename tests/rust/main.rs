//! Integration tests of the crate's public face.

mod estimators;
mod io;
mod not_finite;
mod perceptron_tree;
mod pursuit;
mod reference;
mod search;
// They set sizes of the solver.
#[cfg(feature = "papers")]
mod svm;
#[cfg(feature = "papers")]
mod svm_family;
#[cfg(feature = "papers")]
mod svm_stops;
