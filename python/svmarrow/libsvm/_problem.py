"""Training problems: LIBSVM's data formats in memory and in files."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow._support.rows import canonical
from svmarrow.io.files import load_svmlight

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray


__all__ = ["samples_of", "svm_problem", "svm_read_problem"]


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
