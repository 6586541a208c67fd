"""LIBSVM's Python functions: options, training problems, models, training and prediction.

`svm_train` and `svm_predict` have the signatures and the output of LIBSVM's ``svmutil``. The extension module
has the grammar and the rules of the options of ``svm-train``; the options pass to it as words.
"""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.parameters import warn_caller
from svmarrow._support.rows import as_rows, canonical, core_rows, threads
from svmarrow._support.training import pairs
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.io import load_svmlight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

__all__ = [
    "KERNELS",
    "SVM_TYPES",
    "evaluations",
    "print_warning",
    "samples_of",
    "svm_load_model",
    "svm_model",
    "svm_parameter",
    "svm_predict",
    "svm_problem",
    "svm_read_problem",
    "svm_save_model",
    "svm_train",
    "words_of",
]


# --- options of svm-train ---

#: Types of support vector machines, in the order of ``-s``.
SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
#: Kernels, in the order of ``-t``.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

#: Options with a number, and the attributes of `svm_parameter`.
_NUMBERS = {
    "-s": "svm_type",
    "-t": "kernel_type",
    "-d": "degree",
    "-g": "gamma",
    "-r": "coef0",
    "-n": "nu",
    "-m": "cache_size",
    "-c": "C",
    "-e": "eps",
    "-p": "p",
    "-h": "shrinking",
    "-b": "probability",
}


def words_of(options: str | Sequence[str]) -> list[str]:
    """Returns the words of an option string or list."""
    if isinstance(options, str):
        return options.split()
    if not isinstance(options, (list, tuple)):
        raise TypeError(f"options={options!r} is not allowed: it must be a string or a list of words")
    return [str(word) for word in options]


class svm_parameter:  # noqa: N801 - LIBSVM's name
    """Training parameters, read from LIBSVM's option string.

    Parameters
    ----------
    options : str or list of str, default=""
        Options of ``svm-train``: ``-s -t -d -g -r -c -n -p -m -e -h -b -wi -v -q``.

    Attributes
    ----------
    svm_type, kernel_type, degree, gamma, coef0, cache_size, eps, C, nu, p, shrinking, probability : number
        LIBSVM's fields. ``gamma=0`` means 1 / n_features.
    weight_label, weight : list
        Labels and factors of C of ``-wi``.
    cross_validation : bool
        Whether ``-v`` is given.
    nr_fold : int
        Its number of folds.
    quiet : bool
        Whether ``-q`` is given.

    Raises
    ------
    ValueError
        For an unknown option, a missing value, and a value outside its range.
    """

    svm_type: int
    kernel_type: int
    degree: int
    gamma: float
    coef0: float
    nu: float
    cache_size: float
    C: float
    eps: float
    p: float
    shrinking: int
    probability: int
    weight_label: list[int]
    weight: list[float]
    cross_validation: bool
    nr_fold: int
    quiet: bool

    def __init__(self, options: str | Sequence[str] = "") -> None:
        vars(self).update(_core.libsvm_options(words_of(options)))

    def _words(self) -> list[str]:
        """Returns the options as words; a caller may have changed the attributes."""
        words: list[str] = []
        for option, name in _NUMBERS.items():
            words += [option, str(getattr(self, name) + 0)]  # a truth value becomes a number
        for label, weight in zip(self.weight_label, self.weight, strict=True):
            words += [f"-w{int(label) if label == int(label) else label}", str(weight + 0)]
        if self.cross_validation:
            words += ["-v", str(self.nr_fold)]
        return words + ["-q"] * self.quiet

    def check(self) -> None:
        """Refuses values outside their ranges, by LIBSVM's rules."""
        _core.libsvm_options(self._words())


# --- training problems: data formats in memory and in files ---


def samples_of(x: Any, is_kernel: bool) -> Any:
    """Converts LIBSVM's containers: a sequence of dicts or lists, an array, or a sparse matrix.

    Returns a CSR matrix of features, counted from 1, or rows of a precomputed kernel, counted from 0: the
    column 0 is the serial number of the row.
    """
    if sp.issparse(x) or isinstance(x, np.ndarray):
        if x.ndim != 2:
            raise ValueError(f"x has shape {x.shape}: it must have two dimensions")
        if is_kernel and not sp.issparse(x):
            return np.ascontiguousarray(x, dtype=np.float64)
        return sp.csr_array(x, dtype=np.float64)
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"type of x: {type(x)} is not supported: give a list, an array or a sparse matrix")
    lowest = 0 if is_kernel else 1
    indices: list[int] = []
    values: list[float] = []
    ends = [0]
    for row in x:
        if isinstance(row, dict):
            pairs = sorted(row.items())
        elif isinstance(row, (list, tuple, np.ndarray)):
            pairs = list(enumerate(row, start=lowest))
        else:
            raise TypeError(f"type of a row of x: {type(row)} is not supported: give a dict or a list")
        for index, value in pairs:
            if value != 0:
                indices.append(int(index))
                values.append(float(value))
        ends.append(len(indices))
    if indices and (min(indices) < lowest or max(indices) >= 2**31):
        raise ValueError(f"index {min(indices)} of x is not allowed: indices count from {lowest}")
    columns = np.array(indices, dtype=np.int64) - lowest
    shape = (len(x), int(columns.max(initial=-1)) + 1)
    return sp.csr_array((np.array(values, dtype=np.float64), columns, ends), shape=shape)


class svm_problem:  # noqa: N801 - LIBSVM's name
    """Training data.

    Parameters
    ----------
    y : sequence of float of shape (n_samples,)
        Labels or targets.
    x : sequence of dict or list, array-like or sparse matrix of shape (n_samples, n_features)
        Rows. A dict maps indices, counted from 1, to values; a list, an array and a sparse matrix begin with
        the feature 1. For a precomputed kernel, the index 0, the first column, is the serial number of the
        row.
    isKernel : bool, default=False
        Whether the rows are values of a precomputed kernel.

    Attributes
    ----------
    l : int
        Number of samples.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    n : int
        Largest index of a feature.

    Raises
    ------
    TypeError
        For containers that LIBSVM does not take.
    ValueError
        For lengths that disagree, indices below 1, and values that are not finite.
    """

    y: NDArray[np.float64]
    samples: Any
    l: int  # noqa: E741 - LIBSVM's name
    n: int
    isKernel: bool  # noqa: N815 - LIBSVM's name

    def __init__(self, y: Any, x: Any, isKernel: bool = False) -> None:
        if not isinstance(y, (list, tuple, np.ndarray)):
            raise TypeError(f"type of y: {type(y)} is not supported: give a list or an array")
        self._prepare(np.asarray(y, dtype=np.float64), samples_of(x, isKernel), isKernel)

    @classmethod
    def _of(cls, y: NDArray[np.float64], samples: Any, is_kernel: bool) -> svm_problem:
        """From targets and samples as `samples_of` returns them."""
        problem = cls.__new__(cls)
        problem._prepare(y, samples, is_kernel)
        return problem

    def _prepare(self, y: NDArray[np.float64], samples: Any, is_kernel: bool) -> None:
        n_samples, n_columns = samples.shape
        if y.shape != (n_samples,):
            raise ValueError(f"len(y) is {y.size} and len(x) is {n_samples}: they must be equal")
        values = samples.data if sp.issparse(samples) else samples
        if not (np.isfinite(y).all() and np.isfinite(values).all()):
            raise ValueError("x and y must hold finite numbers")
        self.y, self.isKernel = np.ascontiguousarray(y), bool(is_kernel)
        self.samples = canonical(samples) if sp.issparse(samples) else samples
        self.l, self.n = n_samples, max(0, n_columns - self.isKernel)


def svm_read_problem(data_file_name: str | PathLike[str], return_scipy: bool = False) -> tuple[Any, Any]:
    """Reads a data file in LIBSVM's format.

    Parameters
    ----------
    data_file_name : str or path-like
        The file.
    return_scipy : bool, default=False
        Whether to return arrays.

    Returns
    -------
    y : list of float, or ndarray of shape (n_samples,)
        Labels or targets.
    x : list of dict, or scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Rows. The dicts have the indices of the file; the matrix begins with the index 1, or with 0 if it
        occurs.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line that does not follow the format.
    """
    X, y = load_svmlight(data_file_name, zero_based=True)
    if return_scipy:
        X = X[:, 1:] if X.shape[1] > 1 and not X[:, :1].nnz else X
        X.eliminate_zeros()
        return y, sp.csr_matrix(X)
    bounds = X.indptr.tolist()
    indices, values = X.indices.tolist(), X.data.tolist()
    rows = [dict(zip(indices[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(bounds)]
    return y.tolist(), rows


# --- models and their files ---


class svm_model:  # noqa: N801 - LIBSVM's name
    """A trained model, as `svm_train` and `svm_load_model` return it.

    `svmarrow.io.load_libsvm_model` reads the file of such a model for compression and export.
    """

    def __init__(
        self,
        svm_type: int,
        expansion: KernelExpansion,
        labels: list[int],
        counts: list[int],
        prob_a: list[float],
        prob_b: list[float],
        indices: list[int] | None = None,
    ) -> None:
        self._svm_type, self._expansion = svm_type, expansion
        self._labels, self._counts = labels, counts
        self._prob_a, self._prob_b = prob_a, prob_b
        self._indices = [0] * expansion.n_vectors if indices is None else indices

    def __repr__(self) -> str:
        return f"<svm_model: {SVM_TYPES[self._svm_type]}, {self._expansion.n_vectors} support vectors>"

    def get_svm_type(self) -> int:
        """Returns the number of the type, as ``-s`` takes it."""
        return self._svm_type

    def get_nr_class(self) -> int:
        """Returns the number of classes; 2 for regression and one-class SVM."""
        return len(self._labels) or 2

    def get_labels(self) -> list[int]:
        """Returns the labels in the order of the model; empty for regression and one-class SVM."""
        return list(self._labels)

    def get_nr_sv(self) -> int:
        """Returns the number of support vectors."""
        return self._expansion.n_vectors

    def get_sv_indices(self) -> list[int]:
        """Returns the training samples, counted from 1, that are support vectors; 0 for a loaded model."""
        return list(self._indices)

    def get_sv_coef(self) -> list[tuple[float, ...]]:
        """Returns the coefficients of each support vector, one for each other class."""
        coefficients = self._expansion.coefficients
        k = len(self._labels)
        if k <= 2:
            return [tuple(row) for row in coefficients.tolist()]
        vector_classes = np.repeat(np.arange(k), self._counts)
        packed = np.zeros((vector_classes.size, k - 1))
        for output, (a, b) in enumerate(pairs(k)):
            packed[vector_classes == a, b - 1] = coefficients[vector_classes == a, output]
            packed[vector_classes == b, a] = coefficients[vector_classes == b, output]
        return [tuple(row) for row in packed.tolist()]

    def get_SV(self) -> list[dict[int, float]]:  # noqa: N802 - LIBSVM's name
        """Returns the support vectors as dicts of indices and values."""
        vectors: Any = self._expansion.vectors
        if self._expansion.kernel == "precomputed":
            return [{0: serial + 1.0} for serial in np.asarray(vectors)[:, 0].tolist()]
        rows = sp.csr_array(vectors)
        return [
            {j + 1: v for j, v in zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True)}
            for a, b in zip(rows.indptr, rows.indptr[1:], strict=False)
        ]

    def is_probability_model(self) -> bool:
        """Returns whether the model was trained with ``-b 1``."""
        return bool(self._prob_a) and (bool(self._prob_b) or not self._labels)

    def get_svr_probability(self) -> float:
        """Returns the scale of the Laplace distribution of the errors of a regression."""
        if self._svm_type not in (3, 4) or not self._prob_a:
            raise ValueError("Model doesn't contain information for SVR probability inference")
        return self._prob_a[0]

    @property
    def _is_precomputed(self) -> bool:
        """True if the kernel is precomputed."""
        return bool(self._expansion.kernel == "precomputed")

    def _decision_values(self, X: Any) -> NDArray[np.float64]:
        """Computes the outputs (n_samples, n_outputs) of rows, positive for the first class of each pair."""
        expansion, n_samples = self._expansion, X.shape[0]
        if n_samples == 0:
            return np.empty((0, expansion.n_outputs))
        if expansion.n_vectors == 0:
            return np.tile(expansion.intercepts, (n_samples, 1))
        if self._is_precomputed:
            return _core.libsvm_kernel_outputs(expansion.core_parts, core_rows(as_rows(X)), threads(None))
        width = max(X.shape[1], expansion.vectors.shape[1], 1)
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(n_samples, width))
        if width != expansion.vectors.shape[1]:
            rows = sp.csr_array(expansion.vectors)
            vectors = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))
            expansion = expansion.replaced(vectors=vectors)
        return expansion.decision_function(X)

    def _answers(
        self, outputs: NDArray[np.float64], probability: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, str | None]:
        """Returns the predictions for some outputs, the probabilities of a classifier if they are asked for,
        and the lines that are printed about them.
        """
        head = (self._svm_type, self._labels, self._prob_a, self._prob_b)
        n_jobs = threads(None) if probability else 1  # labels alone take less time than counting the cores
        return _core.libsvm_answers(np.ascontiguousarray(outputs), head, probability, n_jobs)


def svm_save_model(model_file_name: str | PathLike[str], model: svm_model) -> None:
    r"""Writes a model file, which ``svm-predict`` reads.

    Parameters
    ----------
    model_file_name : str or path-like
        The file. An existing one is replaced when the new one is complete.
    model : svm_model
        The model.

    Raises
    ------
    OSError
        If the system cannot write the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from svmarrow.libsvm import (
    ...     evaluations,
    ...     svm_load_model,
    ...     svm_predict,
    ...     svm_read_problem,
    ...     svm_save_model,
    ...     svm_train,
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     data, file = Path(folder, "data"), Path(folder, "model")
    ...     _ = data.write_text("1 1:1\n-1 1:-1\n1 1:2\n")
    ...     y, x = svm_read_problem(data)
    ...     svm_save_model(file, svm_train(y, x, "-t 0 -q"))
    ...     labels, _, _ = svm_predict(y, x, svm_load_model(file), "-q")
    >>> evaluations(y, labels)[0]
    100.0
    """
    if not isinstance(model, svm_model):
        raise TypeError(f"model={model!r} is not allowed: it must be a model of svm_train or svm_load_model")
    _core.write_libsvm_model(
        os.fspath(model_file_name),
        SVM_TYPES[model._svm_type],
        model._expansion.core_parts,
        np.array(model._labels, dtype=np.int64),
        np.array(model._counts, dtype=np.int64),
        (model._prob_a, model._prob_b),
    )


def svm_load_model(model_file_name: str | PathLike[str]) -> svm_model:
    """Reads a model file of LIBSVM or `svm_save_model`, with its probability parameters.

    Parameters
    ----------
    model_file_name : str or path-like
        The file.

    Returns
    -------
    svm_model
        The model.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line that does not follow the format.
    """
    raw = _core.read_libsvm_model(os.fspath(model_file_name), None, False)
    expansion = KernelExpansion._of_parts(raw)
    labels = np.asarray(raw["labels"]).tolist()
    counts = np.asarray(raw["class_counts"]).tolist()
    prob_a, prob_b = (np.asarray(raw[key]).tolist() for key in ("prob_a", "prob_b"))
    return svm_model(SVM_TYPES.index(raw["svm_type"]), expansion, labels, counts, prob_a, prob_b)


# --- LIBSVM's functions of training and prediction ---


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
