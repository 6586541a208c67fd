"""LIBSVM's Python functions and programs on svmarrow's solver.

``from svmarrow.libsvm import *`` replaces ``from libsvm.svmutil import *``: the functions take the same
arguments and option strings, print the same lines and return the same values. The programs ``svm-train``,
``svm-predict`` and ``svm-scale`` share the grammar, and read and write the same files.

Random folds are those of ``svm-train`` with glibc, for every call from the same seed, so that
cross-validation and ``-b 1`` give the same numbers in every call and on every system.

>>> from svmarrow.libsvm import svm_predict, svm_train
>>> model = svm_train([1, -1, 1, -1], [{1: 1}, {1: -1}, {1: 2}, {1: -2}], "-t 0 -q")
>>> labels, (accuracy, _, _), values = svm_predict([1], [{1: 3}], model)
Accuracy = 100% (1/1) (classification)
"""

from svmarrow.libsvm._svmutil import (
    evaluations,
    svm_load_model,
    svm_model,
    svm_parameter,
    svm_predict,
    svm_problem,
    svm_read_problem,
    svm_save_model,
    svm_train,
)

__all__ = [
    "evaluations",
    "svm_load_model",
    "svm_model",
    "svm_parameter",
    "svm_predict",
    "svm_problem",
    "svm_read_problem",
    "svm_save_model",
    "svm_train",
]
