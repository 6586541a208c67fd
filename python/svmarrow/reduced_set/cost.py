"""What a model costs: time a row, as a line in the number of vectors that measurements are held against."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["TimeModel", "largest_within", "microseconds_per_row"]

#: Rows that are timed, at most.
ROWS = 2000
#: Least seconds of one measurement.
SECONDS = 0.004


class TimeModel(NamedTuple):
    """Microseconds a row = fixed + per_vector * vectors.

    Attributes
    ----------
    fixed, per_vector : float
        The line; neither is negative.
    sizes : tuple of int
        Numbers of vectors that were measured.
    measured : tuple of float
        What they took.
    """

    fixed: float
    per_vector: float
    sizes: tuple[int, ...]
    measured: tuple[float, ...]

    @classmethod
    def fit(cls, sizes: Sequence[int], measured: Sequence[float]) -> TimeModel:
        """The line with the least relative errors."""
        t = np.asarray(measured, dtype=np.float64)
        A = np.column_stack([np.ones(len(sizes)), sizes]) / t[:, None]
        fixed, slope = np.linalg.lstsq(A, np.ones(len(sizes)), rcond=None)[0]
        if fixed < 0.0 or slope < 0.0:
            slope = max(0.0, float((t / np.asarray(sizes)).mean())) if fixed < 0.0 else 0.0
            fixed = 0.0 if slope else float(t.mean())
        return cls(float(fixed), float(slope), tuple(int(s) for s in sizes), tuple(t.tolist()))

    def __call__(self, size: int) -> float:
        """Microseconds a row with so many vectors."""
        return self.fixed + self.per_vector * size

    @property
    def largest_error(self) -> float:
        """Largest relative difference between line and measurement."""
        pairs = zip(self.sizes, self.measured, strict=True)
        return max(abs(self(size) - time) / time for size, time in pairs)


def microseconds_per_row(predict: Callable[[Any], Any], rows: Any, repeat: int = 3) -> float:
    """Median time of a prediction of all these rows at once, divided by their number."""
    rows = rows[:ROWS]
    predict(rows)
    start = time.perf_counter()
    predict(rows)
    once = time.perf_counter() - start
    loops = max(1, int(SECONDS / max(once, 1e-7)))

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(loops):
            predict(rows)
        return (time.perf_counter() - start) / loops

    return 1e6 * median(measure() for _ in range(repeat)) / float(rows.shape[0])


def largest_within(budget: float, most: int, measure: Callable[[int], float]) -> tuple[int, TimeModel]:
    """The largest size up to `most` that was measured to keep to the budget; 0 where one vector does not.

    A line through measured sizes proposes, and each proposal is measured before it is believed.
    """
    sizes = sorted({max(1, round(most ** (step / 5))) for step in range(6)})
    model = TimeModel.fit(sizes, [measure(size) for size in sizes])
    if model.per_vector > 0.0:
        size = int(np.clip((budget - model.fixed) / model.per_vector + 1e-6, 0, most))
    else:
        size = most if model.fixed <= budget else 0
    size = max(1, size)
    while size and measure(size) > budget:
        size = min(size - 1, int(0.93 * size))
    return size, model
