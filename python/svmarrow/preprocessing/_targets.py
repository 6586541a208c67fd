"""Targets from which a metric is learned: codes of classes or standardized numbers; drawn samples; folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from svmarrow._support.decoding import encode_classes
from svmarrow._support.rows import class_weights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Targets", "Task", "deal_folds", "draw", "standardized", "training_targets"]

Task = Literal["auto", "classification", "regression"]
#: Numbers with at most this number of different whole values are classes for task="auto".
MAX_CLASSES = 100
MIN_SAMPLES_PER_CLASS = 5


class Targets(NamedTuple):
    """Targets (n, q), weights of the squared errors (n,) or None, class indices (n,) or None."""

    values: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    labels: NDArray[np.intp] | None


def are_classes(y: NDArray[Any], task: Task) -> bool:
    """Returns whether the targets are classes."""
    if task != "auto":
        return task == "classification"
    if y.ndim != 1:
        return False
    if y.dtype.kind not in "fiu":
        return True
    whole = bool((y == np.round(y)).all()) if y.dtype.kind == "f" else True
    return whole and np.unique(y).size <= max(2, min(MAX_CLASSES, y.size // MIN_SAMPLES_PER_CLASS))


def training_targets(
    y: NDArray[Any],
    task: Task,
    class_weight: Mapping[Any, float] | Literal["balanced"] | None,
    weights: NDArray[np.float64] | None,
) -> Targets:
    """Returns the targets of least squares; every column of numbers has variance 1."""
    if are_classes(y, task):
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}: classes must be one column, or pass task='regression'")
        classes, labels = encode_classes(y)
        weights = class_weights(class_weight, weights, classes, labels)[1]
        columns = 1 if classes.size == 2 else classes.size
        numbers = np.arange(classes.size)[-columns:]
        return Targets(np.where(labels[:, np.newaxis] == numbers, 1.0, -1.0), weights, labels)
    if class_weight is not None:
        raise ValueError(f"class_weight={class_weight!r} is not allowed: it must be None for regression")
    values = np.asarray(y, dtype=np.float64)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    if not np.isfinite(values).all():
        raise ValueError("y contains NaN or infinity")
    return Targets(standardized(values, weights)[0], weights, None)


def standardized(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns numbers (n, q) with mean 0 and variance 1 in every column, and their standard deviations (q,).

    A column that is constant up to rounding becomes 0, and has the deviation 0.
    """
    size = np.abs(values).max(axis=0, initial=0.0)
    # The squares of large numbers would overflow.
    values = values / np.where(size > 0.0, size, 1.0)
    mean = np.average(values, axis=0, weights=weights)
    deviation = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    constant = deviation <= 10.0 * np.finfo(np.float64).eps * np.abs(mean)
    scaled = (values - mean) * ~constant / np.where(constant, 1.0, deviation)
    return scaled, np.where(constant, 0.0, size * deviation)


def draw(
    n: int, n_samples: int, labels: NDArray[np.intp] | None, random: np.random.RandomState
) -> NDArray[np.intp]:
    """Returns the numbers of at most `n_samples` samples, of each class in proportion, sorted."""
    if n <= n_samples:
        return np.arange(n)
    order = random.permutation(n)
    if labels is not None:
        # Evenly spaced samples of an order by class.
        order = order[np.argsort(labels[order], kind="stable")]
        order = order[np.linspace(0, n - 1, n_samples).round().astype(np.intp)]
    return np.sort(order[:n_samples])


def deal_folds(
    n: int, n_folds: int, labels: NDArray[np.intp] | None, random: np.random.RandomState
) -> tuple[NDArray[np.intp], ...]:
    """Returns the samples that each fold holds out; classes are dealt out evenly."""
    order = random.permutation(n)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    return tuple(np.sort(order[fold::n_folds]) for fold in range(min(n_folds, n)))
