"""Checks of kernel matrices of training rows, which solvers assume to be symmetric.

A solver reads either triangle, so a model of another matrix would depend on its internals. Values may differ
by `tolerance` of the largest absolute value: a matrix product in single precision and six digits of text are
not exactly symmetric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["asymmetry", "check_kernel_matrix", "tolerance"]

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
