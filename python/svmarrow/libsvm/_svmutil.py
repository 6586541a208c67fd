"""`svm_train` and `svm_predict` with the signatures and the output of LIBSVM's ``svmutil``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.libsvm._model import svm_model
from svmarrow.libsvm._options import check_flag, svm_parameter, take_options, to_int
from svmarrow.libsvm._problem import GlibcRandom, group_classes, samples_of, svm_problem
from svmarrow.libsvm._training import check_problem, cross_validate, train_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from svmarrow.libsvm._problem import Samples

__all__ = [
    "accuracy_line",
    "evaluations",
    "predict",
    "print_warning",
    "run_training",
    "svm_predict",
    "svm_train",
]


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
    n = y.size
    if n == 0:
        raise ValueError("ty is empty: at least one target is needed")
    correct = int((y == v).sum())
    upper = n * float((v * y).sum()) - float(v.sum()) * float(y.sum())
    lower = (n * float((v * v).sum()) - float(v.sum()) ** 2) * (
        n * float((y * y).sum()) - float(y.sum()) ** 2
    )
    correlation = upper * upper / lower if lower != 0.0 else float("nan")
    return 100.0 * correct / n, float(((v - y) ** 2).sum() / n), correlation


def _print(line: str) -> None:
    print(line)


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
    check_problem(problem, parameter)
    return run_training(problem, parameter, _print)


def run_training(
    problem: svm_problem, parameter: svm_parameter, report: Callable[[str], None]
) -> svm_model | float:
    """Trains or cross-validates, and reports as ``svm-train`` does."""
    if parameter.svm_type == 0:
        present = set(group_classes(problem.y)[0])
        for label in parameter.weight_label:
            if label not in present:
                print_warning(f"class label {label} specified in weight is not found")
    if not parameter.cross_validation:
        return train_model(problem, parameter, GlibcRandom(), report=None if parameter.quiet else report)
    predictions = cross_validate(problem, parameter, GlibcRandom())
    if parameter.nr_fold > problem.l:
        print_warning(
            "# folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)"
        )
    accuracy, error, correlation = evaluations(problem.y, predictions)
    if parameter.svm_type in (3, 4):
        report(f"Cross Validation Mean squared error = {error:g}")
        report(f"Cross Validation Squared correlation coefficient = {correlation:g}")
        return error
    report(f"Cross Validation Accuracy = {accuracy:g}%")
    return accuracy


def predict(
    samples: Samples, model: svm_model, probability: bool, report: Callable[[str], None]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predictions and decision values, or probabilities where a classifier is asked for them."""
    if probability and not model.is_probability_model():
        raise ValueError(
            "-b 1 is not allowed: the model does not support probability estimates; train it with -b 1"
        )
    outputs = model._decision_values(samples)
    if not probability:
        if model.is_probability_model():
            report("Model supports probability estimates, but disabled in prediction.")
        return model._labels_of(outputs), outputs
    if model.get_svm_type() in (3, 4):
        report(
            "Prob. model for test data: target value = predicted value + z,\n"
            f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={model.get_svr_probability():g}"
        )
        return model._labels_of(outputs), np.empty((len(samples), 0))
    shares = model._probabilities_of(outputs)
    return model._most_probable(shares), shares


def accuracy_line(model: svm_model, y: NDArray[np.float64], predictions: NDArray[np.float64]) -> str:
    """The lines of ``svm-predict`` about its predictions."""
    accuracy, error, correlation = evaluations(y, predictions)
    if model.get_svm_type() in (3, 4):
        return (
            f"Mean squared error = {error:g} (regression)\n"
            f"Squared correlation coefficient = {correlation:g} (regression)"
        )
    correct = int((y == predictions).sum())
    return f"Accuracy = {accuracy:g}% ({correct}/{y.size}) (classification)"


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
    chosen = {"-b": 0, "-q": 0}

    def handle(option: str, following: list[str]) -> int:
        if option == "-q":
            chosen[option] = 1
            return 0
        if option != "-b":
            raise ValueError(f"unknown option: {option}")
        if not following:
            raise ValueError("-b needs a value")
        chosen[option] = check_flag("-b", to_int("-b", following[0]))
        return 1

    arguments = options.split() if isinstance(options, str) else list(options)
    used = take_options(arguments, handle)
    if used < len(arguments):
        raise ValueError(f"{arguments[used]} is no option of svm_predict")
    samples = samples_of(x, m._is_precomputed)
    report: Callable[[str], None] = (lambda _: None) if chosen["-q"] else _print
    targets = np.zeros(len(samples)) if len(y) == 0 else np.asarray(y, dtype=np.float64)
    if targets.shape != (len(samples),):
        raise ValueError(f"len(y) is {targets.size} and len(x) is {len(samples)}: they must be equal")
    if not len(samples):
        raise ValueError("x has no rows: at least one is needed")
    predictions, values = predict(samples, m, bool(chosen["-b"]), report)
    report(accuracy_line(m, targets, predictions))
    return predictions.tolist(), evaluations(targets, predictions), values.tolist()
