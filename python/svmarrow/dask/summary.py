"""What a fit must know of all rows before it begins: counts, classes, the variance that "scale" asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from svmarrow._support.rows import class_weights, default_gamma, moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.dask.blocks import Block

__all__ = ["Summary", "balance", "check_span", "classes_of", "gamma_of", "offsets", "summary_of"]


@dataclass(frozen=True, eq=False)
class Summary:
    """What is told of a partition."""

    rows: int
    columns: int
    #: Labels that occur, rising, and the weight and the number of the rows of each; None for targets.
    labels: NDArray[Any] | None
    totals: NDArray[np.float64]
    counts: NDArray[np.int64]
    #: Columns of the targets, 0 for a vector.
    targets: int
    #: The least and the largest value.
    span: tuple[float, float]
    #: Number of the rows, mean and variance of their entries where that is asked for.
    moments: tuple[float, float, float]


def summary_of(block: Block, labelled: bool, varied: bool) -> Summary:
    """The summary of a partition, of its labels and of its variance if asked."""
    n, weights = block.rows, block.weights
    labels, totals, counts = None, np.empty(0), np.empty(0, dtype=np.int64)
    if labelled and n:
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
    variance, mean = moments(X, None) if varied and n else (0.0, 0.0)
    shape = () if block.y is None else block.y.shape[1:]
    columns, targets = int(X.shape[1]), int(shape[0]) if shape else 0
    return Summary(n, columns, labels, totals, counts, targets, span, (float(n), mean, variance))


def classes_of(summaries: Sequence[Summary]) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
    """The classes, rising, with the weight and the number of the rows of each."""
    there = [each for each in summaries if each.labels is not None]
    classes = np.unique(np.concatenate([np.asarray(each.labels) for each in there])) if there else np.empty(0)
    if classes.size < 2:
        raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
    totals, counts = np.zeros(classes.size), np.zeros(classes.size, dtype=np.int64)
    for each in there:
        place = np.searchsorted(classes, np.asarray(each.labels))
        totals[place] += each.totals
        counts[place] += each.counts
    return classes, totals, counts


def check_span(estimator: Any, summaries: Sequence[Summary]) -> None:
    """Refuses rows that the kernel is not defined for."""
    if estimator.kernel == "chi2" and min(each.span[0] for each in summaries) < 0.0:
        raise ValueError(f"Negative values in data passed to {type(estimator).__name__} with kernel='chi2'")


def offsets(summaries: Sequence[Summary]) -> NDArray[np.int64]:
    """The number of the first row of each partition, and that of all rows."""
    return np.concatenate([[0], np.cumsum([each.rows for each in summaries])]).astype(np.int64)


def balance(class_weight: Any, totals: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[np.float64]:
    """The weight of each class, where the rows of the classes weigh so much."""
    return class_weights(class_weight, totals, classes, np.arange(classes.size))[0]


def gamma_of(
    gamma: str | float,
    summaries: Sequence[Summary],
    kernel: Any,
    parts: Sequence[tuple[float, float, float]] | None = None,
) -> float:
    """Value of gamma as in `svmarrow._support.rows.default_gamma`, from moments of partitions, or of the
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
            # Chan, Golub and LeVeque 1983: moments of two parts.
            total, share = total + weight, weight / (total + weight)
            square += weight * (variance + (own - mean) ** 2 * (1.0 - share))
            mean += (own - mean) * share
    if low >= high or total == 0.0:
        return 1.0
    value = 1.0 / (columns * square / total) if square > 0.0 else math.inf
    if np.finfo(np.float64).tiny < value < math.inf:
        return value
    if kernel == "linear":
        return 1.0
    raise ValueError(
        f"gamma={gamma!r} is not allowed for these rows: 1 / (n_features * X.var()) leaves double precision; "
        "scale X, or give gamma as a number"
    )
