//! Integration tests of the crate's public face.

mod estimators;
mod io;
mod not_finite;
mod perceptron_tree;
mod pursuit;
mod reference;
mod search;
mod svm;
mod svm_family;
mod svm_stops;
