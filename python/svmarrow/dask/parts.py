"""Training parts: the rows of a block with positive weight, class indices and combined weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.rows import moments
from svmarrow.dask.blocks import RealignOnUnpickle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.dask.blocks import Block

__all__ = [
    "Part",
    "classification_part",
    "moments_of",
    "partition_indices",
    "regression_part",
    "rows_by_part",
    "rows_with_indices",
]


@dataclass(frozen=True, eq=False)
class Part(RealignOnUnpickle):
    """The rows of positive weight of a partition."""

    number: int
    X: Any
    #: Class indices, or targets (n_rows, n_outputs).
    labels: NDArray[Any]
    #: C of each row, or its weight.
    upper: NDArray[np.float64]
    #: Indices of the rows in the partition, None for all rows.
    kept: NDArray[np.intp] | None

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights, None for 1."""
        return None if (self.upper == 1.0).all() else self.upper


def classification_part(
    block: Block, classes: NDArray[Any], by_class: NDArray[np.float64], cost: float
) -> Part:
    """Returns a partition with class indices; weights are multiplied by class weights and ``cost``."""
    labels = np.searchsorted(classes, block.labels) if block.rows else np.empty(0, dtype=np.intp)
    upper = cost * by_class[labels]
    return _without_zero_weights(block, labels, upper if block.weights is None else upper * block.weights)


def regression_part(block: Block) -> Part:
    """Returns a partition with targets."""
    y = np.empty(0) if block.y is None else np.asarray(block.y, dtype=np.float64)
    weights = np.ones(block.rows) if block.weights is None else block.weights
    return _without_zero_weights(
        block, y.reshape(block.rows, -1) if block.rows else np.empty((0, 1)), weights
    )


def _without_zero_weights(block: Block, labels: NDArray[Any], upper: NDArray[np.float64]) -> Part:
    if (upper > 0.0).all():
        return Part(block.number, block.X, labels, upper, None)
    kept = np.flatnonzero(upper > 0.0)
    return Part(block.number, block.X[kept], labels[kept], np.ascontiguousarray(upper[kept]), kept)


def partition_indices(part: Part, local: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the indices in the partition of rows of positive weight."""
    return local if part.kept is None else part.kept[local].astype(np.int64)


def rows_by_part(counts: Sequence[int], drawn: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Returns the indices within each part, by its number, of increasing indices among the rows of all parts.

    Parts without any of the rows are left out.
    """
    ends = np.concatenate([[0], np.cumsum(counts)])
    cuts = np.searchsorted(drawn, ends)
    return {
        number: drawn[cuts[number] : cuts[number + 1]] - ends[number]
        for number in range(len(counts))
        if cuts[number] < cuts[number + 1]
    }


def rows_with_indices(part: Part, local: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """Returns some of the rows of positive weight, and their indices in the partition."""
    return part.X[local], partition_indices(part, local)


def moments_of(part: Part, with_variance: bool) -> tuple[int, tuple[float, float, float]]:
    """Returns the number of rows, and their total weight, mean and variance (0 unless requested)."""
    n, own = int(part.X.shape[0]), part.weights
    total = float(n) if own is None else float(own.sum())
    variance, mean = moments(part.X, own) if with_variance and n else (0.0, 0.0)
    return n, (total, mean, variance)
