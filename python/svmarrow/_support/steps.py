"""The steps of a computation in Python: their progress, and the time after which they end."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, TypeVar

from svmarrow._support.progress import TimeOver, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from svmarrow._support.progress import ProgressCallback

__all__ = ["UNTIMED", "Steps"]

Result = TypeVar("Result")


class Steps:
    """Reports steps, says whether the next one may begin, and ends one for which the time is over.

    Parameters
    ----------
    callback : callable or None
        The callback of a `svmarrow._support.progress.Progress`.
    max_time : float or None
        Seconds from now.
    """

    def __init__(self, callback: ProgressCallback | None, max_time: float | None) -> None:
        self._callback = callback
        self._deadline = None if max_time is None else time.monotonic() + max_time
        self.was_stopped = False
        #: True if a step was replaced by a shorter one.
        self.was_shortened = False

    @property
    def remaining(self) -> float | None:
        """Seconds until the end, at least 0; None without a limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def first_part(self, share: float) -> Steps:
        """Returns steps that end after a share of the remaining time."""
        remaining = self.remaining
        return Steps(self._callback, None if remaining is None else share * remaining)

    def may_begin(self, phase: str, done: int, total: int) -> bool:
        """Reports the steps that are done; returns whether there is time for another one."""
        if self._callback is not None:
            self._callback(phase, done, total, math.nan, 0)
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.was_stopped = True
        return not self.was_stopped

    def attempt(self, work: Callable[[], Result], *, reports: bool = False) -> Result | None:
        """Returns the result of a step; None if the time was over before its end.

        Fits within `work` end at their next report of progress, which is shown if `reports`.
        """
        if self._deadline is None and not reports:
            return work()
        if self._deadline is None or time.monotonic() < self._deadline:
            try:
                with within(self._deadline, self._callback if reports else None):
                    return work()
            except TimeOver:
                pass
        self.was_stopped = True
        return None


#: Steps that are not reported and have no limit.
UNTIMED = Steps(None, None)
