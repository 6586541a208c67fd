"""Dictionaries: kernels around points, user-defined functions, the constant.

A dictionary is a list of parts. A part knows its functions' values on any rows, and what it hands to the
extension module for a fit. Candidates are numbered through all parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.kernel_function import MAX_BLOCK_VALUES, kernel_values
from svmarrow._support.rows import core_rows
from svmarrow._support.saving import savable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from svmarrow._support.kernel_function import KernelFunction

__all__ = ["Constant", "Dictionary", "GivenFunctions", "KernelPart", "Part"]

#: A kernel: (name or function, gamma, coef0, degree).
Spec = tuple[Any, float, float, int]


@savable
@dataclass(eq=False, repr=False)
class KernelPart:
    """k(., z) for points z."""

    spec: Spec
    #: Rows, or for the precomputed kernel column numbers (m, 1).
    points: Any
    #: What the points are called: row numbers of the training data, or places in the given points.
    labels: NDArray[np.int64]
    #: Which of the estimator's kernels it is.
    number: int = 0

    @property
    def count(self) -> int:
        """Number of functions."""
        return int(self.points.shape[0])

    def core(self, X: Any, X_val: Any) -> tuple[Any, ...]:
        """Returns the form of the extension module."""
        if callable(self.spec[0]):
            return (
                "function",
                _Columns(self.spec[0], self.points, X, X_val),
                self.count,
                X.shape[0],
                0 if X_val is None else X_val.shape[0],
            )
        watched_rows = None if X_val is None else core_rows(X_val)
        return ("kernel", self.spec, core_rows(self.points), core_rows(X), watched_rows)

    def values(self, X: Any, which: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:
        """Returns values (n_rows, n_functions)."""
        points = self.points[which]
        if callable(self.spec[0]):
            return function_values(self.spec[0], X, points)
        return _core.gram(core_rows(X), core_rows(points), self.spec, n_jobs)


@savable
@dataclass(eq=False, repr=False)
class GivenFunctions:
    """User-defined functions, the columns of one call."""

    function: Callable[[Any], Any]
    count: int

    def core(self, X: Any, X_val: Any) -> tuple[Any, ...]:
        """Returns the form of the extension module."""
        watched = np.empty((0, self.count)) if X_val is None else self._columns(X_val)
        return ("columns", self._columns(X), watched)

    def values(self, X: Any, which: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:  # noqa: ARG002
        """Returns values (n_rows, n_functions)."""
        return self._columns(X)[:, which]

    def _columns(self, X: Any) -> NDArray[np.float64]:
        values = columns_of(self.function, X)
        if values.shape[1] != self.count:
            raise ValueError(
                f"functions returned {values.shape[1]} columns, and {self.count} on the training rows"
            )
        return values


@savable
@dataclass(eq=False, repr=False)
class Constant:
    """The function that is 1 everywhere."""

    count: int = 1

    def core(self, X: Any, X_val: Any) -> tuple[Any, ...]:
        """Returns the form of the extension module."""
        watched = 0 if X_val is None else X_val.shape[0]
        return ("columns", np.ones((X.shape[0], 1)), np.ones((watched, 1)))

    def values(self, X: Any, which: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:  # noqa: ARG002
        """Returns values (n_rows, n_functions)."""
        return np.ones((X.shape[0], which.size))


Part = KernelPart | GivenFunctions | Constant


@savable
class Dictionary:
    """The dictionary with all its parts."""

    _arguments = ("parts",)

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.starts: NDArray[np.int64] = np.cumsum([0, *(part.count for part in parts)]).astype(np.int64)

    @property
    def count(self) -> int:
        """Number of candidates."""
        return int(self.starts[-1])

    def places(self, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the part of each candidate and its index in the part."""
        part = np.searchsorted(self.starts, order, side="right") - 1
        return part, order - self.starts[part]

    def values(self, X: Any, order: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:
        """Returns values (n_rows, n_candidates)."""
        part, within = self.places(order)
        out = np.empty((int(X.shape[0]), order.size))
        for number in np.unique(part):
            mine = np.flatnonzero(part == number)
            out[:, mine] = self.parts[number].values(X, within[mine], n_jobs)
        return out

    def only(self, order: NDArray[np.int64]) -> tuple[Dictionary, NDArray[np.int64]]:
        """Returns a dictionary of only these candidates, and their indices in it."""
        part, within = self.places(order)
        parts: list[Part] = []
        numbers = np.empty_like(order)
        start = 0
        for number, whole in enumerate(self.parts):
            mine = np.flatnonzero(part == number)
            if isinstance(whole, KernelPart):
                kept = within[mine]
                parts.append(KernelPart(whole.spec, whole.points[kept], whole.labels[kept], whole.number))
                numbers[mine] = start + np.arange(mine.size)
            else:
                parts.append(whole)
                numbers[mine] = start + within[mine]
            start += parts[-1].count
        return Dictionary(parts), numbers


class _Columns:
    """Callback of the extension module for a user-defined kernel."""

    def __init__(self, function: KernelFunction, points: Any, X: Any, X_val: Any) -> None:
        self.function, self.points, self.rows = function, points, (X, X_val)

    def __call__(self, which: NDArray[np.int64], validation: bool) -> NDArray[np.float64]:
        values = function_values(self.function, self.rows[int(validation)], self.points[which])
        return np.ascontiguousarray(values.T)


def function_values(function: KernelFunction, X: Any, points: Any) -> NDArray[np.float64]:
    """Computes K(X, points) block by block."""
    n, m = int(X.shape[0]), int(points.shape[0])
    out = np.empty((n, m))
    step = max(1, MAX_BLOCK_VALUES // max(1, m))
    for start in range(0, n if m else 0, step):
        block = slice(start, start + step)
        out[block] = kernel_values(function, X[block], points)
    return out


def columns_of(function: Callable[[Any], Any], X: Any) -> NDArray[np.float64]:
    """``function(X)`` as a matrix of finite numbers, one row a row of X."""
    values: Any = function(X)
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[0] != X.shape[0]:
        raise ValueError(
            f"functions returned shape {values.shape} for {X.shape[0]} rows: it must be a row of values each"
        )
    if values.dtype.kind not in "fiub":
        raise ValueError(f"functions returned values of type {values.dtype}: they must be numbers")
    matrix: NDArray[np.float64] = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError("functions returned NaN or infinity: values must be finite")
    return matrix
