"""Summaries of partitions: counts, classes, and the variance for ``gamma="scale"``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from svmarrow._support.rows import class_weights, default_gamma, gamma_power, moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.dask.blocks import Block

__all__ = ["Summary", "balanced_weights", "check_span", "classes_of", "gamma_of", "offsets", "summary_of"]


@dataclass(frozen=True, eq=False)
class Summary:
    """Summary of a partition."""

    rows: int
    columns: int
    #: Sorted labels, None for targets, with the total weight and the number of rows of each.
    labels: NDArray[Any] | None
    totals: NDArray[np.float64]
    counts: NDArray[np.int64]
    #: Number of columns of the targets, 0 for a vector.
    targets: int
    #: Minimum and maximum of X.
    span: tuple[float, float]
    #: Number of rows, mean and variance of X (0 unless requested).
    moments: tuple[float, float, float]


def summary_of(block: Block, with_labels: bool, with_variance: bool) -> Summary:
    """Summarizes a partition, with its labels and its variance if requested."""
    n, weights = block.rows, block.weights
    labels, totals, counts = None, np.empty(0), np.empty(0, dtype=np.int64)
    if with_labels and n:
        try:
            check_classification_targets(block.labels)
        except ValueError as error:
            raise ValueError(f"partition {block.number}: {error}") from None
        labels, numbers, counts = np.unique(block.labels, return_inverse=True, return_counts=True)
        totals = np.bincount(numbers.reshape(-1), weights, minlength=labels.size).astype(np.float64)
    X = block.X
    values = X.data if hasattr(X, "indptr") else X
    span = (float(values.min()), float(values.max())) if values.size else (math.inf, -math.inf)
    if hasattr(X, "indptr") and values.size < X.shape[0] * X.shape[1]:
        span = (min(span[0], 0.0), max(span[1], 0.0))
    variance, mean = moments(X, None) if with_variance and n else (0.0, 0.0)
    shape = () if block.y is None else block.y.shape[1:]
    columns, targets = int(X.shape[1]), int(shape[0]) if shape else 0
    return Summary(n, columns, labels, totals, counts, targets, span, (float(n), mean, variance))


def classes_of(summaries: Sequence[Summary]) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
    """Returns the sorted classes, with the total weight and the number of rows of each."""
    labelled = [each for each in summaries if each.labels is not None]
    classes = (
        np.unique(np.concatenate([np.asarray(each.labels) for each in labelled])) if labelled else np.empty(0)
    )
    if classes.size < 2:
        raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
    totals, counts = np.zeros(classes.size), np.zeros(classes.size, dtype=np.int64)
    for each in labelled:
        place = np.searchsorted(classes, np.asarray(each.labels))
        totals[place] += each.totals
        counts[place] += each.counts
    return classes, totals, counts


def check_span(estimator: Any, summaries: Sequence[Summary]) -> None:
    """Raises ``ValueError`` if the kernel is not defined for the values of X."""
    if estimator.kernel == "chi2" and min(each.span[0] for each in summaries) < 0.0:
        raise ValueError(f"Negative values in data passed to {type(estimator).__name__} with kernel='chi2'")


def offsets(summaries: Sequence[Summary]) -> NDArray[np.int64]:
    """Returns the index of the first row of each partition, and the number of all rows."""
    return np.concatenate([[0], np.cumsum([each.rows for each in summaries])]).astype(np.int64)


def balanced_weights(
    class_weight: Any, totals: NDArray[np.float64], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns the weight of each class, given the total weights of their rows."""
    return class_weights(class_weight, totals, classes, np.arange(classes.size))[0]


def gamma_of(
    gamma: str | float,
    summaries: Sequence[Summary],
    kernel: Any,
    parts: Sequence[tuple[float, float, float]] | None = None,
) -> float:
    """Returns gamma as `svmarrow._support.rows.default_gamma` does, from moments of the summaries or
    ``parts``.
    """
    columns = max(each.columns for each in summaries)
    if not isinstance(gamma, str) or gamma == "auto" or kernel == "precomputed" or callable(kernel):
        return default_gamma(gamma, np.zeros((1, columns)), kernel=kernel)
    low = min(each.span[0] for each in summaries)
    high = max(each.span[1] for each in summaries)
    total, mean, square = 0.0, 0.0, 0.0
    for weight, own, variance in [each.moments for each in summaries] if parts is None else parts:
        if weight > 0.0:
            # Moments of two parts are combined as in Chan, Golub and LeVeque 1983.
            total, share = total + weight, weight / (total + weight)
            square += weight * (variance + (own - mean) ** 2 * (1.0 - share))
            mean += (own - mean) * share
    if low >= high or total == 0.0:
        return 1.0
    value = (1.0 / (columns * square / total)) ** gamma_power(kernel) if square > 0.0 else math.inf
    if np.finfo(np.float64).tiny < value < math.inf:
        return value
    if kernel == "linear":
        return 1.0
    raise ValueError(
        f"gamma={gamma!r} is not allowed for these rows: 1 / (n_features * X.var()) leaves double precision; "
        "scale X, or give gamma as a number"
    )
