"""One judge for all engines: the dual objective in float64, from what every engine publishes.

The machine of a pair of classes (a, b) has coefficients c_i = +-alpha_i, one sign for each class, and

    D = sum_i alpha_i - 1/2 sum_ij c_i c_j k(x_i, x_j),    0 <= alpha_i <= C,    sum_i c_i = 0.

A one-vs-one model's objective is the sum over its pairs. D alone can be raised by leaving the feasible set,
so the largest breach of the three conditions is measured too. Kernel values are computed a block of rows at
a time: m^2 of them for m support vectors, and never more than `BLOCK_VALUES` in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

BLOCK_VALUES = 1 << 22


@dataclass(frozen=True)
class Dual:
    """The value D and the largest breach of its conditions: a share of C (box) or of sum alpha (equality)."""

    value: float
    infeasibility: float


def machines(dual_coef: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """LIBSVM's compact coefficients (k - 1, m) unfolded into one column a machine, (m, k (k - 1) / 2).

    A support vector of class a serves the machine with class b by row b - 1 of `dual_coef` where a < b,
    else b.
    """
    m = len(labels)
    if n_classes == 2:
        return np.asarray(dual_coef, dtype=np.float64).reshape(1, m).T.copy()
    pairs = list(combinations(range(n_classes), 2))
    unfolded = np.zeros((m, len(pairs)))
    for column, (a, b) in enumerate(pairs):
        of_a, of_b = labels == a, labels == b
        unfolded[of_a, column] = dual_coef[b - 1, of_a]
        unfolded[of_b, column] = dual_coef[a, of_b]
    return unfolded


def dual_objective(
    X: Any, y: np.ndarray, support: np.ndarray, dual_coef: np.ndarray, *, C: float, gamma: float
) -> Dual:
    """The dual objective of a one-vs-one RBF model, summed over its machines.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n, d)
        Training rows in float64.
    y : ndarray of shape (n,)
        Class indices.
    support : ndarray of shape (m,)
        Training rows that are support vectors.
    dual_coef : ndarray of shape (k - 1, m)
        Coefficients in LIBSVM's layout.
    C, gamma : float
        Parameters of the fit.
    """
    labels, n_classes = y[support], int(y.max()) + 1
    coefficients = machines(dual_coef, labels, n_classes)
    infeasibility = 0.0
    for column, (a, _) in zip(coefficients.T, combinations(range(n_classes), 2), strict=True):
        total = np.abs(column).sum()
        if total == 0.0:
            continue
        sign = 1.0 if column[labels == a].sum() >= 0.0 else -1.0
        alpha = np.where(labels == a, sign, -sign) * column
        box = max(alpha.max() - C, -alpha.min(), 0.0) / C
        infeasibility = max(infeasibility, box, abs(column.sum()) / total)
    rows = X[support]
    rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
    # Translation does not change a distance, and small norms cancel less.
    rows = rows - rows.mean(axis=0)
    norms = np.einsum("ij,ij->i", rows, rows)
    quadratic = 0.0
    step = max(1, BLOCK_VALUES // max(1, len(support)))
    for first in range(0, len(support), step):
        block = slice(first, first + step)
        values = rows[block] @ rows.T
        values *= -2.0
        values += norms[block, None]
        values += norms
        np.maximum(values, 0.0, out=values)
        values *= -gamma
        np.exp(values, out=values)
        quadratic += float(np.sum((values @ coefficients) * coefficients[block]))
    return Dual(float(np.abs(coefficients).sum() - 0.5 * quadratic), float(infeasibility))
