"""Search the smallest size that loses little enough.

Sizes are searched from the largest down. Losses out of order are averaged (isotonic regression; Ayer et al.,
1955), so that one unlucky size does not end the search and a lucky one counts no more than its neighbours
allow. The search ends where a size loses too much beyond doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from svmarrow.reduced_set.holdout import HoldoutEvaluator

__all__ = ["SizeSearch", "isotonic", "sizes_to_search"]

HOPELESS_ERROR = 0.1
"""A size that loses too much with this error of a test is the last that is looked at."""

ROUNDING = 1e-12
"""Keeps a loss of exactly what is allowed from failing by rounding."""


def sizes_to_search(sizes: Sequence[int]) -> list[int]:
    """Some of increasing sizes, decreasing: the largest, then each at least a tenth smaller."""
    found: list[int] = []
    for size in reversed(sizes):
        if not found or size <= 0.9 * found[-1] + 1e-9 or found[-1] <= 10:
            found.append(size)
    return found


def isotonic(losses: Sequence[float]) -> list[float]:
    """The nearest numbers that do not decrease (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for loss in losses:
        value, count = loss, 1
        while blocks and blocks[-1][0] >= value:
            before, n = blocks.pop()
            value, count = (before * n + value * count) / (n + count), n + count
        blocks.append((value, count))
    return [value for value, count in blocks for _ in range(count)]


class SizeSearch:
    """The smallest size whose loss, averaged with those out of order above it, is at most `max_loss`."""

    def __init__(self, max_loss: float) -> None:
        self.max_loss = max_loss
        self.smallest: int | None = None
        self._sizes: list[int] = []
        self._losses: list[float] = []

    def add(self, size: int, loss: float) -> None:
        """Take the loss of a size; a size that is good enough stays so."""
        at = next((at for at, seen in enumerate(self._sizes) if seen < size), len(self._sizes))
        self._sizes.insert(at, size)
        self._losses.insert(at, loss)
        good = isotonic(self._losses[: at + 1])[-1] <= self.max_loss + ROUNDING
        if good and (self.smallest is None or size < self.smallest):
            self.smallest = size

    def search(
        self, levels: Iterable[tuple[int, NDArray[np.float64]]], evaluator: HoldoutEvaluator
    ) -> dict[int, NDArray[np.float64]]:
        """Search decreasing sizes until one is too small beyond doubt; the sample scores that were seen."""
        seen = {}
        for size, scores in levels:
            seen[size] = scores
            self.add(size, evaluator.safe_loss(scores))
            if evaluator.lower_bound(scores, HOPELESS_ERROR) > self.max_loss:
                break
        return seen

    @property
    def next_between(self) -> int | None:
        """The geometric mean of the smallest size and the next below it, None where there is none."""
        if self.smallest is None:
            return None
        below = max((size for size in self._sizes if size < self.smallest), default=0)
        if below == 0 or self.smallest - below < 2:
            return None
        return min(self.smallest - 1, int((self.smallest * below) ** 0.5 + 0.5))
