"""From blocks to the rows that count: classes numbered, weights times those of the classes, weight 0 left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.rows import moments
from svmarrow.dask.blocks import Sent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.dask.blocks import Block

__all__ = ["Part", "counted", "labelled", "numbers_of", "picked", "spread_of"]


@dataclass(frozen=True, eq=False)
class Part(Sent):
    """The rows of a partition that count."""

    number: int
    X: Any
    #: Numbers of the classes, or targets (rows, outputs).
    labels: NDArray[Any]
    #: C of each row, or its weight.
    upper: NDArray[np.float64]
    #: Their numbers in the partition, None for all of them.
    kept: NDArray[np.intp] | None

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights, None for 1."""
        return None if (self.upper == 1.0).all() else self.upper


def labelled(block: Block, classes: NDArray[Any], by_class: NDArray[np.float64], cost: float) -> Part:
    """A partition with numbered classes; weights are multiplied by those of the classes and by ``cost``."""
    labels = np.searchsorted(classes, block.labels) if block.rows else np.empty(0, dtype=np.intp)
    upper = cost * by_class[labels]
    return _counted(block, labels, upper if block.weights is None else upper * block.weights)


def counted(block: Block) -> Part:
    """A partition with targets."""
    y = np.empty(0) if block.y is None else np.asarray(block.y, dtype=np.float64)
    weights = np.ones(block.rows) if block.weights is None else block.weights
    return _counted(block, y.reshape(block.rows, -1) if block.rows else np.empty((0, 1)), weights)


def _counted(block: Block, labels: NDArray[Any], upper: NDArray[np.float64]) -> Part:
    if (upper > 0.0).all():
        return Part(block.number, block.X, labels, upper, None)
    kept = np.flatnonzero(upper > 0.0)
    return Part(block.number, block.X[kept], labels[kept], np.ascontiguousarray(upper[kept]), kept)


def numbers_of(part: Part, local: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers in the partition of rows that count."""
    return local if part.kept is None else part.kept[local].astype(np.int64)


def picked(part: Part, local: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """Some of the rows that count, and their numbers in the partition."""
    return part.X[local], numbers_of(part, local)


def spread_of(part: Part, varied: bool) -> tuple[int, tuple[float, float, float]]:
    """How many rows count; the weight, and if asked mean and variance, of their entries as they weigh."""
    n, own = int(part.X.shape[0]), part.weights
    total = float(n) if own is None else float(own.sum())
    variance, mean = moments(part.X, own) if varied and n else (0.0, 0.0)
    return n, (total, mean, variance)
