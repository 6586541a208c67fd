"""The grid of a search: C and gamma as they are given, or ranges that follow from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow._support.parameters import Rule, either, integer, real
from svmarrow._support.rows import default_gamma

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["COSTS", "GAMMAS", "WITH_GAMMA", "costs", "gammas"]

#: Kernels that have a gamma.
WITH_GAMMA = ("poly", "rbf", "sigmoid", "laplacian", "chi2")
#: C of the first and the last point, in units of the rows.
COST_RANGE = (0.1, 1000.0)
#: gamma of the first and the last point, in units of ``gamma="scale"``.
GAMMA_RANGE = (10.0**-1.5, 10.0**1.5)
#: Rows that the unit of C is measured on.
_SAMPLE = 1000
#: The same for a function, which is asked for all pairs of them.
_SQUARE = 64


#: Points that a range may have.
_MOST_POINTS = 10_000


def _numbers(rule: Rule, text: str) -> Rule:
    """A rule for a sequence of different numbers, each by a rule of its own."""

    def holds(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            values = value.tolist() if value.ndim == 1 else []
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            values = list(value)
        else:
            return False
        return bool(values) and all(map(rule.holds, values)) and len(set(map(float, values))) == len(values)

    return Rule(text, holds)


#: ``Cs``.
COSTS = either(
    integer(least=1, most=_MOST_POINTS, text=f"a number of points, at most {_MOST_POINTS}"),
    _numbers(real(above=0.0), "different finite numbers above 0"),
)
#: ``gammas``.
GAMMAS = either(
    integer(least=1, most=_MOST_POINTS, text=f"a number of points, at most {_MOST_POINTS}"),
    _numbers(real(least=0.0), "different finite numbers, none negative"),
)


def _spaced(first: float, last: float, count: int) -> NDArray[np.float64]:
    """Points at equal ratios; a single one lies in the middle."""
    if count == 1:
        return np.array([np.sqrt(first * last)])
    return np.geomspace(first, last, count)


def costs(given: Any, X: Any, kernel: Any, gamma: float, coef0: float, degree: int) -> NDArray[np.float64]:
    """The values of C, rising.

    A number of them is spread from .1 to 1,000 divided by the mean of k(x, x), which is 1 for kernels of
    distances: what C weighs is the loss against 1/2 ||w||^2, whose unit is that of the kernel.
    """
    if not isinstance(given, (int, np.integer)):
        return np.sort(np.array([float(value) for value in given]))
    low, high = COST_RANGE
    return _spaced(low, high, int(given)) / _mean_diagonal(X, kernel, gamma, coef0, degree)


def _mean_diagonal(X: Any, kernel: Any, gamma: float, coef0: float, degree: int) -> float:
    if kernel in ("rbf", "laplacian", "chi2"):
        return 1.0
    n = int(X.shape[0])
    rows = np.arange(n) if n <= _SAMPLE else np.arange(_SAMPLE) * n // _SAMPLE
    if kernel == "precomputed":
        values = np.asarray(X[rows, rows], dtype=np.float64)
    elif callable(kernel):
        some = X[rows[:: max(1, n // _SQUARE)][:_SQUARE]]
        values = np.diagonal(np.asarray(kernel(some, some), dtype=np.float64))
    elif kernel == "sigmoid":
        return 1.0  # Its values lie within -1 and 1.
    else:
        some = X[rows]
        squares = some.multiply(some) if sp.issparse(some) else np.square(some, dtype=np.float64)
        values = np.asarray(squares.sum(axis=1, dtype=np.float64)).reshape(-1)
        if kernel == "poly":
            values = (gamma * values + coef0) ** degree
    mean = float(np.abs(values).mean())
    return mean if np.isfinite(mean) and mean > 0.0 else 1.0


def gammas(given: Any, X: Any, kernel: Any) -> NDArray[np.float64] | None:
    """The values of gamma, rising; None for a kernel without one.

    A number of them is spread from 10^-1.5 to 10^1.5 times 1 / (n_features X.var()), scikit-learn's "scale".
    """
    if callable(kernel) or kernel not in WITH_GAMMA:
        return None
    if not isinstance(given, (int, np.integer)):
        return np.sort(np.array([float(value) for value in given]))
    scale = default_gamma("scale", X, kernel=kernel)
    low, high = GAMMA_RANGE
    return _spaced(low * scale, high * scale, int(given))
