"""Training problems: LIBSVM's data formats in memory and in files."""

from __future__ import annotations

import itertools
import os
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow.exceptions import FormatError
from svmarrow.io.svmlight import load_svmlight

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray


__all__ = [
    "GlibcRandom",
    "Samples",
    "group_classes",
    "plain_folds",
    "read_samples",
    "samples_of",
    "stratified_folds",
    "svm_problem",
    "svm_read_problem",
]


# --- the random folds of LIBSVM's programs ---


class GlibcRandom:
    """``rand`` of the GNU C library after ``srand(1)``, with which ``svm-train`` shuffles."""

    def __init__(self) -> None:
        state = [1]
        for _ in range(30):
            state.append(16807 * state[-1] % 2147483647)
        state += state[:3]
        self._state = deque(state[-31:], maxlen=31)
        for _ in range(310):
            self._next()

    def _next(self) -> int:
        value = (self._state[0] + self._state[28]) & 0xFFFFFFFF
        self._state.append(value)
        return value

    def shuffle(self, values: list[int]) -> None:
        """Shuffles in place as LIBSVM does."""
        n = len(values)
        for i in range(n):
            j = i + (self._next() >> 1) % (n - i)
            values[i], values[j] = values[j], values[i]


def group_classes(y: NDArray[np.float64]) -> tuple[list[int], NDArray[np.intp]]:
    """Labels in LIBSVM's order, and the class number of each sample.

    The order is that of the first occurrence, but for the labels -1 and 1, of which 1 comes first.
    """
    labels = y.astype(np.int64)  # truncates, as LIBSVM does
    distinct, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    if distinct[order].tolist() == [-1, 1]:
        order = order[::-1]
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    return distinct[order].tolist(), position[inverse.reshape(-1)]


def plain_folds(n: int, n_folds: int, random: GlibcRandom) -> list[NDArray[np.int64]]:
    """Samples of each fold in the order of LIBSVM, without regard to classes."""
    order = list(range(n))
    random.shuffle(order)
    ends = [i * n // n_folds for i in range(n_folds + 1)]
    return [np.array(order[a:b], dtype=np.int64) for a, b in itertools.pairwise(ends)]


def stratified_folds(
    classes: NDArray[np.intp], n_classes: int, n_folds: int, random: GlibcRandom
) -> list[NDArray[np.int64]]:
    """Samples of each fold in the order of LIBSVM, with the same share of every class in each fold."""
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    for c in range(n_classes):
        members = np.flatnonzero(classes == c).tolist()
        random.shuffle(members)
        for i, fold in enumerate(folds):
            fold += members[i * len(members) // n_folds : (i + 1) * len(members) // n_folds]
    return [np.array(fold, dtype=np.int64) for fold in folds]


class Samples:
    """Rows of a problem: features, or kernel values with the serial number of each row.

    ``X`` is a CSR matrix (n_samples, n_features), or for a precomputed kernel an array or a CSR matrix of
    kernel values (n_samples, n_columns), whose column j belongs to the training row with the serial number
    j + 1.
    """

    X: Any
    serials: NDArray[np.float64] | None

    def __init__(self, X: Any, serials: NDArray[np.float64] | None = None) -> None:
        self.X, self.serials = X, serials

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def is_kernel(self) -> bool:
        """True if the rows are kernel values."""
        return self.serials is not None

    def columns(self) -> NDArray[np.int64]:
        """The column of each row of a precomputed training problem."""
        assert self.serials is not None
        columns = self.serials.astype(np.int64) - 1
        if (columns + 1 != self.serials).any() or ((columns < 0) | (columns >= self.X.shape[1])).any():
            raise ValueError(
                "the serial numbers (index 0) of a precomputed kernel must be integers from 1 to the number "
                f"of columns, {self.X.shape[1]}"
            )
        return columns


def dense_columns(X: Any, columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Some columns of an array or of a CSR matrix, whose memory does not depend on its number of columns."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[:, columns])
    present, inverse = np.unique(columns, return_inverse=True)
    places = np.searchsorted(present, X.indices)
    is_used = np.append(present, -1)[places] == X.indices
    ends = np.append(0, np.cumsum(is_used))[X.indptr]
    used = sp.csr_array((X.data[is_used], places[is_used], ends), shape=(X.shape[0], present.size))
    dense: NDArray[np.float64] = used.toarray()[:, inverse]
    return np.ascontiguousarray(dense)


def samples_of(x: Any, is_kernel: bool) -> Samples:
    """Converts LIBSVM's containers: a sequence of dicts or lists, an array, or a sparse matrix."""
    if sp.issparse(x) or isinstance(x, np.ndarray):
        if x.ndim != 2:
            raise ValueError(f"x has shape {x.shape}: it must have two dimensions")
        if not is_kernel:
            return Samples(sp.csr_array(x, dtype=np.float64))
        if sp.issparse(x):
            return _counted_from_zero(sp.csr_array(x, dtype=np.float64), is_kernel)
        dense = np.asarray(x, dtype=np.float64)
        return Samples(np.ascontiguousarray(dense[:, 1:]), dense[:, 0].copy())
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"type of x: {type(x)} is not supported: give a list, an array or a sparse matrix")
    indices: list[int] = []
    values: list[float] = []
    ends = [0]
    for row in x:
        if isinstance(row, dict):
            pairs = sorted(row.items())
        elif isinstance(row, (list, tuple, np.ndarray)):
            pairs = list(enumerate(row, start=0 if is_kernel else 1))
        else:
            raise TypeError(f"type of a row of x: {type(row)} is not supported: give a dict or a list")
        for index, value in pairs:
            if value != 0:
                indices.append(int(index))
                values.append(float(value))
        ends.append(len(indices))
    lowest = 0 if is_kernel else 1
    if indices and (min(indices) < lowest or max(indices) >= 2**31):
        raise ValueError(f"index {min(indices)} of x is not allowed: indices count from {lowest}")
    width = max(indices, default=0) + 1
    rows = sp.csr_array((np.array(values), np.array(indices, dtype=np.int64), ends), shape=(len(x), width))
    return _counted_from_zero(rows, is_kernel)


def _counted_from_zero(rows: Any, is_kernel: bool) -> Samples:
    """Rows whose first column is that of the index 0."""
    if is_kernel:
        return Samples(sp.csr_array(rows[:, 1:]), rows[:, :1].toarray()[:, 0])
    return Samples(sp.csr_array(rows[:, 1:]))


def read_samples(path: str | PathLike[str], is_kernel: bool) -> tuple[NDArray[np.float64], Samples]:
    """Reads a data file: targets and rows."""
    X, y = load_svmlight(path, zero_based=True)
    if not is_kernel and X[:, :1].nnz:
        raise FormatError(
            f"{os.fspath(path)}: index 0 is for precomputed kernels (-t 4): count the features from 1"
        )
    return y, _counted_from_zero(X, is_kernel)


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
    samples: Samples
    l: int  # noqa: E741 - LIBSVM's name
    n: int
    isKernel: bool  # noqa: N815 - LIBSVM's name

    def __init__(self, y: Any, x: Any, isKernel: bool = False) -> None:
        if not isinstance(y, (list, tuple, np.ndarray)):
            raise TypeError(f"type of y: {type(y)} is not supported: give a list or an array")
        self._prepare(np.asarray(y, dtype=np.float64), samples_of(x, isKernel))

    @classmethod
    def _of(cls, y: NDArray[np.float64], samples: Samples) -> svm_problem:
        problem = cls.__new__(cls)
        problem._prepare(y, samples)
        return problem

    def _prepare(self, y: NDArray[np.float64], samples: Samples) -> None:
        if y.shape != (len(samples),):
            raise ValueError(f"len(y) is {y.size} and len(x) is {len(samples)}: they must be equal")
        values = samples.X.data if sp.issparse(samples.X) else samples.X
        if not (np.isfinite(y).all() and np.isfinite(values).all()):
            raise ValueError("x and y must hold finite numbers")
        self.y, self.samples = y, samples
        self.l, self.n = int(y.size), int(samples.X.shape[1])
        self.isKernel = samples.is_kernel

    def _rows(self, train: NDArray[np.int64]) -> Any:
        """Rows of a training subset as estimators take them."""
        X = self.samples.X[train]
        return dense_columns(X, self.samples.columns()[train]) if self.isKernel else X


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
