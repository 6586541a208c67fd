"""The random folds of LIBSVM's programs."""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GlibcRandom", "group_classes", "plain_folds", "stratified_folds"]


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
