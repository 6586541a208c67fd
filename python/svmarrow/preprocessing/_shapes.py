"""Shapes of features: what happens to each column before it is scaled.

"standard" subtracts the mean and divides by the standard deviation. "quantile" maps a column to the normal
scores of its ranks by a piecewise linear function, constant outside of the training range, and standardizes
the result. "both" has the two side by side; columns of at most two values have one shape only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from svmarrow._support.schemas import savable
from svmarrow._support.training import class_weights, encode_classes
from svmarrow.models.preparation import check_length

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


__all__ = [
    "ColumnShapes",
    "ShapeName",
    "Targets",
    "Task",
    "column_shapes",
    "deal_folds",
    "draw",
    "some_blocks",
    "standardized",
    "training_targets",
]


# --- targets from which a metric is learned ---


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
    is_integer = bool((y == np.round(y)).all()) if y.dtype.kind == "f" else True
    return is_integer and np.unique(y).size <= max(2, min(MAX_CLASSES, y.size // MIN_SAMPLES_PER_CLASS))


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


def some_blocks(blocks: NDArray[np.intp] | None, taken: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Returns the blocks of some samples, numbered from 0; None if they are all of one block."""
    if blocks is None:
        return None
    numbers = np.unique(blocks[taken], return_inverse=True)[1].ravel()
    return numbers if numbers.any() else None


def deal_folds(
    n: int,
    n_folds: int,
    labels: NDArray[np.intp] | None,
    random: np.random.RandomState,
    blocks: NDArray[np.intp] | None = None,
) -> tuple[NDArray[np.intp], ...]:
    """Returns the samples that each fold holds out; classes are dealt out evenly.

    Samples with the same number in `blocks` are in the same fold: the largest blocks are dealt out first,
    each to the smallest fold.
    """
    if blocks is not None:
        sizes = np.bincount(blocks)
        fold_of, totals = np.zeros(sizes.size, dtype=np.intp), np.zeros(min(n_folds, sizes.size))
        shuffled = random.permutation(sizes.size)
        for block in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
            fold_of[block] = np.argmin(totals)
            totals[fold_of[block]] += sizes[block]
        return tuple(np.flatnonzero(fold_of[blocks] == fold) for fold in range(totals.size))
    order = random.permutation(n)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    return tuple(np.sort(order[fold::n_folds]) for fold in range(min(n_folds, n)))


ShapeName = Literal["standard", "quantile", "both"]
#: Maximum number of knots of a piecewise linear function.
MAX_KNOTS = 128


@savable("column-shapes/1")
@dataclass(frozen=True, eq=False)
class ColumnShapes:
    """The shapes of d columns.

    Parameters
    ----------
    name : {"standard", "quantile", "both"}
        The shape.
    mean, deviation : ndarray of shape (d,)
        The standardization; for sparse samples the mean is 0.
    columns : ndarray of int64 of shape (d_q,)
        The columns with a quantile shape.
    knots, values : ndarray of shape (d_q, n_knots)
        Their piecewise linear functions. Rows of fewer knots repeat the last.
    """

    name: Literal["standard", "quantile", "both"]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    columns: NDArray[np.int64]
    knots: NDArray[np.float64]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        d = self.mean.size
        check_length("mean", self.mean, d)
        check_length("deviation", self.deviation, d)
        if not (self.deviation > 0.0).all():
            raise ValueError("deviation must be positive: columns are divided by it")
        columns = self.columns
        if columns.ndim != 1 or (columns < 0).any() or (columns >= d).any() or (np.diff(columns) <= 0).any():
            raise ValueError(f"columns must be increasing numbers of columns, from 0 to {d - 1}")
        if self.knots.ndim != 2 or self.knots.shape[0] != columns.size or not self.knots.shape[1]:
            raise ValueError(f"knots have shape {self.knots.shape} for {columns.size} columns")
        check_length("knots", self.knots.ravel(), self.knots.size)
        check_length("values", self.values.ravel(), self.knots.size)
        if self.values.shape != self.knots.shape or (np.diff(self.knots) < 0.0).any():
            raise ValueError("knots must not decrease, and values must have their shape")

    @property
    def standard_columns(self) -> NDArray[np.int64]:
        """The columns that are standardized."""
        every = np.arange(self.mean.size)
        return every if self.name != "quantile" else np.setdiff1d(every, self.columns)

    @property
    def sources(self) -> NDArray[np.int64]:
        """The column of each shaped column, (n_shaped,)."""
        return np.concatenate([self.standard_columns, self.columns])

    def apply(self, X: Any) -> Any:
        """Returns the shaped columns (n, n_shaped), the standardized ones first."""
        if sp.issparse(X):
            scaled = sp.csr_array(X, copy=True)
            scaled.data = (scaled.data / self.deviation[scaled.indices]).astype(X.dtype)
            return scaled
        kind = np.float32 if X.dtype == np.float32 else np.float64
        first = self.standard_columns
        standard = (X[:, first] - self.mean[first]) / self.deviation[first]
        if not self.columns.size:
            return standard.astype(kind, copy=False)
        parts = [np.interp(X[:, c], self.knots[i], self.values[i]) for i, c in enumerate(self.columns)]
        return np.hstack([standard, np.stack(parts, axis=1)]).astype(kind, copy=False)


def column_shapes(
    X: Any, weights: NDArray[np.float64] | None, name: ShapeName, groups: NDArray[np.int64]
) -> ColumnShapes:
    """Returns the shapes for training rows; columns of one group share a standard deviation."""
    d = int(X.shape[1])
    w = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights / weights.sum()
    # Moments in units of the largest value, whose squares neither overflow nor vanish.
    if sp.issparse(X):
        wide = sp.csr_array(X).astype(np.float64)
        size = _unit(abs(wide).max(axis=0).toarray().ravel())
        wide.data = wide.data / size[wide.indices]
        centre = np.asarray(w @ wide)
        variance = np.maximum(np.asarray(w @ wide.multiply(wide)) - centre**2, 0.0)
    else:
        wide = np.asarray(X, dtype=np.float64)
        size = _unit(np.abs(wide).max(axis=0))
        scaled = wide / size
        centre = w @ scaled
        variance = w @ (scaled - centre) ** 2
    # A column is constant if it is so up to rounding.
    deviation = np.sqrt(variance)
    deviation[deviation <= 10.0 * np.finfo(np.float64).eps * np.abs(centre)] = 0.0
    with np.errstate(over="ignore"):
        deviation = _shared(deviation * size, groups)
    deviation[(deviation == 0.0) | ~np.isfinite(deviation)] = 1.0
    mean = np.zeros(d) if sp.issparse(X) else centre * size
    columns = np.zeros(0, dtype=np.int64)
    knots = values = np.zeros((0, 2))
    if name != "standard":
        alone = np.bincount(groups)[groups] == 1
        found = {c: _normal_scores(wide[:, c], w) for c in range(d) if alone[c]}
        found = {c: pair for c, pair in found.items() if pair[0].size > 2}
        if found:
            columns = np.array(list(found), dtype=np.int64)
            longest = max(pair[0].size for pair in found.values())
            knots, values = (
                np.stack([_padded(pair[part], longest) for pair in found.values()]) for part in (0, 1)
            )
    return ColumnShapes(name, mean, deviation, columns, knots, values)


def _padded(row: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    return np.concatenate([row, np.full(length - row.size, row[-1])])


def _unit(size: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(size > 0.0, size, 1.0)


def _shared(deviation: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the root of the mean square of each group, for each column."""
    largest = np.zeros(groups.max() + 1)
    np.maximum.at(largest, groups, deviation)
    unit = _unit(largest)[groups]
    squares = np.bincount(groups, (deviation / unit) ** 2) / np.bincount(groups)
    shared: NDArray[np.float64] = np.sqrt(squares)[groups] * unit
    return shared


def _normal_scores(
    column: NDArray[np.float64], w: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns knots and standardized normal scores of a column; weights add up to 1."""
    knots, inverse = np.unique(column, return_inverse=True)
    share = np.bincount(inverse.ravel(), w)
    is_present = share > 0.0
    knots, share = knots[is_present], share[is_present]
    if knots.size <= 2:
        return knots, knots
    # The middle of a value's ranks.
    scores = ndtri(np.clip(np.cumsum(share) - 0.5 * share, 1e-12, 1.0 - 1e-12))
    centre = share @ scores
    scores = (scores - centre) / np.sqrt(share @ (scores - centre) ** 2)
    if knots.size > MAX_KNOTS:
        knot_places = np.unique(np.linspace(0, knots.size - 1, MAX_KNOTS).round().astype(np.intp))
        knots, scores = knots[knot_places], scores[knot_places]
    return knots, scores
