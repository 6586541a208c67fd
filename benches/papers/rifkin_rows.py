"""Rows for the experiments of Rifkin (2002), chapter 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from common import load
from sklearn.preprocessing import StandardScaler


def adult(size: int | None = None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """The first rows of a9a, and its test rows."""
    rows = load("a9a")
    # scikit-learn's SVC takes no other width of index.
    X = sp.csr_matrix(rows.X[:size])
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, rows.y[:size], rows.X_test, rows.y_test


def four(size: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """USPS, "4" against the rest, the dense images that stand for the faces."""
    rows = load("usps")
    sign = [np.where(y == 4, 1, -1) for y in (rows.y, rows.y_test)]
    return rows.X[:size], sign[0][:size], rows.X_test, sign[1]


def scaled(name: str, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """So many rows of a dense set drawn at random, scaled to mean 0 and variance 1; 4000 others to test."""
    X, y = load(name).all()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:size], order[size : size + 4000]
    scale = StandardScaler().fit(X[train])
    return scale.transform(X[train]), y[train], scale.transform(X[test]), y[test]
