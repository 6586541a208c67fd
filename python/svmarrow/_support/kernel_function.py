"""Kernels that users give: functions of two blocks of samples, and matrices of kernel values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from svmarrow import _core
from svmarrow._support.blas import product
from svmarrow._support.objects import contents, is_objects, needs_objects

__all__ = [
    "KernelFunction",
    "TrainingKernel",
    "asymmetry",
    "bytes_of_pairs",
    "check_kernel_matrix",
    "evaluate",
    "function_matrix",
    "function_values",
    "kernel_values",
    "prepared",
    "tolerance",
]


# --- user-defined kernels: Python functions of two blocks of rows ---
# ``function(X_block, Y_block)`` gets rows as the estimator stores them (arrays, CSR matrices for sparse data,
# one-dimensional arrays of objects) and returns their kernel values, (rows of X_block, rows of Y_block). A
# call returns at most `MAX_BLOCK_VALUES` values unless a single row has more; the full kernel matrix is never
# stored. A kernel with a method `prepare` gets parts of what that returned for all training rows, or for the
# vectors of a model: work for each sample is then done once.


KernelFunction = Callable[[Any, Any], ArrayLike]

#: Maximum number of kernel values of one call at prediction.
MAX_BLOCK_VALUES = 2**22
#: Share of the free memory for the values of all pairs of objects.
_PAIRS_SHARE = 0.25
#: Maximum kernel value of the solver, which may store kernel values in single precision.
_MAX_VALUE = float(np.finfo(np.float32).max)
#: Rows of a block of a kernel matrix: a compromise between calls and pairs that are computed twice.
_MATRIX_ROWS = 64
#: Maximum number of rows of a call whose values are compared with each other.
_MAX_CHECKED_ROWS = 64


def prepared(function: KernelFunction, X: Any) -> Any:
    """Returns samples in the form whose parts the kernel gets."""
    return function.prepare(contents(X)) if needs_objects(function) else X  # type: ignore[attr-defined]


def kernel_values(function: KernelFunction, X: Any, Z: Any) -> NDArray[Any]:
    """Returns K(X, Z) of one call; raises ``ValueError`` unless it is a finite matrix of that shape.

    Either may be `prepared`.
    """
    values: Any = function(contents(X), contents(Z))
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    expected = (int(X.shape[0]), int(Z.shape[0]))
    if values.shape != expected:
        raise ValueError(
            f"the kernel function returned shape {values.shape} for blocks of {expected[0]} and "
            f"{expected[1]} rows: it must return {expected}"
        )
    if values.dtype.kind not in "fiub":
        raise ValueError(f"the kernel function returned values of type {values.dtype}: they must be numbers")
    if not np.isfinite(values).all():
        raise ValueError("the kernel function returned NaN or infinity: kernel values must be finite")
    matrix: NDArray[Any] = values
    return matrix


def function_values(function: KernelFunction, X: Any, points: Any) -> NDArray[np.float64]:
    """Computes K(X, points) block by block; the points may be `prepared`."""
    n, m = int(X.shape[0]), int(points.shape[0])
    out = np.empty((n, m))
    step = max(1, MAX_BLOCK_VALUES // max(1, m))
    for start in range(0, n if m else 0, step):
        block = slice(start, start + step)
        out[block] = kernel_values(function, X[block], points)
    return out


def function_matrix(function: KernelFunction, X: Any) -> NDArray[np.float64]:
    """Computes K(X, X); pairs in different blocks of rows are computed once."""
    samples, n = prepared(function, X), int(X.shape[0])
    out = np.empty((n, n))
    for start in range(0, n, _MATRIX_ROWS):
        rows = slice(start, min(n, start + _MATRIX_ROWS))
        out[rows, : rows.stop] = kernel_values(function, samples[rows], samples[: rows.stop])
        out[:start, rows] = out[rows, :start].T
    return out


class TrainingKernel:
    """Callback of the extension module: kernel values of training rows, in the range of single precision."""

    def __init__(self, function: KernelFunction, X: Any, *, asks_again: bool = False) -> None:
        self.function = function
        self.X = prepared(function, X)
        #: Number of kernel values computed.
        self.computed = 0
        self._diagonal_rows = 1 if is_objects(X) else _MATRIX_ROWS
        # For a solver that asks for a pair more than once.
        self._pairs = _Pairs.of(X) if asks_again else None

    def __call__(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        if self._pairs is None:
            return self._values(rows, columns)
        return self._pairs.read(rows, columns, self._values)

    def diagonal(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns k(x, x) of training rows, by the kernel's own ``diagonal`` if it has one."""
        diagonal = getattr(self.function, "diagonal", None)
        if callable(diagonal):
            values = np.asarray(diagonal(contents(self.X[_span(rows)])), dtype=np.float64)
            if values.shape != rows.shape or not np.isfinite(values).all():
                raise ValueError(
                    f"the diagonal of the kernel function has shape {values.shape}: it must be {rows.shape}, "
                    "and its values finite"
                )
            return np.ascontiguousarray(values)
        out = np.empty(rows.size)
        for start in range(0, rows.size, self._diagonal_rows):
            block = rows[start : start + self._diagonal_rows]
            # Not kept with the pairs: rows that lack the same columns are computed together.
            out[start : start + block.size] = np.diagonal(self._values(block, block))
        return out

    def _values(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        self.computed += rows.size * columns.size
        values = kernel_values(self.function, self.X[_span(rows)], self.X[_span(columns)])
        double = np.ascontiguousarray(values, dtype=np.float64)
        if double.size and max(double.max(), -double.min()) > _MAX_VALUE:
            raise ValueError("the kernel function returned values beyond the range of single precision")
        self._check_symmetry(values, rows, columns)
        return double

    @staticmethod
    def _check_symmetry(values: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        """Checks the values that a call returns for both orders of two rows."""
        rows, order = rows[:_MAX_CHECKED_ROWS], np.argsort(columns)
        ranks = np.searchsorted(columns, rows, sorter=order)
        places = order[np.minimum(ranks, columns.size - 1)]
        is_column = columns[places] == rows
        if not is_column.any():
            return
        rows, places = rows[is_column], places[is_column]
        square = np.asarray(values[: is_column.size][np.ix_(is_column, places)], dtype=np.float64)
        relative = tolerance(values.dtype)
        position = asymmetry(square, relative)
        if position is not None:
            i, j = position
            raise ValueError(
                f"the kernel function returned {square[i, j]:.6g} for the rows {rows[i]} and {rows[j]}, and "
                f"{square[j, i]:.6g} for {rows[j]} and {rows[i]}: it must be symmetric up to {relative:g} of "
                "its largest value"
            )


def bytes_of_pairs(X: Any) -> int:
    """Returns the bytes of the store of pairs: 0 for rows of numbers, and for a large share of the memory."""
    if not is_objects(X):
        return 0
    needed = 9 * len(X) ** 2
    return needed if needed <= _PAIRS_SHARE * _core.available_memory() else 0


class _Pairs:
    """Values of a symmetric kernel of objects, which may take a millisecond: each pair is computed once."""

    def __init__(self, n: int) -> None:
        # The system provides memory as it is touched.
        self._values = np.zeros((n, n))
        self._is_known = np.zeros((n, n), dtype=bool)

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Returns a store for the pairs of objects; None for rows of numbers and for lack of memory."""
        try:
            return cls(len(X)) if bytes_of_pairs(X) else None
        except MemoryError:
            return None

    def read(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], compute: Callable[..., NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Returns values of rows and columns; computes a block for the rows that lack the same columns.

        Rows are taken a few at a time, since the values of each group are those of later rows, mirrored.
        """
        for start in range(0, rows.size, _MATRIX_ROWS):
            group = rows[start : start + _MATRIX_ROWS]
            is_missing = ~self._is_known[np.ix_(group, columns)]
            while is_missing.any():
                lacking = is_missing[is_missing.any(axis=1).argmax()]
                are_alike = (is_missing == lacking).all(axis=1)
                block = np.ix_(group[are_alike], columns[lacking])
                self._values[block] = compute(group[are_alike], columns[lacking])
                self._values.T[block] = self._values[block]
                self._is_known[block] = self._is_known.T[block] = True
                is_missing[are_alike] = False
        return np.ascontiguousarray(self._values[np.ix_(rows, columns)])


def _span(indices: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Converts consecutive indices to a slice, which does not copy rows."""
    first, last = int(indices[0]), int(indices[-1])
    if last - first + 1 == indices.size and bool((np.diff(indices) == 1).all()):
        return slice(first, last + 1)
    return indices


def evaluate(
    function: KernelFunction,
    X: Any,
    vectors: Any,
    coefficients: NDArray[np.float64],
    intercepts: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Computes K(X, vectors) B + b block by block; the vectors may be `prepared`."""
    n, m = int(X.shape[0]), int(vectors.shape[0])
    samples = prepared(function, X)
    out = np.tile(intercepts, (n, 1))
    step = max(1, MAX_BLOCK_VALUES // max(1, m))
    for start in range(0, n if m else 0, step):
        block = slice(start, start + step)
        out[block] += product(kernel_values(function, samples[block], vectors), coefficients)
    return out


# --- checks of kernel matrices of training rows, which solvers assume to be symmetric ---
# A solver reads either triangle, so a model of another matrix would depend on its internals. Values may
# differ by `tolerance` of the largest absolute value: a matrix product in single precision and six digits
# of text are not exactly symmetric.


#: Maximum difference of two mirrored values relative to the largest value, in double and single precision.
_TOLERANCE, _SINGLE_TOLERANCE = 1e-5, 1e-3
#: Rows and columns of a tile, so that a tile and its mirror image stay in the cache.
_TILE = 128


def tolerance(dtype: np.dtype[Any]) -> float:
    """Returns the maximum relative difference of two mirrored values of a type."""
    return _SINGLE_TOLERANCE if dtype.kind == "f" and dtype.itemsize < 8 else _TOLERANCE


def asymmetry(matrix: NDArray[Any], relative: float) -> tuple[int, int] | None:
    """Returns the position of a value that differs from its mirror image, or None for a symmetric matrix.

    Takes one pass over the matrix, tile by tile.
    """
    n = matrix.shape[0]
    limit = relative * max(float(matrix.max()), -float(matrix.min()))
    for top in range(0, n, _TILE):
        rows = slice(top, top + _TILE)
        for left in range(0, top + 1, _TILE):
            columns = slice(left, left + _TILE)
            # Finite values of opposite sign may be too far apart for the type.
            with np.errstate(over="ignore"):
                differences = matrix[rows, columns] - matrix[columns, rows].T
            if max(float(differences.max()), -float(differences.min())) > limit:
                i, j = np.unravel_index(int(np.argmax(np.abs(differences))), differences.shape)
                return top + int(i), left + int(j)
    return None


def check_kernel_matrix(X: NDArray[Any], *, symmetric: bool = True) -> None:
    """Raises ``ValueError`` for a precomputed kernel matrix of training rows that no kernel gives."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"X has shape {X.shape}: a precomputed kernel matrix must be square")
    if not symmetric:
        return
    relative = tolerance(X.dtype)
    position = asymmetry(X, relative)
    if position is not None:
        i, j = position
        raise ValueError(
            f"X has X[{i}, {j}] = {X[i, j]:.6g} and X[{j}, {i}] = {X[j, i]:.6g}: a precomputed kernel matrix "
            f"must be symmetric up to {relative:g} of its largest value; (X + X.T) / 2 is"
        )
