"""Measured time of predictions."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["microseconds_per_row"]

MAX_ROWS = 2000
"""Maximum number of rows that are predicted together."""

MIN_SECONDS = 0.004
"""Minimum duration of one measurement."""


def microseconds_per_row(predict: Callable[[Any], Any], rows: Any, repeat: int = 3) -> float:
    """Median time of a prediction of all these rows at once, divided by their number."""
    rows = rows[:MAX_ROWS]
    predict(rows)
    start = time.perf_counter()
    predict(rows)
    once = time.perf_counter() - start
    loops = max(1, int(MIN_SECONDS / max(once, 1e-7)))

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(loops):
            predict(rows)
        return (time.perf_counter() - start) / loops

    return 1e6 * median(measure() for _ in range(repeat)) / float(rows.shape[0])
