//! `svmarrow._core`: the extension module under the Python package `svmarrow`.
//!
//! This layer converts buffers, releases the interpreter lock and maps errors. It holds no algorithm and no
//! policy: those are in the crate `svmarrow` below and in the package `svmarrow` above.
//!
//! | file | holds |
//! |---|---|
//! | `run` | the one gate out of the interpreter: threads, Ctrl-C, progress, panics |
//! | `array` | NumPy arrays and CSR triples as views, results moved into NumPy |
//! | `dict` | structs of the core as dicts |
//! | `error` | the core's errors as Python exceptions |
//! | `function` | kernels that are Python functions |
//! | `params` | kernels and enumerations |
//! | `memory` | how much memory may be used |
//! | `single` | predictions of one row, straight from Python's numbers |
//! | the others | the core module of the same name |

#![forbid(unsafe_code)]

mod array;
mod dict;
mod error;
mod expansion;
mod explain;
mod function;
mod io;
mod kernels;
mod least_squares;
mod libsvm;
mod low_rank;
mod matching_pursuit;
mod memory;
mod multiclass;
mod params;
mod path;
mod perceptron;
mod perceptron_tree;
mod probability;
mod reduced_set;
mod run;
mod search;
mod sequences;
mod single;
mod svm;

use pyo3::prelude::*;

// Every class is frozen and every function works on its arguments alone, so the module needs no lock of its own.
#[pymodule(gil_used = false)]
mod _core {
    // Sizes and limits of the core that the package needs too, for its estimates of memory and its own checks.
    #[pymodule_export]
    const DEFAULT_DICTIONARY_BYTES: usize = svmarrow::matching_pursuit::DEFAULT_DICTIONARY_BYTES;
    #[pymodule_export]
    const DEFAULT_SAMPLE_SIZE: usize = svmarrow::matching_pursuit::DEFAULT_SAMPLE_SIZE;
    #[pymodule_export]
    const MAX_ASYMMETRY: f64 = svmarrow::libsvm::MAX_ASYMMETRY;
    #[pymodule_export]
    const MAX_CACHED_COLUMN_BYTES: usize = svmarrow::matching_pursuit::MAX_CACHED_COLUMN_BYTES;
    #[pymodule_export]
    const MAX_LISTED_FEATURES: usize = svmarrow::kernels::MAX_LISTED_FEATURES;
    #[pymodule_export]
    const MAX_SPLIT_BYTES: usize = svmarrow::perceptron::tree::MAX_SPLIT_BYTES;
    #[pymodule_export]
    const MAX_SUBSEQUENCE_LENGTH: usize = svmarrow::sequences::MAX_SUBSEQUENCE_LENGTH;
    #[pymodule_export]
    const MIN_PAIR_PROBABILITY: f64 = svmarrow::probability::MIN_PAIR_PROBABILITY;

    #[pymodule_export]
    use crate::expansion::{Expansion, linear_weights};
    #[pymodule_export]
    use crate::explain::shapley_values;
    #[pymodule_export]
    use crate::io::{
        read_libsvm_model, read_model, read_svmlight, stored_bytes, write_libsvm_model, write_model,
        write_svmlight,
    };
    #[pymodule_export]
    use crate::kernels::{gram, simd_level};
    #[pymodule_export]
    use crate::least_squares::{
        least_squares, least_squares_bytes, least_squares_cg, least_squares_inverse,
        least_squares_inverse_bytes, least_squares_path, least_squares_path_bytes, linear_least_squares_cg,
    };
    #[pymodule_export]
    use crate::libsvm::{
        libsvm_answers, libsvm_cross_validate, libsvm_evaluate, libsvm_folds, libsvm_kernel_outputs,
        libsvm_options, libsvm_predict_options, libsvm_program, libsvm_train,
    };
    #[pymodule_export]
    use crate::low_rank::{Features, low_rank_cg, low_rank_solve, low_rank_sums, select_points_by_kernel};
    #[pymodule_export]
    use crate::matching_pursuit::matching_pursuit;
    #[pymodule_export]
    use crate::memory::available_memory;
    #[pymodule_export]
    use crate::multiclass::{
        code_distances, decode_scores, decode_winners, leave_one_out_rows, make_code, margin_loss,
    };
    #[pymodule_export]
    use crate::path::{path_coefficients, path_decisions, path_outputs};
    #[pymodule_export]
    use crate::perceptron::{perceptron_stream, voted};
    #[pymodule_export]
    use crate::perceptron_tree::{
        PerceptronTree, box_budget_program, perceptron_tree, perceptron_tree_of, perceptron_tree_stream,
    };
    #[pymodule_export]
    use crate::probability::fit_sigmoid;
    #[pymodule_export]
    use crate::reduced_set::cascade::{Cascade, expansion_moments};
    #[pymodule_export]
    use crate::reduced_set::construction::{centres, gradient_vectors};
    #[pymodule_export]
    use crate::reduced_set::pursuit::pursuit;
    #[pymodule_export]
    use crate::reduced_set::selection::{estimate_selection_memory, select_vectors};
    #[pymodule_export]
    use crate::reduced_set::threshold::{threshold_binary, threshold_joint};
    #[pymodule_export]
    use crate::search::search_svm;
    #[pymodule_export]
    use crate::sequences::{SeriesBlock, StringBlock};
    #[pymodule_export]
    use crate::single::Single;
    #[pymodule_export]
    use crate::svm::{estimate_svm_memory, fit_one_class_svm, fit_quantile_svr, fit_svc, fit_svr};
}
