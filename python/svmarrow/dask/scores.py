"""Accuracy and R^2 of predictions that are never together: sums of the partitions, added up in their
order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.dask.blocks import aligned, remember_columns
from svmarrow.dask.prediction import _values, served

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.dask.blocks import Block
    from svmarrow.dask.cluster import Cluster

__all__ = ["score"]


def score(cluster: Cluster, model: Any, X: Any, y: Any, sample_weight: Any, *, accuracy: bool) -> float:
    """Accuracy, or R^2 averaged over the targets."""
    remember_columns(model, X, reset=False)
    parts = cluster.load(aligned(X, y, sample_weight))
    ready = served(model)
    ready.feature_names = None  # The blocks are without names, which were compared above.
    held = cluster.shared(ready)
    task = _right if accuracy else _squares
    told = cluster.gather([cluster.submit(task, part, held) for part in parts], "the predictions")
    told = [each for each in told if each is not None]
    if not told:
        raise ValueError("X has no rows")
    if accuracy:
        right, total = (float(sum(each[place] for each in told)) for place in (0, 1))
        return right / total
    weight, mean, missed, spread = 0.0, np.zeros(1), np.zeros(1), np.zeros(1)
    for own, at, residual, around in told:
        # Chan, Golub and LeVeque 1983.
        share = own / (weight + own)
        spread = spread + around + own * (1.0 - share) * (at - mean) ** 2
        mean, weight, missed = mean + (at - mean) * share, weight + own, missed + residual
    # scikit-learn: a constant target that is met is 1, one that is not 0.
    constant = spread == 0.0
    value = 1.0 - missed / np.where(constant, 1.0, spread)
    return float(np.where(constant, np.where(missed == 0.0, 1.0, 0.0), value).mean())


def _right(block: Block, model: Any) -> tuple[float, float] | None:
    if block.rows == 0:
        return None
    weights = np.ones(block.rows) if block.weights is None else block.weights
    return float(weights @ (_values(model, "predict", block.X) == block.labels)), float(weights.sum())


def _squares(
    block: Block, model: Any
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
    """Weight of the rows; mean of the targets, squares of the errors and about the mean, a target each."""
    weights = np.ones(block.rows) if block.weights is None else block.weights
    if block.rows == 0 or not weights.any():
        return None
    assert block.y is not None
    y = block.y.reshape(block.rows, -1).astype(np.float64)
    off = _values(model, "predict", block.X).reshape(block.rows, -1) - y
    mean = weights @ y / weights.sum()
    return float(weights.sum()), mean, weights @ (off * off), weights @ ((y - mean) ** 2)
