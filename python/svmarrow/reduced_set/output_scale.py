"""Scales of a regressor's outputs, so that each counts alike where vectors are selected or constructed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.models.regressor import ExpansionRegressor
from svmarrow.reduced_set.score import loss_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["output_spread"]

MAX_SPREAD_SAMPLES = 500
"""Maximum number of samples from which the spread of outputs is computed."""

MIN_DEVIATION = 1e-9
"""Deviation of an output relative to its largest value, up to which it is constant but for rounding."""


def output_spread(
    model: Any, rows: Any, sample_weight: ArrayLike | None, n_jobs: int | None
) -> NDArray[np.float64]:
    """Standard deviation of each output of a regressor, the largest for a constant one; 1 for other models.

    Outputs divided by it count alike, whatever the units of the targets. They are computed on validated rows;
    None takes the model's vectors.
    """
    expansion = model.expansion_
    if not isinstance(model, ExpansionRegressor):
        return np.ones(expansion.n_outputs)
    rows = expansion.vectors if rows is None else rows
    n = int(rows.shape[0])
    weights = loss_weights(np.empty(n), None, sample_weight)
    kept = np.arange(n) if weights is None else np.flatnonzero(weights)
    kept = kept[:: -(-kept.size // MAX_SPREAD_SAMPLES)]
    weights = None if weights is None else weights[kept]
    outputs = expansion._evaluate(rows[kept], n_jobs)
    # Their squares shall not overflow.
    size = np.abs(outputs).max(axis=0)
    outputs /= np.where(size > 0.0, size, 1.0)
    mean = np.average(outputs, axis=0, weights=weights)
    deviation = np.sqrt(np.average((outputs - mean) ** 2, axis=0, weights=weights))
    spread = np.where(deviation > MIN_DEVIATION, size * deviation, 0.0)
    return np.where(spread > 0.0, spread, spread.max() or 1.0)
