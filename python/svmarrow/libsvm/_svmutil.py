"""`svm_train` and `svm_predict` with the signatures and the output of LIBSVM's ``svmutil``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.parameters import warn_caller
from svmarrow._support.rows import core_rows, threads
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.libsvm._model import svm_model
from svmarrow.libsvm._options import svm_parameter, words_of
from svmarrow.libsvm._problem import samples_of, svm_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["evaluations", "print_warning", "svm_predict", "svm_train"]


def evaluations(ty: Any, pv: Any) -> tuple[float, float, float]:
    """Compares targets and predictions.

    Parameters
    ----------
    ty : array-like of shape (n_samples,)
        True labels or targets.
    pv : array-like of shape (n_samples,)
        Predictions.

    Returns
    -------
    accuracy : float
        Accuracy in percent.
    mean_squared_error : float
        Mean squared error.
    squared_correlation : float
        Squared correlation coefficient; NaN where a side is constant.

    Raises
    ------
    ValueError
        If the lengths differ or are 0.
    """
    y, v = np.asarray(ty, dtype=np.float64), np.asarray(pv, dtype=np.float64)
    if y.shape != v.shape or y.ndim != 1:
        raise ValueError(f"ty has shape {y.shape} and pv {v.shape}: they must be vectors of one length")
    if y.size == 0:
        raise ValueError("ty is empty: at least one target is needed")
    accuracy, error, correlation, _, _ = _core.libsvm_evaluate(
        np.ascontiguousarray(y), np.ascontiguousarray(v), 0
    )
    return accuracy, error, correlation


def print_warning(text: str) -> None:
    """Prints a warning on stderr, as LIBSVM does."""
    sys.stderr.write(f"WARNING: {text}\n")


def svm_train(
    arg1: Any, arg2: Any = None, arg3: str | Sequence[str] | svm_parameter | None = None
) -> svm_model | float:
    """Trains a model, or returns the result of cross-validation.

    Call it as ``svm_train(y, x, options)``, ``svm_train(problem, options)`` or
    ``svm_train(problem, parameter)``.

    Parameters
    ----------
    arg1 : sequence of float of shape (n_samples,), or svm_problem
        Labels or targets, or the problem.
    arg2 : rows as `svm_problem` takes them, or str or svm_parameter
        The rows of shape (n_samples, n_features), or the options.
    arg3 : str or list of str, default=None
        Options of ``svm-train``.

    Returns
    -------
    svm_model or float
        The model; with ``-v`` the accuracy in percent, or the mean squared error of a regression.

    Raises
    ------
    TypeError
        For containers that LIBSVM does not take.
    ValueError
        For options outside the grammar, and data that they do not fit.

    Warns
    -----
    ConvergenceWarning
        If a machine ended before the tolerance was reached.

    Examples
    --------
    >>> from svmarrow.libsvm import svm_parameter, svm_predict, svm_problem, svm_train
    >>> y, x = [1, -1, 1, -1], [{1: 1}, {1: -1}, {1: 2}, {1: -2}]
    >>> model = svm_train(svm_problem(y, x), svm_parameter("-t 0 -c 4 -q"))
    >>> model
    <svm_model: c_svc, 2 support vectors>
    >>> labels, (accuracy, mse, scc), values = svm_predict(y, x, model, "-q")
    >>> labels
    [1.0, -1.0, 1.0, -1.0]
    """
    if isinstance(arg1, svm_problem):
        if arg3 is not None:
            raise ValueError("svm_train(problem, options) takes two arguments")
        options, problem = arg2, arg1
    else:
        options, problem = arg3, None
    options = "" if options is None else options
    parameter = options if isinstance(options, svm_parameter) else svm_parameter(options)
    parameter.check()
    if problem is None:
        problem = svm_problem(arg1, arg2, isKernel=parameter.kernel_type == 4)
    if problem.isKernel != (parameter.kernel_type == 4):
        raise ValueError(
            "-t 4 needs rows of kernel values (isKernel=True), the other kernels rows of features"
        )
    return _cross_validate(problem, parameter) if parameter.cross_validation else _train(problem, parameter)


def _warn(warnings: Sequence[str], early: Sequence[str]) -> None:
    """Reports warnings about options as LIBSVM does, and fits that ended early as the estimators do."""
    for text in warnings:
        print_warning(text)
    for text in early:
        warn_caller(text, ConvergenceWarning)


def _train(problem: svm_problem, parameter: svm_parameter) -> svm_model:
    fitted = _core.libsvm_train(core_rows(problem.samples), problem.y, parameter._words(), threads(None))
    _warn(fitted["warnings"], fitted["early"])
    if not parameter.quiet:
        print(fitted["report"])
    return svm_model(
        parameter.svm_type,
        KernelExpansion._of_parts(fitted),
        fitted["labels"],
        fitted["class_counts"],
        fitted["prob_a"],
        fitted["prob_b"],
        (np.asarray(fitted["support"]) + 1).tolist(),
    )


def _cross_validate(problem: svm_problem, parameter: svm_parameter) -> float:
    predictions, warnings, early = _core.libsvm_cross_validate(
        core_rows(problem.samples), problem.y, parameter._words(), threads(None)
    )
    _warn(warnings, early)
    accuracy, error, _, lines, _ = _core.libsvm_evaluate(problem.y, predictions, parameter.svm_type)
    print(lines)
    return error if parameter.svm_type in (3, 4) else accuracy


def svm_predict(
    y: Any, x: Any, m: svm_model, options: str | Sequence[str] = ""
) -> tuple[list[float], tuple[float, float, float], list[list[float]]]:
    """Predicts, and prints how well the predictions fit the labels.

    Parameters
    ----------
    y : sequence of float of shape (n_samples,)
        Labels or targets to compare with; empty if they are unknown, and then taken for 0.
    x : rows of shape (n_samples, n_features), as `svm_problem` takes them
        The rows.
    m : svm_model
        The model.
    options : str or list of str, default=""
        ``-b 1`` for probabilities, ``-q`` for no output.

    Returns
    -------
    p_labels : list of float
        Predictions.
    p_acc : tuple
        What `evaluations` returns.
    p_vals : list of list of float
        For each sample the decision values, or with ``-b 1`` the probabilities in the order of
        ``m.get_labels()``.

    Raises
    ------
    TypeError
        For containers that LIBSVM does not take.
    ValueError
        For unknown options, a model without probabilities, and lengths that disagree.
    """
    if not isinstance(m, svm_model):
        raise TypeError(f"m={m!r} is not allowed: it must be a model of svm_train or svm_load_model")
    if not isinstance(y, (list, tuple, np.ndarray)):
        raise TypeError(f"type of y: {type(y)} is not supported: give a list or an array")
    probability, is_quiet = _core.libsvm_predict_options(words_of(options))
    samples = samples_of(x, m._is_precomputed)
    n_samples = samples.shape[0]
    targets: NDArray[np.float64] = np.zeros(n_samples)
    if len(y):
        targets = np.ascontiguousarray(y, dtype=np.float64)
    if targets.shape != (n_samples,):
        raise ValueError(f"len(y) is {targets.size} and len(x) is {n_samples}: they must be equal")
    if not n_samples:
        raise ValueError("x has no rows: at least one is needed")
    values = m._decision_values(samples)
    predictions, probabilities, remark = m._answers(values, probability)
    if probability:  # a regression has a scale of its errors instead
        values = np.empty((n_samples, 0)) if probabilities is None else probabilities
    accuracy, error, correlation, _, lines = _core.libsvm_evaluate(targets, predictions, m.get_svm_type())
    if not is_quiet:
        if remark is not None:
            print(remark)
        print(lines)
    return predictions.tolist(), (accuracy, error, correlation), values.tolist()
