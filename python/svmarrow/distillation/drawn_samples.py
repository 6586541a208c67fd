"""Samples drawn around given ones, on which a student is compared with its teacher.

A sample lies between two parents (mixup; Zhang, Cisse, Dauphin and Lopez-Paz, 2018, with neighbors for
partners): the first is a given sample, the second the nearest of `N_CANDIDATES` others drawn at random, by
the distance in standardized columns. With a share t drawn uniformly from [0, mixing],

    x = (1 - t) first + t second + noise deviation z,        z normal in each column.

Columns that hold whole numbers alone (counts, codes, switches) keep their values: each is that of the second
parent with probability t, else that of the first, and has no noise. So no value is drawn that the teacher
could never have seen in such a column.

Invariant: a seed gives the same samples. Cost: n x candidates x d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["N_CANDIDATES", "draw_samples", "whole_columns"]

N_CANDIDATES = 16
"""Number of samples of which the nearest is the second parent."""

MAX_CHUNK_NUMBERS = 4_000_000
"""Maximum number of coordinates of candidates that are compared together: 32 MB."""


def whole_columns(X: NDArray[np.floating]) -> NDArray[np.bool_]:
    """True for the columns (n_features,) that hold whole numbers alone."""
    whole = np.empty(X.shape[1], dtype=bool)
    for column in range(X.shape[1]):
        values = X[:, column]
        whole[column] = bool((values == np.rint(values)).all())
    return whole


def draw_samples(
    X: NDArray[np.floating],
    deviations: NDArray[np.float64],
    count: int,
    *,
    mixing: float,
    noise: float,
    random: np.random.RandomState,
) -> NDArray[np.floating]:
    """Draw samples around given ones.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The given samples; their first parents are taken in turn.
    deviations : ndarray of float64 of shape (n_features,)
        Standard deviations of the columns, positive.
    count : int
        Number of samples to draw.
    mixing : float
        Maximum share of the second parent, 0 to 1.
    noise : float
        Standard deviation of the noise over that of the column.
    random : RandomState
        Source of random numbers.

    Returns
    -------
    ndarray of shape (count, n_features)
        Of the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.5], [1.0, 2.5], [0.0, 1.5]])
    >>> drawn = draw_samples(X, X.std(axis=0), 50, mixing=1.0, noise=0.0, random=np.random.RandomState(0))
    >>> np.unique(drawn[:, 0]).tolist(), bool(drawn[:, 1].min() >= 0.5)
    ([0.0, 1.0], True)
    """
    n, d = X.shape
    whole = whole_columns(X)
    out = np.empty((count, d), dtype=X.dtype)
    step = max(1, MAX_CHUNK_NUMBERS // (N_CANDIDATES * max(1, d)))
    for start in range(0, count, step):
        first = np.arange(start, min(count, start + step)) % n
        size = first.size
        candidates = random.randint(n, size=(size, N_CANDIDATES))
        between = (X[candidates] - X[first][:, None]) / deviations
        distances = np.einsum("ijk,ijk->ij", between, between)
        # A sample is no partner of itself unless all candidates are.
        distances[candidates == first[:, None]] = np.inf
        second = candidates[np.arange(size), distances.argmin(axis=1)]
        share = mixing * random.uniform(size=(size, 1))
        mixed = X[first] + share * (X[second] - X[first])
        mixed += noise * deviations * random.standard_normal((size, d))
        taken = np.where(random.uniform(size=(size, d)) < share, X[second], X[first])
        out[start : start + size] = np.where(whole, taken, mixed)
    return out
