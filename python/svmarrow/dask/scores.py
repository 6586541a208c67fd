"""Accuracy and R^2 of distributed predictions: sums of the partitions, added in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.dask.blocks import check_features, delayed_blocks
from svmarrow.dask.prediction import _values, prediction_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.dask.blocks import Block
    from svmarrow.dask.cluster import Cluster

__all__ = ["score"]


def score(cluster: Cluster, model: Any, X: Any, y: Any, sample_weight: Any, *, accuracy: bool) -> float:
    """Returns the accuracy, or R^2 averaged over the targets."""
    check_features(model, X, reset=False)
    parts = cluster.load(delayed_blocks(X, y, sample_weight))
    predictor = prediction_model(model)
    predictor.feature_names = None  # Blocks have no feature names, which were compared above.
    shared = cluster.shared(predictor)
    task = _right if accuracy else _squares
    sums = cluster.gather([cluster.submit(task, part, shared) for part in parts], "the predictions")
    sums = [each for each in sums if each is not None]
    if not sums:
        raise ValueError("X has no rows")
    if accuracy:
        right, total = (float(sum(each[place] for each in sums)) for place in (0, 1))
        return right / total
    weight, mean, missed, spread = 0.0, np.zeros(1), np.zeros(1), np.zeros(1)
    for own, at, residual, around in sums:
        # Chan, Golub and LeVeque 1983.
        share = own / (weight + own)
        spread = spread + around + own * (1.0 - share) * (at - mean) ** 2
        mean, weight, missed = mean + (at - mean) * share, weight + own, missed + residual
    # As in scikit-learn, a constant target scores 1 if predicted exactly, else 0.
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
    """Returns total weight, mean target, squared errors and squared deviations of each target."""
    weights = np.ones(block.rows) if block.weights is None else block.weights
    if block.rows == 0 or not weights.any():
        return None
    assert block.y is not None
    y = block.y.reshape(block.rows, -1).astype(np.float64)
    off = _values(model, "predict", block.X).reshape(block.rows, -1) - y
    mean = weights @ y / weights.sum()
    return float(weights.sum()), mean, weights @ (off * off), weights @ ((y - mean) ** 2)
